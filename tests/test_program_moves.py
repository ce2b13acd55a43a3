"""Reshapes and transposes in a row: one copy, of the same numbers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_attention import agree
from vinoir import ir
from vinoir.ir.engine.passes import optimize
from vinoir.ir.engine.plan import build

RNG = np.random.default_rng(3)


def moved(net: ir.Builder, y: ir.Output, *steps: tuple[str, list[int]]) -> ir.Output:
    """What is left of a value after some reshapes and transposes."""
    for kind, numbers in steps:
        words: dict[str, Any] = {"special_zero": False} if kind == "Reshape" else {}
        y = net.add(kind, "opset1", [y, net.constant(np.array(numbers, np.int64))], **words)
    return y


def moves(model: ir.Model, inputs: list[np.ndarray[Any, Any]]) -> int:
    """How many nodes of a program move numbers and do nothing else."""
    program = ir.compile(model, threads=1)
    kinds = [node.kind for node, *_ in program.times(inputs, 1) or []]
    return sum(kind in ("Reshape", "Transpose", "Squeeze", "Unsqueeze") for kind in kinds)


@st.composite
def chains(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[str, list[int]]]]:
    """A shape, and what is done to it."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 6]), min_size=2, max_size=6))
    shape = tuple(factors)
    steps: list[tuple[str, list[int]]] = []
    for _ in range(draw(st.integers(2, 7))):
        if draw(st.booleans()):
            told = draw(st.booleans())  # else they are turned round
            order = draw(st.permutations(range(len(shape)))) if told else range(len(shape))[::-1]
            steps.append(("Transpose", list(order) if told else []))
            shape = tuple(shape[axis] for axis in order)
        else:
            total, sizes = prod(shape), []
            while total > 1 and len(sizes) < 5:
                sizes.append(
                    draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
                )
                total //= sizes[-1]
            shape = (*sizes, total)
            steps.append(("Reshape", list(shape)))
    return tuple(factors), steps


