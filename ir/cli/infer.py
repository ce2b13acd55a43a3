"""``vinoir infer``: the types and shapes of every port."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ...schemas import UsageError
from ..display import declared, operation_name, shape_text
from ..document import Model
from ..files import read
from ..inference import Inferred, infer
from ..surgery import reshape, same_declaration
from .fleet import over_many
from .output import (
    format_option,
    limit_options,
    model_argument,
    note,
    print_json,
    print_table,
    weights_option,
    writer_options,
)


@over_many
@click.command(
    "infer",
    epilog="Examples: vinoir infer model.xml; "
    "vinoir infer model.xml --input x=1..8,3,H,W; "
    "vinoir infer model.xml --input x=1,3,320,320 -o small.xml",
)
@model_argument
@weights_option
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=SHAPE",
    help="A new shape for an input: 1,3,H,W or 1..8,?,... ; names stand for unknown sizes.",
)
@writer_options(required=False)
@limit_options
@format_option()
def infer_command(
    model: str,
    weights: str | None,
    inputs: tuple[str, ...],
    output: str | None,
    force: bool,
    in_place: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Work out the types and shapes of every port of MODEL, beside what the file declares.

    A line with != differs from the declaration: exit code 1, unless new shapes were given.
    """
    found = read(model, weights)
    shapes = dict(split(text) for text in inputs)
    inferred = infer(found, shapes, max_memory=max_memory, max_seconds=max_seconds)
    rows = port_rows(found, inferred)
    if format_ == "json":
        print_json(
            {"ports": rows, "outputs": {k: shape_text(t.shape) for k, t in inferred.items()}}
        )
    else:
        print_table(
            "",
            ["layer", "operation", "port", "inferred", "", "declared"],
            [
                [r["name"], r["operation"], r["port"], r["inferred"], "" if r["same"] else "!=",
                 "" if r["same"] else r["declared"]]
                for r in rows
            ],
        )  # fmt: skip
    if output is not None or in_place:
        from ..files import write

        reshape(found, shapes)
        target = target_of(model, output, force, in_place)
        # In place the weights stay where they are, which need not be beside the model.
        write(found, target, weights if in_place else None)
        note(f"wrote {target}")
        return
    differing = sum(not row["same"] for row in rows)
    if differing and not shapes:
        note(f"{differing} ports differ from what the file declares")
        raise SystemExit(1)


def split(text: str) -> tuple[str, str]:
    """A name and what is given for it."""
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise UsageError(f'"{text}" is not NAME=VALUE')
    return name, value


def port_rows(model: Model, inferred: Inferred) -> list[dict[str, Any]]:
    """Every output port: what is inferred, what is declared."""
    rows = []
    for layer, index, tensor in inferred.ports():
        port = layer.outputs[index] if index < len(layer.outputs) else None
        stated = declared(layer)[index] if port is not None else None
        rows.append(
            {
                "layer": layer.id,
                "name": layer.name,
                "operation": operation_name(layer),
                "port": None if port is None else port.id,
                "names": [] if port is None else list(port.names),
                "type": str(tensor.type),
                "shape": tensor.shape.spelling,
                "inferred": f"{tensor.type}{shape_text(tensor.shape)}",
                "declared": "nothing"
                if stated is None
                else f"{stated.type}{shape_text(stated.shape)}",
                "same": port is not None and same_declaration(port, tensor),
            }
        )
    return rows


def target_of(model: str, output: str | None, force: bool, in_place: bool) -> str:
    """Where to write; an existing file, or a .bin beside it, only where that is asked for."""
    if in_place and output is not None:
        raise UsageError("--in-place and --output exclude each other")
    if output is None:
        return model
    for path in (Path(output), Path(output).with_suffix(".bin")):
        if os.path.lexists(path) and not force:
            raise UsageError(f"{path} is already there", hint="--force overwrites it")
    return output
