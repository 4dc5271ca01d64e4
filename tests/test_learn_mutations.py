"""The gate: halve each noise, drop each clip, constraint and merge in turn, and see the suite's own checks notice.

Every check passes on the code as it is (the tests that own them, and the first ones here); each mutation is the
smallest change of source that breaks one promise.
"""

from __future__ import annotations

import pytest
from learn_checks import (
    ADULT,
    LEARNERS,
    check_alone,
    check_audit,
    check_box,
    check_delta_pays_for_the_sampler,
    check_forest,
    check_noise_asked_for,
    check_one_class_trains,
    check_overflow,
    check_reach,
    check_sampling,
    check_tiny_clip,
    mutated,
    plain_kernels,
)

from omokage.learn import (
    DPSGD,
    AnonymizedLearning,
    AnonymizingFirst,
    LearningFirst,
    accounting,
    anonymizing_first,
    classifier,
    descent,
    histograms,
    learning_first,
    mechanisms,
    network,
    noise,
    records,
)
from omokage.learn.noise import NoiseSource

ADULTS = {
    "anonymizing-first": AnonymizingFirst(1.0, schema=ADULT),
    "learning-first": LearningFirst(1.0, schema=ADULT),
    "anonymized-learning, l1": AnonymizedLearning(1.0, schema=ADULT),
    "anonymized-learning, element": AnonymizedLearning(1.0, schema=ADULT, sensitivity="element"),
    "dp-sgd": DPSGD(1.0, schema=ADULT),
}
NOTICED = (AssertionError,)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=list(LEARNERS))
def test_the_checks_pass_on_the_code_as_it_is(learner):
    check_noise_asked_for(learner)
    check_reach(learner)


@pytest.mark.parametrize("learner", ADULTS.values(), ids=list(ADULTS))
def test_audits_find_half_of_the_noise_on_adults_schema(learner, monkeypatch):
    """At the sampler itself, where nothing else of the code knows of it."""
    check_audit(learner)
    for law in ("laplace", "gaussian"):
        honest = getattr(NoiseSource, law)
        monkeypatch.setattr(NoiseSource, law, lambda self, size, scale, honest=honest: honest(self, size, scale / 2))
    with pytest.raises(NOTICED):
        check_audit(learner)


# (what is broken, where, its name there, the source that is replaced, by what), the learner that it breaks
MECHANISMS = [
    ("label histograms", anonymizing_first.Budget, "release_label", "self.label", "2 * self.label", "anonymizing-first"),
    ("pair histograms", anonymizing_first.Budget, "release_edge", "self.edge", "2 * self.edge", "anonymizing-first"),
    ("choices", anonymizing_first.Budget, "pick_edge", "self.choice", "2 * self.choice", "anonymizing-first"),
    ("counts", histograms, "release_counts", "SENSITIVITY, epsilon", "SENSITIVITY, 2 * epsilon", "anonymizing-first"),
    ("whole numbers", noise, "release_integers", "scale = sensitivity", "scale = 0.5 * sensitivity", "learning-first"),
    ("parameters", learning_first.ParameterNoise, "noisy", "self.epsilon", "2 * self.epsilon", "learning-first"),
    ("gradient sums", mechanisms.ClippedSum, "noisy", "self.scale", "self.scale / 2", "anonymized-learning, l1"),
    ("gradient sums", mechanisms.ClippedSum, "noisy", "self.scale", "self.scale / 2", "dp-sgd"),
    ("coordinates", mechanisms.CoordinateSum, "noisy", "self.scale", "self.scale / 2", "anonymized-learning, element"),
]


