"""IR1xx and the root: whether it is XML, and an IR."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from ....schemas.printing import shown
from ...document import BODIES, EXECUTION_GRAPH, EXECUTION_HINT, is_primitive
from ...text import Source, layer_around
from .loose import LooseModel, whole
from .note import Note


def is_net(root: etree._Element) -> bool:
    """Whether a root element, in whatever namespace or letter case, is that of an IR."""
    return etree.QName(root).localname.lower() == "net" and root.prefix is None


def is_old(root: etree._Element) -> bool:
    """Whether it is of a version that had another structure."""
    return whole(root.get("version")) in range(1, 10)


def is_executed(root: etree._Element) -> bool:
    """Whether it is what a runtime made of a model, in which no rule for models holds."""
    first = root.find("layers/layer")
    data = None if first is None else first.find("data")
    if first is None or data is None:
        return False
    said = {str(key): str(text) for key, text in data.items()}
    return is_primitive(first.get("version"), said)


def is_model(root: etree._Element) -> bool:
    """Whether the rules for models of today hold of it."""
    return is_net(root) and not is_old(root) and not is_executed(root)


def rules(source: Source) -> Iterator[Note]:
    """What the root element tells before anything else is looked at."""
    root = source.root
    if root is None:
        return
    if not is_net(root):
        yield Note(
            "IR201", f"the root element is <{shown(root.tag)[1:-1]}>, an IR has <net>", root,
            hint="this is another kind of XML file",
        )  # fmt: skip
        return
    yield from version(root)
    yield from namespaces(root)
    if is_executed(root):
        yield Note("IR119", f"this is {EXECUTION_GRAPH}", root, hint=EXECUTION_HINT)


def namespaces(root: etree._Element) -> Iterator[Note]:
    """A default namespace; elements have their plain names from then on, as for OpenVINO."""
    told = False
    for element in root.iter("*"):
        if element.prefix is None and str(element.tag).startswith("{"):
            name = etree.QName(element)
            if not told:
                told = True
                yield Note(
                    "IR113", f"<{name.localname}> is in the namespace {shown(name.namespace)}, an "
                    "IR has none", element, None, "xmlns", "remove xmlns",
                )  # fmt: skip
            element.tag = name.localname


def version(root: etree._Element) -> Iterator[Note]:
    """The version of the format."""
    text = root.get("version")
    if text is None:
        return  # told as a missing attribute
    number = whole(text)
    if number is not None and (number in (10, 11) or 2 <= number <= 7):
        return  # older ones: see the rules of older files
    if number in (8, 9):
        yield Note(
            "IR203", f"IR version {number} never existed: 7 was followed by 10", root, None,
            "version", "whatever wrote it is not OpenVINO",
        )  # fmt: skip
    elif number == 1:
        yield Note(
            "IR203", "IR version 1 was written before 2018, and is read by nobody today", root,
            None, "version", "convert the original model again",
        )  # fmt: skip
    elif number is not None and number > 11:
        yield Note(
            "IR205", f"IR version {number} is newer than 11, the newest that is known", root,
            None, "version", "write the model as IR_V11",
        )  # fmt: skip
    else:
        yield Note(
            "IR203", f"version={shown(text)} of <net>, an IR has 2 to 7, 10 or 11", root, None,
            "version",
        )  # fmt: skip


def names(model: LooseModel) -> Iterator[Note]:
    """Prefixed elements, which OpenVINO takes for others."""
    if model.root.nsmap and any(prefix is not None for prefix in model.root.nsmap):
        for element in model.root.iter("*"):
            if element.prefix is not None:
                yield Note(
                    "IR118", f"<{element.prefix}:{etree.QName(element).localname}> has a prefix, "
                    "OpenVINO ignores it", element, hint="remove the prefix",
                )  # fmt: skip
                return


def around(
    element: etree._Element,
) -> tuple[int | None, str | None, str | None, str | None]:
    """The layer an element is in."""
    inner = layer_around(element)
    if inner is None:
        return None, None, None, None
    return whole(inner.get("id")), inner.get("name"), inner.get("type"), inner.get("version")


def body_around(element: etree._Element) -> str | None:
    """The body that a layer is in, as findings write it: ``7/body/3/else_body``."""
    path: list[str] = []
    for body in element.iterancestors(*BODIES):
        holder = layer_around(body)
        number = None if holder is None else whole(holder.get("id"))
        path[:0] = ["?" if number is None else str(number), str(body.tag)]
    return "/".join(path) or None
