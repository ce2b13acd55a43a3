"""The XML Schema of an IR file, made from its records, and the JSON Schema of attributes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args, get_origin
from xml.sax.saxutils import quoteattr

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .document import Net, Record
from .version import VERSION


def xsd(root: type[Record] = Net, tag: str = "net") -> str:
    """An XML Schema 1.0 of the records below a root.

    Attributes that no record names are free, as OpenVINO ignores them. Elements whose children
    come once each may have them in any order.
    """
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<!-- Made from vinoir.schemas.document; OpenVINO IR, versions 10 and 11. -->",
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">',
        *_element(tag, root, "", 1),
    ]
    done: dict[str, type[Record]] = {}
    waiting = [root]
    while waiting:
        record = waiting.pop(0)
        if record.__name__ in done:
            continue
        done[record.__name__] = record
        lines += _type(record)
        waiting += [child for child, _ in record.children().values()]
    return "\n".join([*lines, "</xs:schema>", ""])


def _element(tag: str, record: type[Record], counts: str, depth: int) -> list[str]:
    """The declaration of an element, with its keys."""
    pad = "  " * depth
    head = f'{pad}<xs:element name="{tag}" type="{record.__name__}"{counts}'
    if not record.keys:
        return [head + "/>"]
    lines = [head + ">"]
    for name, path, attribute, refer in record.keys:
        kind = "keyref" if refer is not None else "unique" if "port" in name else "key"
        unique = f"{tag}.{name}"
        target = "" if refer is None else f' refer="{tag}.{refer}"'
        lines += [
            f'{pad}  <xs:{kind} name="{unique}"{target}>',
            f'{pad}    <xs:selector xpath="{path}"/>',
            f'{pad}    <xs:field xpath="@{attribute}"/>',
            f"{pad}  </xs:{kind}>",
        ]
    return [*lines, f"{pad}</xs:element>"]


def _type(record: type[Record]) -> list[str]:
    """The complex type of a record."""
    say = (
        f"<xs:annotation><xs:documentation>{_sentence(record)}</xs:documentation></xs:annotation>"
    )
    mixed = ' mixed="true"' if record.is_open else ""
    lines = [f'  <xs:complexType name="{record.__name__}"{mixed}>', f"    {say}"]
    if record.has_text:
        base, facets = _simple(record.model_fields["text"])
        inner = "".join(f'<xs:{name} value="{value}"/>' for name, value in facets)
        return [
            f'  <xs:simpleType name="{record.__name__}">',
            f"    {say}",
            f'    <xs:restriction base="{base}">{inner}</xs:restriction>',
            "  </xs:simpleType>",
        ]
    if record.is_open:
        lines += [
            "    <xs:sequence>",
            '      <xs:any minOccurs="0" maxOccurs="unbounded" processContents="skip"/>',
            "    </xs:sequence>",
        ]
    children = record.children()
    if children:
        once = not any(many for _, many in children.values())
        group, counts = ("all", ' minOccurs="0"') if once else ("choice", "")
        free = "" if once else ' minOccurs="0" maxOccurs="unbounded"'
        lines.append(f"    <xs:{group}{free}>")
        for tag, (child, _) in children.items():
            lines += _element(tag, child, counts, 3)
        lines.append(f"    </xs:{group}>")
    for name, field in record.attributes().items():
        lines += _attribute(name, field)
    return [*lines, '    <xs:anyAttribute processContents="skip"/>', "  </xs:complexType>"]


def _sentence(record: type[Record]) -> str:
    text = (record.__doc__ or "").strip().splitlines()[0]
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _attribute(name: str, field: FieldInfo) -> list[str]:
    """The declaration of an attribute."""
    use = ' use="required"' if field.is_required() else ""
    base, facets = _simple(field)
    if not facets:
        return [f'    <xs:attribute name="{name}" type="{base}"{use}/>']
    inner = "".join(f"<xs:{facet} value={quoteattr(str(value))}/>" for facet, value in facets)
    return [
        f'    <xs:attribute name="{name}"{use}>',
        "      <xs:simpleType>",
        f'        <xs:restriction base="{base}">{inner}</xs:restriction>',
        "      </xs:simpleType>",
        "    </xs:attribute>",
    ]


def _simple(field: FieldInfo) -> tuple[str, list[tuple[str, Any]]]:
    """The XML type of a field's text, and what limits it."""
    facets: list[tuple[str, Any]] = []
    metadata = list(field.metadata)
    kinds = [field.annotation, *get_args(field.annotation)]
    for kind in list(kinds):
        for part in get_args(kind):
            if isinstance(part, FieldInfo):
                metadata += part.metadata
            kinds.append(part)
    for kind in kinds:
        if get_origin(kind) is Literal:
            return "xs:string", [("enumeration", word) for word in get_args(kind)]
    for limit in metadata:
        if isinstance(limit, Ge):
            facets.append(("minInclusive", limit.ge))
        if isinstance(limit, Le):
            facets.append(("maxInclusive", limit.le))
    if int in kinds:
        return "xs:integer", facets
    return ("xs:double" if float in kinds else "xs:string"), facets


#: An operation: its name, its opsets, its class, and what it says of its attributes.
Operation: TypeAlias = "tuple[str, Iterable[str], type[BaseModel], Iterable[Any]]"


def json_schema(operations: Iterable[Operation]) -> str:
    """A JSON Schema of the attributes of operations, as text in a ``data`` element.

    Each operation comes with its name in the specification, the opsets it is in, its class, and
    what it says of its attributes (name, kind, required, default, choices).
    """
    definitions: dict[str, Any] = {}
    for name, opsets, model, attributes in operations:
        properties: dict[str, Any] = {}
        required = []
        for attribute in attributes:
            properties[attribute.name] = _property(attribute)
            if attribute.required:
                required.append(attribute.name)
        definitions[name] = {
            "description": (model.__doc__ or "").strip().splitlines()[0],
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "x-opsets": list(opsets),
        }
    schema: Mapping[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Attributes of OpenVINO IR operations",
        "x-vinoir": VERSION,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


#: How the text of each kind of attribute looks.
_PATTERNS = {
    "int": r"^\s*-?[0-9]+\s*$",
    "int[]": r"^\s*(-?[0-9]+\s*(,\s*-?[0-9]+\s*)*,?\s*)?$",
    "bool": r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|0|1)$",
}


def _property(attribute: Any) -> dict[str, Any]:
    """One attribute."""
    found: dict[str, Any] = {"type": "string", "x-kind": attribute.kind}
    if attribute.choices:
        found["enum"] = list(attribute.choices)
    elif attribute.kind in _PATTERNS:
        found["pattern"] = _PATTERNS[attribute.kind]
    if attribute.default is not None:
        found["default"] = attribute.default
    if attribute.description:
        found["description"] = attribute.description
    return found
