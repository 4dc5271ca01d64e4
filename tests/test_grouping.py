"""Groupers: equal to slow, obvious ones; at least k in every group; the same whatever the threads, type or layout."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registered import classes_in
from sklearn.base import clone

from omokage.base import matrix, threads
from omokage.errors import InputError, NotEnoughPeople
from omokage.method import grouping
from omokage.method.grouping import GROUPERS, MDAV, Cells, Mondrian, parse_grouper, small

MASK = 2**64 - 1


@pytest.fixture(scope="module", params=["numpy", "kernels"])
def route(request):
    """Small tables are grouped in NumPy, all others by kernels; here both group the small ones."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "kernels":
            patch.setattr(small, "ROWS", 0)
        yield request.param


both_routes = pytest.mark.usefixtures("route")


def mix(x: int) -> int:
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def drawn(seed: int, node: int, d: int, count: int) -> list[int]:
    """The dimensions of a node, in plain Python."""
    state, taken = mix(seed ^ mix(node)), []
    for j in range(d):
        state = mix(state)
        if state % (d - j) < count - len(taken):
            taken.append(j)
    return taken


def plain_mondrian(x, k, search=None, spread="range", cut="half", seed=0, node=1, rows=None):
    """Algorithm 1 step by step; groups as lists of row numbers, first half first."""
    rows = list(range(len(x))) if rows is None else rows
    if len(rows) < 2 * k:
        return [rows]
    d = x.shape[1]
    dims = list(range(d)) if search in (None, d) else drawn(seed, node, d, search)
    part = x[rows].astype(float)
    if spread == "range":
        width = {j: part[:, j].max() - part[:, j].min() for j in dims}
    else:
        width = {j: part[:, j].var() for j in dims}
    best = max(width.values())
    j = next(j for j in dims if width[j] == best)
    ordered = sorted(rows, key=lambda i: (x[i, j], i))
    half = (len(rows) + 1) // 2 if cut == "half" else k * ((len(rows) + k) // (2 * k))
    parts = (sorted(ordered[:half]), sorted(ordered[half:]))
    return [
        group
        for side, part_rows in enumerate(parts)
        for group in plain_mondrian(x, k, search, spread, cut, seed, 2 * node + side, part_rows)
    ]


def plain_mdav(x, k):
    """MDAV-generic with full distances; groups in the order they are made."""
    x = x.astype(float)
    left, groups = list(range(len(x))), []

    def distance(point):
        return {i: float(((x[i] - point) ** 2).sum()) for i in left}

    def farthest(point):
        d = distance(point)
        return min(left, key=lambda i: (-d[i], i))

    def take(i):
        d = distance(x[i])
        group = sorted(left, key=lambda m: (d[m], m))[:k]
        for m in group:
            left.remove(m)
        groups.append(group)

    while len(left) >= 2 * k:
        r = farthest(sum(x[i] for i in left) / len(left))
        s = farthest(x[r]) if len(left) >= 3 * k else None
        take(r)
        if s is not None:
            take(s)
    groups.append(left)
    return groups


def as_labels(groups, n):
    labels = np.empty(n, dtype=np.int64)
    for g, rows in enumerate(groups):
        labels[rows] = g
    return labels


@st.composite
def tables(draw, most_rows=60):
    """Small matrices of whole numbers with many ties, and a k that fits."""
    n = draw(st.integers(2, most_rows))
    d = draw(st.integers(1, 7))
    top = draw(st.sampled_from([1, 3, 100]))
    values = draw(st.lists(st.integers(-top, top), min_size=n * d, max_size=n * d))
    k = draw(st.integers(2, min(n, 9)))
    return np.array(values, dtype=np.float64).reshape(n, d), k


@both_routes
@given(tables(), st.sampled_from(["half", "multiple"]), st.data())
def test_mondrian_is_algorithm_1(table, cut, data):
    x, k = table
    search = data.draw(st.integers(1, x.shape[1]))
    labels = Mondrian(k, search, cut=cut, random_state=7, n_jobs=1).fit_predict(x)
    assert (labels == as_labels(plain_mondrian(x, k, search, cut=cut, seed=7), len(x))).all()


def test_mondrian_by_variance_is_the_plain_one_where_sums_are_exact():
    x = np.random.default_rng(3).integers(0, 9, (300, 6)).astype(float)
    labels = Mondrian(5, spread="variance").fit_predict(x)
    assert (labels == as_labels(plain_mondrian(x, 5, spread="variance"), len(x))).all()


