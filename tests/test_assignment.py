"""The optimal assignment: against SciPy on many small problems, by hand, and its certificate against tampering."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from omokage.errors import InputError
from omokage.evaluate.assignment import small, transport
from omokage.evaluate.assignment.transport import certify, distinct_rows, solve_transport


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Small problems go to SciPy; here they are solved by the kernels, which SciPy then judges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "ROWS", 0)
        yield


def least_cost(x, y):
    costs = cdist(x, y, "sqeuclidean")
    return float(costs[linear_sum_assignment(costs)].sum())


def draw(seed):
    """A small problem; every other one is full of ties and equal rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 50)), int(rng.integers(1, 6))
    if seed % 2:
        x = rng.integers(0, 3, (n, d)).astype(float)
        return x, x[rng.integers(0, n, n)] + rng.integers(-1, 2, (n, d))
    x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    return x, x[rng.permutation(n)] + rng.normal(size=(n, d)) * x.std()


def memory_for_lists(x, centers):
    """Too little for the cost matrix beside the lists, enough for the lists to grow to full length."""
    return 20 * len(x) * len(centers)


@pytest.mark.parametrize("part", range(10))
def test_costs_equal_scipys(part, monkeypatch):
    for seed in range(40 * part, 40 * part + 40):
        x, y = draw(seed)
        centers, _, capacity = distinct_rows(y)
        monkeypatch.setattr(transport, "WIDTH", (2, 5, 128)[seed % 3])
        memory = memory_for_lists(x, centers) if seed % 4 < 2 else 6 << 30
        solution = solve_transport(x, centers, capacity, memory=memory)
        assert np.array_equal(np.bincount(solution.column, minlength=len(centers)), capacity)
        assert solution.cost == pytest.approx(least_cost(x, y), rel=1e-9, abs=1e-12), seed
        assert solution.exact, seed
        assert solution.cost - solution.dual == pytest.approx(solution.gap, abs=1e-9 * (1 + solution.cost))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3).flatmap(lambda d: st.lists(st.tuples(*[st.tuples(*[st.integers(-2, 2)] * d)] * 2), min_size=1, max_size=14))
)
def test_any_small_integer_table(pairs):
    x, y = (np.array(side, float) for side in zip(*pairs, strict=True))
    centers, _, capacity = distinct_rows(y)
    solution = solve_transport(x, centers, capacity)
    assert solution.cost == pytest.approx(least_cost(x, y), abs=1e-9)
    assert solution.exact


def test_four_rows_by_hand():
    # 0 and 1 share the centre 0, 5 and 9 the centre 7; 5 is nearer to 7 (4) than to 0 (25), and 9 costs 4: 0 + 1 + 4 + 4.
    solution = solve_transport([[0.0], [1.0], [5.0], [9.0]], [[0.0], [7.0]], [2, 2])
    assert solution.column.tolist() == [0, 0, 1, 1]
    assert solution.cost == 9.0
    # With room for one only at 0, the row 1 must go to 7: 0 + 36 + 4 + 4.
    solution = solve_transport([[0.0], [1.0], [5.0], [9.0]], [[0.0], [7.0]], [1, 3])
    assert solution.column.tolist() == [0, 1, 1, 1]
    assert solution.cost == 44.0
    assert solution.exact


def test_one_centre_takes_all():
    solution = solve_transport([[0.0, 1.0], [2.0, 1.0]], [[1.0, 1.0]], [2])
    assert solution.column.tolist() == [0, 0]
    assert (solution.cost, solution.exact) == (2.0, True)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(3)
    x = rng.poisson(1.0, (700, 20)) * rng.gamma(1.0, 2.0, 20)
    y = x + rng.laplace(0, 2.5, x.shape)
    return x, y, solve_transport(x, y, np.ones(700, int))


def test_lists_give_the_same_optimum_as_the_matrix(noisy, monkeypatch):
    x, y, on_matrix = noisy
    monkeypatch.setattr(transport, "WIDTH", 16)
    on_lists = solve_transport(x, y, np.ones(700, int), memory=1_000_000)
    assert on_lists.exact
    assert on_matrix.exact
    assert np.array_equal(on_lists.column, on_matrix.column)
    assert on_matrix.cost == pytest.approx(least_cost(x, y), rel=1e-12)


@pytest.mark.parametrize("memory", [1_000_000, 6 << 30])
def test_result_does_not_depend_on_threads(noisy, memory):
    x, y, _ = noisy
    one, three = (solve_transport(x, y, np.ones(700, int), memory=memory, threads=t) for t in (1, 3))
    assert np.array_equal(one.column, three.column)
    assert np.array_equal(one.price, three.price)


