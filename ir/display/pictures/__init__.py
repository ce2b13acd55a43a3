"""Pictures of models: a page, SVG, dot, Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .drawing import FORMATS as FORMATS
    from .drawing import Drawing as Drawing
    from .drawing import draw as draw

__getattr__, __dir__ = face(__name__, {"drawing": "Drawing FORMATS draw"})
