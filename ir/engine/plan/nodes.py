"""The plan of a program: nodes compute values; passes rewrite them, kernels carry them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from ....layers.base import Op
from ....layers.value_bounds import CARRIED
from ....schemas import Array, ElementType, Tensor
from ...document import Layer
from .compressed import Compressed
from .constants import Origin
from .grid import Grid, Integers, Joined
from .operations import claimed_type
from .tables import Table


class Value:
    """A tensor between nodes: a constant, or a place in the arena."""

    __slots__ = (
        "constant",
        "element",
        "grid",
        "inferred",
        "is_output",
        "last",
        "lead",
        "origin",
        "packed",
        "parent",
        "producer",
        "shape",
        "start",
        "store",
        "strides",
        "type",
        "users",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        constant: Array | None = None,
        element: ElementType | None = None,
    ) -> None:
        self.shape, self.type, self.constant = shape, dtype, constant
        #: The element type, where the array's does not tell it: u1 is kept as u8.
        self.element = element
        #: Constant weights that are kept as levels, where nobody has made numbers of them yet.
        self.packed: Compressed | None = None
        #: Of weights that are not the same array in each plan: what they are known by there.
        self.origin: Origin | None = None
        #: Of numbers that are kept as levels, less the middle one: what these stand for.
        self.grid: Grid | None = None
        self.producer: Node | None = None
        #: Who reads it, and how often.
        self.users: Counter[Node] = Counter()
        #: Whether the model hands it out.
        self.is_output = False
        #: What is known of it beforehand, where that does not give it a place in the arena: a
        #: shape that depends on values, nothing at all, text. Only nodes outside touch it.
        self.inferred: Tensor | None = None
        #: Whether the channels (axis 1) are kept last in memory.
        self.last = False
        #: The value in whose memory this one lies, how many bytes from its beginning, and the
        #: steps along its axes there, where they are not as they would be without gaps.
        self.parent: Value | None = None
        self.start = 0
        self.strides: tuple[int, ...] | None = None
        #: The memory, in the order in which it is kept.
        self.store: Array | None = None
        #: How many numbers from the start of a cache line on it should begin, if that matters.
        self.lead: int | None = None

    @property
    def is_outside(self) -> bool:
        """Whether it is not in the arena: each call has an array of its own for it."""
        return self.inferred is not None

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same at each call."""
        return self.constant is not None or self.packed is not None

    @property
    def source(self) -> Array | Origin | None:
        """By what plans know the constant of which kernels make others."""
        return self.constant if self.origin is None else self.origin

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The shape in the order of memory: channels last where the layout says so."""
        return (self.shape[0], *self.shape[2:], self.shape[1]) if self.last else self.shape

    @property
    def array(self) -> Array:
        """The memory, with its axes in the model's order."""
        if self.constant is not None:
            return self.constant
        assert self.store is not None
        return np.moveaxis(self.store, -1, 1) if self.last else self.store

    @property
    def tensor(self) -> Tensor:
        """What is known of it beforehand."""
        if self.inferred is not None and self.constant is None:
            return self.inferred
        kind = ElementType.of(self.type) if self.element is None else self.element
        known = self.constant is not None and self.constant.size <= CARRIED
        return Tensor(kind, self.shape, self.constant if known else None)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * self.type.itemsize


#: Elementwise operations in a row, each with its inputs; None stands for what they act on.
Steps: TypeAlias = list[tuple[Op, list[Value | None]]]


class Scales(NamedTuple):
    """What becomes of a constant matrix when it is laid out."""

    #: What its rows and its columns are multiplied by, if by anything.
    down: Array | None = None
    along: Array | None = None
    #: What is added to all numbers of a column after that.
    raised: Array | None = None

    def of(self, columns: slice, wide: int) -> Scales:
        """What becomes of some columns, beside these in blocks (count, deep, wide)."""
        cut = (
            None if some is None else some[columns].reshape(-1, 1, wide)
            for some in (self.along, self.raised)
        )  # fmt: skip
        return Scales(self.down, *cut)