def test_certificate_accepts_the_optimum_and_nothing_else(noisy):
    x, y, solution = noisy
    ones = np.ones(700, int)
    gap, rounding = certify(x, y, ones, solution.column, solution.price)
    assert gap <= 4 * rounding
    assert gap <= 1e-9 * solution.cost

    swapped = solution.column.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    worse = float(((x - y[swapped]) ** 2).sum()) - solution.cost
    gap, _ = certify(x, y, ones, swapped, solution.price)
    assert gap >= 0.999 * worse > 0  # a wrong assignment cannot hide its excess

    tampered = solution.price.copy()
    tampered[0] -= 1000.0
    gap, rounding = certify(x, y, ones, solution.column, tampered)
    assert gap > 1.0 > rounding

    gap, _ = certify(x, y, ones, solution.column, np.zeros(700))
    assert gap > 1.0


def test_out_of_time_still_gives_a_complete_assignment_and_an_honest_gap(noisy):
    x, y, optimal = noisy
    for memory in (1_000_000, 6 << 30):
        solution = solve_transport(x, y, np.ones(700, int), memory=memory, max_seconds=0.0)
        assert np.array_equal(np.sort(solution.column), np.arange(700))
        assert not solution.exact
        assert solution.dual <= optimal.cost <= solution.cost
        assert solution.gap > 0


@pytest.mark.parametrize("part", range(4))
def test_small_problems_have_the_same_optimum_and_certificate(part, monkeypatch):
    """SciPy finds the assignment, so SciPy is no judge here: the prices are, over all pairs."""
    for seed in range(25 * part, 25 * part + 25):
        x, y = draw(seed)
        centers, _, capacity = distinct_rows(y)
        expected = solve_transport(x, centers, capacity)
        column, price = small.solve_small(x, centers, capacity)
        assert np.array_equal(np.bincount(column, minlength=len(centers)), capacity)
        gap, rounding = certify(x, centers, capacity, column, price)
        assert gap <= rounding, seed
        with monkeypatch.context() as patch:
            patch.setattr(small, "ROWS", 1024)
            solution = solve_transport(x, centers, capacity)
        assert solution.exact
        assert solution.cost == pytest.approx(expected.cost, rel=1e-9, abs=1e-12)


def test_a_small_problem_that_is_not_certified_goes_to_the_kernels(monkeypatch):
    x, y = draw(8)
    monkeypatch.setattr(small, "ROWS", 1024)
    monkeypatch.setattr(small, "solve_small", lambda x, y, _: (np.arange(len(x)), np.zeros(len(y))))
    solution = solve_transport(x, y, np.ones(len(x), int))
    assert solution.exact
    assert solution.cost == pytest.approx(least_cost(x, y), rel=1e-9)


def test_far_from_the_origin_the_certificate_still_holds():
    x, y = draw(8)
    x, y = x + 1e6, y + 1e6
    solution = solve_transport(x, y, np.ones(len(x), int))
    assert solution.exact
    assert solution.cost == pytest.approx(least_cost(x, y), rel=1e-6)


def test_distinct_rows_merges_equal_rows_and_both_zeros():
    centers, which, capacity = distinct_rows([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])
    assert capacity.tolist() == [2, 1] or capacity.tolist() == [1, 2]
    assert centers[which].tolist() == [[0.0, 1.0], [0.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("rows", "centers", "capacity", "message"),
    [
        ([[0.0]], [[0.0, 1.0]], [1], "equally many columns, not 1 and 2"),
        ([[0.0], [1.0]], [[0.0]], [1], "sum to 2"),
        ([[0.0], [1.0]], [[0.0], [1.0]], [2, 0], "positive whole numbers"),
        ([[np.nan]], [[0.0]], [1], "finite"),
        ([0.0], [[0.0]], [1], "shape"),
    ],
)
def test_errors_say_what_is_wrong(rows, centers, capacity, message):
    with pytest.raises(InputError, match=message):
        solve_transport(rows, centers, capacity)


def test_certify_refuses_what_fills_no_capacity():
    with pytest.raises(InputError, match="fill every capacity"):
        certify([[0.0], [1.0]], [[0.0], [1.0]], [1, 1], [0, 0], [0.0, 0.0])


def test_quick_benchmark_runs_and_agrees_with_its_peers(capsys, monkeypatch):
    monkeypatch.delenv("OMOKAGE_DATA", raising=False)
    script = Path(__file__).parents[1] / "benchmarks" / "assignment.py"
    runpy.run_path(str(script))["main"](["--quick"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "scipy" in line]
    assert len(lines) == 6
    assert all("exact" in line for line in lines)
    for line in lines:
        assert all(abs(float(excess)) < 1e-6 for excess in re.findall(r"excess ([^)]+)\)", line))
