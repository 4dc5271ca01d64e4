"""Counts in words: a number takes its plural."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, in the singular or plural.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row"), counted(0, "row"), counted(1234, "class")
    ('1 row', '2 rows', '0 rows', '1,234 classes')
    >>> counted(1, "person", "people"), counted(3, "person", "people"), counted(2, "category"), counted(2, "day")
    ('1 person', '3 people', '2 categories', '2 days')
    """
    return f"{number:,} {noun if number == 1 else plural or plural_of(noun)}"


def plural_of(noun: str) -> str:
    """The regular English plural of a noun, by its ending."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and not noun.endswith(("ay", "ey", "oy", "uy")):
        return noun[:-1] + "ies"
    return noun + "s"
