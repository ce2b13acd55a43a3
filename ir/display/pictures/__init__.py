"""Pictures of models: a page, SVG, dot, Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .drawing import FORMATS as FORMATS
    from .drawing import Drawing as Drawing
    from .drawing import draw as draw
    from .plots import plot_weights as plot_weights
    from .plots import plotted as plotted
    from .run_errors import errors_of as errors_of
    from .run_plot import plot_run as plot_run
    from .stepping import Compared as Compared
    from .stepping import SideBySide as SideBySide
    from .writing import write_text as write_text

face(
    __name__,
    {
        "drawing": "Drawing FORMATS draw",
        "plots": "plot_weights plotted",
        "run_errors": "errors_of",
        "run_plot": "plot_run",
        "stepping": "Compared SideBySide",
        "writing": "write_text",
    },
)
