"""The files of folders at any depth, whatever links there are."""

from __future__ import annotations

import glob
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch

from ...schemas import UnreadableError, UsageError, Where

#: What stands between the names of a path.
_BETWEEN = r"/+" if os.sep == "/" else r"[/\\]+"


def files_in(folder: str, suffix: str = ".xml") -> list[str]:
    """All files of a kind in a folder, at any depth; none is left out silently.

    Raises:
        UsageError: There is none.
        UnreadableError: A folder in it may not be looked into: nobody knows what it holds.
    """
    seen: set[tuple[int, int]] = set()

    def is_new(place: str) -> bool:
        status = os.stat(place)
        here = status.st_dev, status.st_ino
        if here in seen:
            return False  # another link led here
        seen.add(here)
        return True

    found = [file for file in _walked(folder, is_new) if file.lower().endswith(suffix)]
    if not found:
        raise UsageError(f"{folder} is a folder without {suffix} files")
    return sorted(found)


def files_like(pattern: str) -> list[str]:
    """The files that a pattern describes, each once.

    ``**`` stands for folders at any depth, which are gone through as one that is named is: hidden
    ones too, and none twice because links lead there.
    """
    names = re.split(_BETWEEN, pattern)
    if "**" not in names:
        return [path for path in glob.glob(pattern) if not os.path.isdir(path)]
    rank = names.index("**")
    start = re.match(rf"(?:.*?{_BETWEEN}){{{rank}}}", pattern)
    before = "" if start is None else start[0]
    folders = sorted(glob.glob(before)) if glob.has_magic(before) else [before or os.curdir]
    found: dict[tuple[str, str], str] = {}
    for folder in filter(os.path.isdir, folders):
        inside = len(os.path.join(folder, ""))
        for path in _walked(folder, lambda place: not _leads_back(place)):
            if _fits(re.split(_BETWEEN, path[inside:]), names[rank:]):
                place, file = os.path.split(path)
                shown = path if before else path[inside:]
                found.setdefault((os.path.realpath(place), file), shown)
    return list(found.values())


def _walked(folder: str, is_new: Callable[[str], bool]) -> Iterator[str]:
    """The files in a folder and in those inside that are new, at any depth."""
    # Links come last, and all in order: on every machine a file has the same name.
    waiting = deque([folder])
    while waiting:
        for place, folders, files in os.walk(waiting.popleft(), onerror=_refuse_closed):
            if not is_new(place):
                folders.clear()
                continue
            folders.sort()
            inner = [os.path.join(place, name) for name in folders]
            waiting += filter(os.path.islink, inner)
            yield from (os.path.join(place, file) for file in files)


def _leads_back(place: str) -> bool:
    """Whether a link leads to a folder that it is in."""
    if not os.path.islink(place):
        return False
    status, above = os.stat(place), os.path.dirname(place)
    while not os.path.samestat(status, os.stat(above or os.curdir)):
        if above in ("", os.path.dirname(above)):
            return False
        above = os.path.dirname(above)
    return True


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path is what a pattern describes, name by name."""
    if not pattern:
        return not names
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(_fits(names[begin:], rest) for begin in range(len(names) + 1))
    return bool(names) and fnmatch(names[0], first) and _fits(names[1:], rest)


def _refuse_closed(error: OSError) -> None:
    raise UnreadableError(
        f"this folder cannot be looked into: {error.strerror or error}",
        Where(None if error.filename is None else os.fspath(error.filename)),
        "let it be read, or give the folders and files beside it",
    ) from None
