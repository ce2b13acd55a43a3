"""What elements say that no rule knows, and that is kept nevertheless when a model is written.

Looked at are a net, its layers, and bodies with theirs; not what <layers>, <edges>, <edge>,
<input>, <output>, <dim>, <port_map> and <back_edges> say, of which the checker tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..document import LAYER_ORDER, NET_ORDER, Graph, Layer, Model

if TYPE_CHECKING:
    from lxml import etree

#: The attributes and children that are known, by what they are of.
_LAYER = frozenset({"id", "name", "type", "version"}), frozenset(LAYER_ORDER)
_NET = frozenset({"name", "version"}), frozenset(NET_ORDER)
_BODY = frozenset[str](), frozenset({"layers", "edges", "rt_info"})


def unknown_parts(one: Layer | Graph) -> dict[str, str]:
    """Attributes by their names, and children as ``<tag>``, in one spelling."""
    element: etree._Element | None = one.element
    if element is None or not _is_of_its_model(element, one.model):
        return {}
    attributes, tags = (
        _LAYER if isinstance(one, Layer) else _NET if isinstance(one, Model) else _BODY
    )
    found = {str(key): str(text) for key, text in element.items() if key not in attributes}
    if isinstance(one, Layer) and one.type == "Result":
        found.pop("output_names", None)  # which is known
    for child in element.iterchildren("*"):
        tag = str(child.tag)
        if tag not in tags:
            key = f"<{tag}>"
            found[key] = found.get(key, "") + _spelt(child)
    return found


def _is_of_its_model(element: etree._Element, model: Model | None) -> bool:
    """Whether an element is written with the model.

    That of a layer made of an older document only says of what it was made.
    """
    return model is None or element.getroottree().getroot() is model.element


def _spelt(element: etree._Element) -> str:
    """An element whatever the order of its attributes and the blanks between its children."""
    from lxml import etree

    text = etree.tostring(element, encoding="unicode", with_tail=False)
    return etree.canonicalize(text, strip_text=True)
