"""Layouts: what the axes of a tensor mean, in OpenVINO's words."""

from __future__ import annotations

import re

from ...schemas.printing import shown
from .parts import Port

#: The name of an axis.
_AXIS = re.compile(r"_*[A-Za-z0-9][A-Za-z0-9_]*")
#: Words for which OpenVINO writes a letter.
_LETTERS = {
    "B": "N", "BATCH": "N", "CHANNEL": "C", "CHANNELS": "C", "DEPTH": "D", "HEIGHT": "H",
    "WIDTH": "W",
}  # fmt: skip
_SCALAR = "**SCALAR**"


def axis_names(layout: str) -> tuple[str, ...]:
    """The names of axes in a layout: ``?`` of one without a name, ``...`` of any number of them.

    Raises:
        ValueError: OpenVINO refuses it.
    """
    plain = layout.strip()
    if not layout or plain == _SCALAR:
        return () if plain else ("...",)
    if not plain:
        raise ValueError("it is nothing but blanks")
    if plain.startswith("[") and plain.endswith("]"):
        inside = plain[1:-1].split(",")
        words = [word.strip() for word in inside]
        # To OpenVINO a comma that ends the names before "..." or all of them is nothing, and one
        # that ends those behind "..." an axis without a name.
        begun = words.index("...") if "..." in words else len(words)
        if begun < len(words) - 2 and not words[-1]:
            words[-1] = "?"
        if begun > 1 and not inside[begun - 1]:
            del words[begun - 1]
    else:
        words = re.findall(r"\.\.\.|.", plain, re.DOTALL)
    if words.count("...") > 1:
        raise ValueError('"..." stands twice')
    names: list[str] = []
    for word in words:
        name = _LETTERS.get(word.upper(), word.upper())
        if not word:
            raise ValueError("a name is empty")
        if word not in ("?", "..."):
            if not _AXIS.fullmatch(word):
                raise ValueError(f"{shown(word)} is no name of letters, digits and _")
            if name in names:
                raise ValueError(f"{shown(word)} stands twice")
        names.append(name)
    return tuple(names)


def layout_spelling(names: tuple[str, ...]) -> str:
    """A layout as OpenVINO writes it."""
    return f"[{','.join(names)}]" if names else _SCALAR


def layout_text(port: Port | None) -> str | None:
    """The layout that a tensor says, such as [N,C,H,W]."""
    for info in () if port is None else port.rt_info or ():
        if info.key == "layout" and "layout" in info.attributes:
            return info.attributes["layout"]
    return None
