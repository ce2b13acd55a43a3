"""Values and texts as XML spells them, in the form in which OpenVINO writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...schemas import IRError

_ESCAPES = {code: f"&#{code:02d};" for code in range(32)} | {
    ord("&"): "&amp;", ord("<"): "&lt;", ord('"'): "&quot;"
}  # fmt: skip
_TEXT_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("\r"): "&#13;"}

#: What an attribute's value cannot have as it is.
_SPECIAL = re.compile('[\0-\x1f&<"\ud800-\udfff\ufffe\uffff]')
#: What no XML document can say, not even by number.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(value: str) -> str:
    """An attribute's value between its quotes."""
    if _SPECIAL.search(value) is None:
        return value
    found = _FORBIDDEN.search(value)
    if found is not None:
        raise IRError(f"{value[:60]!r} has the character U+{ord(found[0]):04X}, XML has no such")
    return value.translate(_ESCAPES)


def escape_text(text: str) -> str:
    """Text between tags."""
    return text.translate(_TEXT_ESCAPES)


def opening(tag: str, attributes: Mapping[str, str]) -> str:
    """A start tag without its end."""
    return "<" + tag + "".join([f' {key}="{escape(text)}"' for key, text in attributes.items()])
