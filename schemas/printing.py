"""Text of a file, made fit to be printed.

A name in a file may hold anything: an escape sequence that a terminal obeys, a mark that
reverses the line, a new line that a build server takes for a command. Whatever leaves for a
person goes through :func:`printable`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

#: Characters that are printed of a name, and of a whole sentence.
LONGEST_NAME, LONGEST_LINE = 200, 4000

#: Names that are looked through for one that was meant.
LOOKED_AT = 5000

#: What GitHub's runners obey: two colons where a line begins, and the older sign anywhere.
_COMMAND = re.compile(r"^\s*::|##\[")


def printable(text: object, most: int = LONGEST_LINE) -> str:
    r"""A text as one line: what is not printable escaped, a long one cut in the middle.

    Control characters (C0, C1), line ends, marks of direction, invisible formatting, surrogates
    and what a build server would take for a command are written as Python writes them, such as
    ``\x9b`` and ``\u202e``.
    """
    line = str(text)
    if len(line) > most:
        line = f"{line[: most // 2]}…{line[-(most // 2) :]}"
    if ":" in line or "[" in line:
        line = _COMMAND.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}", line)
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in line
    )


def printable_name(text: object) -> str:
    """A name for a message, not longer than a name should be."""
    return printable(text, LONGEST_NAME)


def counted(number: int, word: str) -> str:
    """So many of something, in words: 1 layer, 2 layers."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def meant(word: str, known: Iterable[str], most: int = 1) -> str | None:
    """The hint that names what somebody may have meant; the first thousands are looked through."""
    import difflib  # only for those who look for what is not there

    names: dict[str, str] = {}
    for name in islice(known, LOOKED_AT):
        names.setdefault(name.lower(), name)
    near = difflib.get_close_matches(word[:LONGEST_NAME].lower(), names, most)
    return f"did you mean {', '.join(names[one] for one in near)}?" if near else None


class Table(NamedTuple):
    """What an object says of itself: a line, and rows of which a viewer shows the first."""

    title: str
    columns: Sequence[str] = ()
    rows: Iterable[Sequence[object]] = ()
    #: How many rows there are, where that is known.
    total: int | None = None
    #: What to do next.
    hint: str = ""


def shown(text: object, most: int = 60) -> str:
    """A text of the file for a message: quoted, not longer than a line."""
    line = str(text)
    end = "…" if len(line) > most else ""
    return f'"{printable(line[:most])}{end}"'


def json_value(value: Any) -> Any:
    """A value without the numbers that JSON has no spelling for: they become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(inner) for inner in value]
    return value


__all__ = [
    "LONGEST_LINE",
    "LONGEST_NAME",
    "Table",
    "counted",
    "json_value",
    "meant",
    "printable",
    "printable_name",
    "shown",
]
