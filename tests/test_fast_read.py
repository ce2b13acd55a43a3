"""Attributes are read as Pydantic reads them, whichever way they are read."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import (
    BeforeValidator,
    ConfigDict,
    ValidationError,
    field_validator,
    model_validator,
)
from vinoir.layers import Op
from vinoir.layers.fast_read import read_plainly
from vinoir.schemas.attributes import Int

TEXTS = (
    "", " 1", "1 ", "-0", "+1", "1.5", "1e3", ".5", "inf", "nan", "1,2", " 1 , 2,", "1,,2", ",",
    "true", "TRUE", "0", "no", "i64", "F32", "undefined", "1..3,?", "...", "9" * 30, "9" * 5000,
    "\u0663", "\u00e9", "SAME_Upper", "ceil_torch", "max", "numpy", "NONE",
)  # fmt: skip


def readings(kind: type[Op], data: dict[str, str]) -> tuple[object, object]:
    """What is read plainly, and what Pydantic reads; None where it refuses."""
    plainly = read_plainly(kind, Op, data, kind._before)
    try:
        validated = kind._read(data)
    except ValidationError:
        validated = None
    return plainly, validated


def values(op: object) -> object:
    """All that there is to an operation, with the types of its values."""
    return op and (type(op), repr(op), op.model_fields_set, type(op.__dict__), vars(op).keys())  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", Op.registry.values(), ids=lambda kind: kind.__name__)
def test_plain_reading_gives_what_pydantic_gives(kind: type[Op]) -> None:
    usual = {row.name: row.default or SOME.get(row.kind, "") for row in kind.describe()}
    usual |= {row.name: row.choices[0] for row in kind.describe() if row.choices}
    needed = {row.name: usual[row.name] for row in kind.describe() if row.required}
    cases = [usual, needed, {}, needed | {"unknown": "1"}]
    for name in usual:
        cases += [usual | {name: text} for text in TEXTS]
        cases += [needed | {name: text} for text in (*TEXTS, usual[name], usual[name].upper())]
        cases.append({key: text for key, text in usual.items() if key != name})
        cases.append({key.replace("-", "_"): text for key, text in usual.items()})
    read = 0
    for data in cases:
        plainly, validated = readings(kind, data)
        if plainly is not None:
            assert values(plainly) == values(validated), data
            read += 1
    assert read >= 2 or kind.__name__ in UNUSUAL


class Doubled(Op):
    """An attribute with a rule of its own."""

    size: Int = 1

    @field_validator("size")
    @classmethod
    def double(cls, size: int) -> int:
        return 2 * size


class Even(Op):
    """Attributes with a rule for all of them."""

    size: Int = 1

    @model_validator(mode="after")
    def check(self) -> Even:
        if self.size % 2:
            raise ValueError("odd")
        return self


class Open(Op):
    """What is not known is kept."""

    model_config = ConfigDict(extra="allow")

    size: Int = 1


class Stripped(Op):
    """What its validator gives is validated further."""

    size: Annotated[int, BeforeValidator(str.strip)] = 1


@pytest.mark.parametrize("kind", [Doubled, Even, Open, Stripped])
def test_rules_of_others_are_heeded(kind: type[Op]) -> None:
    assert read_plainly(kind, Op, {"size": "2"}, kind._before) is None
    assert kind.read({"size": "2"}).size == (4 if kind is Doubled else 2)


SOME = {
    "int": "1", "float": "0.5", "bool": "true", "string": "x", "int[]": "1,2", "float[]": "1,2",
    "string[]": "a,b", "element_type": "f32", "partial_shape": "1,?",
}  # fmt: skip

#: Their attributes have rules that only Pydantic looks at.
UNUSUAL = frozenset({
    "TopKV3", "TopKV1", "TopKV11", "SearchSortedV15", "NonMaxSuppressionV1", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionV9", "NMSRotatedV13",
    "ReadValueV6", "MatrixNmsV8", "MulticlassNmsV8", "MulticlassNmsV9",
})  # fmt: skip
