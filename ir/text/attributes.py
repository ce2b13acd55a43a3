"""The attributes of an element."""

from __future__ import annotations

from lxml import etree

_VALUES = etree.XPath("@*", smart_strings=False)
#: From here on it takes longer to look each value up than to ask for all.
_MANY = 100


def attributes_of(element: etree._Element) -> dict[str, str]:
    """The attributes by name, in time that grows with their number only."""
    # lxml's items() look each value up by its name: of n attributes n x n names are compared.
    if len(element.attrib) < _MANY:
        return dict(element.items())
    return dict(zip(element.keys(), _VALUES(element), strict=True))
