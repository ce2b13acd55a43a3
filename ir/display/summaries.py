"""What is in a model, counted: for people, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...layers.base import Op
from ...schemas import IRError, Shape, Tensor
from ..document import (
    Graph,
    Layer,
    Model,
    layout_text,
    named_inputs,
    output_keys,
    output_names,
)
from .costs import macs, sums_products
from .sizes import constant_bytes, elements


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
    """Name, version, inputs, outputs, layers by type, weights by element type, sums, depth."""
    kinds: Counter[str] = Counter()
    work: dict[str, float] = {}
    unknown = 0
    for layer in model.everywhere():
        name = operation_name(layer)
        kinds[name] += 1
        count_of = macs(layer)
        if count_of is not None:
            work[name] = work.get(name, 0) + count_of
        unknown += count_of is None and sums_products(layer)
    held: dict[str, list[int]] = {}
    for layer in model.everywhere():
        if layer.is_constant:
            row = held.setdefault(str(layer.element_type), [0, 0, 0])
            count = elements(layer)
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
            {
                "name": names[0],
                "names": names,
                "layout": layout_text(next(iter(x.outputs), None)),
                **describe(declared(x)[0]),
            }
            for x, names in named_inputs(model.parameters)
        ],
        "outputs": outputs(model),
        "layer_count": sum(kinds.values()),
        "depth": depth(model),
        "parameters": sum(row[1] for row in held.values()),
        "bytes": sum(row[2] for row in held.values()),
        "macs": int(sum(work.values())) if work or not unknown else None,
        "macs_unknown": unknown,
        "macs_by_operation": {kind: int(count) for kind, count in work.items()},
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
        said = describe(tensor) if tensor is not None else {"type": "?", "shape": "?"}
        names = output_names(graph, result)
        layout = None if source is None else layout_text(source[0].outputs[source[1]])
        rows.append({"name": key, "names": names, "layout": layout, **said})
    return rows


def depth(graph: Graph) -> int | None:
    """The layers on the longest way from an input or a constant to an output; None of a circle."""
    found: dict[int, int] = {}
    try:
        order = graph.order(reachable_only=False)
    except IRError:  # there is no longest way; checking the model tells where it goes round
        return None
    for layer in order:
        before = [found.get(source[0].id, 0) for source in graph.sources(layer) if source]
        found[layer.id] = 1 + max(before, default=0)
    return max(found.values(), default=0)


def describe(tensor: Tensor) -> dict[str, str]:
    """Type and shape as text."""
    return {"type": str(tensor.type), "shape": shape_text(tensor.shape)}


def shape_text(shape: Shape) -> str:
    """A shape in brackets."""
    return f"[{shape}]"
