"""Values that fewer than k persons have: attacked by name, and shown for any table to stay hidden."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omokage import Anonymizer, Mondrian, Roles, verify
from omokage.errors import InputError
from omokage.method.unify import Median
from omokage.tables.table import as_table, kind_of
from omokage.tables.unify import UNIFIERS, Classes, unify_column
from omokage.tables.unify.rounding import HIDDEN, real_levels

NOTE = "I was ill in 1987 and nobody but me wrote this ({})"


def visits(n=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "note": [NOTE.format(i) for i in range(n)],
            "income": rng.integers(20_000, 90_000, n),
            "born": [date(1950, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 20_000, n)],
            "ward": rng.choice(["north", "south"], n),
        }
    )


ROLES = Roles(quasi=["age", "note", "income", "born"], keep=["ward"])


@pytest.mark.parametrize("way", ["mode", "set", "range"])
def test_one_persons_text_is_not_published(way, tmp_path):
    """The attack: every class published somebody's whole note, certified without a word."""
    release = Anonymizer(Mondrian(4), random_state=0).release(visits(), roles=ROLES, unify={"note": way})
    out = release.write(tmp_path / "out")
    assert "nobody but me" not in (out / "data.csv").read_text()
    assert set(release.data["note"]) == {"*"}
    groups = release.key.groups.max() + 1
    assert [note for note in release.certificate.notes if note.startswith(f"Column note: in {groups} of {groups} classes")]
    assert "nobody but me" not in (out / "CERTIFICATE.md").read_text()
    assert verify(out).passed


def test_the_user_can_show_rare_values_and_the_certificate_says_so(run, tmp_path):
    visits().write_csv(tmp_path / "t.csv")
    common = ("table", tmp_path / "t.csv", "--k", 4, "--quasi", "age,note", "--rest", "drop", "--unify", "note=mode")
    assert run(*common, "-o", tmp_path / "hidden").code == 0
    shown = run(*common, "-o", tmp_path / "shown", "--rare", "show")
    assert shown.code == 0, shown.err
    assert "nobody but me" in (tmp_path / "shown" / "data.csv").read_text()
    assert "nobody but me" not in (tmp_path / "hidden" / "data.csv").read_text()
    assert (
        "a value shows that fewer than 4 rows have, as --rare show allows" in (tmp_path / "shown" / "CERTIFICATE.md").read_text()
    )
    with pytest.raises(InputError, match="rare can be hide, show, not 'maybe'"):
        Anonymizer(Mondrian(2)).release(visits(), roles=ROLES, rare="maybe")


def test_persons_are_counted_and_not_their_rows():
    """One patient who writes the same note at ten visits is still one patient."""
    frame = pl.DataFrame(
        {
            "who": ["p0"] * 10 + [f"p{i}" for i in range(1, 11)],
            "age": range(20),
            "note": ["only p0"] * 10 + ["all others"] * 10,
        }
    )
    roles = Roles(quasi=["age", "note"], person="who")
    release = Anonymizer(Mondrian(3), random_state=0).release(frame, roles=roles, unify={"note": "mode"})
    assert "only p0" not in set(release.data["note"])
    assert "only p0" in set(Anonymizer(Mondrian(3)).release(frame.drop("who"), unify={"note": "mode"}).data["note"])


# ---------------------------------------------------------------------- by hand

ONE = np.zeros(6, dtype=np.int64)


def unified(values, how, k, labels=ONE, persons=None, kind=None):
    column = pl.Series("c", values)
    return unify_column(column, kind or kind_of(column), how, Classes(np.asarray(labels), persons, k)).to_list()


def days(text):
    return [date.fromisoformat(day) for day in text.split()]


