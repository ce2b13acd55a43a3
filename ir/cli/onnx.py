"""``vinoir import``: an ONNX model as IR."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ...schemas import UnsupportedError, UsageError, Where
from ...schemas.printing import counted
from ..onnx import SPARE, Semantics, examine, simplified
from ..storage import beside
from .fleet import over_many
from .options import (
    STDIN,
    FileName,
    Source,
    Target,
    dry_run_option,
    force_option,
    format_option,
    output_option,
    stdin_bytes,
    target_of,
    verb,
)
from .output import note, print_json, print_table
from .progress import waiting

if TYPE_CHECKING:
    from ..onnx import Importer, Row


@partial(over_many, suffix=".onnx")
@verb(
    "import",
    "import model.onnx -o model.xml --force",
    "import model.onnx --dry-run",
    "import model.onnx --explain --semantics openvino -o imported.xml",
)
@click.argument("model", metavar="MODEL.onnx", type=FileName(allow_dash=True))
@output_option()
@force_option
@dry_run_option
@click.option("--explain", is_flag=True, help="Tell which meaning was chosen where several exist.")
@click.option(
    "--semantics",
    type=click.Choice(["onnxruntime", "openvino", "onnx"]),
    default="onnxruntime",
    show_default=True,
    help="Whose answers are wanted where runtimes differ about pooling.",
)
@click.option(
    "--no-simplify", is_flag=True, help="Write every layer as it was made, not fewer of them."
)
@format_option()
def import_command(
    model: str,
    output: str | None,
    force: bool,
    dry_run: bool,
    explain: bool,
    semantics: Semantics,
    no_simplify: bool,
    format_: str,
) -> None:
    """Turn the ONNX model MODEL.onnx into IR.

    Nodes without a counterpart in IR are listed, all of them: exit code 4.
    """
    target = target_of(Source(model), output, force=force, in_place=False, dry_run=dry_run)
    with waiting(f"importing {model}"):
        content = stdin_bytes("the model") if model == STDIN else model
        room = 0 if no_simplify else SPARE
        importer = examine(content, semantics=semantics, room=room)
    refuse_own_files(importer, target)
    cannot = [row for row in importer.rows if row.problem is not None]
    if format_ == "json":
        print_json("import", {**report(importer), "written": None if cannot else target.path})
    else:
        if dry_run or cannot:
            print_nodes(importer.rows if dry_run else cannot)
        if explain:
            print_choices(importer.rows)
    tell(importer)
    if cannot:
        raise SystemExit(exit_code(cannot))
    if target.path is not None and not no_simplify:
        with waiting("simplifying"):
            simplified(importer)
    target.write(importer.model)
    if target.path is not None:
        note(f"wrote {target.path}: {counted(len(importer.model), 'layer')}")


def refuse_own_files(importer: Importer, target: Target) -> None:
    """Refuse to write over the model that is imported, or over its tensors."""
    for path in () if target.path is None else (target.path, beside(target.path)):
        if any(os.path.exists(path) and os.path.samefile(path, own) for own in importer.files):
            raise UsageError(f"{path} is what is imported", hint="write to another name")


def exit_code(rows: list[Row]) -> int:
    """4 where nodes are not supported; 1 where the model is wrong and nothing else is amiss."""
    own = [row.problem for row in rows if not row.waits_for]
    if any(isinstance(problem, UnsupportedError) for problem in own):
        return UnsupportedError.exit_code
    return max((problem.exit_code for problem in own if problem is not None), default=4)


def state(row: Row) -> str:
    """What became of a node, in a word."""
    if row.problem is None:
        return "ok"
    if row.waits_for:
        return "waits"
    return "unsupported" if isinstance(row.problem, UnsupportedError) else "wrong"


def outcome(row: Row) -> str:
    """What a node becomes, or why nothing."""
    if row.problem is None:
        return ", ".join(
            f"{kind} x{count}" if count > 1 else kind
            for kind, count in Counter(row.becomes).items()
        )
    if row.waits_for:
        return f'it needs what "{row.waits_for[0]}" gives'
    text = row.problem.message
    return f"{text} ({row.problem.hint})" if row.problem.hint else text


def report(importer: Importer) -> dict[str, Any]:
    """Everything about an import as JSON."""
    return {
        "model": importer.place,
        "semantics": importer.semantics,
        "counts": dict(Counter(state(row) for row in importer.rows)),
        "nodes": [
            {
                "name": row.name,
                "operation": row.operation,
                "state": state(row),
                "becomes": row.becomes if row.problem is None else [],
                "problem": None if row.problem is None else outcome(row),
                "choices": [{"topic": topic, "text": text} for topic, text in row.notes],
            }
            for row in importer.rows
        ],
    }


def print_nodes(rows: list[Row]) -> None:
    """What becomes of each node."""
    print_table(
        "",
        ["node", "operator", "", "becomes"],
        [[row.name, row.operation, state(row), outcome(row)] for row in rows],
    )


def print_choices(rows: list[Row]) -> None:
    """Which meanings were chosen."""
    chosen = [
        [row.name, row.operation, topic, text]
        for row in rows
        for topic, text in dict.fromkeys(row.notes)
    ]
    if chosen:
        print_table("choices", ["node", "operator", "about", "what"], chosen)
    else:
        click.echo("No node has more than one meaning.")


def tell(importer: Importer) -> None:
    """The counts, and the operators that are missing."""
    counts = Counter(state(row) for row in importer.rows)
    place = str(Where(importer.place)) or "the model"
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    note(f"{place}: {counted(len(importer.rows), 'node')}{': ' + words if words else ''}")
    missing = Counter(row.operation for row in importer.rows if state(row) == "unsupported")
    if missing:
        note("unsupported: " + ", ".join(f"{kind} x{n}" for kind, n in missing.most_common()))


def list_operators(name: str | None, format_: str) -> None:
    """Print the ONNX operators that are supported (``vinoir ops --onnx``)."""
    from ..onnx import operators

    rows = [row for row in operators() if name is None or row.operator.lower() == name.lower()]
    if name is not None and not rows:
        near = difflib.get_close_matches(name, {row.operator for row in operators()}, 1)
        hint = f"did you mean {near[0]}?" if near else None
        raise UsageError(f'no ONNX operator that is supported is named "{name}"', hint=hint)
    if format_ == "json":
        print_json("ops", {"operators": [row._asdict() for row in rows]})
        return
    cells = [
        [row.family, row.operator, ", ".join(map(str, row.versions)), row.becomes] for row in rows
    ]
    if format_ == "markdown":
        click.echo("| family | operator | versions | becomes |\n|---|---|---|---|")
        for line in cells:
            click.echo("| " + " | ".join(line) + " |")
        return
    kinds = len({row.operator for row in rows})
    print_table(f"{kinds} ONNX operators", ["family", "operator", "versions", "becomes"], cells)
