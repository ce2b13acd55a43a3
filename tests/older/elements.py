"""Samples of what is done to each element, or to all of them."""

from __future__ import annotations

import math

import numpy as np

from .case import X4, Case, draw
from .statements import by_channel, softmax

SCALE, SHIFT = draw(3), draw(3)

ELEMENTS = {    "relu": Case("ReLU", [X4], {}, {}, [X4], lambda x: np.maximum(x, 0)),
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
    "prelu that is called I8": Case(
        "PReLU", [X4], {"channel_shared": 0}, {"weights": SCALE.tobytes()},
        [X4], lambda x: np.where(x < 0, x * by_channel(SCALE, 4), x), 5, precision="I8",
    ),
    "scale and shift that are called I8": Case(
        "ScaleShift", [X4], {}, {"weights": SCALE.tobytes(), "biases": SHIFT.tobytes()}, [X4],
        lambda x: x * by_channel(SCALE, 4) + by_channel(SHIFT, 4), 5, precision="I8",
    ),
    "swish": Case(
        "Swish", [X4], {"alpha": 1.5}, {}, [X4], lambda x: x / (1 + np.exp(-1.5 * x)), 7
    ),
    "gelu": Case(
        "GELU", [X4], {}, {}, [X4],
        lambda x: x * np.vectorize(lambda n: 0.5 * (1 + math.erf(n / 2**0.5)))(x), 7,
    ),
    "not": Case(
        "Not", [np.int32([[0, 3, 1]])], {}, {}, [(1, 3)], lambda _: np.int32([[1, 0, 0]]), 7,
        precision="I32",
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
    "log softmax of the last": Case(
        "LogSoftmax", [X4], {}, {}, [X4], lambda x: np.log(softmax(x, 3))
    ),
    "whole numbers divided": Case(
        "Eltwise", [np.int32([[-7, 7, -8]]), np.int32([[2, -2, 3]])], {"operation": "div"}, {},
        [(1, 3)], lambda *_: np.int32([[-3, -3, -2]]), precision="I32",
    ),
    "what is left of whole numbers": Case(
        "Eltwise", [np.int32([[-7, 7, -8]]), np.int32([[2, -2, 3]])],
        {"operation": "floor_mod"}, {}, [(1, 3)], lambda *_: np.int32([[-1, 1, -2]]),
        precision="I32",
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
    "mean of whole numbers": Case(
        "Eltwise", [np.int32([[-7, 7, 8]]), np.int32([[2, -2, 3]])], {"operation": "mean"}, {},
        [(1, 3)], lambda *_: np.int32([[-2, 2, 5]]), precision="I32",
    ),
    "sum of whole numbers with coefficients": Case(
        "Eltwise", [np.int32([[-7, 7, 8]]), np.int32([[2, -2, 3]])],
        {"operation": "sum", "coeff": "1,2.5"}, {}, [(1, 3)],
        lambda *_: np.int32([[-2, 2, 15]]), precision="I32",
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
}  # fmt: skip
