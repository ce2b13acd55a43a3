"""Models to pairs of files and back: read, print, patch what was edited, lay out the .bin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .layout import Layout as Layout
    from .reader import find_pair as find_pair
    from .reader import loads as loads
    from .reader import parse as parse
    from .reader import read as read
    from .reader import read_pair as read_pair
    from .shift import shifted as shifted
    from .writer import compose as compose
    from .writer import dumps as dumps
    from .writer import write as write

__getattr__, __dir__ = face(
    __name__,
    {
        "layout": "Layout",
        "reader": "find_pair loads parse read read_pair",
        "shift": "shifted",
        "writer": "compose dumps write",
    },
)
