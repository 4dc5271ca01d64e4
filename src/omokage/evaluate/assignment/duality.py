"""How far an assignment can be from the optimum: the dual certificate, in float64, over all pairs.

For any prices p, an assignment a that fills every capacity costs at most Σᵢ [cᵢₐ₍ᵢ₎ + pₐ₍ᵢ₎ − minⱼ (cᵢⱼ + pⱼ)] more than the
cheapest one (linear programming duality; the prices cancel because every assignment uses every column equally
often). The sum needs nothing but the rows, the columns, the prices and the assignment.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS, COLUMNS = 256, 2048  # a block of values: 4 MiB of float64


def row_excess(x: Floats, y: Floats, price: Floats, column: Ints, threads: int) -> tuple[Floats, Floats]:
    """By how much every row's own value is above its least, at cost −2 x·y, and a bound of the rounding error in it.

    The bound is the usual one for dot products of length d and two additions, (d + 4) 2⁻⁵² (2 |x| max|y| + 2 max|p|).
    """
    least = np.full(len(x), np.inf)
    own = np.empty(len(x))
    doubled = -2 * x

    def one(a: int) -> None:
        part = slice(a, a + ROWS)
        for b in range(0, len(y), COLUMNS):
            values = doubled[part] @ y[b : b + COLUMNS].T
            values += price[b : b + COLUMNS]
            np.minimum(least[part], values.min(axis=1), out=least[part])
        own[part] = np.einsum("ij,ij->i", doubled[part], y[column[part]]) + price[column[part]]

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(one, range(0, len(x), ROWS)):
            pass
    reach = 2 * np.sqrt((x * x).sum(1)) * np.sqrt((y * y).sum(1).max()) + 2 * np.abs(price).max()
    return np.maximum(own - least, 0.0), (x.shape[1] + 4) * 2.0**-52 * reach
