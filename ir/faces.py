"""The face of a room: its names, each imported from its file when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..schemas.printing import Table


def face(package: str, names: Mapping[str, str]) -> None:
    """Let a package offer, of each file, some names.

    Its ``__getattr__`` is put in place here: one that type checkers saw would have any name.
    """
    file_of = {name: file for file, text in names.items() for name in text.split()}

    def find(name: str) -> Any:
        if name not in file_of:
            message = f"module {package!r} has no attribute {name!r}"
            # Rooms are asked for their files, too, by every import of one.
            if package == __package__ and not name.startswith("_"):
                from ..schemas.printing import meant

                hint = meant(name, file_of)
                message = f"{message}, {hint}" if hint else message
            raise AttributeError(message)
        file = file_of[name]
        place = file if file.startswith(".") else f".{file}"
        value = getattr(import_module(place, package), name)
        setattr(modules[package], name, value)
        return value

    def offered() -> list[str]:
        return sorted(file_of)

    vars(modules[package]).update(__getattr__=find, __dir__=offered)


class Shown:
    """What shows itself: a line at the prompt, a table in a notebook."""

    __slots__ = ()

    def as_table(self) -> Table:
        """What there is to say of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.as_table().title}>"

    def _repr_html_(self) -> str:
        text: str = door("display", "html")(self)
        return text


def door(room: str, name: str) -> Callable[..., Any]:
    """A function of a room further up, which is imported when the door is gone through.

    Rooms import downwards only; what a model offers of the rooms above it goes through here.
    """

    def enter(*args: Any, **options: Any) -> Any:
        return getattr(import_module(f".{room}", __package__), name)(*args, **options)

    enter.__name__ = enter.__qualname__ = name
    return enter
