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
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from ..errors import InputError
from ..method.anonymizer import Anonymizer
from ..release.release import Release
from .linked import Linked, link

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
SCORES: dict[Task, tuple[str, ...]] = {
    "classification": ("accuracy", "f", "precision", "recall"),
    "regression": ("r2", "mae"),
}


@dataclass(frozen=True)
class Score:
    """A mean over repeated splits with its interval (Student's t; equal ends for a single split)."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Utility:
    """Scores of one kind of model: learned from originals, from the release, and from the release but tried through the map.

    ``ratio`` is Uti = F_ano / F_ori (R² for regression). ``through_map`` is None where there is no map. ``regrouped`` says
    whether held-out rows were kept out of the groups (True), or the release was made with them (False).
    """

    model: str
    task: Task
    splits: int
    original: dict[str, Score]
    released: dict[str, Score]
    through_map: dict[str, Score] | None
    ratio: Score
    regrouped: bool


def task_of(y: NDArray[Any]) -> Task:
    """Regression for numbers with many values, else classification."""
    return "regression" if y.dtype.kind == "f" and len(np.unique(y)) > 20 else "classification"


def utility(
    original: Any,
    target: Any,
    by: Anonymizer | Release | Linked,
    *,
    model: str = "boosting",
    splits: int = 3,
    test_share: float = 0.2,
    confidence: float = 0.95,
    random_state: int = 0,
    baseline: Utility | None = None,
) -> Utility:
    """Learn from the release, test on held-out originals.

    With an :class:`Anonymizer` (arrays) only the training rows are anonymized: nothing of the test rows is in the release.
    With a finished release, the released rows of the training part are learned from; the groups had test rows among them.
    ``baseline``, an earlier result for the same originals, splits and model, saves learning from the originals again.
    """
    if model not in MODELS:
        raise InputError(f"there is no model {model!r}: they are {', '.join(MODELS)}")
    y = np.asarray(target)
    task = task_of(y)
    x, release_train = _source(original, by)
    if len(y) != len(x):
        raise InputError(f"the target has {len(y)} values for {len(x)} rows")
    if task == "classification" and len(np.unique(y)) < 2:
        raise InputError("the target has one value only: there is nothing to learn")
    runs = [
        _one_split(x, y, release_train, train, test, model, task, random_state + i, baseline is None)
        for i, (train, test) in enumerate(_splits(y, task, splits, test_share, random_state))
    ]
    plain = _summary([run[1] for run in runs], confidence)
    base = _summary([run[0] for run in runs if run[0] is not None], confidence) if baseline is None else baseline.original
    through = None if runs[0][2] is None else _summary([run[2] for run in runs if run[2] is not None], confidence)
    main = "f" if task == "classification" else "r2"
    against = [base[main].mean if run[0] is None else run[0][main] for run in runs]
    ratio = _score([run[1][main] / a if a else np.nan for run, a in zip(runs, against, strict=True)], confidence)
    return Utility(model, task, splits, base, plain, through, ratio, isinstance(by, Anonymizer))


Made = tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]] | None]
Scores = dict[str, float]


def _source(original: Any, by: Any) -> tuple[NDArray[Any], Callable[[Any], Made]]:
    """The originals as a matrix, and a function from training rows to what an analyst gets for them."""
    if isinstance(by, Anonymizer):
        x = np.asarray(original)

        def anonymize(train: Any) -> Made:
            release = by.release(x[train])
            return release.data[release.key.rows], release.through_map

        return x, anonymize
    both = link(original, by)
    aligned = both.aligned
    through = by.through_map if isinstance(by, Release) else None
    return both.x, lambda train: (aligned[train], through)


def _splits(y: NDArray[Any], task: Task, splits: int, share: float, seed: int) -> list[tuple[Any, Any]]:
    if splits < 1:
        raise InputError(f"splits must be at least 1, but it is {splits}")
    if task == "classification" and np.unique(y, return_counts=True)[1].min() >= 2:
        return list(StratifiedShuffleSplit(splits, test_size=share, random_state=seed).split(y, y))
    return list(ShuffleSplit(splits, test_size=share, random_state=seed).split(y))


def _one_split(
    x: NDArray[Any],
    y: NDArray[Any],
    released: Callable[[Any], Made],
    train: Any,
    test: Any,
    model: str,
    task: Task,
    seed: int,
    with_originals: bool,
) -> tuple[Scores | None, Scores, Scores | None]:
    """Scores of a model of the originals, of the release, and of the release tried through the map."""
    given, through = released(train)
    base = None
    if with_originals:
        base = scores(y[test], fit_model(model, task, seed, x[train], y[train]).predict(x[test]), task)
    learned = fit_model(model, task, seed, given, y[train])
    plain = scores(y[test], learned.predict(x[test]), task)
    mapped = None if through is None else scores(y[test], learned.predict(through(x[test])), task)
    return base, plain, mapped


def fit_model(model: str, task: Task, seed: int, x: NDArray[Any], y: NDArray[Any]) -> Any:
    """A model by name, fitted; one that has not settled after its iterations is used as it is."""
    if model not in MODELS:
        raise InputError(f"there is no model {model!r}: they are {', '.join(MODELS)}")
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
    return {name: _score([run[name] for run in runs], confidence) for name in runs[0]}


def _score(values: Sequence[float], confidence: float) -> Score:
    mean = float(np.mean(values))
    if len(values) < 2:
        return Score(mean, (mean, mean))
    half = float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Score(mean, (mean - half, mean + half))
