"""What the verbs share that make a new model of one: where it goes, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ..surgery import Operated, Surgery
from .options import (
    Source,
    Target,
    dry_run_option,
    force_option,
    in_place_option,
    layered,
    output_option,
    target_of,
)
from .output import note, print_json, print_table

#: Changes that are listed one by one though a model is written.
_LISTED = 30

_options = layered(output_option(), in_place_option, force_option, dry_run_option)


@dataclass(frozen=True)
class Destination:
    """Where the options say that a model goes, and whether over what is there."""

    output: str | None
    force: bool
    in_place: bool
    dry_run: bool

    def of(self, source: Source) -> Target:
        """Where to write what is made of a model; looked at before anything is done."""
        return target_of(
            source,
            self.output,
            force=self.force,
            in_place=self.in_place,
            dry_run=self.dry_run,
        )


def operation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every verb has that makes a new model of one; it gets them as its ``destination``."""

    @wraps(function)
    def bound(
        output: str | None, force: bool, in_place: bool, dry_run: bool, *args: Any, **words: Any
    ) -> Any:
        place = Destination(output, force, in_place, dry_run)
        return function(*args, destination=place, **words)

    return _options(bound)


def deliver(done: Operated, target: Target, format_: str) -> None:
    """Write a model, and tell what was done."""
    report = done.report
    target.write(done.model)
    if format_ == "json":
        print_json(report.verb, {**report.to_json(), "written": target.path})
    elif target.path is None or len(report.changes) <= _LISTED:
        print_changes(report)
    note(summary(report))
    note(f"wrote {target.path}" if target.path is not None else "nothing written")


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
