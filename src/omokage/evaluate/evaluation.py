"""One release judged: attacks, utility, drift and disclosure together, as data for a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..base.progress import Progress, silent
from ..release.certificate import Certificate
from .attacks import Attack
from .disclosure import Disclosure, disclosure
from .drift import Drift, drift
from .linked import Linked
from .reidentification import Reidentification
from .strongest import attack_all
from .utility import Utility, target_values, utility


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
    attacks: Iterable[str | Attack | type[Attack]] | None = None,
    sample: int | None = None,
    max_seconds: float | None = None,
    random_state: int = 0,
    progress: Progress = silent,
) -> Evaluation:
    """Attack a release, learn from it, and measure what drifted.

    Parameters
    ----------
    both : Linked
        Originals and release, from :func:`~omokage.evaluate.link` or :func:`~omokage.evaluate.link_files`.
    target : str
        An unchanged column that an analyst would want to predict.
    models, splits : what to learn from the release; see :func:`~omokage.evaluate.utility`
    attacks, sample, max_seconds : what to try, and its limits; see :func:`~omokage.evaluate.attack_all`
    progress : called with the name of each stage
    """
    y = None if target is None else target_values(both, target)
    tried = attack_all(
        both, attacks=attacks, sample=sample, max_seconds=max_seconds, random_state=random_state, progress=progress
    )
    progress("measuring drift and disclosure")
    drifted, disclosed = drift(both), disclosure(both, ruler=tried.nearest_ruler)
    utilities = []
    for model in models if y is not None else ():
        progress(f"learning from the release: {model}")
        utilities.append(utility(both, target=y, model=model, splits=splits, random_state=random_state))
    return Evaluation(both.certificate, tried.results, tried.missing, drifted, disclosed, target, tuple(utilities))
