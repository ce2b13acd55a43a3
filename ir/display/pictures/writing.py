"""Pictures as files."""

from __future__ import annotations

from pathlib import Path

from ...storage import whole


def write_text(target: Path, text: str, force: bool) -> None:
    """Write a file that is there whole or not at all.

    Raises:
        UsageError: It is there, and is not to be overwritten.
        UnwritableError: The system refuses.
    """
    with whole(target, force=force) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


__all__ = ["write_text"]
