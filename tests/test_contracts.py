"""The contracts of groupers and maps: scikit-learn's checks, every parameter's rule, and parts as a stranger would write them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import DBSCAN
from sklearn.decomposition import FastICA
from sklearn.utils.estimator_checks import check_estimator

from omokage import Anonymizer, Roles
from omokage.base import parameters
from omokage.errors import InputError, MapError, NotEnoughPeople
from omokage.method import fitting
from omokage.method.grouping import GROUPERS, Mondrian
from omokage.method.maps import LPP, MAPS, NMF, PCA, Autoencoder

# ---------------------------------------------------------------------- scikit-learn's own checks

FEW_CLUSTERS = "it expects the three clusters of 50 points; a grouper with k = 2 makes about 25 groups, which is its task"
EXPECTED = {name: {"check_clustering": FEW_CLUSTERS} for name in GROUPERS}
MADE = {
    **{name: made(2) for name, made in GROUPERS.items()},
    "none": MAPS["none"](),
    "std": MAPS["std"](),
    "log": MAPS["log"](),
    "pca": PCA(1),
    "nmf": NMF(1),
    "lpp": LPP(1),
    "ae": Autoencoder(1, max_epochs=2),
}


def test_every_grouper_and_map_is_checked():
    assert set(MADE) == {*GROUPERS, *MAPS}


@pytest.mark.parametrize("name", MADE)
def test_scikit_learns_checks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # skipped checks warn
        results = check_estimator(MADE[name], on_fail=None, expected_failed_checks=EXPECTED.get(name, {}))
    assert len(results) > 40
    assert {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED.get(name, {}))


# ---------------------------------------------------------------------- every parameter keeps its rule


def wrong_values():
    for name, made in MADE.items():
        for parameter, rule in made.parameters.items():
            for number, value in enumerate(rule.wrong):
                yield pytest.param(name, parameter, value, id=f"{name}-{parameter}-{number}")


@pytest.mark.parametrize("name", MADE)
def test_every_parameter_is_declared(name):
    made = MADE[name]
    assert set(made.parameters) == set(made.get_params()), "declare a rule for each parameter, and none besides"
    for parameter, rule in made.parameters.items():
        assert rule.allows(getattr(made, parameter))
        assert len(rule.wrong) >= 2
        assert not any(rule.allows(value) for value in rule.wrong)
        default = inspect.signature(type(made)).parameters[parameter].default
        assert default is inspect.Parameter.empty or rule.allows(default)


@pytest.mark.parametrize(("name", "parameter", "value"), list(wrong_values()))
def test_a_value_outside_its_rule_is_refused(name, parameter, value):
    made = clone(MADE[name]).set_params(**{parameter: value})
    with pytest.raises(InputError, match=f"^{parameter} must be .*but it is") as caught:
        made.fit(np.random.default_rng(0).random((20, 3)))
    assert MADE[name].parameters[parameter].words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_rules_in_words_and_at_their_edges():
    assert parameters.optional(parameters.whole(1), "all").words == "None (all) or a whole number of at least 1"
    assert parameters.real(0, above=True).allows(1e-300)
    assert not parameters.real(0, above=True).allows(0.0)
    assert parameters.real(0).allows(0)
    assert parameters.whole(2).allows(np.int32(2))
    assert parameters.flag().allows(np.bool_(True))
    assert not parameters.several(parameters.whole(1)).allows((3, 0))
    with pytest.raises(InputError, match="a group of one person hides nobody"):
        Mondrian(1).fit(np.ones((4, 1)))


# ---------------------------------------------------------------------- a stranger's own parts


class EveryThree:
    """A grouper as README describes one: k and fit_predict, nothing else."""

    k = 3

    def fit_predict(self, Z):
        return np.minimum(np.argsort(np.argsort(Z[:, 0], kind="stable")) // 3, len(Z) // 3 - 1)


class Halves:
    """A map as CONTRIBUTING describes one; fit returns nothing, and there is no fit_transform."""

    def __init__(self):
        self.center = None

    def fit(self, X):
        self.center = X.mean(axis=0)

    def transform(self, X):
        return (X - self.center) / 2

    def inverse_transform(self, Z):
        return Z * 2 + self.center


class Drawn(EveryThree):
    """A grouper with a seed of its own, set from outside where it is None."""

    def __init__(self, random_state=None):
        self.random_state = random_state
        self.seen = []

    def fit_predict(self, Z):
        self.seen.append(self.random_state)
        return np.random.default_rng(self.random_state).permutation(len(Z)) % (len(Z) // self.k)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(20, 3)).round(3)


@pytest.fixture
def frame(x):
    return pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(kept=pl.Series(range(20)))


ROLES = Roles(quasi=["a", "b", "c"], keep=["kept"])


def test_a_strangers_grouper_groups_an_array(x):
    release = Anonymizer(EveryThree(), random_state=0).release(x)
    assert release.certificate.found.k == 3
    order = np.argsort(x[:, 0])
    expected = sorted(x[rows, 0].mean() for rows in [*np.split(order[:15], 5), order[15:]])
    np.testing.assert_allclose(np.unique(release.data[:, 0]), expected)


def test_a_strangers_grouper_groups_a_frame(frame):
    release = Anonymizer(EveryThree(), random_state=0).release(frame, roles=ROLES)
    assert release.certificate.found.k == 3
    assert sorted(release.data["kept"].to_list()) == list(range(20))


def test_a_strangers_map_is_fitted_and_leads_back(x, frame):
    given = Halves()
    mapped = Anonymizer(Mondrian(4), synthesis_map=given, random_state=0).release(x)
    plain = Anonymizer(Mondrian(4), random_state=0).release(x)
    np.testing.assert_allclose(np.sort(mapped.data, axis=0), np.sort(plain.data, axis=0))  # it is linear: means stay means
    assert given.center is None  # a copy was fitted
    assert Anonymizer(Mondrian(4), synthesis_map=Halves()).release(frame, roles=ROLES).certificate.found.k >= 4
    assert Anonymizer(EveryThree(), group_map=Halves()).release(x).certificate.found.k == 3


def test_a_strangers_name_is_told_without_an_address(x):
    assert fitting.describe(Halves()) == "Halves()"
    release = Anonymizer(EveryThree(), synthesis_map=Halves()).release(x)
    assert " at 0x" not in str(release.certificate)


def test_any_transformer_with_a_way_back_is_a_map(x):
    release = Anonymizer(Mondrian(4), synthesis_map=FastICA(2, whiten="unit-variance"), random_state=0).release(x)
    assert release.certificate.found.k >= 4


def test_seeds_are_set_only_where_there_is_an_unset_one(x):
    assert fitting.seeded(Drawn(), 7).random_state == 7
    assert fitting.seeded(Drawn(3), 7).random_state == 3
    assert fitting.seeded(PCA(2, random_state=None), 2**40 + 5).random_state == (2**40 + 5) % 2**32
    assert not hasattr(fitting.seeded(EveryThree(), 7), "random_state")
    same = [Anonymizer(Drawn(), random_state=1).release(x).data for _ in range(2)]
    assert np.array_equal(*same)


def test_the_part_that_was_given_is_left_as_it_is():
    given = Drawn()
    fresh = fitting.seeded(given, 7)
    fresh.fit_predict(np.ones((9, 1)))
    assert (given.random_state, given.seen) == (None, [])


def test_what_cannot_be_copied_is_used_itself():
    class Holds(Halves):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle")

    given = Holds()
    assert fitting.seeded(given, 7) is given


def test_get_params_that_are_not_scikit_learns_do_not_matter():
    class Odd(EveryThree, BaseEstimator):
        def __init__(self, k):
            self.k = k + 1  # not what clone expects

    fresh = fitting.seeded(Odd(4), 7)
    assert fresh.k == 5


def test_a_map_without_fit_transform_needs_none(x):
    class Slots:
        __slots__ = ()

        def fit(self, X):
            pass

        def transform(self, X):
            return X

    assert np.array_equal(fitting.fitted_vectors(fitting.seeded(Slots(), 7), x), x)


def test_labels_are_numbered_and_counted(x):
    class Labels(EveryThree):
        def __init__(self, labels):
            self.labels = labels

        def fit_predict(self, Z):
            return self.labels

    assert fitting.labels_of(Labels([9] * 10 + [-1] * 10), x).tolist() == [1] * 10 + [0] * 10
    with pytest.raises(NotEnoughPeople, match=r"a group of 2 rows, fewer than k = 3"):
        fitting.labels_of(Labels([0] * 18 + [1] * 2), x)
    for wrong in ([0] * 19, [0.5] * 20, ["a"] * 20, [[0]] * 20):
        with pytest.raises(InputError, match="must give a whole number for each of 20 rows"):
            fitting.labels_of(Labels(wrong), x)
    noise = DBSCAN(eps=1e-9)
    noise.k = 2
    assert fitting.labels_of(noise, x).tolist() == [0] * 20


@pytest.mark.parametrize("given", [[["a"]], [1.0, 2.0], [[np.nan]]])
def test_what_a_map_gives_is_checked(given):
    with pytest.raises(MapError, match=r"the map Halves\(\)"):
        fitting.finite(given, Halves())


# ---------------------------------------------------------------------- compiling

KERNEL = """
from omokage.base.compiling import announce, kernel
announce(print)

