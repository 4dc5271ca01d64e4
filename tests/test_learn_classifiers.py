"""Every learner keeps scikit-learn's contract, says what it promises, and fails where it must."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from learn_checks import LEARNERS as SMALL_LEARNERS
from learn_checks import SMALL, check_one_class_trains, rows_of
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score

from omokage.errors import InputError, MissingExtra, TableError
from omokage.learn import (
    APPROACHES,
    DPSGD,
    AnonymizedLearning,
    AnonymizingFirst,
    Categorical,
    LearningFirst,
    NotPrivateWarning,
    Numeric,
    Schema,
)

LEARNERS = {
    "anonymizing-first": AnonymizingFirst(5.0, epochs=3),
    "anonymizing-first, label": AnonymizingFirst(5.0, marginals="label", epochs=3),
    "learning-first": LearningFirst(100.0, epochs=3),
    "anonymized-learning": AnonymizedLearning(5.0),
    "anonymized-learning, element": AnonymizedLearning(5.0, sensitivity="element"),
    "anonymized-learning, interval": AnonymizedLearning(50.0, sensitivity="interval", hidden=(4,), learning_rate=0.1),
    "dp-sgd": DPSGD(5.0, epochs=30),
    "dp-sgd, hidden": DPSGD(5.0, epochs=30, hidden=(6,)),
}
every = pytest.mark.parametrize("learner", LEARNERS.values(), ids=list(LEARNERS))
SCHEMA = Schema(
    (Numeric("age", 0, 100, cuts=(30, 60), whole=True), Numeric("hours", 0, 80), Categorical("job", ("a", "b", "c"))),
    "rich",
    ("no", "yes"),
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 4))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0.65).astype(int)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    age, hours = rng.integers(0, 100, 1500), rng.random(1500) * 80
    frame = pl.DataFrame({"age": age, "hours": hours, "job": rng.choice(["a", "b", "c"], 1500), "id": np.arange(1500)})
    return frame, np.where(age > 55, "yes", "no")


def test_the_list_is_complete():
    assert {learner.approach for learner in LEARNERS.values()} == set(APPROACHES)


def seeded(learner, X, y):
    """Fitted with known noise, so that a score is the same in every run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return clone(learner).set_params(random_state=0, noise_seed=0).fit(X, y)


