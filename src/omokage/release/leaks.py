"""The gate that every release passes before it is published: what do its bytes say around the values?

An attacker reads more than cells. So all that was written is looked at as one would: is a value that was not released in any
byte of any file, also in the metadata and the unpacked buffers of Parquet, Feather or NumPy files? Does a row hold its own
identifier in another column? Does the order of rows, of text in the buffers, of inodes or of change times follow the input's?
Values of fewer than six bytes cannot be told from other bytes and are not searched, nor are those that at least k people have:
they tell nothing of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau, norm, poisson

from ..base.matrix import Labels
from ..base.search import Strings
from ..errors import VerificationError

FEWEST = 13  # records whose order can show anything: 13! > 10⁹
SURE = 1e-9  # an order that chance gives more rarely is taken for the input's


def require_absent(strings: Strings, where: str, content: bytes) -> None:
    """Refuse bytes that hold one of the strings."""
    if next(strings.found_in(content), None) is not None:
        raise VerificationError(
            f"{where} hold a value that fewer than k people have and that is not released: nothing was released"
        )


def ranks(values: Sequence[int]) -> Labels:
    """Place of each value among all; equal ones in an order of chance's, so that ties show nothing."""
    chance = np.random.default_rng(0).permutation(len(values))
    ranks = np.empty(len(values), np.int64)
    ranks[np.lexsort((chance, np.asarray(values)))] = np.arange(len(values))
    return ranks


def followed(place: Labels, what: str) -> bool:
    """Whether the order was compared; refuses one that follows the input's, forwards, backwards or in stretches."""
    if len(place) < FEWEST:
        return False
    if min(chances(place)) < SURE:
        raise VerificationError(f"the order of {what} follows that of the input: nothing was released; try again")
    return True


def chances(place: Labels) -> tuple[float, float]:
    """How likely chance would give an order this near to the input's: over all, and in neighbours that stay neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> [chance < 1e-9 for chance in chances(np.arange(24))]
    [True, True]
    >>> [chance < 1e-9 for chance in chances(np.random.default_rng(0).permutation(24))]
    [False, False]
    """
    n = len(place)
    if n <= 1000:
        trend = float(kendalltau(np.arange(n), place).pvalue)
    else:
        centred = (place - (n - 1) / 2) @ (np.arange(n) - (n - 1) / 2) / (n * (n**2 - 1) / 12)  # Spearman's ρ
        trend = float(2 * norm.sf(abs(centred) * np.sqrt(n - 1)))
    neighbours = int((np.abs(np.diff(place)) == 1).sum())  # about Poisson with mean 2
    return trend, float(poisson.sf(neighbours - 1, 2))


def files_of(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a folder, by its path there; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        yield entry.name, entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from ((f"{entry.name}/{name}", state) for name, state in files_of(folder / entry.name))
