"""``vinoir check`` and ``vinoir explain``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from ...schemas import UsageError
from ..checking.checker import check
from ..checking.findings import Report
from ..checking.rules.catalogue import RULES, explain
from .infer import target_of
from .output import (
    fancy,
    format_option,
    limit_options,
    note,
    print_json,
    print_table,
    weights_option,
)

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


@click.command(
    "check",
    epilog="Examples: vinoir check model.xml; vinoir check models/ --strict --format sarif; "
    "vinoir check model.xml --target 2024.6; vinoir check model.xml --fix -o mended.xml",
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=click.Path())
@weights_option
@click.option("--target", metavar="VERSION", help="The OpenVINO release that is to read them.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--select", multiple=True, metavar="CODE", help="Only these; IR5 means all of them.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Without these.")
@click.option("--fix", "mend", is_flag=True, help="Repair what is safe, and write it to OUTPUT.")
@click.option("-o", "--output", type=click.Path(), help="The .xml that --fix writes.")
@click.option("--in-place", is_flag=True, help="Let --fix write over the model.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@limit_options
@format_option("sarif", "github")
def check_command(
    models: tuple[str, ...],
    weights: str | None,
    target: str | None,
    strict: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    mend: bool,
    output: str | None,
    in_place: bool,
    force: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Find what is wrong with MODELs (files, or folders with any number of them).

    Exit code 0: no errors, 1: errors (with --strict warnings too), 3: a file cannot be read.
    """
    paths = list(files(models))
    if weights is not None and len(paths) != 1:
        raise UsageError(f"--weights is for one model, these are {len(paths)}")
    if mend:
        _mend(paths, weights, output, in_place, force)
        return
    codes = split(select), split(ignore)
    reports = [
        check(
            path,
            target,
            weights=weights,
            select=codes[0],
            ignore=codes[1],
            max_memory=max_memory,
            max_seconds=max_seconds,
        )
        for path in watched(paths)
    ]
    show(reports, format_)
    raise SystemExit(max(report.exit_code(strict=strict) for report in reports))


def split(codes: Iterable[str]) -> list[str]:
    """Codes that were given one by one or with commas between."""
    return [code for text in codes for code in text.split(",") if code.strip()]


def files(models: Iterable[str]) -> Iterator[str]:
    """Every model that is meant: a folder stands for all .xml files in it, at any depth."""
    for name in models:
        path = Path(name)
        if not path.is_dir():
            yield name
            continue
        found = sorted(str(inner) for inner in path.rglob("*.xml"))
        if not found:
            raise UsageError(f"{name} is a folder without .xml files")
        yield from found


def watched(paths: list[str]) -> Iterator[str]:
    """The paths, with a bar on the terminal where there are many."""
    if len(paths) < 8 or not sys.stderr.isatty():
        yield from paths
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(paths, "checking", console=Console(stderr=True), transient=True)


def show(reports: list[Report], format_: str) -> None:
    """Print the reports."""
    if format_ == "json":
        rows = [report.to_json() for report in reports]
        if len(rows) == 1:
            print_json(rows[0])
        else:
            counts = {
                k: sum(row["counts"][k] for row in rows) for k in ("error", "warning", "info")
            }
            findings = [finding for row in rows for finding in row["findings"]]
            print_json({"counts": counts, "findings": findings, "reports": rows})
    elif format_ == "sarif":
        from ..checking.reports import to_sarif

        click.echo(json.dumps(to_sarif(reports), indent=2))
    elif format_ == "github":
        from ..checking.reports import to_github

        text = to_github(reports)
        if text:
            click.echo(text)
    else:
        _print(reports)


def _print(reports: list[Report]) -> None:
    for report in reports:
        for finding in report:
            text = str(finding)
            if fancy():
                word = f"{finding.severity} {finding.code}"
                styled = click.style(word, fg=_COLOURS[finding.severity], bold=True)
                text = text.replace(word, styled, 1)
            click.echo(text, color=fancy() or None)
        for code, number in report.left_out.items():
            click.echo(f"{report.file}: {number} more of {code}")
    if len(reports) == 1:
        note(f"{reports[0].file}: {reports[0].summary()}")
        return
    errors = sum(not report.ok for report in reports)
    total = sum(len(report.errors) for report in reports), sum(len(r.warnings) for r in reports)
    note(f"{len(reports)} models, {errors} with errors: {total[0]} errors, {total[1]} warnings")


def _mend(
    paths: list[str], weights: str | None, output: str | None, in_place: bool, force: bool
) -> None:
    """Repair one model and write it."""
    from ..files.reader import read
    from ..files.writer import write
    from ..surgery.fixing import fix

    if len(paths) != 1:
        raise UsageError(f"--fix mends one model, these are {len(paths)}")
    if output is None and not in_place:
        raise UsageError("--fix needs -o OUTPUT or --in-place")
    target = target_of(paths[0], output, force, in_place)
    model = read(paths[0], weights, lenient=True, need_weights=False)
    done = fix(model)
    for row in done:
        click.echo(str(row))
    write(model, target)
    note(f"wrote {target}: {len(done)} repairs")


@click.command("explain", epilog="Examples: vinoir explain IR203; vinoir explain")
@click.argument("code", required=False)
@format_option()
def explain_command(code: str | None, format_: str) -> None:
    """Tell what a finding's CODE means, what OpenVINO does, and how it looks wrong and right."""
    rules = list(RULES.values()) if code is None else [explain(code)]
    if format_ == "json":
        rows = [{**vars(rule), "group": rule.group} for rule in rules]
        print_json(rows[0] if code is not None else {"rules": rows})
    elif code is not None:
        click.echo(str(rules[0]))
    else:
        print_table(
            "",
            ["code", "severity", "group", "what"],
            [[rule.code, rule.severity, rule.group, rule.title] for rule in rules],
        )
