"""Colours of boxes: by what an operation does, or by a number."""

from __future__ import annotations

from ....layers.base import Op
from ...document import Layer

#: The families of operations by the files that hold them, and the hue of each; None: grey.
_HUES: dict[str, tuple[str, ...]] = {
    "convolution": ("convolution",),
    "matrix": ("matrix",),
    "pooling": ("pooling", "image"),
    "activation": ("activation",),
    "normalization": ("normalization", "quantization"),
    "arithmetic": ("arithmetic", "elementwise", "logical", "comparison", "bitwise", "reduction"),
    "movement": ("movement", "shape", "type", "sparse"),
    "sequence": ("sequence", "memory", "condition", "infrastructure"),
    "detection": ("detection", "sort", "generation", "signals"),
}
#: Families in the order of their numbers in a page, with the colours for light and dark.
FAMILIES: dict[str, tuple[str, str]] = {
    "other": ("#e6e8ec", "#3a3f48"),
    "ends": ("#d3d8e0", "#4a515d"),
    "convolution": ("#bcd6fb", "#244a80"),
    "matrix": ("#c9ccfa", "#3a3c86"),
    "pooling": ("#b9e5dd", "#1c5a50"),
    "activation": ("#f9cfc4", "#7c3a2b"),
    "normalization": ("#c6e8bd", "#305c28"),
    "arithmetic": ("#f6e3b0", "#665019"),
    "movement": ("#e3dccf", "#524a3c"),
    "sequence": ("#e6cbf0", "#5f3870"),
    "detection": ("#f8cfe0", "#752f51"),
}
_FAMILY_OF = {file: family for family, files in _HUES.items() for file in files}


def family(layer: Layer) -> str:
    """What kind of operation a layer is, for its colour."""
    if layer.type in ("Parameter", "Result", "Const"):
        return "ends"
    from .... import layers  # noqa: F401  # declares the operations

    op = Op.find(layer.type, layer.version)
    return "other" if op is None else _FAMILY_OF.get(op.family, "other")


def ramp(share: float) -> tuple[str, str]:
    """The colours, light and dark, of a number between 0 and 1: from pale yellow to deep red."""
    share = min(max(share, 0.0), 1.0)
    hue = 52 - 52 * share
    return (
        f"hsl({hue:.0f} {60 + 30 * share:.0f}% {90 - 38 * share:.0f}%)",
        f"hsl({hue:.0f} {40 + 40 * share:.0f}% {24 + 22 * share:.0f}%)",
    )


__all__ = ["FAMILIES", "family", "ramp"]
