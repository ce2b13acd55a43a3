"""Zeros that are laid around images are paddings of the convolutions that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.workers import integer_products
from vinoir.schemas import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def pad(
    net: ir.Builder,
    x: ir.builder.Output,
    begins: list[int],
    ends: list[int],
    *,
    mode: str = "constant",
    fill: float | None = 0,
    version: str = "opset1",
) -> ir.builder.Output:
    given = [x, net.constant(np.array(begins)), net.constant(np.array(ends))]
    if fill is not None:
        given.append(net.constant(np.array(fill, "f4")))
    return net.add("Pad", version, given, pad_mode=mode)


def convolution(
    net: ir.Builder, x: ir.builder.Output, *, axes: int = 2, groups: int = 0, **changes: Any
) -> ir.builder.Output:
    lead, inner = ((groups, 8 // groups), 8 // groups) if groups else ((12,), 8)
    filters = net.constant(numbers(*lead, inner, *[3] * axes))
    told = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0} | changes
    words = {
        name: n if isinstance(n, str) else ",".join([str(n)] * axes) for name, n in told.items()
    }
    kind = "GroupConvolution" if groups else "Convolution"
    return net.add(kind, "opset1", [x, filters], **words)


def kinds(program: ir.Program) -> list[str]:
    (planned,) = program._plans.values()
    assert planned is not None
    return [node.op.xml_type for node, *_ in planned.spans]


def compared(net: ir.Builder, *arrays: Array) -> list[str]:
    """The types of the nodes of a program that gives what the definitions give."""
    model = net.model()
    program = ir.compile(model, threads=2)
    found, wanted = program(list(arrays)), ir.run(model, list(arrays))
    for name, right in wanted.items():
        assert found[name].shape == right.shape
        np.testing.assert_allclose(found[name], right, atol=1e-5 * np.abs(right).max(initial=1))
    return kinds(program)


@settings(max_examples=60, deadline=None)
@given(
    margins=st.lists(st.integers(-3, 3), min_size=8, max_size=8),
    mode=st.sampled_from(["constant", "constant", "edge", "reflect", "symmetric"]),
    version=st.sampled_from(["opset1", "opset12"]),
    fill=st.sampled_from([0, 2.5, None]),
    convolved=st.booleans(),
    sign=st.sampled_from([-1, 0]),
)
def test_what_is_cut_off_is_a_view(
    margins: list[int], mode: str, version: str, fill: float | None, convolved: bool, sign: int
) -> None:
    """Negative paddings cut off, and the others are laid around what is left."""
    if sign:
        margins, version = [-abs(margin) for margin in margins], "opset12"
    elif version == "opset1":
        margins = list(map(abs, margins))
    begins, ends = margins[:4], margins[4:]
    net = ir.Builder()
    x = net.parameter("x", "f32", (7, 8, 9, 10))
    y = pad(net, net.add("ReLU", "opset1", [x]), begins, ends, mode=mode, fill=fill,
            version=version)  # fmt: skip
    channels = 8 + begins[1] + ends[1]
    if convolved:
        filters = net.constant(numbers(5, channels, 1, 1))
        y = net.add("Convolution", "opset1", [y, filters], strides="1,1", dilations="1,1",
                    pads_begin="0,0", pads_end="0,0")  # fmt: skip
    net.result(y)
    found = compared(net, numbers(7, 8, 9, 10))
    if max(margins) <= 0 and any(margins):
        assert "Pad" not in found


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_mirrored_are_those_who_are_cut_off_too(mode: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 3, 5, 4))
    net.result(pad(net, x, [0, 0, 0, -2], [0, 0, 0, 3], mode=mode, fill=None, version="opset12"))
    assert compared(net, numbers(2, 3, 5, 4)) == ["Pad"]


@pytest.mark.usefixtures("integers_are_quick")
def test_levels_stay_levels_where_some_are_cut_off() -> None:
    """A convolution of images of few levels, of which some is cut off, is one of integers."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 64, 20, 20))
    limits = [net.constant(np.float32(n)) for n in (-2, 1.984375, -2, 1.984375)]
    y = net.add("FakeQuantize", "opset1", [x, *limits], levels=256)
    y = pad(net, y, [0, 0, -2, -3], [0, 0, -1, 0], version="opset12")
    levels = np.random.default_rng(0).integers(-127, 128, (16, 64, 3, 3)).astype("i1")
    weights = net.add("Convert", "opset1", [net.constant(levels)], destination_type="f32")
    weights = net.add("Multiply", "opset1", [weights, net.constant(np.float32(0.01))])
    y = net.add("Convolution", "opset1", [y, weights], strides="1,1", dilations="1,1",
                pads_begin="1,1", pads_end="1,1")  # fmt: skip
    net.result(y)
    model, given = net.model(), numbers(1, 64, 20, 20)
    program = ir.compile(model, threads=1)
    found, right = program([given])[0], ir.run(model, [given])[0]
    np.testing.assert_allclose(found, right, atol=1e-5 * np.abs(right).max())
    (planned,) = program._plans.values()
    assert planned is not None
    if integer_products() is not None:
        (convolved,) = (n for n, *_ in planned.spans if n.kind == "Convolution")
        assert convolved.integers is not None


