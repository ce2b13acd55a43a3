"""``vinoir weights``: the constants of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...schemas import Array, UsageError
from ..display import constant_bytes, plot_weights, write_text
from ..document import Layer, Model
from ..files import read
from .archive import save_arrays
from .output import (
    bytes_text,
    format_option,
    model_argument,
    note,
    print_json,
    print_table,
    weights_option,
)


@click.group("weights")
def weights_command() -> None:
    """List, export or draw the constants of a model."""


@weights_command.command("list", epilog="Example: vinoir weights list model.xml")
@model_argument
@weights_option
@format_option()
def list_command(model: str, weights: str | None, format_: str) -> None:
    """List every constant of MODEL with its type, shape and place in the .bin."""
    rows = [constant_facts(layer) for layer in constants(read(model, weights))]
    if format_ == "json":
        print_json({"constants": rows})
        return
    print_table(
        "",
        ["id", "name", "type", "shape", "offset", "size"],
        [
            [r["id"], r["name"], r["type"], r["shape"], r["offset"], bytes_text(r["bytes"])]
            for r in rows
        ],
        right=(0, 4, 5),
    )


@weights_command.command(
    "export", epilog="Example: vinoir weights export model.xml -o weights.npz"
)
@model_argument
@weights_option
@click.option("-o", "--output", required=True, type=click.Path(), help="The .npz to write.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
def export_command(model: str, weights: str | None, output: str, force: bool) -> None:
    """Write every constant of MODEL into an .npz, under its layer's name."""
    target = Path(output)
    if target.exists() and not force:
        raise UsageError(f"{output} is already there", hint="--force overwrites it")
    found = read(model, weights)
    arrays: dict[str, Array] = {}
    for layer in constants(found):
        name = layer.name if layer.name not in arrays else f"{layer.name}#{layer.id}"
        arrays[name] = layer.value
    save_arrays(arrays, output)
    note(f"wrote {len(arrays)} constants to {output}")


@weights_command.command("plot", epilog="Example: vinoir weights plot model.xml -o weights.svg")
@model_argument
@weights_option
@click.option("-o", "--output", required=True, type=click.Path(), help="The .svg to write.")
@click.option(
    "--least", type=click.IntRange(1), default=2, show_default=True, help="Values of a constant."
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Constants, the largest.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
def plot_command(
    model: str, weights: str | None, output: str, least: int, most: int, force: bool
) -> None:
    """Draw the range and the histogram of every constant of MODEL."""
    target = Path(output)
    if target.suffix.lower() != ".svg":
        raise UsageError(f'"{target.name}" does not end in .svg')
    if target.exists() and not force:
        raise UsageError(f"{output} is already there", hint="--force overwrites it")
    write_text(target, plot_weights(read(model, weights), least=least, most=most), force)
    note(f"drew the constants into {output}")


def constants(model: Model) -> list[Layer]:
    """Every constant, also those in bodies."""
    return [layer for layer in model.everywhere() if layer.is_constant]


def constant_facts(layer: Layer) -> dict[str, Any]:
    """One line of the list."""
    count = 1
    for size in layer.sizes:
        count *= size
    return {
        "id": layer.id,
        "name": layer.name,
        "type": str(layer.element_type),
        "shape": f"[{','.join(map(str, layer.sizes))}]",
        "elements": count,
        "offset": layer.data.get("offset", "-"),
        "bytes": constant_bytes(layer, count),
    }
