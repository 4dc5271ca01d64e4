"""Evaluation: hand-computed releases of a few rows, baselines, and that a figure moves when the danger does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from omokage import Anonymizer, Cells, Laplace, Mondrian, Roles
from omokage.errors import InputError, OutputError, VerificationError
from omokage.evaluate import MODELS, disclosure, drift, evaluate, hold_out, link, link_files, reidentify, utility
from omokage.evaluate.comparison import Setting, compare, settings_of
from omokage.evaluate.disclosure import membership_risk
from omokage.evaluate.linked import Linked, compatible
from omokage.evaluate.reidentification import nearest_rows
from omokage.method.maps import PCA, parse_map

FOUR = np.array([[0.0], [1.0], [10.0], [11.0]])


def four(released, row_of=(0, 1, 2, 3), k=2):
    """Four originals 0, 1, 10, 11 and a release given by hand."""
    certificate = Anonymizer(Mondrian(k)).release(FOUR).certificate
    return Linked(FOUR, np.array(released, dtype=float)[:, None], np.array(row_of), certificate)


def test_four_rows_by_hand():
    # two groups, each guessed right, each choice within a group a coin's: 4 · 1/2 / 4
    result = reidentify(four([0.5, 0.5, 10.5, 10.5]))
    assert result.rate == 0.5
    assert result.bound == 0.5
    assert result.baseline == 0.25
    assert result.exact
    # one group: 1/4
    assert reidentify(four([5.5] * 4)).rate == 0.25
    # all different and close: everybody is found
    assert reidentify(four([0.1, 1.1, 10.1, 11.1])).rate == 1.0
    # 0 and 1 exchanged by the noise: only the far two are found
    assert reidentify(four([1.0, 0.0, 10.1, 11.1])).rate == 0.5


def test_assignment_finds_what_nearest_does_not():
    # released 0.9, 1.0: both are nearest to original 1, but only one can be its own
    both = four([0.9, 1.0, 10.0, 11.0])
    assert reidentify(both, matching="nearest").rate == pytest.approx(0.75 if nearest_rows(FOUR, both.y)[0] != 0 else 1.0)
    assert reidentify(both).rate == 1.0


def test_the_key_decides_what_is_right():
    assert reidentify(four([0.1, 1.1, 10.1, 11.1], row_of=(1, 0, 2, 3))).rate == 0.5


def test_rates_stay_below_one_over_k():
    x = np.random.default_rng(0).normal(size=(600, 5))
    for k in (2, 5, 20):
        release = Anonymizer(Cells(k), random_state=0).release(x)
        for attack in ("assignment", "nearest"):
            result = reidentify(link(x, release), matching=attack)
            assert result.rate <= 1 / k + 1e-12
            assert result.interval[0] <= result.rate <= result.interval[1]


def test_sampling_takes_whole_classes():
    x = np.random.default_rng(0).normal(size=(600, 5))
    release = Anonymizer(Cells(5), random_state=0).release(x)
    result = reidentify(link(x, release), sample=100)
    assert result.sampled
    assert 100 <= result.rows < 115
    assert result.rate <= 1 / 5


def test_noise_is_attacked_too():
    x = np.random.default_rng(0).normal(size=(300, 5))
    little, much = (Anonymizer(noise=Laplace(s, random_state=0)).release(x) for s in (0.001, 10.0))
    assert reidentify(link(x, little)).rate == 1.0
    assert reidentify(link(x, much)).rate < 0.1
    assert reidentify(link(x, much)).bound is None


def test_wrong_pairs():
    release = Anonymizer(Mondrian(2)).release(FOUR)
    with pytest.raises(InputError, match="give the data that the release was made from"):
        link(FOUR[:3], release)
    with pytest.raises(InputError, match="choose assignment or nearest"):
        reidentify(link(FOUR, release), matching="guess")


@pytest.mark.parametrize(
    ("cell", "value", "how", "answer"),
    [
        ("*", "M", "suppress", True),
        ("M", "F", "suppress", False),
        ("012*", "0129", "prefix", True),
        ("012*", "0139", "prefix", False),
        ("[2, 10]", "9", "range", True),
        ("[2, 10]", "11", "range", False),
        ("[b, d]", "c", "range", True),
        ("{a, b}", "b", "set", True),
        (None, "x", "mode", False),
        ("x", None, "mode", True),
    ],
)
def test_what_a_cell_may_stand_for(cell, value, how, answer):
    assert compatible(cell, value, how) is answer


def mixed(n=80):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {"age": rng.integers(18, 90, n), "zip": [f"0{z}" for z in rng.integers(100, 400, n)], "sex": rng.choice(["F", "M"], n)}
    ).with_columns(ill=pl.Series(rng.choice(["flu", "cold"], n)))


def test_mixed_tables_are_linked_by_what_cells_may_stand_for(tmp_path):
    frame = mixed()
    roles = Roles(quasi=["age", "zip", "sex"], sensitive=["ill"])
    release = Anonymizer(Mondrian(4), random_state=0).release(frame, roles=roles, unify={"age": "range"})
    both = link(frame, release)
    assert both.x.shape == both.y.shape
    assert 1 / 80 < reidentify(both).rate <= 1 / 4
    frame.write_csv(tmp_path / "t.csv")
    from omokage import read_table

    written = Anonymizer(Mondrian(4), random_state=0).release(read_table(tmp_path / "t.csv"), roles=roles, unify={"age": "range"})
    written.write(tmp_path / "out", key=tmp_path / "key.json")
    again = link_files(tmp_path / "t.csv", tmp_path / "out", tmp_path / "key.json")
    np.testing.assert_allclose(again.aligned, both.aligned)


def test_files_that_do_not_belong_together(tmp_path):
    mixed().write_csv(tmp_path / "t.csv")
    mixed().reverse().write_csv(tmp_path / "other.csv")
    from omokage import read_table

    roles = Roles(quasi=["age", "zip", "sex"], sensitive=["ill"])
    release = Anonymizer(Mondrian(4)).release(read_table(tmp_path / "t.csv"), roles=roles)
    release.write(tmp_path / "out", key=tmp_path / "key.json")
    with pytest.raises(InputError, match="not the table that the release was made from"):
        link_files(tmp_path / "other.csv", tmp_path / "out", tmp_path / "key.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be read as a key"):
        link_files(tmp_path / "t.csv", tmp_path / "out", tmp_path / "bad.json")
    data = tmp_path / "out" / "data.csv"
    data.write_text(data.read_text().replace("flu", "fly", 1))
    with pytest.raises(VerificationError, match="does not keep its promise"):
        link_files(tmp_path / "t.csv", tmp_path / "out", tmp_path / "key.json")


# ---------------------------------------------------------------------- disclosure and drift


def table_by_hand(values, groups):
    """A release of one column whose groups and sensitive values are written down."""
    frame = pl.DataFrame({"a": [float(g) for g in groups], "s": values})
    release = Anonymizer(Mondrian(2, cut="multiple")).release(frame, roles=Roles(quasi=["a"], sensitive=["s"]))
    return link(frame, release)


def test_disclosure_by_hand():
    both = table_by_hand(["x", "x", "x", "y", "z", "y"], [0, 0, 5, 5, 9, 9])
    found = disclosure(both).sensitive[0]
    assert found.distinct_l == 1.0
    assert found.given_away == pytest.approx(1 / 3)  # the group of two x
    assert found.inference.baseline == 0.5  # x, three times of six
    assert found.inference.rate == pytest.approx(4 / 6)  # both x, and one of each other pair
    assert disclosure(both).sizes == {2: 3}


def test_singling_out_needs_a_column_as_it_is():
    frame = pl.DataFrame({"a": [0.0, 0.0, 5.0, 5.0], "kept": ["p", "q", "r", "r"]})
    release = Anonymizer(Mondrian(2)).release(frame, roles=Roles(quasi=["a"], keep=["kept"]))
    risk = disclosure(link(frame, release)).singling_out
    assert risk.rate == pytest.approx(2 / 3)  # (0, p) and (0, q) of three predicates
    assert risk.baseline == pytest.approx(2 / 3)
    assert risk.gained == 0.0


def test_membership_is_told_where_records_are_released_and_not_where_groups_are_large():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=(400, 8)), rng.normal(size=(400, 8))
    assert membership_risk(inside, outside, inside).rate > 0.95
    release = Anonymizer(Cells(50), random_state=0).release(inside)
    risk = membership_risk(inside, outside, np.unique(release.data, axis=0))
    assert 0.4 < risk.rate < 0.65
    assert risk.baseline == 0.5


def test_drift_by_hand():
    result = drift(four([0.5, 0.5, 10.5, 10.5]))
    assert result.loss == pytest.approx(1.0 / 101.0)
    assert result.mean_shift == (0.0,)
    assert result.deviation_ratio[0] == pytest.approx(np.sqrt(100 / 101))


# ---------------------------------------------------------------------- utility


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    return x, np.where(x[:, 0] + 0.2 * rng.normal(size=400) > 0, "yes", "no")


@pytest.mark.parametrize("model", MODELS)
def test_utility_falls_with_k(labelled, model):
    x, y = labelled
    train, test = hold_out(y)
    good, bad = (
        utility(
            link(x[train], Anonymizer(Cells(k), random_state=0).release(x[train])),
            target=y[train],
            held_out=(x[test], y[test]),
            model=model,
        )
        for k in (2, 160)
    )
    assert good.original["accuracy"].mean > 0.85
    assert good.released["accuracy"].mean > 0.8
    assert bad.released["f"].mean < good.released["f"].mean + 1e-9
    assert good.held_out


def test_utility_of_a_finished_release_and_through_its_map(labelled):
    x, y = labelled
    release = Anonymizer(Cells(5), synthesis_map=PCA(3), random_state=0).release(x)
    both = link(x, release)
    result = utility(both, target=y, model="logistic", splits=3)
    assert not result.held_out
    assert result.through_map is not None
    assert set(result.released) == {"accuracy", "f", "precision", "recall"}
    low, high = result.released["accuracy"].interval
    assert low < result.released["accuracy"].mean < high
    assert all(score.interval[0] >= 0 and score.interval[1] <= 1 for score in result.original.values())
    assert result.ratio.mean == pytest.approx(result.released["f"].mean / result.original["f"].mean, rel=0.05)
    again = utility(both, target=y, model="logistic", splits=3, baseline=result)
    assert again.original == result.original


def test_utility_of_a_number(labelled):
    x, _ = labelled
    both = link(x, Anonymizer(Cells(2), random_state=0).release(x))
    result = utility(both, target=x[:, 0] * 3.0 + x[:, 1], model="logistic", splits=2)
    assert result.task == "regression"
    assert result.original["r2"].mean > 0.99
    assert 0.5 < result.released["r2"].mean < 1.0


def test_utility_refuses_nonsense(labelled):
    x, y = labelled
    both = link(x, Anonymizer(Cells(2), random_state=0).release(x))
    for arguments, words in (
        ({"model": "oracle"}, "no model 'oracle'"),
        ({"splits": 0}, "splits"),
        ({"held_out": (x[:3, :2], y[:3])}, "rows of 4 columns"),
        ({"held_out": (x[:3], y[:2])}, "one target for each"),
    ):
        with pytest.raises(InputError, match=words):
            utility(both, target=y, **arguments)
    with pytest.raises(InputError, match="400 rows"):
        utility(both, target=y[:5])
    with pytest.raises(InputError, match="one value only"):
        utility(both, target=np.zeros(400, dtype=int))


def test_evaluate_checks_the_target():
    frame = mixed()
    release = Anonymizer(Mondrian(4)).release(frame, roles=Roles(["zip"], ["age", "sex"], ["ill"]))
    both = link(frame, release)
    with pytest.raises(InputError, match="was not released unchanged"):
        evaluate(both, target="age")
    result = evaluate(both, target="ill", models=["logistic"], splits=2)
    assert result.utilities[0].model == "logistic"
    assert result.strongest.rate == max(a.rate for a in result.attacks.values())
    assert list(result.missing) == ["both attacks, learned ruler"]  # 80 records are too few to know some of
    name = "nearest record, raw units"
    assert result.to_dict()["attacks"][name]["rate"] == result.attacks[name].rate


def test_standard_units_are_the_stronger_attack_where_units_differ():
    x = np.random.default_rng(0).normal(size=(400, 6)) * np.array([1, 1, 1, 1, 1, 1e4])
    release = Anonymizer(Cells(4), synthesis_map=parse_map("std+pca:5"), random_state=0).release(x)
    assert reidentify(link(x, release), attack="standard").rate > 2 * reidentify(link(x, release)).rate


# ---------------------------------------------------------------------- comparing settings


def test_compare_resumes_and_replaces_nothing_foreign(tmp_path, labelled):
    x, y = labelled
    settings = settings_of([5, 20], ["none", "pca:2", "log+pca:2/none"], ["cells"], ["laplace:0.5"])
    assert len(settings) == 8
    keep = tmp_path / "f.jsonl"
    options = {"target": "t", "keep": keep, "model": "logistic", "jobs": 1}
    first = compare(x, y, settings[:2], **options)
    assert len(first.outcomes) == 2
    whole = keep.read_text()
    keep.write_text(whole + "notes of my own")
    with pytest.raises(OutputError, match="holds more than finished settings"):
        compare(x, y, settings, **options)
    assert keep.read_text() == whole + "notes of my own"
    keep.write_text(whole)
    ran = []
    result = compare(x, y, [*settings, Setting("nmf:2", 5)], progress=lambda name, *_: ran.append(name), **options)
    assert len(ran) == 7
    assert settings[0].name not in ran
    assert len(result.outcomes) == 8
    assert [name for name, _ in result.failed] == ["k=5 cells in nmf:2"]
    assert "negative" in result.failed[0][1]
    by_name = {o.setting.name: o for o in result.outcomes}
    assert by_name["k=20 cells in none"].rate <= 1 / 20
    assert by_name["k=5 cells in none"].loss < by_name["k=20 cells in none"].loss
    front = result.frontier()
    assert all(a.rate <= b.rate and a.scores["f"] < b.scores["f"] for a, b in pairwise(front))
    other = compare(x + 1, y, settings[:1], **options)  # other data: nothing is taken from the file
    assert other.outcomes[0].rate >= 0


def test_settings_are_checked_before_anything_runs():
    for arguments in (([1], ["none"], ["cells"], []), ([5], ["umap:2"], ["cells"], []), ([], ["none"], ["cells"], [])):
        with pytest.raises(InputError):
            settings_of(*arguments)
