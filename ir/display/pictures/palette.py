"""Colours of boxes: by what an operation does, or by a number."""

from __future__ import annotations

from colorsys import hls_to_rgb

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
#: The fainter of the texts in a box, for light and dark.
FAINT = ("#4a5361", "#c8ced8")
#: How many times as bright the lighter of text and fill has to be (WCAG 2.2, level AA).
_LEGIBLE = 4.5
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
    hue = (52 - 52 * share) / 360
    return (
        _hex(hls_to_rgb(hue, 0.90 - 0.38 * share, 0.60 + 0.30 * share)),
        _hex(hls_to_rgb(hue, 0.24 + 0.22 * share, 0.40 + 0.40 * share)),
    )


def inks(fills: tuple[str, str]) -> tuple[str, str] | None:
    """Black or white for texts on fills, light and dark, on which the usual ones are not legible.

    One of the two always is: on the fill that is worst for both the contrast is 4.58 to 1.
    """
    if all(map(_is_legible, FAINT, fills)):
        return None
    light, dark = ("#000000" if _is_legible("#000000", fill) else "#ffffff" for fill in fills)
    return light, dark


def _hex(colour: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def _is_legible(ink: str, fill: str) -> bool:
    less, more = sorted(map(_brightness, (ink, fill)))
    return (more + 0.05) / (less + 0.05) >= _LEGIBLE


def _brightness(colour: str) -> float:
    """The relative luminance of a colour (WCAG 2.2)."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


__all__ = ["FAINT", "FAMILIES", "family", "inks", "ramp"]
