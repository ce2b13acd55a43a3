"""``vinoir extract``: a part of a model as a model of its own."""

from __future__ import annotations

import click

from ..surgery import extract
from .naming import layer_names, tensor_names
from .operate import Destination, deliver, operation_options
from .options import Source, format_option, model_options, verb


@verb(
    "extract",
    "extract model.xml --from conv1 --to relu2 -o part.xml",
    "extract model.xml --to features -o backbone.xml",
    "extract model.xml --layers 'block2/.*' --dry-run",
    "extract loop.xml --body loop -o body.xml",
)
@model_options
@click.option(
    "--from",
    "inputs",
    multiple=True,
    metavar="TENSOR",
    shell_complete=tensor_names,
    help="A tensor that is fed from outside; not given: the inputs that the outputs need.",
)
@click.option(
    "--to",
    "outputs",
    multiple=True,
    metavar="TENSOR",
    shell_complete=tensor_names,
    help="A tensor that is handed out; not given: the outputs of the model.",
)
@click.option("--layers", metavar="REGEX", help="The layers to keep, by a regular expression.")
@click.option(
    "--body",
    metavar="LAYER",
    shell_complete=layer_names,
    help="The layer whose body is meant: loop, or if/then_body.",
)
@operation_options
@format_option()
def extract_command(
    source: Source,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    layers: str | None,
    body: str | None,
    destination: Destination,
    format_: str,
) -> None:
    """Cut a part out of MODEL; a TENSOR is a tensor's name, a layer's, or LAYER:INDEX."""
    target = destination.of(source)
    done = extract(source.read(), inputs or None, outputs or None, layers=layers, body=body)
    deliver(done, target, format_)