@every
def test_contract(learner, data):
    X, y = data
    assert is_classifier(learner)
    fitted = clone(learner).set_params(random_state=0)
    params = fitted.get_params()
    assert fitted.fit(X, y) is fitted
    assert fitted.get_params() == params  # fit assigns no parameter
    assert clone(fitted).get_params() == params
    proba = fitted.predict_proba(X)
    assert proba.shape == (1500, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert set(fitted.predict(X)) <= {0, 1}
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.n_features_in_ == 4
    if "interval" not in getattr(learner, "sensitivity", ""):
        assert seeded(learner, X, y).score(X, y) > 0.75


@every
def test_the_statement_says_what_is_promised(learner, data):
    X, y = data
    privacy = clone(learner).fit(X, y).privacy_
    assert privacy.private
    assert privacy.adjacency == "replace-one"
    assert privacy.records == 1500
    assert privacy.epsilon <= privacy.epsilon_naive * (1 + 1e-9)
    assert privacy.epsilon_rdp >= privacy.epsilon * (1 - 1e-4)
    assert any(text.startswith("epochs=") for text in privacy.public)
    whole_model = privacy.epsilon_per_parameter is None
    assert whole_model == (learner.approach in {"anonymizing-first", "dp-sgd"} or learner.get_params().get("sensitivity") == "l1")
    if whole_model:
        assert privacy.epsilon <= learner.epsilon * (1 + 1e-6)
    else:
        assert privacy.epsilon_naive == pytest.approx(learner.epsilon * privacy.parameters)


@every
def test_tables_work_like_matrices(learner, table):
    frame, y = table
    fitted = clone(learner).set_params(schema=SCHEMA, random_state=0).fit(frame, y)
    answers = fitted.predict(frame)
    assert set(answers) <= {"no", "yes"}
    from_pandas = fitted.predict(pd.DataFrame({name: frame[name].to_list() for name in frame.columns}))
    assert (answers == from_pandas).all()
    assert (answers == fitted.predict({name: frame[name].to_list() for name in frame.columns})).all()


@every
def test_noise_is_fresh_unless_seeded_and_then_not_private(learner, data):
    X, y = data
    a, b = (clone(learner).set_params(random_state=0).fit(X, y).network_.theta for _ in range(2))
    assert (a != b).any()
    seeded = []
    for _ in range(2):
        with pytest.warns(NotPrivateWarning, match="known seed"):
            seeded.append(clone(learner).set_params(random_state=0, noise_seed=1).fit(X, y))
    assert (seeded[0].network_.theta == seeded[1].network_.theta).all()
    assert not seeded[0].privacy_.private


@every
def test_bounds_from_the_data_warn_on_every_fit(learner, data):
    X, y = data
    model = clone(learner).set_params(bounds="data")
    for _ in range(2):
        with pytest.warns(NotPrivateWarning, match="bounds were taken from the data"):
            model.fit(X, y)
        assert not model.privacy_.private
        assert model.privacy_.lines()[1].startswith("whole model: NOT PRIVATE")


def test_classes_from_the_data_warn(data):
    X, y = data
    with pytest.warns(NotPrivateWarning, match="classes"):
        model = DPSGD(classes="data", epochs=3).fit(X, np.array(["b", "a"])[y])
    assert model.classes_.tolist() == ["a", "b"]


def test_declared_classes_may_be_many(data):
    X, y = data
    model = DPSGD(5.0, classes=["x", "y", "z"]).fit(X, np.array(["x", "z"])[y])
    assert model.predict_proba(X).shape == (1500, 3)


def test_nothing_public_depends_on_the_data(data):
    """Declared bounds clip: a value beyond them changes nothing against the bound itself."""
    X, y = data
    far = X.copy()
    far[3, 0] = 1e6
    near = X.copy()
    near[3, 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        fits = [DPSGD(noise_seed=1, random_state=0, epochs=3).fit(Z, y).network_.theta for Z in (far, near)]
    assert (fits[0] == fits[1]).all()


@every
def test_three_classes(learner, data):
    X, _ = data
    y = np.digitize(X[:, 0], [0.33, 0.67])
    fitted = seeded(clone(learner).set_params(classes=(0, 1, 2)), X, y)
    assert fitted.predict_proba(X).shape == (1500, 3)
    if "interval" not in getattr(learner, "sensitivity", ""):
        assert fitted.score(X, y) > 0.45  # a third is chance


def test_the_papers_intervals_are_found_under_their_name(data):
    with pytest.raises(InputError, match='sensitivity="interval"'):
        AnonymizedLearning(bounds="interval").fit(*data)


def test_cross_validation_runs(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        assert cross_val_score(DPSGD(5.0, epochs=20, noise_seed=0), X, y, cv=3).mean() > 0.75


@every
@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), 10**400, "1", True, None])
def test_epsilon_must_be_positive(learner, epsilon, data):
    with pytest.raises(InputError, match=r"^epsilon is .*: give a number above 0"):
        clone(learner).set_params(epsilon=epsilon).fit(*data)


@every
def test_bad_data_are_refused(learner, data):
    X, y = data
    learner = clone(learner)
    broken = X.copy()
    broken[7, 2] = np.nan
    with pytest.raises(InputError, match="row 8"):
        learner.fit(broken, y)
    with pytest.raises(InputError, match="label is missing in 1 row, first in row 5: drop"):
        learner.fit(X, [None if i == 4 else int(v) for i, v in enumerate(y)])
    with pytest.raises(InputError, match="not one of the declared classes"):
        learner.fit(X, y + 1)
    with pytest.raises(InputError, match="rows but"):
        learner.fit(X, y[:-1])
    with pytest.raises(InputError, match="one for each row"):
        learner.fit(X, [[0], *y[1:]])
    with pytest.raises(InputError, match="matrix"):
        learner.fit(X[:, 0], y)
    with pytest.raises(InputError, match="bounds do not fit 4 columns"):
        clone(learner).set_params(bounds=[(0, 1)] * 3).fit(X, y)
    with pytest.raises(InputError, match="rise"):
        clone(learner).set_params(bounds=(1.0, 0.0)).fit(X, y)


