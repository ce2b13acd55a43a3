"""What changed from one model to another.

Example::

    found = ir.diff("before.xml", "after.xml")
    if found:
        print(found)                # reads like a review
    for difference in found: ...    # each with its place, what it was and what it is
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from ...layers.memory import without_collection
from ...schemas import Shape
from ...schemas.printing import Table, counted, printable, printable_name
from ..document import BODIES, Graph, Info, Layer, Model, Port, refuse_execution_graph
from ..faces import Shown
from ..opening import ModelLike, opened
from .constants import Distance, distance
from .fingerprints import Anatomy, Numbers, body_roles, declared, flattened, role_texts
from .matching import Matching, match, stored
from .unknown import unknown_parts

#: Names that are listed of many that are alike.
_SHOWN = 3
#: Signs before what came, what went and what changed.
_SIGNS = {"added": "+", "removed": "-"}
#: What the element of a port usually says.
_PORT = frozenset({"id", "names", "precision"})


@dataclass(frozen=True)
class Place:
    """A layer of a model; ``body`` names the layers around it, from the outermost."""

    id: int
    name: str
    type: str
    version: str
    body: tuple[str, ...] = ()

    def __str__(self) -> str:
        kind = f"{self.type} {self.version}".strip()
        inside = "".join(f" in {name}" for name in reversed(self.body))
        return f'{self.id} "{self.name}" ({kind}){inside}'


@dataclass(frozen=True)
class Difference:
    """One difference: of what kind, at which layer of either model, what it was and what it is.

    Kinds are ``model``, ``added``, ``removed``, ``type``, ``attribute``, ``input``, ``ports``,
    ``element type``, ``shape``, ``constant``, ``storage``, ``wiring`` and ``rt_info``; of notes
    ``name``, ``order``, ``version`` and ``tensor name``.
    """

    kind: str
    #: The layer in the first and in the second model; none of both for the model itself.
    one: Place | None
    two: Place | None
    #: Which attribute, input, output or key of further information.
    what: str = ""
    before: str | None = None
    after: str | None = None
    #: Whether it follows from a difference before it.
    follows: bool = False
    distance: Distance | None = None
    #: Of a layer that came or went: what feeds it, and what it feeds.
    fed_by: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind in ("added", "removed"):
            ends = [", ".join(map(printable_name, names)) for names in (self.fed_by, self.feeds)]
            text = f"fed by {ends[0] or 'nothing'}, feeds {ends[1] or 'nothing'}"
        elif self.distance is not None:
            same = self.before == self.after
            text = f"{self.distance}" if same else f"{self.before} → {self.after}: {self.distance}"
        else:
            before = "nothing" if self.before is None else self.before
            after = "nothing" if self.after is None else self.after
            text = f"{before} → {after}"
        return f"{self.what}: {text}" if self.what else text


@dataclass(repr=False)
class Differences(Shown, Sequence[Difference]):
    """What changed, in the order in which the models compute; true where anything did."""

    one: str
    two: str
    #: Those that mean something, and those of ids, order and names.
    found: list[Difference] = field(default_factory=list)
    notes: list[Difference] = field(default_factory=list)
    #: How many layers were paired.
    paired: int = 0
    #: The models, and their layers that were paired, those of bodies too.
    models: tuple[Model, Model] | None = field(default=None, repr=False, compare=False)
    pairs: list[tuple[Layer, Layer]] = field(default_factory=list, repr=False, compare=False)
    #: The layers at which each of ``found`` stands.
    ends: list[tuple[Layer | None, Layer | None]] = field(
        default_factory=list, repr=False, compare=False
    )

    def __getitem__(self, index: Any) -> Any:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.found)

    def __str__(self) -> str:
        return "\n".join(review_lines(self))

    def locate(self, one: Layer | None, two: Layer | None) -> None:
        """Say at which layers the differences stand that were found since."""
        self.ends += [(one, two)] * (len(self.found) - len(self.ends))

    def as_table(self) -> Table:
        """What changed where."""
        return Table(
            f"{counted(len(self.found), 'difference')} from {printable(self.one)} to "
            f"{printable(self.two)}, "
            f"{counted(self.paired, 'layer')} paired, {counted(len(self.notes), 'note')}",
            ("what", "layer", "from and to"),
            ((x.kind, str(x.two or x.one or "the model"), str(x)) for x in self.found),
            len(self.found),
            "print(differences)",
        )

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "one": self.one,
            "two": self.two,
            "paired": self.paired,
            "differences": [asdict(one) for one in self.found],
            "notes": [asdict(one) for one in self.notes],
        }


@without_collection()
def diff(one: ModelLike, two: ModelLike) -> Differences:
    """Tell what changed from one model to another.

    Layers are paired by what they compute, whatever their ids, order and names; these, and where
    bytes stand in the .bin, are no difference but notes.
    """
    first, second = opened(one), opened(two)
    for model in (first, second):
        refuse_execution_graph(model)
    found = Differences(_called(first, one, "one"), _called(second, two, "two"))
    found.models = first, second
    _compare_models(first, second, found)
    found.locate(None, None)
    _compare_graphs(first, second, found, (), Numbers(first, second), None)
    return found


def _called(model: Model, given: ModelLike, otherwise: str) -> str:
    if not isinstance(given, Model):
        return os.fspath(given)
    return model.place or model.name or otherwise


def _compare_models(one: Model, two: Model, found: Differences) -> None:
    """What the models say of themselves."""
    if one.version != two.version:
        before, after = str(one.version), str(two.version)
        found.found.append(Difference("model", None, None, "IR version", before, after))
    if one.name != two.name:
        found.notes.append(Difference("name", None, None, "model", one.name, two.name))
    for part in ("meta_data", "quantization_parameters", "pre_process"):
        found.found += _info(part, getattr(one, part), getattr(two, part), None, None)


def _unknown(
    one: Layer | Graph, two: Layer | Graph, left: Place | None, right: Place | None
) -> Iterator[Difference]:
    """What two elements say differently that no rule knows."""
    before, after = unknown_parts(one), unknown_parts(two)
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield Difference("attribute", left, right, key, before.get(key), after.get(key))


def _info(
    part: str, one: Info | None, two: Info | None, left: Place | None, right: Place | None
) -> Iterator[Difference]:
    """What two trees of further information say differently."""
    before, after = dict(flattened(one)), dict(flattened(two))
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            what = f"{part} {key}"
            yield Difference("rt_info", left, right, what, before.get(key), after.get(key))


def _compare_graphs(
    one: Graph,
    two: Graph,
    found: Differences,
    body: tuple[str, ...],
    numbers: Numbers,
    roles: tuple[Mapping[int, object], Mapping[int, object]] | None,
) -> Matching:
    matching = match(one, two, numbers, roles)
    found.paired += len(matching.forth)
    found.pairs += matching.pairs
    _Comparison(matching, found, body, numbers).run()
    return matching


class _Comparison:
    """The differences of two graphs whose layers are paired."""

    def __init__(
        self, matching: Matching, found: Differences, body: tuple[str, ...], numbers: Numbers
    ) -> None:
        self.matching, self.found, self.body, self.numbers = matching, found, body, numbers
        #: Outputs of the first graph that are declared otherwise in the second.
        self.redeclared: set[int] = set()

    def run(self) -> None:
        """Go through both graphs in the order in which they compute."""
        one, two = self.matching.one, self.matching.two
        for layer in one.layers:
            other = self.matching.forth.get(layer.id)
            if other is None:
                self._alone("removed", one, layer)
            else:
                self._pair(layer, other)
        for layer in self.matching.added:
            self._alone("added", two, layer)
        # What a body says of itself is told at the layer around it.
        self.found.found += _info("rt_info", one.graph.rt_info, two.graph.rt_info, None, None)
        self.found.found += _unknown(one.graph, two.graph, None, None)
        if self.body:
            return
        self.found.locate(None, None)
        for kind in ("Parameter", "Result"):
            before = [
                x for x in one.graph.layers if x.type == kind and x.id in self.matching.forth
            ]
            after = [x for x in two.graph.layers if x.type == kind and x.id in self.matching.back]
            if [self.matching.forth[x.id].id for x in before] != [x.id for x in after]:
                word = "inputs" if kind == "Parameter" else "outputs"
                names = [", ".join(x.name for x in layers) for layers in (before, after)]
                note = Difference("order", None, None, word, names[0], names[1])
                self.found.notes.append(note)

    def _place(self, layer: Layer) -> Place:
        return Place(layer.id, layer.name, layer.type, layer.version, self.body)

    def _alone(self, kind: str, anatomy: Anatomy, layer: Layer) -> None:
        """A layer that only one of them has."""
        place = self._place(layer)
        fed = tuple(source[0].name for source in anatomy.sources[layer.id] if source is not None)
        feeds = tuple(dict.fromkeys(wire.user.name for wire in anatomy.uses[layer.id]))
        left, right = (place, None) if kind == "removed" else (None, place)
        before = after = None
        if layer.type == "Convert" and stored(anatomy, layer).is_constant:
            before, after = (None, "Convert") if left is None else ("Convert", None)
            kind = "storage"
        what = "of a constant" if kind == "storage" else ""
        self.found.found.append(
            Difference(kind, left, right, what, before, after, fed_by=fed, feeds=feeds)
        )
        self.found.locate(*((layer, None) if right is None else (None, layer)))

    def _pair(self, x: Layer, y: Layer) -> None:
        left, right = self._place(x), self._place(y)
        before = len(self.found.found)
        if self.matching.one.local[x.id] != self.matching.two.local[y.id]:
            self._operation(x, y, left, right)
        if not self.matching.same(x, y):
            self._inputs(x, y, left, right)
        elif x.version != y.version:
            note = Difference("version", left, right, "", x.version, y.version)
            self.found.notes.append(note)
        if x.bodies or y.bodies:
            self._bodies(x, y, left, right)
        if x.type == y.type == "Parameter":
            self._attributes(x, y, left, right)
        self.found.found += _unknown(x, y, left, right)
        own = len(self.found.found) > before
        self._ports(x, y, left, right, own)
        if x.rt_info is not None or y.rt_info is not None:
            self.found.found += _info("rt_info", x.rt_info, y.rt_info, left, right)
        self.found.locate(x, y)
        self._names(x, y, left, right)

    def _add(
        self,
        kind: str,
        left: Place,
        right: Place,
        what: str,
        before: object,
        after: object,
        **more: Any,
    ) -> None:
        one, two = (None if said is None else str(said) for said in (before, after))
        self.found.found.append(Difference(kind, left, right, what, one, two, **more))

    # The operation.

    def _operation(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        if x.is_constant and y.is_constant:
            self._constant(x, y, left, right)
            return
        specs = [self.numbers.operation(layer)[0] for layer in (x, y)]
        said = [f"{layer.type} {layer.version}" for layer in (x, y)]
        # Of the same operation only the attributes differ, those that a default is for too.
        if specs[0] != specs[1] and said[0] != said[1]:
            self._add("type", left, right, "operation", *said)
        self._attributes(x, y, left, right)
        counts = [len(layer.port_ids("output")) for layer in (x, y)]
        if counts[0] != counts[1]:
            self._add("ports", left, right, "outputs", *counts)

    def _attributes(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        before, after = (dict(self.numbers.operation(layer)[1]) for layer in (x, y))
        for name in dict.fromkeys([*before, *after]):
            if before.get(name) != after.get(name):
                self._add("attribute", left, right, name, before.get(name), after.get(name))

    def _constant(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        before, after = (
            f"{layer.data.get('element_type')}[{layer.data.get('shape', '').replace(' ', '')}]"
            for layer in (x, y)
        )
        apart = distance(x, y)
        if apart is None and before == after:
            before, after = (
                "values"
                if layer.has_value
                else f"values that are not there (no .bin), at {layer.data.get('offset')}"
                for layer in (x, y)
            )
        self._add("constant", left, right, "value", before, after, distance=apart)

    def _bodies(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        for tag in BODIES:
            one, two = x.bodies.get(tag), y.bodies.get(tag)
            if one is None or two is None:
                if one is not two:
                    had, has = (None if body is None else "a body" for body in (one, two))
                    self._add("wiring", left, right, tag, had, has)
                continue
            self.found.locate(x, y)
            inner = (*self.body, x.name)
            roles = body_roles(x, tag), body_roles(y, tag)
            # Ends are those of the same role; where roles were changed, those of the same name.
            tries = [self._body((x, y), tag, inner, roles)]
            if tries[0].found:
                tries.append(self._body((x, y), tag, inner, None))
            best = min(tries, key=lambda one: sum(not each.follows for each in one.found))
            self.found.paired += best.paired
            self.found.pairs += best.pairs
            self.found.notes += best.notes
            wired = len(best.found) - len(best.ends)
            self.found.found += best.found[: len(best.ends)]
            self.found.ends += best.ends
            for told in best.found[len(best.found) - wired :]:
                what = f"{tag}: {told.what}"
                self._add(told.kind, left, right, what, told.before, told.after)

    def _body(
        self,
        layers: tuple[Layer, Layer],
        tag: str,
        inner: tuple[str, ...],
        roles: tuple[Mapping[int, object], Mapping[int, object]] | None,
    ) -> Differences:
        """The differences of two bodies; at last how they are wired to the layers around them."""
        found = Differences("", "")
        one, two = (layer.bodies[tag] for layer in layers)
        matching = _compare_graphs(one, two, found, inner, self.numbers, roles)
        said = [role_texts(layer, tag) for layer in layers]
        held = [body_roles(layer, tag) for layer in layers]
        # What stands in either for a layer: the number of its pair.
        names = [{x: number for number, x in enumerate(matching.forth)},
                 {y.id: number for number, y in enumerate(matching.forth.values())}]  # fmt: skip
        maps = [
            {
                (names[side].get(key, said[side][key]), role): said[side][key]
                for key, role in held[side].items()
            }
            for side in (0, 1)
        ]
        turns = [
            {
                tuple(names[side].get(end, -1) for end in (edge.from_layer, edge.to_layer)): (
                    f"{_inner_name(layer, tag, edge.from_layer)} to "
                    f"{_inner_name(layer, tag, edge.to_layer)}"
                )
                for edge in layer.back_edges
            }
            for side, layer in enumerate(layers)
        ]
        for what, (before, after) in (("port map", maps), ("back edges", turns)):
            if before.keys() != after.keys():
                had, has = (
                    "; ".join(sorted(text for key, text in one.items() if key not in other))
                    for one, other in ((before, after), (after, before))
                )
                found.found.append(
                    Difference("wiring", None, None, what, had or None, has or None)
                )
        return found

    # What surrounds it.

    def _inputs(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        before, after = self.matching.one.sources[x.id], self.matching.two.sources[y.id]
        if len(before) != len(after):
            self._add("ports", left, right, "inputs", len(before), len(after))
        for index in range(max(len(before), len(after))):
            a = before[index] if index < len(before) else None
            b = after[index] if index < len(after) else None
            if a is None and b is None:
                continue
            follows = False
            if a is not None and b is not None:
                other = self.matching.forth.get(a[0].id)
                known = self.matching.back.get(b[0].id)
                if a[1] == b[1] and (other is b[0] or self.matching.same(a[0], b[0])):
                    continue
                # What came or went between is told as such.
                follows = other is None or known is None
            self._add("input", left, right, f"input {index}", _source(a), _source(b),
                      follows=follows)  # fmt: skip

    def _ports(self, x: Layer, y: Layer, left: Place, right: Place, own: bool) -> None:
        """What the ports declare; what follows from a difference before is marked so."""
        fed = any(
            source is not None and source[0].id in self.redeclared
            for source in self.matching.one.sources[x.id]
        )
        for side in ("input", "output"):
            if (
                declared(x, side) == declared(y, side)
                and _is_plain(x, side)
                and _is_plain(y, side)
            ):
                continue
            ones, twos = (getattr(layer, f"{side}s") for layer in (x, y))
            for index, (a, b) in enumerate(zip(ones, twos, strict=False)):
                if a.precision == b.precision and a.dims == b.dims and not (
                    a.rt_info or b.rt_info or a.extra or b.extra
                ):  # fmt: skip
                    continue
                what = f"{side} {index}"
                follows = own or fed
                if side == "input":
                    source = self.matching.one.sources[x.id][index]
                    follows = own or (source is not None and source[0].id in self.redeclared)
                if a.dims != b.dims:
                    self._add("shape", left, right, what, _dims(a), _dims(b), follows=follows)
                if a.type != b.type:
                    said = [a.precision, b.precision]
                    self._add("element type", left, right, what, *said, follows=follows)
                if side == "output" and (a.dims != b.dims or a.type != b.type):
                    self.redeclared.add(x.id)
                if a.rt_info is not None or b.rt_info is not None:
                    part = f"{what} rt_info"
                    self.found.found += _info(part, a.rt_info, b.rt_info, left, right)
                if a.extra != b.extra:
                    self._add("attribute", left, right, what, a.extra, b.extra)

    def _names(self, x: Layer, y: Layer, left: Place, right: Place) -> None:
        notes = self.found.notes
        if x.name != y.name:
            notes.append(Difference("name", left, right, "", x.name, y.name))
        before, after = x.tensor_names(), y.tensor_names()
        for index, (a, b) in enumerate(zip(before, after, strict=False)):
            if set(a) != set(b):
                had, has = (", ".join(names) or None for names in (a, b))
                notes.append(Difference("tensor name", left, right, f"output {index}", had, has))
        had, has = x.output_names, y.output_names
        if had != has:
            notes.append(Difference("tensor name", left, right, "output names", had, has))


def _is_plain(layer: Layer, side: str) -> bool:
    """Whether ports say nothing but types, sizes and names, as far as that is seen at once."""
    if f"{side}s" in layer.parts_read or layer.element is None:
        return False
    section = layer.element.find(side)
    return section is None or not any(set(port.keys()) - _PORT for port in section)


def _inner_name(layer: Layer, tag: str, number: int) -> str:
    """The name of a layer of a body."""
    names = (one.name for one in layer.bodies[tag].layers if one.id == number)
    return f'"{next(names, number)}"'


def _source(source: tuple[Layer, int] | None) -> str | None:
    if source is None:
        return None
    layer, index = source
    return f'"{layer.name}"' + (f" output {index}" if len(layer.port_ids("output")) > 1 else "")


def _dims(port: Port) -> str:
    return f"[{Shape(port.shape).spelling}]"


def counts(found: Differences) -> Counter[str]:
    """How many differences there are of each kind, without those that follow."""
    return Counter(one.kind for one in found if not one.follows)


# A review: layer by layer, what follows only counted.


def review_lines(
    found: Differences, *, everything: bool = False, names: bool = False
) -> Iterator[str]:
    """The lines of a review.

    Args:
        found: What to tell.
        everything: Also what follows from other differences.
        names: Also the notes: names, order, versions of the same operation.
    """
    following = [one for one in found if one.follows]
    shown = [one for one in found if everything or not one.follows]
    stores = [one for one in shown if one.kind == "storage" and not everything]
    shown = [one for one in shown if one not in stores]
    if not found.found:
        layers = counted(found.paired, "layer")
        yield f"no difference between {found.one} and {found.two} ({layers})"
    else:
        yield f"{found.one} → {found.two}: {counted(len(found) - len(following), 'difference')}"
    for _, group in groupby(shown, key=lambda one: (one.one, one.two)):
        yield from _layer(list(group))
    if stores:
        yield "~ how constants are stored"
        for sign, side in (("+", 1), ("-", 0)):
            some = [one for one in stores if (one.one, one.two)[side] is not None]
            if some:
                users = [name for one in some for name in one.feeds][:_SHOWN]
                yield f"    {sign} {counted(len(some), 'Convert')} before {', '.join(users)}" + (
                    ", …" if len(some) > _SHOWN else ""
                )
    if following and not everything:
        places = {one.one or one.two for one in following}
        yield f"  {len(following)} more follow from these, at {counted(len(places), 'layer')}"
    if names:
        yield from _notes(found.notes)


def _layer(group: list[Difference]) -> Iterator[str]:
    """All that is said of one layer."""
    first = group[0]
    place = first.one or first.two
    if place is None:
        yield "~ the model"
    elif first.kind in _SIGNS or first.one is None or first.two is None:
        yield f"{_SIGNS.get(first.kind, '~')} layer {printable(place)}"
    else:
        yield f"~ layer {printable(place)}{_moved(first.one, first.two)}"
    for one in group:
        yield f"    {printable(one, 2000)}" + (" (follows)" if one.follows else "")


def _moved(one: Place, two: Place) -> str:
    """Where the second model has it under another name or id."""
    if one.name != two.name:
        return printable(f', there {two.id} "{two.name}"')
    return ""


def _notes(notes: Iterable[Difference]) -> Iterator[str]:
    rows = list(notes)
    if rows:
        yield f"{counted(len(rows), 'note')} of what makes no difference"
    for one in rows:
        place = "" if one.one is None else f"layer {one.one.id}: "
        yield f"    {printable(f'{place}{one.kind} {one}', 2000)}"
