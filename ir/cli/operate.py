"""What the verbs share that make a new model of one: where it goes, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ...schemas import UsageError
from ..files import write
from ..surgery import Operated, Surgery
from .infer import target_of
from .output import note, print_json, print_table, writer_options

F = TypeVar("F", bound=Callable[..., Any])

#: Changes that are listed one by one though a model is written.
_LISTED = 30


def operation_options(function: F) -> F:
    """``-o``, ``--force``, ``--in-place`` and ``--dry-run``."""
    function = click.option(
        "--dry-run", is_flag=True, help="Write nothing; tell everything that would be done."
    )(function)
    return writer_options(required=False)(function)


def target_or_none(
    model: str, output: str | None, *, force: bool, in_place: bool, dry_run: bool
) -> str | None:
    """Where to write, found before anything is done; None for a dry run."""
    if dry_run:
        return None
    if output is None and not in_place:
        raise UsageError(
            "there is nothing to write to", hint="give -o MODEL.xml, --in-place or --dry-run"
        )
    return target_of(model, output, force, in_place)


def deliver(done: Operated, target: str | None, format_: str, weights: str | None = None) -> None:
    """Write a model, and tell what was done."""
    report = done.report
    if target is not None:
        write(done.model, target, weights)
    if format_ == "json":
        print_json({**report.to_json(), "written": target})
    elif target is None or len(report.changes) <= _LISTED:
        print_changes(report)
    note(summary(report))
    note(f"wrote {target}" if target is not None else "nothing written")


def print_changes(report: Surgery) -> None:
    """Every change, one a line."""
    if report.changes:
        print_table(
            "",
            ["what", "layer", ""],
            [[row.kind, row.layer or "", row.message] for row in report.changes],
        )


def print_refusals(report: Surgery) -> None:
    """Every layer that cannot be brought into the wanted form."""
    print_table(
        "",
        ["layer", "operation", "why not"],
        [[row.layer, row.operation, row.reason] for row in report.refusals],
    )


def summary(report: Surgery) -> str:
    """The counts of a report in a line."""
    counts = ", ".join(f"{count} {kind}" for kind, count in report.counts.items())
    before, after = report.layers
    return f"{counts or 'nothing to do'}; {before} layers, now {after}"
