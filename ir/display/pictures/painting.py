"""What boxes are painted by: numbers or words for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite, prod
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from ....schemas import UsageError
from ....schemas.printing import counted, printable
from ...document import Layer, Port
from ..costs import macs
from ..summaries import declared
from .palette import ramp
from .ranges import shares
from .sheet import Sheet

T = TypeVar("T")

#: What is known of layers: by the layers themselves, or by names, in a body also by paths.
ByLayer: TypeAlias = "Mapping[str, float | str] | Mapping[Layer, float | str]"
Notes: TypeAlias = "Mapping[str, str] | Mapping[Layer, str]"

#: Colours of words that mean something, what says most first; others get colours in turn.
_WORDS: dict[str, tuple[str, str]] = {
    "error": ("#f0776a", "#a3352b"), "removed": ("#f0776a", "#a3352b"),
    "added": ("#86d092", "#2c6e39"),
    "warning": ("#f2b84b", "#8a5f10"), "changed": ("#f2b84b", "#8a5f10"),
    "type": ("#f59a5b", "#94501a"), "attribute": ("#f2b84b", "#8a5f10"),
    "shape": ("#c99af0", "#693a96"), "constant": ("#7fb2f7", "#2b5a9e"),
    "wiring": ("#6fcfc4", "#1d6b62"), "storage": ("#b9c4d3", "#46525f"),
    "rt_info": ("#d9d3c4", "#5a5343"), "info": ("#9cc4f5", "#2d568c"),
    "follows": ("#f7edcf", "#453d28"),
}  # fmt: skip
_TURNS = (
    ("#bcd6fb", "#244a80"), ("#f6e3b0", "#665019"), ("#c6e8bd", "#305c28"),
    ("#f9cfc4", "#7c3a2b"), ("#e6cbf0", "#5f3870"), ("#b9e5dd", "#1c5a50"),
)  # fmt: skip


@dataclass
class Paint:
    """A number or a word for some of the layers, by the layers' numbers."""

    name: str
    kind: Literal["number", "word"]
    values: Mapping[int, float | str]
    unit: str = ""
    #: What is said of a layer in the side panel.
    notes: Mapping[int, str] = field(default_factory=dict)
    #: What the legend says of layers that have no number: they are grey.
    without: str = "not told"

    def colours(self) -> dict[int, tuple[str, str]]:
        """Colours for light and dark, by the layers' numbers."""
        if self.kind == "word":
            turns: dict[str, tuple[str, str]] = dict(_WORDS)
            for word in dict.fromkeys(map(str, self.values.values())):
                turns.setdefault(word, _TURNS[len(turns) % len(_TURNS)])
            return {number: turns[str(word)] for number, word in self.values.items()}
        numbers = np.array([float(value) for value in self.values.values()])
        least, most = numbers.min(initial=0.0), numbers.max(initial=-np.inf)
        if most <= least:
            return dict.fromkeys(self.values, ramp(0.0))
        # Shares of the largest differ by magnitudes: their roots tell more.
        roots = shares(numbers, least, most) ** 0.5
        return {k: ramp(root) for k, root in zip(self.values, roots.tolist(), strict=True)}


def rank(word: str) -> tuple[int, str]:
    """Where a word stands among those that say less and more."""
    known = list(_WORDS)
    return (known.index(word) if word in known else len(known), word)


def bytes_of(sheet: Sheet) -> Paint:
    """The bytes of what each layer gives and of the constants that it reads."""
    held: dict[int, float] = {}
    for number, layer in enumerate(sheet.layers):
        size_text = layer.data.get("size", "")
        if layer.is_constant and size_text.isdecimal() and len(size_text) < 19:
            held[number] = float(size_text)
        elif layer.type != "Result":
            sizes = [_bytes(port.precision or "", port.dims) for port in layer.outputs]
            if layer.type == "Parameter" and not all(t.shape.is_static for t in declared(layer)):
                continue  # its port has no sizes where the rank is not known, as a single value
            if None not in sizes:
                held[number] = sum(size for size in sizes if size is not None)
    return Paint("bytes", "number", held, "B")


@lru_cache(4096)
def _bytes(precision: str, dims: tuple[int, ...]) -> float | None:
    kind = Port(0, precision).type
    if kind.is_dynamic or min(dims, default=0) < 0:
        return None
    try:
        return float(kind.nbytes(prod(dims)))
    except OverflowError:
        return None  # a wrong model is shown, too: with sizes that nothing could hold


def macs_of(sheet: Sheet) -> Paint:
    """Sums of products by the definition, where all sizes are known."""
    found = {
        number: count
        for number, layer in enumerate(sheet.layers)
        if sheet.shown(number) and (count := macs(layer)) is not None
    }
    return Paint("MACs", "number", found)


def precision_of(sheet: Sheet) -> Paint:
    """The element type of the first output."""
    words = {
        number: str(layer.outputs[0].type)
        for number, layer in enumerate(sheet.layers)
        if layer.outputs
    }
    return Paint("precision", "word", words)


def given(
    sheet: Sheet,
    name: str,
    values: ByLayer,
    unit: str = "",
    notes: Notes | None = None,
    without: str = "",
) -> Paint:
    """What somebody knows of layers: seconds, errors, findings, differences.

    Raises:
        UsageError: No layer has any of the names, or a number is not finite.
    """
    numbers = _Numbers(sheet)
    found = numbers.among(values)
    if values and not found:
        first = next(str(getattr(key, "name", key)) for key in values)
        raise UsageError(
            f'of the {counted(len(values), "layer")} that "{name}" names, the model has none, '
            f'such as "{first}"'
        )
    kind: Literal["number", "word"] = "number"
    for value in values.values():
        if isinstance(value, str):
            kind = "word"
        elif not _is_finite(value):
            raise UsageError(
                f'"{name}" has the value {printable(value, 40)}, which is no finite number'
            )
    if kind == "word":
        found = {n: str(value) for n, value in found.items()}
    paint = Paint(name, kind, found, unit, numbers.among(notes or {}))
    return replace(paint, without=without) if without else paint


class _Numbers:
    """The numbers of layers by what they may be called."""

    def __init__(self, sheet: Sheet) -> None:
        self.layers = {layer: number for number, layer in enumerate(sheet.layers)}
        self.names: dict[str, list[int]] = {}
        #: ``outer/inner`` and ``outer/then_body/inner`` for the layers of bodies.
        self.paths: dict[str, list[int]] = {}
        for number, layer in enumerate(sheet.layers):
            self.names.setdefault(layer.name, []).append(number)
            if around := sheet.around_body(number):
                short = "".join(f"{holder.name}/" for holder, _ in around)
                long = "".join(f"{holder.name}/{tag}/" for holder, tag in around)
                for path in (short, long):
                    self.paths.setdefault(path + layer.name, []).append(number)

    def among(self, given: Mapping[str, T] | Mapping[Layer, T]) -> dict[int, T]:
        """What is given, by the layers' numbers; a path says more than a name alone."""
        named: dict[int, T] = {}
        exact: dict[int, T] = {}
        for key, value in given.items():
            if not isinstance(key, str):
                exact |= {self.layers[key]: value} if key in self.layers else {}
            elif key in self.names:
                named |= dict.fromkeys(self.names[key], value)
            else:
                exact |= dict.fromkeys(self.paths.get(key, ()), value)
        return named | exact


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        return False  # an integer beyond all that a float can be


OWN = {"bytes": bytes_of, "MACs": macs_of, "precision": precision_of}

__all__ = ["OWN", "ByLayer", "Notes", "Paint", "given", "rank"]
