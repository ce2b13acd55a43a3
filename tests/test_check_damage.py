"""Damage of every kind is found, where it is; harmless changes are not complained about."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from conftest import Written
from mutations import Case, File, cases
from vinoir import ir
from vinoir.ir.checking.rules.catalogue import RULES

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
def table(written: Written) -> dict[str, Counter[str]]:
    paths = written.all()[::EVERY]
    for kind in ("TensorIterator", "Loop", "If", "Assign.6", "ReadValue.6", "AvgPool.16"):
        paths.append(written.first(f"{kind}.*"))
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


def damaged(path: Path, old: str, new: str) -> ir.Report:
    """The report on a file with one piece of its text exchanged."""
    text = path.read_text("utf-8")
    assert old in text
    return ir.check(text.replace(old, new, 1).encode(), weights=path.with_suffix(".bin"))


def test_a_cut_is_told_once_and_nothing_that_follows_from_it(written: Written) -> None:
    text = written.first("Convolution.1.0").read_bytes()
    for cut in range(text.index(b"<layers>") + 9, len(text.rstrip()), 41):
        found = ir.check(text[:cut], weights=bytes(10**7)).findings
        assert [finding.code for finding in found] == ["IR102"], cut
        assert found[0].line is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\t\t</layer>\n", ""),
        ("\t\t</layer>\n", "\t\t</layer>\n\t\t</layer>\n"),
        ("\t\t\t\t</port>\n", ""),
        ("</dim>", ""),
        ("\t</layers>\n", ""),
        ("\t\t\t<output>\n", ""),
        ('to-port="0" />', 'to-port="0">'),
    ],
)
def test_tags_without_match_are_told_once(written: Written, old: str, new: str) -> None:
    path = written.first("Convolution.1.0")
    assert [finding.code for finding in damaged(path, old, new)] == ["IR103"]


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    [
        ("Gather.8.0", ' offset="0"', "", "IR401"),
        ("Interpolate.11.0", 'pads_begin="0, 0, 0, 0"', 'pads_begin="0, 0, 0, 0, 1"', "IR410"),
        ("TensorIterator.*", '<output axis="1" ', "<output ", "IR211"),
        ("Loop.5.0", ' external_port_id="-1"', "", "IR211"),
    ],
)
def test_errors_that_were_missed_once(
    written: Written, name: str, old: str, new: str, code: str
) -> None:
    report = damaged(written.first(name), old, new)
    assert code in {finding.code for finding in report.errors}


@pytest.mark.parametrize(
    ("name", "told"),
    [("ROIAlign.9.0", True), ("ExperimentalDetectronROIFeatureExtractor.6.0", False)],
)
def test_samples_below_none_are_told_where_nothing_comes_of_them(
    written: Written, name: str, told: bool
) -> None:
    report = damaged(written.first(name), 'sampling_ratio="2"', 'sampling_ratio="-1"')
    assert [finding.code for finding in report.errors] == ["IR410"] * told
    assert all("write 0" in str(finding.hint) for finding in report.errors)


def test_a_wrong_port_before_a_variable_is_no_error(written: Written) -> None:
    report = damaged(written.first("ReadValue.6.0"), 'precision="FP32"', 'precision="I32"')
    assert report.ok
    assert report.warnings


def test_every_finding_has_a_bad_and_a_good_example() -> None:
    assert [code for code, rule in RULES.items() if not (rule.bad and rule.good)] == []