@settings(max_examples=150, deadline=None)
@given(chains(), st.booleans())
def test_any_moves_in_a_row_move_the_same_numbers(
    chain: tuple[tuple[int, ...], list[tuple[str, list[int]]]], followed: bool
) -> None:
    shape, steps = chain
    net = ir.Builder()
    y = net.add("Tanh", "opset1", [net.parameter("x", "f32", shape)])
    y = moved(net, y, *steps)
    net.result(net.add("Sigmoid", "opset1", [y]) if followed else y, name="y")
    agree(net.model(), [RNG.standard_normal(shape).astype("f4")], within=1e-6)


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("channels", [8, 24])
def test_patches_of_images_are_cut_and_put_together_by_a_copy_each(
    images: int, channels: int
) -> None:
    """As between the convolutions of a network that looks at patches in between."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (images, channels, 12, 16))
    weights = [RNG.standard_normal((channels, channels, 1, 1)).astype("f4") for _ in range(2)]
    pads = {"pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "strides": [1, 1]}
    y = net.add("Convolution", "opset1", [x, net.constant(weights[0])], **pads)
    y = moved(
        net, y, ("Reshape", [images * channels * 6, 2, 8, 2]), ("Transpose", [0, 2, 1, 3]),
        ("Reshape", [images, channels, 48, 4]), ("Transpose", [0, 3, 2, 1]),
        ("Reshape", [images * 4, 48, channels]),
    )  # fmt: skip
    words = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
    y = net.add("MVN", "opset6", [y, net.constant([2])], **words)
    y = moved(
        net, y, ("Reshape", [images, 4, 48, channels]), ("Transpose", [0, 3, 2, 1]),
        ("Reshape", [images * channels * 6, 8, 2, 2]), ("Transpose", [0, 2, 1, 3]),
        ("Reshape", [images, channels, 12, 16]),
    )  # fmt: skip
    net.result(net.add("Convolution", "opset1", [y, net.constant(weights[1])], **pads), name="y")
    inputs = [RNG.standard_normal((images, channels, 12, 16)).astype("f4")]
    agree(net.model(), inputs, within=1e-5)
    assert moves(net.model(), inputs) == 2


FLAT: list[tuple[str, list[int]]] = [("Transpose", [1, 0, 2]), ("Reshape", [36, 5])]


def test_what_others_read_stays() -> None:
    net = ir.Builder()
    x = net.add("Tanh", "opset1", [net.parameter("x", "f32", (4, 9, 5))])
    middle = moved(net, x, *FLAT)
    net.result(net.add("Sigmoid", "opset1", [middle]), name="middle")
    net.result(moved(net, middle, ("Transpose", [1, 0]), ("Reshape", [5, 9, 4])), name="y")
    agree(net.model(), [RNG.standard_normal((4, 9, 5)).astype("f4")], within=1e-6)


@pytest.mark.parametrize(
    "steps",
    [
        # 6 of 9 x 4 are no whole part of either.
        [("Transpose", [1, 0, 2]), ("Reshape", [6, 30]), ("Transpose", [1, 0])],
        # What follows such a reshape is joined by itself.
        [*FLAT, ("Reshape", [6, 6, 5]), ("Transpose", [2, 1, 0]), ("Reshape", [10, 18]),
         ("Transpose", [1, 0]), ("Reshape", [180])],
        # The 9 is cut into threes before it is seen that 2 cuts none of them.
        [*FLAT, ("Transpose", [1, 0]), ("Reshape", [5, 3, 2, 6])],
    ],
)  # fmt: skip
def test_reshapes_that_cut_across_axes_end_a_row(steps: list[tuple[str, list[int]]]) -> None:
    net = ir.Builder()
    x = net.add("Tanh", "opset1", [net.parameter("x", "f32", (4, 9, 5))])
    net.result(moved(net, x, *steps), name="y")
    agree(net.model(), [RNG.standard_normal((4, 9, 5)).astype("f4")], within=1e-6)


@pytest.mark.parametrize("multiplied", [True, False])
def test_what_turns_a_matrix_for_a_product_stays_a_view(multiplied: bool) -> None:
    net = ir.Builder()
    x = net.add("Tanh", "opset1", [net.parameter("x", "f32", (4, 9, 5))])
    y = moved(net, x, *FLAT, ("Transpose", [1, 0]))
    if multiplied:
        y = net.add("MatMul", "opset1", [net.parameter("q", "f32", (3, 5)), y])
    net.result(net.add("Sigmoid", "opset1", [y]), name="y")
    shapes = [(4, 9, 5), (3, 5)][: 1 + multiplied]
    inputs = [RNG.standard_normal(shape).astype("f4") for shape in shapes]
    agree(net.model(), inputs, within=1e-6)
    program = ir.compile(net.model(), threads=1)
    copied = [node for node, *_ in program.times(inputs, 1) or [] if node.kind == "Reshape"]
    assert [node.outputs[0].shape for node in copied] == [(36, 5) if multiplied else (5, 36)]


def test_very_many_moves_take_no_more_than_their_number() -> None:
    net = ir.Builder()
    y = net.add("Tanh", "opset1", [net.parameter("x", "f32", (2, 4, 8))])
    for _ in range(700):
        y = moved(net, y, ("Transpose", [2, 0, 1]), ("Reshape", [2, 4, 8]))
    net.result(y, name="y")
    inputs = [RNG.standard_normal((2, 4, 8)).astype("f4")]
    agree(net.model(), inputs, within=1e-6)
    assert moves(net.model(), inputs) <= 2


#: What is done to what a product or a convolution gives before its channels are scaled.
WAYS: dict[str, tuple[str, tuple[int, ...], list[tuple[str, list[int]]], tuple[int, ...]]] = {
    "rows joined": ("MatMul", (2, 6, 5), [("Reshape", [12, 8])], (8,)),
    "rows cut": ("MatMul", (12, 5), [("Reshape", [2, 3, 2, 8])], (1, 1, 1, 8)),
    "heads apart": (
        "MatMul", (2, 6, 5), [("Reshape", [2, 6, 4, 2]), ("Transpose", [0, 2, 1, 3])], (4, 1, 1)
    ),
    "of each head": ("MatMul", (2, 6, 5), [("Reshape", [2, 6, 4, 2])], (2,)),
    "heads, and of each": ("MatMul", (2, 6, 5), [("Reshape", [2, 6, 4, 2])], (4, 2)),
    "image to rows": (
        "Convolution", (2, 5, 3, 4), [("Reshape", [2, 8, 12]), ("Transpose", [0, 2, 1])], (8,)
    ),
    "channels last": ("Convolution", (2, 5, 3, 4), [("Transpose", [0, 2, 3, 1])], (8,)),
    "turned round": ("Convolution", (1, 5, 3, 4), [("Transpose", [])], (8, 1)),
    "flat, and an axis more": (
        "Convolution", (1, 5, 1, 6), [("Squeeze", [2]), ("Unsqueeze", [1])], (1, 1, 8, 1)
    ),
}  # fmt: skip


def made(net: ir.Builder, kind: str, shape: tuple[int, ...]) -> ir.Output:
    """Eight channels of an input."""
    x = net.parameter("x", "f32", shape)
    if kind == "MatMul":
        return net.add("MatMul", "opset1", [x, net.constant(draw(shape[-1], 8))])
    pads = {"pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "strides": [1, 1]}
    return net.add("Convolution", "opset1", [x, net.constant(draw(8, shape[1], 1, 1))], **pads)


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.uniform(0.5, 2, shape).astype("f4")


def nodes(model: ir.Model) -> list[str]:
    """The nodes of a plan."""
    plan = build(model, ir.infer(model))
    optimize(plan, after_each=lambda plan: plan.verify())
    return [node.kind for node in plan.nodes]


def working(model: ir.Model) -> list[str]:
    """Those that do more than moving numbers."""
    idle = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")
    return [kind for kind in nodes(model) if kind not in idle]


@pytest.mark.parametrize("kinds", [("Multiply", "Add"), ("Divide", "ReLU"), ("Maximum",)])
@pytest.mark.parametrize("way", WAYS)
def test_channels_are_changed_before_they_are_moved(way: str, kinds: tuple[str, ...]) -> None:
    kind, shape, steps, constant = WAYS[way]
    net = ir.Builder()
    y = moved(net, made(net, kind, shape), *steps)
    for name in kinds:
        others = [] if name == "ReLU" else [net.constant(draw(*constant))]
        y = net.add(name, "opset1", [y, *others])
    net.result(y, name="y")
    inputs = [RNG.standard_normal(shape).astype("f4")]
    agree(net.model(), inputs, within=1e-6)
    assert working(net.model()) == [kind]


@pytest.mark.parametrize("name", ["Add", "Multiply", "Subtract"])
@pytest.mark.parametrize("first", [True, False])
def test_rows_meet_others_before_they_are_reshaped(name: str, first: bool) -> None:
    """As a sum with what came in, which has the other shape."""
    net = ir.Builder()
    y = moved(net, made(net, "MatMul", (2, 6, 5)), ("Reshape", [12, 8]))
    other = net.parameter("other", "f32", (12, 8))
    y = net.add(name, "opset1", [y, other] if first else [other, y])
    y = moved(net, y, ("Reshape", [2, 6, 8]))
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    inputs = [RNG.standard_normal(shape).astype("f4") for shape in ((2, 6, 5), (12, 8))]
    agree(net.model(), inputs, within=1e-6)
    assert working(net.model()) == ["MatMul"]


@pytest.mark.parametrize(
    ("shape", "constant"),
    [
        ([4, 24], (4, 1)),  # parts of rows and of channels
        ([2, 48], (48,)),  # rows differ, too
        ([2, 6, 8], (2, 6, 8)),
    ],
)
def test_what_differs_from_row_to_row_stays_where_it_is(
    shape: list[int], constant: tuple[int, ...]
) -> None:
    net = ir.Builder()
    y = moved(net, made(net, "MatMul", (12, 5)), ("Reshape", shape))
    net.result(net.add("Multiply", "opset1", [y, net.constant(draw(*constant))]), name="y")
    inputs = [RNG.standard_normal((12, 5)).astype("f4")]
    agree(net.model(), inputs, within=1e-6)
    assert "Multiply" in working(net.model())


def test_what_differs_from_place_to_place_stays_behind_transposes() -> None:
    """It would be read against the order in which it lies."""
    net = ir.Builder()
    y = moved(net, made(net, "Convolution", (1, 5, 3, 4)), ("Transpose", [0, 2, 3, 1]))
    net.result(net.add("Add", "opset1", [y, net.constant(draw(3, 4, 8))]), name="y")
    agree(net.model(), [RNG.standard_normal((1, 5, 3, 4)).astype("f4")], within=1e-6)
    assert working(net.model()) == ["Convolution", "Add"]


def test_reshapes_back_are_left_out_where_others_read_what_is_between() -> None:
    net = ir.Builder()
    x = net.add("Tanh", "opset1", [net.parameter("x", "f32", (4, 6))])
    flat = moved(net, x, ("Reshape", [2, 12]))
    net.result(net.add("SoftMax", "opset8", [flat], axis=-1), name="flat")
    back = moved(net, flat, ("Reshape", [4, 6]))
    net.result(net.add("SoftMax", "opset8", [back], axis=-1), name="back")
    inputs = [RNG.standard_normal((4, 6)).astype("f4")]
    agree(net.model(), inputs, within=1e-6)
    assert nodes(net.model()).count("Reshape") == 1


@settings(max_examples=150, deadline=None)
@given(chains(), st.data())
def test_whatever_is_changed_after_any_moves_is_the_same(
    chain: tuple[tuple[int, ...], list[tuple[str, list[int]]]], data: st.DataObject
) -> None:
    shape, steps = chain
    net = ir.Builder()
    y = net.add("Abs", "opset1", [net.parameter("x", "f32", shape)])
    for step in steps:
        y = moved(net, y, step)
        sizes = y.tensor.shape.static
        kept = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
        other = draw(*[size if is_kept else 1 for size, is_kept in zip(sizes, kept, strict=True)])
        y = net.add(data.draw(st.sampled_from(["Add", "Multiply"])), "opset1",
                    [y, net.constant(other)])  # fmt: skip
    net.result(y, name="y")
    nodes(net.model())  # each pass leaves a plan that agrees with itself
    agree(net.model(), [RNG.standard_normal(shape).astype("f4")], within=1e-5)
