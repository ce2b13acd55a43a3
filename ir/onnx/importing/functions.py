"""Operators that the standard defines by others: which of them can be expanded here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx
import onnx.defs

from .node import TABLE


def by_function() -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Name, versions and what they become, of operators that have no converter of their own.

    What a context-dependent function consists of is known node by node only; it is listed all
    the same.
    """
    found: dict[str, list[int]] = {}
    text: dict[str, str] = {}
    schemas: Iterable[Any] = onnx.defs.get_all_schemas_with_history()
    for schema in schemas:
        if schema.domain or schema.deprecated or ("", schema.name) in TABLE:
            continue
        if schema.has_function:
            kinds = dict.fromkeys(node.op_type for node in schema.function_body.node)
            if not all(("", kind) in TABLE for kind in kinds):
                continue
            text[schema.name] = f"its function: {', '.join(kinds)}"
        elif schema.has_context_dependent_function:
            text.setdefault(schema.name, "its function, by what its inputs are")
        else:
            continue
        found.setdefault(schema.name, []).append(schema.since_version)
    for name in sorted(found):
        yield name, tuple(sorted(found[name])), text[name]
