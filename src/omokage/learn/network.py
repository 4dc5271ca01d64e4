"""The paper's multilayer perceptron: inputs in [0, 1], ReLU inside, softmax and cross-entropy at the end.

``Network`` is a value: layer sizes and one flat vector of parameters. Training returns a new one. The paper's
interval propagation (equations 20 to 26, corrected) is here too, because it reads nothing but the parameters.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omokage.errors import InputError
from omokage.learn import network_kernels as kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """Layer sizes, input first, and the flat parameters: each layer's weights ``(inputs, outputs)``, then its biases."""

    sizes: tuple[int, ...]
    theta: Floats

    @property
    def layers(self) -> list[tuple[Floats, Floats]]:
        """Views of weights and biases, layer by layer."""
        out, at = [], 0
        for m, k in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            out.append((self.theta[at : at + m * k].reshape(m, k), self.theta[at + m * k : at + m * k + k]))
            at += m * k + k
        return out

    @property
    def shape(self) -> Integers:
        return np.array(self.sizes, np.int64)

    def probabilities(self, inputs: Floats) -> Floats:
        """Class probabilities ``(n, classes)``; a NaN anywhere is an error, not a class."""
        out = np.asarray(kernels.probabilities(self.theta, self.shape, np.ascontiguousarray(inputs, np.float64)))
        if not np.isfinite(out).all():
            raise InputError("the network answers with NaN: train it again with a smaller learning_rate")
        return out

    def gradient(self, inputs: Floats, labels: Integers, rows: Integers, norm: int, clip: float) -> Floats:
        """Sum over ``rows`` of gradients clipped to ``clip`` in L1 or L2 (``norm`` 1 or 2; 0 does not clip)."""
        return np.asarray(kernels.gradient_sum(self.theta, self.shape, inputs, labels, rows, norm, clip))


def parameter_count(sizes: tuple[int, ...]) -> int:
    """Weights and biases together.

    >>> parameter_count((104, 32, 32, 32, 32, 2))
    6594
    """
    return sum((m + 1) * k for m, k in itertools.pairwise(sizes))


def weight_mask(sizes: tuple[int, ...]) -> Floats:
    """One where a parameter is a weight, zero where it is a bias."""
    parts = [np.repeat([1.0, 0.0], [m * k, k]) for m, k in itertools.pairwise(sizes)]
    return np.concatenate(parts)


def initial_network(sizes: tuple[int, ...], rng: np.random.Generator) -> Network:
    """He's initialization for hidden layers; zeros for a single layer, where there is no symmetry to break."""
    parts: list[Floats] = []
    for m, k in itertools.pairwise(sizes):
        spread = 0.0 if len(sizes) == 2 else np.sqrt(2.0 / m)
        parts += [rng.standard_normal(m * k) * spread, np.zeros(k)]
    return Network(sizes, np.concatenate(parts))


def train(
    network: Network,
    inputs: Floats,
    labels: Integers,
    rng: np.random.Generator,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    decay: float,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
) -> Network:
    """Ordinary minibatch training, ``w ← w − α(Δw + λw)/B`` (equations 5 and 6), with parameters kept in ``[low, high]``.

    Where that range is finite, the result is in it even if the training diverges: that it does would tell
    about the records, and what comes after needs no more than the range.
    """
    theta = network.theta.copy()
    low = np.broadcast_to(np.asarray(low, np.float64), theta.shape).copy()
    high = np.broadcast_to(np.asarray(high, np.float64), theta.shape).copy()
    bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
    mask = weight_mask(network.sizes)
    theta = np.clip(theta, low, high)
    for epoch in range(epochs):
        order = rng.permutation(len(inputs))
        kernels.sgd_epoch(theta, network.shape, inputs, labels, order, batch_size, learning_rate, decay, mask, low, high)
        if bounded:
            theta = np.clip(np.nan_to_num(theta, nan=0.0), low, high)
        else:
            check_finite(theta, f"epoch {epoch + 1}")
    return Network(network.sizes, theta)


def check_finite(theta: Floats, when: str) -> None:
    if not np.isfinite(theta).all():
        raise InputError(f"training diverged, a parameter is not finite after {when}: choose a smaller learning_rate")


def gradient_intervals(network: Network) -> tuple[Floats, Floats]:
    """The least and the largest value one record's gradient can take, for each parameter, given inputs in [0, 1].

    Equations 20 to 26 with equation 21 mended: the largest output of a ReLU is ``max(0, max x)``. Without
    that, negative biases give bounds that real gradients leave. As in the paper the inputs' lower bound 0 and
    the ReLU's own are used, so the interval is wider than it need be and safe. Where a double overflows the
    bound is infinite or NaN; the caller has a finite one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _propagate(network)


def _propagate(network: Network) -> tuple[Floats, Floats]:
    layers = network.layers
    tops = [np.ones(network.sizes[0])]
    for weights, bias in layers[:-1]:
        tops.append(np.maximum(bias + tops[-1] @ np.maximum(weights, 0.0), 0.0))
    low, high = -np.ones(network.sizes[-1]), np.ones(network.sizes[-1])
    lows: list[Floats] = []
    highs: list[Floats] = []
    for (weights, _), top in zip(reversed(layers), reversed(tops), strict=True):
        lows = [np.outer(top, low).ravel(), low, *lows]
        highs = [np.outer(top, high).ravel(), high, *highs]
        up, down = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
        low, high = up @ low + down @ high, up @ high + down @ low
    return np.concatenate(lows), np.concatenate(highs)
