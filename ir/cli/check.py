"""``vinoir check`` and ``vinoir explain``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from ...schemas import LimitError, UsageError
from ...schemas.printing import counted
from ..checking import RANK, RULES, Cause, Report, check, explain
from .fleet import over_many
from .many import model_paths
from .options import (
    STDIN,
    FileName,
    Source,
    Target,
    force_option,
    format_option,
    in_place_option,
    limit_options,
    named_stdin,
    output_option,
    target_of,
    verb,
    weights_option,
)
from .output import (
    coloured,
    note,
    print_json,
    print_table,
    say,
    say_json,
    sentence_width,
    wrapped,
)
from .progress import each as watched

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


@over_many
@verb(
    "check",
    "check model.xml",
    "check models/ --strict --format sarif",
    "check model.xml --target 2024.6",
    "check model.xml --fix -o mended.xml",
)
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=FileName(allow_dash=True)
)
@weights_option
@click.option("--target", metavar="VERSION", help="The OpenVINO release that is to read them.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--select", multiple=True, metavar="CODE", help="Only these; IR5 means all of them.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Without these.")
@click.option("--all", "each", is_flag=True, help="Each finding, not one line for each cause.")
@click.option("--fix", "mend", is_flag=True, help="Repair what is safe, and write it to OUTPUT.")
@output_option("The .xml that --fix writes")
@in_place_option
@force_option
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
    paths = model_paths(models)
    if weights is not None and len(paths) != 1:
        raise UsageError(f"--weights is for one model, these are {len(paths)}")
    chosen, unwanted = split(select), split(ignore)
    if not mend and (output is not None or in_place):
        named = "--in-place" if output is None else f"-o {output}"
        raise UsageError(f"{named} is where --fix writes to", hint="add --fix")
    if mend:
        if len(paths) != 1:
            raise UsageError(
                f"--fix mends one model, these are {len(paths)}", hint="--jobs 2 mends them all"
            )
        if output is None and not in_place:
            raise UsageError("--fix needs -o OUTPUT or --in-place")
        source = Source(paths[0], weights, lenient=True)
        goal = target_of(source, output, force=force, in_place=in_place)
        report = _mend(source, goal, in_place, target, chosen, unwanted, format_, each)
        raise SystemExit(report.exit_code(strict=strict))
    reports, codes = [], [0]
    for path in watched(paths, "checking"):
        try:
            report = check(
                named_stdin("the model") if path == STDIN else path,
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


def show(reports: list[Report], format_: str, *, each: bool = False) -> None:
    """Print the reports: one line for each cause, or for each finding."""
    if format_ == "json":
        print_json("check", document(reports))
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


def document(reports: list[Report]) -> dict[str, Any]:
    """What was found of one model or of several, in one form: sums, and a report for each."""
    rows = [report.to_json() for report in reports]
    for row in rows:
        del row["schema_version"]
    severities = ("error", "warning", "info")
    return {
        "ok": all(row["ok"] for row in rows),
        "counts": {k: sum(row["counts"][k] for row in rows) for k in severities},
        "causes": [cause for row in rows for cause in row["causes"]],
        "findings": [finding for row in rows for finding in row["findings"]],
        "reports": rows,
        "repairs": [],
        "written": False,
        "output": None,
    }


def _print(reports: list[Report], each: bool) -> None:
    for report in reports:
        for cause in report.causes(gathered=not each):
            _print_cause(cause)
        for code, number in report.left_out.items():
            say(f"{report.file or '<stdin>'}: {number} more of {code}")
    _print_sums(reports, each)


def _print_cause(cause: Cause) -> None:
    """A finding in lines no longer than the screen: its place, what is wrong, what to do."""
    finding = cause.first
    word = f"{finding.severity} {finding.code}"
    text = str(replace(finding, hint=None))
    # A finding is a sentence: it is broken into lines, whoever reads them.
    width = sentence_width()
    lines = wrapped(f"{text} {cause.repeated}".rstrip(), width, indent="    ")
    if finding.hint:
        lines += wrapped(finding.hint, width, first="    -> ", indent="       ")
    if coloured():
        styled = click.style(word, fg=_COLOURS[finding.severity], bold=True)
        lines = [line.replace(word, styled, 1) for line in lines]
    for line in lines:
        say(line, styled=coloured())


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
        text = f"{reports[0].file or '<stdin>'}: {reports[0].summary()}"
    else:
        wrong = sum(not report.ok for report in reports)
        counts = (
            sum(len(report.errors) for report in reports),
            sum(len(report.warnings) for report in reports),
        )
        text = (
            f"{counted(len(reports), 'model')}, {wrong} with errors: "
            f"{counted(counts[0], 'error')}, {counted(counts[1], 'warning')}"
        )
    if total > len(causes) and not each:
        text += f" of {counted(len(causes), 'cause')} (--all shows each)"
    note(text)


def _mend(
    source: Source,
    goal: Target,
    in_place: bool,
    target: str | None,
    chosen: list[str],
    unwanted: list[str],
    format_: str,
    each: bool,
) -> Report:
    """Repair one model, write it, and tell what was done and what remains."""
    from ..surgery import fix

    model = source.read(need_weights=False)
    done = fix(model, target, select=chosen, ignore=unwanted)
    assert goal.path is not None
    # In place the weights stay where they are, which need not be beside the model.
    written = bool(done) or not in_place
    if written:
        goal.write(model)
    report = check(goal.path, target, weights=goal.weights, select=chosen, ignore=unwanted)
    if format_ == "json":
        repairs = [row._asdict() for row in done]
        rows = document([report]) | {
            "repairs": repairs,
            "written": written,
            "output": goal.path if written else None,
        }
        print_json("check", rows)
        return report
    if format_ == "text":
        for row in done:
            for line in wrapped(f"mended {row}", sentence_width(), indent="    "):
                say(line)
    show([report], format_, each=each)
    wrote = f"wrote {goal.path}" if written else "nothing written"
    note(f"{counted(len(done), 'repair')}, {wrote}")
    return report


@verb("explain", "explain IR203", "explain")
@click.argument("code", required=False, shell_complete=lambda ctx, param, text: [
    code for code in RULES if code.startswith(text.upper())
])  # fmt: skip
@format_option()
def explain_command(code: str | None, format_: str) -> None:
    """Tell what a finding's CODE means, what OpenVINO does, and how it looks wrong and right."""
    rules = list(RULES.values()) if code is None else [explain(code)]
    if format_ == "json":
        rows = [{**vars(rule), "group": rule.group} for rule in rules]
        print_json("explain", {"rules": rows})
    elif code is not None:
        click.echo(str(rules[0]))
    else:
        print_table(
            "",
            ["code", "severity", "group", "what"],
            [[rule.code, rule.severity, rule.group, rule.title] for rule in rules],
        )
