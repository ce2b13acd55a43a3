"""A finding before its place is worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ...text import Breach

if TYPE_CHECKING:
    from lxml import etree


class Noted(Protocol):
    """A layer that a note is about."""

    element: etree._Element
    id: int | None
    name: str
    type: str
    version: str


T = TypeVar("T")


class Note(NamedTuple):
    """What a rule found: its code, one sentence, and the element it is about."""

    code: str
    message: str
    element: etree._Element | None = None
    node: Noted | None = None
    attribute: str | None = None
    hint: str | None = None
    #: The place in bytes, where there is no element.
    offset: int | None = None

    @classmethod
    def of(cls, breach: Breach) -> Note:
        """A breach of XML as a note."""
        return cls(
            breach.code, breach.message, breach.element, None, breach.attribute, breach.hint,
            breach.offset,
        )  # fmt: skip


def tag(element: etree._Element) -> str:
    """The name of an element."""
    return str(element.tag)


def listed(items: Sequence[T], most: int = 8, text: Callable[[T], str] = str) -> str:
    """Items for a message, the long rest left out."""
    rest = [f"… ({len(items)} in all)"] if len(items) > most else []
    return ", ".join([*map(text, items[:most]), *rest])
