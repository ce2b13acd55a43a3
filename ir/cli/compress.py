"""``vinoir compress``: weights in half precision, and back."""

from __future__ import annotations

import click

from ...schemas import UsageError
from ..surgery import compress, decompress
from .operate import Destination, deliver, operation_options
from .options import Source, format_option, model_options, verb
from .output import bytes_text, note


@verb(
    "compress",
    "compress model.xml -o small.xml",
    "compress model.xml --keep 'head/.*' --in-place",
    "compress small.xml --back -o model.xml --force",
)
@model_options
@click.option("--keep", metavar="REGEX", help="Constants that stay as they are.")
@click.option("--back", is_flag=True, help="Store what is compressed in its former type.")
@operation_options
@format_option()
def compress_command(
    source: Source,
    keep: str | None,
    back: bool,
    destination: Destination,
    format_: str,
) -> None:
    """Store the weights of MODEL in f16, where OpenVINO would, each behind a Convert."""
    if back and keep is not None:
        raise UsageError("--keep is for compressing, --back takes all of it back")
    target = destination.of(source)
    found = source.read()
    done = decompress(found) if back else compress(found, keep=keep)
    before, after = (
        sum(len(layer.blob) for layer in one.everywhere() if layer.is_constant)
        for one in (found, done.model)
    )
    deliver(done, target, format_)
    note(f"constants took {bytes_text(before)}, now {bytes_text(after)}")
