"""Shape patterns: for which sizes of inputs and variables a plan is made, which it leaves open.

A plan for other shapes takes long to make. Where a size goes on growing from call to call, as
that of what attention has seen does with each word, a plan is made that holds for any: what
depends on that size is outside it, the rest is planned as usual. Images that become more with
each call are another matter: to convolve them outside would take ten times as long. Texts have as
many words as they happen to have: after the first few a plan is made that holds for any number
but one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from typing import TypeAlias

from ...layers import budget
from ...schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..document import Layer, Model
from ..execution import State
from ..inference import Inferred, infer_graph, parameter_type
from .hopes import Hopes
from .plan import CONVOLUTIONS, POOLINGS, TRANSPOSED

#: The shapes of all inputs, then those of all variables, None where one has no value; an open
#: size is -1, or -2 if it is more than one.
Pattern: TypeAlias = tuple[tuple[int, ...] | None, ...]
OPEN, SEVERAL = -1, -2
#: What is inferred of each layer, by its id.
Known: TypeAlias = Mapping[int, tuple[Tensor, ...]]
#: Those of variables, None of such as have no value.
Shapes: TypeAlias = Mapping[str, tuple[int, ...] | None]
_OPEN: Mapping[int, Size] = {OPEN: ANY, SEVERAL: Dim(2)}
#: So many calls in a row the size of an input has grown by one before it is left open.
STEADY = 2
#: So many texts have a plan of their own where there are variables: the next is as long as none
#: before. Elsewhere many come again, and so many lengths have one.
TEXTS, SIZES = 3, 16
#: As many words so often in a row have a plan of their own, which is quicker.
STEADY_TEXTS = 8
#: Types of words and of what is to be seen of them: no numbers that are computed with.
WORDS = frozenset({ElementType.BOOLEAN, ElementType.I32, ElementType.I64})
#: Weights of fewer bits are levels.
HALF = 16
#: Layers that take far longer where it is not known beforehand how large their inputs are.
SLOW = CONVOLUTIONS | TRANSPOSED | POOLINGS | {
    "FakeQuantize", "GRUSequence", "LSTMSequence", "Loop", "RNNSequence", "TensorIterator",
}  # fmt: skip


def holds(pattern: Pattern, shapes: Pattern) -> bool:
    """Whether arrays of these shapes fit a pattern."""
    if pattern == shapes:
        return True
    for kept, shape in zip(pattern, shapes, strict=True):
        if kept == shape:
            continue
        if kept is None or shape is None or len(kept) != len(shape):
            return False
        for size, given in zip(kept, shape, strict=True):
            if size not in (given, OPEN) and not (size == SEVERAL and given > 1):
                return False
    return True


def openness(pattern: Pattern) -> int:
    """How many sizes a pattern leaves open."""
    return sum(size < 0 for shape in pattern if shape is not None for size in shape)


def takes_texts(pattern: Pattern) -> bool:
    """Whether a pattern is one for texts of any length."""
    return any(SEVERAL in shape for shape in pattern if shape is not None)


class Patterns:
    """Chooses the pattern for shapes that no plan holds for, by what has been seen before."""

    def __init__(self, model: Model, *, keeps_levels: bool = True) -> None:
        self._model = model
        #: Whether weights of few bits are not to be made numbers wherever that is quicker.
        self._keeps_levels = keeps_levels
        self._readers = [layer for layer in model.order() if layer.type == "ReadValue"]
        #: The variables that the model itself reads, bodies apart.
        self.variables = list(dict.fromkeys(map(variable_of, self._readers)))
        #: The shapes with which they begin.
        self._first: dict[str, tuple[int, ...]] = {}
        #: What had to be told of what layers read, of variables without a value and with one.
        self._told: dict[tuple[int, bool], Tensor] = {}
        self._before: Pattern | None = None
        self._grown = 0
        #: Patterns with open sizes that were thought of, and whether they are worth it.
        self._quick: dict[Pattern, bool] = {}
        #: Patterns of which inference says that nothing fits them, though some sizes do.
        self.refused: set[Pattern] = set()
        #: The inputs of the first texts that began when no variable had a value.
        self._texts: list[Pattern] = []
        #: How often in a row as many words have come.
        self._alike = 1
        self.hopes = Hopes()

    def of(self, arrays: Mapping[int, Array], inputs: Iterable[int], state: State) -> Pattern:
        """The shapes of a call."""
        shapes: list[tuple[int, ...] | None] = [arrays[place].shape for place in inputs]
        for variable in self.variables:
            value = state.get(variable)
            shapes.append(None if value is None else value.shape)
        return tuple(shapes)

    def seen(self, shapes: Pattern) -> None:
        """Note the shapes of a call."""
        self._before = shapes

    def steady(self, shapes: Pattern, text: Pattern) -> Pattern | None:
        """The pattern that is worth a plan beside that for texts, as as many words come again."""
        before = self._before
        self._alike = self._alike + 1 if before and self._as_long(before, shapes, text) else 1
        if self._alike % STEADY_TEXTS:
            return None
        assert before is not None
        found = self._of_growth(before, shapes)
        return None if found in self.refused or openness(found) >= openness(text) else found

    def _as_long(self, before: Pattern, shapes: Pattern, text: Pattern) -> bool:
        """Whether a text has as many words as the one before, of what it goes on from apart."""
        split = len(shapes) - len(self.variables)
        if all(shape is None for shape in shapes[split:]):
            return before == shapes
        steps = [
            list(zip(_growth(old, new), sizes or (), strict=True))
            for old, new, sizes in zip(before, shapes, text, strict=True)
        ]
        grows = all(step >= 0 for row in steps for step, _ in row)
        return grows and any((0, SEVERAL) in row for row in steps[:split])

    def choose(self, shapes: Pattern) -> Pattern:
        """The pattern to plan for, if it is not one for which there can be no plan."""
        self._alike = 1
        found = self._chosen(shapes)
        return found if found not in self.refused and holds(found, shapes) else shapes

    def _chosen(self, shapes: Pattern) -> Pattern:
        """The pattern to plan for: that of texts, or what grows will go on to grow."""
        before, self._before = self._before, shapes
        text = self._text(shapes)
        if before is None:
            return shapes
        return self._of_growth(before, shapes) if text is None else text

    def _of_growth(self, before: Pattern, shapes: Pattern) -> Pattern:
        """The pattern for what has grown since the last call.

        Variables that grow are followed by inputs that have a place for all they hold and for what
        is new, such as masks; but a text may be longer than all before. Of the other inputs only
        steady steps tell: the next text is another one.
        """
        split = len(shapes) - len(self.variables)
        begun = map(self._first.get, self.variables)
        former = [x if old is None else old for old, x in zip(before[split:], begun, strict=True)]
        kept = list(map(_growth, former, shapes[split:]))
        held = [
            size for shape, steps in zip(shapes[split:], kept, strict=True)
            for size, step in zip(shape or (), steps, strict=True) if step > 0
        ]  # fmt: skip
        given = list(map(_growth, before[:split], shapes[:split]))
        if held:
            least = max(held)
            grows = [[step > 0 for step in steps] for steps in (*given, *kept)]
            new = {size for shape in shapes[:split] for size in shape or ()}
            for shape, row in zip(shapes[:split], grows, strict=False):
                row[:] = [
                    grown and x - least in new for grown, x in zip(row, shape or (), strict=True)
                ]
            return _opened(shapes, grows)
        steps = [step for row in given for step in row]
        steady = any(steps) and all(step in (0, 1) for step in steps)
        self._grown = self._grown + 1 if steady else 0
        if self._grown <= STEADY or any(row[0] for row in given if len(row) > 1):
            return shapes  # or samples of a batch come one by one
        found = _opened(shapes, [[step > 0 for step in row] for row in (*given, *kept)])
        return found if self._is_quick(found) else shapes

    def _text(self, shapes: Pattern) -> Pattern | None:
        """The pattern for texts of any length, if this is one and enough others were seen."""
        split = len(shapes) - len(self.variables)
        given, held = shapes[:split], shapes[split:]
        most = TEXTS if held else SIZES
        is_first = all(shape is None for shape in held)
        if is_first and given not in self._texts and len(self._texts) <= most:
            self._texts.append(given)
        if len(self._texts) <= most:
            return None
        found: list[tuple[int, ...] | None] = []
        for place, (sizes, layer) in enumerate(zip(given, self._model.parameters, strict=True)):
            row = list(sizes or ())
            for axis, size in enumerate(row):
                others = {(text[place] or ())[axis : axis + 1] for text in self._texts}
                if len(others) == 1 or not axis:  # which tells texts of a batch
                    continue
                if size < 2 or not (held or parameter_type(layer) in WORDS):
                    return None  # nothing, or a step, for which there is a quicker plan, or else
                row[axis] = SEVERAL
            found.append(tuple(row))
        for name, shape in zip(self.variables, held, strict=True):
            found.append(None if shape is None else _grown(self._first.get(name), shape))
        pattern = tuple(found)
        if not takes_texts(pattern) or not self._is_quick(pattern):
            return None
        # Of the weights there is another copy then.
        return pattern if budget.fits(self._bytes) else None

    @cached_property
    def _bytes(self) -> int:
        """Bytes of all constants as float32, and of levels as such."""
        return sum(
            prod(layer.outputs[0].tensor.shape.static)
            * (1 if self._keeps_levels and layer.element_type.bits < HALF else 4)
            for layer in self._model.order() if layer.is_constant
        )  # fmt: skip

    def _is_quick(self, pattern: Pattern) -> bool:
        """Whether nothing that depends on open sizes takes far longer for that."""
        if pattern not in self._quick:
            self._quick[pattern] = False
            with suppress(IRError):  # as it is not quick, each size is planned for
                inferred = self.infer(pattern)
                self._quick[pattern] = all(
                    tensor.shape.is_static
                    for layer in self._model.order() if _is_slow(layer)
                    for tensor in inferred.of(layer)
                )  # fmt: skip
        return self._quick[pattern]

    def infer(self, pattern: Pattern) -> Inferred:
        """Types and shapes of every port for a pattern."""
        model, parameters = self._model, self._model.parameters
        shapes = dict(zip(self.variables, pattern[len(parameters) :], strict=True))
        given = {
            layer.id: Tensor(parameter_type(layer), _shape(shape))
            for layer, shape in zip(parameters, pattern, strict=False)
            if shape is not None
        }
        # Where a size is open, what is cut to it is most likely there.
        hope = self.hopes.of if openness(pattern) else None

        def known_with(told: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, ...]]:
            self.hopes.begin()
            return infer_graph(model, {**given, **told}, new_shapes=True, naming=True, hope=hope)

        expected = self._expected(shapes)
        if expected:
            with suppress(IRError):  # raised again below, unless variables begin otherwise now
                known = known_with(expected)
                if not self._to_tell(shapes, known):
                    return Inferred(model, known)
        known = known_with({})
        told = self._to_tell(shapes, known)
        for layer in self._readers:
            if layer.id in told:
                self._told[layer.id, shapes[variable_of(layer)] is None] = told[layer.id]
        return Inferred(model, known_with(told) if told else known)

    def _expected(self, shapes: Shapes) -> dict[int, Tensor]:
        """What had to be told of variables before: they begin as they did, or have a value."""
        found = {}
        for layer in self._readers:
            shape = shapes[variable_of(layer)]
            before = self._told.get((layer.id, shape is None))
            if before is not None:
                found[layer.id] = before if shape is None else Tensor(before.type, _shape(shape))
        return found

    def _to_tell(self, shapes: Shapes, known: Known) -> dict[int, Tensor]:
        """What is read of variables that is not what was inferred."""
        found = {}
        for layer in self._readers:
            (tensor,) = known[layer.id]
            shape = shapes[variable_of(layer)]
            read = _initial(self._model, layer, known) if shape is None else _shape(shape)
            if shape is None and read.is_static:
                self._first[variable_of(layer)] = read.static
            if read != tensor.shape:
                found[layer.id] = Tensor(tensor.type, read)
        return found

    def assigned(self, pattern: Pattern) -> Collection[str]:
        """The variables that have a value."""
        shapes = pattern[len(pattern) - len(self.variables) :]
        return {name for name, x in zip(self.variables, shapes, strict=True) if x is not None}


def _opened(shapes: Pattern, grows: Sequence[Sequence[bool]]) -> Pattern:
    """Shapes with some sizes open."""
    return tuple(
        None if shape is None
        else tuple(OPEN if grown else size for size, grown in zip(shape, row, strict=True))
        for shape, row in zip(shapes, grows, strict=True)
    )  # fmt: skip


def variable_of(layer: Layer) -> str:
    """The variable that a layer reads or writes."""
    name: str = layer.op.variable_id  # type: ignore[union-attr]  # both have it
    return name


def _is_slow(layer: Layer) -> bool:
    """Whether a layer, or one in its bodies, is among the slow ones."""
    bodies = layer.bodies.values()
    return layer.type in SLOW or any(x.type in SLOW for body in bodies for x in body.everywhere())


def _growth(old: tuple[int, ...] | None, new: tuple[int, ...] | None) -> list[int]:
    """By how much each size has grown; nothing where there was none to compare with."""
    if old is None or new is None or len(old) != len(new):
        return [0] * len(new or ())
    return [b - a for a, b in zip(old, new, strict=True)]


def _shape(sizes: Iterable[int]) -> Shape:
    return Shape([_OPEN.get(size, size) for size in sizes])


def _grown(first: tuple[int, ...] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a variable that has another one than it began with, those sizes open."""
    if first is None or len(first) != len(shape):
        return shape
    return tuple(b if b in (a, 1) else SEVERAL for a, b in zip(first, shape, strict=True))


def _initial(model: Model, layer: Layer, known: Known) -> Shape:
    """The shape of a variable that has no value yet."""
    source = model.producer(layer, 0)
    (tensor,) = known[layer.id]
    if source is not None:
        return known[source[0].id][source[1]].shape
    if tensor.shape.is_static or tensor.shape.rank is None:
        return tensor.shape
    return Shape([size if isinstance(size, int) else 0 for size in tensor.shape])
