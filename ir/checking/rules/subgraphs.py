"""IR7xx: the bodies of TensorIterator, Loop and If, and how they are wired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....schemas import ElementType, Shape, Tensor
from ....schemas.printing import shown
from ....schemas.shapes import compatible
from ...document import BODIES, BODIES_OF
from . import known
from .document import odd_attributes
from .loose import LooseGraph, LooseLayer, LooseModel, LoosePort, whole
from .note import Note, listed
from .note import tag as tag_of

if TYPE_CHECKING:
    from lxml import etree

_PURPOSES = {"input": "current_iteration", "output": "execution_condition"}
_NUMBERS = ("axis", "start", "end", "stride", "part_size")
#: The attributes of a line of a port map, as ``schemas.document.MapEntry`` has them.
_KNOWN = frozenset({"external_port_id", "internal_layer_id", "purpose", *_NUMBERS})
#: Of IR version 7 and before; not read since.
_OLD = frozenset({"internal_port_id", "from-port", "to-port"})


class Entry:
    """A line of a port map."""

    def __init__(self, element: etree._Element, graph: LooseGraph) -> None:
        get = element.get
        self.element = element
        self.kind = str(element.tag)
        self.external = whole(get("external_port_id"), least=-1)
        self.internal = whole(get("internal_layer_id"))
        self.purpose = get("purpose") or None
        self.inner = None if self.internal is None else graph.by_id.get(self.internal)
        self.axis = whole(get("axis"), least=-(2**63))
        defaults = {"start": 0, "end": -1, "stride": 1, "part_size": 1}
        self.slice = {
            name: default if get(name) is None else whole(get(name), least=-(2**63))
            for name, default in defaults.items()
        }

    @property
    def sliced(self) -> bool:
        """Whether it takes or gives pieces along an axis."""
        return self.element.get("axis") is not None


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    for node in model.nodes:
        kind = known.by_lower_case().get(node.type.lower(), node.type)
        expected = BODIES_OF.get(kind)
        if expected is None:
            for tag in node.bodies:
                yield Note(
                    "IR729", f"{node.type} has a <{tag}>, which it cannot have",
                    node.parts[tag], node,
                )  # fmt: skip
            continue
        maps: dict[str, list[Entry]] = {}
        for tag in expected:
            yield from body(node, kind, tag, maps)
        yield from outer_inputs(node, kind, maps)
        yield from condition(node, kind)
        if kind == "If":
            yield from branches(node, maps)
        elif "body" in maps:
            yield from back_edges(node, kind, maps["body"])
            if kind == "Loop":
                yield from loop(node, maps["body"])


def body(node: LooseLayer, kind: str, tag: str, maps: dict[str, list[Entry]]) -> Iterator[Note]:
    """One body and its map."""
    graph = node.bodies.get(tag)
    if graph is None:
        yield Note(
            "IR701", f"{kind} has no <{tag}>", node.element, node, hint="OpenVINO refuses it"
        )
        return
    element = node.parts.get(BODIES[tag])
    results = [inner for inner in graph.nodes if inner.type == "Result"]
    if element is None:
        parameters = [inner for inner in graph.nodes if inner.type == "Parameter"]
        if parameters or results:
            yield Note(
                "IR702", f"{kind} has no <{BODIES[tag]}>: nothing goes into or out of its body",
                node.element, node,
            )  # fmt: skip
        maps[tag] = []
        return
    entries = []
    for child in element:
        if child.tag not in ("input", "output"):
            yield Note(
                "IR209" if str(child.tag).lower() in ("input", "output") else "IR208",
                f"<{tag_of(child)}> in <{tag_of(element)}> is not read", child, node,
            )  # fmt: skip
            continue
        entries.append(Entry(child, graph))
    maps[tag] = entries
    for entry in entries:
        yield from numbers(node, kind, entry)
        yield from ends(node, kind, tag, entry)
        if entry.sliced and kind != "If":
            yield from slices(node, entry)
        elif not entry.sliced:
            yield from unsliced(node, entry)
        yield from fits(node, tag, entry)
    yield from complete(node, tag, graph, entries)


def numbers(node: LooseLayer, kind: str, entry: Entry) -> Iterator[Note]:
    """The attributes of a line."""
    element = entry.element
    old = _OLD.intersection(element.attrib)
    for name in sorted(old):
        yield Note(
            "IR223", f"{name} is of IR version 7 and before, it is ignored", element, node, name
        )
    needed = [n for n in ("external_port_id", "internal_layer_id") if n not in element.attrib]
    what = f"<{entry.kind}> of a port map"
    yield from odd_attributes(element, what, _KNOWN | old, needed, node)
    for name in ("external_port_id", "internal_layer_id", *_NUMBERS):
        text = element.get(name)
        least = {"external_port_id": -1, "internal_layer_id": 0}.get(name, -(2**63))
        if text is not None and whole(text, least) is None:
            yield Note(
                "IR703", f"{name}={shown(text)} of a port map is not a whole number", element,
                node, name,
            )  # fmt: skip


def ends(node: LooseLayer, kind: str, tag: str, entry: Entry) -> Iterator[Note]:
    """What a line connects."""
    wanted = "Parameter" if entry.kind == "input" else "Result"
    if entry.internal is not None and (entry.inner is None or entry.inner.type != wanted):
        is_ = "is not there" if entry.inner is None else f"is a {entry.inner.type}"
        graph = node.bodies[tag]
        ids = listed(graph.by_type.get(wanted, []), text=lambda inner: str(inner.id))
        yield Note(
            "IR704", f"internal_layer_id {entry.internal} {is_} in <{tag}>; an <{entry.kind}> "
            f"names a {wanted} ({ids or 'there is none'})", entry.element, node,
            "internal_layer_id",
        )  # fmt: skip
    if entry.purpose is not None:
        if kind != "Loop" or entry.purpose.lower() != _PURPOSES[entry.kind]:
            yield Note(
                "IR705", f"purpose={shown(entry.purpose)} on an <{entry.kind}> of {kind}; known "
                f"is {_PURPOSES[entry.kind]}, of Loop", entry.element, node, "purpose",
            )  # fmt: skip
        elif entry.external is not None and entry.external >= 0:
            yield Note(
                "IR705", f"an <{entry.kind}> of purpose {entry.purpose} has external_port_id "
                f"{entry.external}, it has none (-1)", entry.element, node, "external_port_id",
            )  # fmt: skip
        return
    if entry.external is None or entry.kind == "output":
        if entry.external == -1 and entry.kind == "output":
            yield _nowhere(node, entry)
        return
    count = len(node.inputs)
    if entry.external == -1:
        yield _nowhere(node, entry)
    elif entry.external >= count:
        yield Note(
            "IR706",
            f"external_port_id {entry.external} on an <input>, {kind} has the inputs 0 to "
            f"{count - 1}", entry.element, node, "external_port_id",
        )  # fmt: skip
    elif kind == "If" and entry.external == 0:
        yield Note(
            "IR706", "external_port_id 0 on an <input> is the condition of If, which does not go "
            "into a body", entry.element, node, "external_port_id",
        )  # fmt: skip


def _nowhere(node: LooseLayer, entry: Entry) -> Note:
    return Note(
        "IR706", f"external_port_id -1 on an <{entry.kind}> without purpose", entry.element, node,
        "external_port_id", f'name a port, or add purpose="{_PURPOSES[entry.kind]}"',
    )  # fmt: skip


def _outer_of(node: LooseLayer, pin: LoosePort) -> Tensor:
    """What comes into an input."""
    return node.graph.fed(node, pin)


def slices(node: LooseLayer, entry: Entry) -> Iterator[Note]:
    """The pieces that a line takes or gives."""
    start, end, stride, part = (entry.slice[n] for n in ("start", "end", "stride", "part_size"))
    if part is not None and part < 1:
        crash = ", OpenVINO crashes" if part == 0 and entry.kind == "input" else ""
        yield Note(
            "IR707", f"part_size is {part}, the least is 1{crash}", entry.element, node,
            "part_size",
        )  # fmt: skip
    if stride == 0:
        yield Note(
            "IR708", "stride is 0: there is no end of slices", entry.element, node, "stride"
        )
    if entry.axis is None or start is None or end is None or not stride or not part or part < 1:
        return
    shape = _outer(node, entry)
    if shape is None or shape.shape.rank is None:
        _signs = _direction(start, end, stride, None)
        if _signs:
            yield Note("IR708", _signs, entry.element, node, "stride")
        return
    rank = shape.shape.rank
    if not -rank <= entry.axis < rank:
        yield Note(
            "IR709", f"axis {entry.axis} of a port with {rank} axes", entry.element, node, "axis"
        )
        return
    size = shape.shape[entry.axis]
    length = size if isinstance(size, int) else None
    if entry.kind == "input" and length is not None:
        for name, value in (("start", start), ("end", end)):
            if not -length - 1 <= value <= length:
                yield Note(
                    "IR710", f"{name} {value} is beyond axis {entry.axis}, which has {length}",
                    entry.element, node, name,
                )  # fmt: skip
                return
        if part > length:
            yield Note(
                "IR710", f"part_size {part} is more than axis {entry.axis} has: {length}",
                entry.element, node, "part_size",
            )  # fmt: skip
    problem = _direction(start, end, stride, length if entry.kind == "input" else None)
    if problem:
        yield Note("IR708", problem, entry.element, node, "stride")
    elif abs(stride) != part:
        yield Note(
            "IR711", f"stride {stride} and part_size {part}: slices "
            f"{'overlap' if part > abs(stride) else 'leave gaps'}", entry.element, node, "stride",
        )  # fmt: skip


def fits(node: LooseLayer, tag: str, entry: Entry) -> Iterator[Note]:
    """What a line hands in is what the body's Parameter was made for."""
    inner = entry.inner
    if entry.kind != "input" or entry.purpose is not None or inner is None or inner.op is None:
        return
    outer = _outer(node, entry)
    if inner.type != "Parameter" or outer is None or entry.internal is None:
        return
    made = inner.op.infer()[0]
    if not (outer.type.is_dynamic or made.type.is_dynamic) and outer.type is not made.type:
        problem = f"{outer.type}, it is {made.type}"
    elif outer.shape.rank is None or made.shape.rank is None:
        return
    else:
        sizes = list(outer.shape)
        if entry.sliced and entry.axis is not None and -len(sizes) <= entry.axis < len(sizes):
            sizes[entry.axis] = max(entry.slice["part_size"] or 1, 1)
        if len(sizes) == made.shape.rank and all(map(compatible, sizes, made.shape)):
            return
        problem = f"{Shape(sizes)}, it is {made.shape}"
    yield Note(
        "IR728", f"Parameter {inner.label} of <{tag}> is given {problem}", entry.element, node,
        "external_port_id", "the line names the wrong port or the wrong Parameter",
    )  # fmt: skip


