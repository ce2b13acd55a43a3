"""A picture as SVG: all that is open, or what lies around a layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

from ....schemas.printing import printable
from .labels import CHIP, LETTER, MOST_CHIPS, chip_text
from .palette import FAMILIES, family, inks
from .scene import OPEN, TITLE, Box, Picture, Scene, scene

MARGIN = 24.0

_STYLE = """
svg{background:#fff;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.g{fill:#f6f7f9;stroke:#c9ced6}.g.o{fill:#0a2a5a08}.n{stroke:#0003}.e{fill:none;stroke:#8b93a1;stroke-width:1.3}
.t{font-size:12.5px;font-weight:600;fill:#1b2027}.d{font-size:10.5px;fill:#4a5361}
.t.o{paint-order:stroke;stroke:#f6f7f9;stroke-width:5;stroke-linejoin:round}
.c{fill:#fff;stroke:#c4cad3}.h{font-size:9.5px;fill:#5a6372}.a{fill:#8b93a1}
@media(prefers-color-scheme:dark){svg{background:#15181d}.g{fill:#1f242b;stroke:#3d4551}
.g.o{fill:#ffffff08}.n{stroke:#fff2}.e{stroke:#78818f}.t{fill:#eef1f5}.t.o{stroke:#1f242b}.d{fill:#c8ced8}
.c{fill:#1b2026;stroke:#444c58}.h{fill:#a2aab7}.a{fill:#78818f}}
"""


def to_svg(
    picture: Picture,
    states: Mapping[int, int],
    colours: Mapping[int, tuple[str, str]] | None = None,
    title: str = "",
) -> str:
    """Draw what is seen when groups are open as ``states`` says.

    Args:
        picture: The model laid out.
        states: How open each group is.
        colours: Of layers by their numbers, for light and dark; None for those of their families.
        title: What the picture is called.
    """
    seen = scene(picture, states)
    painter = _Painter(picture, colours)
    opened = [box for box in seen.boxes if box.open and box.number != picture.tree.root]
    behind = (painter.frame(box) for box in opened)
    # Edges enter through the titles' lines: titles stand before them.
    titles = (part for box in opened for part in painter.heading(box))
    before = (part for box in seen.boxes if not box.open for part in painter.box(box))
    body = [*behind, *painter.lines(seen), *titles, *before]
    width = seen.left + seen.right + 2 * MARGIN
    height = seen.height + 2 * MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-seen.left - MARGIN:.1f} {-MARGIN:.1f} {width:.1f} {height:.1f}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}{painter.style()}</style>",
        *body,
        "</svg>",
        "",
    ])  # fmt: skip


class _Painter:
    def __init__(self, picture: Picture, colours: Mapping[int, tuple[str, str]] | None) -> None:
        self.picture = picture
        self.colours = colours
        #: The class of each pair of colours that was used.
        self.classes: dict[tuple[str, str], str] = {}
        #: The layers that are groups since they have bodies, by their groups.
        self.owner_of = {group: owner for owner, group in picture.tree.owners.items()}

    def style(self) -> str:
        """The rules of the colours that were used."""
        light, dark = ("".join(self._rules(look)) for look in (0, 1))
        return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"

    def _rules(self, look: int) -> Iterable[str]:
        for pair, name in self.classes.items():
            yield f".{name}{{fill:{pair[look]}}}"
            if ink := inks(pair):
                yield f".{name}~text{{fill:{ink[look]}}}"

    def lines(self, seen: Scene) -> Iterable[str]:
        for _, points, ends in seen.lines:
            yield f'<path class="e" d="{course(points)}"/>'
            if ends:
                x, y = points[-1]
                yield f'<path class="a" d="M{x:.1f} {y:.1f}l-3 -5h6z"/>'

    def frame(self, box: Box) -> str:
        """The border of an open group."""
        left, width = box.x - box.left, box.left + box.right
        return (
            f'<rect class="g o" x="{left:.1f}" y="{box.y:.1f}" width="{width:.1f}" '
            f'height="{box.height:.1f}" rx="8"/>'
        )

    def heading(self, box: Box) -> Iterable[str]:
        """The title of an open group, and the constants beside it."""
        title = self.picture.labels.title[box.number]
        left, room = box.x - box.left + 10, box.left + box.right - 20
        yield from self.text("t o", left, box.y + TITLE - 9, title, room, "start")
        yield from self.chips(box.number, box)

    def box(self, box: Box) -> Iterable[str]:
        """One layer or closed group; the whole has no border."""
        picture, number = self.picture, box.number
        if number == picture.tree.root:
            return
        title, detail = picture.labels.title[number], picture.labels.detail[number]
        left, width = box.x - box.left, box.left + box.right
        grouped = number >= picture.tree.count
        height = 40.0 if not grouped else 46.0
        top = box.y + (box.height - height) / 2
        kind = "g" if grouped else f"n {self.colour(number)}"
        if not grouped:
            full = printable(picture.sheet.layers[number].name, 300)
            yield f"<g><title>{_text(full)}</title>"
        yield f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.0f}" rx="5"/>'  # noqa: E501
        yield from self.text("t", box.x, top + 17, title, width - 12, "middle")
        yield from self.text("d", box.x, top + 31, detail, width - 8, "middle")
        if not grouped:
            yield "</g>"
        yield from self.chips(number, box)

    def chips(self, number: int, box: Box) -> Iterable[str]:
        """The constants beside their reader."""
        owner = self.owner_of.get(number, number)
        found = self.picture.sheet.chips.get(owner, [])
        width = float(self.picture.labels.chips[number]) - 8
        shown = found[:MOST_CHIPS]
        texts = [chip_text(self.picture.sheet.layers[each]) for each in shown]
        if len(found) > len(shown):
            texts.append(f"+{len(found) - len(shown)}")
        top = box.y + (box.height - CHIP * len(texts)) / 2
        left = box.x + box.right + 8
        for index, text in enumerate(texts):
            y = top + CHIP * index
            yield (
                f'<rect class="c" x="{left:.1f}" y="{y + 1:.1f}" width="{width:.1f}" '
                f'height="{CHIP - 2:.0f}" rx="7"/>'
            )
            yield from self.text("h", left + width / 2, y + 12, text, width - 6, "middle")

    def colour(self, number: int) -> str:
        """The class of a layer's colours."""
        pair = None if self.colours is None else self.colours.get(number)
        if pair is None and self.colours is None:
            pair = FAMILIES[family(self.picture.sheet.layers[number])]
        pair = pair or FAMILIES["other"]
        return self.classes.setdefault(pair, f"p{len(self.classes)}")

    def text(
        self, kind: str, x: float, y: float, text: str, room: float, anchor: str
    ) -> Iterable[str]:
        """A text, cut where it does not fit."""
        letters = max(int(room / (LETTER * {"t": 1.07, "d": 0.9, "h": 0.82}[kind[0]])), 3)
        shown = text if len(text) <= letters else f"{text[: letters - 1]}…"
        yield f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(shown)}</text>'  # noqa: E501


def course(points: list[tuple[float, float]]) -> str:
    """A line that bends softly between places that are not one above the other."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for right, low in points[1:]:
        if abs(right - x) < 0.5:
            parts.append(f"V{low:.1f}")
        else:
            half = (y + low) / 2
            parts.append(f"C{x:.1f} {half:.1f} {right:.1f} {half:.1f} {right:.1f} {low:.1f}")
        x, y = right, low
    return "".join(parts)


def _text(text: str) -> str:
    """A text between tags; what XML has no place for was made visible before."""
    return escape(printable(text))


__all__ = ["OPEN", "course", "to_svg"]
