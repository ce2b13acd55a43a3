"""One place where a document breaks the rules of XML."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lxml import etree

#: Breaches that common parsers bear: a document is read all the same.
TOLERATED = frozenset({"IR108", "IR113", "IR114", "IR115", "IR116"})

#: What is said of all that is not XML.
BROKEN = "not well-formed XML: "


class Breach(NamedTuple):
    """What is wrong, by the code under which a check tells it, and the element it is about."""

    code: str
    message: str
    element: etree._Element | None = None
    attribute: str | None = None
    hint: str | None = None
    #: The place in bytes, where there is no element.
    offset: int | None = None


def said(error: Exception) -> str:
    """What a parser says of a document, without the place, which stands beside it."""
    message = getattr(error, "msg", None) or str(error) or "not XML"
    return BROKEN + message.split(", line ")[0]
