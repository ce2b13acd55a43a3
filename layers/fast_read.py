"""Attributes read from their text without a validator of Pydantic's.

Pydantic takes 40 ms to get ready and a millisecond for each class, which is long beside the
first run of a small model. The attributes of most operations are of kinds that know how to
read themselves, and their readers are all that is needed. Whatever is unusual or wrong is left
to Pydantic, so that there is one place that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from ..schemas.attributes import Alias, NotBefore, Spelling

M = TypeVar("M", bound=BaseModel)


class _Reader(NamedTuple):
    """How one attribute is read."""

    field: str
    name: str
    required: bool
    read: Callable[[Any], Any]


def read_plainly(
    kind: type[M],
    base: type[BaseModel],
    data: Mapping[str, str],
    complete: Callable[[dict[str, Any]], dict[str, Any]],
) -> M | None:
    """A record from the text of its attributes, completed first; None if it is not so simple.

    ``base`` is the class whose configuration and validator every plain record shares.
    """
    readers = _readers(kind, base)
    if readers is None or not all(type(text) is str and text.isascii() for text in data.values()):
        return None
    values = {}
    try:
        texts = complete(dict(data))
        for field, name, required, read in readers:
            if name in texts:
                values[field] = read(texts[name])
            elif required or field in texts:
                return None
    except (ValueError, TypeError):
        return None
    return kind.model_construct(**values)


@cache
def _readers(kind: type[BaseModel], base: type[BaseModel]) -> list[_Reader] | None:
    """How each attribute is read; None where a class wants more than that."""
    if kind.model_config != base.model_config or kind.__pydantic_custom_init__:
        return None
    rules = kind.__pydantic_decorators__
    new, old = rules.model_validators or rules.field_validators, rules.validators
    if new or old or rules.root_validators:
        return None
    above = kind.__mro__[: kind.__mro__.index(base)]
    if any("__get_pydantic_core_schema__" in vars(each) for each in above):
        return None
    found = []
    for field, about in kind.model_fields.items():
        read = _reader(about)
        if read is None:
            return None
        found.append(_Reader(field, about.alias or field, about.is_required(), read))
    return found


def _reader(field: FieldInfo) -> Callable[[Any], Any] | None:
    """How a field is read; None where its annotation says more than its kind does."""
    if get_origin(field.annotation) is Literal:
        usual = all(isinstance(rule, (NotBefore, Alias)) for rule in field.metadata)
        return str if usual and all(type(w) is str for w in get_args(field.annotation)) else None
    rules = [rule for rule in field.metadata if not isinstance(rule, NotBefore)]
    spelling = next((rule for rule in rules if isinstance(rule, Spelling)), None)
    if spelling is None or spelling.read is None:
        return None
    rules.remove(spelling)
    if not rules and field.annotation is str:
        return spelling.read
    match rules:
        case [BeforeValidator(func=spelling.read)]:
            return spelling.read
    return None
