"""What the verbs print: lines, tables, JSON; and in which width and colours."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import click

from ...schemas.printing import json_value, printable

#: Characters of one cell of a table.
LONGEST_CELL = 500
#: Raised when the meaning of a field in the JSON changes.
SCHEMA_VERSION = 1

#: Signs that we print, where an output has no such sign.
_INSTEAD = {"→": "->", "…": "..."}
#: What of a text an encoding cannot hold is written by this name's rule.
_SPELLING = "vinoir"

#: What ``--color`` says.
_colour: Literal["auto", "always", "never"] = "auto"
_has_said_json = False


def set_colour(when: Literal["auto", "always", "never"]) -> None:
    """Settle whether there is colour, whatever the environment says of it, unless ``auto``."""
    global _colour
    _colour = when


def ready_streams() -> None:
    """Let the standard streams be there, and take whatever is printed.

    One that was closed is empty; what an encoding cannot hold is written as Python writes it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # to the end
    codecs.register_error(_SPELLING, _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_SPELLING)


def _spelt(error: UnicodeError) -> tuple[str | bytes, int]:
    """A sign that an encoding cannot hold, in signs that it can."""
    if isinstance(error, UnicodeEncodeError):
        sign = error.object[error.start]
        if sign in _INSTEAD:
            return _INSTEAD[sign], error.start + 1
        return sign.encode("unicode_escape").decode("ascii"), error.start + 1
    raise error


def coloured() -> bool:
    """Whether standard output takes colours: a terminal does, unless NO_COLOR is set."""
    if _colour != "auto":
        return _colour == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def say(text: str, *, err: bool = False, styled: bool = False) -> None:
    """Print one line, in which nothing is left that a terminal or a build server would obey.

    Args:
        text: The line.
        err: Print it on standard error.
        styled: It was made printable before, and has been given colours since.
    """
    line = text if styled else printable(text, len(text))
    click.echo(line, err=err, color=True if styled else None)


def note(text: str) -> None:
    """Say something on standard error; on a terminal broken between words."""
    for line in wrapped(text, sentence_width() if sys.stderr.isatty() else None, indent="  "):
        say(line, err=True)


# JSON.


def print_json(verb: str, content: Mapping[str, Any]) -> None:
    """Print a verb's document as JSON, with the version of its form (``vinoir schema output``)."""
    said = heading(verb)
    say_json(said | {key: value for key, value in content.items() if key not in said})


def heading(verb: str) -> dict[str, Any]:
    """What each document of a verb says first, and each line where it is done to many models."""
    return {"schema_version": SCHEMA_VERSION, "verb": verb}


def say_json(content: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Print an object as JSON in plain ASCII: what is not printable is escaped as JSON has it."""
    text = json.dumps(json_value(content), indent=indent, default=str, allow_nan=False)
    note_json_said()
    click.echo(text.replace("\x7f", "\\u007f"))


def has_said_json() -> bool:
    """Whether this command line has printed JSON: what went wrong later has no second document."""
    return _has_said_json


def note_json_said(*, has: bool = True) -> None:
    """Note that JSON is printed now, also by a process of ours, or that a command line begins."""
    global _has_said_json
    _has_said_json = has


def shape_of(sizes: Iterable[object]) -> str:
    """A shape as every verb prints and takes it: sizes with commas, in brackets."""
    return f"[{','.join(map(str, sizes))}]"


# Text.


def screen_width() -> int | None:
    """Columns of the terminal that is written to; None where another program reads the lines."""
    return sentence_width() if sys.stdout.isatty() else None


def sentence_width() -> int:
    """Columns that sentences are broken into, whoever reads them."""
    import shutil

    return max(shutil.get_terminal_size().columns, 40)


def wide(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def wrapped(text: str, width: int | None, *, first: str = "", indent: str = "") -> list[str]:
    """A text in lines, broken between words alone: a name longer than the line stays whole."""
    if width is None or wide(first) + wide(text) <= width:
        return [first + text]
    import textwrap

    return textwrap.wrap(
        text, max(width, len(indent) + 1), initial_indent=first, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ) or [first]  # fmt: skip


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> None:
    """Print a table that fits the screen, of which no number and no name is cut.

    Where it is too wide, text is broken between words; where that is not enough, the widest
    columns but the first leave the table, and follow below each of its rows.
    """
    lines = [[printable(cell, LONGEST_CELL) for cell in row] for row in rows]
    if title:
        say(title)
    limit = screen_width()
    natural, least = _needs(columns, lines, right)
    inside, below = _fitting(least, limit)
    widths = _widths(natural, least, inside, limit)
    header = _joined([[columns[i]] for i in inside], inside, widths, right)
    for line in header:
        say(click.style(line, bold=True) if coloured() else line, styled=coloured())
    for row in lines:
        cells = [_broken(row[i], widths[i], right=i in right) for i in inside]
        for line in _joined(cells, inside, widths, right):
            say(line)
        for i in below:
            if row[i]:
                label = f"      {columns[i]}  " if columns[i] else "      "
                for line in wrapped(row[i], limit, first=label, indent=" " * wide(label)):
                    say(line)
    click.echo()


def _needs(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The width that each column takes, and the least to which its text can be broken."""
    natural = [max(map(wide, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)]
    least = [
        natural[i] if i in right
        else max(map(wide, (name, *(word for row in rows for word in row[i].split(" ")))))
        for i, name in enumerate(columns)
    ]  # fmt: skip
    return natural, least


def _fitting(least: Sequence[int], limit: int | None) -> tuple[list[int], list[int]]:
    """The columns that stand beside each other, and those below the rows."""
    inside = list(range(len(least)))
    while limit and len(inside) > 1 and 2 * len(inside) + sum(least[i] for i in inside) > limit:
        inside.remove(max(inside[1:], key=least.__getitem__))
    return inside, [i for i in range(len(least)) if i not in inside]


def _widths(
    natural: Sequence[int], least: Sequence[int], inside: Sequence[int], limit: int | None
) -> list[int]:
    """The width of each column; those whose text can be broken give way, the widest first."""
    widths = list(natural)
    if limit is None:
        return widths
    for _ in range(2 * len(inside) + sum(widths[i] for i in inside) - limit):
        loose = [i for i in inside if widths[i] > least[i]]
        if not loose:
            break
        widths[max(loose, key=widths.__getitem__)] -= 1
    return widths


def _broken(text: str, width: int, *, right: bool) -> list[str]:
    return [text] if right or wide(text) <= width else wrapped(text, width)


def _joined(
    cells: Sequence[Sequence[str]],
    inside: Sequence[int],
    widths: Sequence[int],
    right: Sequence[int],
) -> list[str]:
    """Cells of several lines, side by side."""
    lines = []
    for number in range(max(map(len, cells), default=0)):
        parts = []
        for i, cell in zip(inside, cells, strict=True):
            text = cell[number] if number < len(cell) else ""
            gap = " " * max(widths[i] - wide(text), 0)
            parts.append(gap + text if i in right else text + gap)
        lines.append("  " + "  ".join(parts).rstrip())
    return lines


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, the values aligned."""
    limit = screen_width()
    rows = [(name, printable(value)) for name, value in pairs]
    width = max((wide(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        label = name + " " * (width - wide(name))
        for line in wrapped(value, limit, first=label, indent=" " * width):
            say(line)


def bytes_text(count: int) -> str:
    """A number of bytes as a person reads it."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError
