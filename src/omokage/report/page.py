"""Pages: a result becomes words and plots, and an autoescaped template puts them together."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ..certificate import NOISE_NOT_COVERED, NOT_COVERED
from ..errors import MissingExtra, OutputError
from ..evaluate.comparison import Comparison
from ..evaluate.evaluation import Evaluation
from . import plots


def evaluation_page(result: Evaluation, *, repeat: str = "") -> str:
    """The report of one release."""
    certificate = result.certificate
    k = certificate.promise.get("k")
    names = [c.name for c in certificate.columns if c.role == "quasi"]
    return _render(
        "evaluation.html",
        e=result,
        c=certificate,
        verdict=verdict(result),
        covered_not=NOISE_NOT_COVERED if certificate.promise["kind"] == "noise" else NOT_COVERED,
        a=result.strongest,
        attacks=plots.attacks(list(result.attacks.items())),
        sizes=plots.class_sizes(certificate.found, k, certificate.promise.get("counted", "rows")),
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
    if result.certificate.promise["kind"] == "k-anonymity":
        out.append(
            f"Kept: the smallest of {found.groups:,} classes in the written file has {found.k} "
            f"{result.certificate.promise['counted']}."
        )
    people = "people" if not attack.sampled else f"people of a sample of {attack.rows:,}"
    if attack.attack == "nearest":
        proved = "taking the nearest"
    else:
        proved = "proved optimal" if attack.exact else f"within {attack.gap:.1e} of the least cost"
    bound = "" if attack.bound is None else f"; the promise allows {attack.bound:.2%}"
    out.append(
        f"An attacker who holds all originals and the whole release links {attack.rate:.2%} of the {people} to their own "
        f"record ({proved}); by chance it would be {attack.chance:.4%}{bound}."
    )
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
    return environment.get_template(template).render(**marked)


def write_page(text: str, path: str | Path) -> Path:
    """Write a page whole or not at all."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, stage = tempfile.mkstemp(prefix=".omokage-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(stage).chmod(0o644)
            Path(stage).replace(path)
        finally:
            Path(stage).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    return path
