"""Values that describe shapes, carried through chains of operations: bounds as OpenVINO's."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import Shape

ov = pytest.importorskip("openvino")

import openvino.opset15 as ops  # noqa: E402  # after the test whether there is OpenVINO

#: Random chains; more of them by hand.
CASES = int(os.environ.get("VINOIR_CHAINS", "60"))


class Chains:
    """Random operations on the sizes of a dynamic input, and what is shaped by the outcome."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.ends: list[Any] = []
        rank = rng.randint(1, 4)
        self.data = ops.parameter(
            ov.PartialShape([self.dimension() for _ in range(rank)]), ov.Type.f32
        )
        self.other = ops.parameter(ov.PartialShape.dynamic(), ov.Type.f32)
        kind = rng.choice(["i64", "i64", "i32"])
        self.values = [ops.shape_of(self.data, kind).output(0)]

    def dimension(self) -> Any:
        low = self.rng.randint(0, 6)
        high = low + self.rng.randint(1, 9)
        return self.rng.choice(
            [
                ov.Dimension(low), ov.Dimension(low + 1), ov.Dimension(), ov.Dimension(),
                ov.Dimension(low, high), ov.Dimension(low, high), ov.Dimension(low, -1),
                ov.Dimension(0, high),
            ]
        )  # fmt: skip

    def constant(self, like: Any, numbers: Any) -> Any:
        return ops.constant(np.array(numbers), like.get_element_type())

    def index(self, numbers: Any) -> Any:
        return ops.constant(np.array(numbers, self.rng.choice(["i4", "i8"])))

    def number(self) -> int:
        return self.rng.choice([-2, -1, 0, 1, 1, 2, 2, 3, 4, 7])

    def another(self, value: Any) -> Any:
        """A second operand: a constant, or a value of the same type."""
        fellows = [v for v in self.values if v.get_element_type() == value.get_element_type()]
        if self.rng.random() < 0.4:
            return self.rng.choice(fellows)
        shape = list(value.get_shape())
        if self.rng.random() < 0.5 or not shape:
            return self.constant(value, self.number())
        return self.constant(value, [self.number() for _ in range(shape[0])])

    def step(self) -> None:
        """One more value made of those there are."""
        value = self.rng.choice(self.values)
        made = self.rng.choice(STEPS)(self, value)
        if made is None:
            return
        made = made if isinstance(made, list) else made.outputs()
        self.values += [output for output in made if output.get_partial_shape().is_static]

    def end(self) -> None:
        """Something whose shape is told by a value."""
        value = self.rng.choice(self.values)
        if len(value.get_shape()) == 1:
            self.ends += self.rng.choice(ENDS)(self, value).outputs()

    def model(self) -> Any:
        """The model of it all."""
        for _ in range(self.rng.randint(1, 6)):
            self.attempt(self.step)
        for _ in range(6):
            self.attempt(self.end)
        self.ends += ops.broadcast(ops.constant(np.float32(0)), ops.shape_of(self.data)).outputs()
        return ov.Model(self.ends, [self.data, self.other])

    def attempt(self, action: Callable[[], None]) -> None:
        """Do it, unless OpenVINO or the value at hand do not allow it."""
        with contextlib.suppress(RuntimeError, ValueError):
            action()


def elementwise(name: str) -> Callable[[Chains, Any], Any]:
    def make(chains: Chains, value: Any) -> Any:
        operands = [value, chains.another(value)]
        if chains.rng.random() < 0.2:
            operands.reverse()
        return getattr(ops, name)(*operands)

    return make


def gather(chains: Chains, value: Any) -> Any:
    (size,) = value.get_shape()
    picked: Any = [chains.rng.randrange(-size, size) for _ in range(chains.rng.randint(1, 3))]
    if chains.rng.random() < 0.4:
        picked = picked[0]
    return ops.gather(value, chains.index(picked), chains.index(0))


def strided_slice(chains: Chains, value: Any) -> Any:
    begin, end = (chains.rng.randint(-4, 4) for _ in range(2))
    stride = chains.rng.choice([1, 1, 2, -1])
    masks = [[chains.rng.choice([0, 0, 1])] for _ in range(2)]
    shrink = [int(chains.rng.random() < 0.3)]
    ends = [chains.constant(value, [n]) for n in (begin, end, stride)]
    return ops.strided_slice(value, *ends, *masks, [], shrink, [])


def slice_(chains: Chains, value: Any) -> Any:
    begin, end = chains.rng.randint(-3, 1), chains.rng.randint(1, 4)
    numbers = (begin, end, chains.rng.choice([1, 1, 2]), 0)
    return ops.slice(value, *(chains.index([n]) for n in numbers))


def concat(chains: Chains, value: Any) -> Any:
    pieces = [value, chains.another(value), chains.constant(value, [chains.number()])]
    chains.rng.shuffle(pieces)
    pieces = [piece.output(0) if hasattr(piece, "output") else piece for piece in pieces]
    return ops.concat([piece for piece in pieces if len(piece.get_shape()) == 1], 0)


def reduction(name: str) -> Callable[[Chains, Any], Any]:
    def make(chains: Chains, value: Any) -> Any:
        return getattr(ops, name)(value, chains.index([0]), chains.rng.random() < 0.5)

    return make


