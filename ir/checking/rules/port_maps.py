"""IR7xx: the lines of port maps, each alone: its numbers, its ends, and what it slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....schemas import Shape, Tensor
from ....schemas.printing import shown
from ....schemas.shapes import compatible
from ...inference import PURPOSES
from . import known
from .document import odd_attributes
from .loose import LooseGraph, LooseLayer, whole
from .note import Note, listed

if TYPE_CHECKING:
    from lxml import etree

_NUMBERS = ("axis", "start", "end", "stride", "part_size")
#: The attributes of a line of a port map, as ``schemas.document.MapEntry`` has them.
KNOWN = frozenset({"external_port_id", "internal_layer_id", "purpose", *_NUMBERS})
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
    yield from odd_attributes(element, what, KNOWN | old, needed, node)
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
        if kind != "Loop" or entry.purpose != PURPOSES[entry.kind]:
            yield Note(
                "IR705", f"purpose={shown(entry.purpose)} on an <{entry.kind}> of {kind}; known "
                f"is {PURPOSES[entry.kind]}, of Loop", entry.element, node, "purpose",
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
        "external_port_id", f'name a port, or add purpose="{PURPOSES[entry.kind]}"',
    )  # fmt: skip


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
    if entry.axis < 0:
        yield Note(
            "IR709", f"axis {entry.axis} of an <{entry.kind}> counts from the end, OpenVINO "
            "counts from 0", entry.element, node, "axis", "write the axis by its number from 0",
        )  # fmt: skip
        return
    shape = _outer(node, entry)
    if shape is None or shape.shape.rank is None:
        _signs = _direction(start, end, stride, None)
        if _signs:
            yield Note("IR708", _signs, entry.element, node, "stride")
        return
    rank = shape.shape.rank
    if entry.axis >= rank:
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


def parts(node: LooseLayer, entry: Entry) -> Iterator[Note]:
    """What a Result gives along the axis is what an output line puts down at each stride."""
    inner, axis, stride = entry.inner, entry.axis, entry.slice["stride"]
    if entry.kind != "output" or inner is None or inner.type != "Result" or not inner.inputs:
        return
    sizes = inner.graph.fed(inner, inner.inputs[0]).shape
    if sizes.rank is None or axis is None or not 0 <= axis < sizes.rank or not stride:
        return
    if not compatible(sizes[axis], abs(stride)):
        yield Note(
            "IR733", f"stride {stride} of an <output>, Result {inner.label} gives {sizes[axis]} "
            f"along axis {axis} in each turn", entry.element, node, "stride",
            f'write stride and part_size="{sizes[axis]}"',
        )  # fmt: skip


def turns(node: LooseLayer, entries: Iterable[Entry]) -> Iterator[Note]:
    """A TensorIterator turns as often as each of its lines has slices.

    They are counted as OpenVINO's CPU does: an end that is 0 or more is not reached itself.
    """
    first: tuple[int, Entry] | None = None
    for entry in entries:
        start, end, stride = (entry.slice[name] for name in ("start", "end", "stride"))
        shape = _inferred(node, entry)
        if shape is None or not shape.rank or entry.axis is None or entry.axis >= shape.rank:
            continue
        length = shape[entry.axis]
        if start is None or end is None or not stride or not isinstance(length, int):
            continue
        number = _count(start, end, stride, length)
        cut = f"start {start}, end {end} and stride {stride} cut"
        axis = f"axis {entry.axis}, which has {length}"
        if number is None:
            yield Note(
                "IR733", f"{cut} no whole number of slices from {axis}", entry.element, node,
                "end", 'start="0" end="-1" is the whole axis',
            )  # fmt: skip
        elif first is None:
            first = number, entry
        elif number != first[0]:
            yield Note(
                "IR733", f"{cut} {number} slices from {axis}, <{first[1].kind}> "
                f"{first[1].external} has {first[0]}: each turn has one of each", entry.element,
                node, "end", 'start="0" end="-1" is the whole axis',
            )  # fmt: skip


def _count(start: int, end: int, stride: int, length: int) -> int | None:
    """The slices that OpenVINO's CPU counts; None where it refuses them."""
    first, last = (place + length + 1 if place < 0 else place for place in (start, end))
    if stride < 0:
        first, last = last, first
    number, rest = divmod(last - first, abs(stride))
    return number if first >= 0 and last <= length and number > 0 and not rest else None


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
    elif outer.shape.rank is None or made.shape.rank is None or (entry.axis or 0) < 0:
        return
    else:
        sizes = list(outer.shape)
        if entry.sliced and entry.axis is not None and entry.axis < len(sizes):
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


def _inferred(node: LooseLayer, entry: Entry) -> Shape | None:
    """The shape of the outer port of a line, that of an output as it is inferred."""
    pin = None if entry.external is None else node.outputs_by_id.get(entry.external)
    found = node.graph.inferred.tensors.get(node, ())
    if entry.kind == "output" and pin is not None and pin.index < len(found):
        return found[pin.index].shape
    outer = _outer(node, entry)
    return None if outer is None else outer.shape
