"""What is promised about a model, as a value that prints itself and survives JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from pydantic import TypeAdapter, ValidationError

from omokage.errors import InputError

ADJACENCY = "replace-one"
LARGE = 10.0  # an ε above it is said to protect hardly at all


@dataclass(frozen=True)
class Privacy:
    """What is promised about a model, to whom it is shown, and on what conditions.

    ``epsilon_naive`` adds the steps up and holds with ``delta_naive``, which is zero or next to nothing
    (``epsilon_naive`` is infinite for Gaussian noise); ``epsilon`` is the smaller of that and the PLD bound at
    ``delta``. Both are for the whole model. ``epsilon_per_parameter`` is the paper's figure:
    ``per_parameter_holds`` says whether even that weaker promise is true.
    """

    approach: str
    private: bool
    epsilon: float
    delta: float
    epsilon_naive: float
    delta_naive: float
    epsilon_rdp: float | None
    epsilon_per_parameter: float | None
    per_parameter_holds: bool | None
    parameters: int
    records: int
    steps: int
    public: tuple[str, ...]
    tuned: str
    noise: str
    sampler_distance: float
    caveats: tuple[str, ...] = ()
    adjacency: str = ADJACENCY

    def lines(self) -> tuple[str, ...]:
        """What the command line prints: the paper's figure, the model's guarantee, and what a large ε means."""
        if not self.private:
            return "each parameter on its own: no promise either", "whole model: NOT PRIVATE: " + "; ".join(self.caveats)
        if self.epsilon_per_parameter is None:
            paper = "each parameter on its own: no separate figure, the whole-model guarantee covers it"
        else:
            doubt = "" if self.per_parameter_holds else "; the proof fails, see docs/learn.md"
            paper = (
                f"each parameter on its own (the paper's ε, not a guarantee for the model{doubt}): "
                f"ε = {self.epsilon_per_parameter:g}"
            )
        whole = f"whole model, {self.adjacency}: {self._guarantees()}"
        return (paper, whole, large_epsilon(self.epsilon)) if self.epsilon > LARGE else (paper, whole)

    def _guarantees(self) -> str:
        naive = "∞" if math.isinf(self.epsilon_naive) else f"{self.epsilon_naive:.6g}"
        pure = f"ε = {naive} at {spell_delta(self.delta_naive)}"
        return f"ε = {self.epsilon:.6g} at δ = {self.delta:g}; {pure}" if self.delta > 0.0 else pure

    def to_json(self) -> dict[str, Any]:
        """Plain values; an infinite ε is written as the string ``"inf"``."""
        plain = asdict(self)
        for name, value in plain.items():
            if isinstance(value, float) and math.isinf(value):
                plain[name] = "inf"
            elif isinstance(value, tuple):
                plain[name] = list(value)
        return plain

    @classmethod
    def from_json(cls, plain: Any) -> Privacy:
        """The statement that :meth:`to_json` wrote; anything else is refused, field by field."""
        known = {field.name for field in fields(cls)}
        if not isinstance(plain, dict) or set(plain) != known:
            raise InputError(f"the privacy statement has other fields than these: {', '.join(sorted(known))}")
        infinite = {k: math.inf if v == "inf" and k.startswith("epsilon") else v for k, v in plain.items()}
        try:
            found = TypeAdapter(cls).validate_json(json.dumps(infinite), strict=True)
        except ValidationError as error:
            wrong = ", ".join(sorted({str(e["loc"][0]) for e in error.errors() if e["loc"]}))
            raise InputError(f"the privacy statement has a wrong type in {wrong}") from None
        found._check_ranges()
        return found

    def _check_ranges(self) -> None:
        epsilons = (self.epsilon, self.epsilon_naive, self.epsilon_rdp, self.epsilon_per_parameter)
        deltas = (self.delta, self.delta_naive, self.sampler_distance)
        counts = (self.parameters, self.records, self.steps)
        if not (
            all(e is None or e >= 0.0 for e in epsilons)
            and all(0.0 <= d < math.inf for d in deltas)
            and all(0 < c < 2**62 for c in counts)
        ):
            raise InputError("the privacy statement has an ε, a δ or a count out of its range")


def spell_delta(delta: float) -> str:
    """A δ that is zero but for the sampler, as a bound.

    >>> spell_delta(0.0), spell_delta(4.1e-26)
    ('δ = 0', 'δ < 1e-25')
    """
    return "δ = 0" if delta == 0.0 else f"δ < 1e{math.floor(math.log10(delta)) + 1}"


def large_epsilon(epsilon: float) -> str:
    """What an ε above 10 means, in words.

    >>> large_epsilon(12.0)
    'ε above 10 protects hardly anybody: one row may change the chance of an outcome 162,755-fold'
    """
    factor = f"{math.exp(epsilon):,.0f}-fold" if epsilon < 14.0 else f"by a factor of 10^{epsilon / math.log(10):.0f}"
    return f"ε above {LARGE:g} protects hardly anybody: one row may change the chance of an outcome {factor}"
