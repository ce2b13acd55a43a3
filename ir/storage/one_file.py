"""One file that is there whole or not at all: written beside its place, then given its name."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...schemas import UnwritableError, UsageError, Where


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Refuse to replace what is there and is no ordinary file: a folder, a pipe, a device.

    A file of its name would take its place, and whoever waits at it would wait for ever.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        what = "a folder, " if path.is_dir() else ""
        raise UsageError(
            f"cannot be replaced: it is {what}not an ordinary file",
            Where(str(path)),
            "give another name",
        )


@contextmanager
def unwritable(target: str | os.PathLike[str]) -> Iterator[None]:
    """Give errors of the system the name of the file that was meant, not of one beside it."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(
            f"cannot be written: {error.strerror or error}", Where(os.fspath(target))
        ) from error


@contextmanager
def whole(target: Path, *, force: bool) -> Iterator[Path]:
    """Give the path of a file to write, which gets the target's name once it is written.

    Missing folders are made. Unless ``force``, a file that somebody has put there is kept.

    Raises:
        UsageError: It is there and is not to be overwritten, or is no ordinary file.
        UnwritableError: The system refuses.
    """
    if os.path.lexists(target) and not force:
        raise UsageError(f"{target} is already there", hint="--force overwrites it")
    refuse_special(target)
    beside = target.with_name(f".vinoir-{secrets.token_hex(6)}")
    with unwritable(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            _name(beside, target, force)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def _name(beside: Path, target: Path, force: bool) -> None:
    """Give a file that is written its name."""
    if force:
        beside.replace(target)
        return
    try:
        target.hardlink_to(beside)  # fails where somebody has put a file there since
    except FileExistsError:
        raise UsageError(f"{target} is already there", hint="--force overwrites it") from None
    except OSError:  # a file system without links
        beside.rename(target)
