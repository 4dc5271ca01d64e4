"""Matrices and labels: a finite matrix of floats, used where it lies, with enough rows for k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, NotEnoughPeople
from .parameters import K
from .threads import Pool, pieces

Matrix = NDArray[np.float32] | NDArray[np.float64]
Labels = NDArray[np.int64]


def as_matrix(data: Any, k: int) -> Matrix:
    """A read-only view of ``data`` as an (n, d) matrix of float32 or float64; copied only if it is something else."""
    k = check_k(k)
    x = as_rows(data, "grouping")
    if x.dtype.kind in "iub":
        small = x.dtype.itemsize <= 2 or (x.size > 0 and x.min() >= -(2**24) and x.max() <= 2**24)
        x = x.astype(np.float32 if small else np.float64)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if not (x.flags.c_contiguous or x.flags.f_contiguous):
        x = np.ascontiguousarray(x)
    if len(x) < k:
        raise NotEnoughPeople(f"k = {k} needs at least {k} rows, but there {are(len(x))}: lower k or add rows")
    x = x.view()
    x.flags.writeable = False  # one compiled kernel serves arrays and memory-mapped files
    return x


def as_rows(data: Any, who: str, error: type[InputError] = InputError) -> NDArray[Any]:
    """``data`` as an array of rows × columns that holds numbers; ``who`` needs them.

    Some of the messages hold the words that scikit-learn's checks of estimators look for.
    """
    if hasattr(data, "toarray"):  # SciPy's sparse arrays and matrices, without importing SciPy
        raise error(f"{who} cannot use sparse data: give a dense array, for example X.toarray()")
    x = np.asarray(data)
    if x.dtype.kind == "O":
        x = _from_objects(x, who, error)
    if x.dtype.kind == "c":
        raise error(f"Complex data not supported by {who}: give the real and the imaginary part as columns")
    if x.dtype.kind not in "fiub":
        raise error(f"{who} needs numbers, but the data are of type {x.dtype}: encode text columns or leave them out")
    if x.ndim != 2:
        raise error(f"{who} needs a matrix of rows × columns, but the data have shape {x.shape}. Reshape your data first")
    for axis, what in enumerate(("sample", "feature")):
        if x.shape[axis] == 0:
            raise error(f"{who} needs data: found 0 {what}(s) (shape={x.shape}) while a minimum of 1 is required.")
    return x


def _from_objects(x: NDArray[Any], who: str, error: type[InputError]) -> NDArray[Any]:
    """An array of Python objects, if all of them are numbers."""
    try:
        return x.astype(np.float64)
    except TypeError:  # the type and the words that scikit-learn's own estimators use
        raise TypeError(f"{who} needs numbers: every argument must be a string or a number, not a container") from None
    except ValueError:
        raise error(f"{who} needs numbers, but some of the data are text: encode text columns or leave them out") from None


def are(count: int) -> str:
    """ "are 7" or "is only one sample"."""
    return "is only one sample" if count == 1 else f"are {count}"


def check_k(k: Any) -> int:
    """k as an int of at least 2."""
    K.check("k", k)
    return int(k)


def require_finite(x: Matrix, pool: Pool) -> None:
    """Refuse NaN and infinity."""
    if not all(pool.map(lambda part: _all_finite(x[part[0] : part[1]]), pieces(*x.shape))):
        refuse_not_finite(x)


def _all_finite(x: Matrix) -> bool:
    """Whether all is finite; only where the sum is not are the numbers looked at one by one."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum()) or np.isfinite(x).all())


def refuse_not_finite(x: Matrix) -> None:
    """Say how many rows and which columns hold NaN or infinity."""
    bad = np.zeros(x.shape[1], dtype=bool)
    rows = 0
    for a, b in pieces(*x.shape):
        wrong = ~np.isfinite(x[a:b])
        bad |= wrong.any(axis=0)
        rows += int(wrong.any(axis=1).sum())
    columns = np.flatnonzero(bad)
    raise InputError(
        f"{rows} of {len(x)} rows hold NaN or infinity (first in column {columns[0]}, {len(columns)} columns in all): "
        "fill them in or leave those rows out"
    )


def members_of(labels: Labels) -> list[NDArray[np.int64]]:
    """Row numbers of each group."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])