@kernel(cached=False)
def double(x):
    return 2 * x

@kernel()
def doubled(x):
    return double(x)

print(doubled(3))
"""
TOLD = ["compiling kernels (first run only)", "6"]  # once, though two kernels are compiled


@pytest.fixture
def run_kernel(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KERNEL)

    def run(**environment):
        kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME")}
        done = subprocess.run(
            [sys.executable, "-W", "error", str(script)], env=kept | environment, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


def test_the_first_run_says_that_it_compiles_and_the_second_need_not(run_kernel, tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run_kernel(**place) == TOLD
    assert run_kernel(**place) == ["6"]


def test_an_installed_package_that_cannot_be_written_uses_the_users_cache(run_kernel, tmp_path):
    (tmp_path / "__pycache__").write_text("in the way")  # stands for a read-only folder, also for root
    place = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / ".cache")}
    (tmp_path / "home").mkdir()
    assert run_kernel(**place) == TOLD
    assert run_kernel(**place) == ["6"]


def test_where_no_cache_can_be_written_kernels_are_compiled_each_time(run_kernel, tmp_path):
    (tmp_path / "__pycache__").write_text("in the way")
    place = {"HOME": str(tmp_path / "__pycache__"), "XDG_CACHE_HOME": str(tmp_path / "__pycache__")}
    assert run_kernel(**place) == TOLD
    assert run_kernel(**place) == TOLD
