"""The document: read, keep, build and write IR files.

Example::

    from vinoir import ir

    model = ir.read("model.xml")
    ir.write(model, "copy.xml")
"""

from .builder import Builder, Output
from .elements import Edge, Info, Port
from .graph import Graph, Layer, Model
from .lenient import Repair
from .reader import loads, read
from .weights import Weights

__all__ = [
    "Builder",
    "Edge",
    "Graph",
    "Info",
    "Layer",
    "Model",
    "Output",
    "Port",
    "Repair",
    "Weights",
    "loads",
    "read",
]
