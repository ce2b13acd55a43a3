"""The table of all findings: what each means, why it matters, how it looks wrong and right."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from ....schemas import UsageError
from ...document import listed
from ..findings import Severity

GROUPS = {
    "1": "XML", "2": "document", "3": "graph", "4": "attributes", "5": "weights", "6": "shapes",
    "7": "subgraphs", "8": "state", "9": "portability",
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """One row of the catalogue."""

    code: str
    title: str
    severity: Severity
    why: str
    bad: str = ""
    good: str = ""

    @property
    def group(self) -> str:
        """The group by the code's first digit."""
        return GROUPS[self.code[2]]

    def __str__(self) -> str:
        parts = [f"{self.code} ({self.severity}, {self.group}): {self.title}", "", self.why]
        for word, example in (("Bad", self.bad), ("Good", self.good)):
            if example:
                lines = "\n".join(f"    {line}" for line in example.strip("\n").splitlines())
                parts += ["", f"{word}:", "", lines]
        return "\n".join(parts)


def _load() -> dict[str, Rule]:
    rows = tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
    return {code: Rule(code, **row) for code, row in rows.items()}


#: Every finding there is, by code.
RULES = _load()


def explain(code: str) -> Rule:
    """The row of a code such as ``IR203``."""
    text = str(code).strip().upper()
    rule = RULES.get(text)
    if rule is None:
        near = [known for known in RULES if known[:3] == text[:3]]
        hint = f"of its group there are {', '.join(near)}" if near else "codes are IR100 to IR999"
        raise UsageError(f"no finding has the code {code}", hint=hint)
    return rule


def codes(given: str | Iterable[str]) -> tuple[str, ...]:
    """Codes, or the beginnings of some, as a caller names them; an error where none is such."""
    found = tuple(code.strip().upper() for code in listed(given) if code.strip())
    for code in found:
        if not any(known.startswith(code) for known in RULES):
            raise UsageError(f"no finding has the code {code}", hint="codes are IR100 to IR999")
    return found


__all__ = ["GROUPS", "RULES", "Rule", "codes", "explain"]
