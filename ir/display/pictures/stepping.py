"""Two models in one page, in step, with what changed from one to the other coloured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable
from xml.sax.saxutils import quoteattr

from ....layers.memory import without_collection
from ....schemas import UsageError
from ....schemas.printing import printable
from ...document import Layer, Model
from .page_file import fill_page, seen
from .painting import OWN, Paint, rank
from .scene import Picture
from .sheet import Sheet, read_sheet
from .writing import write_text

#: Constants of either model up to which their values go with a page, where that is not settled.
FEW = 2000
#: The word by which boxes are painted for each kind of difference; others have their own.
_WORDS = {
    "element type": "type", "ports": "shape", "input": "wiring", "model": "rt_info",
}  # fmt: skip
#: Characters of one difference in the list.
_LONGEST = 300


class Changed(Protocol):
    """One difference; its text says what it was and what it is."""

    @property
    def kind(self) -> str:
        """What of a layer differs."""

    @property
    def follows(self) -> bool:
        """Whether it follows from another difference."""


@runtime_checkable
class Compared(Protocol):
    """What changed from one model to another, as a comparison gives it."""

    @property
    def models(self) -> tuple[Model, Model] | None:
        """The two."""

    @property
    def found(self) -> Sequence[Changed]:
        """The differences."""

    @property
    def pairs(self) -> Sequence[tuple[Layer, Layer]]:
        """Which layer of one is which of the other, in bodies too."""

    @property
    def ends(self) -> Sequence[tuple[Layer | None, Layer | None]]:
        """The layers at which each difference stands."""


class SideBySide:
    """Two models laid out beside each other; give it to a notebook, or ``save`` it."""

    def __init__(self, compared: Compared, *, title: str | None = None) -> None:
        if compared.models is None:
            raise UsageError("these differences do not say of which models they are")
        names = [_name(model) for model in compared.models]
        if names[0] == names[1]:
            names = [f"{names[0]} (before)", f"{names[1]} (after)"]
        self.names = names
        self.title = f"{names[0]} → {names[1]}" if title is None else title
        with without_collection():
            sheets = [read_sheet(model) for model in compared.models]
            numbers = [{id(layer): n for n, layer in enumerate(s.layers)} for s in sheets]
            self.changes = list(_changes(compared, numbers))
            marks = [_marks(sheet, self.changes, side) for side, sheet in enumerate(sheets)]
            for sheet, held in zip(sheets, marks, strict=True):
                # Equal blocks of which one was changed are folded without that one, in both.
                sheet.marks = held
            self.pictures = [Picture.of_sheet(sheet) for sheet in sheets]
            self.paints = [
                [
                    *(make(sheet) for make in OWN.values()),
                    Paint("difference", "word", held, notes=_notes(self.changes, side)),
                ]
                for side, (sheet, held) in enumerate(zip(sheets, marks, strict=True))
            ]
            self.pairs = sorted((numbers[0][id(x)], numbers[1][id(y)]) for x, y in compared.pairs)

    def html(self, *, values: bool | None = None) -> str:
        """One page with everything in it.

        Args:
            values: Whether the first values and histograms of the constants go with it; None:
                where there are not too many constants.
        """
        if values is None:
            layers = (layer for each in self.pictures for layer in each.sheet.layers)
            values = sum(layer.is_constant for layer in layers) <= 2 * FEW
        shown = len(OWN)
        with without_collection():
            one, two = (
                seen(picture, paints, name, values=values, shown=shown)
                for picture, paints, name in zip(
                    self.pictures, self.paints, self.names, strict=True
                )
            )
            step = {
                "title": printable(self.title, 400),
                "other": two,
                "pairs": [
                    _deltas([pair[0] for pair in self.pairs]),
                    _deltas([pair[1] for pair in self.pairs]),
                ],
                "changes": _rows(self.changes),
            }
            return fill_page({**one, "step": step}, self.title)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        values: bool | None = None,
        force: bool = False,
    ) -> None:
        """Write the page.

        Args:
            path: Where to; its name ends in .html.
            values: Whether it has the constants' first values and histograms.
            force: Write over a file that is there.

        Raises:
            UsageError: The name ends otherwise, or the file is there.
        """
        target = Path(path)
        if target.suffix.lower() != ".html":
            raise UsageError(
                f'"{target.name}" does not end in .html', hint="two models in step are a page"
            )
        if os.path.lexists(target) and not force:
            raise UsageError(f"{target} is already there", hint="--force overwrites it")
        write_text(target, self.html(values=values), force)

    def _repr_html_(self) -> str:
        """The page in a frame, which may run its own script and reach nothing around it."""
        return (
            f'<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" '
            f"srcdoc={quoteattr(self.html())}></iframe>"
        )


class _Change(NamedTuple):
    """A difference as a page knows it."""

    word: str
    #: The numbers of its layers in either model; -1: none.
    ends: tuple[int, int]
    follows: bool
    text: str


def _changes(compared: Compared, numbers: Sequence[Mapping[int, int]]) -> Iterator[_Change]:
    """The differences in their order."""
    for one, ends in zip(compared.found, compared.ends, strict=True):
        left, right = (
            -1 if layer is None else held[id(layer)]
            for layer, held in zip(ends, numbers, strict=True)
        )
        word = _WORDS.get(one.kind, one.kind)
        yield _Change(word, (left, right), one.follows, printable(str(one), _LONGEST))


def _marks(sheet: Sheet, changes: Sequence[_Change], side: int) -> dict[int, str]:
    """How each layer was changed, in a word; a constant's also at the layer that reads it."""
    found: dict[int, str] = {}

    def mark(number: int, word: str) -> None:
        known = found.get(number)
        if known is None or rank(word) < rank(known):
            found[number] = word

    for change in changes:
        number = change.ends[side]
        if number >= 0:
            mark(number, "follows" if change.follows else change.word)
    for number, word in list(found.items()):
        if sheet.chip[number] >= 0:
            mark(sheet.chip[number], word)
    for reader, chips in sheet.chips.items():
        for chip in chips:
            if chip in found:
                mark(reader, found[chip])
    return found


def _notes(changes: Sequence[_Change], side: int) -> dict[int, str]:
    """What is said of each layer in the side panel."""
    lines: dict[int, list[str]] = {}
    for change in changes:
        if change.ends[side] >= 0:
            lines.setdefault(change.ends[side], []).append(f"{change.word} {change.text}")
    return {number: "; ".join(texts) for number, texts in lines.items()}


def _rows(changes: Sequence[_Change]) -> list[Any]:
    """The list of changes: words once, and for each its word, its layers and its text."""
    own = [change for change in changes if not change.follows]
    words = sorted({change.word for change in own}, key=rank)
    return [
        words,
        [words.index(change.word) for change in own],
        [change.ends[0] for change in own],
        [change.ends[1] for change in own],
        [change.text for change in own],
        len(changes) - len(own),
    ]


def _name(model: Model) -> str:
    return printable(model.name if model.path is None else Path(model.path).name, 200)


def _deltas(numbers: Sequence[int]) -> list[int]:
    return [b - a for a, b in zip([0, *numbers], numbers, strict=False)]


__all__ = ["Compared", "SideBySide"]
