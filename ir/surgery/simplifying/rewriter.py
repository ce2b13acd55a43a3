"""A graph under rewriting: who feeds whom, what is known of each tensor, what to look at next.

Rules see the graph through this class alone. Edges are kept here and written back at the end, so
that a rewrite costs what it touches, whatever the size of the graph.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ....schemas import Array, ElementType, Shape, Tensor
from ...document import SINKS, FreeNames, Graph, Layer, Port
from ..scratch import Scratch

if TYPE_CHECKING:
    from ....layers.base import Op

#: An output of a layer, by its index.
Value: TypeAlias = "tuple[Layer, int]"


class Rule(NamedTuple):
    """A rewrite: its name, the layer types at which it is tried (none: all), and what it does."""

    name: str
    types: tuple[str, ...]
    #: Rewrites at a layer where the pattern is there; whether it was.
    apply: Callable[[Rewriter, Layer], bool]
    #: Whether every bit of the outputs stays.
    exact: bool = True
    #: Rules of a later stage are tried when no earlier one finds anything any more.
    stage: int = 0


class _ByType(dict[str, list[Rule]]):
    """The rules that are tried at layers of a type, those of that type first."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def __missing__(self, type: str) -> list[Rule]:
        found = [rule for rule in self._rules if type in rule.types]
        found += [rule for rule in self._rules if not rule.types]
        self[type] = found
        return found


class Rewrite(NamedTuple):
    """One application of a rule."""

    rule: str
    layer: str


