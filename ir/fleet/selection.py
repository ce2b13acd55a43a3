"""Which models are meant: files, folders, patterns, and the part of them that is one's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from os import PathLike
from pathlib import Path

from ...schemas import UsageError
from ..storage import is_url, list_urls, urls_in
from .folders import files_in, files_like

_MAGIC = "*?["


def is_pattern(name: str) -> bool:
    """Whether a name stands for the files that it describes."""
    if is_url(name):
        # A question mark begins the query of an address.
        return "*" in name or "[" in name
    return any(sign in name for sign in _MAGIC) and not os.path.lexists(name)


def is_many(name: str, suffix: str = ".xml") -> bool:
    """Whether a name stands for models: a pattern, or a folder that is not that of a single IR."""
    if is_pattern(name):
        return True
    if is_url(name):
        return name.endswith("/")
    if not os.path.isdir(name):
        return False
    return suffix != ".xml" or len(list(Path(name).glob("*.xml"))) != 1


def select(models: Iterable[str | PathLike[str]], suffix: str = ".xml") -> list[str]:
    """Every file that is meant, each once: patterns, and folders with all they hold, in order."""
    found: dict[str, None] = {}
    for model in models:
        name = os.fspath(model)
        found |= dict.fromkeys(_selected(name, suffix))
    return list(found)


def _selected(name: str, suffix: str) -> Sequence[str]:
    if not is_pattern(name):
        inside = folder_files(name, suffix)
        return [name] if inside is None else inside
    paths = list_urls(name) if is_url(name) else files_like(name)
    # What stands beside a model has the same name in many patterns: digits.*
    files = [path for path in paths if path.lower().endswith(suffix)] or paths
    if not files:
        raise UsageError(f"no file is like {name}", hint="** stands for any folders")
    return sorted(files)


def folder_files(name: str, suffix: str = ".xml") -> list[str] | None:
    """The files of a kind in a folder, of this machine or behind a URL; None of what is none."""
    if not is_url(name):
        return files_in(name, suffix) if os.path.isdir(name) else None
    found = urls_in(name, suffix)
    if found is None:
        return None
    if not found:
        raise UsageError(f"{name} is a folder without {suffix} files")
    return sorted(found)


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
