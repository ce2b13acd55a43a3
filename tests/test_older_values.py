"""Each old layer type: an old file made here, and a plain NumPy statement of what it computed.

The upgraded model must give the numbers of that statement, infer to the declared sizes, and be
written as a file that OpenVINO reads and that gives the same there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from older_files import OldFile, Spot
from oracle import ask
from vinoir import ir
from vinoir.ir.files.older.table import entries
from vinoir.schemas import Array

RNG = np.random.default_rng(7)


def draw(*dims: int) -> Array:
    return RNG.normal(0, 1, dims).astype(np.float32)


class Case(NamedTuple):
    """One layer: sizes of its inputs (arrays are constants), attributes, blobs, outputs."""

    type: str
    inputs: Sequence[Any]
    data: dict[str, Any]
    blobs: dict[str, Any]
    outputs: Sequence[Sequence[int]]
    #: What the outputs are of the inputs (constants among them).
    expected: Callable[..., Any]
    version: int = 6
    precision: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it


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


W = draw(4, 3, 3, 3)
WG = draw(4, 2, 3, 3)
D = draw(3, 2, 3, 3)
B4 = draw(4)
SCALE, SHIFT = draw(3), draw(3)
VAR = np.abs(draw(3)) + 0.1
FC = draw(5, 12)
X4 = (2, 3, 4, 5)

CASES = {
    "convolution": Case(
        "Convolution", [(2, 3, 7, 6)],
        {"kernel": "3,3", "strides": "2,1", "pads_begin": "1,0", "pads_end": "0,2",
         "dilations": "1,2", "output": 4},
        {"weights": W, "biases": B4}, [(2, 4, 3, 4)],
        lambda x: convolved(x, W, (2, 1), (1, 0), (0, 2), (1, 2)) + by_channel(B4, 4),
    ),
    "convolution of v2, pads_end is pads_begin": Case(
        "Convolution", [(2, 3, 7, 6)],
        {"kernel-x": 3, "kernel-y": 3, "stride-x": 0, "stride-y": 2, "pad-x": 1, "pad-y": 0,
         "pad-b": 1, "output": 4, "group": 1, "stride": "1,1,2,1"},
        {"weights": W}, [(2, 4, 3, 6)],
        lambda x: convolved(x, W, (2, 1), (0, 1), (1, 1), (1, 1)), 2,
    ),
    "convolution in groups": Case(
        "Convolution", [(1, 4, 5, 5)], {"kernel": "3,3", "output": 4, "group": 2},
        {"weights": WG, "biases": B4}, [(1, 4, 3, 3)],
        lambda x: convolved(x, WG, (1, 1), (0, 0), (0, 0), (1, 1), 2) + by_channel(B4, 4), 3,
    ),
    "convolution of half weights": Case(
        "Convolution", [(2, 3, 4, 4)], {"kernel": "3,3", "output": 4},
        {"weights": W.astype("f2")}, [(2, 4, 2, 2)],
        lambda x: convolved(x, W.astype("f2").astype("f4"), (1, 1), (0, 0), (0, 0), (1, 1)),
        precision="FP16",
    ),
    "convolution of a calibrated layer": Case(
        "Convolution", [(2, 3, 4, 4)], {"kernel": "3,3", "output": 4}, {"weights": W.tobytes()},
        [(2, 4, 2, 2)], lambda x: convolved(x, W, (1, 1), (0, 0), (0, 0), (1, 1)), 4, "I8",
    ),
    "convolution of same_upper": Case(
        "Convolution", [(2, 3, 5, 5)],
        {"kernel": "3,3", "strides": "2,2", "output": 4, "auto_pad": "same_upper"},
        {"weights": W}, [(2, 4, 3, 3)],
        lambda x: convolved(x, W, (2, 2), (1, 1), (1, 1), (1, 1)),
    ),
    "convolution of same_lower, whose old size is smaller": Case(
        "Convolution", [(2, 3, 5, 5)],
        {"kernel": "3,3", "strides": "2,2", "output": 4, "auto_pad": "same_lower"},
        {"weights": W}, [(2, 4, 2, 2)],
        lambda x: convolved(x, W, (2, 2), (1, 1), (1, 1), (1, 1))[:, :, :2, :2],
    ),
    "convolution over three axes": Case(
        "Convolution", [(1, 1, 3, 4, 5)], {"kernel": "2,2,2", "output": 2},
        {"weights": W.ravel()[:16].reshape(2, 1, 2, 2, 2)}, [(1, 2, 2, 3, 4)],
        lambda x: convolved(
            x, W.ravel()[:16].reshape(2, 1, 2, 2, 2), (1,) * 3, (0,) * 3, (0,) * 3, (1,) * 3
        ),
    ),
    "deconvolution": Case(
        "Deconvolution", [(2, 3, 4, 3)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,0", "pads_end": "1,1", "output": 2},
        {"weights": D, "biases": B4[:2]}, [(2, 2, 7, 6)],
        lambda x: transposed(x, D, (2, 2), (1, 0), (7, 6)) + by_channel(B4[:2], 4),
    ),
    "deconvolution in groups, of which more is declared": Case(
        "Deconvolution", [(1, 4, 3, 3)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "output": 4, "group": 2},
        {"weights": WG}, [(1, 4, 6, 6)],
        lambda x: transposed(x, WG, (2, 2), (1, 1), (6, 6), 2), 3,
    ),
    "deconvolution of same_upper": Case(
        "Deconvolution", [(1, 3, 3, 3)],
        {"kernel": "3,3", "strides": "2,2", "output": 2, "auto_pad": "same_upper"},
        {"weights": D}, [(1, 2, 6, 6)], lambda x: transposed(x, D, (2, 2), (0, 0), (6, 6)),
    ),
    "pooling without a rounding": Case(
        "Pooling", [(2, 3, 8, 7)], {"kernel": "3,3", "strides": "2,2", "pool-method": "max"}, {},
        [(2, 3, 4, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (4, 3)),
    ),
    "pooling rounded down": Case(
        "Pooling", [(2, 3, 8, 7)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "rounding_type": "floor"}, {},
        [(2, 3, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (3, 3)),
    ),
    "pooling whose last window would begin in the padding": Case(
        "Pooling", [(1, 1, 4, 4)],
        {"kernel": "2,2", "strides": "3,3", "pads_begin": "1,1", "pool-method": "avg",
         "exclude-pad": "false", "rounding_type": "ceil"}, {},
        [(1, 1, 2, 2)],
        lambda x: pooled(x, (2, 2), (3, 3), (1, 1), (1, 1), (2, 2), "avg"),
    ),
    "pooling by mean, the last window overhanging": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "avg", "rounding-type": "ceil"}, {},
        [(1, 2, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (3, 3), "avg"), 4,
    ),
    "pooling by mean with padding, overhanging": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "3,3", "pads_begin": "1,1", "pads_end": "0,0",
         "pool-method": "avg"}, {}, [(1, 2, 3, 3)],
        lambda x: pooled(x, (3, 3), (3, 3), (1, 1), (0, 0), (3, 3), "avg"),
    ),
    "pooling by mean of what is there": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pool-method": "avg",
         "exclude-pad": "true", "rounding_type": "floor"}, {}, [(1, 2, 3, 3)],
        lambda x: pooled(x, (3, 3), (2, 2), (1, 1), (1, 1), (3, 3), "avg", True),
    ),
    "pooling of v2": Case(
        "Pooling", [(1, 2, 7, 8)],
        {"kernel-x": 3, "kernel-y": 2, "stride-x": 2, "stride-y": 2, "pad-x": 1, "pad-y": 0,
         "exclude-pad": "true", "pool-method": "max", "rounding-type": "ceil",
         "stride": "1,1,2,2"},
        {}, [(1, 2, 4, 5)], lambda x: pooled(x, (2, 3), (2, 2), (0, 1), (0, 1), (4, 5)), 2,
    ),
    "pooling straight from Caffe": Case(
        "Pooling", [(1, 2, 7, 7)],
        {"kernel_size": 3, "stride": 2, "pad_h": 1, "pool": "caffe.PoolingParameter.AVE"}, {},
        [(1, 2, 4, 3)], lambda x: pooled(x, (3, 3), (2, 2), (1, 0), (0, 0), (4, 3), "avg"), 2,
    ),
    "pooling over three axes": Case(
        "Pooling", [(1, 2, 4, 5, 6)],
        {"kernel": "2,2,3", "strides": "2,1,2", "pool-method": "max"}, {}, [(1, 2, 2, 4, 3)],
        lambda x: pooled(x, (2, 2, 3), (2, 1, 2), (0,) * 3, (0,) * 3, (2, 4, 3)),
    ),
    "pooling of everything": Case(
        "Pooling", [(1, 2, 5, 6)],
        {"kernel": "5,6", "global_pool": "True", "pool-method": "avg"}, {}, [(1, 2, 1, 1)],
        lambda x: x.mean((2, 3), keepdims=True),
    ),
    "pooling of same_upper": Case(
        "Pooling", [(1, 2, 5, 6)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "auto_pad": "same_upper"}, {},
        [(1, 2, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (1, 0), (1, 1), (3, 3)),
    ),
    "fully connected": Case(
        "FullyConnected", [(2, 3, 2, 2)], {"out-size": 5}, {"weights": FC, "biases": SCALE[:1]
         .repeat(5)}, [(2, 5)], lambda x: x.reshape(2, 12) @ FC.T + SCALE[0],
    ),
    "fully connected of v2": Case(
        "InnerProduct", [(2, 12)], {"out-size": 5}, {"weights": FC}, [(2, 5)],
        lambda x: x @ FC.T, 2, more={"tag": "fc_data"},
    ),
    "product": Case(
        "Gemm", [(2, 4, 3), (2, 4, 5), (2, 3, 5)],
        {"alpha": 2, "beta": 0.5, "transpose_a": "true", "transpose_b": 0}, {}, [(2, 3, 5)],
        lambda a, b, c: 2 * a.swapaxes(1, 2) @ b + 0.5 * c,
    ),
    "batch normalization": Case(
        "BatchNormalization", [X4], {"epsilon": 1e-3}, {"weights": VAR, "biases": SHIFT}, [X4],
        lambda x: (x - by_channel(SHIFT, 4)) / np.sqrt(by_channel(VAR, 4) + 1e-3), 2,
        more={"tag": "batch_norm_data"},
    ),
    "scale and shift": Case(
        "ScaleShift", [X4], {"broadcast": 2}, {"weights": SCALE, "biases": SHIFT}, [X4],
        lambda x: x * by_channel(SCALE, 4) + by_channel(SHIFT, 4), 2,
    ),
    "shift alone": Case(
        "ScaleShift", [(2, 3)], {}, {"biases": SHIFT}, [(2, 3)], lambda x: x + SHIFT,
    ),
    "norm across": Case(
        "Norm", [(2, 6, 3, 3)],
        {"alpha": 0.7, "beta": 0.75, "local-size": 3, "k": 2, "region": "across"}, {},
        [(2, 6, 3, 3)], lambda x: local_response(x, 3, 0.7, 0.75, 2, across=True), 2,
        more={"tag": "norm_data"},
    ),
    "norm within": Case(
        "LRN", [(1, 2, 5, 5)],
        {"alpha": 0.7, "beta": 0.75, "local_size": 3, "region": "same"}, {}, [(1, 2, 5, 5)],
        lambda x: local_response(x, 3, 0.7, 0.75, 1, across=False),
    ),
    "normalize": Case(
        "Normalize", [X4], {"across_spatial": 0, "channel_shared": 0, "eps": 1e-10},
        {"weights": SCALE}, [X4], lambda x: normalized(x, (1,), 1e-10) * by_channel(SCALE, 4),
    ),
    "normalize all but the batch": Case(
        "Normalize", [X4], {"across_spatial": 1, "channel_shared": 1, "eps": 1e-10},
        {"weights": SCALE[:1]}, [X4], lambda x: normalized(x, (1, 2, 3), 1e-10) * SCALE[0],
    ),
    "mean and variance": Case(
        "MVN", [X4], {"across_channels": 0, "normalize_variance": 1, "eps": 1e-9}, {}, [X4],
        lambda x: mean_free(x, (2, 3), variance=True),
    ),
    "mean across channels": Case(
        "MVN", [X4], {"across_channels": 1, "normalize_variance": 0, "eps": 1e-9}, {}, [X4],
        lambda x: mean_free(x, (1, 2, 3), variance=False),
    ),
    "grn": Case(
        "GRN", [X4], {"bias": 1}, {}, [X4],
        lambda x: x / np.sqrt((x**2).sum(1, keepdims=True) + 1),
    ),
    "relu": Case("ReLU", [X4], {}, {}, [X4], lambda x: np.maximum(x, 0)),
    "relu with a slope": Case(
        "ReLU", [X4], {"negative_slope": 0.1}, {}, [X4], lambda x: np.where(x < 0, 0.1 * x, x)
    ),
    "relu6": Case("ReLU6", [X4], {"n": 1}, {}, [X4], lambda x: np.clip(x, 0, 1)),
    "prelu": Case(
        "PReLU", [X4], {"channel_shared": 0}, {"weights": SCALE}, [X4],
        lambda x: np.where(x < 0, x * by_channel(SCALE, 4), x),
    ),
    "prelu of one slope": Case(
        "PReLU", [X4], {"channel_shared": 1}, {"weights": SCALE[:1]}, [X4],
        lambda x: np.where(x < 0, x * SCALE[0], x),
    ),
    "clamp": Case("Clamp", [X4], {"min": -1, "max": 0.5}, {}, [X4], lambda x: np.clip(x, -1, 0.5)),
    "elu": Case(
        "elu", [X4], {"alpha": 2}, {}, [X4], lambda x: np.where(x < 0, 2 * np.expm1(x), x)
    ),
    "activation by name": Case(
        "Activation", [X4], {"type": "Clamp", "min": -1, "max": 0.5}, {}, [X4],
        lambda x: np.clip(x, -1, 0.5),
    ),
    "activation sigmoid": Case(
        "Activation", [X4], {"type": "sigmoid"}, {}, [X4], lambda x: 1 / (1 + np.exp(-x)), 2
    ),
    "activation elu": Case(
        "Activation", [X4], {"type": "elu", "alpha": 1}, {}, [X4],
        lambda x: np.where(x < 0, np.expm1(x), x),
    ),
    "hard sigmoid": Case(
        "HardSigmoid", [X4], {}, {}, [X4], lambda x: np.clip(0.2 * x + 0.5, 0, 1)
    ),
    "selu": Case(
        "Selu", [X4], {}, {}, [X4],
        lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)),
    ),
    "negative": Case("Neg", [X4], {}, {}, [X4], lambda x: -x),
    "reciprocal": Case("Reciprocal", [X4], {}, {}, [X4], lambda x: 1 / x),
    "soft plus": Case("Softplus", [X4], {}, {}, [X4], lambda x: np.log1p(np.exp(x))),
    "softmax": Case("SoftMax", [X4], {}, {}, [X4], lambda x: softmax(x, 1)),
    "softmax of the last": Case("Softmax", [X4], {"axis": -1}, {}, [X4], lambda x: softmax(x, 3)),
    "log softmax": Case(
        "LogSoftmax", [X4], {"axis": 2}, {}, [X4], lambda x: np.log(softmax(x, 2))
    ),
    "sum of three": Case(
        "Eltwise", [X4, X4, (1, 3, 1, 1)], {"operation": "sum"}, {}, [X4],
        lambda a, b, c: a + b + c, 2, more={"tag": "elementwise_data"},
    ),
    "sum with coefficients": Case(
        "Eltwise", [X4, X4], {"operation": "", "coeff": "1,-2.5"}, {}, [X4],
        lambda a, b: a - 2.5 * b,
    ),
    "mean of three": Case(
        "Eltwise", [X4, X4, X4], {"operation": "mean"}, {}, [X4], lambda a, b, c: (a + b + c) / 3
    ),
    "comparison": Case(
        "Eltwise", [X4, X4], {"operation": "greater"}, {}, [X4],
        lambda a, b: (a > b).astype(np.float32),
    ),
    "logical": Case(
        "Eltwise", [X4, np.float32([[[[0]], [[2]], [[0.0]]]])], {"operation": "logical_xor"}, {},
        [X4], lambda a, b: ((a != 0) ^ (b != 0)).astype(np.float32),
    ),
    "floor mod": Case(
        "Eltwise", [X4, np.float32([1.5])], {"operation": "floor_mod"}, {}, [X4],
        lambda a, b: a - np.floor(a / b) * b,
    ),
    **{
        f"of two: {word}": Case(
            "Eltwise", [X4, X4], {"operation": word}, {}, [X4], function
        )
        for word, function in {
            "mul": np.multiply, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
            "sub": np.subtract, "div": np.divide, "squared_diff": lambda a, b: (a - b) ** 2,
        }.items()
    },
    "power": Case(
        "Power", [X4], {"power": 2, "scale": 0.5, "shift": 1}, {}, [X4], lambda x: (1 + x / 2) ** 2
    ),
    "select": Case(
        "Select", [np.int32([[0, 1, 2]]), (2, 3), (2, 3)], {}, {}, [(2, 3)],
        lambda c, a, b: np.where(c != 0, a, b),
    ),
    "fake quantize": Case(
        "FakeQuantize",
        [X4, *(np.float32([[[[v]]]]) for v in (-1, 1, -2, 2))], {"levels": 5}, {}, [X4],
        lambda x, *_: np.where(
            x <= -1, -2, np.where(x > 1, 2, np.round((x + 1) * 2) - 2)
        ).astype(np.float32), 7,
    ),
    "quantize of v5": Case(
        "Quantize",
        [X4, *(np.float32([[[[v]]]]) for v in (-1, 1, 0, 1))], {"levels": 2}, {}, [X4],
        lambda x, *_: (x > 0).astype(np.float32), 5,
    ),
    **{
        kind: Case(
            kind, [X4, np.int32([1, -1])], {"keep_dims": "true"}, {}, [(2, 1, 4, 1)], function
        )
        for kind, function in {
            "ReduceSum": lambda x, _: x.sum((1, 3), keepdims=True),
            "ReduceMean": lambda x, _: x.mean((1, 3), keepdims=True),
            "ReduceL1": lambda x, _: np.abs(x).sum((1, 3), keepdims=True),
            "ReduceL2": lambda x, _: np.sqrt((x**2).sum((1, 3), keepdims=True)),
            "ReduceSumSquare": lambda x, _: (x**2).sum((1, 3), keepdims=True),
            "ReduceMax": lambda x, _: x.max((1, 3), keepdims=True),
            "ReduceMin": lambda x, _: x.min((1, 3), keepdims=True),
            "ReduceProd": lambda x, _: x.prod((1, 3), keepdims=True),
            "ReduceLogSumExp": lambda x, _: np.log(np.exp(x).sum((1, 3), keepdims=True)),
            "ReduceAnd": lambda x, _: (x != 0).all((1, 3), keepdims=True).astype(np.float32),
            "ReduceOr": lambda x, _: (x != 0).any((1, 3), keepdims=True).astype(np.float32),
        }.items()
    },
    "arg max": Case(
        "ArgMax", [(2, 3, 2, 2)], {"top_k": 3, "out_max_val": 0}, {}, [(2, 1, 3, 1)],
        lambda x: np.argsort(-x.reshape(2, 12), 1)[:, :3].reshape(2, 1, 3, 1).astype(np.float32),
    ),
    "arg max with the values": Case(
        "ArgMax", [(2, 7)], {"top_k": 2, "out_max_val": 1}, {}, [(2, 2, 2)],
        lambda x: np.stack([np.argsort(-x, 1)[:, :2], -np.sort(-x, 1)[:, :2]], 1),
    ),
    "arg max along an axis": Case(
        "ArgMax", [X4], {"top_k": 1, "out_max_val": 0, "axis": 1}, {}, [(2, 1, 4, 5)],
        lambda x: x.argmax(1)[:, None].astype(np.float32),
    ),
    "top k": Case(
        "TopK", [(3, 6), np.int32([2])], {"axis": 1, "mode": "max", "sort": "value"}, {},
        [(3, 2), (3, 2)],
        lambda x, _: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2].astype(np.float32)),
    ),
    "reshape by attribute": Case(
        "Reshape", [(2, 3, 4, 5)], {"dim": "0,-1,5"}, {}, [(2, 12, 5)],
        lambda x: x.reshape(2, 12, 5),
    ),
    "reshape by real sizes": Case(
        "Reshape", [(2, 12), np.float32([2, 3, -1])], {}, {}, [(2, 3, 4)],
        lambda x, _: x.reshape(2, 3, 4), 5,
    ),
    "reshape that says nothing": Case(
        "Reshape", [(2, 12)], {"axis": 0, "num_axes": -1}, {}, [(2, 3, 4)],
        lambda x: x.reshape(2, 3, 4), 2,
    ),
    "flatten": Case(
        "Flatten", [X4], {"axis": 1, "end_axis": -1}, {}, [(2, 60)], lambda x: x.reshape(2, 60)
    ),
    "flatten within": Case(
        "Flatten", [X4], {"axis": 1, "end_axis": 2}, {}, [(2, 12, 5)],
        lambda x: x.reshape(2, 12, 5),
    ),
    "permute": Case(
        "Permute", [X4], {"order": "0,2,3,1"}, {}, [(2, 4, 5, 3)],
        lambda x: x.transpose(0, 2, 3, 1),
    ),
    "squeeze by real axes": Case(
        "Squeeze", [(2, 1, 3, 1), np.float32([1])], {}, {}, [(2, 3, 1)], lambda x, _: x[:, 0]
    ),
    "unsqueeze": Case(
        "Unsqueeze", [(2, 3), np.int32([0, 3])], {}, {}, [(1, 2, 3, 1)],
        lambda x, _: x[None, ..., None],
    ),
    "shape": Case(
        "Shape", [X4], {}, {}, [(4,)], lambda x: np.int32(x.shape), precision="I32"
    ),
    "concat": Case(
        "Concat", [X4, (2, 1, 4, 5)], {}, {}, [(2, 4, 4, 5)], lambda *x: np.concatenate(x, 1)
    ),
    "split": Case(
        "Split", [(2, 6, 4)], {"axis": 1, "num_split": 3}, {}, [(2, 2, 4)] * 3,
        lambda x: np.split(x, 3, 1),
    ),
    "slice into unequal parts": Case(
        "Slice", [(2, 6, 4)], {"axis": 1}, {}, [(2, 1, 4), (2, 5, 4)],
        lambda x: (x[:, :1], x[:, 1:]),
    ),
    "crop by sizes": Case(
        "Crop", [X4], {"axis": "2,3", "offset": "1,0", "dim": "2,3"}, {}, [(2, 3, 2, 3)],
        lambda x: x[:, :, 1:3, :3],
    ),
    "crop by another": Case(
        "Crop", [X4, (2, 3, 2, 3)], {"axis": "2,3", "offset": "1,2"}, {}, [(2, 3, 2, 3)],
        lambda x, _: x[:, :, 1:3, 2:5], 4,
    ),
    "crop from both ends": Case(
        "Crop", [X4], {"axis": "1,3", "crop_begin": "1,1", "crop_end": "0,2"}, {},
        [(2, 2, 4, 2)], lambda x: x[:, 1:, :, 1:3],
    ),
    "crop of v2": Case(
        "Crop", [X4], {}, {}, [(2, 3, 2, 3)], lambda x: x[:, :, 1:3, 2:5], 2,
        more={"tag": "crop-data",
              "children": '<crop axis="2" offset="1"/><crop axis="3" offset="2"/>'},
    ),
    "strided slice, whose masks mean the opposite": Case(
        "StridedSlice", [X4, *(np.int32(v) for v in ([0, 1, 1, 4], [2, 3, 3, 0], [1, 1, 1, -2]))],
        {"begin_mask": "1,1,0,1", "end_mask": "1,0,1,0", "new_axis_mask": "0,0,0,0",
         "shrink_axis_mask": "0", "ellipsis_mask": "0"}, {}, [(2, 2, 3, 3)],
        lambda x, *_: x[0:2, 1:, :3, 4::-2],
    ),
    "gather by real places": Case(
        "Gather", [(4, 3), np.float32([2, 0])], {"axis": 0}, {}, [(2, 3)], lambda x, _: x[[2, 0]]
    ),
    "gather of one place that stands for a scalar": Case(
        "Gather", [(4, 3), np.int32([2])], {"axis": 0}, {}, [(3,)], lambda x, _: x[2]
    ),
    "tile": Case("Tile", [X4], {"axis": 1, "tiles": 2}, {}, [(2, 6, 4, 5)],
                 lambda x: np.concatenate([x, x], 1)),
    "pad": Case(
        "Pad", [X4],
        {"pads_begin": "0,0,1,2", "pads_end": "0,1,0,0", "pad_mode": "constant", "pad_value": 2},
        {}, [(2, 4, 5, 7)],
        lambda x: np.pad(x, [(0, 0), (0, 1), (1, 0), (2, 0)], constant_values=2),
    ),
    "pad by reflection": Case(
        "Pad", [X4], {"pads_begin": "0,0,1,2", "pads_end": "0,0,0,1", "pad_mode": "reflect"}, {},
        [(2, 3, 5, 8)],
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)], mode="reflect"),
    ),
    "broadcast": Case(
        "Broadcast", [(3, 1), np.int32([2, 3, 4])], {}, {}, [(2, 3, 4)],
        lambda x, _: np.broadcast_to(x, (2, 3, 4)),
    ),
    "fill": Case(
        "Fill", [np.int32([2, 3]), (1,)], {}, {}, [(2, 3)], lambda _, x: np.full((2, 3), x[0])
    ),
    "range": Case(
        "Range", [np.float32([1]), np.float32([4]), np.float32([1])], {}, {}, [(3,)],
        lambda *_: np.float32([1, 2, 3]),
    ),
    "reverse sequence": Case(
        "ReverseSequence", [(2, 4), np.int32([3, 1])], {"seq_axis": 1, "batch_axis": 0}, {},
        [(2, 4)], lambda x, _: np.stack([x[0, [2, 1, 0, 3]], x[1]]),
    ),
    "depth to space": Case(
        "DepthToSpace", [(1, 8, 2, 3)], {"block_size": 2}, {}, [(1, 2, 4, 6)],
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
    ),
    "shuffle": Case(
        "ShuffleChannels", [(1, 6, 2)], {"axis": 1, "group": 2}, {}, [(1, 6, 2)],
        lambda x: x[:, [0, 3, 1, 4, 2, 5]],
    ),
    "one hot": Case(
        "OneHot", [np.int32([1, 0, 2])], {"depth": 3, "on_value": "True", "off_value": -1}, {},
        [(3, 3)], lambda i: np.where(np.arange(3) == i[:, None], 1, -1).astype(np.float32),
    ),
    "sparse to dense": Case(
        "SparseToDense", [np.int32([[0, 1], [1, 2]]), np.int32([2, 3]), (2,)], {}, {}, [(2, 3)],
        lambda _, __, v: np.float32([[0, v[0], 0], [0, 0, v[1]]]),
    ),
    "not": Case(
        "Activation", [np.float32([[0, 2, -1]])], {"type": "not"}, {}, [(1, 3)],
        lambda x: (x == 0).astype(np.float32), 5,
    ),
    "log of a sum": Case(
        "ReduceLogSum", [np.abs(draw(2, 3)) + 1, np.int32([1])], {"keep_dims": 0}, {}, [(2,)],
        lambda x, _: np.log(x.sum(1)),
    ),
    "buckets": Case(
        "Bucketize", [(2, 3), np.float32([-1, 0, 1])], {"with_right_bound": 1}, {}, [(2, 3)],
        lambda x, edges: np.digitize(x, edges, right=True).astype(np.float32), 7,
    ),
    "cumulated sum": Case(
        "CumSum", [(2, 3), np.int32([1])], {"exclusive": 0, "reverse": 1}, {}, [(2, 3)],
        lambda x, _: x[:, ::-1].cumsum(1)[:, ::-1], 7,
    ),
    "scatter": Case(
        "ScatterUpdate", [(3, 4), np.int32([2, 0]), (2, 4), np.int32([0])], {}, {}, [(3, 4)],
        lambda x, _, new, __: np.stack([new[1], x[1], new[0]]), 7,
    ),
    "scatter elements": Case(
        "ScatterElementsUpdate", [(2, 3), np.int32([[1, 0, 1]]), (1, 3), np.int32([0])], {}, {},
        [(2, 3)],
        lambda x, _, new, __: np.stack(
            [[x[0, 0], new[0, 1], x[0, 2]], [new[0, 0], x[1, 1], new[0, 2]]]
        ), 7,
    ),
    "space to batch": Case(
        "SpaceToBatch",
        [(1, 2, 4, 4), np.int32([1, 1, 2, 2]), np.int32([0] * 4), np.int32([0] * 4)], {}, {},
        [(4, 2, 2, 2)],
        lambda x, *_: np.concatenate([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]), 7,
    ),
    "batch to space": Case(
        "BatchToSpace",
        [(4, 2, 2, 2), np.int32([1, 1, 2, 2]), np.int32([0] * 4), np.int32([0] * 4)], {}, {},
        [(1, 2, 4, 4)],
        lambda x, *_: x.reshape(2, 2, 2, 2, 2).transpose(2, 3, 0, 4, 1).reshape(1, 2, 4, 4), 7,
    ),
    "space to depth": Case(
        "SpaceToDepth", [(1, 2, 4, 6)], {"block_size": 2}, {}, [(1, 8, 2, 3)],
        lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3),
    ),
    "deformable convolution that moves nothing": Case(
        "DeformableConvolution", [(1, 3, 5, 5), np.zeros((1, 18, 3, 3), np.float32)],
        {"kernel": "3,3", "output": 4, "deformable_group": 1}, {"weights": W, "biases": B4},
        [(1, 4, 3, 3)],
        lambda x, _: convolved(x, W, (1, 1), (0, 0), (0, 0), (1, 1)) + by_channel(B4, 4), 5,
    ),
    "tree of steps": Case(
        "GatherTree",
        [np.float32([[[1, 2]], [[3, 4]]]), np.float32([[[0, 0]], [[1, 0]]]), np.float32([2]),
         np.float32([9])], {}, {}, [(2, 1, 2)], lambda *_: np.float32([[[2, 1]], [[3, 4]]]), 7,
    ),
    "pooling of positions": Case(
        "PSROIPooling", [(1, 2, 4, 4), np.float32([[0, 0, 0, 3, 3]])],
        {"output_dim": 2, "group_size": 1, "spatial_scale": 1}, {}, [(1, 2, 1, 1)],
        lambda x, _: x.mean((2, 3), keepdims=True), 3,
    ),
    "resample by nearest": Case(
        "Resample", [(1, 2, 3, 4)], {"type": "caffe.ResampleParameter.NEAREST", "factor": 2.0,
         "antialias": 0}, {}, [(1, 2, 6, 8)], lambda x: resample_nearest(x, 6, 8),
    ),
    "resample to fewer by nearest": Case(
        "Resample", [(1, 2, 5, 6)], {"type": "caffe.ResampleParameter.NEAREST", "factor": 0.5,
         "antialias": 0}, {}, [(1, 2, 3, 3)], lambda x: resample_nearest(x, 3, 3),
    ),
    "resample by two": Case(
        "Resample", [(1, 2, 3, 4)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 2.0,
         "antialias": 0}, {}, [(1, 2, 6, 8)], lambda x: resample_linear(x, 6, 8),
    ),
    "resample to fewer, widened": Case(
        "Resample", [(1, 2, 8, 6)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 0.5,
         "antialias": 1}, {}, [(1, 2, 4, 3)], lambda x: resample_linear(x, 4, 3, antialias=True),
    ),
    "resample to an input's sizes": Case(
        "Resample", [(1, 2, 3, 4), np.float32([1, 2, 5, 7])],
        {"type": "caffe.ResampleParameter.LINEAR", "factor": 1, "antialias": 0}, {},
        [(1, 2, 5, 7)], lambda x, _: resample_linear(x, 5, 7), 5,
    ),
    "interp": Case(
        "Interp", [(1, 2, 3, 4)], {"height": 5, "width": 7, "pad_beg": 0, "pad_end": 0}, {},
        [(1, 2, 5, 7)], lambda x: interp(x, 5, 7, corners=True),
    ),
    "interp without the corners": Case(
        "Interp", [(1, 2, 3, 4)], {"factor": 2, "align_corners": 0, "pad_beg": 0, "pad_end": 0},
        {}, [(1, 2, 6, 8)], lambda x: interp(x, 6, 8, corners=False),
    ),
    "interp of less": Case(
        "Interp", [(1, 2, 5, 6)], {"height": 5, "width": 7, "pad_beg": -1, "pad_end": -1}, {},
        [(1, 2, 5, 7)], lambda x: interp(x[:, :, 1:-1, 1:-1], 5, 7, corners=True),
    ),
    "upsampling": Case(
        "Upsampling", [(1, 2, 3, 4)], {"scale": 2, "sample_type": "nearest"}, {}, [(1, 2, 6, 8)],
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    "prior boxes": Case(
        "PriorBox", [(1, 8, 2, 3), (1, 3, 20, 30)],
        {"min_size": "4", "max_size": "9", "aspect_ratio": "2", "flip": 1, "clip": 0, "step": 0,
         "offset": 0.5, "variance": "0.1,0.1,0.2,0.2"}, {}, [(1, 2, 96)],
        lambda *_: prior_boxes((20, 30), (2, 3), [
            (4, 4), (6, 6), (4 * 2**0.5, 4 / 2**0.5), (4 / 2**0.5, 4 * 2**0.5)]),
    ),
    "clustered prior boxes": Case(
        "PriorBoxClustered", [(1, 8, 2, 3), (1, 3, 20, 30)],
        {"width": "4,7", "height": "5,2", "clip": 0, "step": 10, "offset": 0.5,
         "variance": "0.1,0.1,0.2,0.2"}, {}, [(1, 2, 48)],
        lambda *_: prior_boxes((20, 30), (2, 3), [(4, 5), (7, 2)]),
    ),
    "region of numbers that need no softmax": Case(
        "RegionYolo", [(1, 14, 2, 2)],
        {"classes": 2, "coords": 4, "num": 2, "do_softmax": 0, "mask": "0,1", "axis": 1,
         "end_axis": 3}, {}, [(1, 14, 2, 2)],
        lambda x: np.where(
            (np.arange(14) % 7 == 2)[:, None, None] | (np.arange(14) % 7 == 3)[:, None, None],
            x, 1 / (1 + np.exp(-x))),
    ),
    "reorg": Case(
        "ReorgYolo", [(1, 4, 4, 4)], {"stride": 2}, {}, [(1, 16, 2, 2)], lambda x: reorg(x)
    ),
    "ctc": Case(
        "CTCGreedyDecoder", [(4, 1, 3), np.float32([[0], [1], [1], [1]])],
        {"ctc_merge_repeated": 1}, {}, [(1, 4, 1, 1)], lambda x, _: ctc(x),
    ),
    "copy": Case("Copy", [X4], {}, {}, [X4], lambda x: x),
    "convert": Case("Convert", [X4], {"precision": "I32"}, {}, [X4], lambda x: np.trunc(x)),
}  # fmt: skip


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


def built(case: Case) -> tuple[OldFile, dict[str, Array], list[Array]]:
    """The old file of a case, what is given for its inputs, and all inputs in order."""
    file = OldFile(case.version)
    spots: list[Spot] = []
    given_: dict[str, Array] = {}
    arrays: list[Array] = []
    for index, one in enumerate(case.inputs):
        if isinstance(one, np.ndarray):
            spots.append(file.const(one))
            arrays.append(one)
        else:
            spots.append(file.input(one, f"x{index}"))
            given_[f"x{index}"] = draw(*one)
            arrays.append(given_[f"x{index}"])
    file.many(
        case.type, spots, case.outputs, case.data, case.blobs, name="op",
        precision=case.precision, **case.more,
    )  # fmt: skip
    return file, given_, arrays


@pytest.mark.parametrize("name", CASES)
def test_an_old_layer_gives_its_old_numbers(name: str) -> None:
    case = CASES[name]
    file, given_, arrays = built(case)
    model = ir.loads(file.xml, file.bin)
    assert model.origin is not None
    assert [str(r) for r in model.origin.remarks if r.kind in ("unlike", "missing", "wrong")] == []
    assert [str(f) for f in ir.check(file.xml, weights=file.bin) if f.severity == "error"] == []
    outputs = list(ir.run(model, given_).values())
    expected = case.expected(*arrays)
    wanted = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    assert [one.shape for one in outputs] == [tuple(dims) for dims in case.outputs]
    inferred = [tensor.shape.static for tensor in ir.infer(model).values()]
    assert inferred == [tuple(dims) for dims in case.outputs]
    for found, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)
    compiled = list(ir.compile(model)(given_).values())
    for found, want in zip(compiled, outputs, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_an_upgraded_layer_is_the_same_in_openvino(name: str) -> None:
    file, given_, _ = built(CASES[name])
    model = ir.loads(file.xml, file.bin)
    xml, weights = ir.dumps(model)
    assert ir.check(xml, weights=weights).ok
    mine = list(ir.run(model, given_).values())
    theirs = ask("values", xml.decode(), weights, list(given_.values()))
    for found, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)


def test_what_becomes_of_a_layer_is_what_the_table_says() -> None:
    allowed = {"Parameter-1", "Const-1", "Result-1", "Convert-1", "Reshape-1"}
    from vinoir.ir.summary import operation_name

    for name, case in CASES.items():
        entry = entries()[case.type.lower()]
        if entry.type == "Activation":
            continue
        file, _, _ = built(case)
        made = {operation_name(layer) for layer in ir.loads(file.xml, file.bin).layers}
        assert made <= allowed | set(entry.becomes), name


# Poolings at random.


@st.composite
def poolings(draw_: Callable[..., Any]) -> dict[str, Any]:
    kernel = draw_(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = []
    for k in kernel:
        begin, end = draw_(st.integers(0, k - 1)), draw_(st.integers(0, k - 1))
        rows.append((draw_(st.integers(k, 9)), k, draw_(st.integers(1, 4)), begin, end))
    return {
        "rows": rows, "method": draw_(st.sampled_from(["max", "avg"])),
        "exclude": draw_(st.booleans()),
        "rounding": draw_(st.sampled_from([None, "floor", "ceil"])),
        "version": draw_(st.integers(2, 7)),
    }  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(poolings())
def test_poolings_at_random(pool: dict[str, Any]) -> None:
    rows = pool["rows"]
    floor = pool["rounding"] == "floor"
    sizes = [old_size(*row, floor=floor) for row in rows]
    columns = list(zip(*rows, strict=True))
    data = {
        "kernel": ",".join(map(str, columns[1])), "strides": ",".join(map(str, columns[2])),
        "pads_begin": ",".join(map(str, columns[3])), "pads_end": ",".join(map(str, columns[4])),
        "pool-method": pool["method"], "exclude-pad": str(pool["exclude"]).lower(),
    }  # fmt: skip
    if pool["rounding"] is not None:
        data["rounding_type"] = pool["rounding"]
    if pool["version"] == 2 and len(rows) == 2:
        data = {
            "kernel-y": rows[0][1], "kernel-x": rows[1][1], "stride-y": rows[0][2],
            "stride-x": rows[1][2], "pad-y": rows[0][3], "pad-x": rows[1][3],
            "pad-b": rows[0][4], "pad-r": rows[1][4],
        } | {key: data[key] for key in data if key not in (
            "kernel", "strides", "pads_begin", "pads_end")}  # fmt: skip
    file = OldFile(pool["version"])
    dims = (1, 2, *columns[0])
    file.add("Pooling", [file.input(dims, "x")], [(1, 2, *sizes)], data, name="op")
    model = ir.loads(file.xml, b"")
    assert model.origin is not None
    assert not [r for r in model.origin.remarks if r.kind == "unlike"]
    x = draw(*dims)
    want = pooled(
        x, columns[1], columns[2], columns[3], columns[4], sizes, pool["method"], pool["exclude"]
    )
    np.testing.assert_allclose(ir.run(model, [x])["op"], want, rtol=1e-4, atol=1e-5)
