"""Reading a model folder that anybody may have written.

``model.json`` has one strict schema: an unknown or missing field, a wrong type, a number out of its range, or
parts that do not fit together are refused with one sentence. Nothing is unpickled, no link or pipe is followed,
and no more is read than a model can hold.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sklearn.base import clone

from omokage.base.reading import read_regular
from omokage.errors import InputError, VerificationError
from omokage.learn.classifier import PrivateClassifier
from omokage.learn.network import Network, parameter_count
from omokage.learn.privacy import Privacy
from omokage.learn.saving import APPROACHES, FORMAT, IN_SCHEMA, LARGEST_REST, REST, WEIGHTS, safetensors
from omokage.learn.schema import Numeric, Schema

_LARGEST_WEIGHTS = 2**31  # bytes
_HEADER = 2**20  # bytes that the names and shapes of tensors may take

Scalar = bool | int | float | str | None


class _Written(BaseModel):
    """What ``model.json`` holds."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: str
    approach: Literal["anonymizing-first", "learning-first", "anonymized-learning", "dp-sgd"]
    layers: Annotated[list[Annotated[int, Field(ge=1, le=2**24)]], Field(min_length=2, max_length=100)]
    weights_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    privacy: dict[str, Any]
    settings: dict[str, Scalar | Annotated[list[int | float], Field(max_length=100)]]
    settled: dict[str, int | float]
    named_columns: bool
    declared: dict[str, Any] = Field(alias="schema")


def load_model(path: str | Path) -> PrivateClassifier:
    """Read a model folder; the result predicts, and tells its ``privacy_``."""
    path = Path(path)
    library = safetensors()
    try:
        content = read_regular(path / REST, LARGEST_REST)
    except InputError as error:
        raise InputError(f"{path} is not a model folder ({error}): give a folder that save_model wrote") from None
    try:
        written = _Written.model_validate_json(content)
    except ValidationError as error:
        raise InputError(f"{path}: {REST} is damaged ({_reason(error)}): learn the model again") from None
    if written.format != FORMAT:
        raise InputError(f"{path}: {REST} does not have the format {FORMAT!r}: learn the model again with this version")
    size = 8 * parameter_count(tuple(written.layers))
    weights = read_regular(path / WEIGHTS, min(size + _HEADER, _LARGEST_WEIGHTS))
    if hashlib.sha256(weights).hexdigest() != written.weights_sha256:
        raise VerificationError(f"{path}: the weights do not match the privacy statement: learn the model again")
    try:
        return _rebuild(written, _tensors(library, weights))
    except InputError as error:
        raise InputError(f"{path} is damaged ({error}): learn the model again") from None


def _reason(error: ValidationError) -> str:
    """Where it fails and which rule it breaks; not the value, which came from outside."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step)[:40] for step in first["loc"][:3])
    return f"{where or 'as a whole'} breaks the rule '{str(first['type']).replace('_', ' ')}'"


def _rebuild(written: _Written, tensors: dict[str, Any]) -> PrivateClassifier:
    schema = Schema.from_json(written.declared)
    model = _learner(written, schema)
    model.schema_ = schema
    model.settings_ = dict(written.settled)
    model.privacy_ = Privacy.from_json(written.privacy)
    sizes = model._sizes(len(schema.features))
    if tuple(written.layers) != sizes:
        raise InputError("its layers do not match the schema and the settings")
    model.network_ = _network(sizes, tensors)
    model.classes_ = np.array(schema.classes)
    model.n_features_in_ = len(schema.columns)
    if (model.privacy_.parameters, model.privacy_.approach) != (model.network_.theta.size, model.approach):
        raise InputError("its privacy statement is about another network")
    return model


def _learner(written: _Written, schema: Schema) -> PrivateClassifier:
    """The learner with its settings, each of them checked."""
    kind = APPROACHES[written.approach]
    known = set(kind._get_param_names())
    if set(written.settings) != known - IN_SCHEMA or not set(written.settled) <= known - IN_SCHEMA:
        raise InputError(f"its settings are not those of {written.approach}")
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in written.settings.items()}
    if written.named_columns:
        settings["schema"] = schema
    else:
        settings["bounds"] = tuple((c.low, c.high) for c in schema.columns if isinstance(c, Numeric) and not c.cuts)
        settings["classes"] = schema.classes
        if len(settings["bounds"]) != len(schema.columns):
            raise InputError("its columns without names are not numbers without cuts")
    model = kind(**settings)
    model.check_values()
    clone(model).set_params(**written.settled).check_values()
    return model


def _tensors(library: Any, weights: bytes) -> dict[str, Any]:
    damaged = importlib.import_module("safetensors").SafetensorError
    try:
        return dict(library.load(weights))
    except (damaged, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise InputError(f"{WEIGHTS} does not hold tensors") from None


def _network(sizes: tuple[int, ...], tensors: dict[str, Any]) -> Network:
    parts = []
    for number, (m, k) in enumerate(itertools.pairwise(sizes)):
        for name, shape in ((f"layer{number}.weight", (m, k)), (f"layer{number}.bias", (k,))):
            tensor = tensors.pop(name, None)
            if tensor is None or tensor.shape != shape or tensor.dtype != np.float64 or not np.isfinite(tensor).all():
                raise InputError(f"tensor {name} does not hold finite doubles of shape {shape}")
            parts.append(tensor.ravel())
    if tensors:
        raise InputError("its weights hold tensors that the layers do not have")
    return Network(sizes, np.concatenate(parts))