@pytest.mark.parametrize(
    ("values", "how", "k", "answer"),
    [
        # two are 30, and 35 is shown as 35 with 34, which both round up to it
        ([30, 30, 31, 33, 34, 35], "range", 2, ["[30, 35]"]),
        ([31, 32, 33, 34, 36, 38], "range", 3, ["[30, 40]"]),
        ([31, 32, 33, 34, 36, 1000], "range", 3, ["[30, *]"]),  # the extreme end is left open
        ([-5, 3, 3, 4, 4, 4], "range", 2, ["[*, 4]"]),
        ([0.31, 0.32, 0.33, 0.34, 0.36, 0.38], "range", 3, ["[0.3, 0.4]"]),
        ([7, 7, 7, 7, 7, 7], "range", 6, [7]),
        ([7, None, None, None, None, None], "range", 2, ["*"]),
        (["a", "b", "b", "c", "c", "d"], "range", 2, ["*"]),
        (["a", "a", "b", "c", "d", "d"], "range", 2, ["[a, d]"]),
        (["a", "b", "b", "c", "c", "d"], "set", 2, ["{*, b, c}"]),
        (["a", "b", "c", "d", "e", "f"], "set", 2, ["*"]),
        ([1, 1, 2, 2, 40, 1000], "set", 2, ["{1, 2}"]),
        ([10, 10, 11, 20, 20, 21], "set", 2, ["{10, 20}"]),
        (["0123", "0124", "0125", "9000", "9000", "7000"], "set", 2, ["{*, 012*, 9000}"]),
        (["a", "a", "b", "b", "b", "c"], "mode", 3, ["b"]),
        (["a", "a", "b", "c", "d", "e"], "mode", 3, ["*"]),
        (["0123", "0124", "0125", "9000", "9000", "7000"], "mode", 3, ["012*"]),
        ([True, False, False, False, False, False], "set", 2, ["{*, false}"]),
        ([1, 2, 3, 40, 50, 60], "median", 7, [(3 + 40) / 2]),
        ([9, 1, 2, 4, 4, None], "median", 3, [3 + 1 / 3]),  # of 1, 2, 4, 4, 9: four is what two have, so 2, 4 and 4
        ([9, 1, 4, 4, 4, None], "median", 3, [4]),
        ([8, None, None, None, None, 9], "mean", 3, [None]),
        (days("2020-01-05 2020-01-09 2020-01-20 2021-03-01 2021-03-02 2021-03-03"), "range", 3, ["[2020-01-01, 2021-03-31]"]),
        (days("2020-01-05 2020-02-09 2020-03-20 1990-03-01 1993-03-02 1999-03-03"), "range", 3, ["[1990-01-01, 2020-12-31]"]),
        (days("2020-01-05 2020-02-09 2020-03-20 1990-03-01 1993-03-02 1999-03-03"), "set", 3, ["{1990-01-01, 2020-01-01}"]),
        ([datetime(2020, 1, 5, 10, m) for m in (1, 2, 3, 4, 5, 6)], "range", 3, ["[2020-01-05 10:00:00, 2020-01-05 11:00:00]"]),
    ],
)  # fmt: skip
def test_by_hand(values, how, k, answer):
    found = unified(values, how, k)
    assert found == [str(a) if how in ("range", "set") else a for a in answer]


def test_few_values_in_a_group_are_averaged_only_rounded():
    """Where the others' values are missing, the mean of a group is one person's own number."""
    labels = [0] * 6 + [1] * 6
    values = [5317, *[None] * 5, 5301, 5302, 5303, 5304, 5305, 5306]
    assert unified(values, "mean", None, labels) == [5317, 5303.5]
    assert unified(values, "mean", 3, labels) == [5305, 5303.5]  # as what 5304, 5305 and 5306 are shown as
    assert unified(values, "median", 3, labels)[0] == 5305


def test_the_median_of_an_array_is_no_members_value():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    for rare, alike in (("hide", 0), ("show", 90 * 3)):
        release = Anonymizer(Mondrian(5, n_jobs=1), unifier="median", random_state=0).release(x, rare=rare)
        sizes = np.bincount(release.key.groups)
        own = sum(np.isin(release.data[:, j], x[:, j]).sum() for j in range(3))
        assert own == alike if (sizes % 2).all() else own <= alike