class Rewriter:
    """Rewrites one graph by rules until none applies."""

    def __init__(
        self,
        graph: Graph,
        tensors: Mapping[int, tuple[Tensor, ...]],
        order: Sequence[Layer],
        places: Counter[str | None],
        scratch: Scratch,
        spare: int = 0,
        tight: bool = False,
    ) -> None:
        self.graph = graph
        #: Where large constants are made.
        self.scratch = scratch
        #: Bytes by which constants may still grow.
        self.spare = spare
        #: Whether they are all there is: what one constant takes must be left in the end.
        self.tight = tight
        self.done: list[Rewrite] = []
        self._tensors: dict[Layer, tuple[Tensor, ...]] = {x: tensors[x.id] for x in order}
        self._inputs: dict[Layer, list[Value]] = {}
        self._uses: dict[Layer, list[dict[tuple[Layer, int], None]]] = {}
        self._names = {layer.name for layer in graph.layers}
        reached = {layer.id for layer in order}
        fed = {edge.from_layer for edge in graph.edges if edge.to_layer not in reached}
        #: Layers that feed what feeds no output, where that is left: they stay for it.
        self._held = {layer for layer in order if layer.id in fed}
        self._queue: deque[Layer] = deque()
        self._queued: set[Layer] = set()
        #: Layers at which nothing changed since rules of earlier stages were tried.
        self._tried: set[Layer] = set()
        #: Layers that may feed nothing any more.
        self._loose: list[Layer] = []
        #: How many Results take a value.
        self._given: Counter[Value] = Counter()
        self._unused = FreeNames(self._names.__contains__)
        self._gone: list[Layer] = []
        self._operations: dict[tuple[Any, ...], tuple[Op, dict[str, str]]] = {}
        self._fresh: dict[Layer, None] = {}
        self._moved: dict[tuple[Layer, int], None] = {}
        #: What rules keep between their applications, by rule.
        self.memory: dict[str, dict[Any, Any]] = {}
        #: Told of each value that another replaces, while the layers of both are still there.
        self.watch: Callable[[Rewriter, Value, Value], None] | None = None
        self._order = list(order)
        #: Places in an order in which what feeds comes before what is fed; constants are nowhere.
        self._places: dict[Layer, tuple[int, int]] = {}
        #: Whether there is such an order; what made it impossible is too rare to be mended.
        self._placed = True
        self._numbers = itertools.count(1)
        for number, layer in enumerate(order):
            self._uses[layer] = [{} for _ in layer.outputs]
            self._places[layer] = (-1 if layer.is_constant else number, 0)
        for layer in order:
            feeders = graph.sources(layer)
            self._inputs[layer] = [one for one in feeders if one is not None]
            for place, (producer, index) in enumerate(self._inputs[layer]):
                self._uses[producer][index][layer, place] = None
                self._given[producer, index] += layer.type == "Result"
        #: How many constants, those of other graphs too, have their bytes in a place of the file.
        self._offsets = places
        #: Layers of the graph from which a FakeQuantize takes what it rounds.
        self._quantized: set[Layer] = set()
        for layer in reversed(order):
            if layer.type == "FakeQuantize" or layer in self._quantized:
                self._quantized.update(producer for producer, _ in self._inputs[layer])

    # What is there.

    def __contains__(self, layer: Layer) -> bool:
        return layer in self._inputs

    def inputs(self, layer: Layer) -> Sequence[Value]:
        """What feeds a layer."""
        return self._inputs[layer]

    def uses(self, value: Value) -> list[tuple[Layer, int]]:
        """The layers, with the places of their inputs, that a value feeds."""
        return list(self._uses[value[0]][value[1]])

    def users(self, layer: Layer) -> int:
        """How many inputs a layer feeds."""
        return sum(map(len, self._uses[layer]))

    def is_private(self, value: Value) -> bool:
        """Whether one layer alone takes a value, and it is no output of the graph."""
        if value[0] in self._held:
            return False
        uses = self._uses[value[0]][value[1]]
        return len(uses) == 1 and next(iter(uses))[0].type not in SINKS

    def feeds_result(self, value: Value) -> bool:
        """Whether a value is an output of the graph."""
        return self._given[value] > 0

    def is_quantized_later(self, layer: Layer) -> bool:
        """Whether a FakeQuantize rounds to levels what is computed from a layer."""
        seen, stack = {layer}, [layer]
        while stack:
            one = stack.pop()
            if one in self._quantized or one.type == "FakeQuantize":
                return True
            if one not in self._fresh:
                continue  # what it fed at first, it feeds still
            for user in {user for uses in self._uses[one] for user, _ in uses} - seen:
                seen.add(user)
                stack.append(user)
        return False

    def tensor(self, value: Value) -> Tensor:
        """What is known of a value."""
        return self._tensors[value[0]][value[1]]

    def shape(self, value: Value) -> tuple[int, ...] | None:
        """The sizes of a value; None unless all are known."""
        shape = self.tensor(value).shape
        return shape.static if shape.is_static else None

    def kind(self, value: Value) -> ElementType:
        """The element type of a value."""
        return self.tensor(value).type

    def gives_known(self, layer: Layer) -> bool:
        """Whether inference knows all values that a layer gives and that are used."""
        return all(
            tensor.value is not None or not uses
            for tensor, uses in zip(self._tensors[layer], self._uses[layer], strict=True)
        )

    def feeds_on_known(self, layer: Layer) -> bool:
        """Whether all that feeds a layer is the same whatever the inputs are."""
        return all(
            source.type == "Const" or self._tensors[source][index].value is not None
            for source, index in self._inputs[layer]
        )

    def known(self, value: Value) -> Array | None:
        """The numbers of a value that is the same whatever the inputs are; None of others."""
        layer = value[0]
        known = self._tensors[layer][value[1]].value
        if known is None and layer.is_constant and layer.has_value:
            return layer.value
        return known

    def ints(self, value: Value) -> list[int] | None:
        """The elements of a known value of integers."""
        array = self.known(value)
        if array is None or array.dtype.kind not in "iu":
            return None
        return [int(number) for number in array.ravel().tolist()]

    def scalar(self, value: Value) -> float | None:
        """The number of which a known value consists, if it is one."""
        array = self.known(value)
        if array is None or array.size != 1 or array.dtype.kind not in "fiu":
            return None
        return float(array.ravel()[0])

    def layers(self) -> list[Layer]:
        """The layers that are left, new ones last."""
        return list(self._inputs)

    def is_fresh(self, layer: Layer) -> bool:
        """Whether a layer is not from the graph but made by a rule."""
        return layer in self._fresh

    def may_grow(self, size: int) -> bool:
        """Whether one constant may take so many bytes more."""
        return size <= (self.spare if self.tight else self.spare // _SHARE)

    def has_own_bytes(self, constant: Layer) -> bool:
        """Whether no other constant that is left has its bytes in the same place of the file."""
        offset = constant.data.get("offset")
        return offset is None or self._offsets[offset] <= 1

    def comes_before(self, one: Layer, other: Layer) -> bool:
        """Whether a layer certainly needs nothing that another gives."""
        return self._placed and self._places[one] < self._places[other]

    # Changing.

    def constant(self, value: Any, kind: ElementType, like: Layer) -> Value:
        """A new constant, named after a layer."""
        layer = Layer("Const", "opset1", self._free(like.name))
        array = np.asarray(value)
        if array.dtype == kind.dtype and kind.bits >= 8:
            array = self.scratch.keep(array)
        layer.set_value(array, kind)
        array = layer.value
        small = array if array.size <= _SMALL else None
        self._take(layer, [], (Tensor(kind, Shape(array.shape), small),))
        return layer, 0

    def add(
        self,
        type: str,
        version: str,
        inputs: Iterable[Value],
        data: Mapping[str, str] | None = None,
        *,
        like: Layer,
    ) -> Value:
        """A new layer, named after one that it does the work of; its first output."""
        inputs = list(inputs)
        op, texts = self._operation(type, version, data or {})
        given = [self.tensor(one) for one in inputs]
        tensors = op.infer_outputs(given)
        layer = Layer(
            type,
            version,
            self._free(like.name),
            data=texts,
            inputs=[Port.of(i, tensor) for i, tensor in enumerate(given)],
            outputs=[Port.of(len(inputs) + i, tensor) for i, tensor in enumerate(tensors)],
        )
        layer.rt_info = deepcopy(like.rt_info)
        self._take(layer, inputs, tensors)
        return layer, 0

    def _operation(
        self, type: str, version: str, data: Mapping[str, str]
    ) -> tuple[Op, dict[str, str]]:
        """The operation of these attributes, and all of them as text: most are there before."""
        key = type, version, tuple(data.items())
        found = self._operations.get(key)
        if found is None:
            op = Layer(type, version, type, data=data).op
            if op is None:
                raise AssertionError(f"{type} {version} is not known")
            found = self._operations[key] = op, op.attributes() | dict(data)
        return found

    def copy(self, layer: Layer, inputs: Iterable[Value]) -> Value:
        """A layer of the same operation on other inputs."""
        return self.add(layer.type, layer.version, inputs, layer.data, like=layer)

    def feed(self, layer: Layer, place: int, value: Value) -> None:
        """Feed an input from another value of the same type and shape."""
        old, index = self._inputs[layer][place]
        if (old, index) == value:
            return
        self._unlink((old, index), layer, place)
        self._inputs[layer][place] = value
        self._uses[value[0]][value[1]][layer, place] = None
        self._moved[layer, place] = None
        self._put_behind(layer, value[0])
        if layer.type == "Result":
            self._given[old, index] -= 1
            self._given[value] += 1
        self.look_at(layer, value[0])

    def may_replace(self, old: Value, new: Value) -> bool:
        """Whether a value that is there may stand for another: names of outputs stay."""
        if not self.feeds_result(old):
            return True
        if new[0].type in ("Parameter", "ReadValue") or self.feeds_result(new):
            return False
        if self.tensor(old).type != self.tensor(new).type:
            return False
        return len(new[0].outputs) == 1 or bool(old[0].outputs[old[1]].names)

    def replace(self, old: Value, new: Value) -> bool:
        """Let all that a value feeds be fed by an equal one; False where names forbid it."""
        if old == new or not self.may_replace(old, new):
            return False
        if self.watch is not None:
            self.watch(self, old, new)
        (layer, index), (other, place) = old, new
        port, names = other.outputs[place], layer.outputs[index].names
        if layer in self._held:
            layer.outputs[index].names = ()  # it stays, and two tensors cannot have one name
        if self.feeds_result(old):
            port.names = names
            if len(other.outputs) == 1 and len(layer.outputs) == 1:
                self._rename(other, layer)
        elif other.type != "Parameter" and not self.feeds_result(new):
            port.names = tuple(dict.fromkeys((*port.names, *names)))
        if other in self._fresh and len(layer.outputs) == 1:
            self._rename(other, layer)
        for user, input_index in self.uses(old):
            self.feed(user, input_index, new)
        self.look_at(other)
        return True

    def _rename(self, layer: Layer, old: Layer) -> None:
        """Give a layer the name of one that it replaces."""
        name = old.name
        if layer.name != name:
            old.name = self._free(name)
            layer.name = name

    def sweep(self, layer: Layer, *, quietly: bool = False) -> None:
        """Take out a layer that feeds nothing, and what fed it alone.

        Unless ``quietly``, the rules are tried again at what it was fed by.
        """
        stack = [layer]
        while stack:
            dead = stack.pop()
            if dead not in self._inputs or dead.type in SINKS or dead.type == "Parameter":
                continue
            if self.users(dead) or dead in self._held:
                continue
            for place, source in enumerate(self._inputs.pop(dead)):
                self._uses[source[0]][source[1]].pop((dead, place), None)
                stack.append(source[0])
                if quietly:
                    continue
                self.look_at(source[0])
                left = self._uses[source[0]][source[1]]
                if len(left) == 1:
                    self.look_at(next(iter(left))[0])
            del self._uses[dead], self._tensors[dead]
            if dead in self._fresh:
                del self._fresh[dead]
            else:
                self._gone.append(dead)
                if dead.is_constant:
                    self._offsets[dead.data.get("offset")] -= 1

    def _put_behind(self, layer: Layer, source: Layer) -> None:
        """Move a layer in the order behind what feeds it now, and what it feeds behind it."""
        stack = [(layer, source)]
        while stack and self._placed:
            layer, source = stack.pop()
            place = self._places[source]
            if place < self._places[layer]:
                continue
            if layer not in self._fresh or len(stack) > _MOVED:
                self._placed = False
                return
            self._places[layer] = place[0], next(self._numbers)
            stack += [(user, layer) for uses in self._uses[layer] for user, _ in uses]

    def _unlink(self, value: Value, layer: Layer, place: int) -> None:
        self._uses[value[0]][value[1]].pop((layer, place), None)
        self._loose.append(value[0])
        self.look_at(value[0])

    def _take(self, layer: Layer, inputs: list[Value], tensors: Sequence[Tensor]) -> None:
        self._fresh[layer] = None
        self._inputs[layer] = inputs
        self._uses[layer] = [{} for _ in layer.outputs]
        self._tensors[layer] = tuple(tensors)
        above = max((self._places[source] for source, _ in inputs), default=(-1, 0))
        self._places[layer] = above[0], next(self._numbers) if inputs else 0
        for place, source in enumerate(inputs):
            self._uses[source[0]][source[1]][layer, place] = None
        self._loose.append(layer)
        self.look_at(layer)

    def _free(self, name: str) -> str:
        """The name, or the name with the first number that nobody has."""
        chosen = self._unused(name)
        self._names.add(chosen)
        return chosen

    # Going through.

    def look_at(self, *layers: Layer) -> None:
        """Try the rules at layers once more."""
        queued = self._queued
        for layer in layers:
            self._tried.discard(layer)
            if layer not in queued:
                queued.add(layer)
                self._queue.append(layer)

    def run(self, rules: Sequence[Rule], tried: Collection[Rule] = ()) -> None:
        """Apply rules until none finds its pattern; those ``tried`` find none as things are."""
        limit = len(self.done) + _PER_LAYER * (len(self._inputs) + 10)
        all_rules, new_rules = _ByType(rules), _ByType([r for r in rules if r not in tried])
        self.look_at(*(layer for layer in self._order if layer in self._inputs))
        self.look_at(*self._fresh)
        self._tried.update(self._queue if tried else ())
        while self._queue:
            layer = self._queue.popleft()
            self._queued.discard(layer)
            if layer not in self._inputs or (layer in self._held and not self.users(layer)):
                continue
            name, by_type = layer.name, new_rules if layer in self._tried else all_rules
            for rule in by_type[layer.type]:
                applied = rule.apply(self, layer)
                touched, self._loose = self._loose, []
                for one in touched:
                    # What a rule made and then did not use changes nothing for others.
                    self.sweep(one, quietly=not applied)
                if not applied:
                    continue
                if len(self.done) > limit:
                    raise AssertionError(f"rule {rule.name} finds no end at {layer!r}")
                self.done.append(Rewrite(rule.name, name))
                self.sweep(layer)
                if layer in self._inputs:
                    self.look_at(layer)
                break

    def finish(self) -> None:
        """Write what was done into the graph."""
        graph = self.graph
        if self._gone:
            graph.remove(*self._gone)
        for layer in self._fresh:
            graph.add(layer)
        for layer in self._fresh:
            for place, source in enumerate(self._inputs[layer]):
                graph.connect(source, layer, place)
        for layer, place in self._moved:
            if layer in self._inputs and layer not in self._fresh:
                graph.connect(self._inputs[layer][place], layer, place)

    @property
    def counts(self) -> Counter[str]:
        """How often each rule was applied."""
        return Counter(rewrite.rule for rewrite in self.done)


#: Applications of rules that a layer may see, on average, before there is an end of it.
_PER_LAYER = 50
#: Layers that may wait to be moved in the order before it is given up.
_MOVED = 1000
#: About what a layer takes in the document: what a constant may take in place of one.
LAYER_BYTES = 300
#: The part of the bytes to spare that one constant may take.
_SHARE = 16
#: Elements up to which the value of a new constant is carried on.
_SMALL = 4096

__all__ = ["LAYER_BYTES", "Rewrite", "Rewriter", "Rule", "Value"]
