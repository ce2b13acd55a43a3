"""Models described for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .costs import macs as macs
    from .executed import Primitive as Primitive
    from .executed import primitives as primitives
    from .grouping import Module as Module
    from .grouping import modules as modules
    from .notebook import html as html
    from .pictures import FORMATS as FORMATS
    from .pictures import Compared as Compared
    from .pictures import Drawing as Drawing
    from .pictures import SideBySide as SideBySide
    from .pictures import draw as draw
    from .pictures import errors_of as errors_of
    from .pictures import plot_run as plot_run
    from .pictures import plot_weights as plot_weights
    from .pictures import plotted as plotted
    from .pictures import write_text as write_text
    from .quantized import precisions as precisions
    from .sizes import constant_bytes as constant_bytes
    from .sizes import elements as elements
    from .summaries import declared as declared
    from .summaries import describe as describe
    from .summaries import operation_name as operation_name
    from .summaries import shape_text as shape_text
    from .summaries import summary as summary

face(
    __name__,
    {
        "costs": "macs",
        "executed": "Primitive primitives",
        "grouping": "Module modules",
        "notebook": "html",
        "pictures": (
            "Compared Drawing FORMATS SideBySide draw errors_of plot_run plot_weights plotted "
            "write_text"
        ),
        "quantized": "precisions",
        "sizes": "constant_bytes elements",
        "summaries": "declared describe operation_name shape_text summary",
    },
)
