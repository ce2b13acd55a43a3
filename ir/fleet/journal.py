"""A journal: one line of JSON for each model that is done, so that nothing is done twice.

Of a model of which a file is made there is a line before, too, which tells where it is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

from ...schemas import UsageError, Where
from ...schemas.printing import json_value

#: What tells one task from another: what is done, the model, its files' sizes and times.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Known:
    """What a journal tells of a task."""

    code: int
    state: str
    #: The seconds or bytes that were too few; None where there was no limit.
    limit: float | None

    def is_final(self, max_seconds: float | None, max_memory: float | None) -> bool:
        """Whether it would end so within these limits, too."""
        if self.state not in LIMITED or self.limit is None:
            return True
        now = max_seconds if self.state == "overtime" else max_memory
        return now is not None and now <= self.limit


#: What came of a task that wanted more than it was allowed.
LIMITED = ("overtime", "memory")


#: Of a line that tells, before anything is written, which file will be.
BEGUN = "begun"


def key_of(line: dict[str, Any]) -> Key:
    """What a line is about."""
    return line["what"], line["model"], json.dumps(line["file"])


class Journal:
    """A file that is read once, and then added to line by line.

    Each line is written at once, so that whoever ends the process leaves whole lines, and a torn
    one at most at the end, which is cut off by who comes next.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = os.fspath(path)
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise UsageError(  # a pipe would be waited at, a device read for ever
                "is no journal, it is not an ordinary file", Where(self.path), "give another name"
            )
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise UsageError(
                f"the journal cannot be opened: {error.strerror}", Where(self.path)
            ) from None
        try:
            _lock(self._file, self.path)
            #: What is done by name, with where it writes to: theirs is what lies there.
            self.begun = set[tuple[str, str]]()
            self.known = self._read()
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        try:
            # Closing is not enough: a process that was forked meanwhile and has not yet begun its
            # own program (a cluster's new worker) holds the same open file, and the lock with it.
            _unlock(self._file)
        finally:
            os.close(self._file)

    def _read(self) -> dict[Key, Known]:
        """What came of each task that is done."""
        known: dict[Key, Known] = {}
        whole = 0
        with open(self._file, "rb", closefd=False) as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    if not line.startswith(b'{"model": '[: len(line)]):
                        raise self._foreign(number)
                    break
                try:
                    row = json.loads(line)
                    key = key_of(row)
                    whole += len(line)
                    if row["state"] == BEGUN:
                        self.begun.add((key[0], str(row["target"])))
                        continue
                    limit = row.get("limit", 0)  # an older line may have had any
                    limit = None if limit is None else float(limit)
                    known[key] = Known(int(row["code"]), row["state"], limit)
                except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                    raise self._foreign(number) from None
        if whole < os.fstat(self._file).st_size:
            os.ftruncate(self._file, whole)
        return known

    def _foreign(self, number: int) -> UsageError:
        return UsageError(
            "is no journal, this line is none of its", Where(self.path, number),
            "--journal names a file that the same verb has written, or a new one",
        )  # fmt: skip

    def write(self, line: dict[str, Any]) -> None:
        """Add a line."""
        data = json.dumps(json_value(line), allow_nan=False).encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._file, data) :]


_lock: Callable[[int, str], None]
_unlock: Callable[[int], None]
try:
    import fcntl
except ImportError:  # who lets two write one journal there gets both's lines

    def _lock(file: int, path: str) -> None:
        """Nothing, where files cannot be locked."""

    def _unlock(file: int) -> None:
        """Nothing, likewise."""
else:

    def _lock(file: int, path: str) -> None:
        """Refuse a journal that another process is writing."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "another process is writing this journal", Where(path), "give each its own"
            ) from None
        except OSError:
            pass  # a file system without locks

    def _unlock(file: int) -> None:
        """Let others write the journal."""
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_UN)
