"""What ``vinoir show`` tells of an execution graph."""

from __future__ import annotations

from ...schemas.printing import counted
from ..display import primitives
from ..document import Model
from .output import print_json, print_pairs, print_table, say


def print_execution(model: Model, sort: str | None, format_: str) -> None:
    """Each primitive, and what it took; in the order of execution, where none is asked for."""
    from ..comparing import flattened

    rows = primitives(model)
    if sort == "time":
        rows.sort(key=lambda row: -(row.microseconds or 0))
    elif sort == "name":
        rows.sort(key=lambda row: row.name)
    whole = sum(row.microseconds or 0 for row in rows)
    facts = dict(flattened(model.rt_info, names=True))
    if format_ == "json":
        print_json(
            "show",
            {
                "name": model.name,
                "path": model.place,
                "primitives": [row._asdict() for row in rows],
                "microseconds": whole,
                "rt_info": facts,
            },
        )
        return
    timed = [row for row in rows if row.microseconds is not None]
    told = f"{whole:,} microseconds in {counted(len(timed), 'primitive')}"
    print_pairs(
        [
            ("execution graph", f"{model.name}: what OpenVINO compiled a model to"),
            ("file", model.place or ""),
            ("primitives", len(rows)),
            ("time", told if timed else "none: compile with PERF_COUNT, and infer before saving"),
            *facts.items(),
        ]
    )
    say("")
    constants = sum(row.type == "Const" for row in rows)
    print_table(
        "",
        ["order", "name", "type", "primitive", "precision", "us", "share", "layers"],
        [
            ["" if row.order is None else row.order, row.name, row.type, row.primitive,
             row.precision, *_time(row.microseconds, whole), ", ".join(row.layers)]
            for row in rows
            if row.type != "Const"
        ],
        right=(0, 5, 6),
    )  # fmt: skip
    if constants:
        say(f"and {counted(constants, 'constant')}, which --json has")


def _time(microseconds: int | None, whole: int) -> list[str]:
    """What a primitive took, and its share of all."""
    if microseconds is None:
        return ["", ""]
    return [f"{microseconds:,}", f"{microseconds / max(whole, 1):.1%}"]
