"""Roundings from fine to coarse: round numbers, periods of the calendar, codes without their last digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Way = Literal["nearest", "down", "up"]
Rounding = Callable[[NDArray[Any]], NDArray[Any]]

HIDDEN = "*"
DECADES = 15  # powers of ten below the largest number that are tried: about what a float distinguishes
PERIODS: tuple[tuple[str, int], ...] = (("h", 1), ("D", 1), ("M", 1), ("Y", 1), ("Y", 10), ("Y", 100))
HOURS = (1, 24, 31 * 24, 366 * 24, 3653 * 24, 36525 * 24)


def cuts(longest: int) -> list[Rounding]:
    """A code without its last digit, its last two …"""
    return [_cut(digits) for digits in range(1, longest)]


def whole_levels(reach: float, way: Way) -> list[Rounding]:
    """Whole numbers to multiples of 2, 5, 10, 20 … up to the first that is no smaller than ``reach``."""
    return [_to_multiples(step, way) for step in _whole_steps(reach)]


def real_levels(largest: float, reach: float, way: Way) -> list[Rounding]:
    """Numbers to multiples of 1, 2 or 5 times a power of ten, from about the last digit up to ``reach``."""
    return [_to_steps(unit, power, way) for unit, power in _real_steps(largest, reach)]


def period_levels(unit: str, reach: float, way: Way) -> list[Rounding]:
    """Dates (``unit`` D) to months, years …, moments also to hours and days, up to the first no shorter than ``reach`` hours."""
    usable = [p for p, before in zip(PERIODS, (0, *HOURS), strict=False) if before < reach and not (unit == "D" and p[0] in "hD")]
    return [_to_periods(name, size, unit, way) for name, size in usable]


def _cut(digits: int) -> Rounding:
    def cut(codes: NDArray[Any]) -> NDArray[Any]:
        return np.array([c[:-digits] + "*" * digits if len(c) > digits else HIDDEN for c in codes.tolist()], dtype=codes.dtype)

    return cut


def _whole_steps(reach: float) -> Iterator[int]:
    for power in range(20):
        for unit in (2, 5, 10):
            if reach <= 0:
                return
            yield unit * 10**power
            reach = 0 if unit * 10**power >= reach else reach


def _to_multiples(step: int, way: Way) -> Rounding:
    def whole(x: NDArray[Any]) -> NDArray[Any]:
        below = x // step
        if way == "up":
            below = below + (x % step != 0)
        elif way == "nearest":
            below = below + (2 * (x % step) >= step)
        return below * step

    return whole


def _real_steps(largest: float, reach: float) -> Iterator[tuple[int, int]]:
    if not (1e-280 < largest < 1e280 and reach > 0):
        return
    power = math.ceil(math.log10(largest)) - DECADES
    while True:
        for unit in (1, 2, 5):
            yield unit, power
            if unit * 10.0**power >= reach:
                return
        power += 1


def _to_steps(unit: int, power: int, way: Way) -> Rounding:
    def multiple(of: NDArray[np.float64]) -> NDArray[np.float64]:
        return of * unit / 10.0**-power if power < 0 else of * (unit * 10.0**power)  # a division gives the nearest decimal

    def real(x: NDArray[Any]) -> NDArray[Any]:
        steps = x * 10.0**-power / unit if power < 0 else x / (unit * 10.0**power)
        if way == "nearest":
            return multiple(np.rint(steps)) + 0.0
        whole = np.floor(steps) if way == "down" else np.ceil(steps)
        rounded = multiple(whole)
        over = rounded > x if way == "down" else rounded < x  # by the last bit of the division
        return np.where(over, multiple(whole - 1 if way == "down" else whole + 1), rounded) + 0.0

    return real


def _to_periods(name: str, size: int, unit: str, way: Way) -> Rounding:
    """To the first moment of the hour, day, month, year, decade, century, or up to its last day (a time: to the next first)."""

    def rounded(x: NDArray[Any]) -> NDArray[Any]:
        number = x.astype(f"M8[{name}]").astype(np.int64)
        base = -1970 if name == "Y" else 0  # decades and centuries begin in years that they divide
        first = (number - base) // size * size + base
        start = first.view(f"M8[{name}]").astype(f"M8[{unit}]")
        if way != "up":
            return start
        following = (first + size).view(f"M8[{name}]").astype(f"M8[{unit}]")
        return following - np.timedelta64(1, "D") if unit == "D" else np.where(start == x, x, following)

    return rounded
