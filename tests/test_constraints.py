"""l-diversity, t-closeness and persons: tiny tables by hand, and properties."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omokage import Anonymizer, Cells, LDiversity, Mondrian, Roles, TCloseness
from omokage.errors import InputError, NotEnoughPeople
from omokage.method.constraints import merge_until
from omokage.release.rules import Sensitive, found

LABELS = np.array([0, 0, 1, 1, 2, 2])
Z = np.array([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]])


def sensitive(codes, ordered=False):
    return Sensitive("s", np.array(codes), ordered)


def test_the_failing_group_joins_its_nearest():
    column = sensitive([0, 1, 2, 2, 0, 1])  # the middle group has one value
    assert merge_until(LABELS, Z, [column], [LDiversity(2)]).tolist() == [0, 0, 0, 0, 1, 1]


def test_a_merged_group_is_looked_at_again():
    column = sensitive([0, 0, 0, 0, 1, 2])
    assert merge_until(LABELS, Z, [column], [LDiversity(2)]).tolist() == [0] * 6


def test_what_no_merging_can_reach_is_an_error():
    with pytest.raises(NotEnoughPeople, match="distinct l-diversity of 3 cannot be reached even with all rows"):
        merge_until(LABELS, Z, [sensitive([0, 1, 0, 1, 0, 1])], [LDiversity(3)])


def test_by_hand():
    column = sensitive([0, 1, 0, 0, 1, 1])
    assert found(LDiversity(2), column, LABELS) == 1.0
    assert found(TCloseness(0.1), column, LABELS) == 0.5
    # ages 1, 2, 3: all mass of group {1, 1} must move 1/2 + 1/2 · … by hand: |1 − 1/3| + |1 − 2/3| over 2 steps = 1/2
    ages = sensitive([0, 0, 1, 1, 2, 2], ordered=True)
    assert found(TCloseness(0.1), ages, LABELS) == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert found(LDiversity(2, "entropy"), sensitive([0, 1, 0, 1, 0, 1]), LABELS) == pytest.approx(2.0)


@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=40),
    st.sampled_from([LDiversity(2), LDiversity(1.5, "entropy"), TCloseness(0.3), TCloseness(0.0)]),
)
def test_after_merging_the_constraint_holds(codes, constraint):
    if len(set(codes)) < 2:
        codes = [0, 1, *codes]
    codes = [sorted(set(codes)).index(c) for c in codes]  # ranks
    z = np.arange(len(codes), dtype=float)[:, None]
    labels = Mondrian(2).fit_predict(z)
    column = sensitive(codes, ordered=True)
    try:
        merged = merge_until(labels, z, [column], [constraint])
    except NotEnoughPeople:
        whole = constraint.measure(column.codes, np.bincount(column.codes) / len(codes), True)
        assert not constraint.holds(whole)
        return
    assert constraint.holds(found(constraint, column, merged))
    assert np.bincount(merged).min() >= 2


@pytest.mark.parametrize("bad", [lambda: LDiversity(1), lambda: LDiversity(2, "recursive"), lambda: TCloseness(1.0)])
def test_parameters_are_checked(bad):
    with pytest.raises(InputError):
        bad()


def test_constraints_need_a_sensitive_column():
    frame = pl.DataFrame({"a": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="need a sensitive column"):
        Anonymizer(Mondrian(2), constraints=[LDiversity(2)]).release(frame)


@given(st.lists(st.integers(0, 12), min_size=14, max_size=60), st.integers(2, 5))
def test_k_counts_persons_and_keeps_their_rows_together(persons, k):
    frame = pl.DataFrame({"who": [f"p{p}" for p in persons], "a": np.arange(len(persons)) % 7, "b": persons})
    anonymizer = Anonymizer(Cells(k, n_jobs=1), random_state=0)
    people = len(set(persons))
    if people < k:
        with pytest.raises(NotEnoughPeople, match=f"at least {k} persons, but there are {people}"):
            anonymizer.release(frame, roles=Roles(quasi=["a", "b"], person="who"))
        return
    release = anonymizer.release(frame, roles=Roles(quasi=["a", "b"], person="who"))
    assert release.data.columns == ["a", "b"]
    for p in set(persons):
        assert len(set(release.key.groups[np.array(persons) == p])) == 1
    for g in set(release.key.groups.tolist()):
        assert len(set(np.array(persons)[release.key.groups == g])) >= k
    assert release.certificate.found.k >= k
    assert release.certificate.found.persons == people


def test_persons_of_an_array():
    x = np.array([[0.0], [0.2], [5.0], [5.2], [0.1], [9.0]])
    release = Anonymizer(Mondrian(2), random_state=0).release(x, person=["a", "a", "b", "b", "c", "d"])
    assert release.certificate.counted == "persons"
    assert release.certificate.found.k == 2
    with pytest.raises(InputError, match="one person for each of the 6 rows"):
        Anonymizer(Mondrian(2)).release(x, person=["a"])


def test_a_row_of_nobody_is_refused():
    frame = pl.DataFrame({"who": ["a", None, "b"], "v": [1, 2, 3]})
    with pytest.raises(InputError, match="1 rows name nobody"):
        Anonymizer(Mondrian(2)).release(frame, roles=Roles(quasi=["v"], person="who"))