def test_the_median_by_one_persons_rows_is_widened():
    z = np.array([[1.0], [4.0], [5.0], [6.0], [20.0], [30.0]])
    persons = np.array([0, 1, 1, 1, 2, 3])
    assert Median(hide=2, persons=persons).unify(z, np.zeros(6, dtype=np.int64)).tolist() == [[(4 + 5 + 6 + 20) / 4]]


def test_extreme_values_are_noted():
    frame = pl.DataFrame({"income": [*range(30_000, 30_059), 10**9], "ward": ["x"] * 60})
    release = Anonymizer(Mondrian(5), random_state=0).release(frame)
    assert any(n.startswith("Column income: in 1 of") and "tells of one person" in n for n in release.certificate.notes)
    quiet = Anonymizer(Mondrian(5), random_state=0).release(frame.with_columns(income=pl.Series(range(60))))
    assert not [n for n in quiet.certificate.notes if "tells of one person" in n]
    open_end = Anonymizer(Mondrian(5), random_state=0).release(frame, unify={"income": "range"})
    assert not [cell for cell in open_end.data["income"] if "1000000000" in cell]
    assert [cell for cell in open_end.data["income"] if cell.endswith(", *]")]


# ---------------------------------------------------------------------- for any table

TEXTS = ["flu", "cold", "a secret", "another secret", "x, y", "north", "", "é"]


@st.composite
def columns(draw):
    """A column of any kind, groups of at least k persons, and whose row each is."""
    k = draw(st.integers(2, 4))
    groups = draw(st.integers(1, 5))
    rows = [draw(st.integers(1, 3)) for _ in range(groups * k)]  # of each person
    persons = np.repeat(np.arange(groups * k), rows)
    labels = persons // k
    several = draw(st.booleans())
    if not several:
        labels, persons = np.arange(groups * k) // k, np.arange(groups * k)
    cell = draw(
        st.sampled_from([
            st.sampled_from(TEXTS),
            st.integers(-20, 20),
            st.integers(-(2**62), 2**62),
            st.floats(-1e3, 1e3, width=32),
            st.floats(-1e12, 1e12),
            st.dates(date(1900, 1, 1), date(2030, 1, 1)),
            st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1)),
            st.integers(0, 9999).map(lambda i: f"{i:04d}"),
            st.booleans(),
        ])
    )  # fmt: skip
    n = len(labels)
    values = pl.Series("c", draw(st.lists(st.none() | cell, min_size=n, max_size=n)))
    return values, labels, (persons if several else None), k


def having(column, value, persons):
    """How many persons have a value."""
    rows = np.flatnonzero((column == value).fill_null(False).to_numpy())
    return len(rows) if persons is None else len(np.unique(persons[rows]))


@given(columns(), st.sampled_from(sorted(UNIFIERS)))
def test_no_text_that_fewer_than_k_persons_have_shows(table, how):
    column, labels, persons, k = table
    kind = kind_of(column)
    if kind not in ("category", "code") or kind not in UNIFIERS[how].kinds:
        return
    cells = unify_column(column, kind, how, Classes(labels, persons, k)).drop_nulls().to_list()
    common = {v for v in column.drop_nulls().unique() if having(column, v, persons) >= k}
    for cell in cells:
        inner = cell[1:-1] if cell[:1] in ("{", "[") else cell
        for part in common | {HIDDEN}:  # what may show, longest first, so that "flu" in "influenza" is not taken out
            inner = inner.replace(part, "") if part else inner
        for value in set(column.drop_nulls()) - common:
            assert not value or value not in inner, (cell, value)


