"""What is XML, and what is refused before a parser sees it.

A document is refused before it is parsed where it declares a DOCTYPE, so that no entity is ever
expanded; lxml is told to load nothing. Depth and sizes are limited by libxml2.
"""

from __future__ import annotations

import re

from lxml import etree

from ...schemas import UnreadableError, Where
from .encoding import encoding_of, is_plain, mark_of

#: What helps against some breaches of XML.
LENIENT = "lenient=True reads what OpenVINO reads and XML forbids"


def strict_parser() -> etree.XMLParser:
    """A parser that loads and expands nothing."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True,
        collect_ids=False, strip_cdata=False,
    )  # fmt: skip


def keeps_to_xml(source: bytes) -> bool:
    """Whether a document is one that may be read as XML, whatever is in it."""
    try:
        refuse_doctype(source, None)
        etree.fromstring(source, strict_parser())
    except (UnreadableError, etree.XMLSyntaxError, ValueError):
        return False
    return True


_PROLOG = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)


def refuse_doctype(source: bytes, file: str | None) -> None:
    """Look through all that stands before the root element, before a parser sees it."""
    encoding = encoding_of(source)
    if encoding.startswith("utf-16"):
        codec = "utf-16" if encoding == "utf-16" else encoding
        text = source.decode(codec, "replace").encode("utf-8", "replace")
    elif is_plain(encoding) or mark_of(source) == "utf-8-sig":
        text = source
    else:
        raise UnreadableError(f'encoding "{encoding}" is not read', Where(file, 1, 1), LENIENT)
    end = 3 if mark_of(source) == "utf-8-sig" else 0
    while found := _PROLOG.match(text, end):
        end = found.end()
    if text.startswith(b"<!", end) and text[end + 2 : end + 9].upper() == b"DOCTYPE":
        line, column = text.count(b"\n", 0, end) + 1, end - text.rfind(b"\n", 0, end)
        raise UnreadableError(
            "a DOCTYPE is not allowed", Where(file, line, column), "remove it: an IR needs none"
        )
