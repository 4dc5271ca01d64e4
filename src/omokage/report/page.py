"""Pages: a result becomes sentences and plots, and an autoescaped template puts them together."""

from __future__ import annotations

import base64
from typing import Any

from .. import __version__
from ..base.words import counted
from ..errors import InputError, MissingExtra
from ..evaluate.comparison import Comparison
from ..evaluate.evaluation import Evaluation
from ..evaluate.faces.figures import FaceEvaluation
from ..evaluate.published import Published
from ..faces.recognize import RECOGNIZERS
from ..release.certificate import Certificate
from ..release.text import not_covered
from . import plots
from .sentences import attacker_name, face_verdict, verdict


def evaluation_page(result: Evaluation, *, repeat: str = "") -> str:
    """The report of one release."""
    certificate = result.certificate
    names = [column.name for column in Published.of(certificate).quasi]
    return _release_page(
        "evaluation.html",
        certificate,
        repeat,
        e=result,
        verdict=verdict(result),
        a=result.strongest,
        attacks=plots.attacks(list(result.attacks.items())),
        sizes=plots.class_sizes(certificate.found, certificate.k, certificate.counted),
        drift=plots.column_drift(result.drift, names),
    )


def comparison_page(result: Comparison, *, repeat: str = "") -> str:
    """The report of many settings."""
    best = {o.setting.name for o in result.frontier()}
    ordered = sorted(result.outcomes, key=lambda o: o.rate)
    return _render("comparison.html", r=result, best=best, outcomes=ordered, plot=plots.frontier(result), repeat=repeat)


def face_evaluation_page(result: FaceEvaluation, *, show_originals: bool = False, repeat: str = "") -> str:
    """The report of a release of faces; with originals in it, it says that it must not be handed out."""
    if show_originals and any(pair.original is None for pair in result.pairs):
        raise InputError("the originals were not kept: evaluate with keep_originals=True to show them")
    pairs = result.pairs if show_originals else tuple({pair.released: pair for pair in result.pairs}.values())
    rows = [(name, result.released.attacks[name], None if (u := result.unaveraged) is None else u.attacks[name],
             result.calibration.get(name)) for name in result.released.attacks]  # fmt: skip
    everyone = [(attacker_name(name, result.certificate), attack, None if u is None else u.attackers.get(name))
                for name, attack in result.released.attackers.items()]  # fmt: skip
    return _release_page(
        "face_evaluation.html",
        result.certificate,
        repeat,
        e=result,
        verdict=face_verdict(result),
        kept=result.found.k >= result.k and all(a.interval[0] <= a.bound for _, a, _ in everyone),
        a=result.released.strongest,
        names={each.name: each.title for each in RECOGNIZERS.entries},
        rows=rows,
        everyone=everyone,
        pairs=[(_data(pair.released), _data(pair.original) if show_originals else None) for pair in pairs],
        show_originals=show_originals,
        attacks=plots.recognition(everyone, result.k),
        fid=plots.fid_parts(result),
    )


def _data(picture: bytes | None) -> str:
    """A JPEG as an address that fetches nothing."""
    return "data:image/jpeg;base64," + base64.b64encode(picture or b"").decode("ascii")


def _release_page(template: str, certificate: Certificate, repeat: str, **values: Any) -> str:
    """A page about one release: beside its own values, all that follows from the certificate."""
    return _render(
        template,
        c=certificate,
        gaps=not_covered(certificate),
        made=certificate.method.lines(),
        certificate=certificate.to_json(),
        repeat=repeat,
        **values,
    )


def _render(template: str, **values: Any) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtra("support for reports", "report") from None
    environment = Environment(
        loader=PackageLoader("omokage.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    # only our own plots are markup; whatever comes from the data is escaped
    marked = {name: Markup(v) if isinstance(v, str) and v.startswith("<svg") else v for name, v in values.items()}
    return environment.get_template(template).render(version=__version__, **marked)
