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

from ..schemas import IRError, MismatchError, UnreadableError, UnsupportedError, UsageError
from .builder import Builder, Output
from .elements import BackEdge, Edge, Info, Port, PortMap
from .graph import Graph, Layer, Model
from .lenient import Repair
from .reader import loads, read
from .weights import Weights
from .writer import dumps, write

if TYPE_CHECKING:
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
    from .onnx import from_onnx as from_onnx
    from .program import Program as Program
    from .program import compile as compile
    from .reshaping import reshape as reshape

#: What needs the operations is imported when it is first used: reading a file does not.
_LATER = {
    "Finding": "findings",
    "Fix": "fixing",
    "Inferred": "inference",
    "Outputs": "execution",
    "Program": "program",
    "Report": "findings",
    "check": "checker",
    "compile": "program",
    "explain": "checker",
    "from_onnx": "onnx",
    "fix": "fixing",
    "infer": "inference",
    "reshape": "reshaping",
    "run": "execution",
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
