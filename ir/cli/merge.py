"""``vinoir merge``: models joined into one."""

from __future__ import annotations

import click

from ...schemas import UsageError
from ..surgery import merge
from .naming import before_value, input_names, output_names
from .operate import deliver
from .options import (
    FileName,
    Source,
    dry_run_option,
    force_option,
    format_option,
    lenient_option,
    output_option,
    split,
    target_of,
    verb,
)


@verb(
    "merge",
    "merge backbone.xml head.xml --map features=features_in -o both.xml",
    "merge backbone.xml head.xml --chain -o ab.xml",
    "merge model.xml model.xml --prefix a_ --prefix b_ --dry-run",
)
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=FileName(allow_dash=True)
)
@lenient_option
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="OUTPUT=INPUT",
    shell_complete=before_value(output_names),
    help="An output of an earlier model that feeds an input of a later one; it may feed several.",
)
@click.option("--by-name", is_flag=True, help="Join outputs and inputs that have the same name.")
@click.option("--chain", is_flag=True, help="Join the outputs of each model in order with the "
              "inputs of the next.")  # fmt: skip
@click.option(
    "--prefix", "prefixes", multiple=True, help="What stands before all names, once a model."
)
@click.option(
    "--share",
    multiple=True,
    metavar="INPUT",
    shell_complete=input_names,
    help="An input of several models that becomes one, and has no prefix.",
)
@click.option("--keep-outputs", is_flag=True, help="Outputs that feed an input remain outputs.")
@click.option("--name", help="The name of the new model.")
@output_option()
@force_option
@dry_run_option
@format_option()
def merge_command(
    models: tuple[str, ...],
    lenient: bool,
    mapped: tuple[str, ...],
    by_name: bool,
    chain: bool,
    prefixes: tuple[str, ...],
    share: tuple[str, ...],
    keep_outputs: bool,
    name: str | None,
    output: str | None,
    force: bool,
    dry_run: bool,
    format_: str,
) -> None:
    """Join models: side by side, unless --map, --by-name or --chain says what feeds what."""
    if bool(mapped) + by_name + chain > 1:
        raise UsageError("--map, --by-name and --chain exclude each other")
    sources = [Source(model, lenient=lenient) for model in models]
    target = target_of(sources[0], output, force=force, in_place=False, dry_run=dry_run)
    rows = [split(text) for text in mapped]
    done = merge(
        [source.read() for source in sources],
        rows or ("names" if by_name else "order" if chain else None),
        prefixes=prefixes or None,
        share=share,
        keep_outputs=keep_outputs,
        name=name,
    )
    deliver(done, target, format_)
