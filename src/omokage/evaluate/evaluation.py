"""One release judged: attacks, utility, drift and disclosure together, as data for a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import InputError
from ..release.certificate import Certificate
from .attacks import attack_all
from .disclosure import Disclosure, disclosure
from .drift import Drift, drift
from .linked import Linked
from .reidentification import Reidentification
from .utility import Utility, utility


@dataclass(frozen=True)
class Evaluation:
    """What was promised, what was measured.

    attacks : by name, the strongest first. missing : attacks that could not be tried, and why.
    """

    certificate: Certificate
    attacks: dict[str, Reidentification]
    missing: dict[str, str]
    drift: Drift
    disclosure: Disclosure
    target: str | None
    utilities: tuple[Utility, ...]

    @property
    def strongest(self) -> Reidentification:
        """The attack that links most."""
        return max(self.attacks.values(), key=lambda attack: attack.rate)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(
    both: Linked,
    *,
    target: str | None = None,
    models: Sequence[str] = ("boosting",),
    splits: int = 3,
    sample: int | None = None,
    max_seconds: float | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Attack a release, learn from it, and measure what drifted.

    Parameters
    ----------
    both : Linked
        Originals and release, from :func:`~omokage.evaluate.link` or :func:`~omokage.evaluate.link_files`.
    target : str
        A column released as it is that an analyst would want to predict.
    sample, max_seconds : limits of the attacks; see :func:`~omokage.evaluate.attack_all`
    """
    y = None if target is None else target_values(both, target)
    tried = attack_all(both, sample=sample, max_seconds=max_seconds, random_state=random_state, progress=progress)
    progress("measuring drift and disclosure")
    drifted, disclosed = drift(None, both), disclosure(None, both, ruler=tried.nearest_ruler)
    utilities = []
    for model in models if y is not None else ():
        progress(f"learning from the release: {model}")
        utilities.append(utility(None, y, both, model=model, splits=splits, random_state=random_state))
    return Evaluation(both.certificate, tried.results, tried.missing, drifted, disclosed, target, tuple(utilities))


def target_values(both: Linked, target: str) -> Any:
    """The target of each original; it must be released as it is."""
    role = {column.name: column.role for column in both.certificate.columns}.get(target)
    if role not in ("keep", "sensitive"):
        raise InputError(f"the target {target!r} must be a column that was released as it is (keep or sensitive)")
    column = both.column(target)
    if column.null_count():
        raise InputError(f"the target {target!r} is missing in {column.null_count()} rows")
    return column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.cast(pl.String).to_list(), dtype=str)
