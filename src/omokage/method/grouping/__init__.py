"""Groupers: who is alike. Each has ``fit_predict(Z) -> labels`` with at least k rows under every label.

``GROUPERS`` lists them by the names the command line knows.
"""

from __future__ import annotations

from typing import Any

from ...base.registry import Entry, Registry
from ...errors import InputError
from .cells import Cells
from .mdav import MDAV
from .mondrian import Mondrian

GROUPERS = Registry(
    "grouping",
    Entry("mondrian", "omokage.method.grouping.mondrian:Mondrian", "halves along axes"),
    Entry("mdav", "omokage.method.grouping.mdav:MDAV", "microaggregation"),
    Entry("cells", "omokage.method.grouping.cells:Cells", "microaggregation in cells"),
)

OPTIONS: dict[str, dict[str, Any]] = {
    "variance": {"spread": "variance"},
    "standard": {"standardize": True},
    "multiple": {"cut": "multiple"},
}

__all__ = ["GROUPERS", "MDAV", "Cells", "Mondrian", "parse_grouper"]


def parse_grouper(text: str, k: int) -> Any:
    """A grouper from its name, ``NAME[:OPTION,…]``.

    Examples
    --------
    >>> parse_grouper("mondrian:variance,dims=100", 10)
    Mondrian(k=10, search_dims=100, spread='variance')
    >>> parse_grouper("mdav", 3)
    MDAV(k=3)
    """
    name, _, rest = text.partition(":")
    if name not in GROUPERS:
        raise InputError(f"there is no grouping {name!r}: they are {', '.join(GROUPERS)}")
    chosen: dict[str, Any] = {}
    for option in filter(None, rest.split(",")):
        if name == "mondrian" and option in OPTIONS:
            chosen |= OPTIONS[option]
        elif name == "mondrian" and option.startswith("dims=") and option[5:].isdigit():
            chosen["search_dims"] = int(option[5:])
        else:
            known = f"{', '.join(OPTIONS)} and dims=N" if name == "mondrian" else "no options"
            raise InputError(f"the grouping {name} takes {known}, not {option!r}")
    return GROUPERS[name](k, **chosen)
