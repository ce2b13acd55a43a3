"""The files of folders at any depth, whatever links there are."""

from __future__ import annotations

import glob
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from typing import NamedTuple, NoReturn

from ...schemas import UnreadableError, UsageError, Where

#: What stands between the names of a path.
_BETWEEN = r"/+" if os.sep == "/" else r"[/\\]+"


def files_in(folder: str, suffix: str = ".xml") -> list[str]:
    """All files of a kind in a folder, at any depth; none is left out silently.

    Raises:
        UsageError: There is none.
        UnreadableError: A folder in it may not be looked into: nobody knows what it holds.
    """
    walked = _walked(folder, _steps(["**"]), _refuse)
    found = [file for file in walked if file.lower().endswith(suffix)]
    if not found:
        raise UsageError(f"{folder} is a folder without {suffix} files")
    return sorted(found)


def files_like(pattern: str) -> list[str]:
    """The files that a pattern describes.

    ``**`` stands for folders at any depth, which are gone through as one that is named is: hidden
    ones too, and none twice because links lead there, so that each file is found once. Those that
    may not be looked into, such as the .Trash-0 of another user, are passed over, as a shell does.

    Raises:
        UnreadableError: Nothing is found, and a folder may not be looked into.
    """
    pieces = re.split(f"({_BETWEEN})", pattern)
    names = pieces[::2]
    if "**" not in names:
        return [path for path in glob.glob(pattern) if not os.path.isdir(path)]
    rank = names.index("**")
    before = "".join(pieces[: 2 * rank])
    folders = sorted(glob.glob(before)) if glob.has_magic(before) else [before or os.curdir]
    steps = _steps([*(name for name in names[rank:-1] if name != os.curdir), names[-1]])
    found: dict[tuple[str, str], str] = {}
    real: dict[str, str] = {}
    closed: list[PermissionError] = []

    def pass_over(error: OSError) -> None:
        if not isinstance(error, PermissionError):
            _refuse(error)
        closed.append(error)

    for folder in filter(os.path.isdir, folders):
        inside = len(os.path.join(folder, ""))
        for path in _walked(folder, steps, pass_over):
            place, file = os.path.split(path)
            if place not in real:
                real[place] = os.path.realpath(place)
            found.setdefault((real[place], file), path if before else path[inside:])
    if closed and not found:
        _refuse(closed[0])
    return list(found.values())


class _Step(NamedTuple):
    """A name of a pattern."""

    like: str
    #: Whether any folders may come before it.
    deep: bool


def _steps(names: Sequence[str]) -> list[_Step]:
    """The names of a pattern, with each ``**`` told by the name after it."""
    pairs = pairwise(["", *names])
    steps = [_Step(name, last == "**") for last, name in pairs if name != "**"]
    return [*steps, _Step("*", deep=True)] if names[-1] == "**" else steps


def _onward(done: Iterable[int], name: str, steps: Sequence[_Step]) -> set[int]:
    """How many steps may be done after one more name, by how many may be before it."""
    after: set[int] = set()
    for count in done:
        if count < len(steps):
            like, deep = steps[count]
            after |= {count} if deep else set()
            after |= {count + 1} if fnmatch(name, like) else set()
    return after


def _walked(
    folder: str, steps: Sequence[_Step], onerror: Callable[[OSError], None]
) -> Iterator[str]:
    """The files in a folder, at any depth, whose names do all steps."""
    # A folder that links lead to again is gone through for what was not yet sought in it alone:
    # the ways to it can be more than all files.
    sought: set[tuple[int, int, int]] = set()
    # Links come last, and all in order: on every machine a file has the same name.
    waiting, links = [(folder, {0})], deque[tuple[str, set[int]]]()
    while waiting or links:
        place, ways = waiting.pop() if waiting else links.popleft()
        try:
            status = os.stat(place)
            with os.scandir(place) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as error:
            onerror(error)
            continue
        here = {(status.st_dev, status.st_ino, count) for count in ways} - sought
        sought |= here
        done = {count for *_, count in here}
        inner: list[tuple[str, set[int]]] = []
        for entry in entries:
            after = _onward(done, entry.name, steps)
            if not _is_folder(entry):
                if len(steps) in after:
                    yield entry.path
            elif after:
                (links if entry.is_symlink() else inner).append((entry.path, after))
        waiting += reversed(inner)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _refuse(error: OSError) -> NoReturn:
    raise UnreadableError(
        f"this folder cannot be looked into: {error.strerror or error}",
        Where(None if error.filename is None else os.fspath(error.filename)),
        "let it be read, or give the folders and files beside it",
    ) from None
