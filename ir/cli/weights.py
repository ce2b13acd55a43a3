"""``vinoir weights``: the constants of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ...schemas import Array, UsageError
from ...schemas.printing import counted
from ..display import constant_bytes, plot_weights, plotted, write_text
from ..document import Layer, Model, body_path, path_of
from .archive import save_arrays
from .options import (
    Source,
    Verb,
    Verbs,
    force_option,
    format_option,
    model_options,
    output_option,
    refuse_present,
)
from .output import bytes_text, note, print_json, print_table, shape_of


@click.group(
    "weights",
    cls=Verbs,
    examples=(
        "weights list model.xml",
        "weights export model.xml -o weights.npz",
        "weights plot model.xml -o weights.svg",
    ),
)
def weights_command() -> None:
    """List, export or draw the constants of a model."""


@weights_command.command("list", cls=Verb, examples=("weights list model.xml",))
@model_options
@format_option()
def list_command(source: Source, format_: str) -> None:
    """List every constant of MODEL with its type, shape and place in the .bin."""
    found = source.read()
    rows = [(layer, constant_facts(layer)) for layer in constants(found)]
    if format_ == "json":
        content = [{"body": body_of(layer), **facts} for layer, facts in rows]
        print_json("weights", {"constants": content})
        return
    print_table(
        "",
        ["id", "name", "type", "shape", "offset", "size"],
        [
            [
                r["id"],
                path_of(layer),
                r["type"],
                r["shape"],
                "-" if r["offset"] is None else r["offset"],
                bytes_text(r["bytes"]),
            ]
            for layer, r in rows
        ],
        right=(0, 4, 5),
    )


@weights_command.command("export", cls=Verb, examples=("weights export model.xml -o weights.npz",))
@model_options
@output_option("The .npz to write", required=True)
@force_option
def export_command(source: Source, output: str, force: bool) -> None:
    """Write every constant of MODEL into an .npz, under its layer's name (in a body its path)."""
    if not output.lower().endswith(".npz"):
        raise UsageError(f'"{output}" does not end in .npz')
    refuse_present(force, output)
    found = source.read()
    arrays: dict[str, Array] = {}
    for layer in constants(found):
        name = path_of(layer)
        arrays[name if name not in arrays else f"{name}#{layer.id}"] = layer.value
    save_arrays(arrays, output, force=force)
    note(f"wrote {counted(len(arrays), 'constant')} to {output}")


@weights_command.command("plot", cls=Verb, examples=("weights plot model.xml -o weights.svg",))
@model_options
@output_option("The .svg to write", required=True)
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
@force_option
def plot_command(source: Source, output: str, least: int, most: int, force: bool) -> None:
    """Draw the range and the histogram of the constants of MODEL, of many the largest."""
    target = Path(output)
    if target.suffix.lower() != ".svg":
        raise UsageError(f'"{target.name}" does not end in .svg')
    refuse_present(force, output)
    found = source.read()
    write_text(target, plot_weights(found, least=least, most=most), force)
    whole = len(plotted(found, least))
    largest = f", the largest of {whole} (--most)" if whole > most else ""
    note(f"drew {counted(min(whole, most), 'constant')}{largest} into {output}")


def constants(model: Model) -> Iterator[Layer]:
    """Every constant, also those in bodies."""
    return (layer for layer in model.everywhere() if layer.is_constant)


def body_of(layer: Layer) -> str:
    """The path of the body that a layer is in; "" in the model itself."""
    return "" if layer.graph is None else body_path(layer.graph)


def constant_facts(layer: Layer) -> dict[str, Any]:
    """One line of the list."""
    count = 1
    for size in layer.sizes:
        count *= size
    return {
        "id": layer.id,
        "name": layer.name,
        "type": str(layer.element_type),
        "shape": shape_of(layer.sizes),
        "elements": count,
        "offset": offset_of(layer),
        "bytes": constant_bytes(layer, count),
    }


def offset_of(layer: Layer) -> int | None:
    """Where the constant begins in the .bin; None where it says none that can be."""
    text = layer.data.get("offset", "")
    return int(text) if text.isdecimal() and len(text) < 19 else None
