"""ATTRIBUTE: what a face shows — hair, glasses, beard, sex, age — as probabilities. A map to group in; it has no way back.

MIKU-2020, section 3.4: a ResNet-50 whose last layer is replaced by fully connected layers of 1024 (ReLU), 1024 (ReLU) and 40
(sigmoid), one output for each CelebA label; grouping uses the 14 that are told well and matter to the eye. The paper's trunk is
``backbone="resnet50"``. ``backbone="compact"`` is for CPUs, and ships trained: the first two stages of the same ResNet, one
block more, and a small grid of features instead of their mean, as the face stands at a fixed place in the crop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, MapError, MissingExtra, ModelError

try:
    import cv2
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file
    from torch import Tensor, nn
except ImportError:
    raise MissingExtra("the attribute map", "faces") from None

from ...networks.resnet import Bottleneck, ResNet
from ..image import Picture
from ..portrait import Portrait
from .base import FaceMap

# CelebA's, in its order
LABELS = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips", "Big_Nose",
    "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses", "Goatee",
    "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard",
    "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks", "Sideburns", "Smiling", "Straight_Hair",
    "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie", "Young",
)  # fmt: skip
# the paper's choice for the G map
GROUP_LABELS = (
    "Bald", "Bangs", "Black_Hair", "Blond_Hair", "Brown_Hair", "Eyeglasses", "Goatee", "Gray_Hair", "Heavy_Makeup", "Male",
    "No_Beard", "Smiling", "Wearing_Hat", "Young",
)  # fmt: skip
SHIPPED = Path(__file__).parent / "weights" / "attributes.safetensors"

Backbone = Literal["resnet50", "compact"]
BACKBONES = ("resnet50", "compact")
SIZES = {"resnet50": 96, "compact": 80}  # side of the pictures that the network looks at
_HIDDEN = 1024
_GRID = 48  # channels of the compact trunk's grid of 5 × 5


class AttributeNet(nn.Module):
    """RGB pictures (n, 3, size, size), 0 … 255, to logits of the labels (n, labels).

    Parameters
    ----------
    backbone : "resnet50" or "compact"
    labels : names of the outputs
    size : side of the pictures
    dropout : share of the head's inputs left out in training
    """

    def __init__(
        self, backbone: Backbone = "compact", labels: Sequence[str] = LABELS, size: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if backbone not in BACKBONES:
            raise InputError(f"there is no backbone {backbone!r}: they are {', '.join(BACKBONES)}")
        self.backbone, self.labels, self.size = backbone, tuple(labels), SIZES[backbone] if size is None else size
        self.trunk: ResNet
        self.more: nn.Module | None = None
        if backbone == "resnet50":
            self.trunk = ResNet()
            features = self.trunk.channels
        else:
            self.trunk = ResNet((3, 4))
            into = self.trunk.channels
            grid = nn.Conv2d(into, _GRID, 1)
            self.more = nn.Sequential(Bottleneck(into, 128, into, 2), grid, nn.ReLU(), nn.Flatten())
            features = _GRID * (-(-self.size // 16)) ** 2
        self.head = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(features, _HIDDEN), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(),
            nn.Linear(_HIDDEN, len(self.labels)),
        )  # fmt: skip

    def features(self, x: Tensor) -> Tensor:
        """What the trunk sees: (n, 2048) with ResNet-50, (n, 512, size/8, size/8) with the compact one."""
        seen: Tensor = self.trunk(x)
        return seen.mean((2, 3)) if self.more is None else seen

    def judge(self, seen: Tensor) -> Tensor:
        """Logits from features."""
        logits: Tensor = self.head(seen if self.more is None else self.more(seen))
        return logits

    def forward(self, x: Tensor) -> Tensor:
        return self.judge(self.features(x))

    def probabilities(self, faces: NDArray[np.uint8], batch: int = 64) -> NDArray[np.float32]:
        """Probability of each label (n, labels) in square RGB pictures (n, h, h, 3)."""
        training = self.training
        self.eval()
        out = [np.zeros((0, len(self.labels)), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(faces), batch):
                seen = np.stack([resized(face, self.size) for face in faces[start : start + batch]])
                out.append(torch.sigmoid(self(as_input(seen))).numpy())
        self.train(training)
        return np.concatenate(out)

    # ------------------------------------------------------------------ files

    def save(self, path: Path, notes: dict[str, Any] | None = None) -> None:
        """Weights in half precision, with all that is needed to load them again.

        Biases and normalisations stay in single precision: a variance of ImageNet's stem is beyond the largest half.
        """
        tensors = {
            name: (tensor.half() if tensor.ndim > 1 else tensor.float()).contiguous()
            for name, tensor in self.state_dict().items()
            if not name.endswith("num_batches_tracked")
        }
        beyond = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
        if beyond:
            raise ModelError(f"the weights cannot be kept: {beyond[0]} holds numbers that are not finite in half precision")
        about = {"backbone": self.backbone, "labels": list(self.labels), "size": self.size, **(notes or {})}
        save_file(tensors, path, {"omokage": json.dumps(about)})

    @classmethod
    def load(cls, path: Path) -> AttributeNet:
        """A network that :meth:`save` has written."""
        try:
            with safe_open(path, "pt") as file:
                about = json.loads(file.metadata()["omokage"])
                net = cls(about["backbone"], about["labels"], int(about["size"]))
                state = net.state_dict()
                state |= {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118  not a dict
            net.load_state_dict(state)
        except FileNotFoundError:
            raise ModelError(f"there are no weights at {path}") from None
        except Exception as error:  # noqa: BLE001  a damaged file can fail anywhere
            raise ModelError(f"{path.name} does not hold attribute weights ({type(error).__name__})") from None
        net.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net


def resized(face: Picture, size: int) -> Picture:
    """A square picture at another size."""
    if face.shape[0] == size:
        return face
    how = cv2.INTER_AREA if face.shape[0] > size else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(face, (size, size), interpolation=how), np.uint8)


def as_input(faces: NDArray[np.uint8]) -> Tensor:
    """Pictures (n, h, w, 3) as the network takes them."""
    return torch.from_numpy(np.ascontiguousarray(faces)).permute(0, 3, 1, 2).float().contiguous(memory_format=torch.channels_last)


class Attribute(FaceMap):
    """The ATTRIBUTE group map.

    Parameters
    ----------
    weights : Path, optional
        What ``omokage faces train-attributes`` wrote (``attributes.safetensors``); the compact network that ships if left out.
    labels : sequence of str
        The labels to group by: the paper's 14.
    """

    def __init__(self, weights: Path | None = None, labels: Sequence[str] = GROUP_LABELS) -> None:
        self.weights = weights
        self.labels = labels

    def __getstate__(self) -> dict[str, Any]:
        """Without the network, which every process loads for itself."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @cached_property
    def _net(self) -> AttributeNet:
        return AttributeNet.load(SHIPPED if self.weights is None else self.weights)

    @cached_property
    def _chosen(self) -> list[int]:
        unknown = [label for label in self.labels if label not in self._net.labels]
        if unknown:
            told = ", ".join(self._net.labels)
            raise MapError(f"the attribute network was not trained to tell {unknown[0]!r}: it tells {told}")
        return [self._net.labels.index(label) for label in self.labels]

    def fit(self, portraits: Sequence[Portrait], y: Any = None) -> Attribute:
        """Nothing is learned: the network is trained beforehand. Labels that it does not know are refused."""
        _ = self._chosen
        return self

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The names of what :meth:`all` gives."""
        return self._net.labels

    def encode(self, portrait: Portrait) -> NDArray[np.float32]:
        """Probabilities of the labels to group by."""
        return self.all(portrait)[self._chosen]

    def all(self, portrait: Portrait) -> NDArray[np.float32]:
        """Probabilities of all labels that the network tells, 40 in the shipped one."""
        return self.many(portrait.crop[None])[0]

    def many(self, crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Probabilities of all labels (n, labels) in FFHQ crops (n, h, h, 3); quicker than one by one."""
        return self._net.probabilities(crops)
