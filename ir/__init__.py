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
    InternalError,
    IRError,
    LimitError,
    MismatchError,
    UnreadableError,
    UnsupportedError,
    UsageError,
)
from .document.graph import Graph, Layer, Model
from .document.parts import BackEdge, Edge, Info, Port, PortMap
from .files.reader import loads, read
from .storage.weights import Weights

if TYPE_CHECKING:
    from .checking.checker import check as check
    from .checking.checker import explain as explain
    from .checking.findings import Finding as Finding
    from .checking.findings import Report as Report
    from .document.builder import Builder as Builder
    from .document.builder import Output as Output
    from .engine.program import Program as Program
    from .engine.program import compile as compile
    from .execution.interpreter import Outputs as Outputs
    from .execution.interpreter import run as run
    from .files.writer import dumps as dumps
    from .files.writer import write as write
    from .inference.shapes import Inferred as Inferred
    from .inference.shapes import infer as infer
    from .onnx import from_onnx as from_onnx
    from .surgery.fixing import Fix as Fix
    from .surgery.fixing import fix as fix
    from .surgery.reshaping import reshape as reshape
    from .text.repair import Repair as Repair

#: What reading a file does not need is imported when it is first used.
_LATER = {
    "Builder": "document.builder",
    "Finding": "checking.findings",
    "Fix": "surgery.fixing",
    "Inferred": "inference.shapes",
    "Output": "document.builder",
    "Outputs": "execution.interpreter",
    "Program": "engine.program",
    "Repair": "text.repair",
    "Report": "checking.findings",
    "check": "checking.checker",
    "compile": "engine.program",
    "dumps": "files.writer",
    "explain": "checking.checker",
    "from_onnx": "onnx",
    "fix": "surgery.fixing",
    "infer": "inference.shapes",
    "reshape": "surgery.reshaping",
    "run": "execution.interpreter",
    "write": "files.writer",
}

__all__ = [
    "BackEdge",
    "Builder",
    "Edge",
    "Finding",
    "Fix",
    "Graph",
    "IRError",
    "InternalError",
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
