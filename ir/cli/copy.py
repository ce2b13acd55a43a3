"""``vinoir copy``: read, write, compare."""

from __future__ import annotations

import click
import numpy as np

from ...schemas import MismatchError, UsageError
from ...schemas.printing import counted
from ..document import Layer, Model
from ..files import read
from .options import (
    FileName,
    Source,
    force_option,
    in_place_option,
    model_options,
    output_option,
    target_of,
    verb,
)
from .output import bytes_text, note


@verb(
    "copy",
    "copy model.xml backup/model.xml",
    "copy model.xml packed.xml --repack",
    "copy model.xml --weights other.bin -o joined.xml",
)
@model_options
@click.argument("target", metavar="[OUTPUT]", type=FileName(), required=False)
@output_option("The .xml to write, the same as OUTPUT")
@in_place_option
@click.option(
    "--repack",
    is_flag=True,
    help="Lay the .bin out anew: every constant once, in order, without unused bytes.",
)
@force_option
def copy_command(
    source: Source,
    target: str | None,
    output: str | None,
    in_place: bool,
    repack: bool,
    force: bool,
) -> None:
    """Read MODEL, write it to OUTPUT, read that again and verify that nothing was lost."""
    if target is not None and output is not None:
        raise UsageError(f"two places to write to are given: {target} and {output}")
    goal = target_of(source, target or output, force=force, in_place=in_place)
    model = source.read()
    if model.origin is not None:
        raise UsageError(
            f"{source.path} is IR version {model.origin.version}, which nobody writes any more",
            hint="vinoir convert writes it as version 11",
        )
    size = 0 if model.weights is None else model.weights.size
    goal.write(model, repack=repack)
    assert goal.path is not None
    again = read(goal.path, goal.weights, lenient=source.lenient)
    compare(model, again, source.path, goal.path, exact=not repack)
    wrote = f"wrote {goal.path}: {counted(len(model), 'layer')}, equal to {source.path}"
    if model.weights is None or again.weights is None:
        note(f"{wrote}, which has no .bin")
        return
    sizes = f"{bytes_text(size)} of weights"
    if repack:
        sizes += f" are {bytes_text(again.weights.size)} now"
    note(f"{wrote}; {sizes}")


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
