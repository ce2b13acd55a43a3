"""``vinoir convert``: a model in an older form."""

from __future__ import annotations

import click

from ...schemas import UnsupportedError
from ..files import read
from ..surgery import Surgery, convert
from .operate import deliver, operation_options, print_refusals, target_or_none
from .output import format_option, model_argument, note, print_json, weights_option


@click.command(
    "convert",
    epilog="Examples: vinoir convert model.xml --target 2022.3 -o old.xml; "
    "vinoir convert model.xml --opset 8 --dry-run; "
    "vinoir convert model.xml --ir-version 10 -o v10.xml",
)
@model_argument
@weights_option
@click.option("--target", metavar="RELEASE", help="The OpenVINO release that is to read it.")
@click.option("--opset", type=int, help="The latest opset that layers may name.")
@click.option("--ir-version", type=int, help="10 or 11.")
@operation_options
@format_option()
def convert_command(
    model: str,
    weights: str | None,
    target: str | None,
    opset: int | None,
    ir_version: int | None,
    output: str | None,
    force: bool,
    in_place: bool,
    dry_run: bool,
    format_: str,
) -> None:
    """Say the newer operations of MODEL by older ones; what cannot be is listed: exit code 4."""
    place = target_or_none(model, output, force=force, in_place=in_place, dry_run=dry_run)
    done = convert(
        read(model, weights), target=target, opset=opset, ir_version=ir_version, partial=True
    )
    if done.report.refusals:
        refuse(done.report, format_)
    deliver(done, place, format_, weights if in_place else None)


def refuse(report: Surgery, format_: str) -> None:
    """List what cannot be converted, and leave."""
    if format_ == "json":
        print_json({**report.to_json(), "written": None})
    else:
        print_refusals(report)
    note(f"{len(report.refusals)} layers cannot be converted; nothing written")
    raise SystemExit(UnsupportedError.exit_code)
