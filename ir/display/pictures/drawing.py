"""A model drawn: as a page, as SVG, as text for Graphviz and Mermaid."""

from __future__ import annotations

import os
from pathlib import Path
from typing import overload
from xml.sax.saxutils import quoteattr

from ....layers.memory import without_collection
from ....schemas import UsageError
from ...document import Model
from ...opening import ModelLike, opened
from .page_file import to_html
from .painting import OWN, ByLayer, Notes, given
from .run_errors import ComparedRuns, errors_of
from .scene import OPEN, Picture
from .stepping import Compared, SideBySide
from .svg import to_svg
from .texts import to_dot, to_mermaid
from .writing import write_text

#: Constants up to which their values go with a page, where that is not settled.
FEW = 2000
FORMATS = (".html", ".svg", ".dot", ".mmd")


class Drawing:
    """A model laid out; give it to a notebook, or ``save`` it."""

    def __init__(self, model: Model, *, title: str | None = None) -> None:
        self.picture = Picture.of(model)
        name = model.name if model.path is None else Path(model.path).stem
        self.title = name if title is None else title
        with without_collection():
            self._paints = [make(self.picture.sheet) for make in OWN.values()]
        self._shown = -1

    def __repr__(self) -> str:
        return f"<drawing of {self.title!r}; drawing.save('model.html') writes it>"

    def paint(
        self,
        name: str,
        values: ByLayer | ComparedRuns | None = None,
        *,
        unit: str = "",
        notes: Notes | None = None,
        without: str = "",
    ) -> Drawing:
        """Paint the boxes; a page lets its reader choose among all paints, this one is seen first.

        Args:
            name: ``type``, ``bytes``, ``MACs``, ``precision``, or a new name for what is given.
            values: A number or a word for layers, such as seconds, errors, severities, or
                ``added``, ``changed``, ``removed``: by the layers themselves or their names, in
                a body also by ``outer/inner`` or ``outer/then_body/inner``. Or what ``compare``
                found: under the name ``error`` the layers' own, under ``accumulated`` those.
            unit: Of the numbers, such as ``s``.
            notes: What is said of layers in the side panel, in the same way.
            without: What the legend says of layers that have no number, and are grey.

        Returns:
            The drawing itself.
        """
        if values is not None:
            if name == "type":
                raise UsageError(
                    '"type" is how boxes are painted by themselves',
                    hint="give another name to what the values say",
                )
            if isinstance(values, ComparedRuns):
                told = errors_of(self.picture.sheet, name, values.as_json()["steps"])
                values, notes = told["values"], notes or told["notes"]
            self._paints = [each for each in self._paints if each.name != name]
            self._paints.append(given(self.picture.sheet, name, values, unit, notes, without))
        known = ["type", *(each.name for each in self._paints)]
        if name not in known:
            raise UsageError(
                f'there is nothing known by which to paint "{name}"',
                hint=f"there are {', '.join(known)}; others need values",
            )
        self._shown = known.index(name) - 1
        return self

    def html(self, *, values: bool | None = None) -> str:
        """One page with everything in it.

        Args:
            values: Whether the first values and histograms of the constants go with it; None:
                where there are not too many constants.
        """
        sheet = self.picture.sheet
        if values is None:
            values = sum(layer.is_constant for layer in sheet.layers) <= FEW
        with without_collection():
            return to_html(
                self.picture, self._paints, self.title, values=values, shown=self._shown
            )

    def svg(
        self, *, around: str | int | None = None, hops: int = 2, boxes: int | None = None
    ) -> str:
        """A picture of all, or of what is within some hops of a layer.

        Args:
            around: A layer by its name, id, or the name of a tensor; None for the whole model.
            hops: How many values lie between it and the furthest layer.
            boxes: Groups are opened while there are not more boxes than that; None for all.
        """
        picture = self._part(around, hops)
        if boxes is None:
            states = {picture.tree.count + i: OPEN for i in range(len(picture.tree.groups))}
        else:
            states = picture.opened(boxes)
        shown = None if self._shown < 0 else self._paints[self._shown].colours()
        return to_svg(picture, states, shown, self.title)

    def dot(self, *, around: str | int | None = None, hops: int = 2) -> str:
        """The same for Graphviz."""
        return to_dot(self._part(around, hops))

    def mermaid(self, *, around: str | int | None = None, hops: int = 2) -> str:
        """The same as a chart in Mermaid, as far as that draws it: up to 200 layers."""
        return to_mermaid(self._part(around, hops))

    def count(
        self, *, around: str | int | None = None, hops: int = 2, constants: bool = True
    ) -> int:
        """The number of layers that are drawn.

        Args:
            around: A layer, as for ``svg``; None for the whole model.
            hops: How many values lie between it and the furthest layer.
            constants: Whether those at their readers are among them; .dot and .mmd have none.
        """
        sheet = self.picture.sheet
        if around is None:
            return sum(constants or sheet.shown(number) for number in range(len(sheet.layers)))
        near = self._near(around, hops)
        if not constants:
            return len(near)
        chips = {root for reader in near for root in sheet.chips.get(reader, ())}
        return len(near) + sum(root in chips for root in sheet.chip)

    def _near(self, around: str | int, hops: int) -> frozenset[int]:
        """The numbers of the layers with boxes around one."""
        sheet = self.picture.sheet
        found = sheet.bodies[0].graph.layer(around)
        number = next(n for n, layer in enumerate(sheet.layers) if layer is found)
        return sheet.around(number, hops)

    def _part(self, around: str | int | None, hops: int) -> Picture:
        """What lies around a layer, laid out by itself."""
        if around is None:
            return self.picture
        return Picture.of_sheet(self.picture.sheet.part(self._near(around, hops)))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        around: str | int | None = None,
        hops: int = 2,
        boxes: int | None = None,
        values: bool | None = None,
        force: bool = False,
    ) -> int:
        """Write a file, and answer with how many layers it shows; its name says which kind.

        Args:
            path: Where to: a .html, .svg, .dot or .mmd.
            around: Only what is near a layer (not in a page, which has it all).
            hops: How near.
            boxes: Of an SVG: groups are opened while there are not more boxes than that.
            values: Of a page: whether it has the constants' first values and histograms.
            force: Write over a file that is there.

        Raises:
            UsageError: The name ends otherwise, the file is there, or a layer is not.
        """
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in FORMATS:
            raise UsageError(
                f'"{target.name}" does not end in {", ".join(FORMATS[:-1])} or {FORMATS[-1]}'
            )
        if os.path.lexists(target) and not force:
            raise UsageError(f"{target} is already there", hint="--force overwrites it")
        if kind == ".html":
            if around is not None:
                raise UsageError("a page has all layers; --around is for .svg, .dot and .mmd")
            text = self.html(values=values)
        elif kind == ".svg":
            text = self.svg(around=around, hops=hops, boxes=boxes)
        elif kind == ".dot":
            text = self.dot(around=around, hops=hops)
        else:
            text = self.mermaid(around=around, hops=hops)
        write_text(target, text, force)
        return self.count(around=around, hops=hops, constants=kind in (".html", ".svg"))

    def _repr_html_(self) -> str:
        """The page in a frame, which may run its own script and reach nothing around it."""
        return (
            f'<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" '
            f"srcdoc={quoteattr(self.html())}></iframe>"
        )


@overload
def draw(model: ModelLike, *, title: str | None = None) -> Drawing: ...
@overload
def draw(model: Compared, *, title: str | None = None) -> SideBySide: ...
def draw(model: ModelLike | Compared, *, title: str | None = None) -> Drawing | SideBySide:
    """Lay a model out to be looked at, or two of which ``diff`` told what changed.

    Args:
        model: The model or its path, or what ``diff`` found: a page with both models in step.
        title: What the picture is called; None for the name of the file or of the model.
    """
    if isinstance(model, Compared):
        return SideBySide(model, title=title)
    return Drawing(opened(model), title=title)


__all__ = ["FORMATS", "Drawing", "draw"]
