"""What is told of an operation that somebody makes wrongly: which attribute is probably meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from ..schemas import IRError


def unknown_name(name: str, kind: type[BaseModel], spec: str, others: Mapping[str, Any]) -> str:
    """That an operation has no such attribute, and where it is, or what is probably meant.

    ``others`` are the other versions of the operation by their names in the specification,
    oldest first.
    """
    import difflib

    known = kind.model_fields.get(name)
    if known is not None:
        return f"{name} is given twice, also as {known.alias}"
    message = f"{name} is not an attribute of {spec}"
    having = [other for other, version in others.items() if name in version.names()]
    if having:
        run = list(others)[list(others).index(having[0]) :]
        later = " and later have it" if len(having) > 1 and run == having else ""
        return f"{message}, {having[0]}{later}" if later else f"{message}, {having[-1]} has it"
    near = difflib.get_close_matches(name[:80], kind.model_fields, 1)
    if near:
        return f"{message}, did you mean {near[0]}?"
    return f"{message}, which has {', '.join(kind.model_fields) or 'none'}"


def explained(
    error: ValidationError, kind: type[BaseModel], spec: str, others: Mapping[str, Any]
) -> ValidationError:
    """The same error, unknown names first and with a message that tells what to write."""
    rows = error.errors(include_url=False)
    rows.sort(key=lambda row: row["type"] != "extra_forbidden")
    details = []
    for row in rows:
        found = InitErrorDetails(
            type=row["type"], loc=row["loc"], input=row["input"], ctx=row.get("ctx", {})
        )
        if row["type"] == "extra_forbidden":
            message = unknown_name(str(row["loc"][-1]), kind, spec, others)
            found["type"] = PydanticCustomError("extra_forbidden", "{text}", {"text": message})
        details.append(found)
    return ValidationError.from_exception_data(error.title, details)


def at_attribute(error: IRError, kind: type[BaseModel], data: Any) -> ValidationError:
    """What the operation's own rules say of its attributes, as Pydantic tells it."""
    # Such a sentence begins with the attribute that it is about.
    first = error.message.partition(" ")[0]
    name = first if first in kind.model_fields else None
    row = InitErrorDetails(
        type="value_error",
        loc=() if name is None else (name,),
        input=data.get(name, data) if isinstance(data, dict) and name is not None else data,
        ctx={"error": error},
    )
    return ValidationError.from_exception_data(kind.__name__, [row])
