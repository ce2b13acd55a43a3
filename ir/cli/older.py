"""What is told of IR v2 to v7: what upgrading decided, and the table of old layer types."""

from __future__ import annotations

import difflib
from typing import Any

import click

from ...schemas import UnsupportedError, UsageError
from ..files import Origin, Remark, entries, known_types
from .output import print_json, print_pairs, print_table


def refusal(missing: list[Remark]) -> UnsupportedError:
    """The error that names every layer without a counterpart."""
    first = missing[0]
    rest = "".join(f"; {remark}" for remark in missing[1:])
    return UnsupportedError(
        f"{first.message}{rest}", first.where, "a file of version 11 cannot say what it computes"
    )


def print_remarks(origin: Origin) -> None:
    """What is not one to one."""
    rows: list[list[Any]] = [
        [remark.where.line or "", remark.where.name or "", remark.where.type or "", remark.message]
        for remark in origin.remarks
    ]
    print_table(f"upgraded from IR v{origin.version}", ["line", "layer", "type", "what"], rows)


def list_older(name: str | None, format_: str) -> None:
    """Print the table of old layer types (``vinoir ops --older``)."""
    rows: list[dict[str, Any]] = [
        {
            "type": entry.type,
            "attributes": entry.spelled(),
            "becomes": list(entry.becomes),
            "summary": entry.summary,
        }
        for entry in sorted(entries().values(), key=lambda entry: entry.type.lower())
        if name is None or entry.type.lower() == name.lower()
    ]
    if not rows:
        near = difflib.get_close_matches(name or "", known_types(), 1)
        hint = f"did you mean {near[0]}?" if near else None
        raise UsageError(f'no layer of IR v2 to v7 is named "{name}"', hint=hint)
    if format_ == "json":
        print_json("ops", {"layers": rows})
        return
    if format_ == "markdown":
        click.echo("| type | attributes | becomes | what |\n|---|---|---|---|")
        for row in rows:
            click.echo("| " + " | ".join(map(cell, row.values())) + " |")
    elif name is not None:
        print_pairs([(key, cell(value)) for key, value in rows[0].items()])
    else:
        cells = [[row["type"], row["summary"]] for row in rows]
        print_table(f"{len(rows)} layer types of IR v2 to v7", ["type", "what"], cells)


def cell(value: Any) -> str:
    """A list in one line."""
    return ", ".join(value) if isinstance(value, list) else str(value)
