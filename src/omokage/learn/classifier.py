"""What the four learners share: public inputs, labels, predictions, and the statement of what is promised.

A learner follows scikit-learn: the constructor stores, ``fit`` checks and learns, learned state ends in
``_``. Everything that shapes the mechanism is a constructor argument and therefore public. Nothing is read
from the data, unless the user asks for it with ``bounds="data"`` or ``classes="data"``; every such fit warns
and its result is marked as not private.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from omokage.base.words import counted
from omokage.errors import InputError
from omokage.learn.accounting import dp_accounting, pld_epsilon
from omokage.learn.network import Network, initial_network
from omokage.learn.noise import NoiseSource, opendp
from omokage.learn.parts import Part
from omokage.learn.privacy import Privacy
from omokage.learn.records import as_frame, label_codes
from omokage.learn.renyi import rdp_epsilon
from omokage.learn.schema import Numeric, Schema, check_classes
from omokage.learn.settings import check_delta, check_epsilon, check_hidden, check_seed
from omokage.learn.steps import Step, naive_delta, naive_epsilon, sampler_distance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOT_STATED = "not stated; settings chosen by looking at these data would not be covered"
_DELTA = 1e-5  # unless a δ is given; half of one over the number of rows if that is smaller
_SETTINGS_NOT_PUBLIC = {"random_state", "noise_seed", "schema", "bounds", "classes", "tuned"}


class NotPrivateWarning(UserWarning):
    """Something that should be declared was taken from the data, or the noise is not secret: no guarantee."""


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, BaseEstimator):
    """Base of the learners; subclasses learn a network and list the noisy steps that they took.

    Fields are the settings: a dataclass writes the constructor, which stores them and does nothing else.
    """

    approach: ClassVar[str]
    uses_opendp: ClassVar[bool] = False  # whether its noise comes from OpenDP

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    bounds: Any = (0.0, 1.0)
    schema: Schema | None = None
    classes: Any = None
    hidden: Sequence[int] = ()
    tuned: str = NOT_STATED
    random_state: int | None = None
    noise_seed: int | None = None

    network_: Network = field(init=False)
    privacy_: Privacy = field(init=False)
    schema_: Schema = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    n_features_in_: int = field(init=False)
    settings_: dict[str, Any] = field(init=False)  # settings that were left open, as a fit settled them

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from a table (with ``schema``) or from a matrix (with ``bounds``)."""
        self.check()
        caveats: list[str] = []
        self.schema_ = self._public_schema(X, y, caveats)
        if self.noise_seed is not None:
            caveats.append("the noise was drawn from a known seed")
        labels = label_codes(y, self.schema_.classes)
        frame = self._frame(X)
        inputs = self.schema_.encode(frame)
        if len(inputs) != len(labels):
            raise InputError(
                f"there are {counted(len(inputs), 'row')} but {counted(len(labels), 'label')}: give one label for each row"
            )
        if not len(inputs):
            raise InputError("the table has no rows: give at least one to learn from")
        self.settings_ = {"delta": self._delta(len(inputs))}
        self.classes_ = np.array(self.schema_.classes)
        self.n_features_in_ = len(self.schema_.columns)
        rng = np.random.default_rng(self.random_state)
        source = NoiseSource(self.noise_seed)
        self.network_, steps = self._learn(frame, inputs, labels, rng, source)
        for caveat in caveats:
            warnings.warn(f"not private: {caveat}", NotPrivateWarning, stacklevel=2)
        self.privacy_ = self._statement(tuple(steps), len(inputs), tuple(caveats))
        return self

    def check(self) -> None:
        """Check all that can be checked before any data are read: every setting, and what is installed."""
        self.check_values()
        self._check_installed()

    def check_values(self) -> None:
        """Check every setting: ε, δ, and what this learner has."""
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        check_hidden(self.hidden)
        check_seed("random_state", self.random_state)
        check_seed("noise_seed", self.noise_seed)
        if not isinstance(self.tuned, str):
            raise InputError(
                f"tuned is of type {type(self.tuned).__name__}: give a sentence that says how the settings were chosen"
            )
        self._check_settings()

    def _check_installed(self) -> None:
        dp_accounting("pld.privacy_loss_distribution")
        if self.uses_opendp and self.noise_seed is None:
            opendp()

    def _delta(self, records: int) -> float:
        """δ for so many rows. Their number is public, and the same for both neighbours, so a refusal tells nothing."""
        if self.delta is None:
            return min(_DELTA, 0.5 / records)
        if self.delta * records >= 1.0:
            why = f"a learner that publishes one of {counted(records, 'row')} at random would keep it"
            raise InputError(f"delta={self.delta:g} is too large, {why}: choose one far below {1 / records:.2g}")
        return float(self.delta)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, in the order of ``classes_``."""
        check_is_fitted(self, "network_")
        return self.network_.probabilities(self.schema_.encode(self._frame(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _learn(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Network, list[Step]]:
        """The network and its noisy steps."""
        raise NotImplementedError

    def _release(
        self, frame: pl.DataFrame, inputs: Floats, labels: Integers, rng: np.random.Generator, source: NoiseSource
    ) -> tuple[Floats, list[Step]]:
        """All that leaves, as one vector, for attacks; the last entry is the last bias where there is one."""
        network, steps = self._learn(frame, inputs, labels, rng, source)
        return network.theta, steps

    def _parts(self, rows: int) -> list[Part]:
        """Every kind of noisy step that a training on so many rows takes, for audits."""
        raise NotImplementedError

    def _settled(self) -> Self:
        """The same learner with the settings and the schema that a fit settled, so that audits see the same mechanism."""
        schema = self.schema if self.schema is not None else getattr(self, "schema_", None)
        if schema is None:
            raise InputError("the learner does not know its columns: give it a schema, or fit it first")
        learner = clone(self)
        learner.set_params(**getattr(self, "settings_", {}))
        learner.check()
        learner.schema_ = schema
        learner.settings_ = {}
        return learner

    def _check_settings(self) -> None:
        """Check what only this learner has."""

    def _per_parameter(self) -> tuple[float, bool] | None:
        """The paper's ε and whether it holds even in the paper's sense, where the approach has one."""
        return None

    def _noise_name(self) -> str:
        raise NotImplementedError

    def _statement(self, steps: tuple[Step, ...], records: int, caveats: tuple[str, ...]) -> Privacy:
        paper = self._per_parameter()
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in _SETTINGS_NOT_PUBLIC}
        settings.update(self.settings_)  # what was left open, as it was settled
        delta: float = self.settings_["delta"]
        return Privacy(
            approach=self.approach,
            private=not caveats,
            epsilon=pld_epsilon(steps, delta),
            delta=delta,
            epsilon_naive=naive_epsilon(steps),
            delta_naive=naive_delta(steps),
            epsilon_rdp=rdp_epsilon(steps, delta) if delta > 0.0 else None,
            epsilon_per_parameter=None if paper is None else paper[0],
            per_parameter_holds=None if paper is None else paper[1],
            parameters=self.network_.theta.size,
            records=records,
            steps=sum(s.count for s in steps),
            public=("number of rows", "columns, bounds, categories and classes of the schema", *_spell(settings)),
            tuned=self.tuned,
            noise=self._noise_name() if self.noise_seed is None else "known seed",
            sampler_distance=sampler_distance(steps),
            caveats=caveats,
        )

    def _public_schema(self, X: Any, y: Any, caveats: list[str]) -> Schema:
        if self.schema is not None:
            if not isinstance(self.schema, Schema):
                raise InputError(f"schema is of type {type(self.schema).__name__}: give a Schema, for example from load_schema")
            if self.classes is None:
                return self.schema
            return Schema(self.schema.columns, self.schema.target, self._declared_classes(y, caveats))
        matrix = _matrix(X)
        low, high = self._declared_bounds(matrix, caveats)
        columns = tuple(Numeric(f"x{j}", float(a), float(b)) for j, (a, b) in enumerate(zip(low, high, strict=True)))
        classes = (0, 1) if self.classes is None else self._declared_classes(y, caveats)
        return Schema(columns, "target", classes)

    def _declared_classes(self, y: Any, caveats: list[str]) -> tuple[Any, ...]:
        if isinstance(self.classes, str):
            if self.classes != "data":
                raise InputError(f"classes is {self.classes!r}: give a list of labels, or 'data'")
            caveats.append("the classes were taken from the data")
            return tuple(np.unique(np.asarray(y)).tolist())
        classes = tuple(c.item() if isinstance(c, np.generic) else c for c in self.classes)
        check_classes(classes)
        return classes

    def _declared_bounds(self, matrix: Floats, caveats: list[str]) -> tuple[Floats, Floats]:
        if isinstance(self.bounds, str):
            if self.bounds != "data":
                hint = '; the paper\'s intervals are sensitivity="interval"' if self.bounds == "interval" else ""
                raise InputError(f"bounds is {self.bounds!r}: give (low, high), one such pair for each column, or 'data'{hint}")
            caveats.append("the bounds were taken from the data")
            low, high = matrix.min(axis=0), matrix.max(axis=0)
            return low, np.where(high > low, high, low + 1.0)
        try:
            pairs = np.asarray(self.bounds, np.float64)
            pairs = np.broadcast_to(pairs, (matrix.shape[1], 2))
        except ValueError as error:
            columns = counted(matrix.shape[1], "column")
            raise InputError(f"bounds do not fit {columns}: give (low, high), or one such pair for each column") from error
        return pairs[:, 0], pairs[:, 1]

    def _frame(self, X: Any) -> pl.DataFrame:
        """The table itself, or a matrix with its columns named as in ``schema_``."""
        if self.schema is not None:
            return as_frame(X)
        matrix = _matrix(X)
        names = [c.name for c in self.schema_.columns]
        if matrix.shape[1] != len(names):
            raise InputError(
                f"X has {counted(matrix.shape[1], 'column')}: give the {len(names):,} that the learner was fitted on"
            )
        return pl.DataFrame(dict(zip(names, matrix.T, strict=True)))

    def _sizes(self, inputs: int) -> tuple[int, ...]:
        return (inputs, *(int(h) for h in self.hidden), len(self.schema_.classes))

    def _any_network(self) -> Network:
        """A network of the right sizes, for audits."""
        return initial_network(self._sizes(len(self.schema_.features)), np.random.default_rng(0))


def _matrix(X: Any) -> Floats:
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("X is not a matrix of numbers: give one, or a table with a schema") from error
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"X has shape {matrix.shape}: give a matrix with rows and columns")
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise InputError(f"X has NaN or infinity, first in row {row + 1}: drop or fill such rows")
    return matrix


def _spell(settings: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(settings.items()))
