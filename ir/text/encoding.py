"""The encoding of a document: which it is, and whether it is one that is read."""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(r"<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)[\"']")
#: Encodings in which a tag looks like a tag, so that a DOCTYPE cannot hide. Python knows others
#: that no document is in, and some that take hours for a megabyte (punycode).
_PLAIN = re.compile(r"(utf-?8|us-ascii|ascii|iso-?8859-?\d+|latin-?1|windows-125\d|cp125\d)", re.I)
#: Those that OpenVINO knows, too.
_UNDERSTOOD = re.compile(r"utf-?8|iso-8859-1|latin1", re.I)
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"),
    (b"<\0\0\0", "utf-32-le"), (b"\0\0\0<", "utf-32-be"),
)  # fmt: skip


def mark_of(source: bytes) -> str | None:
    """The encoding that the first bytes show, whatever is declared."""
    return next((name for start, name in _MARKS if source.startswith(start)), None)


def encoding_of(source: bytes) -> str:
    """The encoding of a document, by its first bytes or its declaration."""
    mark = mark_of(source)
    if mark is not None:
        return mark
    found = _DECLARED.match(source[:400].decode("latin-1").lstrip())
    return found[1].lower() if found else "utf-8"


def taken_as(source: bytes) -> tuple[str, str | None]:
    """The encoding that OpenVINO takes a document to be in, and why XML would not.

    A declaration that cannot be true, or of which nothing is known, means UTF-8.
    """
    encoding = encoding_of(source)
    if mark_of(source) is not None:
        wide = encoding.startswith("utf-32")
        return encoding, f'encoding "{encoding}" is not read' if wide else None
    if encoding.startswith(("utf-16", "utf-32", "ucs")):
        return "utf-8", f'the declaration says encoding="{encoding}", the bytes do not'
    if encoding in ("us-ascii", "ascii"):
        if not source.isascii():
            return "utf-8", f'the declaration says encoding="{encoding}", not all bytes are'
    elif not is_plain(encoding):
        return "utf-8", f'encoding "{encoding}" is not read'
    elif _UNDERSTOOD.fullmatch(encoding) is None and not source.isascii():
        return "utf-8", f'encoding "{encoding}" is UTF-8 to OpenVINO, whatever else to others'
    return encoding, None


def is_plain(encoding: str) -> bool:
    """Whether it is UTF-8 or an encoding of one byte for a character that is read."""
    if _PLAIN.fullmatch(encoding) is None:
        return False
    try:
        codecs.lookup(encoding)
    except LookupError:  # such as iso-8859-12
        return False
    return True


__all__ = ["encoding_of", "is_plain", "mark_of", "taken_as"]
