"""``vinoir merge``: models joined into one."""

from __future__ import annotations

import click

from ...schemas import UsageError
from ..files import read
from ..surgery import merge
from .infer import split, target_of
from .operate import deliver
from .output import format_option


@click.command(
    "merge",
    epilog="Examples: vinoir merge detector.xml tracker.xml --map boxes=rois -o both.xml; "
    "vinoir merge a.xml b.xml --chain -o ab.xml; "
    "vinoir merge a.xml b.xml --prefix a_ --prefix b_ -o side.xml",
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="OUTPUT=INPUT",
    help="An output of an earlier model that feeds an input of a later one.",
)
@click.option("--by-name", is_flag=True, help="Join outputs and inputs that have the same name.")
@click.option("--chain", is_flag=True, help="Join the outputs of each model in order with the "
              "inputs of the next.")  # fmt: skip
@click.option(
    "--prefix", "prefixes", multiple=True, help="What stands before all names, once a model."
)
@click.option(
    "--share", multiple=True, metavar="INPUT", help="An input of several models that becomes one."
)
@click.option("--keep-outputs", is_flag=True, help="Outputs that feed an input remain outputs.")
@click.option("--name", help="The name of the new model.")
@click.option("-o", "--output", type=click.Path(), help="The .xml to write.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would be done.")
@format_option()
def merge_command(
    models: tuple[str, ...],
    pairs: tuple[str, ...],
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
    if bool(pairs) + by_name + chain > 1:
        raise UsageError("--map, --by-name and --chain exclude each other")
    if output is None and not dry_run:
        raise UsageError("there is nothing to write to", hint="give -o MODEL.xml or --dry-run")
    target = None if dry_run else target_of(models[0], output, force, in_place=False)
    done = merge(
        [read(model) for model in models],
        dict(map(split, pairs)) if pairs else "names" if by_name else "order" if chain else None,
        prefixes=prefixes or None,
        share=share,
        keep_outputs=keep_outputs,
        name=name,
    )
    deliver(done, target, format_)