@pytest.mark.parametrize(
    ("learner", "word"),
    [
        (DPSGD(epochs=0), "epochs"),
        (DPSGD(clip=-1.0), "clip"),
        (DPSGD(delta=0.0), "delta"),
        (DPSGD(clip=1e-40), "clip"),
        (DPSGD(clip=True), "clip"),
        (DPSGD(decay=-1.0), "decay"),
        (DPSGD(hidden=4), "hidden"),
        (DPSGD(hidden=(10**9,)), "hidden"),
        (DPSGD(tuned=None), "tuned"),
        (DPSGD(random_state=-1), "random_state"),
        (DPSGD(noise_seed=1.5), "noise_seed"),
        (LearningFirst(bias_range=1.0), "bias_range"),
        (LearningFirst(bias_range=(0.0, 1e-200)), "bias_range"),
        (AnonymizingFirst(bins=True), "bins"),
        (DPSGD(momentum=1.0), "momentum"),
        (DPSGD(hidden=(0,)), "hidden"),
        (DPSGD(batch_size=0), "batch_size"),
        (DPSGD(schema="adult.toml"), "schema"),
        (DPSGD(bounds="public"), "bounds"),
        (DPSGD(classes="all"), "classes"),
        (DPSGD(classes=[1, 1]), "classes"),
        (AnonymizedLearning(sensitivity="l2"), "sensitivity"),
        (AnonymizedLearning(momentum=-0.1), "momentum"),
        (LearningFirst(weight_range=(1.0, 1.0)), "weight_range"),
        (LearningFirst(learning_rate=0.0), "learning_rate"),
        (AnonymizingFirst(marginals="all"), "marginals"),
        (AnonymizingFirst(rows=0), "rows"),
    ],
)
def test_bad_settings_are_named(learner, word, data):
    with pytest.raises(InputError, match=word):
        learner.fit(*data)


@pytest.mark.parametrize("learner", SMALL_LEARNERS.values(), ids=list(SMALL_LEARNERS))
def test_one_class_is_learned_from_as_its_neighbour_is(learner):
    """The attack: a table of one class aborted and its neighbour trained, an outcome with ε = ∞."""
    check_one_class_trains(clone(learner))


@pytest.mark.parametrize("learner", SMALL_LEARNERS.values(), ids=list(SMALL_LEARNERS))
@pytest.mark.parametrize("labels", [["no"], ["yes"], ["no", "no"], ["no", "yes"]], ids="-".join)
def test_every_small_table_of_the_schema_is_learned_from(learner, labels):
    """All rows alike, one row, two rows: nothing in the range of the schema is refused, and no warning tells it apart."""
    frame = rows_of(labels)
    same = pl.concat([frame[:1]] * len(labels)).with_columns(rich=pl.Series(labels))
    for table in (frame, same):
        fitted = clone(learner).fit(table, table["rich"])
        assert fitted.privacy_.records == len(labels)
        assert np.isfinite(fitted.predict_proba(frame)).all()


@pytest.mark.parametrize("learner", SMALL_LEARNERS.values(), ids=list(SMALL_LEARNERS))
def test_no_rows_are_refused(learner):
    with pytest.raises(InputError, match="no rows"):
        clone(learner).fit(rows_of([]), [])


def test_a_private_training_that_would_diverge_tells_nothing():
    """LearningFirst's training is not private; that it diverged would be an outcome without noise."""
    frame = rows_of(["no", "yes"] * 20)
    for rate in (1e200, 1e299):
        fitted = LearningFirst(1.0, schema=SMALL, learning_rate=rate, decay=1e200, epochs=3).fit(frame, frame["rich"])
        assert (np.abs(fitted.network_.theta) <= 0.2).all()


@every
def test_delta_must_be_below_one_over_the_rows(learner, data):
    """Their number is public and the same for both neighbours, so this refusal tells nothing."""
    X, y = data
    with pytest.raises(InputError, match=r"delta=0\.001 is too large"):
        clone(learner).set_params(delta=0.001).fit(X, y)
    with pytest.raises(InputError, match="publishes one of 1,500 rows"):
        clone(learner).set_params(delta=1 / 1500).fit(X, y)
    assert clone(learner).fit(X[:200], y[:200]).privacy_.delta == 1e-5


