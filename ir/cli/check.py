"""``vinoir check`` and ``vinoir explain``."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import click

from ...schemas import LimitError, UsageError
from ..checking import RANK, RULES, Cause, Report, check, explain
from .fleet import over_many
from .infer import target_of
from .output import (
    fancy,
    format_option,
    limit_options,
    note,
    print_json,
    print_table,
    say,
    say_json,
    weights_option,
)

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


@over_many
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
@click.option("--all", "each", is_flag=True, help="Each finding, not one line for each cause.")
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
    each: bool,
    mend: bool,
    output: str | None,
    in_place: bool,
    force: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Find what is wrong with MODELs (files, or folders with any number of them).

    With --fix they are mended and written where that is safe; what is told is what remains.

    Exit code 0: no errors, 1: errors (with --strict warnings too), 3: a file cannot be read.
    """
    paths = list(files(models))
    if weights is not None and len(paths) != 1:
        raise UsageError(f"--weights is for one model, these are {len(paths)}")
    chosen, unwanted = split(select), split(ignore)
    if mend:
        if len(paths) != 1:
            raise UsageError(f"--fix mends one model, these are {len(paths)}")
        if output is None and not in_place:
            raise UsageError("--fix needs -o OUTPUT or --in-place")
        path = target_of(paths[0], output, force, in_place)
        report = _mend(paths[0], path, weights, target, chosen, unwanted, format_, each)
        raise SystemExit(report.exit_code(strict=strict))
    reports, codes = [], [0]
    for path in watched(paths):
        try:
            report = check(
                path,
                target,
                weights=weights,
                select=chosen,
                ignore=unwanted,
                max_memory=max_memory,
                max_seconds=max_seconds,
            )
        except LimitError as error:
            if len(paths) == 1:
                raise
            # Of many files one that takes too much does not keep the others from being checked.
            note(f"not checked: {error}")
            codes.append(error.exit_code)
            continue
        reports.append(report)
        codes.append(report.exit_code(strict=strict))
    show(reports, format_, each=each)
    raise SystemExit(max(codes))


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


def show(reports: list[Report], format_: str, *, each: bool = False) -> None:
    """Print the reports: one line for each cause, or for each finding."""
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
        from ..checking import to_sarif

        say_json(to_sarif(reports, gathered=not each))
    elif format_ == "github":
        from ..checking import to_github

        text = to_github(reports, gathered=not each)
        if text:
            click.echo(text)
    else:
        _print(reports, each)


def _print(reports: list[Report], each: bool) -> None:
    for report in reports:
        for cause in report.causes(gathered=not each):
            _print_cause(cause)
        for code, number in report.left_out.items():
            say(f"{report.file}: {number} more of {code}")
    _print_sums(reports, each)


def _print_cause(cause: Cause) -> None:
    """A finding in lines no longer than the screen: its place, what is wrong, what to do."""
    finding = cause.first
    word = f"{finding.severity} {finding.code}"
    text = str(replace(finding, hint=None))
    lines = _wrapped(f"{text} {cause.repeated}".rstrip(), "    ", first="")
    if finding.hint:
        lines += _wrapped(finding.hint, "       ", first="    -> ")
    if fancy():
        styled = click.style(word, fg=_COLOURS[finding.severity], bold=True)
        lines = [line.replace(word, styled, 1) for line in lines]
    for line in lines:
        say(line, styled=fancy())


def _wrapped(text: str, indent: str, first: str) -> list[str]:
    """A text in lines; words are kept whole."""
    width = max(shutil.get_terminal_size().columns, 40)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _print_sums(reports: list[Report], each: bool) -> None:
    """How many of each kind there are; of much, a table of them."""
    causes = [cause for report in reports for cause in report.causes()]
    rows: dict[str, list[int]] = {}
    for cause in causes:
        row = rows.setdefault(cause.first.code, [0, 0])
        row[0], row[1] = row[0] + cause.count, row[1] + 1
    total = sum(row[0] for row in rows.values())
    if len(reports) > 1 and rows:
        ranked = sorted(rows, key=lambda code: (RANK[RULES[code].severity], -rows[code][0], code))
        note("")
        for code in ranked:
            rule = RULES[code]
            note(f"{rows[code][0]:6}  {rule.severity:7}  {code}  {rule.title}")
    if len(reports) == 1:
        text = f"{reports[0].file}: {reports[0].summary()}"
    else:
        wrong = sum(not report.ok for report in reports)
        counts = (
            sum(len(report.errors) for report in reports),
            sum(len(report.warnings) for report in reports),
        )
        text = (
            f"{_many(len(reports), 'model')}, {wrong} with errors: "
            f"{_many(counts[0], 'error')}, {_many(counts[1], 'warning')}"
        )
    if total > len(causes) and not each:
        text += f" of {_many(len(causes), 'cause')} (--all shows each)"
    note(text)


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _mend(
    source: str,
    path: str,
    weights: str | None,
    target: str | None,
    chosen: list[str],
    unwanted: list[str],
    format_: str,
    each: bool,
) -> Report:
    """Repair one model, write it, and tell what was done and what remains."""
    from ..files import read, write
    from ..surgery import fix

    model = read(source, weights, lenient=True, need_weights=False)
    done = fix(model, target, select=chosen, ignore=unwanted)
    written = bool(done) or path != source
    # In place the weights stay where they are, which need not be beside the model.
    beside = weights if path == source else None
    if written:
        write(model, path, beside)
    report = check(path, target, weights=beside, select=chosen, ignore=unwanted)
    if format_ == "json":
        repairs = [row._asdict() for row in done]
        print_json({**report.to_json(), "repairs": repairs, "written": written})
        return report
    if format_ == "text":
        for row in done:
            for line in _wrapped(f"mended {row}", "    ", first=""):
                say(line)
    show([report], format_, each=each)
    note(f"{_many(len(done), 'repair')}, {f'wrote {path}' if written else 'nothing written'}")
    return report


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
