"""Attacks: what every entry of the registry must do, and an attack of a stranger's own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest

from omokage import Anonymizer, Cells, Laplace, Mondrian
from omokage.errors import InputError
from omokage.evaluate import ATTACKS, Linked, Ruler, attack_all, evaluate, link, reidentify
from omokage.evaluate.attacks import GROUPS, NOISE, ask
from omokage.evaluate.view import View, view_of
from omokage.method.grouping import MDAV
from omokage.method.maps import parse_map

MATCHINGS = ("nearest", "assignment")
K = 5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)) * np.logspace(0, 2, 5)


@pytest.fixture(scope="module")
def releases(rows):
    """A release with groups and one with noise, linked."""
    anonymizers = {
        GROUPS: Anonymizer(Cells(K), group_map=parse_map("std+pca:3"), synthesis_map=parse_map("pca:4"), random_state=0),
        NOISE: Anonymizer(noise=Laplace(0.5, random_state=0), synthesis_map=parse_map("std+pca:3"), random_state=0),
    }
    return {kind: link(rows, anonymizer.release(rows)) for kind, anonymizer in anonymizers.items()}


def four(released, row_of=(0, 1, 2, 3)):
    """Four originals 0, 1, 10, 11 and a release given by hand."""
    x = np.array([[0.0], [1.0], [10.0], [11.0]])
    return Linked(x, np.array(released, dtype=float)[:, None], np.array(row_of), Anonymizer(Mondrian(2)).release(x).certificate)


# ---------------------------------------------------------------------- the contract of every entry


CASES = [(e.name, kind, how) for e, how in product(ATTACKS.entries, MATCHINGS) for kind in sorted(e.can)]


@pytest.mark.parametrize(("name", "kind", "matching"), CASES)
def test_every_attack_gives_a_rate_within_its_bound_and_the_same_with_the_same_seed(releases, name, kind, matching):
    both = releases[kind]
    first, second = (reidentify(both, attack=name, matching=matching, random_state=7) for _ in range(2))
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)
    assert 0.0 < first.rate <= 1.0
    assert first.interval[0] <= first.rate <= first.interval[1]
    assert first.baseline == 1 / 300
    assert first.rate > 2 * first.baseline  # an attack that knows nothing is no attack
    if kind == GROUPS:
        assert first.bound == 1 / K
        assert first.rate <= first.bound + 1e-12
    else:
        assert first.bound is None


@pytest.mark.parametrize(("name", "kind", "matching"), CASES)
def test_a_perfect_release_is_linked_by_every_attack(rows, name, kind, matching):
    if kind == NOISE:  # noise that changes next to nothing
        release = Anonymizer(noise=Laplace(1e-9, random_state=0), random_state=0).release(rows)
        assert reidentify(link(rows, release), attack=name, matching=matching).rate == 1.0
        return
    twins = np.repeat(rows, 2, axis=0)  # k = 2 changes nothing where everybody has a twin: only the twin protects
    result = reidentify(link(twins, Anonymizer(MDAV(2), random_state=0).release(twins)), attack=name, matching=matching)
    assert result.rate == result.bound == 0.5


def test_every_entry_says_what_it_is():
    for entry in ATTACKS.entries:
        assert entry.help
        assert entry.can <= {GROUPS, NOISE}
        assert callable(entry.load())
    assert set(ATTACKS) == {"raw", "standard", "ranks", "group", "synthesis", "likelihood", "learned", "repeated"}


def test_an_attack_sees_no_key(releases):
    seen = []

    def watching(view):
        seen.append(view)
        return np.full(len(view.originals), -1)

    assert reidentify(releases[GROUPS], attack=watching).rate == 0.0
    view = seen[0]
    assert isinstance(view, View)
    assert not hasattr(view, "row_of")
    assert len(view.known) == len(view.known_rows) == 0
    key = releases[GROUPS].row_of
    arrays = [value for value in vars(view).values() if isinstance(value, np.ndarray)]
    assert not any(each.shape == key.shape and (each == key).all() for each in arrays)


# ---------------------------------------------------------------------- a stranger's own


class FirstColumn:
    """Link by the first column alone."""

    name = "first column"

    def __init__(self, power=1):
        self.power = power

    def __call__(self, view):
        return Ruler.placing(view, lambda rows: rows[:, :1] ** self.power)


def distances(view):
    """The distance of each original to each released row."""
    return ((view.originals[:, None, :] - view.released[None, :, :]) ** 2).sum(axis=2)


def by_name_of_row(view):
    return np.arange(len(view.originals))


def test_guesses_are_scored_by_hand():
    assert reidentify(four([0.5, 0.5, 10.5, 10.5]), attack=by_name_of_row).rate == 0.5  # the right class of two each time
    assert reidentify(four([0.5, 0.5, 10.5, 10.5], (2, 3, 0, 1)), attack=by_name_of_row).rate == 0.0
    assert reidentify(four([0.1, 1.1, 10.1, 11.1]), attack=by_name_of_row).rate == 1.0
    result = reidentify(four([0.1, 1.1, 10.1, 11.1]), attack=lambda view: np.array([0, -1, 2, -1]))
    assert result.rate == 0.5
    assert result.name == "direct guess, <lambda>"


@pytest.mark.parametrize("matching", MATCHINGS)
def test_distances_are_matched_as_coordinates_are(releases, matching):
    for both in (four([0.9, 1.0, 10.0, 11.0]), releases[GROUPS], releases[NOISE]):
        ours, theirs = (reidentify(both, attack=attack, matching=matching) for attack in ("raw", distances))
        assert theirs.rate == pytest.approx(ours.rate, abs=0.01)
        assert theirs.name == ours.name.replace("raw units", "distances")


def test_a_class_a_function_and_an_instance_are_attacks(releases):
    both = releases[GROUPS]
    tried = attack_all(both, attacks=["raw", FirstColumn, distances, by_name_of_row])
    assert set(tried.results) == {
        "nearest record, raw units", "optimal assignment, raw units", "nearest record, first column",
        "optimal assignment, first column", "nearest record, distances", "optimal assignment, distances",
        "direct guess, by_name_of_row",
    }  # fmt: skip
    assert all(0 <= result.rate <= 1 / K + 1e-12 for result in tried.results.values())
    assert tried.strongest.rate == max(result.rate for result in tried.results.values())
    assert ask(FirstColumn(3), both).name == "first column"


def test_own_attacks_are_ranked_with_the_built_in_ones(releases):
    """The stranger knows better: the row that the noise has moved least, found by cheating through a closure."""
    both = releases[NOISE]

    def cheating(view):
        return both.row_of

    result = evaluate(both, attacks=[*ATTACKS, cheating])
    assert result.strongest.name == "direct guess, cheating"
    assert result.strongest.rate == 1.0
    assert len(result.attacks) > 8
    assert not any("group" in name for name in result.missing)  # attacks on groups do not apply to noise


def test_a_guess_alone_needs_no_ruler(releases):
    result = evaluate(releases[GROUPS], attacks=[by_name_of_row])
    assert list(result.attacks) == ["direct guess, by_name_of_row"]
    assert result.disclosure.singling_out.rate >= 0


def test_known_pairs_are_given_when_asked_for_and_do_not_count(releases):
    both = releases[NOISE]

    class Remembering:
        uses_known_pairs = True

        def __call__(self, view):
            guess = np.full(len(view.originals), -1)
            guess[view.known] = view.known_rows
            assert (both.row_of[view.known] == view.known_rows).all()
            return guess

    result = reidentify(both, attack=Remembering)
    assert (result.known, result.rows, result.rate) == (15, 285, 0.0)


def test_a_sample_counts_the_same_guesses(releases):
    both = releases[GROUPS]
    result = reidentify(both, attack=lambda view: both.row_of, sample=50)
    assert result.sampled
    assert 50 <= result.rows < 65
    assert 1 / 10 < result.rate <= 1 / K + 1e-12  # every class is right, whatever was drawn


def broken(view):
    return {}["nothing"]


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (lambda view: np.zeros(3, dtype=int), r"answers with ndarray of shape \(3,\): return a Ruler"),
        (lambda view: None, "answers with NoneType"),
        (lambda view: np.full(len(view.originals), len(view.released)), "not in the release: give numbers from -1 to 299"),
        (lambda view: np.full(len(view.originals), -2), "not in the release"),
        (lambda view: np.full((len(view.originals), len(view.released)), np.nan), "NaN or infinity as a distance"),
        (broken, "the attack broken fails with KeyError: correct it"),
        (3, "must be callable with the attacker's view, but it is of type int"),
        ("thumb", "no attack 'thumb': choose raw, standard"),
        ("no.such:Thing", r"the attack no.such:Thing cannot be imported: ModuleNotFoundError"),
    ],
)
def test_an_attack_that_breaks_the_contract_is_refused_aloud(releases, attack, words):
    with pytest.raises(InputError, match=words):
        reidentify(releases[GROUPS], attack=attack)
    with pytest.raises(InputError, match=words):
        attack_all(releases[GROUPS], attacks=["raw", attack])


def test_names_must_differ_and_something_must_apply(releases):
    with pytest.raises(InputError, match="two attacks have the name distances: give one of them another name"):
        attack_all(releases[GROUPS], attacks=[distances, distances])
    with pytest.raises(InputError, match="none of those named applies"):
        attack_all(releases[GROUPS], attacks=["likelihood"])


def test_the_attackers_view_of_a_table_has_all_its_columns():
    frame = pl.DataFrame({"age": [20, 21, 50, 51], "ill": ["a", "b", "c", "d"]})
    from omokage import Roles

    release = Anonymizer(Mondrian(2)).release(frame, roles=Roles(quasi=["age"], sensitive=["ill"]))
    view = view_of(link(frame, release))
    assert view.table.frame.columns == view.frame.columns == ["age", "ill"]
    assert [column.name for column in view.published.quasi] == ["age"]


STRANGER = '''
import numpy as np
from omokage.evaluate import Ruler

class ByFirst:
    """Link by one column."""
    name = "a <b>single</b> column"

    def __init__(self, column=0):
        self.column = column

    def __call__(self, view):
        return Ruler.placing(view, lambda rows: rows[:, [self.column]])

def nobody(view):
    return np.full(len(view.originals), -1)
'''


def test_evaluate_takes_an_attack_by_its_path(run, tmp_path, monkeypatch, rows):
    (tmp_path / "strangers").mkdir()
    (tmp_path / "strangers" / "__init__.py").write_text("")
    (tmp_path / "strangers" / "attacks.py").write_text(STRANGER)
    monkeypatch.syspath_prepend(tmp_path)
    pl.DataFrame(rows[:120], schema=[f"c{j}" for j in range(5)], orient="row").write_csv(tmp_path / "t.csv")
    run("table", tmp_path / "t.csv", "-o", tmp_path / "out", "--k", 4, "--quasi", "*", "--key", tmp_path / "key.json")
    given = (tmp_path / "t.csv", tmp_path / "out", "--key", tmp_path / "key.json")
    result = run("evaluate", *given, "--attack", "strangers.attacks:ByFirst:2", "--attack", "strangers.attacks:nobody",
                 "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")  # fmt: skip
    assert result.code == 0, result.err
    kept = json.loads((tmp_path / "r.json").read_text())["attacks"]
    assert {"nearest record, a <b>single</b> column", "direct guess, nobody", "nearest record, raw units"} <= set(kept)
    assert kept["direct guess, nobody"]["rate"] == 0
    page = (tmp_path / "r.html").read_text()
    assert "a &lt;b&gt;single&lt;/b&gt; column" in page
    assert "<b>single" not in page
    assert "--attack strangers.attacks:ByFirst:2" in page
    (tmp_path / "here.py").write_text(STRANGER)  # a module of the current folder, as an installed command finds it
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    assert run("evaluate", *given, "--attack", "here:nobody").code == 0
    missing = run("evaluate", *given, "--attack", "strangers.attacks:Nothing")
    assert missing.code == 2
    assert "cannot be imported: AttributeError" in missing.err
