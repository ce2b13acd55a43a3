"""``vinoir show``: what is in a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import click
import numpy as np

from ...schemas import Array, IRError, UsageError
from ...schemas.printing import counted
from ..display import (
    Module,
    constant_bytes,
    declared,
    describe,
    elements,
    macs,
    operation_name,
    precisions,
    shape_text,
    summary,
)
from ..document import Graph, Layer, Model, is_execution_graph
from ..inference import Inferred
from .executed import print_execution
from .fleet import over_many
from .naming import tensor_names
from .older import print_remarks
from .options import (
    SHAPED,
    Source,
    format_option,
    lacks_weights,
    model_options,
    pairs,
    shapes_option,
    verb,
)
from .output import bytes_text, print_json, print_pairs, print_table, say

#: Lines of rt_info that the summary has; --json has all.
_MOST_INFO = 12


@over_many
@verb(
    "show",
    "show model.xml",
    "show model.xml --layer pool1",
    "show model.xml --layers --sort macs --input image=1,1,16,16",
    "show model.xml --tree --depth 2",
    "show runtime_model.xml --sort time",
)
@model_options
@click.option("--layer", metavar="NAME", shell_complete=tensor_names,
              help="One layer, by name, id or tensor name; in a body, OUTER/NAME.")  # fmt: skip
@click.option("--layers", is_flag=True, help="Every layer, in the order of the file.")
@click.option("--tree", is_flag=True, help="The modules that the names speak of, with what each "
              "holds and computes.")  # fmt: skip
@click.option("--depth", type=click.IntRange(1), help="Of --tree: modules so deep; else all.")
@click.option("--sort", type=click.Choice(["macs", "bytes", "count", "name", "time"]),
              help="The order of layers, operations or modules: the largest first; time is of "
              "execution graphs.")  # fmt: skip
@shapes_option
@format_option()
def show_command(
    source: Source,
    layer: str | None,
    layers: bool,
    tree: bool,
    depth: int | None,
    sort: str | None,
    inputs: tuple[str, ...],
    format_: str,
) -> None:
    """Tell what is in MODEL.

    Inputs and outputs, operations with their MACs (sums of products; known where the sizes are:
    --input sets them), parameters and bytes, how weights are stored, where it came from. Types and
    shapes are inferred, where that is possible; of one --layer they are those of the file.
    Of an execution graph (OpenVINO's get_runtime_model): each primitive, and what it took.
    """
    if (layer is not None) + layers + tree > 1:
        raise UsageError("--layer, --layers and --tree exclude each other")
    if depth is not None and not tree:
        raise UsageError("--depth is of --tree")
    found = source.read()
    if is_execution_graph(found) and layer is None:
        if layers or tree or inputs or sort not in (None, "name", "time"):
            raise UsageError(
                f"{source.path} is an execution graph, of which there is one table",
                hint="of the options give --sort time or name, --layer or --json",
            )
        print_execution(found, sort, format_)
        return
    if sort == "time":
        raise UsageError(
            "a model does not say what its layers take",
            hint="vinoir bench MODEL --layers measures it",
        )
    lacks = lacks_weights(source, found)
    inferred = None
    if inputs or (layer is None and not lacks):
        from ..surgery import reshape

        # A model is looked at though a layer of it is wrong.
        with suppress(IRError) if not inputs else nullcontext():
            inferred = reshape(found, pairs(inputs, SHAPED) or None)
    if layer is not None:
        from ..surgery import layer_at

        held = layer_at(found, layer)
        one = layer_facts(held.graph or found, held)
        print_json("show", {"layer": one}) if format_ == "json" else print_layer(one)
    elif layers:
        print_layers(found, sort, format_)
    elif tree:
        print_tree(found, depth, sort, format_)
    else:
        facts = summary_facts(found, sort, inferred)
        if format_ == "json":
            print_json("show", facts)
            return
        print_summary(facts)
        if found.origin is not None and found.origin.remarks:
            print_remarks(found.origin)


def summary_facts(
    model: Model, sort: str | None = None, inferred: Inferred | None = None
) -> dict[str, Any]:
    """All that the summary tells; ``inferred``: what outputs are, where that is known."""
    from ..comparing import flattened

    facts = summary(model)
    if inferred is not None:  # ports have no ranges
        for row, tensor in zip(facts["outputs"], inferred.values(), strict=True):
            row |= describe(tensor)
    if sort is not None:
        keys: dict[str, Callable[[str], Any]] = {
            "name": lambda kind: kind,
            "macs": lambda kind: -facts["macs_by_operation"].get(kind, 0),
            "count": lambda kind: -facts["layers"][kind],
        }
        if sort == "bytes":
            raise UsageError("operations have no bytes", hint="--layers --sort bytes")
        facts["layers"] = {k: facts["layers"][k] for k in sorted(facts["layers"], key=keys[sort])}
    read = {
        layer.data["variable_id"]: layer.outputs[0].tensor
        for layer in model.everywhere()
        if layer.type == "ReadValue" and "variable_id" in layer.data and layer.outputs
    }
    facts["variables"] = [
        {"name": name, "type": str(one.type), "shape": shape_text(one.shape)}
        for name, one in read.items()
    ]
    facts["precisions"] = precisions(model)
    facts["rt_info"] = dict(flattened(model.rt_info, names=True))
    return facts


def print_summary(facts: dict[str, Any]) -> None:
    """The summary for a person."""
    held = f"{facts['parameters']:,} in {bytes_text(facts['bytes'])}"
    unknown, work = facts["macs_unknown"], facts["macs_by_operation"]
    sums = "unknown" if facts["macs"] is None else macs_text(facts["macs"])
    if unknown:
        have = "has" if unknown == 1 else "have"
        sums += f"; {counted(unknown, 'layer')} {have} unknown sizes, which --input sets"
    print_pairs(
        [
            ("model", facts["name"]),
            ("file", facts["path"]),
            ("IR version", version_text(facts)),
            ("layers", facts["layer_count"]),
            ("depth", "unknown: it has a circle" if facts["depth"] is None else facts["depth"]),
            ("parameters", held),
            ("MACs", sums),
        ]
    )
    click.echo()
    for what in ("inputs", "outputs", *(["variables"] if facts["variables"] else [])):
        shown = [key for key in ("name", "type", "shape", "layout")
                 if key != "layout" or any(row.get("layout") for row in facts[what])]  # fmt: skip
        rows = [[row[key] or "" for key in shown] for row in facts[what]]
        print_table(what, shown, rows)
    costly = ["MACs", "share"] if work else []
    print_table(
        "layers by operation",
        ["operation", "count", *costly],
        [
            [kind, count, *_costs(work.get(kind), facts["macs"] or 0)][: 2 + len(costly)]
            for kind, count in facts["layers"].items()
        ],
        right=range(1, 4),
    )
    if facts["weights"]:
        print_table(
            "weights by type",
            ["type", "constants", "elements", "size"],
            [
                [kind, row["constants"], f"{row['elements']:,}", bytes_text(row["bytes"])]
                for kind, row in facts["weights"].items()
            ],
            right=(1, 2, 3),
        )
    print_precisions(facts["precisions"])
    told = facts["rt_info"]
    if told:
        some = f" (the first {_MOST_INFO} of {len(told)}, --json has all)"
        say(f"where it came from, and what else it says{some if len(told) > _MOST_INFO else ''}")
        print_pairs([(f"  {path}", text) for path, text in list(told.items())[:_MOST_INFO]])


def _costs(count: int | None, whole: int) -> list[str]:
    """MACs and their share of all."""
    return ["", ""] if count is None else [macs_text(count), f"{count / max(whole, 1):.1%}"]


def print_precisions(facts: dict[str, Any]) -> None:
    """Compressed weights and quantized sums, where there are any."""
    if facts["stored"]:
        print_table(
            "weights that are stored otherwise than they are used",
            ["stored", "used as", "how", "constants", "elements", "size"],
            [
                [row["type"], row["becomes"], row["how"], row["constants"],
                 f"{row['elements']:,}", bytes_text(row["bytes"])]
                for row in facts["stored"]
            ],
            right=(3, 4, 5),
        )  # fmt: skip
    sums = sum(facts["sums"].values())
    levels = ", ".join(f"{count} to {n} levels" for n, count in facts["fake_quantize"].items())
    lines = [("sums of products", ", ".join(f"{n} in {k}" for k, n in facts["sums"].items()))]
    if levels:
        lines.append(("FakeQuantize", levels))
    if facts["fake_quantize"] or facts["eight_bit_sums"]:
        lines.append(("8 bits", f"{facts['eight_bit_sums']} of {sums} sums have both inputs in "
                                "8 bits"))  # fmt: skip
    if sums:
        print_pairs(lines)
        click.echo()


def macs_text(count: float) -> str:
    """A number of sums of products as a person reads it."""
    size = float(count)
    for unit in ("", "K", "M", "G"):
        if size < 1000:
            return f"{count:.0f}" if not unit else f"{size:.2f} {unit}"
        size /= 1000
    return f"{size:.2f} T"


def version_text(facts: dict[str, Any]) -> str:
    """The version of the model, and of its file where that was upgraded."""
    origin = facts.get("origin")
    now = str(facts["ir_version"])
    return now if origin is None else f"{now}, upgraded from {origin['ir_version']}"


def print_tree(model: Model, depth: int | None, sort: str | None, format_: str) -> None:
    """The modules, those within others behind them, moved in."""
    from ..display import modules

    root = modules(model)
    if format_ == "json":
        print_json("show", {"tree": root.to_json(depth, sort)})
        return
    rows = [(0, root), *((level + 1, module) for level, module in root.rows(depth, sort))]
    print_table(
        "",
        ["module", "layers", "parameters", "size", "MACs"],
        [
            ["  " * level + (module.name or "(model)"),
             module.layers, f"{module.parameters:,}", bytes_text(module.bytes),
             _known(module)]
            for level, module in rows
        ],
        right=(1, 2, 3, 4),
    )  # fmt: skip


def _known(module: Module) -> str:
    """The MACs of a module; what is not known of them is no 0."""
    if not module.macs_unknown:
        return macs_text(module.macs)
    return f"{macs_text(module.macs)} and more" if module.macs else "unknown"


def print_layers(model: Model, sort: str | None, format_: str) -> None:
    """Every layer, with what it costs where that is asked for."""
    rows = [layer_row(model, each) for each in model.layers]
    if sort in ("macs", "bytes"):
        rows.sort(key=lambda row: -(row[sort] or 0))
    elif sort == "name":
        rows.sort(key=lambda row: row["name"])
    elif sort == "count":
        raise UsageError("layers have no count", hint="--sort macs, bytes or name")
    if format_ == "json":
        print_json("show", {"layers": rows})
        return
    columns = ["id", "name", "operation", "inputs", "outputs"]
    cells = [[row["id"], row["name"], row["operation"], ", ".join(row["inputs"]),
              ", ".join(row["outputs"])] for row in rows]  # fmt: skip
    if sort == "macs":
        columns.insert(3, "MACs")
        for row, line in zip(rows, cells, strict=True):
            line.insert(3, "" if row["macs"] is None else macs_text(row["macs"]))
    elif sort == "bytes":
        columns.insert(3, "size")
        for row, line in zip(rows, cells, strict=True):
            line.insert(3, "" if row["bytes"] is None else bytes_text(row["bytes"]))
    print_table("", columns, cells, right=(0, 3) if sort in ("macs", "bytes") else (0,))


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
    count = macs(layer)
    return {
        "id": layer.id,
        "name": layer.name,
        "operation": operation_name(layer),
        "inputs": sources,
        "outputs": [f"{t.type}{shape_text(t.shape)}" for t in declared(layer)],
        "macs": None if count is None else int(count),
        "bytes": constant_bytes(layer, elements(layer)) if layer.is_constant else None,
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
    if layer.is_constant and not is_execution_graph(graph):
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
    facts["first"] = [plain_number(each) for each in value.ravel()[:10]]
    return facts


def plain_number(value: Any) -> Any:
    """One element as Python's own number or text, also of the types that NumPy has not."""
    if isinstance(value, np.generic) and value.dtype.isbuiltin != 1 and value.dtype.kind != "T":
        wide = float(value)
        return int(wide) if "int" in value.dtype.name else wide
    return value.item() if isinstance(value, np.generic) else value


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
