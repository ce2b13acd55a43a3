"""The face of a room: its names, each imported from its file when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any


def face(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that offers, of each file, some names."""
    file_of = {name: file for file, text in names.items() for name in text.split()}

    def find(name: str) -> Any:
        if name not in file_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        file = file_of[name]
        place = file if file.startswith(".") else f".{file}"
        value = getattr(import_module(place, package), name)
        setattr(modules[package], name, value)
        return value

    def offered() -> list[str]:
        return sorted(file_of)

    return find, offered
