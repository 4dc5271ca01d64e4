"""Unifiers by hand: four and five rows whose answers are written down."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from omokage.errors import InputError, TableError
from omokage.method import UNIFIERS as OF_GROUPS
from omokage.method import unify
from omokage.method.unify import Mean, Spread
from omokage.tables.table import KINDS, kind_of
from omokage.tables.unify import DEFAULT_UNIFIER, UNIFIERS, Classes, check_unifier, common_prefix, unify_column

LABELS = np.array([0, 0, 1, 1, 1])


def unified(values, how, kind=None, labels=LABELS, persons=None, hide=None):
    column = pl.Series("c", values)
    return unify_column(column, kind or kind_of(column), how, Classes(labels, persons, hide)).to_list()


@pytest.mark.parametrize(
    ("values", "how", "answer"),
    [
        ([22, 26, 31, 39, 35], "mean", [24, 35]),
        ([22, 25, 31, 39, 36], "mean", [23.5, 106 / 3]),
        ([22, None, None, None, None], "mean", [22, None]),
        ([1, 2, 1, 9, 2], "median", [1.5, 2.0]),
        (["a", "b", "b", "c", "b"], "mode", ["a", "b"]),
        ([None, "b", None, None, None], "mode", ["b", None]),
        (["0123", "0125", "1220", "1221", "1229"], "prefix", ["012*", "122*"]),
        (["0123", "0123", "12", "1", None], "prefix", ["0123", "*"]),
        ([123, 129, 5, 5, 5], "prefix", ["12*", "5"]),
        ([22, 26, 31, 31, 31], "range", ["[22, 26]", "31"]),
        ([0.5, 0.25, None, None, None], "range", ["[0.25, 0.5]", None]),
        (["b", "a", "c", "c", None], "set", ["{a, b}", "c"]),
        (["F", "M", "M", "M", "M"], "suppress", ["*", "M"]),
        (["F", None, None, None, None], "suppress", ["*", None]),
        ([True, False, True, True, True], "suppress", ["*", "true"]),
        ([date(2020, 1, 1), date(2020, 1, 3), date(2021, 5, 5)] + [None] * 2, "mean", [date(2020, 1, 2), date(2021, 5, 5)]),
        ([date(2020, 1, 1), date(2020, 1, 3)] + [date(2021, 5, 5)] * 3, "range", ["[2020-01-01, 2020-01-03]", "2021-05-05"]),
        ([True, False, True, True, True], "mean", [0.5, 1.0]),
    ],
)
def test_by_hand(values, how, answer):
    assert unified(values, how) == answer


def test_whole_numbers_stay_whole_only_if_all_means_are():
    whole = unify_column(pl.Series("c", [1, 3, 2, 2, 2]), "number", "mean", Classes(LABELS))
    assert whole.dtype == pl.Int64
    assert unify_column(pl.Series("c", [1, 2, 2, 2, 2]), "number", "mean", Classes(LABELS)).dtype == pl.Float64


def test_a_person_with_many_rows_counts_once():
    # person A has two rows of 10, person B one row of 40
    weights = np.array([0.5, 0.5, 1.0])
    assert unified([10, 10, 40], "mean", labels=np.zeros(3, dtype=np.int64), persons=np.array([0, 0, 1])) == [25]
    z = np.array([[10.0], [10.0], [40.0]])
    assert Mean().unify(z, np.zeros(3, dtype=np.int64), weights).tolist() == [[25.0]]


def test_spread_gives_the_columns_their_deviation_back():
    rng = np.random.default_rng(0)
    z, labels = rng.normal(3.0, 2.0, size=(400, 3)), np.sort(np.arange(400) % 40)
    z[:, 1] += labels  # one column that averaging hardly shrinks
    plain, spread = Mean().unify(z, labels)[labels], Spread().unify(z, labels)[labels]
    assert (plain.std(axis=0) < z.std(axis=0)).all()
    np.testing.assert_allclose(spread[:, 1].std(), z[:, 1].std(), rtol=1e-6)
    assert (spread.std(axis=0) / plain.std(axis=0)).max() <= 3.0 + 1e-9
    np.testing.assert_allclose(spread.mean(axis=0), z.mean(axis=0))
    constant = np.ones((4, 1))
    assert (Spread().unify(constant, np.array([0, 0, 1, 1])) == 1.0).all()


@pytest.mark.parametrize("name", ["mean", "median"])
def test_matrix_unifiers_agree_with_numpy(name):
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(50, 4)).astype(np.float32), np.repeat(np.arange(5), 10)
    rng.shuffle(labels)
    out = OF_GROUPS[name]().unify(z, labels)
    expected = [getattr(np, name)(z[labels == g], axis=0) for g in range(5)]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert out.dtype == z.dtype


@pytest.mark.parametrize("name", OF_GROUPS)
def test_every_group_becomes_one_row_of_its_own_type(name):
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(60, 3)), rng.permutation(np.arange(60) % 7)
    made = OF_GROUPS.make(name)
    for given in (z, z.astype(np.float32)):
        out = made.unify(given, labels)
        assert out.shape == (7, 3)
        assert out.dtype == given.dtype
        assert np.isfinite(out).all()
    order = rng.permutation(60)
    np.testing.assert_allclose(made.unify(z[order], labels[order]), made.unify(z, labels))  # the order of rows tells nothing


def test_every_public_unifier_is_listed():
    public = {made for name, made in vars(unify).items() if isinstance(made, type) and hasattr(made, "unify")}
    assert public == set(OF_GROUPS.values())


def test_every_kind_has_a_default_that_fits():
    assert set(DEFAULT_UNIFIER) == set(KINDS)
    for kind, how in DEFAULT_UNIFIER.items():
        assert kind in UNIFIERS[how].kinds


def test_wrong_unifiers_are_named():
    with pytest.raises(InputError, match="there is no unifier 'average'"):
        check_unifier("age", "number", "average")
    with pytest.raises(TableError, match=r"'name' is a category and cannot be unified by mean: use mode, prefix"):
        check_unifier("name", "category", "mean")


def test_common_prefix_of_nothing_in_common():
    assert common_prefix(["abc", "xyz"]) == "***"
    assert common_prefix(["", "x"]) == "*"
