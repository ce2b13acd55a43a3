"""Where in the file something stands, found only when something is wrong.

lxml knows the line of an element but not its column. On an error, expat counts start tags up
to the same element.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.parsers import expat

from ...schemas import InternalError, IRError, Where, placed

if TYPE_CHECKING:
    from lxml import etree


#: What helps where an attribute is missing: it may be there under another name.
_MISSPELT = "`vinoir check` and ir.check tell whether the file has it under a misspelt name"


class _FoundError(Exception):
    """Ends the count at a line and column."""


def position(source: bytes, element: etree._Element) -> tuple[int, int] | None:
    """Line and column (from one) of an element's start tag."""
    root = element.getroottree().getroot()
    index = next((i for i, node in enumerate(root.iter("*")) if node is element), None)
    if index is None:
        return None
    parser = expat.ParserCreate()
    left = index

    def start(_: str, __: dict[str, str]) -> None:
        nonlocal left
        if left == 0:
            raise _FoundError(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
        left -= 1

    parser.StartElementHandler = start
    try:
        parser.Parse(source, True)
    except _FoundError as found:
        line, column = found.args
        return line, column
    except expat.ExpatError:
        return None
    return None


def exact(where: Where, source: bytes, element: etree._Element) -> Where:
    """The place with its exact line and column."""
    found = position(source, element)
    return replace(where, line=found[0], column=found[1]) if found else where


@contextmanager
def at(where: Where, source: bytes | None, element: etree._Element | None) -> Iterator[None]:
    """Add the exact place of an element to errors raised inside."""
    try:
        with placed(where):
            yield
    except (IRError, InternalError) as error:
        if source is not None and element is not None and error.where.column is None:
            same = (error.where.layer, error.where.name) == (where.layer, where.name)
            if same:
                error.where = exact(error.where, source, element)
                if isinstance(error, IRError) and _lacks(element, error.where.attribute):
                    error.hint = error.hint or _MISSPELT
        raise


def _lacks(element: etree._Element, attribute: str | None) -> bool:
    """Whether an error is about an attribute that the data of a layer do not have."""
    data = element if element.tag == "data" else element.find("data")
    return attribute is not None and (data is None or data.get(attribute) is None)