def convert(chains: Chains, value: Any) -> Any:
    if value.get_element_type() == ov.Type.f32:
        return ops.convert(value, chains.rng.choice(["i64", "i32"]))
    return ops.convert(value, chains.rng.choice(["i64", "i32", "f32"]))


def scaled(chains: Chains, value: Any) -> Any:
    """Through real numbers and back."""
    real = ops.convert(value, "f32")
    factor = np.float32(chains.rng.choice([0.5, 2, 1.5, 4]))
    rule = chains.rng.choice([ops.multiply, ops.divide, ops.add])
    return ops.convert(rule(real, ops.constant(factor)), chains.rng.choice(["i64", "i32"]))


def select(chains: Chains, value: Any) -> Any:
    shape = list(value.get_shape())
    if chains.rng.random() < 0.5:
        asked = ops.equal(value, chains.another(value))
    else:
        asked = ops.constant(
            np.array(np.random.default_rng(len(shape)).integers(0, 2, shape), bool)
        )
    return ops.select(asked, value, chains.another(value))


def scatter(chains: Chains, value: Any) -> Any:
    (size,) = value.get_shape()
    place = chains.index([chains.rng.randrange(size)])
    update = chains.another(value)
    rule = chains.rng.choice([ops.scatter_update, ops.scatter_elements_update])
    return rule(value, place, ops.reshape(update, chains.index([1]), False), chains.index(0))


def pieces(chains: Chains, value: Any) -> Any:
    (size,) = value.get_shape()
    if chains.rng.random() < 0.5:
        return ops.split(value, chains.index(0), size)
    return ops.variadic_split(value, chains.index(0), chains.index([1, -1]))


STEPS: list[Callable[[Chains, Any], Any]] = [
    *(elementwise(n) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum")),
    *(elementwise(n) for n in ("add", "subtract", "multiply", "divide")),
    *(reduction(name) for name in ("reduce_prod", "reduce_min", "reduce_max", "reduce_sum")),
    *[gather] * 4,
    *[concat] * 3,
    *[convert, scaled, select, scatter, slice_, strided_slice, pieces] * 2,
    lambda chains, value: ops.unsqueeze(value, chains.index(0)),
    lambda chains, value: ops.squeeze(value, chains.index(0)),
    lambda chains, value: ops.reshape(value, chains.index([-1]), False),
    lambda chains, value: ops.broadcast(value, chains.index([3])),
    lambda chains, value: ops.tile(value, chains.index([2])),
    lambda chains, value: ops.transpose(value, chains.index([0])),
    # Of negative numbers here, of FloorMod, and of Abs OpenVINO tells limits that are not so.
    lambda chains, _: ops.mod(
        chains.values[0], chains.constant(chains.values[0], chains.rng.randint(1, 9))
    ),
    lambda chains, value: ops.clamp(value, 1, 5),
    lambda chains, value: ops.negative(value),
    lambda chains, value: ops.floor(value),
    lambda chains, value: ops.pad(value, chains.index([1]), chains.index([0]), "constant"),
    lambda chains, value: ops.range(
        chains.constant(value, 0), value, chains.constant(value, 1), value.get_element_type()
    ),
]


def one(chains: Chains, value: Any) -> Any:
    """One of the elements, as a list."""
    place = chains.rng.randrange(value.get_shape()[0])
    return ops.gather(value, chains.index([place]), chains.index(0))


def flat(chains: Chains, value: Any) -> Any:
    """The same; Broadcast alone looks through a Concat that is not known, which this prevents."""
    return ops.reshape(value, chains.index([-1]), False)


ENDS: list[Callable[[Chains, Any], Any]] = [
    lambda chains, value: ops.broadcast(ops.constant(np.float32(0)), flat(chains, value)),
    lambda chains, value: ops.reshape(chains.other, value, chains.rng.random() < 0.5),
    lambda chains, value: ops.reshape(chains.data, value, False),
    lambda chains, value: ops.tile(chains.data, value),
    lambda chains, value: ops.broadcast(
        chains.data, flat(chains, value), broadcast_spec="BIDIRECTIONAL"
    ),
    lambda chains, value: ops.slice(
        chains.data, one(chains, value), one(chains, value), chains.index([1]), chains.index([0])
    ),
    lambda chains, value: ops.reshape(
        chains.data, ops.concat([one(chains, value), chains.constant(value, [-1])], 0), True
    ),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(CASES))
def test_bounds_are_those_of_openvino(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.serialize(Chains(random.Random(seed)).model(), path, path.with_suffix(".bin"))
    theirs = {
        (node.get_friendly_name(), index): str(output.get_partial_shape())
        for node in ov.Core().read_model(path).get_ordered_ops()
        for index, output in enumerate(node.outputs())
        if node.get_type_name() not in ("Constant", "Result")
    }
    if any("1..0" in shape for shape in theirs.values()):
        pytest.skip("OpenVINO tells of an interval that ends before it begins")
    tensors = ir.infer(ir.read(path))
    ours = {
        (layer.name, index): tensor.shape.spelling
        for layer, index, tensor in tensors.ports()
        if layer.type != "Const"
    }
    assert ours == {port: Shape.parse(shape).spelling for port, shape in theirs.items()}
