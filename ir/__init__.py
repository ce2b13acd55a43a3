"""The document: read, understand, check, run, build and write IR files.

Example::

    from vinoir import ir

    model = ir.read("model.xml")
    tensors = ir.infer(model, {"x": "1..8,3,224,224"})
    outputs = ir.run(model, {"x": image})
    ir.write(model, "copy.xml")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..schemas import (
    IRError,
    LimitError,
    MismatchError,
    UnreadableError,
    UnsupportedError,
    UsageError,
)
from .elements import BackEdge, Edge, Info, Port, PortMap
from .graph import Graph, Layer, Model
from .reader import loads, read
from .weights import Weights

if TYPE_CHECKING:
    from .builder import Builder as Builder
    from .builder import Output as Output
    from .checker import check as check
    from .checker import explain as explain
    from .execution import Outputs as Outputs
    from .execution import run as run
    from .findings import Finding as Finding
    from .findings import Report as Report
    from .fixing import Fix as Fix
    from .fixing import fix as fix
    from .inference import Inferred as Inferred
    from .inference import infer as infer
    from .lenient import Repair as Repair
    from .onnx import from_onnx as from_onnx
    from .program import Program as Program
    from .program import compile as compile
    from .reshaping import reshape as reshape
    from .writer import dumps as dumps
    from .writer import write as write

#: What reading a file does not need is imported when it is first used.
_LATER = {
    "Builder": "builder",
    "Finding": "findings",
    "Fix": "fixing",
    "Inferred": "inference",
    "Output": "builder",
    "Outputs": "execution",
    "Program": "program",
    "Repair": "lenient",
    "Report": "findings",
    "check": "checker",
    "compile": "program",
    "dumps": "writer",
    "explain": "checker",
    "from_onnx": "onnx",
    "fix": "fixing",
    "infer": "inference",
    "reshape": "reshaping",
    "run": "execution",
    "write": "writer",
}

__all__ = [
    "BackEdge",
    "Builder",
    "Edge",
    "Finding",
    "Fix",
    "Graph",
    "IRError",
    "Inferred",
    "Info",
    "Layer",
    "LimitError",
    "MismatchError",
    "Model",
    "Output",
    "Outputs",
    "Port",
    "PortMap",
    "Program",
    "Repair",
    "Report",
    "UnreadableError",
    "UnsupportedError",
    "UsageError",
    "Weights",
    "check",
    "infer",
    "compile",
    "dumps",
    "explain",
    "fix",
    "loads",
    "read",
    "reshape",
    "write",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value
