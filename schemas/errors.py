"""What can be wrong with a file, and where.

The tree::

    IRError                 anything wrong with a model, its place given where known
    ├── UnreadableError     the file is not an IR that can be read (exit 3)
    ├── UnwritableError     the system does not let a file be written (exit 3)
    ├── UnsupportedError    an operation, type or feature this project does not have (exit 4)
    │   └── LimitError      more memory or time is wanted than is allowed
    ├── UsageError          the caller asked for what cannot be (exit 2)
    └── MismatchError       numbers differ from what was expected (exit 5)

    InternalError           a mistake of this project, met at a place of a model (exit 70)

An error is raised bare where the rule is, and completed once by the frame that knows the
element (see :func:`placed`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import ValidationError

from .printing import printable, printable_name
from .version import VERSION


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a document: any of its parts may be unknown."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    layer: int | None = None
    name: str | None = None
    type: str | None = None
    version: str | None = None
    attribute: str | None = None

    def within(self, outer: Where) -> Where:
        """This place, its unknown parts filled from an outer one."""
        if self.layer is not None and outer.layer is not None and self.layer != outer.layer:
            # Another layer (one inside a body): only the file is shared.
            return replace(self, file=self.file or outer.file)
        return Where(
            *(getattr(self, name) if getattr(self, name) is not None else getattr(outer, name)
              for name in self.__slots__)
        )  # fmt: skip

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__slots__)

    def __str__(self) -> str:
        parts = []
        if self.file is not None or self.line is not None:
            place = [self.file or "<memory>", self.line, self.column]
            parts.append(":".join(printable(part) for part in place if part is not None))
        if self.layer is not None or self.name is not None:
            words = ["layer"]
            if self.layer is not None:
                words.append(str(self.layer))
            if self.name is not None:
                words.append(f'"{printable_name(self.name)}"')
            if self.type is not None:
                kind = printable_name(self.type)
                version = f" {printable_name(self.version)}" if self.version else ""
                words.append(f"({kind}{version})")
            parts.append(" ".join(words))
        return ": ".join(parts)


class IRError(ValueError):
    """Something wrong with a model; ``where`` says at which place, ``hint`` what to do."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, where: Where | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where or Where()
        self.hint = hint

    def __str__(self) -> str:
        place, message = str(self.where), printable(self.message)
        text = f"{place}: {message}" if place else message
        return f"{text} ({printable(self.hint)})" if self.hint else text


class UnreadableError(IRError):
    """The file cannot be read as an IR at all."""

    exit_code = 3


class UnwritableError(IRError):
    """The system does not let a file be written: no room, no leave, no such place."""

    exit_code = 3


class UnsupportedError(IRError):
    """Legal, but not supported here."""

    exit_code = 4


class LimitError(UnsupportedError):
    """More memory or time is wanted than is there or allowed."""


class UsageError(IRError):
    """The caller's request cannot be met: an unknown name, a shape of the wrong rank."""

    exit_code = 2


class MismatchError(IRError):
    """Numbers differ from what was expected."""

    exit_code = 5


class InternalError(Exception):
    """A mistake of this project, or of an operation that another package offers.

    It is raised from what was caught, at the place of the model that was worked on; no file
    may bring it about, so that it is no :class:`IRError`.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, error: BaseException, where: Where | None = None) -> None:
        super().__init__(str(error))
        self.message = f"{type(error).__name__}: {error}"
        self.where = where or Where()

    def __str__(self) -> str:
        place = str(self.where)
        text = f"vinoir {VERSION} has a bug: {printable(self.message)}"
        return f"{place}: {text}" if place else text


#: What wrong code raises; a file is refused by a ValueError that says why.
MISTAKES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, NotImplementedError,
    RecursionError, TypeError,
)  # fmt: skip


def describe(error: ValidationError) -> tuple[str, str | None]:
    """The first complaint of a validation as one sentence, and the attribute it is about."""
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"] if isinstance(part, str)) or None
    if first["type"] == "missing":
        return f"required attribute {name} is missing", name
    message = first["msg"].removeprefix("Value error, ")
    if name is None or message.startswith(name):
        return message, name
    return f"{name}: {message[:1].lower()}{message[1:]}", name


class placed:  # noqa: N801  # read as a statement
    """Give errors raised inside the place ``where``, as far as they lack one.

    A ValueError is about what the file says, and becomes an IRError; what only wrong code
    raises becomes an InternalError. What makes the place may be given for it: it is asked only
    when there is an error.
    """

    __slots__ = ("where",)

    def __init__(self, where: Where | Callable[[], Where]) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        where = self.where if isinstance(self.where, Where) else self.where()
        if isinstance(error, (IRError, InternalError)):
            error.where = error.where.within(where)
        elif isinstance(error, ValidationError):
            message, attribute = describe(error)
            raise IRError(message, replace(where, attribute=attribute)) from error
        elif isinstance(error, MemoryError):
            raise LimitError(f"not enough memory: {error}".rstrip(": "), where) from error
        elif isinstance(error, ValueError):
            # Our own ValueErrors are sentences; what NumPy raises says more with its type.
            said = f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"
            raise IRError(said, where) from error
        elif isinstance(error, MISTAKES):
            raise InternalError(error, where) from error
