"""From graph to graph: every node in order, by its converter or by the function it calls."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from ....layers.base import Op
from ....layers.memory import without_collection
from ....schemas import Dim, ElementType, IRError, Shape, Tensor, UnsupportedError, Where, placed
from ...document import (
    Builder,
    Graph,
    Layer,
    Model,
    Output,
    Port,
    join_names,
    keep_symbols,
    own_names,
    split_names,
)
from . import (  # noqa: F401  # declare the converters
    attention,
    cached_attention,
    contributed,
    control,
    convolution,
    elementwise,
    experts,
    few_bits,
    image,
    movement,
    normalization,
    optimized,
    pooling,
    quantization,
    recurrent,
    reduction,
    sequences,
    signals,
)
from .host import Initializer, Scope
from .listed import Cut, Growing, Listed
from .node import Node, find
from .proto import (
    calls_of,
    check,
    dangling_output,
    free_names,
    functions_of,
    label,
    opsets,
    ordered,
    where_of,
)
from .semantics import Semantics
from .tensors import Store, kind_of, shape_of
from .versions import (
    WORDS,
    Signature,
    check_attributes,
    check_inputs,
    check_types,
    is_function,
    resolve,
    signature,
)

#: What becomes of nodes that need no layer, or hold a constant.
_NOT_COMPUTED = ("(nothing)", "Const")
#: Functions and bodies within each other, and all nodes that they come to.
_DEEPEST, _MOST_NODES = 32, 100_000


@dataclasses.dataclass
class Row:
    """What became of one node."""

    name: str
    operation: str
    becomes: list[str] = dataclasses.field(default_factory=list)
    problem: IRError | None = None
    #: Names of tensors that are missing because another node has a problem.
    waits_for: list[str] = dataclasses.field(default_factory=list)
    notes: list[tuple[str, str]] = dataclasses.field(default_factory=list)


class Importer:
    """Turns one protobuf into one model."""

    def __init__(
        self, proto: Any, path: Path | None, semantics: Semantics, tolerant: bool, room: int = 0
    ) -> None:
        self.room, self.repeated = room, dict[tuple[Any, ...], Initializer]()
        self.proto, self.semantics, self.tolerant = proto, semantics, tolerant
        self.place = None if path is None else str(path)
        self.store = Store(path)
        self.rows: list[Row] = []
        # What is no text is refused when the whole model is looked at.
        said = proto.graph.name if isinstance(proto.graph.name, str) else ""
        self._root = Builder(said or (path.stem if path else "model"))
        self.scope = Scope(self._root)
        self._row: Row | None = None
        self._missing: dict[tuple[int, int], str] = {}
        self._inner = 0
        self.operations: dict[tuple[str, str | None], Op] = {}
        #: How many nodes a call of each function comes to.
        self._amounts: dict[tuple[str, str, str], int] = {}
        self._depth = 0
        self.opsets: Mapping[str, int] = {}
        self.functions: Mapping[tuple[str, str, str], Any] = {}

    def run(self) -> Model:
        """The model."""
        with placed(Where(self.place)), without_collection():
            check(self.proto)
            self.opsets = opsets(self.proto.opset_import)
            self.functions = functions_of(self.proto)
            graph = self.proto.graph
            self._take_initializers(graph)
            self._take_inputs(graph)
            self._walk(graph)
            for value in graph.output:
                self._give(value.name)
            self._share_names()
            self.model.prune()
        return self.model

    @property
    def model(self) -> Model:
        """The model as far as it is made."""
        return self._root.model()

    @property
    def files(self) -> list[Path]:
        """The files that were read: the model's own, and those of its tensors."""
        return [*([] if self.place is None else [Path(self.place)]), *self.store.files]

    @property
    def tensors(self) -> Mapping[int, tuple[Tensor, ...]] | None:
        """What inference would know of each layer; None where it has to look at bodies."""
        if any(layer.bodies for layer in self.model.layers):
            return None
        return self._root.tensors

    @property
    def builder(self) -> Builder:
        """The builder of the graph that layers are being added to."""
        return self.scope.builder

    # Inputs and outputs of the graph.

    def _take_initializers(self, graph: Any) -> None:
        """Register a graph's initializers; those that are read become constants."""
        for tensor in graph.initializer:
            self.scope.tensors[tensor.name] = tensor
        for tensor in graph.sparse_initializer:
            self.scope.tensors[tensor.values.name] = tensor

    def _take_inputs(self, graph: Any) -> None:
        names: dict[str, str] = {}
        for value in graph.input:
            if value.name in self.scope.tensors:
                continue  # a default, which IR has no means to replace
            if value.name in self.scope.values:
                raise IRError(f'input "{value.name}" is there twice')
            with placed(Where(self.place, name=value.name, type="input")):
                kind = value.type.WhichOneof("value")
                if kind != "tensor_type":
                    what = "no type" if kind is None else f"a {kind.removesuffix('_type')}"
                    raise UnsupportedError(f"the input is {what}, IR has tensors only")
                tensor = value.type.tensor_type
                shape = shape_of(tensor.shape) if tensor.HasField("shape") else Shape.UNKNOWN
                kind = kind_of(tensor.elem_type)
                # What nodes become does not rely on it that sizes of two inputs are equal.
                apart = own_names(shape, value.name, names)
                made = self.builder.parameter(value.name, kind, apart)
                keep_symbols(made.layer, shape)
                self.scope.values[value.name] = made

    def _give(self, name: str) -> None:
        source = self.lookup(name)
        if source is None:
            known = [*self.scope.values, *self.scope.tensors]
            raise dangling_output(name, known, self.place)
        if isinstance(source, Listed):
            raise UnsupportedError(
                f'output "{name}" is a sequence, IR has tensors only',
                Where(self.place),
                hint="give its tensors out one by one, or joined by ConcatFromSequence",
            )
        result = self.builder.result(source, name=f"{name}/sink_port_0", names=())
        result.output_names = join_names([name])

    def _share_names(self) -> None:
        """Let outputs that are another name of an input or output say all names of the tensor.

        OpenVINO calls the tensor what the last of its outputs says, and nothing else.
        """
        fed = [(end, self.model.producer(end, 0)) for end in self.model.results]
        ends = [(end, source) for end, source in fed if source is not None]
        often = Counter((layer.id, index) for _, (layer, index) in ends)
        for end, (layer, index) in ends:
            if layer.type == "Parameter" or often[layer.id, index] > 1:
                own = split_names(end.output_names)
                end.output_names = join_names(dict.fromkeys((*own, *layer.outputs[index].names)))

    # Names.

    def lookup(self, name: str) -> Output | None:
        """The tensor of a name, made from its initializer when it is first read."""
        return self._lookup(name, self.scope) if name else None

    def _lookup(self, name: str, scope: Scope) -> Output | None:
        if name in scope.values:
            return scope.values[name]
        if name in scope.tensors:
            array, kind = self._initializer(scope.tensors[name])
            scope.values[name] = Initializer(
                scope.builder, array, kind, scope.prefix + name, (scope.prefix + name,)
            )
            return scope.values[name]
        outer = None if scope.around is None else self._lookup(name, scope.around)
        if outer is None or scope.around is None or scope.around.builder is scope.builder:
            return outer
        made = scope.values[name] = self._captured(outer, name, scope)
        return made

    def _captured(self, outer: Output, name: str, scope: Scope) -> Output:
        """What a body has of a tensor around it: a copy of a constant, a Parameter for others."""
        if isinstance(outer, Growing):
            raise UnsupportedError(f'a body within reads "{name}", which the Loop makes longer')
        if isinstance(outer, Listed):
            if outer.stacked is not None:
                return Listed(stacked=self._captured(outer.stacked, name, scope))
            if outer.cut is not None:
                whole, axis, lengths = outer.cut
                whole = self._captured(whole, name, scope)
                return Listed(
                    cut=Cut(whole, axis, self._captured(lengths, f"{name}/lengths", scope))
                )
            places = enumerate(outer.items)
            return Listed([self._captured(one, f"{name}/{at}", scope) for at, one in places])
        if outer.is_constant:
            return scope.builder.constant(outer.tensor.value, outer.tensor.type, name=name)
        made = scope.builder.parameter(name, outer.tensor.type, outer.tensor.shape)
        scope.captured.append((outer, made))
        return made

    def _initializer(self, tensor: Any) -> tuple[Any, ElementType]:
        if isinstance(tensor, onnx.SparseTensorProto):
            from .sparse import dense

            return dense(self.store, tensor)
        return self.store.array(tensor)

    # Nodes.

    def convert(self, proto: Any) -> None:
        """Turn one node into layers, and remember what came of it."""
        self._inner += self._depth > 0
        if self._inner > _MOST_NODES:
            raise UnsupportedError(f"the functions come to more than {_MOST_NODES} nodes")
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        outermost = self._row is None
        if outermost:
            self._row = Row(label(proto), proto.op_type)
            self.rows.append(self._row)
        try:
            with placed(partial(where_of, proto, self.place, self.opsets.get(domain))):
                self._convert(proto, domain)
        except IRError as error:
            row = self._row
            if row is None or not outermost:
                raise
            # Behind a node that has a problem little is known: what goes wrong there waits.
            waits = row.waits_for or self._missing
            if not (self.tolerant or waits or isinstance(error, UnsupportedError)):
                raise
            self._fail(row, proto, error)
        finally:
            if outermost:
                self._row = None

    def _convert(self, proto: Any, domain: str) -> None:
        inputs = [self.lookup(name) for name in proto.input]
        row = self._row
        if row is None:
            return
        if self._missing:
            row.waits_for += [
                self._missing[key]
                for one in inputs
                if one is not None
                and not isinstance(one, Listed)
                and (key := (one.layer.id, one.index)) in self._missing
            ]
        called = (domain, proto.op_type, getattr(proto, "overload", ""))
        function = self.functions.get(called)
        if function is not None:
            if self._inner + self._amount(called) > _MOST_NODES:
                raise UnsupportedError(f"the functions come to more than {_MOST_NODES} nodes")
            self._call(function, proto, inputs, opsets(function.opset_import))
            return
        opset = self.opsets.get(domain)
        if opset is None:
            raise IRError(f'the model names no opset for the domain "{domain or "ai.onnx"}"')
        known = find(proto.op_type, opset, domain) if domain else None
        found = resolve(proto.op_type, opset, domain) if known is None else signature(
            proto.op_type, opset, domain
        )  # fmt: skip
        if found is None:
            raise UnsupportedError(f"{domain}.{proto.op_type} has no schema")
        if self._depth == 0:
            row.operation = f"{found.name}-{found.since}"
        converter = find(proto.op_type, found.since, domain)
        if converter is None and not is_function(found):
            raise _no_converter(found, domain)
        attributes = self._attributes(proto)
        check_attributes(found, list(attributes), domain)
        check_types(found, proto.attribute)
        check_inputs(found, [_type(one) for one in inputs])
        if converter is None:
            self._expand(found, proto, inputs)
            return
        node = Node(
            self, found, self.scope.prefix + label(proto), inputs, proto.output, attributes, opset
        )
        before = len(self.builder.graph)
        made = converter.function(node)
        outputs = [made] if isinstance(made, Output) else list(made)
        self._finish(node, before, outputs)

    def _attributes(self, proto: Any) -> dict[str, Any]:
        """The values of a node's attributes."""
        found: dict[str, Any] = {}
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                raise IRError(f"attribute {attribute.name} refers to one of a function")
            if attribute.name in found:
                raise IRError(f"attribute {attribute.name} is there twice")
            try:
                value = helper.get_attribute_value(attribute)
            except ValueError as error:
                raise IRError(f"attribute {attribute.name}: {error}") from None
            if isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            elif isinstance(value, (list, tuple)) and value and isinstance(value[0], bytes):
                value = [word.decode("utf-8", "replace") for word in value]
            found[attribute.name] = value
        return found

    def _finish(self, node: Node, before: int, outputs: Sequence[Output | None]) -> None:
        """Give the outputs their names, and the layers of the node theirs."""
        made = self.builder.graph.layers[before:]
        first = next((x for x in outputs if x is not None and not isinstance(x, Listed)), None)
        if self._row is not None:
            kinds, known = _kinds(made), self._row.becomes
            computed = [kind for kind in kinds if kind != "Const"]
            if computed:
                # Of a body and a function that is what they come to.
                self._row.becomes = [one for one in known if one not in _NOT_COMPUTED] + computed
            elif not known:
                same = first is None or first in node.inputs or not first.is_constant
                self._row.becomes = kinds or ["(nothing)" if same else "Const"]
        if first is not None and any(layer is first.layer for layer in made):
            self.builder.rename(first.layer, node.name)
        for name, one in zip(node.outputs, [*outputs, *[None] * len(node.outputs)], strict=False):
            if not name:
                continue
            if one is None:
                raise UnsupportedError(f'its output "{name}" is not made by this importer')
            self.scope.values[name] = one.named(self.scope.prefix + name)

    def _fail(self, row: Row, proto: Any, error: IRError) -> None:
        """Remember a problem; stand-ins take the place of the outputs, so that all is seen."""
        row.problem = error
        row.becomes.clear()
        for name in proto.output:
            if name:
                layer = Layer("Parameter", "opset1", name, outputs=[Port(0)])
                self.builder.graph.add(layer)
                made = Output(layer, 0, [Tensor(ElementType.DYNAMIC, Shape.UNKNOWN)])
                self._missing[layer.id, 0] = row.name
                self.scope.values[name] = made

    def note(self, topic: str, text: str) -> None:
        """Record which of several meanings was chosen for the current node."""
        if self._row is not None:
            self._row.notes.append((topic, text))

    # Functions.

    def _expand(self, found: Signature, proto: Any, inputs: Sequence[Output | None]) -> None:
        """Convert a node by the function that the standard defines it by."""
        schema, body = found.schema, b""
        if schema.has_function:
            body = schema.function_body.SerializeToString()
        elif schema.has_context_dependent_function:
            types = [
                helper.make_tensor_type_proto(
                    getattr(onnx.TensorProto, WORDS[one.tensor.type].upper()),
                    _sizes(one.tensor.shape),
                ).SerializeToString()
                if one is not None and not (_type(one) or ElementType.DYNAMIC).is_dynamic
                else b""
                for one in inputs
            ]
            body = schema.get_context_dependent_function(proto.SerializeToString(), types)
        if not body:
            raise _no_converter(found, schema.domain)
        function = onnx.FunctionProto.FromString(body)
        imports = {"": onnx.defs.onnx_opset_version()} | {
            **self.opsets, **opsets(function.opset_import)
        }  # fmt: skip
        self._call(function, proto, inputs, imports, found.attributes)

    # Bodies.

    @contextmanager
    def body(self, graph: Any) -> Iterator[Scope]:
        """Make the graph of a body; its tensors are known inside only."""
        if self._depth >= _DEEPEST:
            raise IRError(f"bodies are nested more than {_DEEPEST} deep")
        outer = self.scope
        self.scope = Scope(Builder(into=Graph()), "", outer)
        self._depth += 1
        try:
            self._take_initializers(graph)
            yield self.scope
        finally:
            self.scope, self._depth = outer, self._depth - 1

    def inline(self, graph: Any, name: str, given: Sequence[Output] = ()) -> list[Output | None]:
        """Convert the nodes of a body as if they stood around it, of some inputs; its outputs."""
        outer = self.scope
        self.scope = Scope(outer.builder, f"{name}/", outer)
        self.scope.values = dict(zip((value.name for value in graph.input), given, strict=False))
        self._depth += 1
        try:
            self._take_initializers(graph)
            self.walk(graph)
            return [self.lookup(value.name) for value in graph.output]
        finally:
            self.scope, self._depth = outer, self._depth - 1

    def walk(self, graph: Any) -> None:
        """Convert all nodes of a body."""
        outside = set(free_names(graph))
        missing = [name for name in outside if self.lookup(name) is None]
        if missing:
            raise IRError(f'the body reads tensor "{missing[0]}", which nothing makes')
        self._walk(graph, outside)

    def _walk(self, graph: Any, outside: Iterable[str] = ()) -> None:
        known = [*self.scope.values, *self.scope.tensors, *outside]
        for node in ordered(graph, known, self.place):
            self.convert(node)

    def _amount(self, key: tuple[str, str, str], depth: int = 0) -> int:
        """How many nodes a call of a function comes to, counted before any is made."""
        if depth > _DEEPEST:
            raise IRError(f"functions call each other more than {_DEEPEST} deep")
        if key not in self._amounts:
            self._amounts[key] = sum(
                1 + (self._amount(called, depth + 1) if called in self.functions else 0)
                for called in calls_of(self.functions[key])
            )
        return self._amounts[key]

    def _call(
        self,
        function: Any,
        proto: Any,
        inputs: Sequence[Output | None],
        imports: Mapping[str, int],
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """Convert the nodes of a function in the place of a node that calls it."""
        if self._depth >= _DEEPEST:
            raise IRError(f"functions call each other more than {_DEEPEST} deep")
        if len(inputs) > len(function.input) or len(proto.output) > len(function.output):
            raise IRError(
                f"{len(inputs)} inputs and {len(proto.output)} outputs, function {function.name} "
                f"has {len(function.input)} and {len(function.output)}"
            )
        given = {attribute.name: attribute for attribute in proto.attribute}
        for attribute in function.attribute_proto:
            given.setdefault(attribute.name, attribute)
        for name, value in (defaults or {}).items():
            if value is not None and name not in given:
                given[name] = helper.make_attribute(name, value)
        outer, outer_opsets = self.scope, self.opsets
        inner = Scope(outer.builder, f"{outer.prefix}{label(proto)}/")
        inner.values = {
            name: one for name, one in zip(function.input, inputs, strict=False) if one is not None
        }
        left_out = [name for name in function.input if name not in inner.values]
        self.scope, self.opsets, self._depth = inner, imports, self._depth + 1
        try:
            for node in ordered(function, [*inner.values, *left_out], self.place):
                self.convert(_with_attributes(node, given, left_out))
            results = [self.lookup(name) for name in function.output]
        finally:
            self.scope, self.opsets, self._depth = outer, outer_opsets, self._depth - 1
        for name, formal, one in zip(proto.output, function.output, results, strict=False):
            if not name:
                continue
            if one is None:
                raise IRError(f'function {function.name} does not make its output "{formal}"')
            outer.values[name] = one.named(outer.prefix + name)


def _no_converter(found: Signature, domain: str) -> UnsupportedError:
    """Why a node is left out, by its domain where that is not ONNX's own."""
    named = f"{domain}.{found.name}" if domain else found.name
    why = ": IR has no trees, tables or text of classical models" * (domain == "ai.onnx.ml")
    return UnsupportedError(f"there is no converter for {named}-{found.since}{why}")


def _with_attributes(node: Any, given: Mapping[str, Any], left_out: Sequence[str]) -> Any:
    """A function's node, its references to attributes replaced by what the call gives."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    kept = []
    for attribute in copy.attribute:
        if attribute.ref_attr_name:
            source = given.get(attribute.ref_attr_name)
            if source is None:
                continue  # neither given nor a default: the node goes without
            name = attribute.name
            attribute.CopyFrom(source)
            attribute.name = name
        for body in (attribute.g, *attribute.graphs):
            for index, inside in enumerate(body.node):
                body.node[index].CopyFrom(_with_attributes(inside, given, left_out))
        kept.append(onnx.AttributeProto.FromString(attribute.SerializeToString()))
    del copy.attribute[:]
    copy.attribute.extend(kept)
    for index, name in enumerate(copy.input):
        if name in left_out:
            copy.input[index] = ""
    return copy


def _type(one: Output | None) -> ElementType | None:
    """The element type of an input; of a sequence it is not asked."""
    if isinstance(one, Listed):
        return ElementType.DYNAMIC
    return None if one is None else one.tensor.type


def _sizes(shape: Shape) -> list[int | None] | None:
    """Sizes as the standard's functions take them: those that are not known are left out."""
    if shape.rank is None:
        return None
    return [None if isinstance(size, Dim) else size for size in shape.sizes]


def _kinds(made: Sequence[Layer]) -> list[str]:
    """Types of layers with their versions, in order."""
    found = []
    for layer in made:
        op = Op.find(layer.type, layer.version)
        found.append(layer.type if op is None or layer.is_constant else op.spec())
    return found