@settings(max_examples=60, deadline=None)
@given(
    axes=st.sampled_from([1, 2, 2, 3]),
    margins=st.lists(st.integers(0, 6), min_size=6, max_size=6),
    size=st.integers(1, 9),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    own=st.integers(0, 2),
    auto=st.sampled_from(["explicit", "valid", "same_upper", "same_lower"]),
    groups=st.sampled_from([0, 2, 8]),
    version=st.sampled_from(["opset1", "opset12"]),
    fill=st.sampled_from([0, None]),
)
def test_zeros_are_paddings(
    axes: int, margins: list[int], size: int, stride: int, dilation: int, own: int, auto: str,
    groups: int, version: str, fill: float | None,
) -> None:  # fmt: skip
    begins, ends = margins[:axes], margins[3 : 3 + axes]
    if min(size + b + e for b, e in zip(begins, ends, strict=True)) < 2 * dilation + 1:
        return
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 8, *[size] * axes))
    wide = pad(net, x, [0, 0, *begins], [0, 0, *ends], fill=fill, version=version)
    pads = {"pads_begin": own, "pads_end": own} if auto == "explicit" else {}
    made = convolution(
        net, wide, axes=axes, groups=groups, strides=stride, dilations=dilation, auto_pad=auto,
        **pads,
    )  # fmt: skip
    net.result(net.add("ReLU", "opset1", [made]))
    assert "Pad" not in compared(net, numbers(2, 8, *[size] * axes))


def test_all_who_read_are_convolutions() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 9, 9))
    wide = pad(net, x, [0, 0, 0, 0], [0, 0, 1, 1])
    net.result(convolution(net, wide, strides=2), name="a")
    net.result(convolution(net, wide, groups=8, strides=2), name="b")
    assert "Pad" not in compared(net, numbers(1, 8, 9, 9))


@pytest.mark.parametrize(
    ("begins", "words"),
    [
        ([0, 0, 1, 1], {"mode": "reflect", "fill": None}),
        ([0, 0, 1, 1], {"mode": "edge", "fill": None}),
        ([0, 0, 1, 1], {"fill": 0.5}),
        ([1, 0, 1, 1], {}),
        ([0, 0, 1, 1], {"version": "opset12", "fill": -1.0}),
    ],
)
def test_other_margins_stay(begins: list[int], words: dict[str, Any]) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 9, 9))
    net.result(convolution(net, pad(net, x, begins, [0, 0, 1, 1], **words)))
    assert "Pad" in compared(net, numbers(1, 8, 9, 9))


def test_zeros_around_what_is_left_are_paddings() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 9, 9))
    net.result(convolution(net, pad(net, x, [0, 0, -1, 1], [0, 0, 1, 1], version="opset12")))
    assert "Pad" not in compared(net, numbers(1, 8, 9, 9))


@pytest.mark.parametrize("who", ["output", "pooling", "weights"])
def test_what_others_read_stays(who: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (12, 8, 3, 3) if who == "weights" else (1, 8, 9, 9))
    wide = pad(net, x, [0, 0, 1, 0], [0, 0, 0, 1])
    if who == "weights":
        image = net.constant(numbers(1, 8, 9, 9))
        words = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
        net.result(net.add("Convolution", "opset1", [image, wide], **words))
        assert "Pad" in compared(net, numbers(12, 8, 3, 3))
        return
    net.result(convolution(net, wide), name="made")
    if who == "output":
        net.result(wide, name="wide")
    else:
        net.result(net.add("ReLU", "opset1", [wide]), name="wide")
    assert "Pad" in compared(net, numbers(1, 8, 9, 9))
