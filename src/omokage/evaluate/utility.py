"""Utility: a model learned from the release, tried on originals it has not seen (DR paper, equation 1: Uti = F_ano / F_ori).

Two tests, because the paper does not say which it used: on held-out originals as they are, and on held-out originals sent
through the published map and back (an analyst who knows the map can do that).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from ..base.matrix import Labels
from ..base.words import counted
from ..errors import InputError
from .linked import Linked

Task = Literal["classification", "regression"]


def _boosting(task: Task, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    made = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    return made(random_state=seed)


def _logistic(task: Task, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300) if task == "classification" else Ridge())


def _forest(task: Task, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    made = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return made(200, n_jobs=-1, random_state=seed)


def _network(task: Task, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = MLPClassifier if task == "classification" else MLPRegressor
    return make_pipeline(StandardScaler(), made((128,), max_iter=40, early_stopping=True, random_state=seed))


MODELS: dict[str, Callable[[Task, int], Any]] = {
    "boosting": _boosting,
    "logistic": _logistic,
    "forest": _forest,
    "network": _network,
}
RANGES = {"r2": (-np.inf, 1.0), "mae": (0.0, np.inf)}  # what a score can be; the others are shares


@dataclass(frozen=True)
class Score:
    """A mean over repeated splits with its interval (Student's t; equal ends for a single split)."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Utility:
    """Scores of one kind of model: learned from originals, from the release, and from the release but tried through the map.

    ``ratio`` is Uti = F_ano / F_ori (R² for regression). ``through_map`` is None where no fitted map is at hand. ``held_out``
    says whether the test rows were kept out of the release (True), or it was made with them (False).
    """

    model: str
    task: Task
    splits: int
    original: dict[str, Score]
    released: dict[str, Score]
    through_map: dict[str, Score] | None
    ratio: Score
    held_out: bool


def task_of(y: NDArray[Any]) -> Task:
    """Regression for numbers with many values, else classification."""
    return "regression" if y.dtype.kind == "f" and len(np.unique(y)) > 20 else "classification"


def target_values(both: Linked, target: str) -> NDArray[Any]:
    """The target of each original; it must be a column that was released unchanged."""
    if target not in [column.name for column in both.published.unchanged]:
        raise InputError(f"the target {target!r} was not released unchanged: choose a column with the role keep or sensitive")
    column = both.column(target)
    if missing := column.null_count():
        raise InputError(f"the target {target!r} is missing in {counted(missing, 'row')}: fill it in or choose another one")
    return column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.cast(pl.String).to_list(), dtype=str)


def utility(
    both: Linked,
    *,
    target: Any,
    model: str = "boosting",
    splits: int = 3,
    test_share: float = 0.2,
    held_out: tuple[Any, Any] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    baseline: Utility | None = None,
) -> Utility:
    """Learn from the release, test on originals that the model has not seen.

    Parameters
    ----------
    both : Linked
        Originals and release, from :func:`~omokage.evaluate.link` or :func:`~omokage.evaluate.link_files`.
    target : str or (n,) array
        What to predict: a column that was released unchanged, or a value for each original.
    model : a name of :data:`~omokage.evaluate.MODELS`
    splits, test_share : int, float
        How often, and how many of, the originals are set aside to test on. The release was made with them.
    held_out : ((m, d) array, (m,) array) or None
        People who were not in the data, and their target: test on them instead, so that nothing of them is in the release.
        :func:`hold_out` splits a data set before you anonymize it.
    baseline : Utility or None
        An earlier result for the same originals, splits and model: saves learning from the originals again.
    """
    if model not in MODELS:
        raise InputError(f"there is no model {model!r}: choose {', '.join(MODELS)}")
    x, y = both.x, target_values(both, target) if isinstance(target, str) else np.asarray(target)
    task = task_of(y)
    if len(y) != len(x):
        raise InputError(f"the target has {counted(len(y), 'value')} for {counted(len(x), 'row')}: give one for each row")
    if task == "classification" and len(np.unique(y)) < 2:
        raise InputError("the target has one value only, so there is nothing to learn: choose another target")
    trials = _trials(both, y, task, splits, test_share, held_out, random_state)
    runs = [
        _one_trial(trial, both.through_map, model, task, random_state + i, baseline is None) for i, trial in enumerate(trials)
    ]
    plain = _summary([run[1] for run in runs], confidence)
    base = _summary([run[0] for run in runs if run[0] is not None], confidence) if baseline is None else baseline.original
    through = None if runs[0][2] is None else _summary([run[2] for run in runs if run[2] is not None], confidence)
    main = "f" if task == "classification" else "r2"
    against = [base[main].mean if run[0] is None else run[0][main] for run in runs]
    ratio = _score([run[1][main] / a if a else np.nan for run, a in zip(runs, against, strict=True)], confidence)
    return Utility(model, task, len(runs), base, plain, through, ratio, held_out is not None)


