"""Bytes to an XML tree and back: encodings, positions, breaches of XML, repairs, escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .attributes import attributes_of as attributes_of
    from .attributes import spelt_tag as spelt_tag
    from .attributes import text_of as text_of
    from .breach import TOLERATED as TOLERATED
    from .breach import Breach as Breach
    from .encoding import encoding_of as encoding_of
    from .escaping import escape as escape
    from .escaping import escape_anything as escape_anything
    from .escaping import escape_text as escape_text
    from .escaping import opening as opening
    from .parsing import parse as parse
    from .positions import at as at
    from .positions import exact as exact
    from .positions import position as position
    from .repairs import Repair as Repair
    from .repairs import repair as repair
    from .scanner import MOST_TOLD as MOST_TOLD
    from .source import Source as Source
    from .source import layer_around as layer_around

face(
    __name__,
    {
        "attributes": "attributes_of spelt_tag text_of",
        "breach": "Breach TOLERATED",
        "encoding": "encoding_of",
        "escaping": "escape escape_anything escape_text opening",
        "parsing": "parse",
        "positions": "at exact position",
        "repairs": "Repair repair",
        "scanner": "MOST_TOLD",
        "source": "Source layer_around",
    },
)
