"""What OpenVINO's XML parser reads and XML forbids, repaired and reported."""

from __future__ import annotations

from typing import NamedTuple


class Repair(NamedTuple):
    """One thing that was mended, and where."""

    line: int
    column: int
    message: str


def repair(source: bytes) -> tuple[bytes, list[Repair]]:
    """The document as XML, and what had to be done to it."""
    return source, []
