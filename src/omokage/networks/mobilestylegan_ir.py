"""MobileStyleGAN's published files, an OpenVINO IR of version 10, read into named arrays.

The IR is a graph in XML beside one file of raw numbers. Nothing of it is run: arrays are found by their names where they have
one, otherwise by their place beside a named one, and each has to have the shape that ``mobilestylegan`` expects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[np.float32]

STYLE = 512  # numbers in a style vector
MAPPING_LAYERS = 8
SLOPE = 0.2  # of every leaky ReLU
CHANNELS = (512, 512, 512, 512, 512, 256, 128, 64)  # of the map of 4, 8, …, 512 px
W_SAMPLES = 10_000  # styles that the mean and the spread are taken from
MAX_XML = 8 << 20  # bytes; the published files have half a megabyte

HAAR = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
"""The inverse transform: rows are the pixels (0,0), (0,1), (1,0), (1,1), columns the bands (mean, column, row, diagonal)."""


def from_openvino(files: Mapping[str, Path]) -> dict[str, Array]:
    """The weights of ``mobilestylegan.Generator`` from its four published files.

    Parameters
    ----------
    files : mapping of str to Path
        ``MappingNetwork.xml``, ``MappingNetwork.bin``, ``SynthesisNetwork.xml`` and ``SynthesisNetwork.bin``.

    Returns
    -------
    dict of str to float32 array
        Named as in the module's ``state_dict``, to be saved as safetensors; ``w_mean``, ``w_std`` and ``w_norm`` describe the
        styles of 10,000 random z.
    """
    names = [f"{stem}Network.{end}" for stem in ("Mapping", "Synthesis") for end in ("xml", "bin")]
    if missing := [name for name in names if name not in files]:
        raise InputError(f"MobileStyleGAN is four files; missing here: {', '.join(missing)}")
    mapping = read_mapping(Graph.read(files["MappingNetwork.xml"], files["MappingNetwork.bin"]))
    synthesis = read_synthesis(Graph.read(files["SynthesisNetwork.xml"], files["SynthesisNetwork.bin"]))
    for name, array in (weights := {**mapping, **synthesis}).items():
        if not np.isfinite(array).all():
            raise InputError(f"MobileStyleGAN's {name} holds values that are not finite: the file is damaged, fetch it again")
    weights |= style_statistics(mapping)
    return {name: np.asarray(array, np.float32, order="C") for name, array in weights.items()}


@dataclass(frozen=True)
class Node:
    """One operation of the graph."""

    kind: str
    name: str
    data: dict[str, str]
    inputs: tuple[str, ...]  # identifiers of the nodes that feed its ports, in the order of the ports


@dataclass(frozen=True)
class Graph:
    """A graph of the IR and its raw numbers."""

    path: Path
    nodes: dict[str, Node]
    raw: bytes

    @classmethod
    def read(cls, xml: Path, binary: Path) -> Graph:
        """Parse the XML, which may declare no document type and so no entities."""
        try:
            if xml.stat().st_size > MAX_XML:
                raise InputError(f"{xml}: larger than {MAX_XML} bytes, so this is not the published graph")
            text, raw = xml.read_text("utf-8"), binary.read_bytes()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{xml}, {binary.name}: cannot be read ({type(error).__name__}); fetch them again") from error
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise InputError(f"{xml}: declares a document type or an entity, which an OpenVINO graph never does; it is refused")
        try:
            root = ElementTree.fromstring(text)
            nodes = _nodes(root)
        except (ElementTree.ParseError, KeyError, ValueError, TypeError) as error:
            raise InputError(f"{xml}: not an OpenVINO graph ({error}); the file is damaged, fetch it again") from error
        if root.tag != "net" or root.get("version") != "10":
            raise InputError(f"{xml}: an OpenVINO graph of version 10 is expected, found {root.tag} {root.get('version')}")
        return cls(xml, nodes, raw)

    def refuse(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what}; this is not the published MobileStyleGAN, or the file is damaged")

    def named(self, name: str) -> str:
        """The identifier of the constant of that name."""
        found = [i for i, node in self.nodes.items() if node.kind == "Const" and node.name == name]
        if len(found) != 1:
            raise self.refuse(f"{len(found)} constants are named {name}, one is expected")
        return found[0]

    def user(self, i: str, kind: str) -> str:
        """The identifier of the one node that takes the output of ``i``."""
        found = [key for key, node in self.nodes.items() if i in node.inputs and node.kind == kind]
        if len(found) != 1:
            raise self.refuse(f"one {kind} is expected to use {self.nodes[i].name}, found {len(found)}")
        return found[0]

    def operand(self, node: Node, port: int, kind: str) -> str:
        """The identifier of the node that feeds a port."""
        if port >= len(node.inputs) or (i := node.inputs[port]) not in self.nodes or self.nodes[i].kind != kind:
            raise self.refuse(f"a {kind} is expected at port {port} of {node.name}")
        return i

    def shape(self, i: str) -> tuple[int, ...]:
        """A constant's shape without the axes of length 1."""
        try:
            return tuple(n for n in map(int, filter(str.strip, self.nodes[i].data["shape"].split(","))) if n != 1)
        except (KeyError, ValueError) as error:
            raise self.refuse(f"constant {self.nodes[i].name} does not state its shape") from error

    def array(self, i: str, shape: tuple[int, ...]) -> Array:
        """A constant's numbers, if it has that shape but for axes of length 1."""
        node, found, size = self.nodes[i], self.shape(i), 4 * math.prod(shape)
        if node.data.get("element_type") != "f32" or found != tuple(n for n in shape if n != 1):
            raise self.refuse(f"constant {node.name} is {node.data.get('element_type')} {found}, f32 {shape} is expected")
        offset = node.data.get("offset", "")
        if not offset.isdecimal() or node.data.get("size") != str(size) or int(offset) + size > len(self.raw):
            raise self.refuse(f"constant {node.name} lies outside the {len(self.raw)} bytes of {self.path.stem}.bin")
        return np.frombuffer(self.raw, "<f4", size // 4, int(offset)).reshape(shape)


def _nodes(root: ElementTree.Element) -> dict[str, Node]:
    wires: dict[str, list[tuple[int, str]]] = {}
    for edge in root.findall("edges/edge"):
        wires.setdefault(edge.attrib["to-layer"], []).append((int(edge.attrib["to-port"]), edge.attrib["from-layer"]))
    nodes = {}
    for layer in root.findall("layers/layer"):
        data = layer.find("data")
        inputs = tuple(source for _, source in sorted(wires.get(layer.attrib["id"], [])))
        attributes = dict(data.attrib) if data is not None else {}
        nodes[layer.attrib["id"]] = Node(layer.attrib["type"], layer.attrib["name"], attributes, inputs)
    return nodes


def read_mapping(graph: Graph, style: int = STYLE, layers: int = MAPPING_LAYERS) -> dict[str, Array]:
    """``mapping.{0…7}.{weight, bias}``; the constants have no names, but the graph is one chain of layers in order."""
    _check_constants(graph)
    products = [key for key, node in graph.nodes.items() if node.kind == "MatMul"]
    if len(products) != layers:
        raise graph.refuse(f"{len(products)} matrix products, {layers} are expected")
    weights = {}
    for i, key in enumerate(products):
        biased = graph.nodes[graph.user(key, "Add")]
        bias = graph.nodes[graph.operand(biased, 1, "Reshape")]
        weights[f"mapping.{i}.weight"] = graph.array(graph.operand(graph.nodes[key], 1, "Const"), (style, style))
        weights[f"mapping.{i}.bias"] = graph.array(graph.operand(bias, 0, "Const"), (style,))
    return weights


def read_synthesis(graph: Graph, style: int = STYLE, channels: tuple[int, ...] = CHANNELS) -> dict[str, Array]:
    """``synthesis.…``, named as in ``mobilestylegan.Synthesis``."""
    _check_constants(graph)
    first, last = channels[0], len(channels) - 2
    parts = {"first": _layer(graph, "m.conv1", style, (first, first, 3, 3), 4, by_band(first))}
    for i, (coarse, fine) in enumerate(pairwise(channels)):
        source, as_published = f"m.layers.{i}", np.arange(fine)
        order = by_band(fine) if i < last else as_published  # the next block takes these channels for bands
        parts[f"blocks.{i}.up"] = _up(graph, f"{source}.up", style, coarse)
        parts[f"blocks.{i}.conv1"] = _layer(graph, f"{source}.conv1", style, (fine, coarse // 4), 8 << i, as_published)
        parts[f"blocks.{i}.conv2"] = _layer(graph, f"{source}.conv2", style, (fine, fine), 8 << i, order)
    parts["to_img"] = _to_img(graph, f"m.layers.{last}.to_img", style, channels[-1])
    constant = graph.array(graph.named("m.input.input"), (1, first, 4, 4))
    named = {f"synthesis.{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
    return {"synthesis.constant": constant, **named}


def by_band(channels: int) -> NDArray[np.intp]:
    """The published order of channels that hold Haar bands (all means, then three details of each) → ours, band by band.

    >>> by_band(8)
    array([0, 1, 3, 6, 2, 5, 4, 7])
    """
    quarter = np.arange(channels // 4)
    return np.concatenate([quarter, *(channels // 4 + 3 * quarter + detail for detail in (1, 0, 2))])


def _check_constants(graph: Graph) -> None:
    """Transposed convolutions are halves of a Haar transform, (1, ±1)/√2, and every leaky ReLU has the slope 0.2."""
    for node in graph.nodes.values():
        if node.kind == "GroupConvolutionBackpropData":
            i = graph.operand(node, 1, "Const")
            taps = math.sqrt(2) * graph.array(i, (*graph.shape(i)[:-1], 2)).reshape(-1, 2)
            if not np.allclose(taps, [1, np.sign(taps[0, 1])], atol=1e-5):
                raise graph.refuse(f"{node.name} is not part of a Haar transform")
        elif node.kind == "PReLU" and abs(graph.array(graph.operand(node, 1, "Const"), ()) - SLOPE) > 1e-5:
            raise graph.refuse(f"{node.name} has not the slope {SLOPE}")


def _modulation(graph: Graph, source: str, shape: tuple[int, int]) -> tuple[str, Array, Array]:
    """A modulation's result in the graph, brought to the axes of a map, its weight and its bias."""
    bias = graph.named(f"{source}.modulation.bias")
    reshaped = graph.user(graph.user(bias, "Add"), "Reshape")
    weight = graph.array(graph.named(f"{source}.modulation.weight"), shape)
    return reshaped, weight, graph.array(bias, shape[:1])


def _up(graph: Graph, source: str, style: int, channels: int) -> dict[str, Array]:
    """The modulation before an inverse Haar transform."""
    _, weight, bias = _modulation(graph, source, (channels, style))
    order = by_band(channels)
    return {"weight": weight[order], "bias": bias[order]}


def _scaled(graph: Graph, source: str, style: int, channels: int) -> dict[str, Array]:
    """The modulation before a convolution, with the constant that follows it."""
    reshaped, weight, bias = _modulation(graph, source, (channels, style))
    product = graph.nodes[graph.user(reshaped, "Multiply")]
    scale = graph.array(graph.operand(product, 1, "Const"), ())
    return {"modulation.weight": weight * scale, "modulation.bias": bias * scale}


def _layer(graph: Graph, source: str, style: int, shape: tuple[int, ...], size: int, order: NDArray[np.intp]) -> dict[str, Array]:
    """A modulated convolution (out, in, 3, 3), or its separable kind (out, in), with its noise and bias.

    The graph names neither the weight, which the demodulation was folded into, nor the noise: they stand before the bias.
    """
    bias = graph.named(f"{source}.bias")
    noisy = graph.nodes[graph.operand(graph.nodes[graph.user(bias, "Add")], 0, "Add")]
    convolution = graph.nodes[graph.operand(noisy, 0, "Convolution")]
    weight = graph.array(graph.operand(convolution, 1, "Const"), shape)[order]
    read = {
        **_scaled(graph, f"{source}.conv", style, shape[1]),
        "bias": graph.array(bias, shape[:1])[order],
        "noise": graph.array(graph.operand(noisy, 1, "Const"), (size, size)),
    }
    if len(shape) == 4:
        return {**read, "weight": weight}
    graph.operand(convolution, 0, "GroupConvolution")
    depthwise = graph.array(graph.named(f"{source}.conv.weight_dw"), (shape[1], 1, 3, 3))
    return {**read, "depthwise": depthwise, "pointwise": weight}


def _to_img(graph: Graph, source: str, style: int, channels: int) -> dict[str, Array]:
    """The head, with the inverse Haar transform that follows it: rows are (row, column, colour) of the 2 × 2 pixels."""
    order = by_band(12)
    weight = graph.array(graph.named(f"{source}.conv.weight"), (12, channels))[order].reshape(4, 3 * channels)
    bias = graph.array(graph.named(f"{source}.bias"), (12,))[order].reshape(4, 3)
    return {
        **_scaled(graph, f"{source}.conv", style, channels),
        "weight": (HAAR @ weight).astype(np.float32).reshape(12, channels),
        "bias": (HAAR @ bias).astype(np.float32).reshape(12),
    }


def style_statistics(mapping: Mapping[str, Array], samples: int = W_SAMPLES) -> dict[str, Array]:
    """Mean and deviation of w in each dimension, and its mean distance from the mean, in double precision."""
    z = np.random.default_rng(0).standard_normal((samples, mapping["mapping.0.weight"].shape[1]))
    w = z / np.sqrt((z**2).mean(1, keepdims=True) + 1e-8)
    for i in range(len(mapping) // 2):
        w = w @ mapping[f"mapping.{i}.weight"].T.astype(float) + mapping[f"mapping.{i}.bias"]
        w = np.where(w < 0, SLOPE * w, w) * math.sqrt(2)
    mean = w.mean(0)
    norm = np.linalg.norm(w - mean, axis=1).mean()
    return {name: np.asarray(a, np.float32) for name, a in (("w_mean", mean), ("w_std", w.std(0)), ("w_norm", norm))}
