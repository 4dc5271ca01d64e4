"""Checks of the learners' promises that more than one test needs.

``test_learn_mutations`` breaks the code on purpose and expects these to notice, so each takes what it looks at as
an argument or finds it where the package does.
"""

from __future__ import annotations

import inspect
import itertools
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

from omokage.learn import (
    DPSGD,
    AnonymizedLearning,
    AnonymizingFirst,
    Categorical,
    LearningFirst,
    Numeric,
    Schema,
    accounting,
    audit,
    histograms,
    load_schema,
    network,
    network_kernels,
)
from omokage.learn.noise import NoiseSource
from omokage.learn.parts import SamplePart
from omokage.learn.steps import GaussianSteps, LaplaceSteps, PureSteps

ADULT = load_schema(Path(__file__).parents[1] / "experiments" / "adult.schema.toml")
ADULT_ROWS = 45_222
ROWS = 4200  # enough for AnonymizingFirst to publish more than one pair of SMALL's columns
SMALL = Schema(
    (Numeric("age", 0, 100, cuts=(30, 60)), Numeric("hours", 0, 80), Categorical("job", ("a", "b", "c"))),
    "rich",
    ("no", "yes"),
)
LEARNERS = {
    "dp-sgd": DPSGD(1.0, schema=SMALL, epochs=5),
    "dp-sgd, hidden": DPSGD(1.0, schema=SMALL, epochs=5, hidden=(4,)),
    "anonymized-learning, l1": AnonymizedLearning(1.0, schema=SMALL, epochs=2),
    "anonymized-learning, element": AnonymizedLearning(
        1.0, schema=SMALL, epochs=2, sensitivity="element", clip=0.1, batch_size=900
    ),
    "anonymized-learning, interval": AnonymizedLearning(1.0, schema=SMALL, epochs=2, sensitivity="interval", hidden=(4,)),
    "learning-first": LearningFirst(1.0, schema=SMALL, epochs=2),
    "anonymizing-first, tree": AnonymizingFirst(1.0, schema=SMALL, epochs=1),
    "anonymizing-first, label": AnonymizingFirst(1.0, schema=SMALL, epochs=1, marginals="label"),
}


