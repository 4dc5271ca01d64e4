"""Rules for the settings of a learner: each check passes, or says which setting is wrong and what to give instead."""

from __future__ import annotations

import numbers
from typing import Any

from omokage.errors import InputError

LARGEST_EPSILON = 10_000.0  # far beyond any protection; larger ones only overflow
_LARGEST = 1e300
_LARGEST_COUNT = 2**53
_SMALLEST_CLIP = 1e-30
_NARROWEST = 1e-100  # of a range that is divided into a grid
_WIDEST = 1_000_000


def is_number(value: Any) -> bool:
    """Whether a value is a number that a double holds, and not a truth value.

    >>> is_number(3), is_number(2.5), is_number(True), is_number(float("nan")), is_number(10**400)
    (True, True, False, False, False)
    """
    return _is_a(value, numbers.Real) and bool(-_LARGEST <= value <= _LARGEST)


def check_epsilon(epsilon: Any) -> float:
    """``epsilon`` itself, if it is one."""
    if not (is_number(epsilon) and 0.0 < epsilon <= LARGEST_EPSILON):
        raise InputError(f"epsilon is {epsilon!r}: give a number above 0, at most {LARGEST_EPSILON:,.0f}")
    return float(epsilon)


def check_delta(delta: Any) -> float:
    """``delta`` itself, if it is one; zero stands for a pure ε."""
    if not (is_number(delta) and 0.0 <= delta < 1.0):
        raise InputError(f"delta is {delta!r}: give a number from 0 to below 1")
    return float(delta)


def check_count(name: str, value: Any) -> None:
    if not _is_count(value, _LARGEST_COUNT):
        raise InputError(f"{name} is {value!r}: give a whole number from 1")


def check_positive(name: str, value: Any) -> None:
    if not (is_number(value) and value > 0.0):
        raise InputError(f"{name} is {value!r}: give a finite number above 0")


def check_clip(value: Any) -> None:
    """Clips that doubles can carry out to the last bit; see ``network_kernels``."""
    if not (is_number(value) and _SMALLEST_CLIP <= value <= 1.0 / _SMALLEST_CLIP):
        raise InputError(f"clip is {value!r}: give a number from {_SMALLEST_CLIP:g} to {1.0 / _SMALLEST_CLIP:g}")


def check_range(name: str, value: Any) -> None:
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value)) and value[0] < value[1]):
        raise InputError(f"{name} is {value!r}: give two finite numbers, low < high")
    if value[1] - value[0] < _NARROWEST:
        raise InputError(f"{name} is {value!r}: give a range wider than {_NARROWEST:g}")


def check_hidden(hidden: Any) -> None:
    if not isinstance(hidden, list | tuple) or not all(_is_count(h, _WIDEST) for h in hidden):
        raise InputError(f"hidden is {hidden!r}: list layer widths from 1 to {_WIDEST:,}")


def check_seed(name: str, seed: Any) -> None:
    if seed is not None and not (_is_a(seed, numbers.Integral) and seed >= 0):
        raise InputError(f"{name} is {seed!r}: give a whole number from 0, or None")


def check_descent(batch_size: Any = None, learning_rate: Any = None, momentum: Any = 0.0, decay: Any = 0.0) -> None:
    """Settings of a gradient descent; the first two may be left open."""
    if batch_size is not None:
        check_count("batch_size", batch_size)
    if learning_rate is not None:
        check_positive("learning_rate", learning_rate)
    if not (is_number(momentum) and 0.0 <= momentum < 1.0):
        raise InputError(f"momentum is {momentum!r}: give a number from 0 to below 1")
    if not (is_number(decay) and decay >= 0.0):
        raise InputError(f"decay is {decay!r}: give a finite number from 0")


def _is_count(value: Any, largest: int) -> bool:
    return _is_a(value, numbers.Integral) and bool(1 <= value <= largest)


def _is_a(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
