"""What the verbs print: tables and JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...schemas.printing import printable

#: Characters of one cell of a table.
LONGEST_CELL = 500
#: Raised when the meaning of a field in the JSON changes.
SCHEMA_VERSION = 1

F = TypeVar("F", bound=Callable[..., Any])


def format_option(*more: str) -> Callable[[F], F]:
    """The option ``--format``, which every reading verb has."""

    def decorate(function: F) -> F:
        function = click.option(
            "--format",
            "format_",
            type=click.Choice(["text", "json", *more]),
            default="text",
            help="What to print.",
        )(function)
        return click.option(
            "--json", "format_", flag_value="json", help="Short for --format json."
        )(function)

    return decorate


model_argument = click.argument("model", metavar="MODEL", type=click.Path())
weights_option = click.option(
    "--weights", type=click.Path(), help="The .bin, where it is not beside the .xml."
)


def limit_options(function: F) -> F:
    """The options ``--max-memory`` and ``--max-seconds`` of verbs that compute."""
    for option in (
        click.option(
            "--max-seconds",
            type=click.FloatRange(min=0),
            metavar="SECONDS",
            help="Stop when it has taken so long.",
        ),
        click.option(
            "--max-memory",
            type=Bytes(),
            metavar="BYTES",
            help="Refuse what would take more memory: 500M, 1G; not given: what the machine has.",
        ),
    ):
        function = option(function)
    return function


if TYPE_CHECKING:
    _Parameter = click.ParamType[int]
else:
    _Parameter = click.ParamType  # which older releases do not let be subscripted


class Bytes(_Parameter):
    """A number of bytes, such as 500M or 1.5G."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that a text means."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(
            r"(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]?)(I?B?)", value.strip().upper(), re.A
        )
        if found is None:
            self.fail(f"{value!r} is no number of bytes, such as 500M or 1.5G", param, ctx)
        base = 1024 if found[3].startswith("I") else 1000
        return int(float(found[1]) * base ** " KMGT".index(found[2] or " "))


def writer_options(*, required: bool) -> Callable[[F], F]:
    """The options of a verb that writes a model: where to, and whether over what is there."""

    def decorate(function: F) -> F:
        options = (
            click.option("--in-place", is_flag=True, help="Write over the model that was read."),
            click.option("--force", is_flag=True, help="Overwrite the output."),
            click.option(
                "-o", "--output", type=click.Path(), required=required, help="The .xml to write."
            ),
        )
        for option in options:
            function = option(function)
        return function

    return decorate


def say(text: str, *, err: bool = False, styled: bool = False) -> None:
    """Print one line, in which nothing is left that a terminal or a build server would obey.

    Args:
        text: The line.
        err: Print it on standard error.
        styled: It was made printable before, and has been given colours since.
    """
    line = text if styled else printable(text, len(text))
    click.echo(line, err=err, color=True if styled else None)


def print_json(content: dict[str, Any]) -> None:
    """Print an object as JSON, with the version of its form."""
    say_json({"schema_version": SCHEMA_VERSION, **content})


def say_json(content: dict[str, Any]) -> None:
    """Print an object as JSON in plain ASCII: what is not printable is escaped as JSON has it."""
    text = json.dumps(content, indent=2, default=str)
    click.echo(text.replace("\x7f", "\\u007f"))


def fancy() -> bool:
    """Whether the output is for a person: a terminal, or colour is asked for."""
    return sys.stdout.isatty() or "FORCE_COLOR" in os.environ


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> None:
    """Print a table: with lines and colours on a terminal, as plain columns in a pipe."""
    lines = [[printable(cell, LONGEST_CELL) for cell in row] for row in rows]
    if not fancy():
        _print_plain(title, columns, lines, right)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, name in enumerate(columns):
        table.add_column(
            name,
            justify="right" if index in right else "left",
            overflow="fold",
            header_style="bold",
        )
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    Console().print(table)


def _print_plain(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]
) -> None:
    lines = [list(columns), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    if title:
        say(title)
    for line in lines:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        say("  " + "  ".join(cells).rstrip())
    click.echo()


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, the values aligned."""
    rows = [(name, printable(value)) for name, value in pairs]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        say(f"{name.ljust(width)}  {value}")


def bytes_text(count: int) -> str:
    """A number of bytes as a person reads it."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def note(text: str) -> None:
    """Say something on standard error."""
    say(text, err=True)
