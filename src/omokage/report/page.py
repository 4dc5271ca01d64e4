"""Pages: a result becomes words and plots, and an autoescaped template puts them together."""

from __future__ import annotations

import base64
from typing import Any

from .. import __version__
from ..errors import InputError, MissingExtra
from ..evaluate.comparison import Comparison
from ..evaluate.evaluation import Evaluation
from ..evaluate.faces.figures import FaceEvaluation
from ..faces.recognize import RECOGNIZERS
from ..release.certificate import Certificate, FaceMethod
from ..release.text import not_covered
from . import plots


def evaluation_page(result: Evaluation, *, repeat: str = "") -> str:
    """The report of one release."""
    certificate = result.certificate
    k = certificate.k
    names = [c.name for c in certificate.columns if c.role == "quasi"]
    return _render(
        "evaluation.html",
        e=result,
        c=certificate,
        verdict=verdict(result),
        covered_not=not_covered(certificate),
        a=result.strongest,
        attacks=plots.attacks(list(result.attacks.items())),
        sizes=plots.class_sizes(certificate.found, k, certificate.counted),
        drift=plots.column_drift(result.drift, names),
        certificate=certificate.to_json(),
        repeat=repeat,
    )


def comparison_page(result: Comparison, *, repeat: str = "") -> str:
    """The report of many settings."""
    best = {o.setting.name for o in result.frontier()}
    ordered = sorted(result.outcomes, key=lambda o: o.rate)
    return _render("comparison.html", r=result, best=best, outcomes=ordered, plot=plots.frontier(result), repeat=repeat)


def verdict(result: Evaluation) -> list[str]:
    """What was promised and what was measured, in sentences."""
    found, attack = result.certificate.found, result.strongest
    out = [f"Promised: {result.certificate.promised()}."]
    if result.certificate.k is not None:
        out.append(
            f"Kept: the smallest of {found.groups:,} classes in the written file has {found.k} {result.certificate.counted}."
        )
    people = "people" if not attack.sampled else f"people of a sample of {attack.rows:,}"
    bound = "" if attack.bound is None else f"; the promise allows {attack.bound:.2%}"
    out.append(
        f"An attacker who holds all originals and the whole release and has read its certificate links {attack.rate:.2%} of the "
        f"{people} to their own record; by chance it would be {attack.chance:.4%}{bound}."
    )
    proved = ""
    if attack.attack == "assignment":
        proved = ", proved optimal" if attack.exact else f", within {attack.gap:.1e} of the least cost"
    weakest = min(result.attacks.values(), key=lambda each: each.rate)
    out.append(
        f"That is the strongest of {len(result.attacks)} attacks: {attack.name}{proved}. The weakest, {weakest.name}, links "
        f"{weakest.rate:.2%}."
    )
    out += [f"Not tried: {name}: {reason}." for name, reason in result.missing.items()]
    for s in result.disclosure.sensitive:
        out.append(
            f"Guessing {s.column} from the release is right for {s.inference.rate:.1%} of the people, {s.inference.baseline:.1%} "
            f"without it; {s.given_away:.1%} are in classes where all have the same value."
        )
    for u in result.utilities:
        main = "accuracy" if u.task == "classification" else "r2"
        out.append(
            f"A {u.model} model learned from the release reaches {main} {u.released[main].mean:.3f} on originals held out; "
            f"learned from the originals, {u.original[main].mean:.3f}."
        )
    out.append(f"Averaging took {result.drift.loss:.1%} of the variance of the records (SSE/SST).")
    return out


