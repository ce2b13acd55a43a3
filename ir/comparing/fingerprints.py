"""What every layer of a graph computes, as numbers that are equal where the same is computed.

A number stands for an expression: operation, attributes, constants and the numbers of what feeds
it (from below), or of what it feeds (from above). Numbers come from one table for both graphs, so
that equal numbers mean equal expressions, and no two expressions share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...schemas import ElementType, IRError
from ..document import BODIES, Graph, Info, Layer, MapEntry
from ..storage import digest_of

#: Attributes of a constant that say where its bytes are.
STORAGE = frozenset({"offset", "size", "value"})
_BOOLEANS = {"true": "1", "false": "0"}
#: Where further information holds names of layers.
_NAMING = frozenset({"fused_names", "fused_names_0"})


class Numbers:
    """One number for each expression, the same whenever it is met again."""

    def __init__(self, *models: Graph) -> None:
        """Without a .bin constants of ``models`` are told by their places, if these are the same.

        Where one has a constant more, those behind it have moved: places say nothing then.
        """
        layouts = [_layout(model) for model in models]
        self._placed = bool(layouts) and all(layout == layouts[0] for layout in layouts)
        self._table: dict[object, int] = {}
        self._operations: dict[object, tuple[str, tuple[tuple[str, str], ...]]] = {}
        self._contents: dict[object, bytes | None] = {}
        #: Models whose constants were numbered; kept, so that no other takes their place.
        self._models: list[object] = []

    def of(self, *key: object) -> int:
        """The number of an expression."""
        return self._table.setdefault(key, len(self._table))

    def operation(self, layer: Layer) -> tuple[str, tuple[tuple[str, str], ...]]:
        """An operation's version, and its attributes in one spelling with defaults filled in."""
        data = layer.data
        key = (layer.type, layer.version, *data.items())
        found = self._operations.get(key)
        if found is None:
            found = self._operations[key] = _operation(layer, data)
        return found

    def content(self, layer: Layer) -> bytes | None:
        """What tells a constant's bytes from others; None where nothing does."""
        if not layer.has_value:
            return ",".join(_extent(layer)).encode() if self._placed else None
        if 0 in layer.sizes:
            return b""
        if layer.has_new_value or "value" in layer.data:
            return digest_of(layer.blob)
        model = layer.model
        key = (id(model), layer.byte_range)
        if key not in self._contents:
            self._models.append(model)
            self._contents[key] = digest_of(layer.blob)
        return self._contents[key]


def _extent(constant: Layer) -> tuple[str, str]:
    """Where in a .bin a constant has its bytes, and how many."""
    return constant.data.get("offset", ""), constant.data.get("size", "")


def _layout(model: Graph) -> Counter[tuple[str, str]]:
    """The places of constants whose bytes are not there."""
    layers = model.everywhere()
    return Counter(_extent(x) for x in layers if x.is_constant and not x.has_value)


