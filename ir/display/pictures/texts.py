"""Pictures as text for other programs: dot for Graphviz, Mermaid for pages that render it."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas import UsageError
from ....schemas.printing import printable
from .labels import TIMES
from .palette import FAMILIES, family
from .scene import Picture
from .sheet import Sheet

#: Boxes of a Mermaid chart: beyond, what renders it gives up.
MOST_IN_MERMAID = 200
#: Characters of a name.
_LONGEST = 60
#: Signs that mean nothing to Mermaid.
_PLAIN = f" .,?_-+{TIMES}"


def to_dot(picture: Picture) -> str:
    """All layers and the values between them, modules as clusters."""
    sheet, tree = picture.sheet, picture.tree
    lines = [
        "digraph model {",
        '  node [shape=box style="rounded,filled" fontname="sans-serif" fontsize=11];',
        '  edge [fontname="sans-serif" fontsize=9];',
    ]
    # Groups are opened and closed as they are met: no recursion.
    stack: list[tuple[int, int]] = [(tree.root, 0)]
    open_groups: list[int] = []
    while stack:
        number, depth = stack.pop()
        while len(open_groups) > depth:
            open_groups.pop()
            lines.append("  " * (len(open_groups) + 1) + "}")
        pad = "  " * (depth + 1)
        if number < tree.count:
            lines.append(f"{pad}n{number} [{_dot_box(sheet, number)}];")
            continue
        if number != tree.root:
            lines.append(f"{pad}subgraph cluster_{number} {{")
            lines.append(f"{pad}  label={_quoted(picture.labels.title[number])};")
            open_groups.append(number)
            depth += 1
        children = tree.groups[number - tree.count].children
        stack += [(child, depth) for child in reversed(children)]
    for _ in range(len(open_groups)):
        open_groups.pop()
        lines.append("  " * (len(open_groups) + 1) + "}")
    lines += [
        f"  n{source} -> n{target} [label={_quoted(text)}];"
        for source, target, text in _arrows(picture)
    ]
    return "\n".join([*lines, "}", ""])


def _dot_box(sheet: Sheet, number: int) -> str:
    layer = sheet.layers[number]
    light = FAMILIES[family(layer)][0]
    name = printable(layer.name, _LONGEST)
    # A backslash that Graphviz is to see as one is doubled; the line end is its own sign.
    label = f"{_escaped(printable(layer.type, _LONGEST))}\\n{_escaped(name)}"
    return f'label="{label}" fillcolor="{light}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _arrows(picture: Picture) -> Iterator[tuple[int, int, str]]:
    """The wires between layers that have boxes, and the shape that goes along each."""
    tree = picture.tree
    for source, target, _ in sorted(set(picture.sheet.wires)):
        if source in tree.owners or target in tree.owners:
            continue  # what a body is not told of does not go to any layer in it
        yield source, target, picture.labels.detail[source]


def to_mermaid(picture: Picture) -> str:
    """A chart of all layers with boxes.

    Raises:
        UsageError: There are more than Mermaid draws.
    """
    sheet, tree = picture.sheet, picture.tree
    numbers = [
        number for number in range(tree.count) if sheet.shown(number) and number not in tree.owners
    ]
    if len(numbers) > MOST_IN_MERMAID:
        raise UsageError(
            f"a Mermaid chart takes {MOST_IN_MERMAID} layers, these are {len(numbers)}",
            hint="draw a part with --around LAYER --hops N, or a page with -o model.html",
        )
    lines = ["flowchart TD"]
    used: dict[str, list[str]] = {}
    for number in numbers:
        layer = sheet.layers[number]
        label = "<br/>".join(
            _entities(text)
            for text in (printable(layer.type, _LONGEST), picture.labels.detail[number])
            if text
        )
        lines.append(f'  n{number}["{label}"]')
        used.setdefault(family(layer), []).append(f"n{number}")
    lines += [f"  n{a} --> n{b}" for a, b, _ in _arrows(picture)]
    for name, boxes in used.items():
        lines.append(f"  classDef {name} fill:{FAMILIES[name][0]},stroke:#8889,color:#1b2027")
        lines.append(f"  class {','.join(boxes)} {name}")
    return "\n".join([*lines, ""])


def _entities(text: str) -> str:
    """A text of which Mermaid takes nothing for its own: all but letters and digits by numbers."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in text)


__all__ = ["MOST_IN_MERMAID", "to_dot", "to_mermaid"]
