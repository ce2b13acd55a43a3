"""``vinoir simplify``: fewer layers that give the same outputs."""

from __future__ import annotations

from typing import Any

import click

from ...schemas import UsageError
from ..files import read, write
from ..surgery import Simplified, simplify
from .fleet import over_many
from .infer import split, target_of
from .output import (
    format_option,
    limit_options,
    model_argument,
    note,
    print_json,
    print_table,
    weights_option,
    writer_options,
)


@over_many
@click.command(
    "simplify",
    epilog="Examples: vinoir simplify model.xml -o small.xml; "
    "vinoir simplify model.xml --input x=1,3,224,224 --certify 3 -o static.xml; "
    "vinoir simplify model.xml --dry-run --skip attention",
)
@model_argument
@weights_option
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=SHAPE",
    help="A new shape for an input; what follows from it is computed beforehand.",
)
@click.option("--only", multiple=True, metavar="RULE", help="Apply this rule alone; repeatable.")
@click.option("--skip", multiple=True, metavar="RULE", help="Do not apply a rule; repeatable.")
@click.option(
    "--certify",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Run the model on N random inputs before and after, and each rewrite alone; "
    "where numbers differ nothing is written: exit code 5.",
)
@click.option("--seed", type=int, default=0, help="Of the random inputs.")
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would be done.")
@writer_options(required=False)
@limit_options
@format_option()
def simplify_command(
    model: str,
    weights: str | None,
    inputs: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    certify: int,
    seed: int,
    dry_run: bool,
    output: str | None,
    force: bool,
    in_place: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Rewrite MODEL so that fewer layers give the same outputs.

    Names of inputs and outputs stay, and the file never grows.
    """
    if output is None and not in_place and not dry_run:
        raise UsageError(
            "there is nothing to write to", hint="give -o MODEL.xml, --in-place or --dry-run"
        )
    target = None if dry_run else target_of(model, output, force, in_place)
    new, done = simplify(
        read(model, weights),
        dict(split(text) for text in inputs),
        only=only,
        skip=skip,
        certify=certify,
        seed=seed,
        max_memory=max_memory,
        max_seconds=max_seconds,
    )
    if format_ == "json":
        print_json(report(model, done))
    elif done.rules:
        print_table("", ["rule", "times"], list(done.rules.items()), right=[1])
    note(f"{model}: {done.layers_before} layers, {done.layers_after} simplified")
    if done.certificate is not None:
        certificate = done.certificate
        note(
            f"certified: {certificate.runs} runs, greatest difference "
            f"{certificate.difference:.1e}; {certificate.alone} rewrites alone, "
            f"{certificate.difference_alone:.1e}; {certificate.not_alone} not alone"
        )
    if target is not None:
        write(new, target, weights if in_place else None)
        note(f"wrote {target}")


def report(model: str, done: Simplified) -> dict[str, Any]:
    """What was done, as JSON."""
    return {
        "model": model,
        "layers": {"before": done.layers_before, "after": done.layers_after},
        "rules": done.rules,
        "rewrites": [rewrite._asdict() for rewrite in done.rewrites],
        "certificate": None if done.certificate is None else done.certificate._asdict(),
    }
