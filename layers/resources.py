"""How much memory there is to be had: of the machine, of its control groups, of the limits set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .refusals import from_system

#: What is taken for granted where no system tells.
UNKNOWN = 4 << 30


def available(root: Path = Path("/")) -> int:
    """Bytes that this process may still take: the least that anybody grants.

    ``root`` stands for the file system, so that a test can show another machine.
    """
    return max(min(_machine(root), *_groups(root), *_limits(root)), 0)


def _machine(root: Path) -> int:
    """What the machine has left."""
    told = _fields(root / "proc/meminfo")
    if "MemAvailable" in told:
        return told["MemAvailable"] << 10
    if sys.platform == "win32":
        return _windows()
    try:  # macOS and others tell no more than how much is built in
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _groups(root: Path) -> Iterator[int]:
    """What each control group leaves that the process is in, of both versions."""
    yield sys.maxsize
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            top, most, used = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            most, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # Inside a container the path may be that of the host: then the top is the group.
        group = Path(os.path.normpath(path.strip()).lstrip("/"))
        for folder in (group, *group.parents):
            limit = _number(top / folder / most)
            if limit is not None:
                held = _number(top / folder / used) or 0
                # Pages of files are given back when memory is wanted.
                pages = _fields(top / folder / "memory.stat")
                files = pages.get("total_inactive_file", pages.get("inactive_file", 0))
                yield limit - max(held - files, 0)


def _limits(root: Path) -> Iterator[int]:
    """What the limits of the process leave (ulimit -v, ulimit -d)."""
    yield sys.maxsize
    try:
        import resource
    except ImportError:  # Windows
        return
    pages = [int(word) for word in _text(root / "proc/self/statm").split()]
    page = os.sysconf("SC_PAGE_SIZE")
    for name, place in (("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)):
        limit, _ = resource.getrlimit(getattr(resource, name))
        if limit not in (resource.RLIM_INFINITY, -1):
            yield limit - (pages[place] * page if place < len(pages) else 0)


def _windows() -> int:
    """What Windows has left."""
    if sys.platform != "win32":
        return UNKNOWN
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((name, ctypes.c_uint64) for name in (
                "physical", "physical_left", "file", "file_left", "room", "room_left", "extended",
            )),
        ]  # fmt: skip

    status = Status(length=ctypes.sizeof(Status))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return UNKNOWN
    return min(status.physical_left, status.file_left, status.room_left)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        from_system(error)
        return ""


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, or the word for no limit."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _fields(path: Path) -> dict[str, int]:
    """Names and numbers, a pair to a line."""
    rows = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
