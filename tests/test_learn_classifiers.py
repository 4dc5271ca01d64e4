"""Every learner keeps scikit-learn's contract, says what it promises, and fails where it must."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score

from omokage.errors import InputError, TableError
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


@every
def test_contract(learner, data):
    X, y = data
    assert is_classifier(learner)
    params = learner.get_params()
    fitted = clone(learner).set_params(random_state=0)
    assert fitted.fit(X, y) is fitted
    assert clone(learner).get_params() == params  # fit assigns no parameter
    proba = fitted.predict_proba(X)
    assert proba.shape == (1500, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert set(fitted.predict(X)) <= {0, 1}
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.n_features_in_ == 4
    if "interval" not in getattr(learner, "sensitivity", ""):
        assert fitted.score(X, y) > 0.75


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
    fitted = clone(learner).set_params(classes=(0, 1, 2)).fit(X, y)
    assert fitted.predict_proba(X).shape == (1500, 3)
    if "interval" not in getattr(learner, "sensitivity", ""):
        assert fitted.score(X, y) > 0.45  # a third is chance


def test_the_papers_intervals_are_found_under_their_name(data):
    with pytest.raises(InputError, match='sensitivity="interval"'):
        AnonymizedLearning(bounds="interval").fit(*data)


def test_cross_validation_runs(data):
    X, y = data
    assert cross_val_score(DPSGD(5.0, epochs=20), X, y, cv=3).mean() > 0.75


@every
@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf")])
def test_epsilon_must_be_positive(learner, epsilon, data):
    with pytest.raises(InputError, match="epsilon must be"):
        clone(learner).set_params(epsilon=epsilon).fit(*data)


@every
def test_bad_data_are_refused(learner, data):
    X, y = data
    learner = clone(learner)
    broken = X.copy()
    broken[7, 2] = np.nan
    with pytest.raises(InputError, match="row 8"):
        learner.fit(broken, y)
    with pytest.raises(InputError, match="one class"):
        learner.fit(X, np.zeros(len(X), int))
    with pytest.raises(InputError, match="label is missing in 1 rows, first in row 5"):
        learner.fit(X, [None if i == 4 else int(v) for i, v in enumerate(y)])
    with pytest.raises(InputError, match="not one of the declared classes"):
        learner.fit(X, y + 1)
    with pytest.raises(InputError, match="rows but"):
        learner.fit(X, y[:-1])
    with pytest.raises(InputError, match="matrix"):
        learner.fit(X[:, 0], y)
    with pytest.raises(InputError, match="bounds must be"):
        clone(learner).set_params(bounds=[(0, 1)] * 3).fit(X, y)
    with pytest.raises(InputError, match="rise"):
        clone(learner).set_params(bounds=(1.0, 0.0)).fit(X, y)


@pytest.mark.parametrize(
    ("learner", "word"),
    [
        (DPSGD(epochs=0), "epochs"),
        (DPSGD(clip=-1.0), "clip"),
        (DPSGD(delta=0.0), "delta"),
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


def test_prediction_refuses_what_it_does_not_know(table):
    frame, y = table
    model = DPSGD(schema=SCHEMA, epochs=3).fit(frame, y)
    strange = frame.with_columns(job=pl.lit("zookeeper"))
    with pytest.raises(TableError, match=r"'job' has 1500 values that are not declared") as caught:
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
    model = AnonymizingFirst(3.0, schema=SCHEMA, rows=700, epochs=2).fit(frame, y)
    synthetic = model.synthetic_
    assert synthetic.columns == ["age", "hours", "job", "rich"]
    assert synthetic.height == 700
    assert synthetic["age"].dtype == pl.Int64
    assert synthetic["age"].is_between(0, 100).all()
    assert set(synthetic["job"]) <= {"a", "b", "c"}
    other = DPSGD(100.0, schema=SCHEMA).fit(synthetic, synthetic["rich"])  # any other learner may use it
    assert other.score(frame, y) > 0.8
