"""A picture as one page that needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from xml.sax.saxutils import escape

from ....schemas.printing import printable
from .packing import compressed, pack
from .painting import Paint
from .scene import Picture

_SCRIPTS = ("model", "place", "paint", "search", "side", "step", "main")


@cache
def _read(name: str) -> str:
    return (files(__package__) / "page" / name).read_text("utf-8")


@cache
def _script() -> str:
    body = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    return f'"use strict";(()=>{{\n{body}\n}})();'


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def to_html(
    picture: Picture, paints: Sequence[Paint], title: str, *, values: bool, shown: int = -1
) -> str:
    """The page of one model.

    Args:
        picture: The model laid out.
        paints: What boxes can be painted by.
        title: What the page is called.
        values: Whether constants' first values and histograms go with it.
        shown: Which of the paints is seen at first; -1 for the kinds of operations.
    """
    return fill_page(seen(picture, paints, title, values=values, shown=shown), title)


def seen(
    picture: Picture, paints: Sequence[Paint], title: str, *, values: bool, shown: int
) -> dict[str, Any]:
    """What the page knows of a model, and what of it is seen at first."""
    content = pack(picture, paints, title, values=values)
    opened = picture.opened()
    return content | {"initial": [list(opened), list(opened.values())], "paint": shown}


def fill_page(content: Mapping[str, Any], title: str) -> str:
    """The page with its data.

    Nothing but its own script and style may run in it, known by their sums; the names of the
    model are in the compressed data alone, and in the title, escaped.
    """
    script, style = _script(), _read("page.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": escape(printable(title, 200)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": compressed(content),
    }
    page = _read("page.html")
    pieces = page.split("@")
    # What stands between two such signs is the name of a part; no part is looked through.
    return "".join(parts.get(piece, piece) for piece in pieces)


__all__ = ["fill_page", "seen", "to_html"]
