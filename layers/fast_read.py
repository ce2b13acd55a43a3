"""Attributes read from their text without a validator of Pydantic's.

Pydantic takes 40 ms to get ready and a millisecond for each class, which is long beside the
first run of a small model. The attributes of most operations are of kinds that know how to
read themselves, and their readers are all that is needed. Whatever is unusual or wrong is left
to Pydantic, so that there is one place that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from ..schemas.attributes import Alias, NotBefore, Spelling

if TYPE_CHECKING:
    from .base import Op


class _Reader(NamedTuple):
    """How one attribute is read."""

    field: str
    name: str
    required: bool
    read: Callable[[Any], Any]


def read_plainly(kind: type[Op], data: Mapping[str, str]) -> Op | None:
    """An operation from the text of its attributes; None where that is not so simple."""
    readers = _readers(kind)
    if readers is None or not all(type(text) is str and text.isascii() for text in data.values()):
        return None
    values = {}
    try:
        texts = kind.match_choices(kind.completed(dict(data)))
        for field, name, required, read in readers:
            if name in texts:
                values[field] = read(texts[name])
            elif required or field in texts:
                return None
    except (ValueError, TypeError):
        return None
    return kind.model_construct(**values)


@cache
def _readers(kind: type[Op]) -> list[_Reader] | None:
    """How each attribute is read; None where a class wants more than that."""
    from .base import Op

    if kind.model_config != Op.model_config or kind.__pydantic_custom_init__:
        return None
    rules = kind.__pydantic_decorators__
    new, old = rules.model_validators or rules.field_validators, rules.validators
    if new or old or rules.root_validators:
        return None
    above = kind.__mro__[: kind.__mro__.index(Op)]
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
