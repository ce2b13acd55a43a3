"""Files that are no XML at all: what they are, by how they begin."""

from __future__ import annotations

#: Of longer documents no more is looked at than this.
SEARCHED = 1 << 22

_MODEL = "a model is an .xml, its weights a .bin beside it"
_ONNX = f"{_MODEL}; `vinoir import` makes one of ONNX"
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
)


def other_kind(source: bytes) -> tuple[str, str] | None:
    """What a file is that is no XML, and what helps; None where it may be some, damaged."""
    if b"<net" in source[:SEARCHED]:
        return None
    for place, begin, what, meant in _OTHERS:
        if source.startswith(begin, place):
            return f"not XML but {what}", meant
    return None
