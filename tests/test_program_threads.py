"""One program, one input, one answer: whoever shares the work, from wherever it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from networks import Drawer
from vinoir import ir
from vinoir.ir.engine.helpers import can_fork
from vinoir.schemas import Array

forking = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")
#: Networks that are worth being shared, by what there is to compute.
Make = Callable[[ir.Builder, np.random.Generator], None]


def weights(net: ir.Builder, rng: np.random.Generator, *shape: int) -> ir.Output:
    """Random weights of a size that keeps values where they are."""
    scale = np.sqrt(np.prod(shape[1:]))
    return net.constant((rng.standard_normal(shape) / scale).astype("f4"))


def convolved(
    net: ir.Builder, rng: np.random.Generator, x: ir.Output, made: int, kernel: int, stride: int = 1
) -> ir.Output:
    """A convolution with a bias and a ReLU."""
    axes = len(x.tensor.shape) - 2
    given = x.tensor.shape.static[1]
    words = {
        "strides": (stride,) * axes, "dilations": (1,) * axes,
        "pads_begin": (kernel // 2,) * axes, "pads_end": (kernel // 2,) * axes,
    }  # fmt: skip
    taken = weights(net, rng, made, given, *[kernel] * axes)
    x = net.add("Convolution", "opset1", [x, taken], **words)
    bias = net.constant(rng.standard_normal((1, made, *[1] * axes)).astype("f4"))
    return net.add("ReLU", "opset1", [net.add("Add", "opset1", [x, bias])])


def images(*steps: tuple[int, int, int], size: int = 28, given: int = 16, batch: int = 1) -> Make:
    """Convolutions (channels, kernel, stride) one after the other."""

    def make(net: ir.Builder, rng: np.random.Generator) -> None:
        x = net.parameter("x", "f32", (batch, given, size, size))
        for step in steps:
            x = convolved(net, rng, x, *step)
        net.result(x, name="y")

    return make


def volumes(net: ir.Builder, rng: np.random.Generator) -> None:
    """Convolutions of volumes."""
    x = net.parameter("x", "f32", (1, 16, 9, 17, 17))
    net.result(convolved(net, rng, convolved(net, rng, x, 32, 3), 24, 1), name="y")


def enlarged(net: ir.Builder, rng: np.random.Generator) -> None:
    """A transposed convolution between two others."""
    x = convolved(net, rng, net.parameter("x", "f32", (1, 32, 21, 21)), 64, 1)
    x = net.add(
        "ConvolutionBackpropData", "opset1", [x, weights(net, rng, 64, 48, 4, 4)],
        strides=(2, 2), dilations=(1, 1), pads_begin=(1, 1), pads_end=(1, 1),
    )  # fmt: skip
    net.result(convolved(net, rng, x, 33, 1), name="y")


def pooled(net: ir.Builder, rng: np.random.Generator) -> None:
    """Average poolings where channels are last, and one of whole images."""
    x = convolved(net, rng, net.parameter("x", "f32", (1, 8, 43, 43)), 64, 3)
    for kernel, stride in ((5, 1), (3, 2), (7, 3)):
        x = net.add(
            "AvgPool", "opset1", [x], kernel=(kernel, kernel), strides=(stride, stride),
            pads_begin=(1, 1), pads_end=(1, 1), **{"exclude-pad": True, "rounding_type": "ceil"},
        )  # fmt: skip
        x = convolved(net, rng, x, 64, 1)
    axes = net.constant(np.array([2, 3], "i8"))
    net.result(net.add("ReduceMean", "opset1", [x, axes], keep_dims=False), name="y")


def attention(rows: int, deep: int) -> Make:
    """Products of matrices with SoftMax and MVN between them."""

    def make(net: ir.Builder, rng: np.random.Generator) -> None:
        x = net.parameter("x", "f32", (1, rows, deep))
        straight = {"transpose_a": False, "transpose_b": False}
        q, k, v = (
            net.add("MatMul", "opset1", [x, weights(net, rng, deep, deep)], **straight)
            for _ in range(3)
        )
        scores = net.add("MatMul", "opset1", [q, k], transpose_a=False, transpose_b=True)
        scores = net.add("SoftMax", "opset8", [scores], axis=-1)
        y = net.add("MatMul", "opset1", [scores, v], **straight)
        y = net.add("Add", "opset1", [x, y])
        last = net.constant(np.array([-1], "i8"))
        y = net.add(
            "MVN", "opset6", [y, last], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt"
        )
        y = net.add("MatMul", "opset1", [y, weights(net, rng, deep, 4 * deep)], **straight)
        y = net.add("Gelu", "opset7", [y], approximation_mode="ERF")
        net.result(net.add("MatMul", "opset1", [y, weights(net, rng, 4 * deep, deep)], **straight),
                   name="y")  # fmt: skip

    return make


NETWORKS: dict[str, Make] = {
    "squeezed": images((16, 1, 1), (64, 3, 1), (32, 1, 1), (128, 3, 2), (64, 1, 1), size=55, given=3),
    "deep": images((512, 1, 1), (512, 3, 1), (33, 1, 1), size=7, given=192),
    "strided": images((24, 7, 2), (40, 5, 2), (300, 3, 1), (17, 1, 1), size=61, given=3),
    "batch": images((48, 3, 1), (64, 1, 1), (10, 1, 1), size=19, given=24, batch=3),
    "plain": images((256, 1, 1), (100, 1, 1), (256, 1, 1), size=13, given=64),
    "volumes": volumes,
    "enlarged": enlarged,
    "pooled": pooled,
    "attention": attention(197, 192),
    "few rows": attention(7, 256),
    "one row": attention(1, 512),
}


def network(name: str) -> tuple[ir.Model, list[Array]]:
    """A network and an input."""
    rng = np.random.default_rng(len(name))
    net = ir.Builder()
    if name.startswith("random"):
        model = Drawer(int(name[6:])).model(batch=2)
    else:
        NETWORKS[name](net, rng)
        model = net.model()
    shape = ir.infer(model).of(model.parameters[0])[0].shape.static
    return model, [rng.standard_normal(shape).astype("f4")]


def prints(outputs: ir.Outputs) -> str:
    """What tells outputs from others, bit for bit."""
    return "".join(array.tobytes().hex()[-64:] + str(hash(array.tobytes())) for array in outputs.values())


def same(found: ir.Outputs, wanted: ir.Outputs) -> bool:
    """Whether outputs are the same bit for bit."""
    pairs = zip(found.values(), wanted.values(), strict=True)
    return all(one.tobytes() == other.tobytes() for one, other in pairs)


@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("name", [*NETWORKS, *(f"random{seed}" for seed in range(6))])
def test_answers_do_not_depend_on_the_number_of_workers(
    name: str, fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Helpers come at once, however small the network is.
    monkeypatch.setattr("vinoir.ir.program.LARGE", 0)
    monkeypatch.setattr("vinoir.ir.program.SMALL", 0)
    model, inputs = network(name)
    wanted = ir.compile(model, threads=1)(inputs)
    for threads in (1, 2, 3, 4):
        program = ir.compile(model, threads=threads, fork=fork)
        # The first call, those that try what is quicker, and those after.
        for _ in range(9):
            assert same(program(inputs), wanted)