def test_delta_follows_the_number_of_rows_unless_given():
    learner = AnonymizedLearning(1.0, epochs=1)
    X = np.random.default_rng(0).random((200_000, 1))
    assert learner.fit(X, np.arange(200_000) % 2).privacy_.delta == 0.5 / 200_000
    assert learner.delta is None


@every
def test_delta_zero_is_right_for_the_pure_approaches(learner, data):
    X, y = data
    learner = clone(learner).set_params(delta=0)
    if learner.approach == "dp-sgd":
        with pytest.raises(InputError, match="no meaning for Gaussian noise"):
            learner.fit(X, y)
        return
    privacy = learner.fit(X, y).privacy_
    assert privacy.delta == 0.0
    assert privacy.epsilon == privacy.epsilon_naive
    assert privacy.epsilon_rdp is None
    exact = learner.approach != "anonymized-learning"
    assert ("δ = 0" if exact else "δ < 1e-") in privacy.lines()[1]
    assert ("δ = 0" in privacy.lines()[1]) == exact


@pytest.mark.parametrize(
    ("module", "learner"),
    [
        ("dp_accounting.pld.privacy_loss_distribution", DPSGD()),
        ("opendp.prelude", AnonymizingFirst()),
        ("opendp.prelude", LearningFirst()),
    ],
    ids=["accounting", "anonymizing-first", "learning-first"],
)
def test_a_missing_extra_is_noticed_before_the_data(module, learner, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"omokage\[dp\]"):
        learner.fit(object(), object())  # what cannot be read would be the next error


def test_settings_are_checked_before_the_data():
    with pytest.raises(InputError, match="epsilon"):
        DPSGD(epsilon=-1.0).fit(object(), object())
    with pytest.raises(InputError, match="delta"):
        DPSGD(delta=2.0).fit(object(), object())


def test_prediction_refuses_what_it_does_not_know(table):
    frame, y = table
    model = DPSGD(schema=SCHEMA, epochs=3).fit(frame, y)
    strange = frame.with_columns(job=pl.lit("zookeeper"))
    with pytest.raises(TableError, match=r"'job' has 1,500 values outside of the declared") as caught:
        model.predict(strange)
    assert "zookeeper" not in str(caught.value)  # no cell of the input in a message
    with pytest.raises(TableError, match="'hours'"):
        model.predict(frame.drop("hours"))
    with pytest.raises(TableError, match="no usable number in row 1"):
        model.predict(frame.with_columns(hours=pl.lit(None, pl.Float64)))
    with pytest.raises(TableError, match="declared numeric"):
        model.predict(frame.with_columns(hours=pl.lit("many")))
    with pytest.raises(InputError, match="named columns"):
        model.predict(np.ones((3, 4)))
    tolerant = Schema((*SCHEMA.columns[:2], Categorical("job", ("a", "b", "c"), other="c")), "rich", ("no", "yes"))
    assert len(DPSGD(schema=tolerant, epochs=3).fit(frame, y).predict(strange)) == 1500


def test_diverging_training_is_an_error(data):
    with pytest.raises(InputError, match="diverged"):
        DPSGD(learning_rate=1e300, decay=1e300, epochs=9).fit(*data)


def test_synthetic_table_has_the_schema_and_no_real_row(table):
    frame, y = table
    model = AnonymizingFirst(3.0, schema=SCHEMA, rows=700, epochs=2)
    assert model.fit(frame, y).synthetic_.height == 700
    synthetic = seeded(model, frame, y).synthetic_
    assert synthetic.columns == ["age", "hours", "job", "rich"]
    assert synthetic.height == 700
    assert synthetic["age"].dtype == pl.Int64
    assert synthetic["age"].is_between(0, 100).all()
    assert set(synthetic["job"]) <= {"a", "b", "c"}
    other = seeded(DPSGD(10.0, schema=SCHEMA), synthetic, synthetic["rich"])  # any other learner may use it
    assert other.score(frame, y) > 0.8
