"""IR31x: which operation a layer means."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.printing import shown
from . import known
from .loose import LooseLayer, LooseModel
from .note import Note

#: Roles that OpenVINO matches by exact text.
_ROLES = {"const": "Const", "result": "Result", "assign": "Assign"}
#: Versions of plugins and extensions: their operations are read where those are loaded.
_CUSTOM = frozenset(
    {"extension", "experimental", "ie_internal_opset", "cpu_plugin_opset", "SnippetsOpset",
     "gpu_opset", "internal"}
)  # fmt: skip


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    for node in model.nodes:
        yield from operation(node)


def operation(node: LooseLayer) -> Iterator[Note]:
    """Type and version name an operation."""
    if "type" not in node.element.attrib or "version" not in node.element.attrib:
        return  # told as a missing attribute
    kind = known.CLASS_NAMES.get(node.type, node.type)
    if node.kind is not None and kind == node.type == node.kind.xml_type:
        return
    if known.find_operation(node.type, node.version) is not None:
        if node.type == "Constant":
            yield Note(
                "IR316", 'type "Constant" is read with uninitialised data', node.element, node,
                "type", 'write type="Const"',
            )  # fmt: skip
        return
    canonical = known.by_lower_case().get(node.type.lower())
    if canonical is not None and canonical != kind:
        yield from _other_case(node, canonical)
        kind = canonical
        if known.find_operation(kind, node.version) is not None:
            return
    yield from _unknown(node, kind)


def _other_case(node: LooseLayer, canonical: str) -> Iterator[Note]:
    role = _ROLES.get(node.type.lower())
    if role is None:
        yield Note(
            "IR312", f"type {shown(node.type)} is {shown(canonical)} in another letter case",
            node.element, node, "type", f'write type="{canonical}"',
        )  # fmt: skip
        return
    what = "refuses it" if role == "Const" else "drops it, and all that feeds only it"
    yield Note(
        "IR316", f"type {shown(node.type)} is not {role}: OpenVINO {what}", node.element, node,
        "type", f'write type="{role}"',
    )  # fmt: skip


def _unknown(node: LooseLayer, kind: str) -> Iterator[Note]:
    versions = known.versions_of(kind)
    number = known.opset_number(node.version)
    if node.version in _CUSTOM or (
        number is None and not versions and known.near(node.version, ("opset1",)) is None
    ):
        yield Note(
            "IR315",
            f"{shown(node.type)} {shown(node.version)} is a custom operation; its declared ports "
            "are trusted",
            node.element, node, "version", "OpenVINO needs the extension that has it",
        )  # fmt: skip
        return
    if number is None or number not in known.RELEASES:
        near = known.near(node.version, [f"opset{n}" for n in known.RELEASES])
        newest = versions[-1].version() if versions else None
        hint = f'write version="{newest}"' if newest else near and f"did you mean {near}?"
        message = (
            f"version {shown(node.version)} is no opset; "
            f"known are opset1 to opset{max(known.RELEASES)}"
        )
        yield Note("IR313", message, node.element, node, "version", hint)
        if versions:
            return
    if not versions:
        near = known.near_type(kind)
        yield Note(
            "IR311", f"type {shown(node.type)} is no operation of OpenVINO", node.element, node,
            "type", f"did you mean {near}?" if near else "custom operations have the version "
            '"extension"',
        )  # fmt: skip
        return
    spans = ", ".join(f"{op.spec()} in {known.span(op)}" for op in versions)
    yield Note(
        "IR314", f"{node.version} does not have {kind}: {spans}", node.element, node, "version",
        f'write version="{versions[-1].version()}" if its attributes fit',
    )  # fmt: skip
