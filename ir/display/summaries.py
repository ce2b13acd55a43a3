"""What is in a model, counted: for people, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...layers.base import Op
from ...schemas import Shape, Tensor
from ..document import Graph, Layer, Model, input_names, output_keys


def operation_name(layer: Layer) -> str:
    """Type and version as the specification has them, such as MaxPool-8."""
    from ... import layers  # noqa: F401  # declares the operations

    op = Op.find(layer.type, layer.version)
    return op.spec() if op is not None else f"{layer.type} ({layer.version})"


def declared(layer: Layer) -> list[Tensor]:
    """The outputs as the file declares them; of a Parameter as its attributes do."""
    if layer.type == "Parameter" and layer.op is not None:
        return list(layer.op.infer())
    return [port.tensor for port in layer.outputs]


def summary(model: Model) -> dict[str, Any]:
    """Name, version, inputs, outputs, layers by type, weights by element type."""
    kinds = Counter(operation_name(layer) for layer in model.everywhere())
    held: dict[str, list[int]] = {}
    for layer in model.everywhere():
        if layer.is_constant:
            row = held.setdefault(str(layer.element_type), [0, 0, 0])
            count = 1
            for size in layer.sizes:
                count *= size
            row[0] += 1
            row[1] += count
            row[2] += constant_bytes(layer, count)
    origin = {} if model.origin is None else {"origin": model.origin.to_json()}
    return {
        "name": model.name,
        "ir_version": model.version,
        **origin,
        "path": None if model.path is None else str(model.path),
        "inputs": [
            {"name": x.name, "names": input_names(x), **describe(declared(x)[0])}
            for x in model.parameters
        ],
        "outputs": outputs(model),
        "layer_count": sum(kinds.values()),
        "layers": dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        "weights": {
            kind: {"constants": n, "elements": elements, "bytes": size}
            for kind, (n, elements, size) in sorted(held.items(), key=lambda item: -item[1][2])
        },
    }


def outputs(graph: Graph) -> list[dict[str, Any]]:
    """Every output with the type and shape the file declares."""
    rows = []
    for key, result in zip(output_keys(graph), graph.results, strict=True):
        source = graph.producer(result, 0)
        tensor = None if source is None else declared(source[0])[source[1]]
        rows.append({"name": key, **(describe(tensor) if tensor is not None else {})})
    return rows


def describe(tensor: Tensor) -> dict[str, str]:
    """Type and shape as text."""
    return {"type": str(tensor.type), "shape": shape_text(tensor.shape)}


def shape_text(shape: Shape) -> str:
    """A shape in brackets."""
    return f"[{shape}]"


def constant_bytes(layer: Layer, count: int) -> int:
    """The bytes a constant takes in the .bin."""
    text = layer.data.get("size", "")
    return int(text) if text.isdigit() and len(text) < 19 else layer.element_type.nbytes(count)
