"""Bytes to an XML tree and back: encodings, positions, breaches of XML, repairs, escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .attributes import attributes_of as attributes_of
    from .encoding import encoding_of as encoding_of
    from .encoding import is_plain as is_plain
    from .positions import at as at
    from .positions import exact as exact
    from .positions import position as position
    from .repairs import Repair as Repair
    from .repairs import repair as repair
    from .source import Source as Source

__getattr__, __dir__ = face(
    __name__,
    {
        "attributes": "attributes_of",
        "encoding": "encoding_of is_plain",
        "positions": "at exact position",
        "repairs": "Repair repair",
        "source": "Source",
    },
)