def unsliced(node: LooseLayer, entry: Entry) -> Iterator[Note]:
    """A line that says how to slice, and not along which axis."""
    named = [name for name in _NUMBERS if name in entry.element.attrib and name != "axis"]
    if named and not any(known.near(str(name), ("axis",)) for name in entry.element.attrib):
        verb = "is taken as a whole" if entry.kind == "input" else "gives its last value only"
        yield Note(
            "IR211", f"<{entry.kind}> of a port map has {listed(named)} and no axis: it {verb}",
            entry.element, node, "axis", "add axis, or remove what belongs to slices",
        )  # fmt: skip


def _direction(start: int, end: int, stride: int, length: int | None) -> str | None:
    if length is None:
        if (start < 0) != (end < 0):
            forward = start >= 0
        elif start == end:
            return f"start and end are both {start}: there is no slice"
        else:
            forward = start < end
    else:
        first = start + length + 1 if start < 0 else start
        last = end + length + 1 if end < 0 else end
        if first == last:
            return f"slices begin and end at {first}: there is none"
        forward = first < last
    if forward != (stride > 0):
        return f"stride {stride} does not lead from start {start} to end {end}"
    return None


def _outer(node: LooseLayer, entry: Entry) -> Tensor | None:
    """What the file says of the outer port of a line."""
    if entry.external is None:
        return None
    if entry.kind == "input":
        if not 0 <= entry.external < len(node.inputs):
            return None
        pin = node.inputs[entry.external]
        fed = node.graph.fed(node, pin)
        return fed if fed.shape.rank else pin.tensor
    given = node.outputs_by_id.get(entry.external)
    return None if given is None else given.tensor