def _operation(layer: Layer, data: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    plain = dict(data)
    if layer.is_constant:
        kept = {name: text for name, text in plain.items() if name not in STORAGE}
        if "shape" in kept:
            kept["shape"] = ",".join(text.strip() for text in kept["shape"].split(","))
        return "Const", tuple(sorted(kept.items()))
    try:
        op = layer.op
        if op is not None:
            said = op.attributes()
            # What is said wins where it is not what is understood: pads beside an auto_pad.
            meant = {k: _plain(text) for k, text in said.items()}
            plain = {
                k: said[k] if k in said and _plain(text) == meant[k] else text
                for k, text in plain.items()
            }
            return op.spec(), tuple(sorted((said | plain).items()))
    except IRError:
        pass  # what cannot be read is compared as it is spelt
    return f"{layer.type} {layer.version}", tuple(sorted(plain.items()))


def _plain(text: str) -> tuple[object, ...]:
    """The value of an attribute however it is spelt: letter case, blanks, digits, booleans."""
    words = [word.strip().lower() for word in text.split(",")]
    return tuple(_number(_BOOLEANS.get(word, word)) for word in words if word)


def _number(word: str) -> object:
    try:
        return float(word)
    except ValueError:
        return word


class Wire(NamedTuple):
    """One use of an output: which output, by which layer, as which of its inputs."""

    output: int
    user: Layer
    place: int


class Anatomy:
    """A graph taken apart: its layers in order, who feeds whom, and what each layer says."""

    def __init__(self, graph: Graph, numbers: Numbers) -> None:
        self.graph, self.numbers = graph, numbers
        #: Dead layers too; each after what feeds it.
        self.layers = graph.order(reachable_only=False)
        self.places = {layer.id: place for place, layer in enumerate(graph.layers)}
        #: A Parameter takes nothing: what a broken file feeds it may come after it.
        self.sources = {
            layer.id: [] if layer.type == "Parameter" else graph.sources(layer)
            for layer in self.layers
        }
        self.uses: dict[int, list[Wire]] = {layer.id: [] for layer in self.layers}
        for layer in self.layers:
            for index, source in enumerate(self.sources[layer.id]):
                if source is not None:
                    self.uses[source[0].id].append(Wire(source[1], layer, index))
        self.local = {layer.id: self._local(layer) for layer in self.layers}
        self.detail = {layer.id: numbers.of("detail", _detail(layer)) for layer in self.layers}
        #: What it computes, from below; what becomes of it, from above, itself left out.
        self.up: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self.fate: dict[int, int] = {}

    def _local(self, layer: Layer) -> int:
        """The number of the operation alone; a constant's content and bodies included."""
        spec, attributes = self.numbers.operation(layer)
        inner: object = None
        if layer.is_constant:
            inner = self.numbers.content(layer)
        elif layer.bodies:
            inner = body_numbers(layer, self.numbers)
        elif layer.type == "Parameter":
            attributes = ()
        return self.numbers.of("layer", spec, attributes, inner, len(layer.port_ids("output")))

    def around(self, layer: Layer) -> Iterator[Layer]:
        """The layers that feed a layer or are fed by it, through a Convert as well."""
        for source in self.sources[layer.id]:
            if source is not None:
                yield source[0]
                yield from (found[0] for found in self.sources[source[0].id] if found is not None)
        for wire in self.uses[layer.id]:
            yield wire.user
            yield from (found.user for found in self.uses[wire.user.id])

    def held_types(self, layer: Layer) -> set[ElementType]:
        """The types of the constants that an expression is made of."""
        found: set[ElementType] = set()
        seen, pending = {layer.id}, [layer]
        while pending:
            one = pending.pop()
            if one.is_constant:
                found.add(one.element_type)
            for source in self.sources[one.id]:
                if source is not None and source[0].id not in seen:
                    seen.add(source[0].id)
                    pending.append(source[0])
        return found

    def look_down(self, ends: Mapping[int, object]) -> None:
        """Number what becomes of each layer; ``ends`` are marks of sinks, by layer id."""
        of = self.numbers.of
        whole: dict[int, int] = {}
        for layer in reversed(self.layers):
            uses = sorted(
                (wire.output, wire.place, whole[wire.user.id]) for wire in self.uses[layer.id]
            )
            fate = of("fate", tuple(uses), ends.get(layer.id))
            self.fate[layer.id] = fate
            kind = "Const" if layer.is_constant else self.local[layer.id]
            whole[layer.id] = of("down", kind, fate)

    def look_up(self, starts: Mapping[int, object]) -> None:
        """Number what each layer computes; ``starts`` are marks of Parameters, by layer id."""
        of = self.numbers.of
        for layer in self.layers:
            fed = tuple(
                None if source is None else (self.up[source[0].id], source[1])
                for source in self.sources[layer.id]
            )
            self.inputs[layer.id] = of("inputs", fed)
            self.up[layer.id] = of("up", self.local[layer.id], fed, starts.get(layer.id))


def body_numbers(layer: Layer, numbers: Numbers) -> int:
    """The number of a layer's bodies and how they are wired to it, whatever the ids inside."""
    parts: list[object] = []
    for tag in BODIES:
        body = layer.bodies.get(tag)
        if body is None:
            continue
        roles = body_roles(layer, tag)
        anatomy = Anatomy(body, numbers)
        anatomy.look_up(roles)
        ends = sorted(
            (repr(roles.get(x.id)), anatomy.up[x.id])
            for x in anatomy.layers
            if not anatomy.uses[x.id]
        )
        turns = sorted(
            (anatomy.up.get(edge.from_layer, -1), repr(roles.get(edge.to_layer)))
            for edge in layer.back_edges
        )
        parts.append((tag, tuple(ends), tuple(turns)))
    return numbers.of("bodies", tuple(parts))


def body_roles(layer: Layer, tag: str) -> dict[int, object]:
    """What the Parameters and Results of a body are to the layer around it, by their ids."""
    wiring = layer.port_maps.get(tag)
    entries: Sequence[MapEntry] = () if wiring is None else wiring.entries
    numbered = sorted({e.external_port_id for e in entries if e.kind == "output"} - {-1})
    roles: dict[int, list[object]] = {}
    for entry in entries:
        outer = entry.external_port_id
        if entry.kind == "output" and outer in numbered:
            outer = numbered.index(outer)
        rest = {
            name: text
            for name, text in entry.attributes.items()
            if name not in ("external_port_id", "internal_layer_id")
        }
        said = (entry.kind, outer, tuple(sorted(rest.items())))
        roles.setdefault(entry.internal_layer_id, []).append(said)
    return {key: tuple(sorted(map(repr, said))) for key, said in roles.items()}


def role_texts(layer: Layer, tag: str) -> dict[int, str]:
    """What the Parameters and Results of a body are to the layer around it, for people."""
    wiring = layer.port_maps.get(tag)
    names = {one.id: one.name for one in layer.bodies[tag].layers}
    found: dict[int, str] = {}
    for entry in () if wiring is None else wiring.entries:
        said = [
            f"{name} {text}"
            for name, text in entry.attributes.items()
            if name not in ("external_port_id", "internal_layer_id")
        ]
        number, inner = entry.external_port_id, entry.internal_layer_id
        outer = f"{entry.kind} port {number}" if number >= 0 else f"{entry.kind} of no port"
        text = outer + (f" ({', '.join(said)})" if said else "")
        head = f'"{names.get(inner, inner)}" is '
        found[inner] = f"{found[inner]} and {text}" if inner in found else head + text
    return found


def _detail(layer: Layer) -> object:
    """What a layer declares beside what it computes: outputs and further information."""
    own = layer.data.get("shape") if layer.type == "Parameter" else None
    info = tuple(flattened(layer.rt_info)) if layer.rt_info is not None else ()
    return declared(layer, "output"), own, info


def declared(layer: Layer, side: str) -> object:
    """What the ports of a side say of types and sizes, as spelt; from the element if it can be.

    What is equal says the same; what differs may do so too.
    """
    read = layer.parts_read.get(f"{side}s")
    if read is None and layer.element is not None:
        section = layer.element.find(side)
        if section is None:
            return ()
        rows = [(port.get("precision"), *(one.text for one in port)) for port in section]
        if all(one.tag == "dim" for port in section for one in port):
            return tuple(rows)
    ports = layer.inputs if side == "input" else layer.outputs
    return tuple((port.precision, *map(str, port.dims)) for port in ports)


def flattened(info: Info | None, *, names: bool = False) -> Iterator[tuple[str, str]]:
    """A tree of further information as sorted paths with what is said there.

    What holds names of layers is left out unless it is asked for.
    """
    rows: list[tuple[str, str]] = []
    stack: list[tuple[str, Info]] = [] if info is None else [("", info)]
    while stack:
        path, node = stack.pop()
        said = [
            f"{k}={v}" for k, v in sorted(node.attributes.items()) if k not in ("name", "value")
        ]
        value = node.value if node.value is not None else node.text.strip()
        if value or said or (path and not node.children):
            rows.append((path, " ".join([value, *said]).strip()))
        counts: dict[str, int] = {}
        for child in node.children:
            if child.key in _NAMING and not names:
                continue
            counts[child.key] = number = counts.get(child.key, -1) + 1
            word = child.key if not number else f"{child.key}#{number}"
            stack.append((f"{path}/{word}" if path else word, child))
    return iter(sorted(rows))


__all__ = [
    "STORAGE", "Anatomy", "Numbers", "Wire", "body_numbers", "body_roles", "declared", "flattened",
    "role_texts",
]  # fmt: skip
