"""Large nodes of unknown shapes, cut among threads, give what their definitions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import loose_windows, sharing
from vinoir.layers.base import Op
from vinoir.layers.budget import within
from vinoir.schemas import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("f4")


def windowed(axes: int, **changes: Any) -> dict[str, Any]:
    known = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0} | changes
    return {name: (n if isinstance(n, str) else ",".join([str(n)] * axes))
            for name, n in known.items()}  # fmt: skip


CASES: dict[str, tuple[str, dict[str, Any], list[Array]]] = {
    "line": ("Convolution", windowed(1, pads_begin=2, pads_end=1),
             [numbers(1, 4, 30), numbers(5, 4, 4)]),
    "strided": ("Convolution", windowed(1, strides=3, pads_begin=4, dilations=2),
                [numbers(1, 4, 30), numbers(5, 4, 4)]),
    "same": ("Convolution", windowed(2, strides=2, auto_pad="same_upper"),
             [numbers(1, 4, 13, 9), numbers(5, 4, 3, 3)]),
    "far": ("Convolution", windowed(2, pads_begin=6, pads_end=7),
            [numbers(1, 4, 3, 9), numbers(5, 4, 3, 3)]),
    "images": ("Convolution", windowed(2, pads_begin=1),
               [numbers(7, 4, 5, 6), numbers(5, 4, 3, 3)]),
    "volume": ("Convolution", windowed(3), [numbers(1, 4, 9, 5, 6), numbers(5, 4, 3, 3, 2)]),
    "few rows": ("Convolution", windowed(2), [numbers(1, 4, 4, 9), numbers(5, 4, 3, 3)]),
    "groups": ("GroupConvolution", windowed(2), [numbers(1, 6, 8, 9), numbers(2, 5, 3, 3, 3)]),
    "backwards": ("ConvolutionBackpropData", windowed(1, strides=2, pads_begin=1),
                  [numbers(1, 4, 30), numbers(4, 6, 4)]),
    "backwards, images": ("ConvolutionBackpropData", windowed(2, strides=2),
                          [numbers(5, 4, 3, 4), numbers(4, 6, 2, 2)]),
    "backwards, few": ("ConvolutionBackpropData", windowed(1),
                       [numbers(1, 4, 9), numbers(4, 2, 3)]),
    "backwards, groups": ("GroupConvolutionBackpropData", windowed(1),
                          [numbers(1, 4, 9), numbers(2, 2, 6, 3)]),
    "backwards, as long as told": ("ConvolutionBackpropData", windowed(1, strides=2),
                                   [numbers(1, 4, 9), numbers(4, 6, 3), np.array([18])]),
    "slope": ("PReLU", {}, [numbers(2, 40, 9), np.array([0.2], "f4")]),
    "steep slope": ("PReLU", {}, [numbers(2, 40, 9), np.array([1.2], "f4")]),
    "slope of zero": ("PReLU", {}, [np.array([[np.inf, -1, 0.5]], "f4"), np.zeros(1, "f4")]),
    "slopes": ("PReLU", {}, [numbers(2, 40, 9), numbers(40)]),
    "alone": ("Tanh", {}, [numbers(3, 50, 7)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pieces_are_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LONG", 1)
    monkeypatch.setattr(sharing, "MUCH", 1)
    for module in (sharing, loose_windows):
        monkeypatch.setattr(module, "lanes", lambda amount: 3)
    monkeypatch.setattr(loose_windows, "BLOCK", 200)
    kind, attributes, arrays = CASES[name]
    op = Op.registry[kind, 1].read(attributes)
    asked: list[tuple[int, ...]] = []

    def general(*arrays: Array) -> tuple[Array, ...]:
        asked.append(arrays[0].shape)
        return op.run(*arrays)

    (wanted,) = op.run(*arrays)
    found = [sharing.shared(op, arrays[1:], threads, general)(*arrays)[0] for threads in (1, 2, 5)]
    for one in found:
        np.testing.assert_allclose(one, wanted, atol=1e-5)
        np.testing.assert_array_equal(one, found[0])
    whole = name in ("backwards, few", "backwards, groups", "slopes")
    assert (arrays[0].shape in asked and len(asked) == 3) == whole


@settings(max_examples=60, deadline=None)
@given(data=st.data(), axes=st.integers(1, 3))
def test_any_convolution_by_blocks(data: st.DataObject, axes: int) -> None:
    def each(least: int, most: int) -> list[int]:
        return data.draw(st.lists(st.integers(least, most), min_size=axes, max_size=axes))

    kernel, gaps, before, after = each(1, 4), each(1, 3), each(0, 3), each(0, 3)
    spans = [(k - 1) * gap + 1 for k, gap in zip(kernel, gaps, strict=True)]
    sizes = [max(span - b - a, 1) + more for span, b, a, more in
             zip(spans, before, after, each(0, 9), strict=True)]  # fmt: skip
    written = {"strides": each(1, 3), "dilations": gaps, "pads_begin": before, "pads_end": after}
    op = Op.registry["Convolution", 1].read(
        {name: ",".join(map(str, values)) for name, values in written.items()}
    )
    images, channels, made = (data.draw(st.integers(1, 3)) for _ in range(3))
    arrays = [numbers(images, channels, *sizes), numbers(made, channels, *kernel)]
    (wanted,) = op.run(*arrays)

    def refused(*_: Array) -> tuple[Array, ...]:
        raise AssertionError("the definition was asked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loose_windows, "BLOCK", data.draw(st.integers(1, 500)))
        patch.setattr(loose_windows, "lanes", lambda amount: data.draw(st.integers(1, 4)))
        (found,) = sharing.shared(op, arrays[1:], 2, refused)(*arrays)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_who_counts_bytes_gets_all_at_once() -> None:
    op = Op.registry["Convolution", 1].read(windowed(1))
    arrays = [numbers(1, 64, 40_000), numbers(64, 64, 3)]
    asked: list[tuple[int, ...]] = []

    def general(*arrays: Array) -> tuple[Array, ...]:
        asked.append(arrays[0].shape)
        return op.run(*arrays)

    with within(max_memory=10**9):
        sharing.shared(op, arrays[1:], 2, general)(*arrays)
    assert asked == [arrays[0].shape]


def test_convolutions_of_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LONG", 1)
    monkeypatch.setattr(sharing, "MUCH", 1)
    net = ir.Builder()
    x, zero = net.parameter("x", "f32", (60, 4)), net.constant(np.int64(0))
    first = net.add("Gather", "opset8", [x, zero, net.constant(np.int64(1))])
    high = net.add("Greater", "opset1", [first, net.constant(np.float32(-0.5))])
    places = net.add("NonZero", "opset3", [high], output_type="i64")
    rows = net.add("Gather", "opset8", [x, net.add("Squeeze", "opset1", [places, zero]), zero])
    line = net.add("Transpose", "opset1", [rows, net.constant([1, 0])])
    line = net.add("Unsqueeze", "opset1", [line, zero])
    made = net.add("Convolution", "opset1", [line, net.constant(numbers(6, 4, 5))],
                   strides=[1], dilations=[1], pads_begin=[2], pads_end=[2])  # fmt: skip
    made = net.add("PReLU", "opset1", [made, net.constant(np.array([0.1], "f4"))])
    net.result(net.add("ConvolutionBackpropData", "opset1", [made, net.constant(numbers(6, 3, 4))],
                       strides=[2], dilations=[1], pads_begin=[1], pads_end=[1]))  # fmt: skip
    model, inputs = net.model(), [numbers(60, 4)]
    (wanted,) = ir.run(model, inputs).values()
    assert wanted.shape[2] > 40
    found = [
        next(iter(ir.compile(model, threads=threads, fork=fork)(inputs).values()))
        for threads, fork in ((1, False), (2, True), (3, False))
    ]
    for one in found:
        np.testing.assert_allclose(one, wanted, atol=1e-4)
        np.testing.assert_array_equal(one, found[0])
