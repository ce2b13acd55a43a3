"""Reports for other tools: SARIF 2.1.0 and the annotations of GitHub's workflows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from ...schemas.printing import printable, printable_name
from ...schemas.version import VERSION
from .findings import RANK, Cause, Report
from .rules.catalogue import RULES

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def to_sarif(reports: Sequence[Report], *, gathered: bool = False) -> dict[str, Any]:
    """The reports as one run of a SARIF log; gathered, each cause is one result."""
    causes = [cause for report in reports for cause in report.causes(gathered=gathered)]
    codes = sorted({cause.first.code for cause in causes})
    ranks = {code: rank for rank, code in enumerate(codes)}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "vinoir",
                        "semanticVersion": VERSION,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(cause, ranks[cause.first.code]) for cause in causes],
            }
        ],
    }


def _rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "help": {"text": str(rule)},
        "properties": {"category": rule.group},
    }


def _result(cause: Cause, rank: int) -> dict[str, Any]:
    finding = cause.first
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": quote(finding.file or "memory")}}
    }
    if finding.line is not None:
        region = {"startLine": finding.line}
        if finding.column is not None:
            region["startColumn"] = finding.column
        place["physicalLocation"]["region"] = region
    if finding.name or finding.layer is not None:
        place["logicalLocations"] = [
            {"name": printable_name(finding.name or finding.layer), "kind": "member"}
        ]
    repeats = {"occurrenceCount": cause.count} if cause.others else {}
    return {
        **repeats,
        "ruleId": finding.code,
        "ruleIndex": rank,
        "level": _LEVELS[finding.severity],
        "message": {"text": _unlinked(finding.sentence)},
        "locations": [place],
    }


def _unlinked(text: str) -> str:
    """A message in which a viewer of SARIF finds no link, which it writes as ``[text](place)``."""
    return text.replace("](", "\\](")


def to_github(reports: Iterable[Report], *, gathered: bool = False) -> str:
    """Workflow commands that mark the lines of a pull request; gathered, one for each cause.

    GitHub shows ten of a kind for each step: the errors come first.
    """
    causes = [cause for report in reports for cause in report.causes(gathered=gathered)]
    causes.sort(key=lambda cause: RANK[cause.first.severity])
    return "\n".join(map(_annotation, causes))


def _annotation(cause: Cause) -> str:
    finding = cause.first
    command = "notice" if finding.severity == "info" else finding.severity
    rows = {
        "file": finding.file and printable(finding.file),
        "line": finding.line,
        "col": finding.column,
    }
    properties = [f"{k}={_escaped(str(v), True)}" for k, v in rows.items() if v is not None]
    properties.append(f"title={finding.code}")
    layer = f"{finding.subject}: " if finding.subject else ""
    text = " ".join(filter(None, (layer + finding.sentence, cause.repeated)))
    return f"::{command} {','.join(properties)}::{_escaped(text)}"


def _escaped(text: str, inside: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if inside else text


__all__ = ["to_github", "to_sarif"]
