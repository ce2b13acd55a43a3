"""Models to pairs of files and back: read, print, patch what was edited, lay out the .bin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .older import Origin as Origin
    from .older import Remark as Remark
    from .older.table import entries as entries
    from .older.table import known_types as known_types
    from .older.upgrade import NEWER as NEWER
    from .older.upgrade import VERSIONS as VERSIONS
    from .older.upgrade import examine as examine
    from .older.upgrade import names_opsets as names_opsets
    from .older.upgrade import newer as newer
    from .reader import content_of as content_of
    from .reader import find_pair as find_pair
    from .reader import loads as loads
    from .reader import read as read
    from .reader import read_pair as read_pair
    from .writer import compose as compose
    from .writer import draft as draft
    from .writer import dumps as dumps
    from .writer import ensure_writable as ensure_writable
    from .writer import write as write

face(
    __name__,
    {
        "older": "Origin Remark",
        "older.table": "entries known_types",
        "older.upgrade": "NEWER VERSIONS examine names_opsets newer",
        "reader": "content_of find_pair loads read read_pair",
        "writer": "compose draft dumps ensure_writable write",
    },
)
