"""``vinoir copy``: read, write, compare."""

from __future__ import annotations

import click
import numpy as np

from ...schemas import MismatchError, UsageError
from ..document import Layer, Model
from ..files import read, write
from .infer import target_of
from .output import bytes_text, note, weights_option


@click.command(
    "copy",
    epilog="Examples: vinoir copy model.xml backup/model.xml; "
    "vinoir copy model.xml small.xml --repack",
)
@click.argument("source", metavar="MODEL", type=click.Path())
@click.argument("target", metavar="OUTPUT", type=click.Path())
@weights_option
@click.option(
    "--repack",
    is_flag=True,
    help="Lay the .bin out anew: every constant once, in order, without unused bytes.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
def copy_command(source: str, target: str, weights: str | None, repack: bool, force: bool) -> None:
    """Read MODEL, write it to OUTPUT, read that again and verify that nothing was lost."""
    model = read(source, weights)
    if model.origin is not None:
        raise UsageError(
            f"{source} is IR version {model.origin.version}, which nobody writes any more",
            hint="vinoir convert writes it as version 11",
        )
    written = target_of(source, target, force, in_place=False)
    write(model, written, repack=repack)
    again = read(written)
    compare(model, again, source, written, exact=not repack)
    if model.weights is None or again.weights is None:
        note(f"wrote {written}: {len(model)} layers, equal to {source}, which has no .bin")
        return
    sizes = f"{bytes_text(model.weights.size)} of weights"
    if repack:
        sizes += f" are {bytes_text(again.weights.size)} now"
    note(f"wrote {written}: {len(model)} layers, equal to {source}; {sizes}")


def compare(model: Model, again: Model, source: str, written: str, *, exact: bool) -> None:
    """Refuse a copy that is not what was copied; unless ``exact``, bytes may have moved."""
    if exact and again.source != model.source:
        raise MismatchError(f"{written} is not what {source} is")
    for one, two in zip(model.everywhere(), again.everywhere(), strict=True):
        if said(one) != said(two):
            raise MismatchError(f'layer "{one.name}" of {written} is not that of {source}')
        if one.is_constant and model.weights is not None:
            held, copied = (np.frombuffer(layer.blob, np.uint8) for layer in (one, two))
            if not np.array_equal(held, copied):
                raise MismatchError(f'constant "{one.name}" of {written} is not that of {source}')


def said(layer: Layer) -> tuple[object, ...]:
    """What a layer says, but for where its bytes are."""
    moving = ("offset", "size", "value") if layer.is_constant else ()
    data = {key: text for key, text in layer.data.items() if key not in moving}
    return layer.id, layer.name, layer.type, layer.version, data, layer.inputs, layer.outputs
