"""The encoding of a document: which it is, and whether it is one that is read."""

from __future__ import annotations

import re

_DECLARED = re.compile(r"<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)[\"']")
#: Encodings in which a tag looks like a tag, so that a DOCTYPE cannot hide. Python knows others
#: that no document is in, and some that take hours for a megabyte (punycode).
_PLAIN = re.compile(
    r"(utf-?8(-sig)?|us-ascii|ascii|iso-?8859-?\d+|latin-?1|windows-125\d|cp125\d)", re.I
)


def encoding_of(source: bytes) -> str:
    """The encoding of a document, by its first bytes or its declaration."""
    if source.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if source.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if source[:4] in (b"<\0?\0", b"\0<\0?"):
        return "utf-16-le" if source[:1] == b"<" else "utf-16-be"
    found = _DECLARED.match(source[:400].decode("latin-1").lstrip())
    return found[1].lower() if found else "utf-8"


def is_plain(encoding: str) -> bool:
    """Whether it is UTF-8 or an encoding of one byte for a character that is read."""
    return _PLAIN.fullmatch(encoding) is not None


__all__ = ["encoding_of", "is_plain"]
