"""``vinoir infer``: the types and shapes of every port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...schemas import IRError, Shape, Tensor, UsageError
from ...schemas.printing import counted
from ..checking import contradicts
from ..display import declared, operation_name, shape_text
from ..document import Layer, Model, named_inputs
from ..inference import Inferred, infer
from ..surgery import LISTS, inferred_bodies, reshape, same_declaration
from .fleet import over_many
from .options import (
    SHAPED,
    Source,
    Target,
    force_option,
    format_option,
    in_place_option,
    lacks_weights,
    limit_options,
    model_options,
    output_option,
    pairs,
    shapes_option,
    target_of,
    verb,
)
from .output import note, print_json, print_table


@over_many
@verb(
    "infer",
    "infer model.xml",
    "infer model.xml --input image=1..8,1,H,W",
    "infer model.xml --input image=4,1,16,16 -o small.xml",
)
@model_options
@shapes_option
@output_option()
@in_place_option
@force_option
@limit_options
@format_option()
def infer_command(
    source: Source,
    inputs: tuple[str, ...],
    output: str | None,
    force: bool,
    in_place: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Work out the types and shapes of every port of MODEL, beside what the file declares.

    A line with != contradicts the declaration: exit code 1, unless new shapes were given. One with
    ~ fits it, and says more or less.
    """
    target = Target(None)
    if output is not None or in_place:
        target = target_of(source, output, force=force, in_place=in_place)
    found = source.read()
    lacks_weights(source, found)
    shapes = pairs(inputs, SHAPED)
    try:
        inferred = infer(found, shapes, max_memory=max_memory, max_seconds=max_seconds)
    except IRError as error:
        if not isinstance(error, UsageError) and _rebatched(found, shapes):
            more = f"{_SET_BATCH} tries to mend all places that say the old batch"
            error.hint = "; ".join(filter(None, (error.hint, more)))
        raise
    rows = port_rows(found, inferred)
    if format_ == "json":
        outputs = {name: shape_text(tensor.shape) for name, tensor in inferred.items()}
        print_json("infer", {"model": source.path, "ports": rows, "outputs": outputs})
    else:
        print_table(
            "",
            ["layer", "operation", "port", "inferred", "", "declared"],
            [
                ["/".join(filter(None, (r["body"], r["name"]))), r["operation"],
                 "-" if r["port"] is None else r["port"], r["inferred"], _mark(r),
                 "" if r["same"] else r["declared"]]
                for r in rows
            ],
        )  # fmt: skip
    if left := _left(found, inferred, _rebatched(found, shapes)):
        names = ", ".join(f'"{name}"' for name in left[:3])
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        are = "outputs" if len(left) > 1 else "output"
        note(f"{are} {names}{more}: as before whatever the batch; {_SET_BATCH} tries to mend that")
    if target.path is not None:
        reshape(found, shapes)
        target.write(found)
        note(f"wrote {target.path}")
        return
    differing = sum(row["contradicts"] for row in rows)
    if differing and not shapes:
        verb = "differs" if differing == 1 else "differ"
        note(f"{counted(differing, 'port')} {verb} from what the file declares")
        raise SystemExit(1)


def _mark(row: Mapping[str, Any]) -> str:
    """How a row is told from those that declare what is inferred."""
    return "!=" if row["contradicts"] else "" if row["same"] else "~"


#: What lets a model take a batch that says the old one in its layers, too.
_SET_BATCH = "vinoir edit --do op=set-batch"


def _rebatched(model: Model, shapes: Mapping[str, str]) -> dict[Layer, int]:
    """The inputs of which another number of samples is asked, and nothing else; with the old."""
    found = {}
    for parameter, names in named_inputs(model.parameters):
        asked = next((shapes[name] for name in names if name in shapes), None)
        dims = parameter.outputs[0].dims if parameter.outputs else None
        if asked is not None and dims and dims[0] >= 0:
            new = Shape.parse(asked, symbols=True)
            if new.rank == len(dims) and new[0] != dims[0] and new[1:] == tuple(dims[1:]):
                found[parameter] = dims[0]
    return found


def _left(model: Model, inferred: Inferred, changed: Mapping[Layer, int]) -> list[str]:
    """The outputs that are made of these inputs, and begin with the old number all the same.

    Lists of what is found in all samples are none of them.
    """
    made, lists = set(changed), set[Layer]()
    for layer in model.order() if changed else ():
        feeders = {row[0] for row in model.sources(layer) if row is not None}
        if feeders & made:
            made.add(layer)
        if layer.type in LISTS or feeders & lists:
            lists.add(layer)
    own = made - lists
    return [
        name
        for (name, tensor), result in zip(inferred.items(), model.results, strict=False)
        if result in own and tensor.rank and tensor.shape[0] in changed.values()
    ]


def port_rows(model: Model, inferred: Inferred) -> list[dict[str, Any]]:
    """Every output port, those in bodies last: what is inferred, what is declared."""
    rows = rows_of("", inferred.ports())
    for path, body, (_, tensors) in inferred_bodies(model, inferred.tensors):
        rows += rows_of(path, Inferred(body, {**tensors}).ports())
    return rows


def rows_of(body: str, ports: Iterable[tuple[Layer, int, Tensor]]) -> list[dict[str, Any]]:
    """The output ports of one graph."""
    rows = []
    for layer, index, tensor in ports:
        port = layer.outputs[index] if index < len(layer.outputs) else None
        stated = declared(layer)[index] if port is not None else None
        rows.append(
            {
                "layer": layer.id,
                "name": layer.name,
                "body": body,
                "operation": operation_name(layer),
                "port": None if port is None else port.id,
                "names": [] if port is None else list(port.names),
                "type": str(tensor.type),
                "shape": shape_text(tensor.shape),
                "inferred": f"{tensor.type}{shape_text(tensor.shape)}",
                "declared": "nothing"
                if stated is None
                else f"{stated.type}{shape_text(stated.shape)}",
                "same": port is not None and same_declaration(port, tensor),
                "contradicts": port is not None and contradicts(port, tensor),
            }
        )
    return rows