def complete(
    node: LooseLayer, tag: str, graph: LooseGraph, entries: list[Entry]
) -> Iterator[Note]:
    """Each Parameter of the body has one line, and lines of outputs are told apart."""
    bound: dict[LooseLayer, Entry] = {}
    for entry in entries:
        if entry.kind != "input" or entry.inner is None or entry.inner.type != "Parameter":
            continue
        if bound.setdefault(entry.inner, entry) is not entry:
            yield Note(
                "IR712", f"two <input> lines fill Parameter {entry.inner.label} of <{tag}>",
                entry.element, node, "internal_layer_id", "each Parameter has one line",
            )  # fmt: skip
    for inner in graph.nodes:
        if inner.type == "Parameter" and inner not in bound:
            yield Note(
                "IR713", f"no <input> line of layer {node.label} fills Parameter {inner.label} of "
                f"<{tag}>", node.parts[BODIES[tag]], node, "internal_layer_id",
                f'add an <input> with internal_layer_id="{inner.id}"',
            )  # fmt: skip
    seen: dict[int, Entry] = {}
    outputs = [e for e in entries if e.kind == "output" and e.purpose is None]
    for entry in outputs:
        if entry.external is not None and seen.setdefault(entry.external, entry) is not entry:
            yield Note(
                "IR714", f"two <output> lines have external_port_id {entry.external}",
                entry.element, node, "external_port_id", "each output has one line",
            )  # fmt: skip
    if len(outputs) != len(node.outputs):
        first = node.outputs[0].element if node.outputs else node.parts[BODIES[tag]]
        yield Note(
            "IR715" if len(outputs) < len(node.outputs) else "IR730",
            f"{len(outputs)} <output> lines in <{BODIES[tag]}>, {len(node.outputs)} output ports",
            first, node, None, "each output port has one line",
        )  # fmt: skip
    ids = {pin.id for pin in node.outputs}
    named = {entry.external for entry in outputs}
    if len(outputs) > 1 and ids & named and named - ids:
        for entry in outputs:
            if entry.external not in ids:
                yield Note(
                    "IR716", f"external_port_id {entry.external} is no output port "
                    f"({listed(node.outputs, text=lambda pin: str(pin.id))}); outputs are sorted "
                    "by it",
                    entry.element, node, "external_port_id",
                )  # fmt: skip


