"""The document: read, understand, check, run, build and write IR files.

Example::

    from vinoir import ir

    model = ir.read("model.xml")
    tensors = ir.infer(model, {"x": "1..8,3,224,224"})
    outputs = ir.run(model, {"x": image})
    ir.write(model, "copy.xml")
"""

from typing import TYPE_CHECKING

from .faces import face

if TYPE_CHECKING:
    from ..schemas import InternalError as InternalError
    from ..schemas import IRError as IRError
    from ..schemas import LimitError as LimitError
    from ..schemas import MismatchError as MismatchError
    from ..schemas import UnreadableError as UnreadableError
    from ..schemas import UnsupportedError as UnsupportedError
    from ..schemas import UnwritableError as UnwritableError
    from ..schemas import UsageError as UsageError
    from .checking import Finding as Finding
    from .checking import Report as Report
    from .checking import check as check
    from .checking import explain as explain
    from .comparing import Comparison as Comparison
    from .comparing import Difference as Difference
    from .comparing import Differences as Differences
    from .comparing import Reduction as Reduction
    from .comparing import compare as compare
    from .comparing import diff as diff
    from .comparing import reduce as reduce
    from .display import Drawing as Drawing
    from .display import draw as draw
    from .document import BackEdge as BackEdge
    from .document import Builder as Builder
    from .document import Edge as Edge
    from .document import Editor as Editor
    from .document import End as End
    from .document import Ends as Ends
    from .document import Graph as Graph
    from .document import Info as Info
    from .document import Layer as Layer
    from .document import Model as Model
    from .document import Output as Output
    from .document import Port as Port
    from .document import PortMap as PortMap
    from .engine import Program as Program
    from .engine import compile as compile
    from .execution import Outputs as Outputs
    from .execution import Variables as Variables
    from .execution import run as run
    from .files import dumps as dumps
    from .files import loads as loads
    from .files import read as read
    from .files import write as write
    from .fleet import Predictor as Predictor
    from .fleet import Sweep as Sweep
    from .fleet import sweep as sweep
    from .inference import Inferred as Inferred
    from .inference import infer as infer
    from .onnx import from_onnx as from_onnx
    from .operations import ops as ops
    from .storage import Weights as Weights
    from .surgery import Fix as Fix
    from .surgery import Operated as Operated
    from .surgery import Simplified as Simplified
    from .surgery import Surgery as Surgery
    from .surgery import compress as compress
    from .surgery import convert as convert
    from .surgery import decompress as decompress
    from .surgery import edit as edit
    from .surgery import edit_schema as edit_schema
    from .surgery import extract as extract
    from .surgery import fix as fix
    from .surgery import merge as merge
    from .surgery import reshape as reshape
    from .surgery import simplify as simplify
    from .text import Repair as Repair

face(
    __name__,
    {
        "..schemas": (
            "IRError InternalError LimitError MismatchError UnreadableError "
            "UnsupportedError UnwritableError UsageError"
        ),
        "checking": "Finding Report check explain",
        "comparing": "Comparison Difference Differences Reduction compare diff reduce",
        "display": "Drawing draw",
        "document": (
            "BackEdge Builder Edge Editor End Ends Graph Info Layer Model Output Port PortMap"
        ),
        "engine": "Program compile",
        "execution": "Outputs Variables run",
        "files": "dumps loads read write",
        "fleet": "Predictor Sweep sweep",
        "inference": "Inferred infer",
        "onnx": "from_onnx",
        "operations": "ops",
        "storage": "Weights",
        "surgery": (
            "Fix Operated Surgery compress convert decompress edit edit_schema extract fix "
            "merge reshape Simplified simplify"
        ),
        "text": "Repair",
    },
)

__all__ = [
    "BackEdge",
    "Builder",
    "Comparison",
    "Difference",
    "Differences",
    "Drawing",
    "Edge",
    "Editor",
    "End",
    "Ends",
    "Finding",
    "Fix",
    "Graph",
    "IRError",
    "Inferred",
    "Info",
    "InternalError",
    "Layer",
    "LimitError",
    "MismatchError",
    "Model",
    "Operated",
    "Output",
    "Outputs",
    "Port",
    "PortMap",
    "Predictor",
    "Program",
    "Reduction",
    "Repair",
    "Report",
    "Simplified",
    "Surgery",
    "Sweep",
    "UnreadableError",
    "UnsupportedError",
    "UnwritableError",
    "UsageError",
    "Variables",
    "Weights",
    "check",
    "compare",
    "compile",
    "compress",
    "convert",
    "decompress",
    "diff",
    "draw",
    "dumps",
    "edit",
    "edit_schema",
    "explain",
    "extract",
    "fix",
    "from_onnx",
    "infer",
    "loads",
    "merge",
    "ops",
    "read",
    "reduce",
    "reshape",
    "run",
    "simplify",
    "sweep",
    "write",
]