class Silent(NoiseSource):
    """Adds nothing; remembers the noise that it was asked for."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.scales: list[float] = []

    def laplace(self, size: int, scale: float) -> Any:
        self.scales.append(scale)
        return np.zeros(size, np.int64)

    gaussian = laplace


def rows_of(labels: list[str]) -> pl.DataFrame:
    """So many rows of ``SMALL``, of every kind."""
    n = np.arange(len(labels))
    jobs = np.array(["a", "b", "c"])[n % 3]
    return pl.DataFrame({"age": n * 37 % 100, "hours": n * 29 % 80 * 1.0, "job": jobs, "rich": labels})


def ready(learner: Any) -> Any:
    """A learner of ``SMALL`` as ``fit`` has it when it begins to learn."""
    learner = learner._settled()
    learner.settings_ = {}
    return learner


def check_noise_asked_for(learner: Any) -> None:
    """A whole training asks its source for the noise that it claims, step by step, and spends the ε that was asked for."""
    learner, source = ready(learner), Silent()
    frame = rows_of(["no", "yes"] * (ROWS // 2))
    labels = np.arange(ROWS) % 2
    _, claims = learner._learn(frame, SMALL.encode(frame), labels, np.random.default_rng(0), source)
    if learner.approach == "dp-sgd":
        (claim,) = claims
        (part,) = learner._parts(ROWS)
        assert set(source.scales) == {claim.multiplier * part.bound / 2}
        assert len(source.scales) == claim.count
        expected = accounting.gaussian_multiplier(learner.epsilon, 1e-5, claim.count, 1.0, claim.distance)
        assert claim.multiplier >= expected * (1 - 1e-9)
        return
    per_parameter = learner._per_parameter() is not None
    times = network.parameter_count(learner._sizes(len(SMALL.features))) if per_parameter else 1
    assert accounting.naive_epsilon(claims) <= learner.epsilon * times * (1 + 1e-9)
    asked = sorted(source.scales)
    if learner.approach == "anonymizing-first":
        expected = [s.scale for s in claims if isinstance(s, LaplaceSteps) for _ in range(s.count)]
        picks = [1024 * 2 * histograms.SCORE_SENSITIVITY / s.epsilon for s in claims if isinstance(s, PureSteps)]
        np.testing.assert_allclose(asked, sorted([*expected, *(p for p in picks for _ in range(learner._budget(ROWS).edges))]))
    else:
        assert set(asked) == {claims[0].scale}


def check_reach(learner: Any) -> None:
    """No hostile row, network or overflow moves a step further than its noise covers; some row comes near."""
    for part in ready(learner)._parts(ROWS):
        if hasattr(part, "moved"):
            assert part.moved() <= part.bound
            assert part.moved() > 0.5 * part.bound


def check_audit(learner: Any, seed: int = 0) -> None:
    """The audit of 1,000 runs does not refute the learner."""
    rows = ADULT_ROWS if learner.schema is ADULT else 1000
    assert audit(learner, rows=rows, noise_seed=seed).holds


def check_forest(choose_forest: Any) -> None:
    """The chosen edges hold no cycle and can be drawn parents first."""
    codes = np.random.default_rng(0).integers(0, 2, (50, 6))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        edges = choose_forest(codes, (2,) * 6, 5, lambda scores, rng=rng: int(rng.integers(len(scores))))
        assert sorted([0, *(child for _, child in edges)]) == list(range(6))
        seen = {0}
        for parent, child in edges:
            assert parent in seen
            seen.add(child)


def check_box() -> None:
    """Parameters stay in their range, whatever the learning rate."""
    rng = np.random.default_rng(0)
    start = network.initial_network((5, 4, 3), rng)
    X, y = rng.random((60, 5)), rng.integers(0, 3, 60)
    for rate in (2.0, 1e200, 1e308):
        trained = network.train(start, X, y, rng, epochs=3, batch_size=7, learning_rate=rate, decay=0.0, low=-0.1, high=0.2)
        assert trained.theta.min() >= -0.1
        assert trained.theta.max() <= 0.2


def check_delta_pays_for_the_sampler() -> None:
    """Noise is solved at what (1 + e^ε) × distance leaves of δ, and the ε that is read off covers it."""
    epsilon, delta, distance = 0.7, 1e-6, 1e-8
    multiplier = accounting.gaussian_multiplier(epsilon, delta, 20, 1.0, distance)
    ideal = accounting.gaussian_delta(epsilon, 2 * math.sqrt(20) / multiplier)
    taken = (1 + math.exp(epsilon)) * 20 * distance
    assert abs(ideal + taken - delta) < 1e-6 * delta
    stated = accounting.pld_epsilon((GaussianSteps(multiplier, 20, 1.0, distance),), delta)
    assert abs(stated - epsilon) < 1e-6


def hostile_problem(sizes: tuple[int, ...], scale: float) -> tuple[Any, Any, Any]:
    """A network whose weights are of this size, rows from zero to one, and labels."""
    rng = np.random.default_rng(len(sizes))
    theta = rng.uniform(-1.0, 1.0, network.parameter_count(sizes)) * scale
    X = np.vstack([np.zeros(sizes[0]), np.ones(sizes[0]), rng.random((6, sizes[0]))])
    return theta, X, np.arange(len(X)) % sizes[-1]


def check_overflow(kernels: Any) -> None:
    """Every record alone, and any two together, stay within the clip, however large the weights are."""
    for sizes, scale in itertools.product([(5, 2), (5, 4, 2), (5, 4, 4, 3)], [1.0, 1e80, 1e103, 1e154, 1e200, 1e308]):
        theta, X, labels = hostile_problem(sizes, scale)
        shape = np.array(sizes)
        with np.errstate(all="ignore"):
            for order, record in itertools.product((1, 2), range(len(X))):
                alone = kernels.gradient_sum(theta, shape, X, labels, np.array([record]), order, 0.5)
                assert np.linalg.norm(alone, order) <= 0.5
            bound = np.full(theta.size, 0.5)
            steps = kernels.quantized_sum(theta, shape, X, labels, np.arange(len(X)), -bound, bound, bound / 128)
            assert np.abs(steps.astype(float)).max() <= 128 * len(X)  # −2⁶³ is its own absolute value as a whole number
            together = kernels.gradient_sum(theta, shape, X, labels, np.arange(len(X)), 2, 0.5)
            assert np.linalg.norm(together) <= 0.5 * len(X)


def check_tiny_clip(kernels: Any) -> None:
    """A gradient of a huge output and an error whose square underflows is not lost from the norm."""
    theta = np.array([1e150, 0.0, 380.0 / 1e150, 0.0, 0.0, 0.0])  # one input, one hidden unit: y = 1e150, δ = (0, e⁻³⁸⁰)
    with np.errstate(all="ignore"):
        for order in (1, 2):
            alone = kernels.gradient_sum(theta, np.array([1, 1, 2]), np.ones((1, 1)), np.array([0]), np.array([0]), order, 1e-20)
            assert np.linalg.norm(alone, order) <= 1e-20


def placements_that_differ(kernels: Any, places: int = 129) -> int:
    """How many of so many places in a batch change the last bits of one record's gradient norm."""
    rng = np.random.default_rng(0)
    sizes = (30, 16, 2)
    theta = rng.standard_normal(network.parameter_count(sizes)) * 0.3
    X, labels = rng.random((places + 1, sizes[0])), rng.integers(0, 2, places + 1)
    record, label = X[-1], labels[-1]
    alone = kernels.record_norms(theta, np.array(sizes), record[None], np.array([label]), 2)[0]
    differ = 0
    for place in range(places):
        among, told = X[:places].copy(), labels[:places].copy()
        among[place], told[place] = record, label
        differ += kernels.record_norms(theta, np.array(sizes), among, told, 2)[place] != alone
    return differ


