"""How attribute values are spelt: each kind knows how to read itself and how to print itself.

Reading takes whole tokens only. OpenVINO reads by prefix (``1abc`` is 1, ``1,5`` is 1.0) and
keeps a default where it understands nothing (``yes``); such text is refused here. Printing is
OpenVINO's: lists joined by ``", "``, floats with 17 digits, float lists with six.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BeforeValidator

from .shapes import Dim, Shape
from .types import ElementType

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

T = TypeVar("T")


@dataclass(frozen=True)
class Spelling:
    """The name of an attribute's kind and the ways to print and to read it.

    It is carried by its annotation; what ``read`` gives needs no further validation.
    """

    kind: str
    text: Callable[[Any], str]
    read: Callable[[Any], Any] | None = None

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The JSON of such a value: a number, or for what has no JSON of its own its text."""
        item = {"int": "integer", "float": "number", "bool": "boolean"}.get(
            self.kind.removesuffix("[]"), "string"
        )
        if self.kind.endswith("[]"):
            return {"type": "array", "items": {"type": item}}
        return {"type": item}


@dataclass(frozen=True)
class NotBefore:
    """A choice, or the whole attribute, that came with a later version of its operation."""

    version: int
    choice: str | None = None


@dataclass(frozen=True)
class Alias:
    """Another text that reads as a choice."""

    text: str
    choice: str


_INT = re.compile(r"-?[0-9]+")
#: Of numbers that are not finite OpenVINO knows these spellings alone, none with a plus.
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)|-?inf|nan", re.ASCII)


def read_int(text: Any) -> Any:
    """Read one whole number."""
    if not isinstance(text, str):
        return text
    token = text.strip()
    if not _INT.fullmatch(token):
        raise ValueError(f'"{text}" is not a whole number')
    return int(token)


def _infinite(token: str) -> str:
    """What helps where a number that is not finite is spelt as Python or XML spell it."""
    word = token.lower().lstrip("+-")
    known = word in ("inf", "infinity", "nan")
    return " as OpenVINO spells it: it knows inf, -inf and nan" if known else ""


def read_float(text: Any) -> Any:
    """Read one number."""
    if not isinstance(text, str):
        return text
    token = text.strip()
    if not _FLOAT.fullmatch(token):
        raise ValueError(f'"{text}" is not a number{_infinite(token)}')
    return float(token)


def read_bool(text: Any) -> Any:
    """Read true or false."""
    if not isinstance(text, str):
        return text
    word = text.lower()
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    raise ValueError(f'"{text}" is neither true nor false')


def read_list(item: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Make a reader of comma-separated items; blanks and one trailing comma are free."""

    def read(text: Any) -> Any:
        if not isinstance(text, str):
            if isinstance(text, (int, float)) or getattr(text, "ndim", None) == 0:  # NumPy's, too
                raise ValueError(
                    f"{text} is one number, a list is expected, such as ({text}, {text})"
                )
            return tuple(text) if isinstance(text, list) else text
        fields = text.split(",")
        if not fields[-1].strip():
            fields.pop()
        return tuple(item(field) for field in fields)

    return read


def _read_word(text: str) -> str:
    return text.strip()


def print_bool(value: bool) -> str:
    """Print true or false."""
    return "true" if value else "false"


def print_float(value: float) -> str:
    """Print one number with 17 digits, as OpenVINO does."""
    return f"{value:.17g}"


def print_list_float(value: float) -> str:
    """Print a list's item: six digits, as OpenVINO does, unless more are needed to keep it."""
    short = f"{value:g}"
    return short if float(short) == value or value != value else repr(float(value))


def print_list(item: Callable[[Any], str]) -> Callable[[Any], str]:
    """Make a printer of lists."""
    return lambda values: ", ".join(item(value) for value in values)


def spelled(value: Any) -> str:
    """A value of Python as the text of an attribute whose kind is not known.

    Raises:
        ValueError: Attributes hold no such thing.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (type, np.dtype)):
        return str(_element_type(value))
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, bool):
        return print_bool(value)
    if isinstance(value, float):
        return print_float(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(
            print_list_float(one) if isinstance(one, float) else spelled(one) for one in value
        )
    if isinstance(value, Shape):
        return value.spelling
    if isinstance(value, (int, Dim)):
        return str(value)
    raise ValueError(
        f"an attribute holds text, numbers, truth values, shapes or lists of these, "
        f"not {type(value).__name__}"
    )


def _element_type(given: Any) -> Any:
    """Read an element type: its text, or a type of NumPy's or Python's own."""
    if isinstance(given, str):
        return ElementType.parse(given)
    if not isinstance(given, (type, np.dtype)):
        return given
    own = isinstance(given, np.dtype) or issubclass(given, (np.generic, bool, int, float, str))
    try:
        if own:
            return ElementType.of(given)
    except TypeError:  # np.floating, which is several
        pass
    raise ValueError(f"{given!r} is not an element type; write one such as f32")


def _shape(text: Any) -> Any:
    return Shape.parse(text) if isinstance(text, str) else text


_read_ints, _read_floats, _read_words = map(read_list, (read_int, read_float, _read_word))

Int: TypeAlias = Annotated[int, BeforeValidator(read_int), Spelling("int", str, read_int)]
MaybeInt: TypeAlias = Annotated[
    int | None, BeforeValidator(read_int), Spelling("int", str, read_int)
]  # None: not said
Float: TypeAlias = Annotated[
    float, BeforeValidator(read_float), Spelling("float", print_float, read_float)
]
Bool: TypeAlias = Annotated[
    bool, BeforeValidator(read_bool), Spelling("bool", print_bool, read_bool)
]
Text: TypeAlias = Annotated[str, Spelling("string", str, str)]
Ints: TypeAlias = Annotated[
    tuple[int, ...], BeforeValidator(_read_ints), Spelling("int[]", print_list(str), _read_ints)
]
Floats: TypeAlias = Annotated[
    tuple[float, ...],
    BeforeValidator(_read_floats),
    Spelling("float[]", print_list(print_list_float), _read_floats),
]
Words: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_words),
    Spelling("string[]", print_list(str), _read_words),
]
Type: TypeAlias = Annotated[
    ElementType,
    BeforeValidator(_element_type),
    Spelling("element_type", str, _element_type),
]
PartialShape: TypeAlias = Annotated[
    Shape,
    BeforeValidator(_shape),
    Spelling("partial_shape", lambda shape: shape.spelling, _shape),
]
MaybeShape: TypeAlias = Annotated[
    Shape | None,
    BeforeValidator(_shape),
    Spelling("partial_shape", lambda shape: shape.spelling, _shape),
]  # None: not said
