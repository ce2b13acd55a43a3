"""Pictures as text for other programs: dot for Graphviz, Mermaid for pages that render it."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas import UsageError
from ....schemas.printing import printable
from .labels import TIMES, tensor_text
from .palette import FAMILIES, family
from .scene import Picture
from .sheet import Sheet

#: Boxes of a Mermaid chart: beyond, nobody can read it.
MOST_IN_MERMAID = 200
#: Arrows and characters of a chart: beyond, Mermaid gives up (maxEdges, maxTextSize).
MOST_ARROWS, MOST_TEXT = 500, 50_000
#: What helps where a chart is too large.
_SMALLER = "draw a part with --around LAYER --hops N, or a page with -o model.html"
#: Characters of a name.
_LONGEST = 60
#: Signs that mean nothing to Mermaid.
_PLAIN = f" .,?_-+{TIMES}"


def to_dot(picture: Picture) -> str:
    """All layers and the values between them, modules as clusters."""
    sheet, tree = picture.sheet, picture.tree
    lines = [
        "digraph model {",
        "  compound=true;",
        '  node [shape=box style="rounded,filled" fontname="sans-serif" fontsize=11];',
        '  edge [fontname="sans-serif" fontsize=9];',
    ]
    for number, depth in _walk(picture):
        pad = "  " * (depth + 1)
        if number is None:
            lines.append(f"{pad}}}")
        elif number < tree.count:
            lines.append(f"{pad}n{number} [{_dot_box(sheet, number)}];")
        else:
            lines.append(f"{pad}subgraph cluster_{number} {{")
            lines.append(f"{pad}  label={_quoted(picture.labels.title[number])};")
    for source, target, text in _arrows(picture):
        # An arrow goes from box to box, and is cut at the border of the cluster that is meant.
        cut = [f"{word}=cluster_{tree.owners[end]}" for word, end in
               (("ltail", source), ("lhead", target)) if end in tree.owners]  # fmt: skip
        tail, head = _box_in(picture, source), _box_in(picture, target)
        if tail is not None and head is not None:
            lines.append(f"  n{tail} -> n{head} [{' '.join([f'label={_quoted(text)}', *cut])}];")
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
    """The wires, and the type and shape of what goes along each.

    What a layer with bodies takes for itself, such as a condition, goes to the layer.
    """
    sheet = picture.sheet
    for source, target, value in sorted(set(sheet.wires)):
        number, output = sheet.values[value]
        yield source, target, tensor_text(sheet.layers[number], output)


def _walk(picture: Picture, *, modules: bool = True) -> Iterator[tuple[int | None, int]]:
    """Groups and layers from outside in, with their depths; None where a group ends.

    Without modules, only layers with bodies and the bodies are groups.
    """
    tree = picture.tree
    # Groups are opened and closed as they are met: no recursion.
    stack: list[tuple[int | None, int]] = [(tree.root, 0)]
    while stack:
        number, depth = stack.pop()
        if number is None or number < tree.count:
            yield number, depth
            continue
        group = tree.groups[number - tree.count]
        if number != tree.root and (modules or group.kind == "body"):
            yield number, depth
            stack.append((None, depth))
            depth += 1
        stack += [(child, depth) for child in reversed(group.children)]


def _box_in(picture: Picture, number: int) -> int | None:
    """A layer with a box: itself, or the first in the bodies that it has."""
    tree = picture.tree
    open_ = [tree.owners.get(number, number)]
    while open_:
        found = open_.pop()
        if found < tree.count:
            return found
        open_ += reversed(tree.groups[found - tree.count].children)
    return None


def to_mermaid(picture: Picture) -> str:
    """A chart of all layers with boxes.

    Raises:
        UsageError: There are more than Mermaid draws.
    """
    sheet, tree = picture.sheet, picture.tree
    found = list(_walk(picture, modules=False))
    count = sum(number is not None and number < tree.count for number, _ in found)
    if count > MOST_IN_MERMAID:
        raise UsageError(
            f"a Mermaid chart takes {MOST_IN_MERMAID} layers, these are {count}",
            hint=_SMALLER,
        )
    lines = ["flowchart TD"]
    used: dict[str, list[str]] = {}
    for number, depth in found:
        pad = "  " * (depth + 1)
        if number is None:
            lines.append(f"{pad}end")
        elif number >= tree.count:
            title = _entities(picture.labels.title[number])
            lines.append(f'{pad}subgraph n{number}["{title}"]')
        else:
            layer = sheet.layers[number]
            label = "<br/>".join(
                _entities(text)
                for text in (
                    printable(layer.type, _LONGEST),
                    printable(layer.name, _LONGEST),
                    picture.labels.detail[number],
                )
                if text
            )
            lines.append(f'{pad}n{number}["{label}"]')
            used.setdefault(family(layer), []).append(f"n{number}")
    arrows = [
        f"  n{tree.owners.get(a, a)} --> n{tree.owners.get(b, b)}" for a, b, _ in _arrows(picture)
    ]
    if len(arrows) > MOST_ARROWS:
        raise UsageError(
            f"a Mermaid chart takes {MOST_ARROWS} arrows, these are {len(arrows)}", hint=_SMALLER
        )
    lines += arrows
    for name, boxes in used.items():
        lines.append(f"  classDef {name} fill:{FAMILIES[name][0]},stroke:#8889,color:#1b2027")
        lines.append(f"  class {','.join(boxes)} {name}")
    chart = "\n".join([*lines, ""])
    if len(chart) > MOST_TEXT:
        raise UsageError(
            f"a Mermaid chart takes {MOST_TEXT} characters, these are {len(chart)}", hint=_SMALLER
        )
    return chart


def _entities(text: str) -> str:
    """A text of which Mermaid takes nothing for its own: all but letters and digits by numbers."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in text)


__all__ = ["MOST_IN_MERMAID", "to_dot", "to_mermaid"]
