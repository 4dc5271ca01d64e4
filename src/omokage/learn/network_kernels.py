"""Compiled passes of a multilayer perceptron whose parameters lie in one flat vector.

Layer ``l`` holds its weights ``(inputs, outputs)`` row by row, then its biases. A record's gradient for a
weight is ``y_i δ_j`` and for a bias ``δ_j``, so its norms need no gradient in memory: ``‖g‖₂² = Σ_l ‖δ‖²(‖y‖²
+ 1)`` and ``‖g‖₁ = Σ_l ‖δ‖₁(‖y‖₁ + 1)``. Work goes through rows in pieces that stay in the cache; that also
keeps floating-point sums short.
"""

from __future__ import annotations

import numba as nb
import numpy as np

CHUNK = 256


@nb.njit(nogil=True, cache=True)
def _layer(flat, rows, start, width):
    """A ``(rows, width)`` view of a workspace in which the layers lie one after the other."""
    return flat[start * rows : (start + width) * rows].reshape((rows, width))


@nb.njit(nogil=True, cache=True)
def _forward(theta, sizes, rows, acts):
    """Fill in all layers from the input layer, which must be there already; the last one holds logits."""
    at, start = 0, 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        weights = theta[at : at + m * k].reshape((m, k))
        bias = theta[at + m * k : at + m * k + k]
        y = _layer(acts, rows, start, m)
        x = _layer(acts, rows, start + m, k)
        np.dot(y, weights, x)
        last = layer == len(sizes) - 2
        for r in range(rows):
            for j in range(k):
                v = x[r, j] + bias[j]
                x[r, j] = v if last or v > 0.0 else 0.0
        at += m * k + k
        start += m


@nb.njit(nogil=True, cache=True)
def _softmax(logits):
    for r in range(logits.shape[0]):
        top = logits[r, 0]
        for j in range(1, logits.shape[1]):
            top = max(top, logits[r, j])
        total = 0.0
        for j in range(logits.shape[1]):
            logits[r, j] = np.exp(logits[r, j] - top)
            total += logits[r, j]
        for j in range(logits.shape[1]):
            logits[r, j] /= total


@nb.njit(nogil=True, cache=True)
def _backward(theta, sizes, rows, acts, deltas, labels):
    """Error signals of softmax and cross-entropy, layer by layer from the end."""
    start = 0
    for layer in range(len(sizes) - 1):
        start += sizes[layer]
    k = sizes[-1]
    out = _layer(deltas, rows, start, k)
    out[:] = _layer(acts, rows, start, k)
    _softmax(out)
    for r in range(rows):
        out[r, labels[r]] -= 1.0
    at = theta.size
    for layer in range(len(sizes) - 2, 0, -1):
        m, k = sizes[layer], sizes[layer + 1]
        at -= m * k + k
        weights = theta[at : at + m * k].reshape((m, k))
        above = _layer(deltas, rows, start, k)
        start -= m
        below = _layer(deltas, rows, start, m)
        np.dot(above, weights.T, below)
        y = _layer(acts, rows, start, m)
        for r in range(rows):
            for j in range(m):
                if y[r, j] <= 0.0:
                    below[r, j] = 0.0


@nb.njit(nogil=True, cache=True)
def _norms(sizes, rows, acts, deltas, order, out):
    """Each record's gradient norm, L1 or L2."""
    out[:rows] = 0.0
    start = 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        y = _layer(acts, rows, start, m)
        d = _layer(deltas, rows, start + m, k)
        start += m
        for r in range(rows):
            a, b = 1.0, 0.0
            if order == 1:
                for i in range(m):
                    a += abs(y[r, i])
                for j in range(k):
                    b += abs(d[r, j])
            else:
                for i in range(m):
                    a += y[r, i] * y[r, i]
                for j in range(k):
                    b += d[r, j] * d[r, j]
            out[r] += a * b
    if order == 2:
        for r in range(rows):
            out[r] = np.sqrt(out[r])


@nb.njit(nogil=True, cache=True)
def _add_products(sizes, rows, acts, deltas, piece, grad):
    """Add the records' gradients, whose error signals may have been scaled, to ``grad``."""
    at, start = 0, 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        y = _layer(acts, rows, start, m)
        d = _layer(deltas, rows, start + m, k)
        product = piece[at : at + m * k].reshape((m, k))
        np.dot(y.T, d, product)
        for j in range(at, at + m * k):
            grad[j] += piece[j]
        at += m * k
        for j in range(k):
            total = 0.0
            for r in range(rows):
                total += d[r, j]
            grad[at + j] += total
        at += k
        start += m


@nb.njit(nogil=True, cache=True)
def _load(X, index, first, rows, acts):
    d = X.shape[1]
    y = _layer(acts, rows, 0, d)
    for r in range(rows):
        y[r] = X[index[first + r]]


