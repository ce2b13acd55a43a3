"""What old layers computed, stated plainly in NumPy, as the CPU plug-ins of their time did it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from vinoir.schemas import Array


def by_channel(values: Array, rank: int) -> Array:
    return values.reshape(1, -1, *[1] * (rank - 2))


# Plain statements.


def convolved(
    x: Array, w: Array, strides: Sequence[int], begin: Sequence[int], end: Sequence[int],
    dilations: Sequence[int], group: int = 1,
) -> Array:  # fmt: skip
    """Weights [O, I/g, ...]: each output channel from the channels of its group."""
    axes = len(strides)
    x = np.pad(x, [(0, 0), (0, 0), *zip(begin, end, strict=True)])
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [(n - s) // t + 1 for n, s, t in zip(x.shape[2:], spans, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), np.float32)
    per_in, per_out = w.shape[1], w.shape[0] // group
    for o in range(w.shape[0]):
        first = o // per_out * per_in
        for place in np.ndindex(*sizes):
            cut: Any = (slice(None), slice(first, first + per_in), *(
                slice(place[a] * strides[a], place[a] * strides[a] + spans[a], dilations[a])
                for a in range(axes)
            ))  # fmt: skip
            out[(slice(None), o, *place)] = (x[cut] * w[o]).sum(tuple(range(1, axes + 2)))
    return out


def transposed(
    x: Array, w: Array, strides: Sequence[int], begin: Sequence[int], out: Sequence[int],
    group: int = 1,
) -> Array:  # fmt: skip
    """Weights [I, O/g, ...]: each input element spreads its kernel; ``begin`` is cut off."""
    per_in, per_out = x.shape[1] // group, w.shape[1]
    full = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, w.shape[2:], strict=True)]
    wide = [max(f, b + n) for f, b, n in zip(full, begin, out, strict=True)]
    made = np.zeros((x.shape[0], per_out * group, *wide), np.float32)
    for i in range(x.shape[1]):
        g = i // per_in
        for place in np.ndindex(*x.shape[2:]):
            steps = zip(place, strides, w.shape[2:], strict=True)
            window = [slice(p * s, p * s + k) for p, s, k in steps]
            cut: Any = (slice(None), slice(g * per_out, (g + 1) * per_out), *window)
            made[cut] += x[(slice(None), i, *place)].reshape(-1, *[1] * (w.ndim - 1)) * w[i][None]
    cut = (..., *(slice(b, b + n) for b, n in zip(begin, out, strict=True)))
    return made[cut]


def pooled(
    x: Array, kernel: Sequence[int], strides: Sequence[int], begin: Sequence[int],
    end: Sequence[int], sizes: Sequence[int], method: str = "max", exclude: bool = False,
) -> Array:  # fmt: skip
    """Window by window, as many as the output has; the mean as Caffe divided."""
    out = np.empty((*x.shape[:2], *sizes), np.float32)
    padded = any(begin) or any(end)
    for place in np.ndindex(*sizes):
        cut, area = [], 1
        for a, p in enumerate(place):
            start = p * strides[a] - begin[a]
            stop = min(start + kernel[a], x.shape[2 + a] + end[a])
            area *= stop - start
            cut.append(slice(max(start, 0), min(stop, x.shape[2 + a])))
        window = x[(..., *cut)].reshape(*x.shape[:2], -1)
        if method == "max":
            out[(..., *place)] = window.max(-1)
        else:
            count = area if padded and not exclude else window.shape[-1]
            out[(..., *place)] = window.sum(-1) / count
    return out


def old_size(size: int, kernel: int, stride: int, begin: int, end: int, *, floor: bool) -> int:
    """The old shape rule of poolings."""
    exact = 1 + (size + begin + end - kernel) / stride
    count = math.floor(exact) if floor else math.ceil(exact)
    return count - ((count - 1) * stride >= size + begin)


def local_response(
    x: Array, size: int, alpha: float, beta: float, k: float, *, across: bool
) -> Array:
    out = np.empty_like(x)
    half = size // 2
    for c, h, w in np.ndindex(*x.shape[1:]):
        if across:
            window = x[:, max(0, c - half) : c + half + 1, h, w]
            total = (window**2).sum(1) / size
        else:
            window = x[:, c, max(0, h - half) : h + half + 1, max(0, w - half) : w + half + 1]
            total = (window**2).sum((1, 2)) / size**2
        out[:, c, h, w] = x[:, c, h, w] / (k + alpha * total) ** beta
    return out


def resample_nearest(x: Array, height: int, width: int) -> Array:
    rows = np.floor(np.arange(height) * np.float32(x.shape[2] / height)).astype(int)
    columns = np.floor(np.arange(width) * np.float32(x.shape[3] / width)).astype(int)
    return x[:, :, rows][:, :, :, columns]


def resample_linear(x: Array, height: int, width: int, *, antialias: bool = False) -> Array:
    def matrix(size: int, count: int) -> Array:
        step = size / count
        squeeze = 1 / step if antialias else 1
        places = (np.arange(count) + 0.5) * step - 0.5
        near = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size)) * squeeze)
        reach = 2 if step < 1 else math.ceil(2 / squeeze)
        near[np.abs(np.round(places)[:, None] - np.arange(size)) > reach] = 0
        return near / near.sum(1, keepdims=True)

    return np.einsum("hH,wW,ncHW->nchw", matrix(x.shape[2], height), matrix(x.shape[3], width), x)


def interp(x: Array, height: int, width: int, *, corners: bool) -> Array:
    def taken(x: Array, axis: int, count: int) -> Array:
        size = x.shape[axis]
        step = ((size - 1) / (count - 1) if count > 1 else 0) if corners else size / count
        places = np.arange(count) * step
        low = places.astype(int)
        high = np.minimum(low + 1, size - 1)
        shape = [-1 if a == axis else 1 for a in range(4)]
        part = (places - low).reshape(shape)
        return x.take(low, axis) * (1 - part) + x.take(high, axis) * part

    return taken(taken(x, 2, height), 3, width)


def normalized(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    return x / np.sqrt((x**2).sum(axes, keepdims=True) + eps)


def mean_free(x: Array, axes: tuple[int, ...], *, variance: bool) -> Array:
    x = x - x.mean(axes, keepdims=True)
    return x / np.sqrt((x**2).mean(axes, keepdims=True) + 1e-9) if variance else x


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def prior_boxes(image: tuple[int, int], grid: tuple[int, int], boxes: Sequence[Any]) -> Array:
    """Centres at (i + 0.5) * step, boxes (width, height) of the image."""
    rows = []
    for h in range(grid[0]):
        for w in range(grid[1]):
            x, y = (w + 0.5) * image[1] / grid[1], (h + 0.5) * image[0] / grid[0]
            for width, height in boxes:
                rows += [(x - width / 2) / image[1], (y - height / 2) / image[0],
                         (x + width / 2) / image[1], (y + height / 2) / image[0]]  # fmt: skip
    flat = np.array(rows, np.float32)
    return np.stack([flat, np.tile(np.float32([0.1, 0.1, 0.2, 0.2]), len(flat) // 4)])[None]


def reorg(x: Array) -> Array:
    """As the old plug-in walked through memory: blocks by row and column, channels within."""
    n, c, h, w = x.shape
    out = np.zeros(x.size, np.float32)
    flat, small = x.ravel(), c // 4
    for k in range(c):
        for j in range(h):
            for i in range(w):
                place = i + w * (j + h * k)
                c2, offset = k % small, k // small
                w2, h2 = i * 2 + offset % 2, j * 2 + offset // 2
                out[place] = flat[w2 + w * 2 * (h2 + h * 2 * c2)]
    return out.reshape(n, c * 4, h // 2, w // 2)


def ctc(x: Array) -> Array:
    out, last = [], -1
    for label in x[:, 0].argmax(-1):
        if label < x.shape[2] - 1 and label != last:
            out.append(label)
        last = label
    return np.float32([*out, *[-1] * (len(x) - len(out))]).reshape(1, -1, 1, 1)
