"""Groupers: who is alike. Each has ``fit_predict(Z) -> labels`` with at least k rows under every label.

``GROUPERS`` lists them by the names the command line knows. The classes are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.registry import Entry, Registry

if TYPE_CHECKING:
    from .cells import Cells
    from .mdav import MDAV
    from .mondrian import Mondrian

GROUPERS = Registry(
    "grouping",
    Entry(
        "mondrian",
        "omokage.method.grouping.mondrian:Mondrian",
        "Halves along axes, which keep categories and prefixes together.",
        words={"variance": {"spread": "variance"}, "standard": {"standardize": True}, "multiple": {"cut": "multiple"}},
        options={"dims": "search_dims"},
    ),
    Entry("mdav", "omokage.method.grouping.mdav:MDAV", "The k rows nearest to the farthest row, again and again."),
    Entry("cells", "omokage.method.grouping.cells:Cells", "Compact cells, improved by swaps; these lose least."),
    methods=("fit_predict",),
)

__all__ = ["GROUPERS", "MDAV", "Cells", "Mondrian", "parse_grouper"]

__getattr__ = GROUPERS.public(__name__)


def parse_grouper(text: str, k: int) -> Any:
    """A grouper from its name, ``NAME[:OPTION,…]``; ``package.module:Class`` is a class of your own, which gets k first.

    Examples
    --------
    >>> parse_grouper("mondrian:variance,dims=100", 10)
    Mondrian(k=10, search_dims=100, spread='variance')
    >>> parse_grouper("mdav", 3)
    MDAV(k=3)
    """
    return GROUPERS.make(text, k)
