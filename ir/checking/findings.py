"""What a check found, each finding with its place and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "info"]

#: The version of the JSON report's form.
SCHEMA_VERSION = 1

_RANK = {"error": 0, "warning": 1, "info": 2}


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

    def to_json(self) -> dict[str, Any]:
        """Its known parts."""
        rows = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in rows if value is not None}

    @property
    def place(self) -> str:
        """``file:line:column``, as far as it is known."""
        parts = [self.file or "<memory>", self.line, self.column]
        return ":".join(str(part) for part in parts if part is not None)

    def __str__(self) -> str:
        layer = ""
        if self.layer is not None or self.name:
            version = f" {self.version}" if self.version else ""
            kind = f" ({self.type}{version})" if self.type else ""
            number = "" if self.layer is None else f" {self.layer}"
            layer = f'layer{number} "{self.name or ""}"{kind}: '
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.place}: {self.severity} {self.code}: {layer}{self.message}{hint}"


class Report:
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
            findings, key=lambda f: (f.line or 0, f.column or 0, _RANK[f.severity], f.code)
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
            "findings": [finding.to_json() for finding in self.findings],
        }

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        return "\n".join([*lines, f"{self.file or '<memory>'}: {self.summary()}"])


__all__ = ["Finding", "Report", "Severity"]
