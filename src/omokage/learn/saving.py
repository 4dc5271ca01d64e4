"""A model as a folder: ``network.safetensors`` holds the weights, ``model.json`` all else with the privacy statement.

Nothing is unpickled on loading. The statement carries the hash of the weights it was made for.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from omokage.base.files import publish_folder
from omokage.base.reading import read_regular
from omokage.errors import MissingExtra, OutputError
from omokage.learn.anonymized_learning import AnonymizedLearning
from omokage.learn.anonymizing_first import AnonymizingFirst
from omokage.learn.classifier import PrivateClassifier
from omokage.learn.dp_sgd import DPSGD
from omokage.learn.learning_first import LearningFirst
from omokage.learn.network import Network

FORMAT = "omokage.learn/2"
APPROACHES: dict[str, type[PrivateClassifier]] = {
    c.approach: c for c in (AnonymizingFirst, LearningFirst, AnonymizedLearning, DPSGD)
}
WEIGHTS, REST = "network.safetensors", "model.json"
LARGEST_REST = 64 * 2**20  # bytes of a model.json
IN_SCHEMA = {"schema", "bounds", "classes"}  # settings that the schema tells


def save_model(model: PrivateClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model into the folder ``path``, whole or not at all; an earlier one stays until then."""
    weights = safetensors().save(_tensors(model.network_))
    rest = json.dumps(_describe(model, weights), indent=2, ensure_ascii=False, allow_nan=False)

    def fill(stage: Path) -> None:
        (stage / WEIGHTS).write_bytes(weights)
        (stage / REST).write_text(rest + "\n", encoding="utf-8", newline="\n")

    return publish_folder(path, fill, overwrite=overwrite, ours=require_model)


def require_model(folder: Path) -> None:
    """Refuse a folder that is no saved model, or holds anything else: it must not be replaced."""
    try:
        rest = json.loads(read_regular(folder / REST, LARGEST_REST))
        known = str(rest["format"]).startswith("omokage.learn/")
    except (ValueError, KeyError, TypeError, RecursionError):  # InputError is a ValueError
        known = False
    if not known:
        raise OutputError(f"{folder} is not a model folder and is not replaced: choose another place")
    if {path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink()} != {WEIGHTS, REST}:
        raise OutputError(f"{folder} holds more than a model and is not replaced: choose another place")


def _describe(model: PrivateClassifier, weights: bytes) -> dict[str, Any]:
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in IN_SCHEMA}
    return {
        "format": FORMAT,
        "approach": model.approach,
        "layers": list(model.network_.sizes),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "privacy": model.privacy_.to_json(),
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()},
        "settled": model.settings_,
        "named_columns": model.schema is not None,
        "schema": model.schema_.to_json(),
    }


def _tensors(network: Network) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for number, (weights, bias) in enumerate(network.layers):
        out[f"layer{number}.weight"] = np.ascontiguousarray(weights)
        out[f"layer{number}.bias"] = np.ascontiguousarray(bias)
    return out


def safetensors() -> Any:
    """The library that reads and writes weights; one sentence says how to get it."""
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError as error:
        raise MissingExtra("support for model files (safetensors)", "dp") from error
