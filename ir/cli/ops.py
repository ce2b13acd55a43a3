"""``vinoir ops``: the operations that are supported."""

from __future__ import annotations

import difflib
from typing import Any

import click

from ... import layers  # declares the operations
from ...layers.base import Op
from ...schemas import UsageError
from .options import format_option, verb
from .output import note, print_json, print_pairs, print_table


@verb(
    "ops",
    "ops",
    "ops MaxPool",
    "ops --format markdown",
    "ops --onnx AveragePool",
    "ops --older Pooling",
)
@click.argument("name", required=False, shell_complete=lambda ctx, param, text: [
    kind for kind in sorted(Op.registry.types()) if kind.lower().startswith(text.lower())
])  # fmt: skip
@click.option("--onnx", "of_onnx", is_flag=True, help="Instead: the ONNX operators that import.")
@click.option("--older", is_flag=True, help="Instead: the layer types of IR v2 to v7.")
@format_option("markdown")
def ops_command(name: str | None, of_onnx: bool, older: bool, format_: str) -> None:
    """List the operations, or tell one's versions, attributes, inputs and outputs (NAME)."""
    if of_onnx:
        from .onnx import list_operators

        list_operators(name, format_)
        return
    if older:
        from .older import list_older

        list_older(name, format_)
        return
    load_plugins()
    found = sorted(Op.registry.values(), key=lambda op: (op.family, op.xml_type, op.number))
    if name is not None:
        wanted = name.lower()
        found = [op for op in found if wanted in (op.xml_type.lower(), op.spec().lower())]
        if not found:
            known = {kind.lower(): kind for kind, _ in Op.registry}
            near = difflib.get_close_matches(wanted, known, 1)
            hint = f"did you mean {known[near[0]]}?" if near else None
            raise UsageError(f'no operation is named "{name}"', hint=hint)
    rows = [facts(op) for op in found]
    if format_ == "json":
        print_json("ops", {"operations": rows})
    elif name is not None:
        for row in rows:
            print_operation(row)
    elif format_ == "markdown":
        print_markdown(found)
    else:
        print_table(
            f"{len(rows)} operation versions",
            ["family", "operation", "opsets", "attributes"],
            [
                [r["family"], r["operation"], span(r["versions"]),
                 ", ".join(a["name"] for a in r["attributes"])]
                for r in rows
            ],
        )  # fmt: skip


def load_plugins() -> None:
    """Import what installed packages offer; one that cannot be imported is told, no more."""
    try:
        # What is found of a type that nobody has is nothing, and all that may have it is asked.
        Op.find("", "extension")
    except Exception as error:
        note(f"operations of an installed package cannot be had: {error}")


def facts(op: type[Op]) -> dict[str, Any]:
    """Everything about one version of an operation."""
    names, least, most = op.arity()
    own = op.__module__.startswith(f"{layers.__name__}.")
    return {
        "operation": op.spec(),
        "type": op.xml_type,
        "version": op.version(),
        "versions": list(op.opsets()),
        "family": op.family,
        "package": None if own else op.__module__.partition(".")[0],
        "summary": (op.__doc__ or "").partition("\n")[0].replace("``", "`"),
        "inputs": list(names),
        "least_inputs": least,
        "most_inputs": most,
        "attributes": [attribute._asdict() for attribute in op.describe()],
    }


def span(versions: list[str]) -> str:
    """A row of opsets in short."""
    numbers = sorted(int(v[5:]) for v in versions if v.startswith("opset"))
    if not numbers:
        return ", ".join(versions)
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def print_operation(row: dict[str, Any]) -> None:
    """One version of an operation for a person."""
    print_pairs(
        [
            ("operation", row["operation"]),
            ("", row["summary"]),
            ("in the XML", f'type="{row["type"]}" version="{row["version"]}"'),
            ("read as", ", ".join(row["versions"])),
            ("family", row["family"]),
            *([("offered by", row["package"])] if row["package"] else []),
            ("inputs", ", ".join(
                name if i < row["least_inputs"] else f"[{name}]"
                for i, name in enumerate(row["inputs"])
            ) or "none"),
        ]
    )  # fmt: skip
    click.echo()
    if row["attributes"]:
        print_table(
            "attributes",
            ["name", "type", "default", "values"],
            [
                [a["name"], a["kind"], _default(a),
                 ", ".join(a["choices"])]
                for a in row["attributes"]
            ],
        )  # fmt: skip


def print_markdown(found: list[type[Op]]) -> None:
    """The table of the README."""
    families: dict[str, list[type[Op]]] = {}
    for op in found:
        families.setdefault(op.family, []).append(op)
    click.echo("| family | operations |\n|---|---|")
    for family, operations in families.items():
        versions: dict[str, list[str]] = {}
        for op in operations:
            versions.setdefault(op.xml_type, []).append(str(op.number))
        listed = ", ".join(f"{kind}-{'/'.join(numbers)}" for kind, numbers in versions.items())
        click.echo(f"| {family} ({len(operations)}) | {listed} |")
    click.echo(f"\n{len(found)} operation versions")


def _default(attribute: dict[str, Any]) -> str:
    """What an attribute is where a file does not say it."""
    if attribute["required"]:
        return "required"
    return "none" if attribute["default"] is None else attribute["default"] or '""'
