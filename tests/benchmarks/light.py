"""Nine networks of the onnx package, given weights: the same each time, made once.

The package has their graphs with weights left out. Random ones of sane scales are as good for
measuring time; scales are such that no network's values explode or die.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
from onnx import numpy_helper

NAMES = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
    "squeezenet", "vgg19", "zfnet512",
)  # fmt: skip
#: Raised when the same name is to mean other weights.
EDITION = 1

Draw = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]


def folder() -> Path:
    """Where the networks are kept from run to run."""
    return Path(tempfile.gettempdir()) / f"vinoir-benchmarks-{EDITION}"


def network(name: str) -> tuple[Path, Path]:
    """A network as IR and as ONNX, made where it is not there yet."""
    place = folder()
    place.mkdir(exist_ok=True)
    ir, source = place / f"{name}.xml", place / f"{name}.onnx"
    if not (ir.exists() and source.exists()):
        given = Path(os.path.dirname(onnx.__file__), "backend/test/data/light")
        model = weighted(onnx.load(given / f"light_{name}.onnx"))
        onnx.save(model, source)
        ov.save_model(ov.convert_model(source), ir, compress_to_fp16=False)
    return ir, source


def weighted(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model, its weights drawn at random instead of left out."""
    graph = model.graph
    rng = np.random.default_rng(0)
    known = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    gaps = {node.output[0]: node.input[0] for node in graph.node if node.op_type == LEFT_OUT}
    shapes = {name: tuple(known[source].tolist()) for name, source in gaps.items()}
    shapes |= {n: a.shape for n, a in known.items() if a.dtype == np.float32 and a.ndim}
    residual = any(node.op_type == "Sum" for node in graph.node)
    drawn = {}
    for name, draw in roles(graph, residual=residual):
        if name in shapes and name not in drawn:
            drawn[name] = draw(shapes[name], rng).astype(np.float32)
    for node in [node for node in graph.node if node.output[0] in drawn]:
        graph.node.remove(node)
    left = {name for node in graph.node for name in node.input}
    kept = [x for x in graph.initializer if x.name not in drawn and x.name in left]
    inputs = [x for x in graph.input if x.name in left and x.name not in drawn]
    inputs = [x for x in inputs if x.name not in known]
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(kept)
    graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in drawn.items())
    graph.input.extend(inputs)
    # Initializers that are no inputs need a newer version of the format.
    model.ir_version = 4
    return model


LEFT_OUT = "ConstantOfShape"


def roles(graph: onnx.GraphProto, *, residual: bool) -> list[tuple[str, Draw]]:
    """What each weight is for, as how it is drawn."""
    unsqueezed = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Unsqueeze"}
    found: list[tuple[str, Draw]] = []
    for node in graph.node:
        names = [unsqueezed.get(name, name) for name in node.input]
        if node.op_type in ("Conv", "Gemm"):
            found.append((names[1], kernel if node.op_type == "Conv" else dense))
            found += [(name, small) for name in names[2:]]
        elif node.op_type == "BatchNormalization":
            # Sums of branches grow; their shares are kept small.
            found.append((names[1], halves if residual else near_one))
            found += [(names[2], small), (names[3], small), (names[4], near_one)]
        elif node.op_type in ("Mul", "Add"):
            found += [(name, near_one if node.op_type == "Mul" else small) for name in names]
    return found


def kernel(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))


def dense(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(shape) / np.sqrt(max(shape))


def small(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(shape) * 0.1


def near_one(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.7, 1.0, shape)


def halves(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.3, 0.5, shape)
