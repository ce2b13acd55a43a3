"""Damage done to valid IR files: each case with its weight and where the damage is.

A mutation takes a file and a random generator and gives a damaged copy, or None where it finds
nothing to damage. Its label is what a check has to say: error, warning, or ok (nothing).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree
from vinoir.layers import Op
from vinoir.layers.base import Attribute

Element = etree._Element


@dataclass
class File:
    """A valid file: its lines, its tree and its weights."""

    path: Path
    text: str
    weights: bytes
    root: Element = field(init=False)
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.root = etree.fromstring(self.text.encode())
        self.lines = self.text.split("\n")

    @classmethod
    def read(cls, path: Path) -> File:
        beside = path.with_suffix(".bin")
        return cls(path, path.read_text(), beside.read_bytes() if beside.exists() else b"")

    def all(self, path: str) -> list[Element]:
        return list(self.root.iterfind(f".//{path}"))


@dataclass
class Case:
    """A damaged file, and what is to be said of it."""

    kind: str
    label: str
    source: str
    xml: bytes
    weights: bytes | None
    #: Any of these lines or layers (id and name) is a right place; none: any place is.
    lines: frozenset[int] = frozenset()
    layers: frozenset[str] = frozenset()
    text: str = ""


Made = tuple[str, set[int], set[str]] | None
Mutation = Callable[[File, random.Random], Made]
Damaged = tuple[bytes, bytes | None, set[int], set[str]] | None
BytesMutation = Callable[[File, random.Random], Damaged]

TEXT: dict[str, tuple[str, Mutation]] = {}
BYTES: dict[str, tuple[str, BytesMutation]] = {}


def text(label: str) -> Callable[[Mutation], Mutation]:
    def keep(function: Mutation) -> Mutation:
        TEXT[function.__name__] = (label, function)
        return function

    return keep


def raw(label: str) -> Callable[[BytesMutation], BytesMutation]:
    def keep(function: BytesMutation) -> BytesMutation:
        BYTES[function.__name__] = (label, function)
        return function

    return keep


def cases(file: File, seed: int) -> Iterator[Case]:
    """One case of each mutation that applies."""
    for name, (label, mutate) in TEXT.items():
        made = mutate(file, random.Random(f"{file.path.stem} {name} {seed}"))
        if made is not None and made[0] != file.text:
            changed, lines, layers = made
            yield Case(
                name, label, file.path.stem, changed.encode(), file.weights,
                frozenset(lines), frozenset(layers),
            )  # fmt: skip
    for name, (label, damage) in BYTES.items():
        done = damage(file, random.Random(f"{file.path.stem} {name} {seed}"))
        if done is not None and done[:2] != (file.text.encode(), file.weights):
            xml, weights, lines, layers = done
            yield Case(
                name, label, file.path.stem, xml, weights, frozenset(lines), frozenset(layers)
            )


# Tools.


def names(element: Element | None) -> set[str]:
    """The layer an element is in, by id and name; and the layers around it."""
    found = set()
    while element is not None:
        if element.tag == "layer":
            found |= {element.get("id", ""), element.get("name", "")}
        element = element.getparent()
    return found


def put(file: File, element: Element, line: str) -> str:
    """The text with the line of an element replaced."""
    lines = list(file.lines)
    lines[element.sourceline - 1] = line
    return "\n".join(lines)


def line_of(file: File, element: Element) -> str:
    return file.lines[element.sourceline - 1]


def at(element: Element) -> set[int]:
    return {element.sourceline}


def set_attribute(file: File, element: Element, name: str, value: str | None) -> str:
    line = line_of(file, element)
    pattern = rf'\s{re.escape(name)}="[^"]*"'
    new = "" if value is None else f' {name}="{value}"'
    changed, count = re.subn(pattern, lambda _: new, line, count=1)
    assert count, (file.path, name, line)
    return put(file, element, changed)


def rename_attribute(file: File, element: Element, name: str, new: str) -> str:
    return put(file, element, line_of(file, element).replace(f" {name}=", f" {new}=", 1))


def pick(rng: random.Random, items: list[Element]) -> Element | None:
    return rng.choice(items) if items else None


def block(element: Element, file: File) -> tuple[int, int]:
    """First and last line of an element, from one."""
    start = element.sourceline
    if re.search(r"/>\s*$", file.lines[start - 1]) or f"</{element.tag}>" in file.lines[start - 1]:
        return start, start
    indent = re.match(r"\s*", file.lines[start - 1])[0]
    for number in range(start, len(file.lines)):
        if file.lines[number].startswith(f"{indent}</{element.tag}>"):
            return start, number + 1
    raise AssertionError(element.tag)


def without(file: File, element: Element) -> str:
    first, last = block(element, file)
    return "\n".join(file.lines[: first - 1] + file.lines[last:])


def after(file: File, number: int, *new: str) -> str:
    return "\n".join([*file.lines[:number], *new, *file.lines[number:]])


def layers(file: File, *types: str) -> list[Element]:
    found = file.all("layer")
    return [x for x in found if not types or x.get("type") in types]


def outer(file: File) -> list[Element]:
    return list(file.root.iterfind("layers/layer"))


def port_lines(file: File) -> list[Element]:
    return file.all("port")


def ends(file: File, edge: Element) -> set[str]:
    """Names of the layers at both ends of an edge."""
    scope = edge.getparent().getparent()
    found = names(scope)
    for side in ("from-layer", "to-layer"):
        for layer in scope.iterfind("layers/layer"):
            if layer.get("id") == edge.get(side):
                found |= names(layer)
    return found


def graph_edges(file: File) -> list[Element]:
    return file.all("edges/edge")


#: Attributes that a file needs though the operation can do without: under ``auto_pad`` OpenVINO
#: finds the pads itself, a constant in memory lies nowhere.
NEEDED = {
    "strides",
    "dilations",
    "pads_begin",
    "pads_end",
    "offset",
    "size",
    "op_seed",
    "global_seed",
}


def kinds(element: Element) -> dict[str, Attribute]:
    """What attributes a layer may have, by name; empty for a type that nobody knows."""
    op = Op.find(element.get("type"), element.get("version"))
    return {attribute.name: attribute for attribute in op.describe()} if op else {}


def is_needed(data: Element, attribute: Attribute) -> bool:
    """Whether a file that lacks the attribute is wrong."""
    padded = data.get("auto_pad", "explicit") in ("explicit", "notset")
    return attribute.required or (attribute.name in NEEDED and padded)


def attributes(
    file: File, test: Callable[[Attribute], bool] = lambda _: True
) -> list[tuple[Element, str, Attribute]]:
    """The attributes of layers that a test picks out."""
    found = []
    for data in file.all("layer/data"):
        rows = kinds(data.getparent())
        found += [
            (data, name, rows[name]) for name in data.attrib if name in rows and test(rows[name])
        ]
    return found


def constants(file: File) -> list[Element]:
    return [
        d
        for d in file.all("layer/data")
        if d.getparent().get("type") == "Const" and "offset" in d.attrib
    ]


def matters(data: Element) -> bool:
    """Whether a layer's attributes are not all optional."""
    return data.getparent().get("type") in (
        "Parameter",
        "Const",
        "Convolution",
        "MaxPool",
        "Concat",
    )
