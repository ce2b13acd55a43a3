"""What each version of an ONNX operator allows, as the onnx package's schemas say."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import onnx
import onnx.defs
from onnx import AttributeProto, helper
from onnx.defs import OpSchema

from ....schemas import ElementType, IRError, UnsupportedError

#: The type strings of the schemas.
WORDS: dict[ElementType, str] = {
    ElementType.F32: "float", ElementType.F64: "double", ElementType.F16: "float16",
    ElementType.BF16: "bfloat16", ElementType.BOOLEAN: "bool", ElementType.STRING: "string",
    ElementType.U8: "uint8", ElementType.U16: "uint16", ElementType.U32: "uint32",
    ElementType.U64: "uint64", ElementType.I8: "int8", ElementType.I16: "int16",
    ElementType.I32: "int32", ElementType.I64: "int64", ElementType.U4: "uint4",
    ElementType.I4: "int4", ElementType.F8E4M3: "float8e4m3fn", ElementType.F8E5M2: "float8e5m2",
    ElementType.F4E2M1: "float4e2m1", ElementType.F8E8M0: "float8e8m0", ElementType.U2: "uint2",
}  # fmt: skip

_TENSORS = {kind: f"tensor({WORDS.get(kind, kind)})" for kind in ElementType}


class Signature(NamedTuple):
    """One version of an operator."""

    name: str
    since: int
    attributes: dict[str, Any]
    required: frozenset[str]
    inputs: tuple[tuple[str, frozenset[str], bool], ...]
    least: int
    most: int
    outputs: int
    schema: Any


class Foreign(NamedTuple):
    """What is known of an operator of another domain, of which onnx has no schema."""

    attributes: dict[str, Any]
    deprecated: bool = False


class Typed(NamedTuple):
    """The kind of an attribute, as onnx numbers it."""

    type: Any


#: By domain and name: what ``declare`` was told.
FOREIGN: dict[tuple[str, str], Signature] = {}
_KINDS: dict[Any, Any] = {
    int: AttributeProto.INT, float: AttributeProto.FLOAT, str: AttributeProto.STRING,
    list: AttributeProto.INTS, list[str]: AttributeProto.STRINGS,
    list[float]: AttributeProto.FLOATS,
}  # fmt: skip


def declare(
    domain: str, name: str, inputs: tuple[int, int], outputs: int, attributes: Mapping[str, Any]
) -> None:
    """Say what an operator takes: so many inputs, -1 for any number, and attributes.

    Each attribute has its default, or the type that it must be of where it has none; those that
    are no lists are then required.
    """
    bare = {key for key, row in attributes.items() if row in _KINDS}
    kinds = {key: row if key in bare else type(row) for key, row in attributes.items()}
    word: Any = OpSchema.AttrType
    types = {key: Typed(word(int(_KINDS[kind]))) for key, kind in kinds.items()}
    least, most = inputs
    FOREIGN[domain, name] = Signature(
        name,
        1,
        {key: None if key in bare else row for key, row in attributes.items()},
        frozenset(key for key, row in attributes.items() if row in (int, float, str)),
        (),
        least,
        most if most >= 0 else MANY,
        outputs,
        Foreign(dict(types)),
    )


#: More inputs than any node has.
MANY = 1 << 31


@cache
def signature(name: str, opset: int, domain: str = "") -> Signature | None:
    """The version of an operator that an opset means; None where there is none."""
    try:
        schema = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return FOREIGN.get((domain, name))
    defaults = {
        key: helper.get_attribute_value(row.default_value) if row.default_value.name else None
        for key, row in schema.attributes.items()
    }
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return Signature(
        name,
        schema.since_version,
        {k: v.decode() if isinstance(v, bytes) else v for k, v in defaults.items()},
        frozenset(key for key, row in schema.attributes.items() if row.required),
        tuple((p.name, frozenset(p.types), p.option == variadic) for p in schema.inputs),
        schema.min_input,
        schema.max_input,
        schema.max_output,
        schema,
    )


def resolve(name: str, opset: int, domain: str = "") -> Signature:
    """As ``signature``, with an error that says what is wrong."""
    latest = onnx.defs.onnx_opset_version()
    if domain == "" and opset > latest:
        raise UnsupportedError(
            f"opset {opset} is newer than the onnx package knows ({latest})",
            hint="pip install --upgrade onnx",
        )
    found = signature(name, opset, domain)
    # One that is deprecated has its meaning still where the standard says it by other operators.
    if found is not None and (not found.schema.deprecated or is_function(found)):
        return found
    history = versions(name, domain)
    if found is not None and found.schema.deprecated and history:
        raise IRError(f"{name} is deprecated since opset {found.since}, the model has {opset}")
    if history:
        raise IRError(f"{name} appears in opset {history[0]}, the model has opset {opset}")
    near = difflib.get_close_matches(name, {s.name for s in onnx.defs.get_all_schemas()}, 1)
    hint = f"did you mean {near[0]}?" if near and domain == "" else None
    raise UnsupportedError(
        f"{name} is not an operator of {domain or 'ONNX'}, nor a function of the model", hint=hint
    )


def is_function(found: Signature) -> bool:
    """Whether the standard may define an operator by others."""
    return has_body(found.schema)


def has_body(schema: Any) -> bool:
    """Whether a schema says what its operator means by others."""
    return bool(schema.has_function or schema.has_context_dependent_function)


@cache
def versions(name: str, domain: str = "") -> tuple[int, ...]:
    """The opsets in which an operator got a new version."""
    own = {
        s.since_version
        for s in onnx.defs.get_all_schemas_with_history()
        if s.name == name and s.domain == domain and not (s.deprecated and not has_body(s))
    }
    return tuple(sorted(own | ({1} if (domain, name) in FOREIGN else set())))


def check_attributes(found: Signature, names: Sequence[str], domain: str = "") -> None:
    """Refuse attributes that this version does not have; say which one has them."""
    for name in names:
        if name in found.attributes:
            continue
        for other in versions(found.name, domain):
            row = signature(found.name, other, domain)
            if row is not None and name in row.attributes:
                word = "needs" if other > found.since else "belongs to"
                raise IRError(
                    f"attribute {name} {word} {found.name}-{other}, this is "
                    f"{found.name}-{found.since}"
                )
        near = difflib.get_close_matches(name, found.attributes, 1)
        hint = f"did you mean {near[0]}?" if near else None
        raise IRError(f"{found.name}-{found.since} has no attribute {name}", hint=hint)
    for name in sorted(found.required - set(names)):
        raise IRError(f"required attribute {name} is missing")


def check_types(found: Signature, attributes: Iterable[Any]) -> None:
    """Refuse attributes that are not of the kind that they have to be."""
    for attribute in attributes:
        wanted = found.schema.attributes[attribute.name].type
        if int(wanted) != attribute.type:
            kind = AttributeProto.AttributeType.Name(attribute.type)
            raise IRError(f"attribute {attribute.name} is {kind}, it has to be {wanted.name}")


def check_inputs(found: Signature, kinds: Sequence[ElementType | None]) -> None:
    """Refuse a number or types of inputs that this version does not take."""
    there = len(kinds)
    while there and kinds[there - 1] is None:
        there -= 1
    # Of those that must be named some may be left out: the count and the condition of a Loop.
    if len(kinds) < found.least or there > max(found.most, found.least):
        many = found.least if found.least == found.most else f"{found.least} to {found.most}"
        raise IRError(f"{there} inputs, {found.name}-{found.since} takes {many}")
    for index, kind in enumerate(kinds):
        row = found.inputs[min(index, len(found.inputs) - 1)] if found.inputs else None
        if row is None or kind is None or kind is ElementType.DYNAMIC:
            continue
        name, allowed, _ = row
        word = _TENSORS[kind]
        # What may be there is kept as what is.
        if allowed and not allowed & {word, f"optional({word})"}:
            raise IRError(_wrong_type(found, index, name, word))


def _wrong_type(found: Signature, index: int, name: str, word: str) -> str:
    text = f"input {name} is {word}, which {found.name}-{found.since} does not take"
    for other in versions(found.name):
        row = signature(found.name, other)
        if (
            other > found.since
            and row
            and index < len(row.inputs)
            and word in row.inputs[index][1]
        ):
            return f"{text}; {found.name}-{other} does"
    return text
