"""``vinoir show``: what is in a model."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from ...schemas import Array
from ..display import declared, operation_name, shape_text, summary
from ..document import Graph, Layer
from ..files import read
from .fleet import over_many
from .older import print_remarks
from .output import (
    bytes_text,
    format_option,
    model_argument,
    print_json,
    print_pairs,
    print_table,
    weights_option,
)


@over_many
@click.command(
    "show", epilog="Examples: vinoir show model.xml; vinoir show model.xml --layer pool1"
)
@model_argument
@weights_option
@click.option("--layer", metavar="NAME", help="One layer, by name, id or tensor name.")
@click.option("--layers", is_flag=True, help="Every layer, in the order of the file.")
@format_option()
def show_command(
    model: str, weights: str | None, layer: str | None, layers: bool, format_: str
) -> None:
    """Tell what is in MODEL: inputs, outputs, layers by type, weights by element type."""
    found = read(model, weights)
    if layer is not None:
        one = layer_facts(found, found.layer(layer))
        print_json({"layer": one}) if format_ == "json" else print_layer(one)
    elif layers:
        rows = [layer_row(found, each) for each in found.layers]
        if format_ == "json":
            print_json({"layers": rows})
        else:
            columns = ["id", "name", "operation", "inputs", "outputs"]
            print_table("", columns, [[row[c] for c in columns] for row in rows], right=(0,))
    else:
        facts = summary(found)
        if format_ == "json":
            print_json(facts)
            return
        print_summary(facts)
        if found.origin is not None and found.origin.remarks:
            print_remarks(found.origin)


def print_summary(facts: dict[str, Any]) -> None:
    """The summary for a person."""
    print_pairs(
        [
            ("model", facts["name"]),
            ("file", facts["path"]),
            ("IR version", version_text(facts)),
            ("layers", facts["layer_count"]),
        ]
    )
    click.echo()
    for what in ("inputs", "outputs"):
        rows = [[row["name"], row.get("type", "?"), row.get("shape", "?")] for row in facts[what]]
        print_table(what, ["name", "type", "shape"], rows)
    print_table("layers by operation", ["operation", "count"], facts["layers"].items(), right=(1,))
    print_table(
        "weights by type",
        ["type", "constants", "elements", "size"],
        [
            [kind, row["constants"], f"{row['elements']:,}", bytes_text(row["bytes"])]
            for kind, row in facts["weights"].items()
        ],
        right=(1, 2, 3),
    )


def version_text(facts: dict[str, Any]) -> str:
    """The version of the model, and of its file where that was upgraded."""
    origin = facts.get("origin")
    now = str(facts["ir_version"])
    return now if origin is None else f"{now}, upgraded from {origin['ir_version']}"


def layer_row(graph: Graph, layer: Layer) -> dict[str, Any]:
    """One line of the list of layers."""
    sources = [
        "-"
        if source is None
        else f"{source[0].name}:{source[1]}"
        if len(source[0].outputs) > 1
        else source[0].name
        for source in graph.sources(layer)
    ]
    return {
        "id": layer.id,
        "name": layer.name,
        "operation": operation_name(layer),
        "inputs": ", ".join(sources),
        "outputs": ", ".join(f"{t.type}{shape_text(t.shape)}" for t in declared(layer)),
    }


def layer_facts(graph: Graph, layer: Layer) -> dict[str, Any]:
    """Everything about one layer."""
    where = layer.where
    facts: dict[str, Any] = {
        "id": layer.id,
        "name": layer.name,
        "type": layer.type,
        "version": layer.version,
        "operation": operation_name(layer),
        "line": where.line,
        "attributes": dict(layer.data),
        "inputs": [
            None
            if source is None
            else {
                "layer": source[0].name,
                "output": source[1],
                "operation": operation_name(source[0]),
            }
            for source in graph.sources(layer)
        ],
        "outputs": [
            {
                "port": port.id,
                "type": str(tensor.type),
                "shape": shape_text(tensor.shape),
                "names": list(port.names),
                "used_by": [user.name for user, _ in graph.consumers(layer, index)],
            }
            for index, (port, tensor) in enumerate(
                zip(layer.outputs, declared(layer), strict=True)
            )
        ],
    }
    if layer.is_constant:
        facts["value"] = value_facts(layer.value)
    if layer.rt_info is not None:
        facts["rt_info"] = {info.key: dict(info.attributes) for info in layer.rt_info}
    if layer.bodies:
        facts["bodies"] = {name: len(body) for name, body in layer.bodies.items()}
    return facts


def value_facts(value: Array) -> dict[str, Any]:
    """Numbers that describe an array."""
    facts: dict[str, Any] = {"elements": int(value.size)}
    if value.size and value.dtype.kind not in "TOSU":
        wide = value.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        if finite.size:
            facts |= {
                "min": float(finite.min()),
                "mean": float(finite.mean()),
                "max": float(finite.max()),
            }
        facts |= {"nan": int(np.isnan(wide).sum()), "inf": int(np.isinf(wide).sum())}
    facts["first"] = value.ravel()[:10].tolist()
    return facts


def print_layer(facts: dict[str, Any]) -> None:
    """One layer for a person."""
    print_pairs(
        [
            (k, facts[k])
            for k in ("id", "name", "operation", "version", "line")
            if facts[k] is not None
        ]
    )
    click.echo()
    if facts["attributes"]:
        print_table("attributes", ["name", "value"], facts["attributes"].items())
    if facts["inputs"]:
        print_table(
            "inputs",
            ["index", "from", "output", "operation"],
            [
                [i, "nothing", "", ""]
                if row is None
                else [i, row["layer"], row["output"], row["operation"]]
                for i, row in enumerate(facts["inputs"])
            ],
        )
    if facts["outputs"]:
        print_table(
            "outputs",
            ["port", "type", "shape", "tensor names", "used by"],
            [
                [r["port"], r["type"], r["shape"], ", ".join(r["names"]), ", ".join(r["used_by"])]
                for r in facts["outputs"]
            ],
        )
    if "value" in facts:
        print_table("value", ["", ""], facts["value"].items())
    if facts.get("rt_info"):
        rows = [
            [k, " ".join(f"{a}={b}" for a, b in v.items())] for k, v in facts["rt_info"].items()
        ]
        print_table("rt_info", ["name", "content"], rows)
    if "bodies" in facts:
        print_table("bodies", ["name", "layers"], facts["bodies"].items())
