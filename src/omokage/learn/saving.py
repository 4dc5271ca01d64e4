"""A model as a folder: ``network.safetensors`` holds the weights, ``model.json`` all else with the privacy statement.

Nothing is unpickled on loading. The statement carries the hash of the weights it was made for.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from omokage.base.files import publish_folder
from omokage.errors import InputError, MissingExtra, OutputError, VerificationError
from omokage.learn.anonymized_learning import AnonymizedLearning
from omokage.learn.anonymizing_first import AnonymizingFirst
from omokage.learn.classifier import PrivateClassifier
from omokage.learn.dp_sgd import DPSGD
from omokage.learn.learning_first import LearningFirst
from omokage.learn.network import Network, parameter_count
from omokage.learn.privacy import Privacy
from omokage.learn.schema import Numeric, Schema

FORMAT = "omokage.learn/1"
APPROACHES: dict[str, type[PrivateClassifier]] = {
    c.approach: c for c in (AnonymizingFirst, LearningFirst, AnonymizedLearning, DPSGD)
}
_WEIGHTS, _REST = "network.safetensors", "model.json"
_IN_SCHEMA = {"schema", "bounds", "classes"}


def save_model(model: PrivateClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model into the folder ``path``, whole or not at all; an earlier one stays until then."""
    weights = _safetensors().save(_tensors(model.network_))
    rest = json.dumps(_describe(model, weights), indent=2, ensure_ascii=False, allow_nan=False)

    def fill(stage: Path) -> None:
        (stage / _WEIGHTS).write_bytes(weights)
        (stage / _REST).write_text(rest + "\n", encoding="utf-8")

    return publish_folder(path, fill, overwrite=overwrite, ours=require_model)


def require_model(folder: Path) -> None:
    """Refuse a folder that is no saved model, or holds anything else: it must not be replaced."""
    try:
        rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
        known = str(rest["format"]).startswith("omokage.learn/")
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise OutputError(f"{folder} is not a model folder and is not replaced: choose another place")
    if {path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink()} != {_WEIGHTS, _REST}:
        raise OutputError(f"{folder} holds more than a model and is not replaced: choose another place")


def load_model(path: str | Path) -> PrivateClassifier:
    """Read a model folder; the result predicts, and tells its ``privacy_``."""
    path = Path(path)
    try:
        rest = json.loads((path / _REST).read_text(encoding="utf-8"))
        weights = (path / _WEIGHTS).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a model folder: {error}") from error
    if not isinstance(rest, dict) or rest.get("format") != FORMAT:
        raise InputError(f"{path}: model.json must say format {FORMAT!r}")
    if hashlib.sha256(weights).hexdigest() != rest.get("weights_sha256"):
        raise VerificationError(f"{path}: the weights are not those that the privacy statement was made for")
    try:
        return _rebuild(rest, _safetensors().load(weights))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} cannot be used: {error}") from error


def _describe(model: PrivateClassifier, weights: bytes) -> dict[str, Any]:
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in _IN_SCHEMA}
    for label in model.schema_.classes:
        if not isinstance(label, str | int | float):
            raise InputError(f"classes must be text or numbers to be saved, got {type(label).__name__}")
    return {
        "format": FORMAT,
        "approach": model.approach,
        "layers": list(model.network_.sizes),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "privacy": model.privacy_.to_json(),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()},
        "settled": getattr(model, "settings_", {}),
        "named_columns": model.schema is not None,
        "schema": model.schema_.to_json(),
    }


def _rebuild(rest: dict[str, Any], tensors: dict[str, Any]) -> PrivateClassifier:
    if rest["approach"] not in APPROACHES:
        raise InputError(f"approach must be one of {sorted(APPROACHES)}, got {rest['approach']!r}")
    schema = Schema.from_json(rest["schema"])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in rest["settings"].items()}
    if rest["named_columns"]:
        settings["schema"] = schema
    else:
        settings["bounds"] = tuple((c.low, c.high) for c in schema.columns if isinstance(c, Numeric))
        settings["classes"] = schema.classes
    model = APPROACHES[rest["approach"]](**settings)
    model.schema_ = schema
    if rest["settled"]:
        model.settings_ = dict(rest["settled"])
    model.privacy_ = Privacy.from_json(rest["privacy"])
    model.network_ = _network(tuple(int(s) for s in rest["layers"]), tensors)
    model.classes_ = np.array(schema.classes)
    model.n_features_in_ = len(schema.columns)
    expected = (len(schema.features), len(schema.classes), model.network_.theta.size, rest["approach"])
    found = (model.network_.sizes[0], model.network_.sizes[-1], model.privacy_.parameters, model.privacy_.approach)
    if expected != found:
        raise InputError(f"schema, network and privacy statement do not fit together: {expected} against {found}")
    return model


def _tensors(network: Network) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for number, (weights, bias) in enumerate(network.layers):
        out[f"layer{number}.weight"] = np.ascontiguousarray(weights)
        out[f"layer{number}.bias"] = np.ascontiguousarray(bias)
    return out


def _network(sizes: tuple[int, ...], tensors: dict[str, Any]) -> Network:
    parts = []
    for number, (m, k) in enumerate(itertools.pairwise(sizes)):
        for name, shape in ((f"layer{number}.weight", (m, k)), (f"layer{number}.bias", (k,))):
            tensor = tensors.pop(name)
            if tensor.shape != shape or tensor.dtype != np.float64 or not np.isfinite(tensor).all():
                raise InputError(f"tensor {name} must be finite doubles of shape {shape}")
            parts.append(tensor.ravel())
    if tensors or sum(p.size for p in parts) != parameter_count(sizes):
        raise InputError("the weights hold other tensors than the layers need")
    return Network(sizes, np.concatenate(parts))


def _safetensors() -> Any:
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError as error:
        raise MissingExtra("saving and loading models (safetensors)", "dp") from error
