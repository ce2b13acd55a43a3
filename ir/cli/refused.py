"""What is told of a call that is refused: a sentence, and a document where JSON is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import click

from ...schemas import InternalError, IRError, LimitError, UsageError, Where
from ...schemas.printing import printable
from ...schemas.version import REPORTS
from .output import has_said_json, heading, note, say_json

CRASH = 70
#: By Ctrl-C, as shells have it.
STOPPED = 130
#: What the linker says that finds no room for a library, and Python of an error that is none.
_UNMAPPED = ("failed to map segment", "annot allocate memory")
_UNTOLD = ("without exception set", "without setting an exception")


class Refusal(NamedTuple):
    """Why a call is refused: the exit code, the sentence, its place, what to do."""

    code: int
    message: str
    where: Where = Where()
    hint: str | None = None

    @classmethod
    def of(cls, error: BaseException) -> Refusal:
        """What an error says."""
        if isinstance(error, click.ClickException):
            context = error.ctx if isinstance(error, click.UsageError) else None
            hint = None if context is None else f"{context.command_path} --help"
            return cls(error.exit_code, error.format_message(), hint=hint)
        if isinstance(error, (click.exceptions.Abort, KeyboardInterrupt)):
            return cls(STOPPED, "stopped")
        if isinstance(error, IRError):
            return cls(error.exit_code, error.message, error.where, error.hint)
        if isinstance(error, OSError):
            file = None if error.filename is None else os.fsdecode(error.filename)
            return cls(3, error.strerror or str(error), Where(file))
        if isinstance(error, MemoryError) or _is_short_of_memory(error):
            hint = "run it where there is more memory; ulimit -v may say how much there is"
            return cls(LimitError.exit_code, "there is not enough memory", hint=hint)
        if isinstance(error, ImportError) and not (error.name or "").startswith("vinoir"):
            hint = "it is missing or broken: install it anew"
            return cls(UsageError.exit_code, f"a package cannot be imported: {error}", hint=hint)
        bug = error if isinstance(error, InternalError) else InternalError(error)
        hint = f"please report it, with what --debug prints, to {REPORTS}"
        return cls(CRASH, str(bug), hint=hint)

    def say(self) -> None:
        """Say it on standard error."""
        said = self.message if self.code in (CRASH, STOPPED) else f"error: {self.message}"
        place = f"{self.where}: " if self.where else ""
        note(place + printable(said))
        if self.hint:
            note(f"  hint: {printable(self.hint)}")

    def say_json(self, verb: str) -> None:
        """Print it as a document on one line, unless the verb came as far as to print its own."""
        if has_said_json():
            return
        where = {name: getattr(self.where, name) for name in self.where.__slots__}
        error = self._asdict() | {"where": where if self.where else None}
        say_json(heading(verb) | {"error": error}, indent=None)


def report(error: BaseException) -> int:
    """Say on standard error what went wrong; the exit code for it."""
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has seen enough.
        hush()
        return 0
    refusal = Refusal.of(error)
    if isinstance(error, click.ClickException):
        error.show()  # with how the verb is used
    else:
        refusal.say()
    return refusal.code


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line, which may be wrong in itself, asks for JSON."""
    options = list(words[: words.index("--")] if "--" in words else words)
    given = ("--format", "json") in pairwise(options)
    return given or "--json" in options or "--format=json" in options


def hush() -> None:
    """Let go what is still to be printed: it would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_short_of_memory(error: BaseException) -> bool:
    """Whether a package could not be begun for want of memory: its error is of another type.

    C code that has no memory for an error answers that something went wrong, and not what.
    """
    if isinstance(error, SystemError):
        return str(error).endswith(_UNTOLD)
    return isinstance(error, ImportError) and any(words in str(error) for words in _UNMAPPED)


__all__: list[Any] = ["CRASH", "STOPPED", "Refusal", "asks_for_json", "hush", "report"]
