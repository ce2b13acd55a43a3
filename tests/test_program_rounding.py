"""What ONNX says by Round, Clamp and Convert is a FakeQuantize in a program."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import Array

from .test_program_bytes import planned

pytestmark = pytest.mark.usefixtures("integers_are_quick")
KINDS = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2"}


class Said:
    """A network whose values are rounded to integers of a type, and read again."""

    def __init__(self, kind: str, zero: int, *, is_plain: bool = False) -> None:
        shape = 2, 6, 12, 14
        self.net, self.kind, self.zero, self.is_plain = ir.Builder(), kind, zero, is_plain
        self.x = self.net.parameter("x", "f32", shape)
        # No number lies in the middle of two levels.
        numbers = np.random.default_rng(0).integers(-9000, 9000, shape)
        self.given = ((numbers + 0.25) / 64).astype("f4")

    def constant(self, number: float) -> Any:
        return self.net.constant(np.float32(number))

    def add(self, kind: str, *inputs: Any, opset: str = "opset1", **words: Any) -> Any:
        return self.net.add(kind, opset, list(inputs), **words)

    def levels(self, x: Any, *, scale: float | None = 0.1237, high: int | None = None) -> Any:
        ends = np.iinfo(KINDS[self.kind])
        y = x if scale is None else self.add("Divide", x, self.constant(scale))
        y = self.add("Round", y, opset="opset5", mode="half_to_even")
        if self.zero:
            y = self.add("Add", y, self.constant(self.zero))
        most = int(ends.max if high is None else high)
        if self.is_plain:
            y = self.add("Maximum", y, self.constant(ends.min))
            y = self.add("Minimum", y, self.constant(most))
        else:
            y = self.add("Clamp", y, min=int(ends.min), max=most)
        return self.add("Convert", y, destination_type=self.kind)

    def numbers(self, levels: Any, *, scale: float | None = 0.25, zero: int | None = None) -> Any:
        zero = self.zero if zero is None else zero
        y = self.add("Convert", levels, destination_type="f32")
        y = self.add("Subtract", y, self.constant(zero)) if zero else y
        return y if scale is None else self.add("Multiply", y, self.constant(scale))

    def check(self, *results: Any, joined: bool = True) -> None:
        for result in results:
            self.net.result(result)
        model = self.net.model()
        kinds: Counter[str] = Counter()
        for node in planned(model).nodes:
            kinds.update([node.kind, *(op.xml_type for op, _ in node.epilogue)])
        assert kinds["Round"] == (not joined)
        assert kinds["FakeQuantize"] == joined
        same(model, self.given)


def same(model: ir.Model, given: Array) -> None:
    wanted = ir.run(model, [given])
    for words in ({"threads": 1}, {"threads": 2}, {"threads": 2, "fork": False}):
        for name, found in ir.compile(model, **words)([given]).items():
            np.testing.assert_allclose(found, wanted[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kind", "zero"), [
    ("u8", 0), ("u8", 128), ("u8", 3), ("i8", 0), ("i8", -77), ("u16", 40_000), ("i16", 4),
])  # fmt: skip
@pytest.mark.parametrize("scale", [0.25, None])
@pytest.mark.parametrize("is_divided", [True, False])
@pytest.mark.parametrize("is_plain", [False, True])
def test_bytes_that_stand_for_numbers(
    kind: str, zero: int, scale: float | None, is_divided: bool, is_plain: bool
) -> None:
    n = Said(kind, zero, is_plain=is_plain)
    # Where halves are counted from an odd level, none may come but by accident.
    factor, by = (1.2345, 0.1237) if zero % 2 else (1, 0.125)
    x = n.add("Multiply", n.add("Abs", n.x), n.constant(factor))
    levels = n.levels(x, scale=by if is_divided else None)
    n.check(n.add("ReLU", n.numbers(levels, scale=scale)))


@pytest.mark.parametrize(("zero", "scale", "joined"), [(3, 0.125, False), (4, 0.125, True)])
def test_halves_are_counted_from_an_even_level(zero: int, scale: float, joined: bool) -> None:
    n = Said("u8", zero)
    n.given = np.round(n.given * 16) / 16
    n.check(n.add("ReLU", n.numbers(n.levels(n.x, scale=scale))), joined=joined)


@pytest.mark.parametrize("how", ["pooled", "turned", "split", "cut"])
@pytest.mark.parametrize("scale", [0.25, None])
def test_bytes_that_are_moved_on_the_way(how: str, scale: float | None) -> None:
    n = Said("u8", 7)
    levels = n.levels(n.x)
    if how == "pooled":
        words = {"strides": [2, 2], "kernel": [3, 3], "pads_begin": [1, 1], "pads_end": [1, 1]}
        moved = [n.add("MaxPool", levels, **words)]
    elif how == "turned":
        order, shape = n.net.constant([0, 2, 3, 1]), n.net.constant([2, 12, 84])
        moved = [n.add("Transpose", levels, order)]
        moved = [n.add("Reshape", moved[0], shape, special_zero=False)]
    elif how == "split":
        parts = n.add("Split", levels, n.net.constant(1), num_splits=2)
        moved = [parts[0], parts[1]]
    else:
        ends = [n.net.constant([number]) for number in (1, 5, 2, 1)]
        moved = [n.add("Slice", levels, *ends, opset="opset8"), levels]
    n.check(*(n.add("Abs", n.numbers(one, scale=scale)) for one in moved))


def test_numbers_that_are_read_with_a_scale_and_without() -> None:
    n = Said("i8", -3)
    levels = n.levels(n.x)
    y, z = (n.numbers(levels, scale=scale) for scale in (0.25, None))
    n.check(n.add("Sqrt", n.add("Abs", y)), n.add("Abs", z))


def test_numbers_that_are_handed_out_are_multiplied_last() -> None:
    n = Said("u8", 9)
    n.check(n.numbers(n.levels(n.x)))


@pytest.mark.parametrize(
    "why",
    [
        "handed out",
        "another zero",
        "other limits",
        "read as bytes",
        "added to",
        "a middle",
        "far",
    ],
)
def test_what_is_more_than_that_stays(why: str) -> None:
    n = Said("u8", 10**9 if why == "far" else 8)
    levels = n.levels(n.x, high=200 if why == "other limits" else None)
    y = n.numbers(levels, zero=9 if why == "another zero" else None)
    more = []
    if why == "handed out":
        more = [levels]
    elif why == "read as bytes":
        more = [n.add("Convert", levels, destination_type="i32")]
    elif why == "added to":
        more = [n.add("Maximum", levels, n.net.constant(np.uint8(9)))]
    elif why == "a middle":
        more = [n.add("Convert", n.add("Convert", levels, destination_type="f32"),
                      destination_type="i32")]  # fmt: skip
    n.check(n.add("ReLU", y), *more, joined=False)


def test_numbers_may_be_read_by_whoever_runs_by_its_definition() -> None:
    n = Said("u8", 3)
    y = n.numbers(n.levels(n.x))
    unique = n.add("Unique", y, opset="opset10", sorted=True, index_element_type="i32")
    n.check(unique[0], n.add("NonZero", n.add("ReLU", y), opset="opset3"))


def test_what_is_divided_by_next_to_nothing_is_at_the_ends() -> None:
    n = Said("u8", 8)
    n.check(n.add("ReLU", n.numbers(n.levels(n.x, scale=1e-40))))


def test_no_number_is_the_least_of_bytes() -> None:
    n = Said("u8", 8)
    n.net.result(n.add("ReLU", n.add("Abs", n.numbers(n.levels(n.x)))))
    model = n.net.model()
    n.given[0, 0] = np.nan
    same(model, n.given)


@pytest.mark.parametrize(
    "limits",
    [
        (0, 1e-37, 0, 1),  # levels are so close that one divided by their distance is infinite
        (-1, 1, -3e38, 3e38),  # the outputs are farther apart than the largest number
        (-3e38, 3e38, -1, 1),
        (0, 1e-45, -1, 1),
    ],
)
def test_levels_beyond_float32_are_what_the_definition_says(limits: tuple[float, ...]) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 7))
    ends = [net.constant(np.float32(limit)) for limit in limits]
    net.result(net.add("FakeQuantize", "opset1", [x, *ends], levels=256), name="y")
    given = np.array([[-1, 0, 3e-38, 6e-38, 1e-37, 1, 3e38]], "f4")
    with np.errstate(all="ignore"):
        wanted = ir.run(net.model(), [given])["y"]
    found = ir.compile(net.model(), threads=1)([given])["y"]
    np.testing.assert_array_equal(found, wanted)
    # The definition's own: what is not between the limits is the output's first or last.
    outside = (given <= np.float32(limits[0])) | (given > np.float32(limits[1]))
    ends_of = np.where(
        given <= np.float32(limits[0]), np.float32(limits[2]), np.float32(limits[3])
    )
    np.testing.assert_array_equal(found[outside], ends_of[outside])