@dataclass(frozen=True)
class Trial:
    """Training rows before and after, their target, and originals to test on with theirs."""

    x: NDArray[Any]
    released: NDArray[Any]
    y: NDArray[Any]
    test_x: NDArray[Any]
    test_y: NDArray[Any]


Scores = dict[str, float]


def _trials(
    both: Linked, y: NDArray[Any], task: Task, splits: int, share: float, held_out: tuple[Any, Any] | None, seed: int
) -> list[Trial]:
    x, aligned = both.x, both.aligned
    if held_out is None:
        rows = _splits(y, task, splits, share, seed)
        return [Trial(x[train], aligned[train], y[train], x[test], y[test]) for train, test in rows]
    test_x, test_y = (np.asarray(each) for each in held_out)
    if test_x.ndim != 2 or test_x.shape[1] != x.shape[1] or len(test_x) != len(test_y):
        raise InputError(
            f"held_out has shapes {test_x.shape} and {test_y.shape}: give rows of {counted(x.shape[1], 'column')} and one "
            "target for each"
        )
    return [Trial(x, aligned, y, test_x, test_y)]


def hold_out(target: Any, *, test_share: float = 0.2, random_state: int = 0) -> tuple[Labels, Labels]:
    """Row numbers to anonymize and to test on; every class of the target is in both where it has two rows or more."""
    y = np.asarray(target)
    return _splits(y, task_of(y), 1, test_share, random_state)[0]


def _splits(y: NDArray[Any], task: Task, splits: int, share: float, seed: int) -> list[tuple[Labels, Labels]]:
    if splits < 1:
        raise InputError(f"splits is {splits}: give a whole number from 1")
    if task == "classification" and np.unique(y, return_counts=True)[1].min() >= 2:
        return list(StratifiedShuffleSplit(splits, test_size=share, random_state=seed).split(y, y))
    return list(ShuffleSplit(splits, test_size=share, random_state=seed).split(y))


def _one_trial(
    trial: Trial,
    through: Callable[[NDArray[Any]], NDArray[Any]] | None,
    model: str,
    task: Task,
    seed: int,
    with_originals: bool,
) -> tuple[Scores | None, Scores, Scores | None]:
    """Scores of a model of the originals, of the release, and of the release tried through the map."""
    base = None
    if with_originals:
        base = scores(trial.test_y, fit_model(model, task, seed, trial.x, trial.y).predict(trial.test_x), task)
    learned = fit_model(model, task, seed, trial.released, trial.y)
    plain = scores(trial.test_y, learned.predict(trial.test_x), task)
    mapped = None if through is None else scores(trial.test_y, learned.predict(through(trial.test_x)), task)
    return base, plain, mapped


def fit_model(model: str, task: Task, seed: int, x: NDArray[Any], y: NDArray[Any]) -> Any:
    """A model by name, fitted; one that has not settled after its iterations is used as it is."""
    if model not in MODELS:
        raise InputError(f"there is no model {model!r}: choose {', '.join(MODELS)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MODELS[model](task, seed).fit(x, y)


def scores(truth: NDArray[Any], guess: NDArray[Any], task: Task) -> Scores:
    """Accuracy and macro F, precision, recall; or R² and mean absolute error.

    Examples
    --------
    >>> import numpy as np
    >>> scores(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), "classification")["accuracy"]
    0.75
    """
    from sklearn.metrics import accuracy_score, mean_absolute_error, precision_recall_fscore_support, r2_score

    if task == "regression":
        return {"r2": float(r2_score(truth, guess)), "mae": float(mean_absolute_error(truth, guess))}
    precision, recall, f, _ = precision_recall_fscore_support(truth, guess, average="macro", zero_division=0)
    return {
        "accuracy": float(accuracy_score(truth, guess)),
        "f": float(f),
        "precision": float(precision),
        "recall": float(recall),
    }


def _summary(runs: Sequence[Scores], confidence: float) -> dict[str, Score]:
    return {name: _score([run[name] for run in runs], confidence, RANGES.get(name, (0.0, 1.0))) for name in runs[0]}


def _score(values: Sequence[float], confidence: float, within: tuple[float, float] = (-np.inf, np.inf)) -> Score:
    mean = float(np.mean(values))
    if len(values) < 2:
        return Score(mean, (mean, mean))
    half = float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Score(mean, (max(mean - half, within[0]), min(mean + half, within[1])))
