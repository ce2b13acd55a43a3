"""Which layer of one graph is which of another, whatever their ids, order and names.

Layers are paired by what they compute, then by what becomes of what they compute, then by name,
of whatever type, then by their neighbours: evidence is gone through from the strongest to the
weakest, and what is paired once stays so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping

from ..document import Graph, Layer, split_names
from .fingerprints import Anatomy, Numbers, Wire

#: What a layer is compared by.
Key = Callable[[Anatomy, Layer], Hashable]
#: What an edit turns into no other type, nor another type into it.
_ENDS = ("Const", "Parameter", "Result")


class Matching:
    """The pairs of two graphs, and what of either has none."""

    def __init__(self, one: Anatomy, two: Anatomy) -> None:
        self.one, self.two = one, two
        self.forth: dict[int, Layer] = {}
        self.back: dict[int, Layer] = {}

    def pair(self, left: Layer, right: Layer) -> None:
        """Take two layers for the same."""
        self.forth[left.id], self.back[right.id] = right, left

    @property
    def pairs(self) -> list[tuple[Layer, Layer]]:
        """The pairs in the order in which the first graph computes."""
        return [(x, self.forth[x.id]) for x in self.one.layers if x.id in self.forth]

    @property
    def removed(self) -> list[Layer]:
        """Layers of the first graph that the second has not."""
        return [layer for layer in self.one.layers if layer.id not in self.forth]

    @property
    def added(self) -> list[Layer]:
        """Layers of the second graph that the first has not."""
        return [layer for layer in self.two.layers if layer.id not in self.back]

    def same(self, left: Layer, right: Layer) -> bool:
        """Whether two layers compute the same."""
        return self.one.up[left.id] == self.two.up[right.id]

    def is_certain(self, left: Layer, right: Layer) -> bool:
        """Whether two layers compute the same or have a name in common; else a pair is a guess."""
        if self.same(left, right) or (left.name and left.name == right.name):
            return True
        ones, twos = (
            {name for names in layer.tensor_names() for name in names} for layer in (left, right)
        )
        return bool(ones & twos)

    def takes_the_same(
        self, left: Layer, right: Layer, fixed: tuple[Container[int], Container[int]]
    ) -> bool:
        """Whether what feeds two layers is paired, or ``fixed`` in both, place by place."""
        ones, twos = self.one.sources[left.id], self.two.sources[right.id]
        return len(ones) == len(twos) and all(
            one is two
            if one is None or two is None
            else (one[0].id in fixed[0] and two[0].id in fixed[1])
            or (one[1] == two[1] and self._are_one(one[0], two[0]))
            for one, two in zip(ones, twos, strict=True)
        )

    def is_made_alike(self, left: Layer, right: Layer) -> bool:
        """Whether two expressions are the same operations on constants, whatever these hold."""
        pending, seen = [(left, right)], {(left.id, right.id)}
        while pending:
            x, y = pending.pop()
            if x.is_constant and y.is_constant:
                continue
            ones, twos = self.one.sources[x.id], self.two.sources[y.id]
            if x.type != y.type or len(ones) != len(twos):
                return False
            for one, two in zip(ones, twos, strict=True):
                if one is None or two is None:
                    continue
                if (one[0].id, two[0].id) not in seen:
                    seen.add((one[0].id, two[0].id))
                    pending.append((one[0], two[0]))
        return True

    def _are_one(self, left: Layer, right: Layer) -> bool:
        return self.forth.get(left.id) is right or self.same(left, right)

    def by(
        self,
        key: Key,
        *,
        several: bool = False,
        constants: bool = False,
        among: str | None = None,
    ) -> None:
        """Pair what has an equal key.

        Args:
            key: What is compared.
            several: Pair in the order of the files where more than one on a side has it.
            constants: Constants as well.
            among: Only layers of this type.
        """
        left = _by_key(self.one, self.removed, key, among)
        right = _by_key(self.two, self.added, key, among)
        for found, ones in left.items():
            twos = right.get(found, [])
            # Which of several equal constants is which, their users tell.
            some = several and not (ones[0].is_constant and not constants)
            if some or len(ones) == len(twos) == 1:
                for x, y in zip(ones, twos, strict=False):
                    self.pair(x, y)

    def by_neighbours(self, *, other_types: bool = False) -> None:
        """Pair layers of one type that feed, or are fed by, layers that are paired.

        Those of other types need two such places.
        """
        asked, everywhere = self.removed, True
        while asked or not everywhere:
            if not asked:
                asked, everywhere = self.removed, True
            chosen = _chosen(self._votes(asked, other_types))
            for layer, other in chosen:
                self.pair(layer, other)
            if chosen:
                near = {x.id: x for layer, _ in chosen for x in self.one.around(layer)}
                asked = [x for x in near.values() if x.id not in self.forth]
                everywhere = False
            else:
                asked = []

    def _votes(self, layers: Iterable[Layer], other_types: bool) -> list[tuple[int, Layer, Layer]]:
        """Pairs of one type, by at how many places they touch what is paired, and likeness."""
        votes: list[tuple[int, Layer, Layer]] = []
        for layer in layers:
            count: Counter[int] = Counter()
            met: dict[int, Layer] = {}
            for other in self._neighbours(layer):
                if other.id not in self.back and (
                    other.type == layer.type or (other_types and _may_become(layer, other))
                ):
                    count[other.id] += 4
                    met[other.id] = other
            for number, other in met.items():
                if other.type != layer.type and count[number] < 8:
                    continue
                alike = self.one.local[layer.id] == self.two.local[number]
                votes.append(
                    (count[number] + 2 * alike + (layer.name == other.name), layer, other)
                )
        return votes

    def _neighbours(self, layer: Layer) -> Iterator[Layer]:
        """Layers of the second graph that stand where a layer of the first one stands."""
        for index, source in enumerate(self.one.sources[layer.id]):
            feeder = None if source is None else self.forth.get(source[0].id)
            if source is not None and feeder is not None:
                for wire in self.two.uses[feeder.id]:
                    if (wire.output, wire.place) == (source[1], index):
                        yield wire.user
        for wire in stored_uses(self.one, layer):
            user = self.forth.get(wire.user.id)
            sources = () if user is None else self.two.sources[user.id]
            found = sources[wire.place] if wire.place < len(sources) else None
            if found is not None:
                yield stored(self.two, found[0]) if layer.is_constant else found[0]


def _may_become(layer: Layer, other: Layer) -> bool:
    """Whether an edit may have turned one type into the other."""
    return layer.type not in _ENDS and other.type not in _ENDS


def _chosen(votes: list[tuple[int, Layer, Layer]]) -> list[tuple[Layer, Layer]]:
    """Pairs by their votes, each layer once; the earlier of equals."""
    left: set[int] = set()
    right: set[int] = set()
    chosen: list[tuple[Layer, Layer]] = []
    for _, layer, other in sorted(votes, key=lambda vote: -vote[0]):
        if layer.id not in left and other.id not in right:
            left.add(layer.id)
            right.add(other.id)
            chosen.append((layer, other))
    return chosen


def stored(anatomy: Anatomy, layer: Layer) -> Layer:
    """The constant behind a Convert that brings it from the type in which it is stored."""
    while layer.type == "Convert":
        source = anatomy.sources[layer.id][0] if anatomy.sources[layer.id] else None
        if source is None or source[0].type not in ("Const", "Convert"):
            break
        layer = source[0]
    return layer


def stored_uses(anatomy: Anatomy, layer: Layer) -> Iterator[Wire]:
    """The uses of a layer; of a constant also those of Converts that it feeds."""
    for wire in anatomy.uses[layer.id]:
        yield wire
        if layer.is_constant and wire.user.type == "Convert":
            yield from anatomy.uses[wire.user.id]


def _by_key(
    anatomy: Anatomy, layers: Iterable[Layer], key: Key, among: str | None
) -> dict[Hashable, list[Layer]]:
    """Layers by a key, in the order of the file."""
    found: dict[Hashable, list[Layer]] = defaultdict(list)
    for layer in sorted(layers, key=lambda x: anatomy.places[x.id]):
        if among is None or layer.type == among:
            found[key(anatomy, layer)].append(layer)
    return found


def _alone() -> Hashable:
    """A key that nothing else has."""
    return object()


def _inputs(anatomy: Anatomy, layer: Layer) -> Hashable:
    """What feeds a layer; of layers that nothing feeds, each is different."""
    return anatomy.inputs[layer.id] if anatomy.sources[layer.id] else _alone()


def _inner_name(layer: Layer) -> Hashable:
    """The name of a layer that computes something; of the others each is different."""
    return (layer.type not in _ENDS and layer.name) or _alone()


def _inner_tensor_names(anatomy: Anatomy, layer: Layer) -> Hashable:
    """The names of the tensors of a layer that computes something."""
    return _alone() if layer.type in _ENDS else _tensor_names(anatomy, layer)


#: From the strongest evidence to the weakest; whether one of several may be taken.
_EVIDENCE: list[tuple[Key, bool]] = [
    (lambda a, x: (a.up[x.id], a.fate[x.id], a.detail[x.id], x.name), True),
    (lambda a, x: (a.up[x.id], a.fate[x.id], a.detail[x.id]), True),
    (lambda a, x: (a.up[x.id], a.fate[x.id], x.name), True),
    (lambda a, x: (a.up[x.id], a.fate[x.id]), True),
    (lambda a, x: (a.up[x.id], x.name), True),
    (lambda a, x: (a.local[x.id], a.fate[x.id], x.name), False),
    (lambda a, x: (a.up[x.id], a.detail[x.id]), True),
    (lambda a, x: a.up[x.id], True),
    (lambda a, x: (a.local[x.id], a.fate[x.id]), False),
    (lambda a, x: (x.type, a.fate[x.id], x.name), False),
    (lambda a, x: (x.type, a.fate[x.id]), False),
    (lambda a, x: (x.type, _inputs(a, x), x.name), False),
    (lambda a, x: (x.type, _inner_name(x)), False),
    (lambda a, x: (x.type, _inner_tensor_names(a, x)), False),
    # What one layer was, several may have become, or the other way round: the last has the name.
    (lambda a, x: _inner_name(x), False),
    (lambda a, x: _inner_tensor_names(a, x), False),
    (lambda a, x: (x.type, _inputs(a, x)), False),
    (lambda a, x: (x.type, x.name), False),
]

#: What the Parameters and Results of two bodies are to the layers around them, by their ids.
Roles = tuple[Mapping[int, object], Mapping[int, object]]


def match(
    one: Graph, two: Graph, numbers: Numbers | None = None, roles: Roles | None = None
) -> Matching:
    """Pair the layers of two graphs; of two bodies their ends by their roles."""
    numbers = Numbers() if numbers is None else numbers
    matching = Matching(Anatomy(one, numbers), Anatomy(two, numbers))
    _match_ends(matching, roles)
    for key, several in _EVIDENCE:
        matching.by(key, several=several)
    matching.by_neighbours()
    for key, several in _EVIDENCE:
        if several:
            matching.by(key, several=True, constants=True)
    # A layer that has become one of another type.
    matching.by(lambda a, x: (_inputs(a, x), a.fate[x.id]))
    matching.by_neighbours(other_types=True)
    matching.by(lambda a, x: x.name)
    return matching


def _match_ends(matching: Matching, roles: Roles | None) -> None:
    """Pair Results and Parameters, by name first, and number all layers from there.

    What is remembered under an id is so in both, whatever goes into it.
    """
    one, two = matching.one, matching.two
    if roles is not None:
        held = {id(one): roles[0], id(two): roles[1]}
        for kind in ("Result", "Parameter"):
            matching.by(lambda a, x: held[id(a)].get(x.id) or _alone(), among=kind)
    matching.by(lambda a, x: x.name, among="Result")
    matching.by(_output_names, among="Result")
    matching.by(lambda a, x: x.data.get("variable_id") or _alone(), among="Assign")
    ends = [(x.id, y.id) for x, y in matching.pairs if x.type == "Result"]
    one.look_down({x: number for number, (x, _) in enumerate(ends)})
    two.look_down({y: number for number, (_, y) in enumerate(ends)})
    matching.by(lambda a, x: x.name, among="Parameter")
    matching.by(_tensor_names, among="Parameter")
    matching.by(lambda a, x: (a.fate[x.id], a.detail[x.id]), among="Parameter", several=True)
    matching.by(lambda a, x: a.fate[x.id], among="Parameter", several=True)
    matching.by(lambda a, x: a.detail[x.id], among="Parameter", several=True)
    matching.by(lambda a, x: 0, among="Parameter", several=True)
    starts = [(x.id, y.id) for x, y in matching.pairs if x.type == "Parameter"]
    one.look_up({x: number for number, (x, _) in enumerate(starts)})
    two.look_up({y: number for number, (_, y) in enumerate(starts)})


def _output_names(anatomy: Anatomy, layer: Layer) -> Hashable:
    return frozenset(split_names(layer.output_names)) or _alone()


def _tensor_names(anatomy: Anatomy, layer: Layer) -> Hashable:
    return frozenset(name for names in layer.tensor_names() for name in names) or _alone()
