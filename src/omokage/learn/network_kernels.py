"""Compiled passes of a multilayer perceptron whose parameters lie in one flat vector.

Layer ``l`` holds its weights ``(inputs, outputs)`` row by row, then its biases. A record's gradient for a
weight is ``y_i δ_j`` and for a bias ``δ_j``, so its norms need no gradient in memory: ``‖g‖₂² = Σ_l ‖δ‖²(‖y‖²
+ 1)`` and ``‖g‖₁ = Σ_l ‖δ‖₁(‖y‖₁ + 1)``. Work goes through rows in pieces that stay in the cache; that also
keeps floating-point sums short. In a piece a column is a record, so every inner loop runs over records.

**Alone.** Where a record's part is clipped and summed under a promise, its numbers must not depend on the
records beside it: a last bit that a neighbour's presence changes may turn a ReLU on or off, and then all of
the gradient changes. A matrix product by BLAS does not keep that (its order of additions depends on the shape
and on the place of a row), so these passes multiply with :func:`_weigh`, which adds each record's terms in
one fixed order. Plain training and prediction use BLAS.

**Overflow.** A record whose gradient norm is not a finite number, or whose outputs are too large to be scaled
exactly, contributes nothing. Zero is within every clip; NaN is not.
"""

from __future__ import annotations

import numpy as np

from ..base.compiling import kernel

_entry, _inner = kernel(), kernel(cached=False)

CHUNK = 256
# ‖y‖² (or ‖y‖₁) up to which a record takes part. Below it the norm is exact to its rounding for every clip of at
# least 2⁻¹⁰⁰: what underflows in Σδ² is at most 2⁻¹⁰²², times 2⁶⁰⁰ a norm of 2⁻²¹¹, far inside the clip's margin.
LARGEST = 2.0**600


@_inner
def _layer(flat, rows, start, width):
    """A ``(width, rows)`` view of a workspace in which the layers lie one after the other."""
    return flat[start * rows : (start + width) * rows].reshape((width, rows))


@_inner
def _weigh(weights, y, out):
    """``out = weightsᵀ y``, each column (record) computed alone and always in the same order."""
    m, rows = y.shape
    for j in range(weights.shape[1]):
        total = out[j]
        total[:] = 0.0
        whole = m - m % 4
        for i in range(0, whole, 4):
            a, b, c, d = weights[i, j], weights[i + 1, j], weights[i + 2, j], weights[i + 3, j]
            y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
            for r in range(rows):
                total[r] += (a * y0[r] + b * y1[r]) + (c * y2[r] + d * y3[r])
        for i in range(whole, m):
            a, y0 = weights[i, j], y[i]
            for r in range(rows):
                total[r] += a * y0[r]


@_inner
def _forward(theta, sizes, rows, acts, alone):
    """Fill in all layers from the input layer, which must be there already; the last one holds logits."""
    at, start = 0, 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        weights = theta[at : at + m * k].reshape((m, k))
        bias = theta[at + m * k : at + m * k + k]
        y = _layer(acts, rows, start, m)
        x = _layer(acts, rows, start + m, k)
        if alone:
            _weigh(weights, y, x)
        else:
            np.dot(weights.T, y, x)
        last = layer == len(sizes) - 2
        for j in range(k):
            for r in range(rows):
                v = x[j, r] + bias[j]
                x[j, r] = 0.0 if not last and v <= 0.0 else v
        at += m * k + k
        start += m


@_inner
def _softmax(logits):
    k, rows = logits.shape
    for r in range(rows):
        top = logits[0, r]
        for j in range(1, k):
            top = max(top, logits[j, r])
        total = 0.0
        for j in range(k):
            logits[j, r] = np.exp(logits[j, r] - top)
            total += logits[j, r]
        for j in range(k):
            logits[j, r] /= total


@_inner
def _backward(theta, sizes, rows, acts, deltas, labels, alone):
    """Error signals of softmax and cross-entropy, layer by layer from the end."""
    start = 0
    for layer in range(len(sizes) - 1):
        start += sizes[layer]
    k = sizes[-1]
    out = _layer(deltas, rows, start, k)
    out[:] = _layer(acts, rows, start, k)
    _softmax(out)
    for r in range(rows):
        out[labels[r], r] -= 1.0
    at = theta.size
    for layer in range(len(sizes) - 2, 0, -1):
        m, k = sizes[layer], sizes[layer + 1]
        at -= m * k + k
        weights = theta[at : at + m * k].reshape((m, k))
        above = _layer(deltas, rows, start, k)
        start -= m
        below = _layer(deltas, rows, start, m)
        if alone:
            _weigh(weights.T, above, below)
        else:
            np.dot(weights, above, below)
        y = _layer(acts, rows, start, m)
        for i in range(m):
            for r in range(rows):
                if y[i, r] <= 0.0:
                    below[i, r] = 0.0


@_inner
def _norms(sizes, rows, acts, deltas, order, out):
    """Each record's gradient norm, L1 or L2; infinite for a record that must not take part."""
    ys, ds = np.empty(rows), np.empty(rows)
    out[:rows] = 0.0
    start = 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        _column_sums(_layer(acts, rows, start, m), order, ys)
        _column_sums(_layer(deltas, rows, start + m, k), order, ds)
        start += m
        for r in range(rows):
            out[r] += (1.0 + ys[r]) * ds[r] if ys[r] <= LARGEST else np.inf
    for r in range(rows):
        if order == 2:
            out[r] = np.sqrt(out[r])
        if not np.isfinite(out[r]):
            out[r] = np.inf


