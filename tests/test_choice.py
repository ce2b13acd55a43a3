"""Elements are chosen as ``np.where`` chooses them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir
from vinoir.layers.choice import MANY, either
from vinoir.schemas import Array

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38]


def numbers(shape: tuple[int, ...], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    found: Array = rng.standard_normal(shape).astype("f4")
    flat = found.reshape(-1)
    flat[rng.integers(0, max(flat.size, 1), flat.size // 3)] = rng.choice(SPECIAL)
    return found


@given(
    kind=st.sampled_from(["f4", "f8", "f2", "i8", "i4", "u1", "i2", "?", "O", "c8"]),
    shapes=st.sampled_from([
        ((64, 80), (64, 80), (64, 80)),
        ((80,), (64, 80), (64, 1)),
        ((64, 1), (), (80,)),
        ((2, 1, 80), (40, 1), (1, 1, 1)),
        ((64, 80), (), ()),
        ((3,), (3,), (3,)),
        ((0, 80), (80,), ()),
    ]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_either(kind: str, shapes: tuple[tuple[int, ...], ...], seed: int) -> None:
    mask = numbers(shapes[0], seed) > 0
    with np.errstate(invalid="ignore", over="ignore"):
        then, other = (
            np.asarray(numbers(shape, seed + 1)).astype(kind) for shape in shapes[1:]
        )  # fmt: skip
    found, right = either(mask, then, other), np.where(mask, then, other)
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    assert found.tobytes() == right.tobytes() or kind == "O"
    if kind == "O":
        assert found.astype("f4").tobytes() == right.astype("f4").tobytes()


def test_what_is_read_backwards() -> None:
    mask, then = numbers((70, 80), 1) > 0, numbers((70, 80), 2)
    assert mask.size > MANY
    found = either(mask[::-1], then.T[::-1].T, then[:, ::-1])
    np.testing.assert_array_equal(found, np.where(mask[::-1], then[:, ::-1], then[:, ::-1]))


@pytest.mark.parametrize("kind", ["f32", "i64", "f16"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 90, 90), (2, 3, 90, 90), (2, 3, 90, 90)),
        ((1, 1, 90, 90), (2, 3, 90, 90), (1,)),
        ((2, 1, 1, 90), (2, 3, 90, 90), (3, 1, 1)),
        ((90, 1), (1, 3, 1, 90), (2, 1, 90, 90)),
        ((5,), (5,), (5,)),
        ((), (), ()),
        ((), (1,), (1, 1)),
    ],
)
def test_a_program_selects(kind: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    net = ir.Builder()
    mask, then, other = (
        net.parameter(name, element, shape)
        for name, element, shape in zip("mab", ("boolean", kind, kind), shapes, strict=True)
    )
    net.result(net.add("Select", "opset1", [mask, then, other]), name="found")
    # Within a network, too, beside what is not read from the caller.
    if kind == "f32":
        twice = net.add("ReLU", "opset1", [then])
        net.result(net.add("Select", "opset1", [mask, other, twice]), name="twice")
    model = net.model()
    arrays = [numbers(shapes[0], 1) > 0]
    with np.errstate(invalid="ignore", over="ignore"):
        arrays += [
            numbers(shape, 2 + n).astype(model.inputs[1].type.dtype)
            for n, shape in enumerate(shapes[1:])
        ]
    right = np.where(*arrays)
    wanted = ir.run(model, arrays)
    for options in ({}, {"fork": False}):
        found = ir.compile(model, threads=2, **options)(arrays)
        assert found["found"].tobytes() == right.tobytes() == wanted["found"].tobytes()
        if kind == "f32":
            np.testing.assert_array_equal(found["twice"], wanted["twice"])


def test_a_program_selects_images_whose_channels_are_last() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 40, 40))
    rng = np.random.default_rng(0)
    weights = [net.constant(rng.standard_normal((16, 8, 3, 3)).astype("f4")) for _ in "ab"]
    words = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    left, right = (net.add("Convolution", "opset1", [x, w], **words) for w in weights)
    mask = net.constant(rng.standard_normal((16, 1, 40)) > 0)
    net.result(net.add("Select", "opset1", [mask, left, right]))
    model, given = net.model(), rng.standard_normal((1, 8, 40, 40)).astype("f4")
    found, wanted = ir.compile(model, threads=2)([given])[0], ir.run(model, [given])[0]
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
