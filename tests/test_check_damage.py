"""Damage of every kind is found, where it is; harmless changes are not complained about."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import mutations
import pytest
from conftest import shared, witness
from mutations import Case, File, cases
from vinoir import ir

#: Of the files that OpenVINO wrote, every so many is damaged here; all of them by hand.
EVERY = 12


def verdict(case: Case) -> str:
    report = ir.check(case.xml, weights=case.weights)
    json.dumps(report.to_json())
    if case.label == "ok":
        return "alarm" if report.errors or report.warnings else "found"
    wanted = report.errors if case.label == "error" else report.warnings
    if not wanted:
        return "missed"
    placed = any(
        finding.line in case.lines or {str(finding.layer), finding.name} & case.layers
        for finding in wanted
    )
    return "found" if placed or not (case.lines or case.layers) else "unplaced"


@pytest.fixture(scope="module")
def table() -> dict[str, Counter[str]]:
    rows = json.loads((shared("reference") / "operations.json").read_text())
    for row in rows:
        for version in row["read_versions"]:
            mutations.REQUIRED[row["type"], version] = {a["name"]: a for a in row["attrs"]}
    paths: list[Path] = witness()[::EVERY]
    for kind in ("TensorIterator", "Loop", "If", "Assign.6", "ReadValue.6.0", "AvgPool.16"):
        paths += witness(f"{kind}*")[:1]
    counts = {"error": Counter[str](), "warning": Counter[str](), "ok": Counter[str]()}
    for path in paths:
        for case in cases(File.read(path), 7):
            found = verdict(case)
            counts[case.label][found] += 1
            if found != "found":
                counts[case.label][f"{case.kind} of {case.source}: {found}"] += 1
    return counts


def share(row: Counter[str], *verdicts: str) -> float:
    total = sum(row[name] for name in ("found", "missed", "unplaced", "alarm"))
    return sum(row[name] for name in verdicts) / total


def test_errors_are_found(table: dict[str, Counter[str]]) -> None:
    assert share(table["error"], "found", "unplaced") > 0.995, table["error"]


def test_errors_are_placed(table: dict[str, Counter[str]]) -> None:
    assert share(table["error"], "found") > 0.99, table["error"]


def test_warnings_are_found_and_placed(table: dict[str, Counter[str]]) -> None:
    assert share(table["warning"], "found") > 0.98, table["warning"]


def test_harmless_changes_raise_no_alarm(table: dict[str, Counter[str]]) -> None:
    assert table["ok"]["alarm"] == 0, table["ok"]