def check_alone(kernels: Any, places: int = 129) -> None:
    """A record's numbers do not depend on its place in a batch."""
    assert placements_that_differ(kernels, places) == 0


def check_sampling() -> None:
    """Records are drawn as often as is claimed, not more."""
    assert SamplePart("samples", 0.1).measure(1000, 0.01, NoiseSource(0)).holds


def check_one_class_trains(learner: Any) -> None:
    """A table whose labels are all of one class is learned from, as its neighbour is."""
    frame = rows_of(["no"] * 40)
    fitted = learner.fit(frame, frame["rich"])
    assert fitted.privacy_.private
    assert fitted.predict_proba(frame).shape == (40, 2)


def mutated(holder: Any, name: str, old: str, new: str) -> Any:
    """A function of a module or class with one piece of its source replaced."""
    function = inspect.unwrap(inspect.getattr_static(holder, name))
    source = inspect.cleandoc("\n" + inspect.getsource(function)) if inspect.isclass(holder) else inspect.getsource(function)
    assert source.count(old) == 1, f"{name} has no single {old!r}"
    space = dict(vars(inspect.getmodule(function)))
    exec(compile(source.replace(old, new), f"<mutated {name}>", "exec"), space)
    return space[name]


def plain_kernels(old: str = "", new: str = "") -> ModuleType:
    """The network kernels as plain Python, with one piece of their source replaced everywhere."""
    source = Path(network_kernels.__file__).read_text(encoding="utf-8")
    assert old == "" or old in source
    source = source.replace("@_entry\n", "").replace("@_inner\n", "")
    module = ModuleType("plain_kernels")
    module.__package__ = network_kernels.__package__
    exec(compile(source.replace(old, new) if old else source, "<kernels>", "exec"), vars(module))
    return module
