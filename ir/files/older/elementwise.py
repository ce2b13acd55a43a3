"""Element by element over several inputs: Eltwise, Power, Select, and their kin."""

from __future__ import annotations

from typing import Any

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import Old
from .table import Made, converts

#: Operations of two inputs that are applied from the left over all.
FOLDED = {
    "": "Add", "sum": "Add", "mul": "Multiply", "prod": "Multiply", "max": "Maximum",
    "min": "Minimum", "sub": "Subtract", "div": "Divide", "squared_diff": "SquaredDifference",
    "floor_mod": "FloorMod", "pow": "Power",
}  # fmt: skip
COMPARED = {
    "equal": "Equal", "not_equal": "NotEqual", "less": "Less", "less_equal": "LessEqual",
    "greater": "Greater", "greater_equal": "GreaterEqual",
}  # fmt: skip
LOGICAL = {
    "logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_xor": "LogicalXor",
    "logical_not": "LogicalNot",
}  # fmt: skip
#: Divisions of whole numbers, which the old CPU rounded towards zero.
TOWARDS_ZERO: dict[str, tuple[str, dict[str, Any]]] = {
    "div": ("Divide", {"m_pythondiv": False}), "floor_mod": ("Mod", {}),
}  # fmt: skip


@converts(
    "Eltwise", "operation=sum coeff=",
    becomes=" ".join(f"{one}-1" for one in {**FOLDED, **COMPARED, **LOGICAL}.values()) + " Mod-1",
    idle="axis stable_prod_grad",
)  # fmt: skip
def eltwise(old: Old) -> Made:
    """Two or more inputs, broadcast as NumPy does; truth is 1 and 0 of the declared type."""
    operation = old.text("operation").lower()
    known = {**FOLDED, **COMPARED, **LOGICAL, "mean": "Add"}
    if operation not in known:
        raise IRError(
            f'operation is "{operation[:40]}"; known are {", ".join(filter(None, known))}'
        )
    if not len(old):
        raise IRError("Eltwise has no inputs")
    if operation in LOGICAL:
        truths = [old.cast(one, ElementType.BOOLEAN) for one in old.inputs]
        if operation == "logical_not":
            return old.add("LogicalNot", "opset1", [truths[0]])
        return old.chain(LOGICAL[operation], truths)
    inputs = of_one_type(old)
    if operation in COMPARED:
        if len(inputs) != 2:
            raise IRError(f"{operation} compares 2 inputs, here are {len(inputs)}")
        return old.add(COMPARED[operation], "opset1", inputs)
    coefficients = old.numbers("coeff")
    if operation == "mean" or any(one != 1 for one in coefficients):
        # Of whole numbers, too: what comes of them gets its declared type at the end.
        inputs = [old.reals(i) for i in range(len(old))]
    if coefficients:
        inputs = _scaled(old, inputs, operation, coefficients)
    if operation in TOWARDS_ZERO and not any(one.tensor.type.is_real for one in inputs):
        type, words = TOWARDS_ZERO[operation]
        return old.chain(type, inputs, **words)
    made = old.chain(known[operation], inputs)
    if operation == "mean":
        return old.add("Divide", "opset1", [made, old.constant(float(len(inputs)))])
    return made


def of_one_type(old: Old) -> list[Output]:
    """The inputs as they are where they are of one type that is computed with, else as f32."""
    kinds = {one.tensor.type for one in old.inputs}
    if len(kinds) == 1 and kinds <= {ElementType.F32, ElementType.I32, ElementType.I64}:
        return list(old.inputs)
    if kinds == {ElementType.I32, ElementType.I64}:
        return [old.cast(one, ElementType.I64) for one in old.inputs]
    return [old.cast(one, ElementType.F32) for one in old.inputs]


def _scaled(
    old: Old, inputs: list[Output], operation: str, coefficients: tuple[float, ...]
) -> list[Output]:
    """Each input times its coefficient, which only sums have."""
    if all(one == 1 for one in coefficients):
        return inputs
    if operation not in ("sum", ""):
        raise IRError(f"{operation} has coefficients, which only a sum may have")
    if len(coefficients) != len(inputs):
        raise IRError(f"coeff has {len(coefficients)} numbers for {len(inputs)} inputs")
    old.remark(f"coefficients {list(coefficients)} are products before the sum")
    return [
        one if scale == 1 else old.add("Multiply", "opset1", [one, old.constant(scale)])
        for one, scale in zip(inputs, coefficients, strict=True)
    ]


@converts("Power", "power scale shift", becomes="Multiply-1 Add-1 Power-1")
def power(old: Old) -> Made:
    """(shift + scale x) ^ power, each step where it is not neutral."""
    made = old.reals(0)
    scale, shift, exponent = old.real("scale"), old.real("shift"), old.real("power")
    if scale != 1:
        made = old.add("Multiply", "opset1", [made, old.constant(scale)])
    if shift != 0:
        made = old.add("Add", "opset1", [made, old.constant(shift)])
    if exponent != 1:
        made = old.add("Power", "opset1", [made, old.constant(exponent)])
    return made


@converts("Select", becomes="Select-1")
def select(old: Old) -> Made:
    """Where the first input is not 0, the second, else the third."""
    truth = old.cast(old[0], ElementType.BOOLEAN)
    one, other = old[1], old[2]
    if one.tensor.type is not other.tensor.type:
        one, other = old.reals(1), old.reals(2)
    return old.add("Select", "opset1", [truth, one, other])


@converts("FakeQuantize Quantize", "levels", becomes="FakeQuantize-1", idle="auto_broadcast")
def fake_quantize(old: Old) -> Made:
    """Quantize was its name before v6."""
    levels = old.integer("levels", 2)
    return old.add("FakeQuantize", "opset1", [old.reals(i) for i in range(5)], levels=levels)


@converts("Bucketize", "with_right_bound=true", becomes="Bucketize-3")
def bucketize(old: Old) -> Made:
    """The number of the bucket that each value falls into."""
    return old.add(
        "Bucketize", "opset3", [old[0], old[1]],
        output_type="i32", with_right_bound=old.flag("with_right_bound"),
    )  # fmt: skip