@both_routes
@given(tables())
def test_mdav_is_the_plain_one(table):
    x, k = table
    x = x * np.exp(0.37 * np.arange(x.shape[1]))  # ties of equal rows and of mirrored ones; none that only rounding would break
    assert (MDAV(k, n_jobs=1).fit_predict(x) == as_labels(plain_mdav(x, k), len(x))).all()


@both_routes
def test_mdav_with_bounds_is_the_plain_one_on_many_columns():
    x = np.random.default_rng(0).poisson(1.0, (400, 50)).astype(np.float32)
    assert (MDAV(6).fit_predict(x) == as_labels(plain_mdav(x, 6), len(x))).all()


@both_routes
@pytest.mark.parametrize("name", GROUPERS)
@given(tables(most_rows=120))
def test_every_group_has_at_least_k(name, table):
    x, k = table
    grouper = GROUPERS[name](k, n_jobs=1)
    labels = grouper.fit_predict(x)
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert len(sizes) == grouper.n_groups_
    assert sizes.max() < 2 * k


@pytest.mark.parametrize("name", GROUPERS)
def test_same_labels_for_every_layout_type_and_number_of_threads(name, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "ELEMENTS", 2000)  # many pieces of work from a small table
    x = np.random.default_rng(1).integers(0, 50, (3000, 7)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    grouper = clone(GROUPERS[name](4))
    if "random_state" in grouper.get_params():
        grouper.set_params(random_state=5)
    first = grouper.fit_predict(x)
    assert np.bincount(first).min() >= 4
    for other in (
        np.asfortranarray(x),
        x.astype(np.float64),
        x.astype(np.int64),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
    ):
        assert (clone(grouper).fit_predict(other) == first).all()
    for jobs in (1, 2, 3):
        assert (clone(grouper).set_params(n_jobs=jobs).fit_predict(x) == first).all()


def test_memory_mapped_input_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((50, 3), dtype=np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(matrix.as_matrix(mapped, 2), mapped)


def test_large_sets_are_divided_as_small_ones(monkeypatch):
    x = np.random.default_rng(2).normal(size=(5000, 4))
    whole = [Mondrian(3, d, spread=s, random_state=1).fit_predict(x) for d in (None, 2) for s in ("range", "variance")]
    monkeypatch.setattr(threads, "ELEMENTS", 256)
    parts = [Mondrian(3, d, spread=s, random_state=1).fit_predict(x) for d in (None, 2) for s in ("range", "variance")]
    assert all((a == b).all() for a, b in zip(whole, parts, strict=True))


def loss(x, labels):
    means = np.stack([x[labels == g].mean(axis=0) for g in range(labels.max() + 1)])
    return ((x - means[labels]) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()


def test_cells_lose_less_than_mondrian_and_swaps_help():
    x = np.random.default_rng(0).normal(size=(4000, 12))
    plain = loss(x, Cells(5, sweeps=0, random_state=0).fit_predict(x))
    swapped = loss(x, Cells(5, random_state=0).fit_predict(x))
    assert swapped < 0.95 * plain
    assert swapped < 1.02 * loss(x, MDAV(5).fit_predict(x))
    assert swapped < 0.7 * loss(x, Mondrian(5).fit_predict(x))


@both_routes
def test_cells_divide_rows_that_are_all_alike():
    labels = Cells(3, random_state=0).fit_predict(np.zeros((2000, 2)))
    assert np.bincount(labels).min() >= 3
    assert np.bincount(labels).max() < 6


def test_standardized_spread_ignores_units():
    x = np.random.default_rng(4).integers(0, 64, (200, 3)).astype(float)
    scaled = x * np.array([1.0, 1024.0, 1.0])
    assert (Mondrian(5, standardize=True).fit_predict(x) == Mondrian(5, standardize=True).fit_predict(scaled)).all()
    assert (Mondrian(5).fit_predict(x) != Mondrian(5).fit_predict(scaled)).any()


@both_routes
def test_multiples_of_k_leave_smaller_groups():
    x = np.random.default_rng(0).normal(size=(500, 3))
    assert np.bincount(Mondrian(32).fit_predict(x)).max() > 60
    assert np.bincount(Mondrian(32, cut="multiple").fit_predict(x)).max() < 60


def test_more_dimensions_to_search_than_there_are_means_all_of_them():
    x = np.random.default_rng(0).normal(size=(100, 4))
    np.testing.assert_array_equal(Mondrian(5, 9216).fit_predict(x), Mondrian(5).fit_predict(x))


@both_routes
@pytest.mark.parametrize("name", GROUPERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(name, bad):
    x = np.ones((40, 3))
    x[17, 2] = bad
    with pytest.raises(InputError, match=r"1 of 40 rows hold NaN or infinity.*column 2"):
        GROUPERS[name](2).fit_predict(x)


def test_sampled_dimensions_refuse_nan_too():
    x = np.full((40, 3), np.nan)
    for spread in ("range", "variance"):
        with pytest.raises(InputError, match="NaN"):
            Mondrian(2, 1, spread=spread, random_state=0).fit_predict(x)


@both_routes
@pytest.mark.parametrize("name", GROUPERS)
def test_wrong_parameters_are_named(name):
    x = np.ones((7, 2))
    with pytest.raises(NotEnoughPeople, match=r"k = 10 needs at least 10 rows, but there are 7"):
        GROUPERS[name](10).fit_predict(x)
    with pytest.raises(InputError, match="at least 2, but it is 1"):
        GROUPERS[name](1).fit_predict(x)
    with pytest.raises(InputError, match="whole number"):
        GROUPERS[name](2.5).fit_predict(x)
    with pytest.raises(InputError, match="shape"):
        GROUPERS[name](2).fit_predict(np.ones(7))
    with pytest.raises(InputError, match="needs numbers"):
        GROUPERS[name](2).fit_predict(np.array([["a"], ["b"], ["c"]]))
    with pytest.raises(InputError, match="n_jobs"):
        GROUPERS[name](2, n_jobs=0).fit_predict(x)


def test_options_are_checked():
    x = np.ones((9, 2))
    for grouper, words in (
        (Mondrian(2, 0), "search_dims must be None .all. or a whole number of at least 1"),
        (Mondrian(2, spread="iqr"), "spread must be one of"),
        (Mondrian(2, cut="third"), "cut must be one of"),
        (Mondrian(2, random_state=-1), "random_state"),
        (Cells(2, cell_size=3), "cell_size"),
        (Cells(2, sweeps=-1), "sweeps"),
    ):
        with pytest.raises(InputError, match=words):
            grouper.fit_predict(x)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kmeans", "there is no grouping 'kmeans': choose mondrian"),
        ("mondrain:variance", "there is no grouping 'mondrain'"),
        ("mondrian:median", "does not take 'median': write mondrian"),
        ("mondrian:dims=x", "where N is a whole number"),
        ("mondrian:dims=3,dims=4", "one option twice"),
        ("cells:variance", "does not take 'variance': write cells"),
    ],
)
def test_wrong_grouping_names(text, words):
    with pytest.raises(InputError, match=words):
        parse_grouper(text, 2)


def test_spellings():
    assert repr(parse_grouper("mondrian:variance,standard,multiple,dims=9", 2)) == repr(
        Mondrian(2, 9, spread="variance", standardize=True, cut="multiple")
    )
    assert repr(parse_grouper("cells", 3)) == repr(Cells(3))


def test_every_public_grouper_is_listed():
    assert classes_in(grouping, "fit_predict") == set(GROUPERS.values())
    assert {name for name in grouping.__all__ if isinstance(getattr(grouping, name), type)} == {
        c.__name__ for c in GROUPERS.values()
    }


def grouped(monkeypatch, grouper, x, rows_of_a_small_table):
    with monkeypatch.context() as patch:
        patch.setattr(small, "ROWS", rows_of_a_small_table)
        return clone(grouper).fit_predict(x)


@pytest.mark.parametrize("k", [2, 7, 20])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_numpy_and_kernels_make_the_same_groups(k, d, monkeypatch):
    x = np.random.default_rng(10 * k + d).normal(size=(200, d))
    for grouper in (
        Mondrian(k),
        Mondrian(k, cut="multiple"),
        MDAV(k),
        Cells(k, cell_size=200),
        Cells(k, cell_size=200, sweeps=9),
    ):
        assert np.array_equal(*(grouped(monkeypatch, grouper, x, rows) for rows in (len(x), 0))), grouper


def test_small_tables_need_no_kernels():
    """Neither numba nor a kernel is imported for them, so nothing can be compiled."""
    code = """
import sys
import numpy as np
from omokage.method.grouping import MDAV, Cells, Mondrian
x = np.random.default_rng(0).normal(size=(100, 3))
for grouper in (Mondrian(3), MDAV(3), Cells(3)):
    grouper.fit_predict(x)
sys.exit("numba" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.data
def test_otto_loss(otto):
    """The figures of docs/grouping.md."""
    assert loss(otto, Cells(10, random_state=0).fit_predict(otto)) < 0.125
    assert 0.4 < loss(otto, Mondrian(10).fit_predict(otto)) < 0.5
