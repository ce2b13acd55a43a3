"""Which models are meant: files, folders, patterns, and the part of them that is one's own."""

from __future__ import annotations

import glob
import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile
from os import PathLike

from ...schemas import UnreadableError, UsageError, Where
from ..storage import is_url, list_urls

_MAGIC = "*?["


def is_pattern(name: str) -> bool:
    """Whether a name stands for the files that it describes."""
    if is_url(name):
        # A question mark begins the query of an address.
        return "*" in name or "[" in name
    return any(sign in name for sign in _MAGIC) and not os.path.lexists(name)


def select(models: Iterable[str | PathLike[str]], suffix: str = ".xml") -> list[str]:
    """Every file that is meant, each once: patterns, and folders with all they hold, in order."""
    found: dict[str, None] = {}
    for model in models:
        name = os.fspath(model)
        found |= dict.fromkeys(_selected(name, suffix))
    return list(found)


def _selected(name: str, suffix: str) -> Sequence[str]:
    if is_pattern(name):
        paths = list_urls(name) if is_url(name) else glob.glob(name, recursive=True)
        # What stands beside a model has the same name in many patterns: digits.*
        paths = [path for path in paths if not os.path.isdir(path)]
        files = [path for path in paths if path.lower().endswith(suffix)] or paths
        if not files:
            raise UsageError(f"no file is like {name}", hint="** stands for any folders")
        return sorted(files)
    if not is_url(name) and os.path.isdir(name):
        return files_in(name, suffix)
    return [name]


def files_in(folder: str, suffix: str = ".xml") -> list[str]:
    """All files of a kind in a folder, at any depth; none is left out silently.

    Raises:
        UsageError: There is none.
        UnreadableError: A folder in it may not be looked into: nobody knows what it holds.
    """
    found: list[str] = []
    seen: set[tuple[int, int]] = set()
    # Links come last, and all in order: on every machine a file has the same name.
    waiting = deque([folder])
    while waiting:
        for place, folders, files in os.walk(waiting.popleft(), onerror=_refuse_closed):
            status = os.stat(place)
            if (status.st_dev, status.st_ino) in seen:
                folders.clear()  # another link led here
                continue
            seen.add((status.st_dev, status.st_ino))
            folders.sort()
            inner = [os.path.join(place, name) for name in folders]
            waiting += filter(os.path.islink, inner)
            found += [os.path.join(place, file) for file in files if file.lower().endswith(suffix)]
    if not found:
        raise UsageError(f"{folder} is a folder without {suffix} files")
    return sorted(found)


def _refuse_closed(error: OSError) -> None:
    raise UnreadableError(
        f"this folder cannot be looked into: {error.strerror or error}",
        Where(None if error.filename is None else os.fspath(error.filename)),
        "let it be read, or give the folders and files beside it",
    ) from None


def by_number(path: str) -> list[tuple[int, str]]:
    """A key of an order in which 10 comes after 9."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", path)]


def common_root(paths: Sequence[str]) -> str:
    """The folder that all are in."""
    if not any(is_url(path) for path in paths) and os.sep != "/":
        paths = [path.replace(os.sep, "/") for path in paths]
    folders = [path.split("/")[:-1] for path in paths]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "/".join(names[0] for names in shared)


def read_shard(text: str) -> tuple[int, int]:
    """The number of a share, from 1, and of how many it is one: 3/16."""
    first, sign, second = text.partition("/")
    plain = first.isascii() and first.isdigit() and second.isascii() and second.isdigit()
    if not sign or not plain or len(text) > 20:
        raise UsageError(f'"{text}" is no share such as 3/16')
    number, count = int(first), int(second)
    if not count:
        raise UsageError(f'"{text}" is no share: of none there is no part', hint="such as 3/16")
    if not 1 <= number <= count:
        raise UsageError(f"share {number} of {count}: the first is 1, the last is {count}")
    return number, count
