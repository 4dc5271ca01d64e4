"""One release judged: attacks, utility, drift and disclosure together, as data for a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from ..certificate import Certificate
from ..errors import InputError
from .disclosure import Disclosure, disclosure
from .drift import Drift, drift
from .linked import Linked
from .reidentification import Attack, Reidentification, reidentify
from .utility import Utility, utility

ATTACKS: tuple[tuple[str, Attack, bool], ...] = (
    ("optimal assignment", "assignment", False),
    ("optimal assignment, standard units", "assignment", True),
    ("nearest record", "nearest", False),
    ("nearest record, standard units", "nearest", True),
)


@dataclass(frozen=True)
class Evaluation:
    """What was promised, what was measured."""

    certificate: Certificate
    attacks: dict[str, Reidentification]
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
    sample, max_seconds : limits of the assignment attack; see :func:`~omokage.evaluate.reidentify`
    """
    y = None if target is None else target_values(both, target)
    attacks = {}
    for name, attack, standardize in ATTACKS:
        progress(f"attacking: {name}")
        attacks[name] = reidentify(
            None,
            both,
            attack=attack,
            standardize=standardize,
            sample=sample,
            max_seconds=max_seconds,
            random_state=random_state,
        )
    progress("measuring drift and disclosure")
    drifted, disclosed = drift(None, both), disclosure(None, both)
    utilities = []
    for model in models if y is not None else ():
        progress(f"learning from the release: {model}")
        utilities.append(utility(None, y, both, model=model, splits=splits, random_state=random_state))
    return Evaluation(both.certificate, attacks, drifted, disclosed, target, tuple(utilities))


def target_values(both: Linked, target: str) -> Any:
    """The target of each original; it must be released as it is."""
    role = {column.name: column.role for column in both.certificate.columns}.get(target)
    if role not in ("keep", "sensitive"):
        raise InputError(f"the target {target!r} must be a column that was released as it is (keep or sensitive)")
    column = both.column(target)
    if column.null_count():
        raise InputError(f"the target {target!r} is missing in {column.null_count()} rows")
    return column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.cast(pl.String).to_list(), dtype=str)
