"""``vinoir convert``: a model of IR v2 to v7 as one of version 11."""

from __future__ import annotations

import difflib
from typing import Any

import click

from ...schemas import UnsupportedError, UsageError
from ..files import Origin, Remark, entries, known_types, read, write
from .infer import target_of
from .output import (
    format_option,
    model_argument,
    note,
    print_json,
    print_pairs,
    print_table,
    weights_option,
)


@click.command(
    "convert",
    epilog="Examples: vinoir convert old.xml -o new.xml; "
    "vinoir convert old.xml -o new.xml --keep-preprocess",
)
@model_argument
@weights_option
@click.option("-o", "--output", type=click.Path(), required=True, help="The .xml to write.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option(
    "--keep-preprocess",
    is_flag=True,
    help="Leave mean values to the caller, and say them in rt_info.",
)
@format_option()
def convert_command(
    model: str,
    weights: str | None,
    output: str,
    force: bool,
    keep_preprocess: bool,
    format_: str,
) -> None:
    """Upgrade MODEL, an IR of version 2 to 7, and write it as version 11.

    What is not one to one is listed. Exit code 1 where sizes are not the declared ones, 4 where
    a layer has no counterpart (nothing is written then).
    """
    found = read(model, weights, need_weights=True, keep_preprocess=keep_preprocess)
    origin = found.origin
    if origin is None:
        raise UsageError(
            f"{model} is IR version {found.version}, only versions 2 to 7 are upgraded",
            hint="vinoir copy copies it",
        )
    missing = [remark for remark in origin.remarks if remark.kind == "missing"]
    if missing:
        raise refusal(missing)
    target = target_of(model, output, force, in_place=False)
    write(found, target)
    if format_ == "json":
        print_json({"written": target, "layers": len(found), "origin": origin.to_json()})
    elif origin.remarks:
        print_remarks(origin)
    note(f"wrote {target}: {len(found)} layers, from IR version {origin.version}")
    if any(remark.kind == "unlike" for remark in origin.remarks):
        click.get_current_context().exit(1)


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
        print_json({"layers": rows})
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
