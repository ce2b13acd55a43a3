"""Files that are no XML at all: what they are, by how they begin."""

from __future__ import annotations

import re

from ...schemas.printing import shown
from ..storage import LFS_HINT, LFS_POINTER

#: Of longer documents no more is looked at than this.
SEARCHED = 1 << 22

_MODEL = "a model is an .xml, its weights a .bin beside it"
_ONNX = f"{_MODEL}; `vinoir import` makes one of ONNX"
_PAGE = f"{_MODEL}; of a web page that shows a file, download the file itself"
_ARRAYS = f"{_MODEL}; inputs are given by name (-i NAME=FILE), recorded tensors by --against FILE"
#: How files of other kinds begin, after so many bytes, what they are, and what may be meant.
_OTHERS = (
    (0, b"PK\x03\x04", "a zip archive, as .npz, .pt and .keras are", _ARRAYS),
    (0, b"\x93NUMPY", "an array of NumPy", _ARRAYS),
    (0, b"\x89HDF", "HDF5", _MODEL),
    (0, b"GGUF", "GGUF", _MODEL),
    (0, b"\x1f\x8b", "compressed by gzip", _MODEL),
    (0, b"\x80\x02", "a pickle of Python, as older .pt are", _MODEL),
    (0, b"{", "JSON", _MODEL),
    (0, b"\x08", "a protocol buffer, as ONNX is", _ONNX),
    (2, b"\0\0TFL3", "TensorFlow Lite", _MODEL),
    (5, b"\0\0\0{", "safetensors", _MODEL),
    (0, LFS_POINTER, "a Git LFS pointer, which stands for the file", LFS_HINT),
    (0, b"<!DOCTYPE html", "HTML", _PAGE),
    (0, b"<!doctype html", "HTML", _PAGE),
)
#: What an IR has somewhere, in whatever state it is; NULs are left out, as UTF-16 has them.
_OF_AN_IR = re.compile(rb"</?(\w+:)?(net|layer|edge)", re.IGNORECASE)
#: What XML begins with: blanks, and the marks of UTF-8 and UTF-16.
_BEFORE_XML = b" \t\r\n\0\xef\xbb\xbf\xff\xfe"


def other_kind(source: bytes) -> tuple[str, str] | None:
    """What a file is that is no XML, and what helps; None where it may be some, damaged."""
    if b"<net" in source[:SEARCHED]:
        return None
    for place, begin, what, meant in _OTHERS:
        if source.startswith(begin, place):
            return f"not XML but {what}", meant
    begin = source[:SEARCHED].lstrip(_BEFORE_XML)
    if not begin or begin.startswith(b"<") or _OF_AN_IR.search(begin.replace(b"\0", b"")):
        return None
    part = "it" if len(source) <= SEARCHED else f"its first {SEARCHED} bytes"
    try:
        what = f"text that begins {shown(begin.decode(), 40)}"
    except UnicodeDecodeError:
        what = "bytes that are no text"
    return f"not XML but {what}; nothing in {part} is <net>", _MODEL
