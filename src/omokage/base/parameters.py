"""What each parameter may be: declared once, checked by ``fit``, read by the docs, and fed wrong values by the contract tests.

A part (a grouper, a map) declares ``parameters``, a rule for every argument of its constructor. The constructor only stores, so
the rules are checked when the part is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ..errors import InputError


@dataclass(frozen=True)
class Rule:
    """What a parameter may be.

    words : completes "… must be". allows : whether a value keeps the rule. wrong : values that break it, for tests.
    why : the reason, for the end of the message.
    """

    words: str
    allows: Callable[[Any], bool]
    wrong: tuple[Any, ...]
    why: str = ""

    def check(self, name: str, value: Any, error: type[InputError] = InputError) -> None:
        """Raise ``error`` if the value breaks the rule."""
        if not self.allows(value):
            raise error(f"{name} must be {self.words}, but it is {value!r}" + (f": {self.why}" if self.why else ""))


def whole(least: int, *, why: str = "") -> Rule:
    """A whole number, at least so large.

    Examples
    --------
    >>> whole(2).check("k", 1)
    Traceback (most recent call last):
        ...
    omokage.errors.InputError: k must be a whole number of at least 2, but it is 1
    """

    def allows(value: Any) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least

    return Rule(f"a whole number of at least {least}", allows, (least - 1, least + 0.5, str(least), True, None), why)


def real(least: float, *, above: bool = False) -> Rule:
    """A finite number, at least or above a bound."""

    def allows(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            return False
        return float(value) > least if above else float(value) >= least

    wrong = (least if above else least - 1, math.nan, math.inf, str(least), None)
    return Rule(f"a number {'above' if above else 'of at least'} {least:g}", allows, wrong)


def choice(*names: str) -> Rule:
    """One of several names."""
    return Rule(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names, ("", names, None))


def flag() -> Rule:
    """True or False."""
    # NumPy's own booleans are neither bool nor Integral
    return Rule("True or False", lambda value: isinstance(value, bool) or type(value).__name__ == "bool", (2, "yes", None))


def several(each: Rule) -> Rule:
    """A tuple (or list) of values that keep one rule; it may be empty."""

    def allows(value: Any) -> bool:
        return isinstance(value, tuple | list) and all(each.allows(one) for one in value)

    return Rule(f"a tuple, in which each is {each.words}", allows, (3, *((value,) for value in each.wrong)))


def optional(rule: Rule, meaning: str) -> Rule:
    """None, with a meaning of its own, or a value that keeps the rule."""

    def allows(value: Any) -> bool:
        return value is None or rule.allows(value)

    return Rule(f"None ({meaning}) or {rule.words}", allows, tuple(value for value in rule.wrong if value is not None), rule.why)


K = whole(2, why="a group of one person hides nobody")
SEED = optional(whole(0), "drawn anew")
THREADS = optional(whole(1), "all cores")
Rules = Mapping[str, Rule]


def check_parameters(part: Any, error: type[InputError] = InputError) -> None:
    """Hold every parameter of a part to its rule."""
    for name, rule in part.parameters.items():
        rule.check(name, getattr(part, name), error)
