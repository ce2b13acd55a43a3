"""``vinoir simplify``: fewer layers that give the same outputs."""

from __future__ import annotations

from typing import Any

import click

from ..surgery import Simplified, simplify
from .fleet import over_many
from .operate import Destination, operation_options
from .options import (
    SHAPED,
    Source,
    format_option,
    limit_options,
    model_options,
    pairs,
    seed_option,
    shapes_option,
    verb,
)
from .output import note, print_json, print_table


@over_many
@verb(
    "simplify",
    "simplify model.xml -o small.xml",
    "simplify model.xml --input image=1,1,16,16 --certify 3 -o static.xml",
    "simplify model.xml --dry-run --skip fold-constants",
)
@model_options
@shapes_option
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
@seed_option
@operation_options
@limit_options
@format_option()
def simplify_command(
    source: Source,
    inputs: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    certify: int,
    seed: int,
    destination: Destination,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Rewrite MODEL so that fewer layers give the same outputs.

    Names of inputs and outputs stay, and the file never grows.
    """
    target = destination.of(source)
    new, done = simplify(
        source.read(),
        pairs(inputs, SHAPED),
        only=only,
        skip=skip,
        certify=certify,
        seed=seed,
        max_memory=max_memory,
        max_seconds=max_seconds,
    )
    target.write(new)
    if format_ == "json":
        print_json("simplify", {**report(source.path, done), "written": target.path})
    elif done.rules:
        print_table("", ["rule", "times"], list(done.rules.items()), right=[1])
    note(f"{source.path}: {done.layers_before} layers, {done.layers_after} simplified")
    if done.certificate is not None:
        certificate = done.certificate
        note(
            f"certified: {certificate.runs} run{'s' * (certificate.runs != 1)}, "
            f"greatest difference {certificate.difference:.1e}; "
            f"{certificate.alone} rewrites alone, {certificate.difference_alone:.1e}; "
            f"{certificate.not_alone} not alone"
        )
        if certificate.ties:
            note(
                f"outputs differ by {certificate.ties:.1e} where numbers that stand between two "
                "levels of a FakeQuantize are rounded to the other; with finer levels all is "
                "equal: no rewrite is wrong"
            )
    note(f"wrote {target.path}" if target.path is not None else "nothing written")


def report(model: str, done: Simplified) -> dict[str, Any]:
    """What was done, as JSON."""
    return {
        "model": model,
        "layers": {"before": done.layers_before, "after": done.layers_after},
        "rules": done.rules,
        "rewrites": [rewrite._asdict() for rewrite in done.rewrites],
        "certificate": None if done.certificate is None else done.certificate._asdict(),
    }
