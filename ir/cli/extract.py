"""``vinoir extract``: a part of a model as a model of its own."""

from __future__ import annotations

import click

from ..files import read
from ..surgery import extract
from .operate import deliver, operation_options, target_or_none
from .output import format_option, model_argument, weights_option


@click.command(
    "extract",
    epilog="Examples: vinoir extract model.xml --from conv1 --to relu5 -o part.xml; "
    "vinoir extract model.xml --to features -o backbone.xml; "
    "vinoir extract model.xml --layers 'block2/.*' --dry-run; "
    "vinoir extract model.xml --body loop -o body.xml",
)
@model_argument
@weights_option
@click.option(
    "--from",
    "inputs",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that is fed from outside; not given: the inputs that the outputs need.",
)
@click.option(
    "--to",
    "outputs",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that is handed out; not given: the outputs of the model.",
)
@click.option("--layers", metavar="REGEX", help="The layers to keep, by a regular expression.")
@click.option(
    "--body", metavar="LAYER", help="The layer whose body is meant: loop, or if/then_body."
)
@operation_options
@format_option()
def extract_command(
    model: str,
    weights: str | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    layers: str | None,
    body: str | None,
    output: str | None,
    force: bool,
    in_place: bool,
    dry_run: bool,
    format_: str,
) -> None:
    """Cut a part out of MODEL; a TENSOR is a tensor's name, a layer's, or LAYER:INDEX."""
    target = target_or_none(model, output, force=force, in_place=in_place, dry_run=dry_run)
    done = extract(read(model, weights), inputs or None, outputs or None, layers=layers, body=body)
    deliver(done, target, format_, weights if in_place else None)