@given(columns())
def test_ranges_contain_their_members_and_their_ends_are_shared(table):
    column, labels, persons, k = table
    kind = kind_of(column)
    cells = unify_column(column, kind, "range", Classes(labels, persons, k)).to_list()
    everybody = np.arange(len(labels)) if persons is None else persons
    ends = [set(), set()]
    for group, cell in enumerate(cells):
        members = [v for v in column.filter(pl.Series(labels == group)).to_list() if v is not None]
        if cell is None or cell == HIDDEN:
            assert bool(members) == (cell == HIDDEN)
            continue
        low, high = ends_of(cell, members, kind)
        assert all((low is None or low <= m) and (high is None or m <= high) for m in members), (cell, members)
        ends[0].add(low)
        ends[1].add(high)
    if kind not in ("number", "date"):
        return
    for way, bounds in (("down", ends[0]), ("up", ends[1])):  # whoever is rounded alike is shown alike: k persons for each end
        shown = unify_column(
            column, kind, "range", Classes(np.arange(len(column)), everybody, k)
        ).to_list()  # each row alone: what its own value is shown as
        own = [
            None if c is None or c == HIDDEN else ends_of(c, [v], kind)[way == "up"] for c, v in zip(shown, column, strict=True)
        ]
        for bound in bounds - {None}:
            assert len({p for p, o in zip(everybody, own, strict=True) if o == bound}) >= k, (bound, way)


def ends_of(cell, members, kind):
    """The ends of a released range as values; None where it is open."""
    if kind in ("category", "code"):
        texts = [*TEXTS, HIDDEN]
        ends = next(((a, b) for a in texts for b in texts if f"[{a}, {b}]" == cell), (cell, cell))
        return tuple(None if end == HIDDEN or kind == "code" else end for end in ends)
    low, high = cell[1:-1].split(", ") if cell.startswith("[") else (cell, cell)
    if kind == "number":
        read = int if isinstance(members[0], int) else float
    elif kind == "date":
        read = datetime.fromisoformat if isinstance(members[0], datetime) else date.fromisoformat
    else:
        read = {"true": True, "false": False}.get
    return tuple(None if end == HIDDEN else read(end) for end in (low, high))


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(-999, 999).map(lambda i: i / 100), min_size=1, max_size=50))
def test_ends_are_rounded_outward_to_the_last_bit(values):
    x = np.array(values)
    for way in ("down", "up"):
        for level in real_levels(float(np.abs(x).max()), 1e7, way):
            assert (level(x) <= x).all() if way == "down" else (level(x) >= x).all()


@given(columns(), st.sampled_from(["set", "mode"]))
def test_numbers_and_dates_show_only_what_k_persons_are_shown_as(table, how):
    column, labels, persons, k = table
    kind = kind_of(column)
    if kind not in ("number", "date"):
        return
    everybody = np.arange(len(labels)) if persons is None else persons
    own = unify_column(column, kind, how, Classes(np.arange(len(column)), everybody, k)).cast(pl.String).to_list()
    for cell in unify_column(column, kind, how, Classes(labels, persons, k)).cast(pl.String).drop_nulls().to_list():
        for part in cell.strip("{}").split(", "):
            assert part == HIDDEN or len({p for p, o in zip(everybody, own, strict=True) if o == part}) >= k


def test_any_release_counts_k_after_hiding(tmp_path):
    frame = visits(80)
    for how in ("mode", "set", "range", "median"):
        unify = dict.fromkeys(("age", "income", "born"), how)
        release = Anonymizer(Mondrian(4), random_state=0).release(as_table(frame), roles=ROLES, unify=unify)
        assert release.certificate.found.k >= 4
        assert verify(release.write(tmp_path / how)).passed


@pytest.mark.parametrize("rare", ["hide", "show"])
def test_the_certificate_says_whether_rare_values_show(rare):
    release = Anonymizer(Mondrian(2)).release(visits(), roles=ROLES, rare=rare)
    assert release.certificate.method.rare == rare
    assert f"values of fewer than k people: {'hidden' if rare == 'hide' else 'shown'}" in release.certificate.method.lines()
