"""``vinoir copy``: read, write, compare."""

from __future__ import annotations

import click

from ...schemas import MismatchError, UsageError
from ..files.reader import read
from ..files.writer import write
from .infer import target_of
from .output import note


@click.command("copy", epilog="Example: vinoir copy model.xml backup/model.xml")
@click.argument("source", metavar="MODEL", type=click.Path())
@click.argument("target", metavar="OUTPUT", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite the output.")
def copy_command(source: str, target: str, force: bool) -> None:
    """Read MODEL, write it to OUTPUT, read that again and verify that nothing was lost."""
    model = read(source)
    if model.origin is not None:
        raise UsageError(
            f"{source} is IR version {model.origin.version}, which nobody writes any more",
            hint="vinoir convert writes it as version 11",
        )
    written = target_of(source, target, force, in_place=False)
    write(model, written)
    again = read(written)
    if again.source != model.source:
        raise MismatchError(f"{written} is not what {source} is")
    for one, two in zip(model.everywhere(), again.everywhere(), strict=True):
        if one.is_constant and one.value.tobytes() != two.value.tobytes():
            raise MismatchError(f'constant "{one.name}" of {written} is not that of {source}')
    note(f"wrote {written}: {len(model)} layers, equal to {source}")
