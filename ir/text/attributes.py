"""The attributes and the text of an element."""

from __future__ import annotations

from lxml import etree

_VALUES = etree.XPath("@*", smart_strings=False)
#: From here on it takes longer to look each value up than to ask for all.
_MANY = 100
#: The namespace of xml:lang and xml:space, which no document declares.
XML = "http://www.w3.org/XML/1998/namespace"


def attributes_of(element: etree._Element) -> dict[str, str]:
    """The attributes by name, in time that grows with their number only."""
    # lxml's items() look each value up by its name: of n attributes n x n names are compared.
    if len(element.attrib) < _MANY:
        return dict(element.items())
    return dict(zip(element.keys(), _VALUES(element), strict=True))


def text_of(element: etree._Element) -> str:
    """The first text that is not blank, without blanks around it: it may stand after a comment."""
    text = (element.text or "").strip()
    if text or not len(element):
        return text
    tails = ((child.tail or "").strip() for child in element)
    return next((tail for tail in tails if tail), "")


def spelt_tag(element: etree._Element) -> tuple[str, dict[str, str]]:
    """The name and the attributes as a start tag says them, with prefixes and what they mean."""
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix} | {XML: "xml"}
    parent = element.getparent()
    outer = {} if parent is None else parent.nsmap
    words = {
        f"xmlns:{prefix}" if prefix else "xmlns": uri or ""
        for prefix, uri in element.nsmap.items()
        if outer.get(prefix) != uri
    }
    for name, text in attributes_of(element).items():
        uri, brace, local = name.removeprefix("{").rpartition("}")
        words[f"{prefixes[uri]}:{local}" if brace else name] = text
    tag = str(element.tag).rpartition("}")[2]
    return f"{element.prefix}:{tag}" if element.prefix else tag, words
