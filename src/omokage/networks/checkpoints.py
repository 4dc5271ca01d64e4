"""StyleGAN2 generators from the files that people share, read without running anything in them.

Two layouts are in use:

- NVIDIA's ``.pkl`` (stylegan2-ada-pytorch, stylegan3) is an ordinary pickle of a dict; ``G_ema`` in it is a tree of modules. Each
  module comes with the *source code* of its class, which NVIDIA's loader executes, and each storage as bytes that hold another
  pickle. Our reader allows a dozen names (see :mod:`.unpickling`) and drops the source code unread.
- The ``.pt`` of the PyTorch port (rosinality) is what ``torch.save`` makes of a dict of tensors; torch's own restricted reader
  takes it.

Both hold the same network under different names; they come out under ours. A network that computes something else, as its
tensors or its settings tell, is refused rather than drawn wrongly.
"""

from __future__ import annotations

import argparse
import io
import math
import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from ..errors import InputError
from .stylegan2 import CHANNELS, RATE, StyleGAN2
from .unpickling import BROKEN, Allowed, unpickle

__all__ = ["read_generator"]

_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # what torch.save began a file with before it wrote zips
_VERSION = 6  # of NVIDIA's way to pickle a module
_MOST = 1000  # modules or tensors; a StyleGAN2 of 1024 px has 72 and 182
_LEVELS = {str(4 << level): level for level in range(len(CHANNELS))}
_INSTRUCTIONS = frozenset({
    "FRAME", "STACK_GLOBAL", "NEWOBJ", "MEMOIZE", "EMPTY_TUPLE", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_SET", "ADDITEMS",
    "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
})  # fmt: skip
_NVIDIA = {
    "weight": "weight", "bias": "bias", "affine.weight": "modulation.weight", "affine.bias": "modulation.bias",
    "noise_const": "noise", "noise_strength": "strength",
}  # fmt: skip
_PORT = {
    "conv.weight": "weight", "conv.modulation.weight": "modulation.weight", "conv.modulation.bias": "modulation.bias",
    "activate.bias": "bias", "bias": "bias", "noise.weight": "strength",
}  # fmt: skip
# What NVIDIA's modules have to say of themselves, by their path in the generator.
_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"mapping\.", {"c_dim": 0}),
    (r"mapping\.fc\d+\.", {"activation": "lrelu", "bias_gain": RATE}),
    (r"synthesis\.b\d+\.", {"architecture": "skip"}),
    (r"synthesis\.b\d+\.conv[01]\.", {"activation": "lrelu"}),
    (r"synthesis\.b\d+\.\w+\.affine\.", {"activation": "linear", "bias_gain": 1}),
)
_BY_LABEL = "it draws by label (a conditional network), and only unconditional ones are read"


