"""A graph that is being edited: layers and tensors by name, new layers, new connections.

Layers that are taken out go all at once in the end, and names are looked up in indices that
follow each change, so that a thousand edits take a thousand times as long as one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...layers.base import Op
from ...schemas import ElementType, IRError, Tensor, UsageError, placed
from ...schemas.attributes import spelled
from ...schemas.printing import meant
from ..document import (
    FreeNames,
    Graph,
    Layer,
    Port,
    join_names,
    keep_symbols,
    named_inputs,
    split_names,
)
from ..inference import infer_layer

#: What is never taken out because it feeds nothing.
_KEPT = frozenset({"Assign", "Parameter", "ReadValue", "Result"})


def _none_named(name: str, names: Sequence[str], what: str) -> UsageError:
    listed = ", ".join(f'"{known}"' for known in names[:8]) or "none"
    return UsageError(f'no {what} is named "{name}"; the {what}s are {listed}')


class Source(NamedTuple):
    """An output of a layer."""

    layer: Layer
    index: int  # type: ignore[assignment]  # nobody looks for a place in the pair

    @property
    def port(self) -> Port:
        """Its port."""
        return self.layer.outputs[self.index]

    @property
    def spelled(self) -> str:
        """How it is named: by its tensor, else by its layer."""
        if self.port.names:
            return self.port.names[0]
        only = len(self.layer.outputs) == 1
        return self.layer.name if only else f"{self.layer.name}:{self.index}"


class Workbench:
    """One graph that is being changed, and its indices."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.gone: set[int] = set()
        #: How often layers are used that fed what was taken out; whose inputs are let go of.
        self._uses: dict[int, int] = {}
        self._released: set[int] = set()
        #: What was put in, in order.
        self._made: list[Layer] = []
        #: A name, or that name with the first number that no layer has.
        self.free = FreeNames(self.has_layer)
        self._layers: dict[str, list[Layer]] = {}
        self._tensors: dict[str, Source] = {}
        self._known: dict[int, tuple[Tensor, ...]] = {}
        for layer in graph.layers:
            self._enter(layer)

    def _enter(self, layer: Layer) -> None:
        self._layers.setdefault(layer.name, []).append(layer)
        for index, names in enumerate(layer.tensor_names()):
            for name in names:
                self._tensors.setdefault(name, Source(layer, index))

    # Looking up.

    def __iter__(self) -> Iterator[Layer]:
        return (layer for layer in self.graph.layers if id(layer) not in self.gone)

    def is_gone(self, layer: Layer) -> bool:
        """Whether a layer was taken out."""
        return id(layer) in self.gone

    def layer(self, key: str | int) -> Layer:
        """The layer of a name or an id."""
        if isinstance(key, int):
            layer = self.graph.layer(key)
            if self.is_gone(layer):
                raise UsageError(f"layer {key} was taken out before")
            return layer
        found = [x for x in self._layers.get(key, ()) if not self.is_gone(x)]
        if len(found) > 1:
            ids = ", ".join(str(layer.id) for layer in found[:8])
            raise UsageError(
                f'{len(found)} layers are named "{key}"', hint=f"say which by its id: {ids}"
            )
        if found:
            return found[0]
        raise UsageError(f'no layer is named "{key}"', hint=self._meant(key, self._layers))

    def tensor(self, text: str) -> Source:
        """The output of a tensor name, of a layer with one output, or of ``LAYER:INDEX``."""
        held = self._tensors.get(text)
        if held is not None and not self.is_gone(held.layer):
            return held
        named = [x for x in self._layers.get(text, ()) if not self.is_gone(x)]
        if named:
            layer = self.layer(text)
            if layer.type == "Result":
                return self.feeder(layer, 0)
            if len(layer.outputs) == 1:
                return Source(layer, 0)
            raise UsageError(
                f'layer "{text}" has {len(layer.outputs)} outputs, one is needed',
                hint=f'write "{text}:0" for the first' if layer.outputs else None,
            )
        place = self.placed(text)
        if place is not None:
            layer, index = place
            if layer.type == "Result":
                return self.feeder(layer, 0)
            if index < len(layer.outputs):
                return Source(layer, index)
            raise UsageError(
                f'layer "{layer.name}" has {len(layer.outputs)} outputs, {index} is asked for',
                hint="outputs are counted from 0",
            )
        raise UsageError(
            f'no tensor or layer is named "{text}"',
            hint=self._meant(text, [*self._tensors, *self._layers]),
        )

    def placed(self, text: str) -> tuple[Layer, int] | None:
        """What ``LAYER:INDEX`` means, or ``LAYER:INDEX#ID`` where several have the name."""
        place = self.graph.placed(text)
        if place is None or self.is_gone(place[0]):
            return None
        # A name alone must be clear.
        return place if text.endswith(f"#{place[0].id}") else (self.layer(place[0].name), place[1])

    def has_layer(self, name: str) -> bool:
        """Whether a layer has this name."""
        return any(not self.is_gone(layer) for layer in self._layers.get(name, ()))

    def has_tensor(self, name: str) -> bool:
        """Whether a tensor has this name."""
        held = self._tensors.get(name)
        return held is not None and not self.is_gone(held.layer) and name in held.port.names

    def _meant(self, word: str, known: Iterable[str]) -> str | None:
        return self.graph.told_of_bodies(word) or meant(word, known, 3)

    def input(self, name: str) -> Layer:
        """The Parameter of a tensor's name, or of its own."""
        rows = named_inputs([x for x in self.graph.parameters if not self.is_gone(x)])
        for layer, names in rows:
            if name in names:
                return layer
        raise _none_named(name, [names[0] for _, names in rows], "input")

    def output(self, name: str, *, by_layer: bool = True) -> Layer:
        """The Result of its own name, of a name of its tensor, or of the layer that feeds it."""
        there = [layer for layer in self.graph.results if not self.is_gone(layer)]
        for layer in there:
            if layer.name == name:
                return layer
        for layer in there:
            source, names = self.feeder(layer, 0), split_names(layer.output_names)
            giver = (source.layer.name,) if by_layer else ()
            if name in (*names, *source.port.names, *giver):
                return layer
        raise _none_named(name, [layer.name for layer in there], "output")

    def feeder(self, layer: Layer, index: int) -> Source:
        """What feeds an input."""
        if index >= len(layer.inputs):
            raise UsageError(f'layer "{layer.name}" has {len(layer.inputs)} inputs, not {index}')
        source = self.graph.producer(layer, index)
        if source is None:
            raise IRError(f"input {index} is fed by nothing", layer.where)
        return Source(*source)

    def users(self, source: Source) -> list[tuple[Layer, int]]:
        """The layers that an output feeds, and at which input."""
        found = self.graph.consumers(source.layer, source.index)
        return [(user, place) for user, place in found if not self.is_gone(user)]

    def select(self, order: Mapping[str, Any]) -> list[Layer]:
        """The layers that ``layer``, ``layers`` (a regular expression) and ``type`` name."""
        if not order.keys() & {"layer", "layers", "type"}:
            raise UsageError('it names no layer: give "layer", "layers" or "type"')
        found = [self.layer(order["layer"])] if "layer" in order else list(self)
        if "layers" in order:
            pattern = expression(order["layers"])
            found = [layer for layer in found if pattern.fullmatch(layer.name)]
        if "type" in order and "layer" not in order:
            found = [layer for layer in found if layer.type == order["type"]]
        if not found:
            words = " ".join(f"{k}={order[k]}" for k in ("layers", "type") if k in order)
            raise UsageError(f"no layer matches {words}")
        return found

    def known(self, source: Source) -> Tensor:
        """What is inferred of an output."""
        if source.layer.id not in self._known:
            self._infer(source.layer)
        return self._known[source.layer.id][source.index]

    def _infer(self, layer: Layer) -> None:
        """What follows for one layer, and before for those that feed it."""
        stack, open_ = [(layer, iter(_sources(self.graph, layer)))], {layer.id}
        while stack:
            current, feeders = stack[-1]
            missing = next((one for one, _ in feeders if one.id not in self._known), None)
            if missing is None:
                self._known[current.id] = infer_layer(self.graph, current, self._known, {})
                stack.pop()
                open_.discard(current.id)
                continue
            if missing.id in open_:
                raise IRError("it feeds itself", current.where)
            stack.append((missing, iter(_sources(self.graph, missing))))
            open_.add(missing.id)

    def forget_tensors(self) -> None:
        """Infer anew when it is next asked for."""
        self._known = {}

    def learn(self, layer: Layer, *tensors: Tensor) -> None:
        """Take it that a layer gives these tensors; none: infer it anew."""
        self._known.pop(layer.id, None)
        self._known |= {layer.id: tensors} if tensors else {}

    # Changing.

    def put(
        self,
        type: str,
        version: str,
        inputs: Sequence[Source],
        data: Mapping[str, Any] | None = None,
        *,
        name: str,
    ) -> Source:
        """A new layer with its wires; its ports say what follows from its inputs."""
        kind = Op.find(type, version)
        if kind is None and type in Op.registry.types():
            raise UsageError(f"{type} is not in {version}", hint=f"its newest is {newest(type)}")
        names = {} if kind is None else file_names(kind)
        texts = {
            names.get(key, key): attribute_text(key, value)
            for key, value in (data or {}).items()
            if value is not None
        }
        strange = texts.keys() - names.values() if kind is not None else ()
        for key in sorted(strange):
            raise UsageError(
                f"{type} has no attribute {key}",
                hint=meant(key, names) or f"it has {', '.join(names) or 'none'}",
            )
        layer = Layer(type, version, self.free(name), data=texts)
        if kind is not None:
            with placed(layer.where):
                layer.data = kind.read(texts).attributes() | texts
        tensors = [self.known(source) for source in inputs]
        layer.inputs = [Port.of(index, tensor) for index, tensor in enumerate(tensors)]
        return self.take(layer, inputs)

    def take(self, layer: Layer, inputs: Sequence[Source] = ()) -> Source:
        """A layer that has its input ports: into the graph, wired, its output ports described."""
        self._made.append(layer)
        self.graph.add(layer)
        self._layers.setdefault(layer.name, []).append(layer)
        for index, source in enumerate(inputs):
            self.rewire(source, layer, index)
        if layer.id not in self._known:
            self._infer(layer)
        if layer.type not in ("Result", "Assign") and not layer.outputs:
            first = len(layer.inputs)
            layer.outputs = [
                Port.of(first + index, tensor)
                for index, tensor in enumerate(self._known[layer.id])
            ]
        return Source(layer, 0)

    def constant(self, value: Any, type: ElementType | str | None = None, *, name: str) -> Source:
        """A new constant."""
        layer = Layer("Const", "opset1", self.free(name))
        layer.set_value(np.asarray(value), type)
        return self.take(layer)

    def parameter(self, tensor: Tensor, *, name: str, names: Iterable[str] = ()) -> Source:
        """A new input of the model; its tensor has these names."""
        data = {"shape": tensor.shape.spelling, "element_type": str(tensor.type)}
        layer = Layer("Parameter", "opset1", self.free(name), data=data)
        layer.outputs = [Port.of(0, tensor)]
        keep_symbols(layer, tensor.shape)
        source = self.take(layer)
        self.name_tensor(source, names)
        return source

    def result(self, source: Source, *, name: str | None = None) -> Layer:
        """A new output of the model."""
        if source.layer.type == "Assign":
            raise UsageError(
                "what it gives is not handed out: OpenVINO's CPU has no place for it",
                source.layer.where,
                "name the tensor that it puts into its variable",
            )
        index = source.index
        layer = Layer(
            "Result", "opset1", self.free(name or f"{source.layer.name}/sink_port_{index}")
        )
        layer.inputs = [Port.of(0, self.known(source))]
        self.take(layer, [source])
        layer.output_names = ""
        self.tell_outputs(source)
        return layer

    def name_tensor(self, source: Source, names: Iterable[str]) -> None:
        """Give a tensor further names; the outputs that it is say them, too."""
        wanted = tuple(dict.fromkeys((*source.port.names, *names)))
        for name in wanted:
            if (held := self._other(name, source)) is not None:
                raise UsageError(
                    f'two tensors would be named "{name}": that of layer '
                    f'"{held.layer.name}" and that of "{source.layer.name}"',
                    hint="choose another name",
                )
        self._set_names(source, wanted)
        self.tell_outputs(source)

    def _set_names(self, source: Source, names: Iterable[str]) -> None:
        source.port.names = tuple(names)
        self._tensors |= dict.fromkeys(source.port.names, source)

    def tell_outputs(self, source: Source) -> None:
        """Let every output that a tensor is say all names of it, and the tensor theirs.

        OpenVINO calls the tensor what the last of its outputs says, and nothing else.
        """
        ends = [x for x, _ in self.users(source) if x.type == "Result"]
        ends = [end for end in ends if end.output_names is not None]
        if not ends:
            return
        said = [name for end in ends for name in split_names(end.output_names)]
        said = [name for name in said if self._other(name, source) is None]
        names = dict.fromkeys((*source.port.names, *said))
        # An output without a name cannot be asked for.
        self._set_names(source, names or [self.own_name(source)])
        for end in ends:
            held = split_names(end.output_names)
            if {*held} != {*source.port.names}:
                # It goes on under the name that it had.
                own = [name for name in held if name in source.port.names]
                end.output_names = join_names(dict.fromkeys((*own, *source.port.names)))

    def own_name(self, source: Source) -> str:
        """What a tensor without names is called: as it is spelt, where no other is called so."""
        return FreeNames(lambda name: self._other(name, source) is not None)(source.spelled)

    def _other(self, name: str, source: Source) -> Source | None:
        """Another tensor that has a name."""
        held = self._tensors.get(name)
        if held is None or held == source or self.is_gone(held.layer):
            return None
        return held if name in held.port.names else None

    def move_names(self, old: Source, new: Source) -> None:
        """Let one tensor go by the names of another, which is given up."""
        names, old.port.names = old.port.names, ()
        self.name_tensor(new, names)

    def rename_layer(self, layer: Layer, name: str) -> None:
        """Give a layer a name that no other has."""
        if layer.name == name:
            return
        self.refuse_taken(layer, name)
        self._layers[layer.name].remove(layer)
        layer.name = name
        self._layers.setdefault(name, []).append(layer)

    def refuse_taken(self, layer: Layer, name: str) -> None:
        """Refuse a name that another layer has."""
        taken = [x for x in self._layers.get(name, ()) if x is not layer and not self.is_gone(x)]
        if taken:
            raise UsageError(
                f'"{layer.name}" cannot be renamed to "{name}": layer {taken[0].id} '
                f"({taken[0].type}) has that name",
                hint="choose another name",
            )

    def rename_tensor(self, source: Source, renamed: Mapping[str, str]) -> None:
        """Give a tensor other names in the places of some that it has, and its outputs too."""
        for old, new in renamed.items():
            self.refuse_named(source, old, new)
        for old in renamed:
            self._tensors.pop(old, None)
        self._set_names(source, dict.fromkeys(renamed.get(x, x) for x in source.port.names))
        for user, _ in self.users(source):
            if user.type == "Result" and user.output_names is not None:
                names = split_names(user.output_names)
                user.output_names = join_names(dict.fromkeys(renamed.get(x, x) for x in names))
        self.tell_outputs(source)

    def refuse_named(self, source: Source, old: str, new: str) -> None:
        """Refuse a name that another tensor has."""
        if (held := self._other(new, source)) is not None:
            raise UsageError(
                f'tensor "{old}" cannot be renamed to "{new}": that of layer '
                f'"{held.layer.name}" has that name',
                hint="choose another name",
            )

    def feed(self, users: Iterable[tuple[Layer, int]], source: Source, asked: str = "") -> None:
        """Let inputs be fed by another output; an output of the model keeps its names.

        It keeps the one that it was ``asked`` for by, whatever else its tensor was.
        """
        users = list(users)
        if any(user.type != "Result" for user, _ in users):
            self._forget_if_other(users, source)
        ends: dict[Source, list[Layer]] = {}
        for user, place in users:
            old = self.graph.producer(user, place)
            if user.type == "Result" and old is not None:
                ends.setdefault(Source(*old), []).append(user)
            self.rewire(source, user, place)
            port = user.inputs[place]
            port.precision, port.dims = source.port.precision, source.port.dims
        for feeder, results in ends.items():
            if feeder != source:
                self._hand_on(feeder, results, source, asked)

    def _hand_on(self, old: Source, results: Sequence[Layer], new: Source, asked: str) -> None:
        """Let a tensor go by the names of the outputs that it is now, in the place of another.

        Of the names of what is still an input or another output only those go that the outputs'
        layers have, and the one that the caller asked by; an input is fed by that of its layer.
        """
        names, is_input = old.port.names, old.layer.type == "Parameter"
        going = {x for end in results for x in split_names(end.output_names) or names}
        left = [user for user, _ in self.users(old) if user.type == "Result"]
        if stays := not self.is_gone(old.layer) and bool(left or is_input):
            going &= {end.name for end in results} - {old.layer.name}
            if going >= {*names}:
                going = set()
            going |= {asked} & {*names} - ({old.layer.name} if is_input else set())
        old.port.names = tuple(name for name in names if name not in going)
        for end in left:
            if end.output_names is not None:
                end.output_names = join_names(
                    name for name in split_names(end.output_names) if name not in going
                )
        self.name_tensor(new, [name for name in names if name in going])
        if stays and going:
            self.name_tensor(old, old.port.names or [self.own_name(old)])

    def _forget_if_other(self, users: Iterable[tuple[Layer, int]], source: Source) -> None:
        """Infer anew what follows, if inputs are to be fed a tensor that is not as the old."""
        try:
            new = self.known(source)
            for user, place in users:
                row = self.graph.producer(user, place)
                old = None if row is None else self.known(Source(*row))
                same = old is not None and (old.type, old.shape) == (new.type, new.shape)
                if not same or old is None or old.bounds is not None or new.bounds is not None:
                    self.forget_tensors()
                    return
        except IRError:
            # A later edit may mend what is wrong: in the end all is inferred.
            self.forget_tensors()

    def replace(self, old: Source, new: Source, *, but: Iterable[Layer] = ()) -> None:
        """Let all that an output feeds be fed by another; an output of the model keeps its names.

        Layers in ``but`` go on with the old one.
        """
        spared = {id(layer) for layer in but}
        self.feed([row for row in self.users(old) if id(row[0]) not in spared], new)

    def set_aside(self, layers: Iterable[Layer]) -> None:
        """Take layers out, and nothing else."""
        self.gone |= {id(layer) for layer in layers}

    def take_out(self, layers: Iterable[Layer]) -> None:
        """Take layers out, and what then feeds nothing any more."""
        queue = [layer for layer in layers if not self.is_gone(layer)]
        self.gone |= {id(layer) for layer in queue}
        while queue:
            layer = queue.pop()
            self._released.add(id(layer))
            times = Counter(id(feeder) for feeder, _ in _sources(self.graph, layer))
            for feeder in {id(row[0]): row[0] for row in _sources(self.graph, layer)}.values():
                key = id(feeder)
                if key in self._uses:
                    self._uses[key] -= times[key]
                else:
                    self._uses[key] = sum(
                        id(user) not in self._released for user, _ in self.graph.consumers(feeder)
                    )
                if not self._uses[key] and key not in self.gone and feeder.type not in _KEPT:
                    self.gone.add(key)
                    queue.append(feeder)

    def drop_unused(self, layer: Layer) -> None:
        """Take a layer out if it feeds nothing."""
        if layer.type not in _KEPT and not any(
            self.users(Source(layer, index)) for index in range(len(layer.outputs))
        ):
            self.take_out([layer])

    def rewire(self, source: Source, user: Layer, place: int) -> None:
        """Feed an input from an output, and count the uses of both."""
        old = self.graph.producer(user, place)
        if old is not None and id(old[0]) in self._uses:
            self._uses[id(old[0])] -= 1
        if id(source.layer) in self._uses:
            self._uses[id(source.layer)] += 1
        self.graph.connect((source.layer, source.index), user, place)

    @property
    def count(self) -> int:
        """How many layers were put in."""
        return len(self._made)

    def undo(self, count: int) -> None:
        """Take out what was put in after so many layers, if nothing else is fed by it."""
        made = self._made[count:]
        own = {id(layer) for layer in made}
        users = [user for layer in made for user in self.graph.consumers(layer)]
        if all(id(user) in own or self.is_gone(user) for user, _ in users):
            self.set_aside(made)
            for feeder in (row[0] for layer in made for row in _sources(self.graph, layer)):
                if id(feeder) in self._uses:
                    self._uses[id(feeder)] -= 1
            self._released |= own

    def finish(self) -> None:
        """Let the graph be without what was taken out."""
        doomed = [layer for layer in self.graph.layers if self.is_gone(layer)]
        if doomed:
            self.graph.remove(*doomed)
        self.gone.clear()
        self._made.clear()


def _sources(graph: Graph, layer: Layer) -> list[tuple[Layer, int]]:
    return [row for row in graph.sources(layer) if row is not None]


def newest(type: str) -> str:
    """The version under which OpenVINO writes the latest operation of a type."""
    Op.registry.meet(type)
    found = [kind for (name, _), kind in Op.registry.met.items() if name == type]
    if not found:
        raise UsageError(
            f"no operation is named {type}",
            hint=meant(type, sorted(Op.registry.types())) or 'give its "version"',
        )
    return max(found, key=lambda kind: kind.since or kind.number).version()


def file_names(kind: type[Op]) -> dict[str, str]:
    """The attributes of an operation: their names in Python and in a file."""
    return {name: field.alias or name for name, field in kind.model_fields.items()}


def attribute_text(name: str, value: Any) -> str:
    """The value of an attribute that a caller gave, as a file spells it."""
    try:
        return spelled(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def expression(text: object) -> re.Pattern[str]:
    """A regular expression that a caller gave."""
    if isinstance(text, re.Pattern):
        return text
    try:
        return re.compile(str(text))
    except re.error as error:
        raise UsageError(f'"{text}" is no regular expression: {error}') from None


__all__ = ["Source", "Workbench", "attribute_text", "expression", "newest"]
