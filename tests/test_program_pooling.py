"""Poolings of programs: every window, stride and padding, in both layouts, alone and shared."""

from __future__ import annotations

import os

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.document.builder import Output
from vinoir.ir.engine.kernels import channels_first as planar
from vinoir.ir.engine.program import Program
from vinoir.ir.engine.workers.team import Threads
from vinoir.schemas import Array

SEEDS = int(os.environ.get("VINOIR_POOLINGS", "48"))


def image(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def pool(net: ir.Builder, rng: np.random.Generator, shape: tuple[int, ...], x: Output) -> Output:
    """A pooling drawn at random, of windows that fit a shape."""
    kernel = [int(rng.integers(1, min(16, size + 4) + 1)) for size in shape[2:]]
    strides = [int(n) for n in rng.integers(1, 4, 2)]
    if rng.random() < 0.5:
        kernel, strides = [kernel[0]] * 2, [strides[0]] * 2
    # Not so much padding that a window sees nothing else.
    begin = [int(rng.integers(0, size // 2 + 1)) for size in kernel]
    end = [int(rng.integers(0, size // 2 + 1)) for size in kernel]
    # Windows fit what is there.
    end = [
        max(after, size - given - before)
        for after, size, given, before in zip(end, kernel, shape[2:], begin, strict=True)
    ]
    words = {
        "kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end,
        "rounding_type": str(rng.choice(["floor", "ceil"])),
    }  # fmt: skip
    if rng.random() < 0.5:
        return net.add("MaxPool", "opset1", [x], **words)
    padded = all(after < size for after, size in zip(end, kernel, strict=True))
    without = "true" if padded and rng.random() < 0.5 else "false"
    return net.add("AvgPool", "opset1", [x], **words, data={"exclude-pad": without})


def assert_program_agrees(
    model: ir.Model, inputs: list[Array], threads: int, *, fork: bool = True
) -> None:
    wanted = ir.run(model, inputs)
    program = ir.compile(model, threads=threads, fork=fork)
    kept = [array.copy() for array in inputs]
    for _ in range(3):
        for name, array in program(inputs).items():
            finite = wanted[name][np.isfinite(wanted[name])]
            scale = np.abs(finite).max(initial=1e-6)
            np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5 * scale)
    for array, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("layout", ["first", "last"])
def test_poolings_at_random(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        channels = int(rng.choice([1, 3, 16, 40]))
        shape = (int(rng.integers(1, 4)), channels, *map(int, rng.integers(1, 34, 2)))
        net = ir.Builder()
        try:
            y = pool(net, rng, shape, net.parameter("x", "f32", shape))
            if layout == "last":
                # A convolution wants channels last, and so its neighbours have them last.
                one = net.constant(np.eye(channels, dtype="f4")[:, :, None, None])
                words = dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
                y = net.add(
                    "Convolution", "opset1", [y, one], strides=(1, 1), dilations=(1, 1), **words
                )
            elif rng.random() < 0.3:
                y = net.add("ReLU", "opset1", [y])
        except ir.IRError:
            continue  # a window of padding alone
        net.result(y, name="y")
        assert_program_agrees(net.model(), [image(shape, seed)], threads=1 + seed % 2)


@pytest.mark.parametrize("threads", range(1, 6))
@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_poolings_shared_by_workers(
    threads: int, fork: bool, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(threads)
    monkeypatch.setattr(planar, "SHARED", 0)
    for _ in range(6):
        # One plane at a time and many; a caller who does more than the others, and much more.
        monkeypatch.setattr(planar, "AT_ONCE", int(rng.choice([1, 1 << 12, 1 << 16])))
        monkeypatch.setattr(planar, "AWAKE", int(rng.choice([0, 1 << 12, 1 << 20])))
        shape = (
            int(rng.integers(1, 4)),
            int(rng.choice([1, 3, 40])),
            *map(int, rng.integers(5, 34, 2)),
        )
        net = ir.Builder()
        x = net.parameter("x", "f32", shape)
        try:
            # One at both ends, one that others follow, one between others, one at the end.
            found = {"a": pool(net, rng, shape, x)}
            found["b"] = net.add("ReLU", "opset1", [pool(net, rng, shape, x)])
            if not alone:
                begin = net.add("Abs", "opset1", [x])
                found["c"] = net.add("Sigmoid", "opset1", [pool(net, rng, shape, begin)])
                negative = net.add("Negative", "opset1", [begin])
                found["d"] = pool(net, rng, shape, negative)
        except ir.IRError:
            continue  # a window of padding alone
        for name, source in found.items():
            net.result(source, name=name)
        assert_program_agrees(net.model(), [image(shape, threads)], threads, fork=fork)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("window", range(1, 17))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_every_window(kind: str, window: int, stride: int) -> None:
    words = {
        "kernel": (window, window), "strides": (stride, stride), "pads_begin": (window // 2,) * 2,
        "pads_end": ((window - 1) // 2,) * 2, "rounding_type": "floor",
    }  # fmt: skip
    more = {"data": {"exclude-pad": "true"}} if kind == "AvgPool" else {}
    net = ir.Builder()
    for number, sizes in enumerate([(window, window + 1), (17, 22), (30, 13)]):
        x = net.parameter(f"x{number}", "f32", (2, 5, *sizes))
        net.result(net.add(kind, "opset1", [x], **words, **more), name=f"y{number}")
    model = net.model()
    shapes = [ir.infer(model).of(p)[0].shape.static for p in model.parameters]
    assert_program_agrees(model, [image(shape) for shape in shapes], threads=1)


def two_poolings() -> tuple[ir.Model, Array]:
    """One after the other and one beside them, of an input that is an output as well."""
    shape = (2, 3, 9, 12)
    words = {"pads_begin": (1, 1), "pads_end": (1, 1), "rounding_type": "floor"}
    net = ir.Builder()
    x, z = net.parameter("x", "f32", shape), net.parameter("z", "f32", shape)
    largest = net.add("MaxPool", "opset1", [x], kernel=(3, 3), strides=(1, 1), **words)
    again = net.add("MaxPool", "opset1", [largest], kernel=(3, 2), strides=(2, 2), **words)
    other = net.add("MaxPool", "opset1", [z], kernel=(2, 3), strides=(2, 1), **words)
    for name, source in {"a": largest, "b": again, "c": other, "d": other, "e": z}.items():
        net.result(source, name=name)
    return net.model(), image(shape)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_poolings_of_poolings(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planar, "SHARED", 0)
    model, array = two_poolings()
    # Columns that do not lie side by side are inputs like others.
    turned = np.asfortranarray(array)
    assert_program_agrees(model, [array, turned], threads)


def shared_pooling() -> tuple[Program, Array, Array]:
    shape = (1, 7, 20, 20)
    net = ir.Builder()
    words = dict.fromkeys(("pads_begin", "pads_end"), (1, 1))
    x = net.parameter("x", "f32", shape)
    y = net.add(
        "MaxPool", "opset1", [x], kernel=(3, 3), strides=(1, 1), rounding_type="floor", **words
    )
    net.result(y, name="y")
    model, array = net.model(), image(shape)
    return ir.compile(model, threads=2), array, ir.run(model, [array])["y"]


def test_results_belong_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for shared in (0, 1 << 40):
        monkeypatch.setattr(planar, "SHARED", shared)
        program, array, wanted = shared_pooling()
        found = [program([array])["y"] for _ in range(4)]
        program([array + 1])
        for one in found:
            np.testing.assert_array_equal(one, wanted)
            one[:] = 0
        np.testing.assert_array_equal(program([array])["y"], wanted)


def test_poolings_alone_are_shared_with_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planar, "SHARED", 0)
    program, array, wanted = shared_pooling()
    for _ in range(5):
        np.testing.assert_array_equal(program([array])["y"], wanted)
    (planned,) = program._plans.values()
    assert planned is not None
    assert not any(planned.team.alone)
    assert isinstance(planned.team._helpers, Threads)


@pytest.mark.parametrize("sooner", ["one", "several"])
def test_poolings_alone_keep_to_what_was_sooner(
    sooner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planar, "SHARED", 0)
    program, array, wanted = shared_pooling()
    (planned,) = program._plans.values()
    assert planned is not None
    program([array])
    while len(planned._trials) > 1:
        np.testing.assert_array_equal(program([array])["y"], wanted)
    planned._seconds[sooner == "several"] = [0.0] * len(planned.team.steps)
    for _ in range(3):
        np.testing.assert_array_equal(program([array])["y"], wanted)
    assert not planned._trials
    assert planned.team.alone == [sooner == "one"] * len(planned.team.steps)
