"""A finding before its place is worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ....schemas.printing import printable

if TYPE_CHECKING:
    from lxml import etree

    from .sheet import Node


T = TypeVar("T")


class Note(NamedTuple):
    """What a rule found: its code, one sentence, and the element it is about."""

    code: str
    message: str
    element: etree._Element | None = None
    node: Node | None = None
    attribute: str | None = None
    hint: str | None = None
    #: The place in bytes, where there is no element.
    offset: int | None = None


def shown(text: object, most: int = 60) -> str:
    """A text of the file for a message: quoted, not longer than a line."""
    line = str(text)
    end = "…" if len(line) > most else ""
    return f'"{printable(line[:most])}{end}"'


def tag(element: etree._Element) -> str:
    """The name of an element."""
    return str(element.tag)


def listed(items: Sequence[T], most: int = 8, text: Callable[[T], str] = str) -> str:
    """Items for a message, the long rest left out."""
    rest = [f"… ({len(items)} in all)"] if len(items) > most else []
    return ", ".join([*map(text, items[:most]), *rest])