class Node:
    """An operation on values, with what is done to its output before that leaves the cache.

    A node and the values it reads know of each other: inputs and steps are changed by the verbs
    below alone, so that ``Value.users`` stays true.
    """

    __slots__ = (
        "_inputs", "epilogue", "integers", "is_outside", "is_whole", "joined", "laid_out", "layer",
        "looks_up", "op", "outputs", "padding", "premultiplied", "prologue", "region", "scales",
        "summed", "table", "wanted",
    )  # fmt: skip

    def __init__(
        self, layer: Layer, op: Op, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        self.layer, self.op = layer, op
        self._inputs, self.outputs = list(inputs), list(outputs)
        #: Whether the caller of the plan computes it, on arrays of whatever shape they have.
        self.is_outside = False
        #: Whether a convolution sums whole numbers, exactly unless it goes by values at points.
        self.is_whole = False
        #: Operations that follow element by element.
        self.epilogue: Steps = []
        #: By what the first of these, a Swish, finds multiplied what it takes.
        self.premultiplied: float | None = None
        #: The same for its first input: what is done to that before.
        self.prologue: Steps = []
        #: What a convolution pads each channel with, if not with zero.
        self.padding: Array | None = None
        #: Of a product: what makes rows zero later, where it is zero itself. These may be zeros.
        self.wanted: Value | None = None
        #: Of a GridSample: what samples are multiplied by, before those along the last axis are
        #: summed up, which its output has no longer.
        self.summed: Value | None = None
        #: Of a product: what becomes of its weights.
        self.scales = Scales()
        #: Its weights as its kernel wants them, where they were laid out beforehand.
        self.laid_out: object = None
        #: How it is a product of integers, where it is done so.
        self.integers: Integers | None = None
        #: How levels that its epilogue adds are added, where not as the numbers they stand for.
        self.joined: list[Joined] = []
        #: What it stands for, where that has a plan of its own for each shape it meets.
        self.region: Region | None = None
        #: Where its epilogue is looked up: what it makes of places in this table.
        self.table: Table | None = None
        #: Whether its kernel looks up the memory of its first input and output at each call.
        self.looks_up = False
        self._read(inputs)
        for value in outputs:
            value.producer = self

    @property
    def kind(self) -> str:
        """The type by which kernels are chosen; empty where none claims the version."""
        return "" if self.is_outside else claimed_type(type(self.op))

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What the operation itself takes, changed by ``set_inputs`` and ``replace_input``."""
        return tuple(self._inputs)

    @property
    def reads(self) -> list[Value]:
        """Every value the node needs, those of its steps among them."""
        more = [value for value in (self.wanted, self.summed) if value is not None]
        return [*self._inputs, *read_by(self.prologue), *read_by(self.epilogue), *more]

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Replace all inputs of the operation."""
        former, self._inputs = self._inputs, list(values)
        self._read(self._inputs)
        self._unread(former)

    def replace_input(self, index: int, value: Value) -> None:
        """Replace one input of the operation."""
        self.set_inputs([*self._inputs[:index], value, *self._inputs[index + 1 :]])

    def set_epilogue(self, steps: Steps) -> None:
        """Replace the epilogue: the elementwise steps that follow."""
        former, self.epilogue = self.epilogue, steps
        self._read(read_by(steps))
        self._unread(read_by(former))

    def set_prologue(self, steps: Steps) -> None:
        """Replace the prologue: the elementwise steps that come before."""
        former, self.prologue = self.prologue, steps
        self._read(read_by(steps))
        self._unread(read_by(former))

    def set_wanted(self, value: Value) -> None:
        """Say which rows are wanted, of a product that had no such value."""
        self.wanted = value
        self._read([value])

    def set_summed(self, value: Value) -> None:
        """Say by what samples are multiplied before they are summed up, which they were not."""
        self.summed = value
        self._read([value])

    def set_output(self, value: Value) -> None:
        """Replace the first output."""
        self.outputs[0] = value
        value.producer = self

    def take_over(self, follower: Node) -> None:
        """Fuse an elementwise node that follows: its step joins the epilogue."""
        before = self.outputs[0]
        others = [None if value is before else value for value in follower.inputs]
        self.epilogue.append((follower.op, others))
        self._read(value for value in others if value is not None)
        follower.detach()
        self.outputs = follower.outputs
        self.outputs[0].producer = self

    def detach(self) -> None:
        """Remove the node from the users of all it reads."""
        self._unread(self.reads)
        self._inputs, self.prologue, self.epilogue = [], [], []
        self.wanted = self.summed = None

    def _read(self, values: Iterable[Value]) -> None:
        for value in values:
            value.users[self] += 1

    def _unread(self, values: Iterable[Value]) -> None:
        for value in values:
            value.users[self] -= 1
            if not value.users[self]:
                del value.users[self]


class Member(NamedTuple):
    """An operation of a region as it was in the plan: what it read and gave there."""

    layer: Layer
    op: Op
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Region(NamedTuple):
    """Operations that take each other's values, what others give them and take from them."""

    members: list[Member]
    inputs: list[Value]
    outputs: list[Value]


def read_by(steps: Steps) -> list[Value]:
    """The other inputs of steps."""
    return [value for _, others in steps for value in others if value is not None]


#: Bytes of levels after which it is worth to let go of their pages.
PAGES = 1 << 24


class Means(NamedTuple):
    """What a plan may count on."""

    #: Whether weights stay levels wherever they can; else, how many times as long as numbers
    #: they may take.
    is_small: bool = False
    patience: float = 1.0
    #: How many times quicker products of int8 are than those of float32; 0 where there are none.
    integers: float = 0.0
    #: How many times quicker those of float32 are than it is usual.
    quicker: float = 1.0
    #: By what Swish would rather have multiplied what it takes.
    swish: float = -1.0
    #: Whether who multiplies them rounds to bytes and places, too.
    rounds: bool = False


class Plan:
    """The nodes in order, the values that come in and those that go out."""

    def __init__(self, nodes: list[Node], inputs: dict[int, Value], outputs: list[Value]) -> None:
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        #: What is inferred of the inputs of nodes with bodies, in the types of the file.
        self.declared: dict[Node, list[Tensor]] = {}
        for value in outputs:
            value.is_output = True
        #: Those outside the arena that may give less than is inferred of them.
        self.hoped: set[Node] = set()
        #: How weights that are kept as levels are multiplied.
        self.means = Means()
        #: How many weights stay levels, and how many were made numbers.
        self.levels, self.numbers = 0, 0
        #: Whether it is the body of a loop: what it gives comes back in the next turn.
        self.turns = False
        #: Lets go of the pages of the file that have been read.
        self.release: Callable[[], None] | None = None
        self._read = 0

    def replace(self, replaced: dict[Node, list[Node]]) -> None:
        """Replace nodes by other ones, or by none."""
        self.nodes = [found for node in self.nodes for found in replaced.get(node, [node])]

    def let_go(self, node: Node) -> None:
        """Note that the levels of a node have been read, and let go of their pages at times."""
        self._read += sum(value.nbytes // 4 for value in node.inputs if value.packed is not None)
        if self.release is not None and self._read > PAGES:
            self.release()
            self._read = 0

    def forget(self) -> None:
        """Let go of the arena and of weights: nodes know each other, and wait to be collected."""
        for node in self.nodes:
            node.laid_out = None
            for value in (*node.reads, *node.outputs):
                value.store = value.constant = None
        for value in (*self.inputs.values(), *self.outputs):
            value.store = value.constant = None

    def prune(self) -> None:
        """Remove nodes whose outputs nobody reads."""
        kept: list[Node] = []
        for node in reversed(self.nodes):
            needed = any(value.is_output or value.users for value in node.outputs)
            if needed or node.layer.type == "Assign":
                kept.append(node)
            else:
                node.detach()
        self.nodes = kept[::-1]

    def sort(self) -> None:
        """Sort topologically, and keep the order otherwise."""
        done: set[Node] = set()
        inside = set(self.nodes)
        order: list[Node] = []
        for root in self.nodes:
            stack = [root]
            while stack:
                node = stack[-1]
                if node in done:
                    stack.pop()
                    continue
                feeders = [value.producer for value in node.reads]
                waits = [
                    feeder for feeder in feeders
                    if feeder is not None and feeder in inside and feeder not in done
                ]  # fmt: skip
                if waits:
                    stack.extend(waits)
                    continue
                done.add(node)
                order.append(node)
                stack.pop()
        self.nodes = order

    def verify(self) -> None:
        """Refuse a plan whose nodes and values do not agree: for tests, after each pass."""
        made = {id(value) for value in self.inputs.values()}
        counted: dict[int, Counter[Node]] = {}
        values: dict[int, Value] = {}
        for place, node in enumerate(self.nodes):
            what = f"node {place} ({node.kind} of {node.layer.name})"
            for value in node.reads:
                assert value.is_fixed or id(value) in made, f"{what} reads what is not made yet"
                counted.setdefault(id(value), Counter())[node] += 1
                values[id(value)] = value
            for _, others in (*node.prologue, *node.epilogue):
                assert others.count(None) == 1, f"{what} has a step that acts on nothing"
            for value in node.outputs:
                assert value.producer is node, f"{what} gives what another makes"
                assert id(value) not in made, f"{what} gives what was made before"
                assert value.constant is None, f"{what} computes a constant"
                made.add(id(value))
                values[id(value)] = value
        for value in values.values():
            users = counted.get(id(value), Counter())
            assert value.users == users, f"a value {value.shape} miscounts who reads it"
        for value in self.outputs:
            assert value.is_output, "an output is not known to be one"
            assert value.constant is not None or id(value) in made, "an output is never made"


def constant(array: Array) -> Value:
    """An array as a value of the plan."""
    return Value(array.shape, array.dtype, array)


def part_of(value: Value, which: Hashable, array: Array) -> Value:
    """An array that is made so of a constant, by which plans for other shapes know it."""
    found = constant(array)
    if value.origin is not None:
        found.origin = value.origin.part(which)
    return found


def kept_as_levels(packed: Compressed) -> Value:
    """Weights that stay levels as a value of the plan."""
    found = Value(packed.shape, np.dtype(np.float32))
    found.packed = packed
    return found


def only_user(value: Value) -> Node | None:
    """The one node that uses a value which is no output, and uses it once."""
    if len(value.users) != 1 or value.is_output:
        return None
    ((node, count),) = value.users.items()
    return node if count == 1 else None
