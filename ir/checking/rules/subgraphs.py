"""IR7xx: the bodies of TensorIterator, Loop and If, and how they are wired."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from ....schemas import ElementType, Tensor
from ....schemas.printing import shown
from ....schemas.shapes import compatible
from ...document import BODIES, BODIES_OF
from ...inference import PURPOSES
from . import known
from .loose import LooseGraph, LooseLayer, LooseModel, LoosePort, whole
from .note import Note, listed
from .note import tag as tag_of
from .port_maps import Entry, ends, fits, numbers, parts, slices, turns, unsliced

if TYPE_CHECKING:
    from lxml import etree


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
    cut = []
    for entry in entries:
        yield from numbers(node, kind, entry)
        yield from ends(node, kind, tag, entry)
        if entry.sliced and kind != "If":
            told = [*slices(node, entry), *parts(node, entry)]
            yield from told
            if all(note.code == "IR711" for note in told):
                cut.append(entry)
        elif not entry.sliced:
            yield from unsliced(node, entry)
        yield from fits(node, tag, entry)
    if kind == "TensorIterator":
        yield from turns(node, cut)
    yield from complete(node, tag, graph, entries)


def _outer_of(node: LooseLayer, pin: LoosePort) -> Tensor:
    """What comes into an input."""
    return node.graph.fed(node, pin)


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
        origin: LooseLayer | None = None
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
                origin = inner
            elif inner in targets:
                yield Note(
                    "IR722", f"two back edges fill Parameter {inner.label}", edge, node, name
                )
            else:
                targets[inner] = edge
                yield from handed(node, kind, edge, origin, inner)
                line = lines.get(inner)
                if line is not None and (line.sliced or line.purpose is not None):
                    what = "sliced" if line.sliced else "the iteration counter"
                    yield Note(
                        "IR721", f"a back edge goes to Parameter {inner.label}, which is {what}: "
                        "the recurrence is lost", edge, node, name,
                    )  # fmt: skip
    yield from lost(node, entries, targets, origins)


def handed(
    node: LooseLayer,
    kind: str,
    edge: etree._Element,
    origin: LooseLayer | None,
    target: LooseLayer,
) -> Iterator[Note]:
    """A back edge hands on what the Parameter was made for; in a Loop sizes may change."""
    if origin is None or not origin.inputs or target.op is None:
        return
    given, made = _outer_of(origin, origin.inputs[0]), target.op.infer()[0]
    problem = None
    if not (given.type.is_dynamic or made.type.is_dynamic) and given.type is not made.type:
        problem = f"{given.type}, it is {made.type}"
    elif given.shape.rank and made.shape.rank:
        alike = given.shape.rank == made.shape.rank
        if alike and kind == "TensorIterator":
            alike = all(map(compatible, given.shape, made.shape))
        if not alike:
            problem = f"{given.shape}, it is {made.shape}"
    if problem is not None:
        yield Note(
            "IR728", f"a back edge gives Parameter {target.label} {problem}", edge, node,
            "to-layer", "the edge names the wrong Result or the wrong Parameter",
        )  # fmt: skip


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


#: What OpenVINO's CPU makes i32, of which it takes a trip count.
_COUNTS = frozenset(map(ElementType, ("i16", "i32", "i64", "u16", "u32", "u64")))
#: What it takes a body's condition of, bytes.
_CONDITIONS = frozenset({ElementType.BOOLEAN, ElementType.U8})


def of_type(
    code: str, node: LooseLayer, row: tuple[LoosePort, str, Tensor], types: Container[ElementType],
    wanted: str, made: str,
) -> Iterator[Note]:  # fmt: skip
    """A Loop is told when to end in a type that it takes."""
    pin, what, given = row
    if not given.type.is_dynamic and given.type not in types:
        yield Note(
            code, f"the {what} of Loop is {given.type}, it must be {wanted}", pin.element, node,
            hint=f"put a Convert to {made} before it, or mend the edge that leads there",
        )  # fmt: skip


def loop(node: LooseLayer, entries: list[Entry]) -> Iterator[Note]:
    """What only Loop has."""
    single = [
        (pin, "trip count" if pin.index == 0 else "condition", _outer_of(node, pin))
        for pin in node.inputs[:2]
    ]
    if single:
        yield from of_type("IR734", node, single[0], _COUNTS, "i32 or i64", "i64")
    for entry in entries:
        if entry.kind == "output" and entry.purpose is not None and entry.inner is not None:
            decides = [
                (pin, "condition of the body", _outer_of(entry.inner, pin))
                for pin in entry.inner.inputs
            ]
            for row in decides:
                yield from of_type("IR731", entry.inner, row, _CONDITIONS, "boolean", "boolean")
            single += decides
    for pin, what, tensor in single:
        if (tensor.shape.rank or 0) > 1:
            yield Note(
                "IR727", f"the {what} of Loop is one value, here comes {tensor}", pin.element, node
            )
    for kind, purpose in PURPOSES.items():
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
