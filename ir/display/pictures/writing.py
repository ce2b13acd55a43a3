"""Pictures as files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ....schemas import UsageError


def write_text(target: Path, text: str, force: bool) -> None:
    """Write a file that is there whole or not at all.

    Raises:
        UsageError: It is there, and is not to be overwritten.
    """
    if os.path.lexists(target) and not force:
        raise UsageError(f"{target} is already there", hint="--force overwrites it")
    beside = target.with_name(f".vinoir-{secrets.token_hex(6)}")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if force:
            beside.replace(target)
        else:
            try:
                target.hardlink_to(beside)  # fails where somebody has put a file there since
            except FileExistsError:
                raise UsageError(
                    f"{target} is already there", hint="--force overwrites it"
                ) from None
            except OSError:  # a file system without links
                beside.rename(target)
    finally:
        beside.unlink(missing_ok=True)


__all__ = ["write_text"]
