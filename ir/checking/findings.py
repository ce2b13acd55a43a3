"""What a check found, each finding with its place and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...schemas.printing import Table, printable, printable_name
from ..faces import Shown

Severity: TypeAlias = Literal["error", "warning", "info"]

#: The version of the JSON report's form.
SCHEMA_VERSION = 1

#: So many places of a finding that is repeated are named.
_PLACES = 3

#: How much each weighs: errors come first.
RANK = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth knowing."""

    code: str
    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    layer: int | None = None
    name: str | None = None
    type: str | None = None
    version: str | None = None
    attribute: str | None = None
    hint: str | None = None
    #: Of a layer in a body: ids and bodies around it from the outermost, ``7/body/3/else_body``.
    body: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that are known, as a JSON object."""
        rows = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in rows if value is not None}

    @property
    def place(self) -> str:
        """``file:line:column``, as far as it is known."""
        parts = [self.file or "<memory>", self.line, self.column]
        return ":".join(printable(part) for part in parts if part is not None)

    @property
    def sentence(self) -> str:
        """What is wrong and what to do, fit to be printed."""
        hint = f" ({printable(self.hint)})" if self.hint else ""
        return printable(self.message) + hint

    @property
    def subject(self) -> str:
        """The layer that it is about, fit to be printed; empty where it is about none."""
        if self.layer is None and not self.name:
            return ""
        number = "" if self.layer is None else f" {self.layer}"
        kind = " ".join(printable_name(part) for part in (self.type, self.version) if part)
        return f'layer{number} "{printable_name(self.name or "")}"' + (
            f" ({kind})" if kind else ""
        )

    def __str__(self) -> str:
        layer = f"{self.subject}: " if self.subject else ""
        return f"{self.place}: {self.severity} {self.code}: {layer}{self.sentence}"


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings that say the same of one kind of layer: the first, and the others."""

    first: Finding
    others: tuple[Finding, ...] = ()

    @property
    def count(self) -> int:
        """How often it was found."""
        return 1 + len(self.others)

    @property
    def repeated(self) -> str:
        """``(3 more: lines 18, 40, 57)``, or nothing."""
        if not self.others:
            return ""
        lines = [str(finding.line) for finding in self.others if finding.line is not None]
        shown = ", ".join(lines[:_PLACES]) + (", …" if len(lines) > _PLACES else "")
        where = f": line{'s' if len(lines) > 1 else ''} {shown}" if lines else ""
        return f"({len(self.others)} more{where})"


class Report(Shown):
    """The findings of one model, in the order of the file."""

    def __init__(
        self,
        findings: Iterable[Finding],
        file: str | None = None,
        *,
        readable: bool = True,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        self.findings = sorted(
            findings, key=lambda f: (f.line or 0, f.column or 0, RANK[f.severity], f.code)
        )
        self.file = file
        #: Whether there was a document to look at.
        self.readable = readable
        #: How many findings of a code were too many to be told.
        self.left_out = dict(left_out or {})

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return True

    @property
    def errors(self) -> list[Finding]:
        """What OpenVINO refuses, crashes on, or reads as something else."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """What works today by luck or tolerance."""
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def exit_code(self, *, strict: bool = False) -> int:
        """For the command line: 0 well, 1 errors (with ``strict`` warnings too), 3 unreadable."""
        if not self.readable:
            return 3
        return 1 if self.errors or (strict and self.warnings) else 0

    def causes(self, *, gathered: bool = True) -> list[Cause]:
        """The findings, those of one cause as one.

        One cause have those of one code, attribute and type of layer; notes, those of one code.
        """
        if not gathered:
            return [Cause(finding) for finding in self.findings]
        rows: dict[tuple[str | None, ...], list[Finding]] = {}
        for finding in self.findings:
            kind = finding.attribute, finding.type, finding.version
            rows.setdefault(
                (finding.code, *(kind if finding.severity != "info" else ())), []
            ).append(finding)
        return [Cause(row[0], tuple(row[1:])) for row in rows.values()]

    def summary(self) -> str:
        """How many there are of each weight."""
        counts = Counter[str](finding.severity for finding in self.findings)
        words = {"error": "errors", "warning": "warnings", "info": "notes"}
        rows = [
            f"{counts[key]} {word.removesuffix('s') if counts[key] == 1 else word}"
            for key, word in words.items()
            if counts[key]
        ]
        return ", ".join(rows) or "nothing found"

    def to_json(self) -> dict[str, Any]:
        """The report as JSON's objects."""
        counts = Counter[str](finding.severity for finding in self.findings)
        return {
            "schema_version": SCHEMA_VERSION,
            "file": self.file,
            "ok": self.ok,
            "readable": self.readable,
            "counts": {
                "error": counts["error"],
                "warning": counts["warning"],
                "info": counts["info"],
            },
            "left_out": self.left_out,
            "causes": [
                {
                    "code": cause.first.code,
                    "severity": cause.first.severity,
                    "count": cause.count,
                    "first": cause.first.place,
                }
                for cause in self.causes()
            ],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def as_table(self) -> Table:
        """What it says, the heaviest first."""
        heaviest = sorted(self.findings, key=lambda finding: RANK[finding.severity])
        return Table(
            f"report on {printable(self.file or '<memory>')}: {self.summary()}",
            ("code", "severity", "place", "what", "what to do"),
            ((f.code, f.severity, f.place, f.message, f.hint) for f in heaviest),
            len(heaviest),
            "ir.explain(code), ir.fix(model)" if heaviest else "ir.run(model, {name: array})",
        )

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        return "\n".join([*lines, f"{printable(self.file or '<memory>')}: {self.summary()}"])


__all__ = ["Cause", "Finding", "Report", "Severity"]
