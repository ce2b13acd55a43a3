"""Inputs, constants, variables, and layers that do nothing."""

from __future__ import annotations

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import STORED, TYPES, Old
from .table import Made, converts


@converts("Input", becomes="Parameter-1", idle="shape element_type")
def network_input(old: Old) -> Made:
    """A Parameter of the sizes and the type of the port; FP16 is given as f32."""
    walk = old.scene.walk
    if not walk.outer:
        raise IRError("a body has no layers of type Input: its port map says what feeds it")
    if not old.layer.outputs:
        raise IRError("an Input has an output port, which this has not")
    port = old.layer.outputs[0]
    made = walk.parameter(old.layer, old.layer.name, old.layer.output_precision(0), port.dims)
    old.made.append(made.layer)
    made.layer.name = old.layer.name  # its tensor has it; what is less its means has neither
    return walk.mean_free(old.layer, port.id, made)


@converts("Const", becomes="Const-1", idle="shape element_type offset size")
def constant(old: Old) -> Made:
    """Blob ``custom``, in the sizes of the output port; any name of the blob is read."""
    if not old.layer.blobs:
        raise IRError("Const has no blob", hint="<blobs> needs <custom>")
    held = old.layer.blobs.get("custom") or next(iter(old.layer.blobs.values()))
    said = held.precision or old.layer.output_precision(0)
    if said == "Q78":
        raise IRError("Q78 is of fixed-point numbers that no CPU ran")
    kind = STORED[said] if said is not None else ElementType.F32
    made = old.stored(held, kind, old.declared())
    return old.cast(made, TYPES["FP16"]) if kind is ElementType.F16 else made


@converts("Copy Identity Dropout StopGradient")
def nothing(old: Old) -> Made:
    """What comes in."""
    return old[0]


@converts("Convert", "precision", becomes="Convert-1", idle="destination_type")
def convert(old: Old) -> Made:
    """To the precision that the attribute names; FP16 is f32 here."""
    name = old.text("precision")
    if name not in TYPES:
        raise IRError(f'precision is "{name[:40]}"; known are {", ".join(TYPES)}')
    return old.cast(old[0], TYPES[name])


@converts("Memory", "id index size=2", becomes="ReadValue-6 Assign-6 Broadcast-1", idle="axis")
def memory(old: Old) -> Made:
    """Of a pair with one id, index 1 reads the variable and index 0 writes it; it begins as 0."""
    size, index, name = old.integer("size"), old.integer("index"), old.text("id")
    if size != 2 or index not in (0, 1):
        raise IRError(f"index {index} of {size}: a variable has one reader (1) and one writer (0)")
    if index == 1:
        dims = old.declared()
        kind = TYPES[old.layer.output_precision(0) or "FP32"]
        zero = old.filled(0, kind, *dims)
        shape = ",".join(map(str, dims))
        old.remark(f'reads the variable "{name}", which begins as zeros')
        made = old.add(
            "ReadValue", "opset6", [zero],
            variable_id=name, variable_type=str(kind), variable_shape=shape,
        )  # fmt: skip
        return [made] * len(old.layer.outputs)
    held: Output = old[0]
    old.add("Assign", "opset6", [held], variable_id=name)
    old.remark(f'writes the variable "{name}"')
    return []