def outer_inputs(node: LooseLayer, kind: str, maps: dict[str, list[Entry]]) -> Iterator[Note]:
    """Each outer input goes into a body."""
    if not maps:
        return
    first = {"TensorIterator": 0, "Loop": 2, "If": 1}[kind]
    used = {
        entry.external for entries in maps.values() for entry in entries if entry.kind == "input"
    }
    for pin in node.inputs[first:]:
        if pin.index not in used:
            yield Note(
                "IR717", f"input {pin.index} (port {pin.id}) goes into no body", pin.element, node,
                hint=f'no <input> line has external_port_id="{pin.index}"',
            )  # fmt: skip


def condition(node: LooseLayer, kind: str) -> Iterator[Note]:
    """The input that decides is boolean: OpenVINO takes the first byte of others."""
    index = {"If": 0, "Loop": 1}.get(kind)
    if index is None or index >= len(node.inputs):
        return
    pin = node.inputs[index]
    given = node.graph.fed(node, pin).type
    if given not in (ElementType.BOOLEAN, ElementType.DYNAMIC):
        yield Note(
            "IR731", f"the condition of {kind} is {given}, it must be boolean", pin.element, node,
            hint="put a Convert to boolean before it",
        )  # fmt: skip


def branches(node: LooseLayer, maps: dict[str, list[Entry]]) -> Iterator[Note]:
    """Both branches of an If give the same outputs."""
    if len(maps) < 2:
        return
    then, other = (
        {e.external: e for e in maps[tag] if e.kind == "output"}
        for tag in ("then_body", "else_body")
    )
    for one, two, tag in ((then, other, "else_port_map"), (other, then, "then_port_map")):
        for external, entry in one.items():
            if external not in two and external is not None:
                yield Note(
                    "IR718",
                    f"output {external} is not in <{tag}>: each branch gives every output",
                    entry.element, node, "external_port_id",
                )  # fmt: skip
    for entries in maps.values():
        for entry in entries:
            if entry.sliced:
                yield Note(
                    "IR719", "axis on a line of If, which takes and gives no slices",
                    entry.element, node, "axis",
                )  # fmt: skip


