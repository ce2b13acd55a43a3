"""Bytes to a tree: what does not keep to XML, or is no IR, is refused with its place."""

from __future__ import annotations

from lxml import etree

from ...schemas import UnreadableError, Where
from .breach import BROKEN, said
from .other_kinds import SEARCHED, other_kind
from .positions import position
from .strictness import LENIENT, refuse_doctype, strict_parser

#: What declares a namespace, in one byte for a character and in two.
_DECLARING = (b"xmlns", b"x\0m\0l\0n\0s")
#: Levels that libxml2 takes, whatever it is told.
_DEEPEST = 2048


def _broken(
    source: bytes, file: str | None, error: etree.XMLSyntaxError, lenient: bool
) -> UnreadableError:
    """What first breaks the rules of XML, and what helps; a parser only says where it gave up."""
    line, column = error.position
    place = Where(file, line or 1, column or 1)
    message = said(error)
    if (error.msg or "").startswith("Excessive depth"):
        what = f"elements are nested more than {_DEEPEST} deep"
        return UnreadableError(what, place, "take out the levels that say nothing (IR114)")
    hint = "ir.check and `vinoir check` tell all that is wrong with it"
    if len(source) <= SEARCHED:  # in longer ones nobody looks for what is broken
        from .repairs import repair
        from .source import breaches

        found = breaches(source, file)
        first = None
        if found:
            first, place = found[0]
            message = first.message
        # A document that ends too early is beyond repair.
        torn = first is not None and first.code == "IR102"
        if not lenient and not torn and not breaches(repair(source)[0], file):
            hint = LENIENT
        if first is not None and first.hint:
            hint = f"{first.hint}; {hint}"
    return UnreadableError(BROKEN + message.removeprefix(BROKEN), place, hint)


def parse(source: bytes, file: str | None, lenient: bool = False) -> etree._Element:
    """Parse a document that keeps to XML and declares no DOCTYPE."""
    other = other_kind(source)
    if other is not None:
        raise UnreadableError(other[0], Where(file, 1, 1), other[1])
    refuse_doctype(source, file)
    try:
        root = etree.fromstring(source, strict_parser())
    except etree.XMLSyntaxError as error:
        raise _broken(source, file, error, lenient) from None
    except ValueError as error:
        raise UnreadableError(f"not XML: {error}", Where(file, 1, 1)) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise UnreadableError("a DOCTYPE is not allowed", Where(file, 1, 1))
    tag = str(root.tag)
    if root.prefix is None and etree.QName(tag).localname.lower() == "net":
        if any(word in source for word in _DECLARING):
            _refuse_namespaces(root, source, file, lenient)
    else:
        raise UnreadableError(
            f"the root element is <{tag}>, an IR has <net>", _root_place(root, source, file)
        )
    return root


def _refuse_namespaces(
    root: etree._Element, source: bytes, file: str | None, lenient: bool
) -> None:
    """Refuse elements without a prefix that are in a namespace: they are not what they seem."""
    for element in root.iter("*"):
        if element.prefix is None and str(element.tag).startswith("{"):
            name = etree.QName(element)
            line, column = position(source, element) or (element.sourceline, None)
            raise UnreadableError(
                f'<{name.localname}> is in the namespace "{name.namespace}", an IR has none',
                Where(file, line, column),
                None if lenient else LENIENT,
            )


def _root_place(root: etree._Element, source: bytes, file: str | None) -> Where:
    line, column = position(source, root) or (root.sourceline, None)
    return Where(file, line, column)