@nb.njit(nogil=True, cache=True)
def gradient_sum(theta, sizes, X, labels, index, order, clip):
    """Sum of the gradients of the records ``index``, each clipped to ``clip`` in the norm ``order`` (0: not clipped).

    The clip aims 2⁻³⁰ below the bound, so that rounding in the norm cannot lift a record above it.
    """
    space = np.sum(sizes) * min(CHUNK, index.size)
    acts, deltas = np.empty(space), np.empty(space)
    norms = np.empty(CHUNK)
    piece = np.empty(theta.size)
    grad = np.zeros(theta.size)
    target = clip * (1.0 - 2.0**-30)
    for first in range(0, index.size, CHUNK):
        rows = min(CHUNK, index.size - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts)
        _backward(theta, sizes, rows, acts, deltas, labels[index[first : first + rows]])
        if order > 0:
            _norms(sizes, rows, acts, deltas, order, norms)
            start = sizes[0]
            for layer in range(1, len(sizes)):
                d = _layer(deltas, rows, start, sizes[layer])
                start += sizes[layer]
                for r in range(rows):
                    if norms[r] > target:
                        d[r] *= target / norms[r]
        _add_products(sizes, rows, acts, deltas, piece, grad)
    return grad


@nb.njit(nogil=True, cache=True)
def quantized_sum(theta, sizes, X, labels, index, low, high, step):
    """Sum over records of gradients clipped coordinate by coordinate, each rounded to whole grid steps first.

    Every record adds an integer between those of ``low`` and ``high`` to a coordinate, and integers add up
    exactly, so the sensitivity of the result is what it says, with nothing lost to rounding.
    """
    space = np.sum(sizes) * min(CHUNK, index.size)
    acts, deltas = np.empty(space), np.empty(space)
    grad = np.zeros(theta.size, np.int64)
    for first in range(0, index.size, CHUNK):
        rows = min(CHUNK, index.size - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts)
        _backward(theta, sizes, rows, acts, deltas, labels[index[first : first + rows]])
        at, start = 0, 0
        for layer in range(len(sizes) - 1):
            m, k = sizes[layer], sizes[layer + 1]
            y = _layer(acts, rows, start, m)
            d = _layer(deltas, rows, start + m, k)
            start += m
            for r in range(rows):
                for i in range(m + 1):
                    factor = y[r, i] if i < m else 1.0
                    if factor == 0.0:
                        continue
                    for j in range(k):
                        p = at + i * k + j
                        if step[p] > 0.0:
                            v = min(max(factor * d[r, j], low[p]), high[p])
                            grad[p] += np.int64(np.floor(v / step[p] + 0.5))
            at += m * k + k
    return grad


@nb.njit(nogil=True, cache=True)
def sgd_epoch(theta, sizes, X, labels, order, batch, rate, decay, is_weight, low, high):
    """One pass of the paper's equations 5 and 6 over the records in ``order``; ``low`` and ``high`` bound the parameters."""
    space = np.sum(sizes) * min(CHUNK, batch)
    acts, deltas = np.empty(space), np.empty(space)
    piece = np.empty(theta.size)
    grad = np.empty(theta.size)
    for first in range(0, order.size, batch):
        size = min(batch, order.size - first)
        grad[:] = 0.0
        for inner in range(0, size, CHUNK):
            rows = min(CHUNK, size - inner)
            _load(X, order, first + inner, rows, acts)
            _forward(theta, sizes, rows, acts)
            chosen = order[first + inner : first + inner + rows]
            _backward(theta, sizes, rows, acts, deltas, labels[chosen])
            _add_products(sizes, rows, acts, deltas, piece, grad)
        scale = rate / size
        for p in range(theta.size):
            v = theta[p] - scale * (grad[p] + decay * theta[p] * is_weight[p])
            theta[p] = min(max(v, low[p]), high[p])


@nb.njit(nogil=True, cache=True)
def probabilities(theta, sizes, X):
    """Class probabilities of every row."""
    acts = np.empty(np.sum(sizes) * min(CHUNK, X.shape[0]))
    out = np.empty((X.shape[0], sizes[-1]))
    start = np.sum(sizes) - sizes[-1]
    index = np.arange(X.shape[0])
    for first in range(0, X.shape[0], CHUNK):
        rows = min(CHUNK, X.shape[0] - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts)
        logits = _layer(acts, rows, start, sizes[-1])
        _softmax(logits)
        out[first : first + rows] = logits
    return out


@nb.njit(nogil=True, cache=True)
def record_norms(theta, sizes, X, labels, order):
    """Gradient norm of each record, as ``gradient_sum`` sees it."""
    space = np.sum(sizes) * min(CHUNK, X.shape[0])
    acts, deltas = np.empty(space), np.empty(space)
    norms = np.empty(CHUNK)
    out = np.empty(X.shape[0])
    index = np.arange(X.shape[0])
    for first in range(0, X.shape[0], CHUNK):
        rows = min(CHUNK, X.shape[0] - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts)
        _backward(theta, sizes, rows, acts, deltas, labels[first : first + rows])
        _norms(sizes, rows, acts, deltas, order, norms)
        out[first : first + rows] = norms[:rows]
    return out