def read_generator(path: str | Path) -> StyleGAN2:
    """The StyleGAN2 in a checkpoint, NVIDIA's ``.pkl`` or the PyTorch port's ``.pt``; InputError for anything else."""
    try:
        return _generator(_content(Path(path)))
    except InputError as error:
        raise InputError(f"{path} is not read: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (zipfile.BadZipFile, struct.error, AssertionError, *BROKEN) as error:
        raise InputError(f"{path} is not a whole checkpoint of StyleGAN2") from error


def _content(path: Path) -> Any:
    """What the file holds: dicts, tensors, and stand-ins for modules."""
    with path.open("rb") as file:
        start = file.read(len(_TORCH))
    if start == _TORCH:
        return _from_torch(path)
    if start.startswith(b"PK"):
        with zipfile.ZipFile(path) as records:
            if sum(record.file_size for record in records.infolist()) > path.stat().st_size:
                raise InputError("its records are compressed or overlap, and torch writes them plainly")
        return _from_torch(path)
    return unpickle(path.read_bytes(), Allowed(_stand_in, "tensors and NVIDIA's modules", _INSTRUCTIONS))


def _from_torch(path: Path) -> Any:
    # The port's training loop saves its command line too: an argparse.Namespace, which holds values and does nothing.
    safe = getattr(torch.serialization, "safe_globals", lambda _: nullcontext())
    try:
        with safe([argparse.Namespace]):
            return _load(path)
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL ([\w.]{1,80})", str(error))
        raise InputError(f"it names {named[1]!r}, and only tensors are read" if named else "its pickle is broken") from error


def _load(source: Path | BinaryIO) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises whoever wrote the file
        return torch.load(source, map_location="cpu", weights_only=True)


class _Module:
    """Stands for a module of NVIDIA's: its attributes, without its code."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        if (meta["type"], meta["version"]) != ("class", _VERSION):
            raise InputError(f"its modules are not of version {_VERSION} of NVIDIA's format")
        self.state: dict[str, Any] = dict(meta["state"])


class _Ignored:
    """Stands for what the generator does not need, such as NumPy's scalars."""

    def __setstate__(self, state: Any) -> None:
        pass


@dataclass(frozen=True)
class _Stored:
    """Stands for a tensor; it is made once it is known to be needed."""

    storage: Any  # bytes that torch.save made, unless the file is broken; so with the others
    offset: Any
    size: Any
    stride: Any

    def tensor(self) -> Tensor:
        """The tensor that lies in the storage: every element within it, and no more elements than it has."""
        offset, size, stride = int(self.offset), [int(n) for n in self.size], [int(n) for n in self.stride]
        storage = _load(io.BytesIO(self.storage))
        if not isinstance(storage, torch.storage.TypedStorage):
            raise InputError("the bytes of a storage are not a storage")
        values = torch.empty(0, dtype=storage.dtype).set_(storage)
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if min((offset, *size, *stride)) < 0 or math.prod(size) > len(values) or last >= len(values):
            raise InputError("a tensor reaches outside its storage")
        return values.as_strided(size, stride, offset)


def _stand_in(module: str, name: str) -> Callable[[], Any] | None:
    match module, name:
        case "torch_utils.persistence", "_reconstruct_persistent_obj":
            return lambda: lambda meta: _Module(meta)
        case "torch._utils", "_rebuild_tensor_v2":
            return lambda: lambda storage, offset, size, stride, *_: _Stored(storage, offset, size, stride)
        case "torch._utils", "_rebuild_parameter":
            return lambda: lambda tensor, *_: tensor
        case "torch.storage", "_load_from_bytes":
            return lambda: lambda content: content
        case "collections", "OrderedDict":
            return lambda: lambda *_: {}
        case "dnnlib.util", "EasyDict":
            return lambda: type("Options", (dict,), {})
        case "builtins", "set":
            return lambda: lambda *_: ()
        case (("numpy.core.multiarray" | "numpy._core.multiarray"), ("scalar" | "_reconstruct")):
            return lambda: lambda *_: _Ignored()
        case "numpy", ("dtype" | "ndarray"):
            return lambda: lambda *_: _Ignored()
        case "dnnlib.tflib.network", "Network":
            raise InputError("it is a TensorFlow network; convert it with the legacy.py of NVIDIA's PyTorch version first")
    return None


def _generator(content: Any) -> StyleGAN2:
    """The generator among what a file holds, the running average of training if there is one."""
    if not isinstance(content, dict):
        raise InputError("it does not hold a dict with a generator")
    network = content.get("G_ema", content.get("g_ema", content))
    clamp = None
    if isinstance(network, _Module):
        network, modules = _flat(network)
        _refuse_others(network)
        clamp = _clamp(modules)
    elif not isinstance(network, dict):
        raise InputError("its generator is neither a module of NVIDIA's nor a dict of tensors")
    weights = _ours(network)
    if content.get("latent_avg") is not None:
        weights.setdefault("w_mean", _usable("latent_avg", content["latent_avg"], 1))
    return StyleGAN2.from_weights(weights, clamp)


def _flat(root: _Module) -> tuple[dict[str, Any], dict[str, _Module]]:
    """(tensors, modules) below a module, by path; a pickle may share branches or loop, so both are bounded."""
    tensors: dict[str, Any] = {}
    modules: dict[str, _Module] = {}
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, module = waiting.pop()
        if not isinstance(module, _Module) or max(len(modules), len(tensors), len(waiting)) > _MOST:
            raise InputError(f"its generator is not a tree of at most {_MOST:,} modules and tensors")
        modules[path] = module
        for group in ("_parameters", "_buffers"):
            tensors |= {f"{path}{name:.80}": item for name, item in module.state[group].items() if item is not None}
        waiting += [(f"{path}{name:.80}.", below) for name, below in module.state["_modules"].items()]
    return tensors, modules


def _clamp(modules: Mapping[str, _Module]) -> float | None:
    """What bounds the network's maps; InputError if one of its settings is not StyleGAN2's."""
    clamps = set()
    for path, module in modules.items():
        for pattern, expected in _SETTINGS:
            for key, value in expected.items() if re.fullmatch(pattern, path) else ():
                if module.state.get(key) != value:
                    raise InputError(_BY_LABEL if key == "c_dim" else f"{path}{key} is not {value}, as it is in StyleGAN2")
        if re.fullmatch(r"synthesis\.b\d+\.(conv[01]|torgb)\.", path):
            clamps.add(module.state.get("conv_clamp"))
    clamp = clamps.pop() if len(clamps) == 1 else "no single one"
    if clamp is None or (isinstance(clamp, (int, float)) and 0 < clamp < math.inf):
        return clamp
    raise InputError("its layers' conv_clamp is not one positive number or None for all")


def _refuse_others(names: Mapping[str, Any]) -> None:
    """InputError that names the network, where the names of its tensors tell."""
    if any(name.startswith("synthesis.input.") for name in names):
        raise InputError("it is a StyleGAN3, and only StyleGAN2 is read")
    if any(name.startswith("mapping.embed.") for name in names):
        raise InputError(_BY_LABEL)


def _ours(network: Mapping[Any, Any]) -> dict[str, Tensor]:
    """The tensors of either layout by our names, in our shapes."""
    theirs = {f"{name:.200}": item for name, item in network.items()}
    _refuse_others(theirs)
    rename = _from_nvidia if "synthesis.b4.const" in theirs else _from_port if "input.input" in theirs else None
    if rename is None:
        raise InputError("it has neither the tensor synthesis.b4.const of NVIDIA's layout nor input.input of the PyTorch port's")
    weights = {}
    for name, item in theirs.items():
        if name.endswith((".resample_filter", ".kernel")):
            _check_filter(name, _usable(name, item, 2))
        elif (ours := rename(name)) is None:
            raise InputError(f"it has the tensor {name[:80]!r}, which a StyleGAN2 has not")
        else:
            weights[ours] = _usable(name, item, _dimensions(ours))
    return weights


def _from_nvidia(name: str) -> str | None:
    """Our name of a tensor; block b4 has conv1 alone, the others conv0 and conv1."""
    if found := re.fullmatch(r"mapping\.fc(\d)\.(weight|bias)", name, re.ASCII):
        return f"mapping.{found[1]}.{found[2]}"
    found = re.fullmatch(r"synthesis\.b(\d+)\.(conv0|conv1|torgb)\.(.+)", name, re.ASCII)
    if found and found[1] in _LEVELS and found[3] in _NVIDIA:
        level = _LEVELS[found[1]]
        layer = f"to_rgb.{level}" if found[2] == "torgb" else f"convs.{2 * level - (found[2] == 'conv0')}"
        return f"synthesis.{layer}.{_NVIDIA[found[3]]}"
    return {"mapping.w_avg": "w_mean", "synthesis.b4.const": "synthesis.constant"}.get(name)


def _from_port(name: str) -> str | None:
    """Our name of a tensor; the first convolution and the first RGB stand apart from the lists of the others."""
    if found := re.fullmatch(r"style\.(\d)\.(weight|bias)", name, re.ASCII):
        return f"mapping.{int(found[1]) - 1}.{found[2]}"  # style.0 normalizes z
    if found := re.fullmatch(r"noises\.noise_(\d{1,2})", name, re.ASCII):
        return f"synthesis.convs.{found[1]}.noise"
    found = re.fullmatch(r"(conv|to_rgb)(?:1|s\.(\d{1,2}))\.(.+)", name, re.ASCII)
    if found and found[3] in _PORT:
        place = 0 if found[2] is None else int(found[2]) + 1
        return f"synthesis.{'convs' if found[1] == 'conv' else 'to_rgb'}.{place}.{_PORT[found[3]]}"
    return "synthesis.constant" if name == "input.input" else None


def _dimensions(name: str) -> int:
    if name.endswith(".weight"):
        return 4 if re.fullmatch(r"synthesis\.\w+\.\d+\.weight", name) else 2
    return {"constant": 3, "noise": 2, "strength": 0}.get(name.rpartition(".")[2], 1)


def _usable(name: str, item: Any, dimensions: int) -> Tensor:
    """The item, if it is a whole tensor of floats, without the dimensions of length 1 that the port puts around it."""
    tensor = item.tensor() if isinstance(item, _Stored) else item
    plain = isinstance(tensor, Tensor) and tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not plain or not tensor.is_floating_point() or tensor.nbytes > tensor.untyped_storage().nbytes():
        raise InputError(f"the tensor {name[:80]!r} is not a plain tensor of floats")
    while tensor.ndim > dimensions and 1 in (tensor.shape[0], tensor.shape[-1]):
        tensor = tensor[0] if tensor.shape[0] == 1 else tensor[..., 0]
    return tensor


def _check_filter(name: str, tensor: Tensor) -> None:
    """InputError unless the filter is [1, 3, 3, 1] both ways, whatever its sum."""
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
    expected = torch.outer(taps, taps) / 64
    if tensor.shape != expected.shape or not torch.allclose(tensor.float() / tensor.float().sum(), expected, atol=1e-5):
        raise InputError(f"the filter {name[:80]!r} is not [1, 3, 3, 1], as it is in StyleGAN2")
