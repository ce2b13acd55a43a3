"""Volumes in many groups: each tap along their first axis meets images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_pads import compared
from vinoir import ir
from vinoir.schemas import Array

Three = st.tuples(*[st.integers(1, 3)] * 3)
Margins = st.tuples(*[st.integers(0, 2)] * 3)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def words(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


@settings(max_examples=60)
@given(
    batch=st.integers(1, 2),
    groups=st.sampled_from([9, 16, 32, 70]),
    each=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    size=st.tuples(*[st.integers(1, 7)] * 3),
    window=Three,
    strides=Three,
    dilations=Three,
    begins=Margins,
    ends=Margins,
    followers=st.lists(st.sampled_from(["scaled", "biased", "added", "swished"]), max_size=4),
)
def test_many_groups(
    batch: int, groups: int, each: tuple[int, int], size: tuple[int, ...],
    window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...],
    begins: tuple[int, ...], ends: tuple[int, ...], followers: list[str],
) -> None:  # fmt: skip
    axes = zip(size, window, dilations, begins, ends, strict=True)
    if any(n + b + e < (k - 1) * d + 1 for n, k, d, b, e in axes):
        return
    outer, inner = each
    shape = batch, groups * inner, *size
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    filters = net.constant(numbers(groups, outer, inner, *window))
    found = net.add(
        "GroupConvolution", "opset1", [x, filters], strides=words(strides),
        dilations=words(dilations), pads_begin=words(begins), pads_end=words(ends),
    )  # fmt: skip
    stops = [
        (n + b + e - (k - 1) * d - 1) // s + 1
        for n, k, d, b, e, s in zip(size, window, dilations, begins, ends, strides, strict=True)
    ]
    arrays = [numbers(*shape)]
    for number, name in enumerate(followers):
        row = net.constant(numbers(groups * outer, 1, 1, 1))
        if name == "scaled":
            found = net.add("Multiply", "opset1", [found, row])
        elif name == "biased":
            found = net.add("Add", "opset1", [found, row])
        elif name == "added":
            arrays.append(numbers(batch, groups * outer, *stops))
            other = net.parameter(f"y{number}", "f32", arrays[-1].shape)
            found = net.add("Add", "opset1", [net.add("Sigmoid", "opset1", [other]), found])
        else:
            found = net.add("Swish", "opset4", [found])
    net.result(found)
    assert "GroupConvolution" in compared(net, *arrays)


@pytest.mark.parametrize("window", [(3, 3, 3), (5, 1, 1), (1, 3, 3)])
def test_a_mobile_block_of_films(window: tuple[int, ...]) -> None:
    """Wider, each channel by itself, narrower, and added to what came in: as X3D has them."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 12, 6, 9, 9))
    zeros, ones = "0,0,0", "1,1,1"
    plain: dict[str, Any] = {
        "strides": ones, "dilations": ones, "pads_begin": zeros, "pads_end": zeros
    }  # fmt: skip
    pads = words(tuple(n // 2 for n in window))
    wide = net.add("Convolution", "opset1", [x, net.constant(numbers(27, 12, 1, 1, 1))], **plain)
    filters = net.constant(numbers(27, 1, 1, *window))
    each = net.add(
        "GroupConvolution", "opset1", [net.add("ReLU", "opset1", [wide]), filters],
        **{**plain, "pads_begin": pads, "pads_end": pads},
    )  # fmt: skip
    each = net.add("Multiply", "opset1", [each, net.constant(numbers(27, 1, 1, 1))])
    each = net.add("Add", "opset1", [each, net.constant(numbers(1, 27, 1, 1, 1))])
    filters = net.constant(numbers(12, 27, 1, 1, 1))
    narrow = net.add(
        "Convolution", "opset1", [net.add("Swish", "opset4", [each]), filters], **plain
    )
    net.result(net.add("Add", "opset1", [narrow, x]))
    model, arrays = net.model(), [numbers(1, 12, 6, 9, 9)]
    program = ir.compile(model, threads=2)
    found, right = program(arrays)[0], ir.run(model, arrays)[0]
    np.testing.assert_allclose(found, right, atol=1e-5 * np.abs(right).max())
    threads = ir.compile(model, threads=2, fork=False)
    np.testing.assert_array_equal(threads(arrays)[0], found)
    (planned,) = program._plans.values()
    assert planned is not None
    # The scale went into the weights, and nothing of what it did is left to be done.
    grouped = [node for node, *_ in planned.spans if node.op.xml_type == "GroupConvolution"]
    assert [[step.xml_type for step, _ in node.epilogue] for node in grouped] == [["Swish"]]
