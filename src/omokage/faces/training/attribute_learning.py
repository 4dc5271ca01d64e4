"""How an attribute network learns: recipes, steps, and checkpoints that training goes on from as if it had never stopped."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from ...base.files import write_whole
from ...base.progress import Progress, silent
from ...errors import InputError
from ..maps.attribute import AttributeNet, as_input, resized
from .attribute_data import varied

_ROOM = 4 << 30  # bytes that may be spent on remembering what a frozen trunk sees


@dataclass(frozen=True)
class Recipe:
    """How to learn. ``trunk_rate`` multiplies the learning rate of convolutions that start from ImageNet."""

    optimiser: Literal["momentum", "adamw"] = "momentum"
    rate: float = 0.01
    trunk_rate: float = 1.0
    momentum: float = 0.9
    decay: float = 0.0
    batch: int = 32
    dropout: float = 0.0
    warm: float = 0.0  # share of the steps over which the rate rises
    falls: bool = False  # the rate falls to nothing by half a cosine
    varied: bool = False
    views: int = 1  # varied views of each face that a frozen trunk looks at once and for all
    kept: int = 0  # first stages, with the stem, that are not fine-tuned


@dataclass
class History:
    """Loss of every step, and (step, loss) on faces that were not learned from."""

    loss: list[float] = field(default_factory=list)
    held: list[tuple[int, float]] = field(default_factory=list)
    epochs: int = 0


class Trainer:
    """Learns one network, epoch by epoch; can be stopped after any of them and go on later with the same result."""

    def __init__(self, net: AttributeNet, recipe: Recipe, *, epochs: int, seed: int, checkpoint: Path | None = None) -> None:
        if epochs < 1:
            raise InputError(f"epochs must be at least 1, but it is {epochs}")
        self.net, self.recipe, self.epochs, self.seed, self.checkpoint = net, recipe, epochs, seed, checkpoint
        self.history = History()
        self._frozen = not any(p.requires_grad for p in net.trunk.parameters())
        kept = [net.trunk.stem, *list(net.trunk.stages)[: recipe.kept]] if recipe.kept else []
        self._still = [net.trunk] if self._frozen else kept
        for part in self._still:
            part.requires_grad_(False)
        trunk = [p for p in net.trunk.parameters() if p.requires_grad]
        rest = [p for name, p in net.named_parameters() if not name.startswith("trunk.")]
        groups = [{"params": params, "share": share} for params, share in ((rest, 1.0), (trunk, recipe.trunk_rate)) if params]
        if recipe.optimiser == "adamw":
            self._optimiser: torch.optim.Optimizer = torch.optim.AdamW(groups, recipe.rate, weight_decay=recipe.decay)
        else:
            self._optimiser = torch.optim.SGD(groups, recipe.rate, recipe.momentum, weight_decay=recipe.decay)

    def run(
        self, crops: NDArray[np.uint8], labels: NDArray[np.float32], *,
        held: tuple[NDArray[np.uint8], NDArray[np.float32]] | None = None, every: int = 0, progress: Progress = silent,
    ) -> History:  # fmt: skip
        """Learn from crops (n, h, h, 3) and labels (n, m). ``held`` is looked at every so many steps, and after each epoch."""
        steps = -(-len(crops) // self.recipe.batch)
        self._resume(steps)
        seen: dict[int, NDArray[np.float16]] = {}
        remembers = self._frozen and self._bytes(len(crops)) <= _ROOM
        for epoch in range(self.history.epochs, self.epochs):
            rng = np.random.default_rng((self.seed, epoch))  # of the epoch: going on draws what going through would have
            order = rng.permutation(len(crops))
            view = epoch % self.recipe.views
            if remembers and view not in seen:
                seen[view] = self.look(crops, view)
            with torch.random.fork_rng(devices=[]):  # dropout draws from torch's own generator
                torch.manual_seed(int(rng.integers(1 << 31)))
                for number in range(steps):
                    step = epoch * steps + number
                    chosen = np.sort(order[number * self.recipe.batch : (number + 1) * self.recipe.batch])
                    x = torch.from_numpy(seen[view][chosen]).float() if remembers else self._views(crops[chosen], rng)
                    loss = self._step(step / (self.epochs * steps), x, labels[chosen], remembers)
                    self.history.loss.append(round(loss, 5))
                    progress("training", step + 1, self.epochs * steps)
                    if held and (number == steps - 1 or (every and (step + 1) % every == 0)):
                        self.history.held.append((step + 1, round(mean_loss(self.net, *held), 5)))
            self.history.epochs = epoch + 1
            self._keep()
        return self.history

    def _bytes(self, faces: int) -> int:
        """What it takes to remember what a frozen trunk sees, in half precision."""
        side = -(-self.net.size // 8) if self.net.more is not None else 1
        return 2 * faces * self.recipe.views * self.net.trunk.channels * side * side

    def _views(self, faces: NDArray[np.uint8], rng: np.random.Generator) -> Tensor:
        size = self.net.size
        return as_input(np.stack([varied(f, size, rng) if self.recipe.varied else resized(f, size) for f in faces]))

    @torch.inference_mode()
    def look(self, crops: NDArray[np.uint8], view: int) -> NDArray[np.float16]:
        """What a frozen trunk sees in one view of every face; the head learns from that alone, which is much quicker."""
        rng = np.random.default_rng((self.seed, 1 << 20, view))
        self.net.eval()
        parts = (self._views(crops[i : i + 64], rng) for i in range(0, len(crops), 64))
        return np.concatenate([self.net.features(part).half().numpy() for part in parts])

    def _step(self, past: float, x: Tensor, y: NDArray[np.float32], seen: bool) -> float:
        for group in self._optimiser.param_groups:
            group["lr"] = rate_at(past, self.recipe) * group["share"]
        self.net.train()
        for part in self._still:
            part.eval()  # the normalisation's statistics stay, too
        self._optimiser.zero_grad()
        told = self.net.judge(x) if seen else self.net(x)
        loss = F.binary_cross_entropy_with_logits(told, torch.from_numpy(y))
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return float(loss.detach())

    # ------------------------------------------------------------------ stop and go on

    def _config(self, steps: int) -> dict[str, Any]:
        about = {"backbone": self.net.backbone, "labels": list(self.net.labels), "size": self.net.size, "frozen": self._frozen}
        return {**about, "recipe": asdict(self.recipe), "epochs": self.epochs, "seed": self.seed, "steps": steps}

    def _resume(self, steps: int) -> None:
        self.about = self._config(steps)
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        try:
            with safe_open(self.checkpoint, "pt") as file:
                about = json.loads(file.metadata()["omokage"])
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            history = about.pop("history")
            if about != self.about:
                raise InputError(
                    f"{self.checkpoint.name} is of another training (other data, epochs, seed or network): "
                    "ask for the same again, or write to another folder"
                )
            self.net.load_state_dict({n.removeprefix("net."): t for n, t in state.items() if n.startswith("net.")})
            optimiser = self._optimiser.state_dict()
            for name, tensor in state.items():
                if name.startswith("optimiser."):
                    _, number, key = name.split(".")
                    optimiser["state"].setdefault(int(number), {})[key] = tensor
            self._optimiser.load_state_dict(optimiser)
            self.history = History(history["loss"], [(s, v) for s, v in history["held"]], history["epochs"])
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001  a damaged file can fail anywhere
            raise InputError(f"{self.checkpoint.name} is damaged ({type(error).__name__}): remove it to start anew") from None

    def _keep(self) -> None:
        if self.checkpoint is None:
            return
        state = {f"net.{name}": tensor.contiguous() for name, tensor in self.net.state_dict().items()}
        for number, entries in self._optimiser.state_dict()["state"].items():
            state |= {f"optimiser.{number}.{key}": tensor.contiguous() for key, tensor in entries.items() if tensor is not None}
        about = json.dumps({**self.about, "history": asdict(self.history)})
        write_whole(self.checkpoint, lambda path: save_file(state, path, {"omokage": about}))


def rate_at(past: float, recipe: Recipe) -> float:
    """The learning rate when this share of the steps is past.

    Examples
    --------
    >>> [round(rate_at(past, Recipe(rate=1.0, warm=0.1, falls=True)), 2) for past in (0.05, 0.1, 0.55, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if past < recipe.warm:
        return recipe.rate * past / recipe.warm
    turn = math.pi * (past - recipe.warm) / (1 - recipe.warm)
    return recipe.rate * (0.5 + 0.5 * math.cos(turn)) if recipe.falls else recipe.rate


def mean_loss(net: AttributeNet, crops: NDArray[np.uint8], labels: NDArray[np.float32]) -> float:
    """Mean binary cross entropy of what the network says about these faces."""
    told = np.clip(net.probabilities(crops).astype(np.float64), 1e-7, 1 - 1e-7)
    return float(-np.where(labels > 0.5, np.log(told), np.log1p(-told)).mean())
