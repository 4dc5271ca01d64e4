"""The method, which knows no medium: maps, groupers, what a group becomes, noise, and the pipeline that joins them."""

from __future__ import annotations

from ..base.registry import Entry, Registry

# Listed here and not beside the classes, so that listing them needs no NumPy. In Python any object with ``unify`` is a unifier.
UNIFIERS = Registry(
    "unifier",
    Entry("mean", "omokage.method.unify:Mean", "The mean of each group."),
    Entry("median", "omokage.method.unify:Median", "The median of each group, less moved by one far member."),
    Entry("spread", "omokage.method.unify:Spread", "The mean, moved so that every column keeps its spread."),
    own=False,
)
