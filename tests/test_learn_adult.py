"""The study on Adult, in its quick form: every curve above what a trial reached, each with its own guarantee."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("OMOKAGE_DATA", "")) / "adult"

pytestmark = [pytest.mark.slow, pytest.mark.data]


@pytest.fixture(scope="module")
def shown():
    """The table that ``experiments/dp_adult.py --quick`` prints, for the ε that are asked for here."""
    if not os.environ.get("OMOKAGE_DATA") or not FOLDER.is_dir():
        pytest.skip("OMOKAGE_DATA has no adult folder")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "experiments"))
        study = importlib.import_module("dp_adult")
        patch.setattr(study, "QUICK_EPSILONS", (0.1, 1.0))
        patch.setattr(sys, "argv", ["dp_adult.py", "--quick"])
        with contextlib.redirect_stdout(printed):
            study.main()
    rows = [line.strip("| ").split(" | ") for line in printed.getvalue().splitlines()[2:]]
    return {(r[0], r[1]): [float(cell.split(" ± ")[0]) for cell in r[2:4]] for r in rows}


@pytest.mark.parametrize(
    ("curve", "epsilon", "accuracy", "macro_f"),
    [
        ("not private, the paper's network", "–", 0.84, 0.77),
        ("not private, softmax regression", "–", 0.845, 0.77),
        ("AnonymizingFirst, attribute × label", "1", 0.78, 0.73),
        ("AnonymizingFirst, forest of marginals", "1", 0.82, 0.75),
        ("AnonymizedLearning, element-wise clip", "0.1", 0.81, 0.73),
        ("AnonymizedLearning, element-wise clip", "1", 0.84, 0.76),
        ("AnonymizedLearning, L1 clip", "1", 0.81, 0.71),
        ("DP-SGD", "0.1", 0.805, 0.71),
        ("DP-SGD", "1", 0.835, 0.75),
    ],
)
def test_curves_reach_what_they_should(shown, curve, epsilon, accuracy, macro_f):
    found = shown[curve, epsilon]
    assert found[0] > accuracy
    assert found[1] > macro_f


def test_majority_class_is_the_floor(shown):
    assert 0.74 < shown["majority class", "–"][0] < 0.76