@pytest.mark.parametrize(
    ("what", "holder", "name", "old", "new", "learner"), MECHANISMS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_audits_find_half_of_the_noise_of_each_mechanism(what, holder, name, old, new, learner, monkeypatch):
    broken = mutated(holder, name, old, new)
    for module in (holder, anonymizing_first, learning_first, histograms):
        if hasattr(module, name) and (module is holder or not isinstance(holder, type)):
            monkeypatch.setattr(module, name, broken)
    with pytest.raises(NOTICED):
        check_audit(ADULTS[learner])


def breaking(*cases):
    """Cases of (holder, name, what is replaced in its source, by what, the learner that it breaks)."""
    return pytest.mark.parametrize(
        ("holder", "name", "old", "new", "learner"), cases, ids=lambda v: v if isinstance(v, str) else ""
    )


@breaking(
        (anonymizing_first.AnonymizingFirst, "_budget", '_SPLIT["tree"] / edges', '_SPLIT["tree"]', "anonymizing-first, tree"),
        (anonymizing_first.AnonymizingFirst, "_budget", "self.epsilon / columns", "self.epsilon", "anonymizing-first, label"),
        (anonymizing_first.AnonymizingFirst, "_publish", "budget.release_edge(counts", "budget.release_label(counts",
         "anonymizing-first, tree"),
        (learning_first.LearningFirst, "_claim", "_UNITS / self.epsilon", "2 * _UNITS / self.epsilon", "learning-first"),
        (AnonymizedLearning, "_mechanism", "silent.bound * epochs", "silent.bound", "anonymized-learning, l1"),
        (AnonymizedLearning, "_mechanism", "CoordinateSum.bound * epochs", "CoordinateSum.bound", "anonymized-learning, element"),
        (DPSGD, "_plan", "multiplier * (grid", "0.5 * multiplier * (grid", "dp-sgd"),
        (DPSGD, "_plan", "self._delta(rows), steps,", "self._delta(rows), 1,", "dp-sgd"),
)  # fmt: skip
def test_a_budget_spent_twice_is_noticed(holder, name, old, new, learner, monkeypatch):
    monkeypatch.setattr(holder, name, mutated(holder, name, old, new))
    with pytest.raises(NOTICED):
        check_noise_asked_for(LEARNERS[learner])


@breaking(
        (network.Network, "gradient", "rows, norm, clip", "rows, 0, clip", "dp-sgd"),
        (network.Network, "gradient", "rows, norm, clip", "rows, 0, clip", "anonymized-learning, l1"),
        (network.Network, "gradient", "rows, norm, clip", "rows, 2, clip", "anonymized-learning, l1"),
        (mechanisms.CoordinateSum, "exact", "low, high, step))", "9 * low, 9 * high, step))", "anonymized-learning, element"),
        (learning_first.ParameterNoise, "exact", "np.clip(np.nan_to_num(theta, nan=0.0), self.low, self.high)",
         "np.nan_to_num(theta, posinf=9.0, neginf=-9.0)", "learning-first"),
)  # fmt: skip
def test_a_dropped_clip_is_noticed(holder, name, old, new, learner, monkeypatch):
    monkeypatch.setattr(holder, name, mutated(holder, name, old, new))
    with pytest.raises(NOTICED):
        check_reach(LEARNERS[learner])
    with pytest.raises(NOTICED):
        check_audit(LEARNERS[learner])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if not np.isfinite(out[r]):", "if False:"),
        ("if ys[r] <= LARGEST else np.inf", ""),
        ("LARGEST = 2.0**600", "LARGEST = 2.0**1000"),
        ("            y[:, r] = 0.0  # both: a zero times infinity would be NaN\n", ""),
        (" if v == v else 0.0", ""),
    ],
)
def test_overflow_that_is_not_caught_is_noticed(old, new):
    broken = plain_kernels(old, new)
    with pytest.raises(NOTICED):
        check_overflow(broken) if "LARGEST" not in old else check_tiny_clip(broken)


def test_a_grid_that_takes_anything_is_noticed(monkeypatch):
    monkeypatch.setattr(network.Network, "gradient", mutated(network.Network, "gradient", "rows, norm, clip", "rows, 0, clip"))
    broken = mutated(descent, "to_grid", "(np.abs(steps) <= 2.0 * _LARGEST_SUM).all()", "True")
    monkeypatch.setattr(mechanisms, "to_grid", broken)
    with pytest.warns(RuntimeWarning, match="invalid value"), pytest.raises(NOTICED):
        check_reach(LEARNERS["dp-sgd, hidden"])


def test_records_that_pass_together_are_noticed():
    together = plain_kernels("        if alone:\n", "        if False:\n")
    with pytest.raises(NOTICED):
        check_alone(together, places=40)


def test_a_dropped_constraint_is_noticed(monkeypatch):
    broken = mutated(network, "train", "np.clip(np.nan_to_num(theta, nan=0.0), low, high)", "theta + 1.0")
    monkeypatch.setattr(network, "train", broken)
    with pytest.raises(NOTICED):
        check_box()


def test_a_dropped_merge_is_noticed():
    old = "component = [component[a] if c == component[b] else c for c in component]"
    broken = mutated(histograms, "choose_forest", old, "pass")
    with pytest.raises(NOTICED):
        check_forest(broken)


def test_a_sampler_that_nobody_pays_for_is_noticed(monkeypatch):
    check_delta_pays_for_the_sampler()
    monkeypatch.setattr(accounting, "delta_left", lambda delta, epsilon, distance: delta)
    accounting.pld_epsilon.cache_clear()
    accounting.gaussian_multiplier.cache_clear()
    with pytest.raises(NOTICED):
        check_delta_pays_for_the_sampler()
    accounting.pld_epsilon.cache_clear()
    accounting.gaussian_multiplier.cache_clear()


def test_a_refusal_of_one_class_is_noticed(monkeypatch):
    new = "    if len(set(codes)) < 2:\n        raise AssertionError\n    return codes"
    monkeypatch.setattr(classifier, "label_codes", mutated(records, "label_codes", "    return codes", new))
    with pytest.raises(NOTICED):
        check_one_class_trains(LEARNERS["dp-sgd"])


def test_sampling_too_often_is_noticed(monkeypatch):
    check_sampling()
    broken = mutated(NoiseSource, "poisson_subset", "probability * 2.0**64", "probability * 1.1 * 2.0**64")
    monkeypatch.setattr(NoiseSource, "poisson_subset", broken)
    with pytest.raises(NOTICED):
        check_sampling()
