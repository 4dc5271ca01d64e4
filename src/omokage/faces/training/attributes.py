"""Train the attribute network: binary cross entropy over the labels, from one of the paper's three starts.

MIKU-2020, section 3.4: (a) random weights, (b) ImageNet's convolutions frozen, (c) ImageNet's convolutions fine-tuned; momentum
0.9, learning rate 0.01. The paper names neither batch nor number of steps, nor changes the rate: ``PAPER`` keeps to that. The
compact network learns from varied views of the faces, with dropout and a learning rate that falls to nothing, so that few
passes on a CPU are enough. Fine-tuned, it first learns its head on the frozen trunk (``HEAD``), which is quick, because the
trunk has to look at each view only once; then all but the first stage learn together (``COMPACT``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ... import networks
from ...base.files import require_file, write_new, write_whole
from ...base.progress import Progress, silent
from ...errors import InputError, OutputError
from ..maps.attribute import BACKBONES, AttributeNet, Backbone
from .attribute_data import Faces, Framing, Labels, gather, read_labels
from .attribute_learning import Recipe, Trainer

Start = Literal["random", "frozen", "finetuned"]
STARTS = ("random", "frozen", "finetuned")  # the paper's (a), (b), (c)
IMAGENET = "resnet50"  # the zoo's name of the ImageNet weights
WEIGHTS, CHECKPOINT, HISTORY, CROPS = "attributes.safetensors", "checkpoint-{}.safetensors", "training.json", "crops.safetensors"
_HELD = 0.05  # share of the faces that is not learned from, to see how well others are told

PAPER = Recipe()
HEAD = Recipe("adamw", 1e-3, decay=0.02, batch=64, dropout=0.3, warm=0.05, falls=True, varied=True, views=2)
COMPACT = Recipe("adamw", 5e-4, 0.5, decay=0.02, dropout=0.3, warm=0.1, falls=True, varied=True, kept=1)
HEAD_EPOCHS = 8


def build(
    backbone: Backbone, start: Start, labels: tuple[str, ...], *, size: int | None = None, seed: int = 0, dropout: float = 0.0
) -> AttributeNet:
    """A network at one of the paper's starts; (b) and (c) fetch the ImageNet weights from the zoo."""
    if start not in STARTS:
        raise InputError(f"start must be one of {', '.join(STARTS)}, but it is {start!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = AttributeNet(backbone, labels, size, dropout)
    if start != "random":
        net.trunk.take(load_file(networks.get(IMAGENET)))
    net.trunk.requires_grad_(start != "frozen")
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net


def train_attributes(
    images: Path, labels: Path, out: Path, *, start: Start = "finetuned", backbone: Backbone = "compact", epochs: int = 2,
    seed: int = 0, progress: Progress = silent, framing: Framing = "find",
) -> Path:  # fmt: skip
    """Train an attribute network on a folder of images and a list of labels.

    Writes ``attributes.safetensors`` (for :class:`Attribute`) and ``training.json`` (losses, accuracies on held-out faces).
    Stopped and asked for again, it goes on after the last whole epoch; the crops and the checkpoint that this takes lie in
    ``out`` until the end.

    Parameters
    ----------
    images, labels : the folder, and the list (see ``read_labels``)
    out : a folder to write to
    start : "random", "frozen" or "finetuned": the paper's (a), (b), (c)
    backbone : "resnet50" (the paper's) or "compact"
    framing : "find" cuts the FFHQ crop out of photos; "whole" takes square images that are such crops as they are

    Returns
    -------
    Path
        The weights.
    """
    listed = read_labels(labels)
    todo = phases(backbone, start, epochs)
    net = build(backbone, start, listed.names, seed=seed, dropout=todo[-1][1].dropout)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the folder {out.name} cannot be made: {error.strerror}") from None
    for name, ours in ((HISTORY, _our_history), (WEIGHTS, _our_weights)):
        require_file(out / name, overwrite=True, ours=ours)  # before the work that would be lost
    faces = kept_crops(out / CROPS, listed, lambda: gather(images, listed, framing, progress=progress))
    learned, held = parted(len(faces.crops), seed)
    seen = (faces.crops[held], faces.labels[held])
    histories = []
    for number, (frozen, recipe, lasts) in enumerate(todo):
        net.trunk.requires_grad_(not frozen)
        trainer = Trainer(net, recipe, epochs=lasts, seed=seed, checkpoint=out / CHECKPOINT.format(number))
        histories.append(trainer.run(faces.crops[learned], faces.labels[learned], held=seen, progress=progress))
    right = ((net.probabilities(seen[0]) > 0.5) == (seen[1] > 0.5)).mean(0).tolist()
    about = {"start": start, "backbone": backbone, "images": len(learned), "seed": seed}
    summary = {
        **about, "held out": len(held), "absent": faces.absent, "unread": faces.unread, "without a face": faces.faceless,
        "accuracy on held-out faces": dict(zip(faces.names, right, strict=True)),
        "phases": [{"frozen": f, **asdict(r), **asdict(h)} for (f, r, _), h in zip(todo, histories, strict=True)],
    }  # fmt: skip
    write_new(out / HISTORY, (json.dumps(summary, indent=1) + "\n").encode(), overwrite=True, ours=_our_history)
    write_new(out / WEIGHTS, lambda path: net.save(path, about), overwrite=True, ours=_our_weights)
    for name in (CROPS, *(CHECKPOINT.format(number) for number in range(len(todo)))):
        (out / name).unlink(missing_ok=True)
    return out / WEIGHTS


def _our_weights(content: bytes) -> bool:
    """Whether a safetensors file is a network of an earlier training."""
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return "backbone" in json.loads(header["__metadata__"]["omokage"])
    except (ValueError, TypeError, KeyError):
        return False


def _our_history(content: bytes) -> bool:
    try:
        return {"backbone", "start", "phases"} <= set(json.loads(content))
    except (ValueError, TypeError):
        return False


def phases(backbone: Backbone, start: Start, epochs: int) -> list[tuple[bool, Recipe, int]]:
    """What is learned one after the other: whether the trunk is frozen, the recipe, the epochs."""
    if backbone not in BACKBONES:
        raise InputError(f"there is no backbone {backbone!r}: they are {', '.join(BACKBONES)}")
    if backbone == "resnet50":
        return [(start == "frozen", PAPER, epochs)]
    if start == "frozen":
        return [(True, HEAD, epochs)]
    if start == "random":
        return [(False, replace(COMPACT, rate=1e-3, trunk_rate=1.0, kept=0), epochs)]
    return [(True, HEAD, HEAD_EPOCHS), (False, COMPACT, epochs)]


def parted(number: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which faces are learned from, and which are held out."""
    order = np.random.default_rng(seed).permutation(number)
    held, learned = np.split(order, [max(1, round(_HELD * number))])
    if not len(learned):
        raise InputError("one face is not enough to learn from: one is held out to see how well others are told")
    return learned, held


def kept_crops(path: Path, listed: Labels, make: Callable[[], Faces]) -> Faces:
    """The crops of the images in this list: those that lie at ``path`` from before, or made, and kept there."""
    names = "\n".join((*listed.images, *listed.names)).encode()
    mark = hashlib.sha256(names + listed.values.tobytes()).hexdigest()
    if path.exists():
        try:
            with safe_open(path, "np") as file:
                about = json.loads(file.metadata()["omokage"])
                if about.pop("list") != mark:
                    raise InputError(f"{path.name} holds the faces of another list of labels: write to another folder")
                return Faces(file.get_tensor("crops"), file.get_tensor("labels"), tuple(about.pop("names")), **about)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  a damaged file can fail anywhere
            raise InputError(f"{path.name} is damaged ({type(error).__name__}): remove it to cut the faces out anew") from None
    faces = make()
    about = {"names": faces.names, "absent": faces.absent, "unread": faces.unread, "faceless": faces.faceless, "list": mark}
    tensors = {"crops": torch.from_numpy(faces.crops), "labels": torch.from_numpy(faces.labels)}
    write_whole(path, lambda part: save_file(tensors, part, {"omokage": json.dumps(about)}))
    return faces