def face_evaluation_page(result: FaceEvaluation, *, show_originals: bool = False, repeat: str = "") -> str:
    """The report of a release of faces; with originals in it, it says that it must not be handed out."""
    if show_originals and any(pair.original is None for pair in result.pairs):
        raise InputError("the originals were not kept: evaluate with keep_originals=True to show them")
    pairs = result.pairs if show_originals else tuple({pair.released: pair for pair in result.pairs}.values())
    rows = [(name, result.released.attacks[name], None if (u := result.unaveraged) is None else u.attacks[name],
             result.calibration.get(name)) for name in result.released.attacks]  # fmt: skip
    everyone = [(attacker_name(name, result.certificate), attack, None if u is None else u.attackers.get(name))
                for name, attack in result.released.attackers.items()]  # fmt: skip
    return _render(
        "face_evaluation.html",
        e=result,
        c=result.certificate,
        verdict=face_verdict(result),
        kept=result.found.k >= result.k and all(a.interval[0] <= a.bound for _, a, _ in everyone),
        covered_not=not_covered(result.certificate),
        a=result.released.strongest,
        names={each.name: each.title for each in RECOGNIZERS.entries},
        rows=rows,
        everyone=everyone,
        pairs=[(_data(pair.released), _data(pair.original) if show_originals else None) for pair in pairs],
        show_originals=show_originals,
        attacks=plots.recognition(everyone, result.k),
        parts=plots.fid_parts(result),
        certificate=result.certificate.to_json(),
        repeat=repeat,
    )


def _data(picture: bytes | None) -> str:
    """A JPEG as an address that fetches nothing."""
    return "data:image/jpeg;base64," + base64.b64encode(picture or b"").decode("ascii")


def attacker_name(name: str, certificate: Certificate) -> str:
    """How an attacker on a release of faces is named in words."""
    if name in RECOGNIZERS:
        return RECOGNIZERS.entry(name).title
    which, _, ruler = name.partition(", ")
    if not ruler or not isinstance(certificate.method, FaceMethod):
        return name
    own = certificate.method.group_map if which == "group map" else certificate.method.synthesis_map
    return f"{ruler} in {' + '.join(part.name for part in own).upper()}, its {which}"


def face_verdict(result: FaceEvaluation) -> list[str]:
    """What was promised of faces and what was measured, in sentences."""
    found, r, alone = result.found, result.released, result.unaveraged
    (name, attack), *others = r.attackers.items()
    whom = "people" if result.certificate.counted == "persons" else "photos"
    out = [
        f"Promised: {result.certificate.promised()}.",
        f"{'Kept' if found.k >= result.k else 'Broken'}: {found.groups:,} different pictures were written, and the one that "
        f"stands for fewest stands for {found.k} {whom}.",
        f"An attacker who holds all {result.faces:,} photos and names the nearest is right for {attack.rate:.1%} of them "
        f"({attack.interval[0]:.1%} to {attack.interval[1]:.1%}) by the strongest of {len(others) + 1} attacks, "
        f"{attacker_name(name, result.certificate)}; 1/k is {1 / result.k:.1%}, the most that any attacker can reach here is "
        f"{attack.bound:.1%}, and by chance it is {attack.chance:.1%}.",
        "The others: " + ", ".join(f"{attacker_name(each, result.certificate)} {a.rate:.1%}" for each, a in others) + ".",
    ]
    out.append(
        f"Which group it is can be seen: the nearest photo shows a member for {attack.in_group.rate:.1%} of the pictures "
        f"({attack.in_group.baseline:.1%} by chance); which of its members, cannot."
    )
    if alone is not None:
        out.append(
            f"Sent through the synthesis map one by one, without averaging, {alone.strongest.rate:.1%} of {alone.pictures} "
            "faces are named right: what is hidden beyond that, averaging hides."
        )
    out.append(
        f"FID to the originals before {result.before} is {r.fid.value:.1f}; as many different real faces, drawn at random, "
        f"would have {r.floor.value:.1f}."
    )
    out.append(f"A face is found in {r.detected:.1%} of the {r.pictures:,} different released pictures.")
    told = {each.label: each for each in result.agreement}
    if told:
        apart = ", ".join(f"{label} {told[label].share:.0%}" for label in ("Male", "Young", "Smiling") if label in told)
        out.append(
            f"A released face shows {told['All'].share:.0%} of the labels just as its original does ({told['All'].chance:.0%} if "
            f"faces were dealt out at random){'; ' + apart if apart else ''}."
        )
    return out


def _render(template: str, **values: Any) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtra("a report", "report") from None
    environment = Environment(
        loader=PackageLoader("omokage.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # only our own plots are markup; whatever comes from the data is escaped
    marked = {name: Markup(v) if isinstance(v, str) and v.startswith("<svg") else v for name, v in values.items()}
    return environment.get_template(template).render(version=__version__, **marked)
