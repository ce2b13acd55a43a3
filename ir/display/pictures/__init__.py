"""Pictures of models: a page, SVG, dot, Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .drawing import FORMATS as FORMATS
    from .drawing import Drawing as Drawing
    from .drawing import draw as draw
    from .drawing import write_text as write_text
    from .plots import plot_weights as plot_weights

__getattr__, __dir__ = face(
    __name__, {"drawing": "Drawing FORMATS draw write_text", "plots": "plot_weights"}
)