def back_edges(node: LooseLayer, kind: str, entries: list[Entry]) -> Iterator[Note]:
    """What one turn hands to the next."""
    graph = node.bodies["body"]
    section = node.parts.get("back_edges")
    lines = {e.inner: e for e in entries if e.kind == "input" and e.inner is not None}
    targets: dict[LooseLayer, etree._Element] = {}
    origins: set[LooseLayer] = set()
    for edge in () if section is None else section:
        if edge.tag != "edge":
            yield Note("IR208", f"<{tag_of(edge)}> in <back_edges> is not read", edge, node)
            continue
        for name, wanted, code in (
            ("from-layer", "Result", "IR720"),
            ("to-layer", "Parameter", "IR721"),
        ):
            text = edge.get(name)
            number = whole(text)
            if number is None:
                yield Note(
                    "IR211" if text is None else "IR703",
                    f"back edge has {f'{name}={shown(text)}' if text else f'no {name}'}", edge,
                    node, name,
                )  # fmt: skip
                continue
            inner = graph.by_id.get(number)
            if inner is None or inner.type != wanted:
                is_ = "is not there" if inner is None else f"is a {inner.type}"
                so = "" if wanted == "Result" else ": the recurrence is lost"
                yield Note(
                    code, f"{name} {number} of a back edge {is_}; it names a {wanted}{so}", edge,
                    node, name,
                )  # fmt: skip
            elif wanted == "Result":
                origins.add(inner)
            elif inner in targets:
                yield Note(
                    "IR722", f"two back edges fill Parameter {inner.label}", edge, node, name
                )
            else:
                targets[inner] = edge
                line = lines.get(inner)
                if line is not None and (line.sliced or line.purpose is not None):
                    what = "sliced" if line.sliced else "the iteration counter"
                    yield Note(
                        "IR721", f"a back edge goes to Parameter {inner.label}, which is {what}: "
                        "the recurrence is lost", edge, node, name,
                    )  # fmt: skip
    yield from lost(node, entries, targets, origins)


