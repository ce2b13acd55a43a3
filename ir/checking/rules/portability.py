"""IR9xx: which OpenVINO release reads the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....schemas import UsageError
from . import known
from .loose import LooseLayer, LooseModel
from .note import Note

#: A release by year and number.
Release = tuple[int, int]

_RELEASE = re.compile(r"(20[12]\d)\.(\d{1,2})(?:\.\d+)*", re.ASCII)
#: IR version 11 came with this one; the public reader of versions 2 to 7 ended with 2020.4.
V11 = (2022, 1)


def release(text: object) -> Release:
    """A release from its name."""
    found = _RELEASE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found:
        raise UsageError(f'"{text}" is no OpenVINO release', hint="write one such as 2025.1")
    return int(found[1]), int(found[2])


def spelled(number: Release) -> str:
    """The name of a release."""
    return f"{number[0]}.{number[1]}"


def rules(model: LooseModel, target: Release | None) -> Iterator[Note]:
    """Everything of this group; without a target only what holds for all releases."""
    if target is None:
        return
    name = spelled(target)
    came = {10: release(known.RELEASES[1]), 11: V11}
    since = came.get(model.version or 0)
    if since is not None and target < since:
        hint = "write the model as IR version 10"
        if target < came[10]:
            hint = (
                "releases before it read versions 2 to 7, which nothing writes any more; convert "
                "the original model with the Model Optimizer of that release"
            )
        yield Note(
            "IR901", f"IR version {model.version} came with OpenVINO {spelled(since)}, the target "
            f"is {name}", model.root, None, "version", hint,
        )  # fmt: skip
    for node in model.nodes:
        yield from layer(node, target, name)


def layer(node: LooseLayer, target: Release, name: str) -> Iterator[Note]:
    """One layer against the target."""
    number = known.opset_number(node.version)
    op = known.find_operation(node.type, node.version)
    since = known.RELEASES.get(number or 0)
    if op is not None and since is not None and release(since) > target:
        brought = op.opset_numbers()[0]
        older = known.RELEASES.get(brought)
        hint = "the operation itself is newer"
        if older is not None and release(older) <= target:
            hint = f'write version="opset{brought}": the operation is as old as that'
        else:
            before = [
                other for other in known.versions_of(op.xml_type)
                if release(known.RELEASES[other.opset_numbers()[0]]) <= target
            ]  # fmt: skip
            if before:
                hint = f"{before[-1].spec()} is what {name} has"
        yield Note(
            "IR902", f"{node.version} came with OpenVINO {since}, the target is {name}",
            node.element, node, "version", hint,
        )  # fmt: skip
    for attribute in ("element_type", "destination_type", "output_type", "variable_type"):
        text = node.data.get(attribute, "").lower()
        brought_by = known.TYPE_RELEASES.get(text)
        if brought_by is not None and release(brought_by) > target:
            yield Note(
                "IR903", f"element type {text} came with OpenVINO {brought_by}, the target is "
                f"{name}", node.place, node, attribute,
            )  # fmt: skip
    if op is not None and op.spec() == "AvgPool-16" and not node.data.get("dilations", "").strip():
        yield Note(
            "IR905", f"{name} crashes at inference of AvgPool-16 without dilations", node.place,
            node, "dilations", 'write dilations="1, 1"; vinoir check --fix does',
        )  # fmt: skip
    if "output_names" in node.element.attrib and target < (2025, 0):
        yield Note(
            "IR904", f"output_names came with OpenVINO 2025.0; {name} takes the names of the port",
            node.element, node, "output_names",
        )  # fmt: skip


__all__ = ["Release", "release", "rules"]
