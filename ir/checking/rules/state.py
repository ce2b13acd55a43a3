"""IR8xx: variables, which ReadValue reads and Assign writes."""

from __future__ import annotations

from collections.abc import Iterator

from ....layers.infrastructure import LOOKING_BACK
from ....schemas import ElementType, Shape, Tensor
from ....schemas.printing import shown
from ....schemas.shapes import compatible
from . import known
from .loose import LooseLayer, LooseModel
from .note import Note


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group; variables are shared by the model and its bodies."""
    reads: dict[str, LooseLayer] = {}
    writes: dict[str, LooseLayer] = {}
    for node in model.nodes:
        kind = known.by_lower_case().get(node.type.lower())
        if kind not in ("ReadValue", "Assign"):
            continue
        name = node.data.get("variable_id")
        if name is None:
            continue  # told as a missing attribute
        if not name:
            yield Note(
                "IR801", "variable_id is empty", node.data_element, node, "variable_id",
                "give the variable a name",
            )  # fmt: skip
            continue
        table = reads if kind == "ReadValue" else writes
        if table.setdefault(name, node) is not node:
            yield Note(
                "IR802" if kind == "ReadValue" else "IR803",
                f"variable {shown(name)} is also that of {kind} {table[name].label}",
                node.data_element, node, "variable_id", "each variable has one ReadValue and one "
                "Assign",
            )  # fmt: skip
    for name, node in writes.items():
        if name not in reads:
            near = known.near(name, reads)
            yield Note(
                "IR804", f"Assign writes variable {shown(name)}, which no ReadValue has",
                node.data_element, node, "variable_id",
                f"did you mean {near}?" if near else "OpenVINO refuses the model",
            )  # fmt: skip
        elif node.version in LOOKING_BACK and not (
            reads[name].version in LOOKING_BACK and follows(node, reads[name])
        ):
            yield Note(
                "IR804", f"Assign of {node.version} writes variable {shown(name)}, and does not "
                f"follow from a ReadValue of such an opset, {reads[name].label}",
                node.data_element, node, "variable_id", "OpenVINO looks for it in what feeds the "
                "Assign; of opset6 it need not be there",
            )  # fmt: skip
    for name, node in reads.items():
        if name not in writes:
            near = known.near(name, [other for other in writes if other not in reads])
            yield Note(
                # Without any Assign the program sets the variables itself.
                "IR805" if writes else "IR808",
                f"variable {shown(name)} is read and never written", node.data_element,
                node, "variable_id", f"did you mean {near}?" if near else None,
            )  # fmt: skip
        declared = variable(node)
        if declared is not None:
            for user, what in ((node, "its initial value"), (writes.get(name), "Assign")):
                if user is not None and user.inputs:
                    yield from fits(user, declared, what)


def follows(node: LooseLayer, wanted: LooseLayer) -> bool:
    """Whether a layer is computed from another."""
    seen, pending = {id(node)}, [node]
    while pending:
        for wire in pending.pop().sources.values():
            source = wire.source
            if source is wanted:
                return True
            if source is not None and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def variable(node: LooseLayer) -> Tensor | None:
    """What a ReadValue says of its variable."""
    try:
        return Tensor(
            ElementType.parse(node.data.get("variable_type", "dynamic")),
            Shape.parse(node.data.get("variable_shape", "...")),
        )
    except ValueError:
        return None  # told as a value


def fits(user: LooseLayer, declared: Tensor, what: str) -> Iterator[Note]:
    """A value that is put into a variable has its type and shape."""
    pin = user.inputs[0]
    value = user.graph.fed(user, pin)
    element = user.place
    if not (value.type.is_dynamic or declared.type.is_dynamic) and value.type != declared.type:
        yield Note(
            "IR806", f"the variable is {declared.type}, {what} gives {value.type}", element, user,
            "variable_type" if what != "Assign" else None,
        )  # fmt: skip
    one, two = declared.shape, value.shape
    if one.rank is None or two.rank is None:
        return
    if one.rank != two.rank or not all(compatible(a, b) for a, b in zip(one, two, strict=True)):
        yield Note(
            "IR807", f"the variable is {one}, {what} gives {two}", element, user,
            "variable_shape" if what != "Assign" else None,
        )  # fmt: skip
