"""What an operation on a model hands back: the new model, and a report of what was done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...schemas.printing import Table, printable, printable_name
from ..document import Graph, Layer, Model
from ..faces import Shown


class Change(NamedTuple):
    """One thing that was done: its kind in a word, what it was, and at which layer."""

    kind: str
    message: str
    layer: str | None = None
    #: How many things it tells of.
    times: int = 1

    def __str__(self) -> str:
        place = "" if self.layer is None else f'"{printable_name(self.layer)}": '
        return f"{self.kind}: {place}{printable(self.message)}"


class Refusal(NamedTuple):
    """A layer that cannot be brought into the wanted form, and why."""

    layer: str
    operation: str
    reason: str

    def __str__(self) -> str:
        name, operation = printable_name(self.layer), printable_name(self.operation)
        return f'"{name}" ({operation}): {printable(self.reason)}'


@dataclass(repr=False)
class Surgery(Shown):
    """The report of one operation on a model."""

    verb: str
    changes: list[Change] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    #: Layers, bodies included, before and after.
    layers: tuple[int, int] = (0, 0)

    def note(
        self, kind: str, message: str, layer: Layer | str | None = None, *, times: int = 1
    ) -> None:
        """Write down what was done."""
        name = layer.name if isinstance(layer, Layer) else layer
        self.changes.append(Change(kind, message, name, times))

    @property
    def counts(self) -> dict[str, int]:
        """How often each kind of change was made."""
        found: Counter[str] = Counter()
        for change in self.changes:
            found[change.kind] += change.times
        return dict(found)

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "verb": self.verb,
            "layers": {"before": self.layers[0], "after": self.layers[1]},
            "counts": self.counts,
            "changes": [change._asdict() for change in self.changes],
            "refusals": [refusal._asdict() for refusal in self.refusals],
        }

    def as_table(self) -> Table:
        """What was done where, and what could not be."""
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        refused = f", {len(self.refusals)} refused" if self.refusals else ""
        return Table(
            f"{self.verb}: {counts or 'nothing to do'}{refused}; "
            f"{self.layers[0]} layers, now {self.layers[1]}",
            ("what", "layer", "how"),
            [
                *(("refused", one.layer, one.reason) for one in self.refusals),
                *((one.kind, one.layer, one.message) for one in self.changes),
            ],
            len(self.refusals) + len(self.changes),
            "print(report)",
        )

    def __str__(self) -> str:
        lines = [*map(str, self.changes), *(f"cannot: {refusal}" for refusal in self.refusals)]
        return "\n".join([*lines, f"{self.layers[0]} layers, now {self.layers[1]}"])


class Operated(NamedTuple):
    """A new model, and what was done to make it."""

    model: Model
    report: Surgery


def size_of(graph: Graph) -> int:
    """The layers of a graph, those of its bodies included."""
    return sum(1 for _ in graph.everywhere())


__all__ = ["Change", "Operated", "Refusal", "Surgery", "size_of"]