@_inner
def _column_sums(values, order, out):
    """``Σ |v|`` or ``Σ v²`` of each column."""
    out[:] = 0.0
    for i in range(values.shape[0]):
        row = values[i]
        if order == 1:
            for r in range(out.size):
                out[r] += abs(row[r])
        else:
            for r in range(out.size):
                out[r] += row[r] * row[r]


@_inner
def _clip(sizes, rows, acts, deltas, norms, target):
    """Scale each record's error signals so that its norm is at most ``target``; empty a record whose norm is infinite."""
    factors = np.ones(rows)
    for r in range(rows):
        if norms[r] > target:
            factors[r] = target / norms[r]
    start = sizes[0]
    for layer in range(1, len(sizes)):
        d = _layer(deltas, rows, start, sizes[layer])
        start += sizes[layer]
        for j in range(d.shape[0]):
            for r in range(rows):
                d[j, r] *= factors[r]
    y = _layer(acts, rows, 0, np.sum(sizes))
    d = _layer(deltas, rows, 0, np.sum(sizes))
    for r in range(rows):
        if norms[r] == np.inf:
            y[:, r] = 0.0  # both: a zero times infinity would be NaN
            d[:, r] = 0.0


@_inner
def _add_products(sizes, rows, acts, deltas, piece, grad):
    """Add the records' gradients, whose error signals may have been scaled, to ``grad``."""
    at, start = 0, 0
    for layer in range(len(sizes) - 1):
        m, k = sizes[layer], sizes[layer + 1]
        y = _layer(acts, rows, start, m)
        d = _layer(deltas, rows, start + m, k)
        product = piece[at : at + m * k].reshape((m, k))
        np.dot(y, d.T, product)
        for j in range(at, at + m * k):
            grad[j] += piece[j]
        at += m * k
        for j in range(k):
            total = 0.0
            for r in range(rows):
                total += d[j, r]
            grad[at + j] += total
        at += k
        start += m


@_inner
def _load(X, index, first, rows, acts):
    y = _layer(acts, rows, 0, X.shape[1])
    for r in range(rows):
        y[:, r] = X[index[first + r]]


@_entry
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
        _forward(theta, sizes, rows, acts, True)
        _backward(theta, sizes, rows, acts, deltas, labels[index[first : first + rows]], True)
        if order > 0:
            _norms(sizes, rows, acts, deltas, order, norms)
            _clip(sizes, rows, acts, deltas, norms, target)
        _add_products(sizes, rows, acts, deltas, piece, grad)
    return grad


@_entry
def quantized_sum(theta, sizes, X, labels, index, low, high, step):
    """Sum over records of gradients clipped coordinate by coordinate, each rounded to whole grid steps first.

    Every record adds an integer between those of ``low`` and ``high`` to a coordinate (zero where its
    gradient is NaN), and integers add up exactly, so the sensitivity of the result is what it says, with
    nothing lost to rounding.
    """
    space = np.sum(sizes) * min(CHUNK, index.size)
    acts, deltas = np.empty(space), np.empty(space)
    ones = np.ones(CHUNK)
    grad = np.zeros(theta.size, np.int64)
    for first in range(0, index.size, CHUNK):
        rows = min(CHUNK, index.size - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts, True)
        _backward(theta, sizes, rows, acts, deltas, labels[index[first : first + rows]], True)
        at, start = 0, 0
        for layer in range(len(sizes) - 1):
            m, k = sizes[layer], sizes[layer + 1]
            y = _layer(acts, rows, start, m)
            d = _layer(deltas, rows, start + m, k)
            start += m
            for i in range(m + 1):
                factor = y[i] if i < m else ones[:rows]
                for j in range(k):
                    p = at + i * k + j
                    if step[p] > 0.0:
                        grad[p] += _steps(factor, d[j], low[p], high[p], step[p])
            at += m * k + k
    return grad


@_inner
def _steps(y, d, low, high, step):
    """``Σ_r round(clip(y_r d_r) / step)``; exact, because the sum of a piece stays far below 2⁵³."""
    total = 0.0
    for r in range(y.size):
        v = y[r] * d[r]
        v = low if v < low else v
        v = high if v > high else v
        total += np.floor(v / step + 0.5) if v == v else 0.0
    return np.int64(total)


@_entry
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
            _forward(theta, sizes, rows, acts, False)
            chosen = order[first + inner : first + inner + rows]
            _backward(theta, sizes, rows, acts, deltas, labels[chosen], False)
            _add_products(sizes, rows, acts, deltas, piece, grad)
        scale = rate / size
        for p in range(theta.size):
            v = theta[p] - scale * (grad[p] + decay * theta[p] * is_weight[p])
            theta[p] = min(max(v, low[p]), high[p])


@_entry
def probabilities(theta, sizes, X):
    """Class probabilities of every row."""
    acts = np.empty(np.sum(sizes) * min(CHUNK, X.shape[0]))
    out = np.empty((X.shape[0], sizes[-1]))
    start = np.sum(sizes) - sizes[-1]
    index = np.arange(X.shape[0])
    for first in range(0, X.shape[0], CHUNK):
        rows = min(CHUNK, X.shape[0] - first)
        _load(X, index, first, rows, acts)
        _forward(theta, sizes, rows, acts, False)
        logits = _layer(acts, rows, start, sizes[-1])
        _softmax(logits)
        out[first : first + rows] = logits.T
    return out


@_entry
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
        _forward(theta, sizes, rows, acts, True)
        _backward(theta, sizes, rows, acts, deltas, labels[first : first + rows], True)
        _norms(sizes, rows, acts, deltas, order, norms)
        out[first : first + rows] = norms[:rows]
    return out