def lost(
    node: LooseLayer,
    entries: list[Entry],
    targets: dict[LooseLayer, etree._Element],
    origins: set[LooseLayer],
) -> Iterator[Note]:
    """Results that go nowhere, and states that are never renewed."""
    graph = node.bodies["body"]
    given = {entry.inner for entry in entries if entry.kind == "output"}
    constant = {
        entry.inner: None
        for entry in entries
        if entry.kind == "input" and not entry.sliced and entry.inner is not None
        and entry.purpose is None and entry.inner not in targets and entry.inner.outputs
    }  # fmt: skip
    states = States(constant)
    for inner in graph.by_type.get("Result", []):
        if inner in given or inner in origins:
            continue
        state = states.like(_outer_of(inner, inner.inputs[0])) if inner.inputs else None
        if state is None:
            yield Note(
                "IR732", f"Result {inner.label} of the body goes to no output and no back edge",
                inner.element, node, hint="remove it, if nothing is missing",
            )  # fmt: skip
        else:
            yield Note(
                "IR723", f"Result {inner.label} of the body goes to no output and no back edge, "
                f"and Parameter {state.label}, of its type and shape, is the same in every turn",
                inner.element, node, hint="an <output> line or a back edge is missing",
            )  # fmt: skip
    for entry in entries:
        result = entry.inner
        if entry.kind != "output" or entry.sliced or result is None or result in origins:
            continue
        if entry.purpose is not None or not result.inputs or result.type != "Result":
            continue
        made = _outer_of(result, result.inputs[0])
        if made.shape.rank is None and targets:
            continue  # scalars are of one kind too easily
        state = states.like(made)
        if state is not None:
            yield Note(
                "IR724", f"only the last turn of Result {result.label} is given, and no back edge "
                f"hands it on; Parameter {state.label} has its type and shape and stays as it was",
                node.parts.get("back_edges", entry.element), node,
                hint=f'<back_edges> lacks <edge from-layer="{result.id}" to-layer="{state.id}" />',
            )  # fmt: skip


class States:
    """Parameters that are the same in every turn, by what the file says of them."""

    def __init__(self, parameters: Iterable[LooseLayer]) -> None:
        #: The first of each shape and type, with its place in the order.
        self._first: dict[str, dict[ElementType, tuple[int, LooseLayer]]] = {}
        for place, node in enumerate(parameters):
            tensor = node.outputs[0].tensor
            self._first.setdefault(str(tensor.shape), {}).setdefault(tensor.type, (place, node))

    def like(self, tensor: Tensor) -> LooseLayer | None:
        """The first that may hold the same as a Result."""
        found = self._first.get(str(tensor.shape), {})
        if not tensor.type.is_dynamic:
            found = {k: row for k, row in found.items() if k.is_dynamic or k == tensor.type}
        return min(found.values(), key=lambda row: row[0])[1] if found else None


def loop(node: LooseLayer, entries: list[Entry]) -> Iterator[Note]:
    """What only Loop has."""
    single = [
        (pin, "trip count" if pin.index == 0 else "condition", _outer_of(node, pin))
        for pin in node.inputs[:2]
    ]
    for entry in entries:
        if entry.kind == "output" and entry.purpose is not None and entry.inner is not None:
            single += [
                (pin, "condition of the body", _outer_of(entry.inner, pin))
                for pin in entry.inner.inputs
            ]
    for pin, what, tensor in single:
        if (tensor.shape.rank or 0) > 1:
            yield Note(
                "IR727", f"the {what} of Loop is one value, here comes {tensor}", pin.element, node
            )
    for kind, purpose in _PURPOSES.items():
        found = [e for e in entries if e.kind == kind and (e.purpose or "").lower() == purpose]
        if len(found) > 1:
            yield Note(
                "IR725", f"two <{kind}> lines have the purpose {purpose}", found[1].element, node,
                "purpose",
            )  # fmt: skip
        if kind == "output" and not found:
            yield Note(
                "IR726", "no <output> line has the purpose execution_condition, OpenVINO refuses "
                "the Loop", node.parts.get("port_map", node.element), node, "purpose",
                'add <output external_port_id="-1" internal_layer_id="…" '
                'purpose="execution_condition" />',
            )  # fmt: skip
