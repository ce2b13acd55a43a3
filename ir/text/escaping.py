"""Values and texts as XML spells them, in the form in which OpenVINO writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...schemas import IRError

_ESCAPES = {code: f"&#{code:02d};" for code in range(32)} | {
    ord("&"): "&amp;", ord("<"): "&lt;", ord('"'): "&quot;"
}  # fmt: skip
_ESCAPES_OF_DRAFTS = {code: text for code, text in _ESCAPES.items() if code in b'\t\n\r&<"'}
_TEXT_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("\r"): "&#13;"}

#: What an attribute's value cannot have as it is.
_SPECIAL = re.compile('[\0-\x1f&<"\ud800-\udfff\ufffe\uffff]')
#: What no XML document can say, not even by number.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(value: str) -> str:
    """An attribute's value between its quotes."""
    if _SPECIAL.search(value) is None:
        return value
    _refuse_forbidden(value)
    return value.translate(_ESCAPES)


def escape_anything(value: str) -> str:
    """The same, characters that XML does not have as they are: to be found by who reads it."""
    return value.translate(_ESCAPES_OF_DRAFTS)


def escape_text(text: str) -> str:
    """Text between tags."""
    _refuse_forbidden(text)
    return text.translate(_TEXT_ESCAPES)


def _refuse_forbidden(value: str) -> None:
    found = _FORBIDDEN.search(value)
    if found is not None:
        raise IRError(f"{value[:60]!r} has the character U+{ord(found[0]):04X}, XML has no such")


def opening(tag: str, attributes: Mapping[str, str], spell: Callable[[str], str] = escape) -> str:
    """A start tag without its end."""
    for name in (tag, *attributes) if spell is escape else ():
        # lxml's {uri}name: what the prefix was is said by the document that it was read from.
        if name.startswith("{"):
            raise IRError(
                f"{name[:80]} is in a namespace, an IR that is printed anew has none",
                hint="remove it, or give it a name without one",
            )
    return "<" + tag + "".join([f' {key}="{spell(text)}"' for key, text in attributes.items()])
