"""``vinoir draw``: a model as a page, SVG, dot or Mermaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ...schemas import UnreadableError, UsageError, Where
from ...schemas.printing import counted
from ..checking import RANK, check
from ..display import FORMATS, Drawing, draw
from ..document import Model
from .options import (
    FileName,
    Source,
    force_option,
    layer_names,
    model_options,
    output_option,
    refuse_present,
    verb,
)
from .output import note


@verb(
    "draw",
    "draw model.xml -o model.html",
    "draw model.xml -o part.svg --around conv1 --hops 3",
    "draw model.xml -o model.html --paint findings --force",
)
@model_options
@output_option("A .html, .svg, .dot or .mmd", required=True)
@click.option("--around", metavar="LAYER", shell_complete=layer_names,
              help="Only what is near a layer (not in a page).")  # fmt: skip
@click.option("--hops", type=click.IntRange(0), default=2, show_default=True, help="How near.")
@click.option(
    "--boxes", type=click.IntRange(1), help="Of .svg: open groups up to so many boxes; else all."
)
@click.option(
    "--paint",
    metavar="WHAT",
    help="type, bytes, MACs, precision, findings; or what --values FILE has.",
)
@click.option(
    "--values",
    "file",
    type=FileName(),
    help="JSON: a number or word for each layer's name, or what bench --layers --json printed.",
)
@click.option(
    "--constants/--no-constants",
    default=None,
    help="First values and histograms in the page; not given: up to 2000 constants.",
)
@force_option
def draw_command(
    source: Source,
    output: str,
    around: str | None,
    hops: int,
    boxes: int | None,
    paint: str | None,
    file: str | None,
    constants: bool | None,
    force: bool,
) -> None:
    """Draw MODEL into a page that needs no server and no network, or into .svg, .dot or .mmd."""
    refuse_present(force, output)
    _refuse_unused(Path(output).suffix.lower(), around, boxes, constants)
    found = source.read()
    drawing = draw(found)
    if file is not None:
        drawing.paint(paint or "value", **values_of(Path(file)))
    elif paint == "findings":
        drawing.paint(paint, **findings_of(found, drawing))
    elif paint is not None:
        try:
            drawing.paint(paint)
        except UsageError as error:
            error.hint = f"{error.hint}; or findings, those of vinoir check"
            raise
    count = drawing.save(
        output, around=around, hops=hops, boxes=boxes, values=constants, force=force
    )
    note(f"drew {counted(count, 'layer')} into {output}")


def _refuse_unused(
    kind: str, around: str | None, boxes: int | None, constants: bool | None
) -> None:
    """Refuse options that would change nothing of such a file."""
    context = click.get_current_context()
    if (
        around is None
        and context.get_parameter_source("hops") is click.core.ParameterSource.COMMANDLINE
    ):
        raise UsageError("--hops says how near to a layer", hint="--around LAYER names it")
    if boxes is not None and kind in FORMATS and kind != ".svg":
        raise UsageError(f"--boxes is for .svg, not for {kind}")
    if constants is not None and kind in FORMATS and kind != ".html":
        raise UsageError(f"--constants is for a page (.html), not for {kind}")


def findings_of(model: Model, drawing: Drawing) -> dict[str, Any]:
    """The worst severity and all sentences of what a check finds, by the layers' names."""
    words: dict[str, float | str] = {}
    told: dict[str, list[str]] = {}
    names = {layer.name for layer in drawing.picture.sheet.layers}
    for finding in check(model).findings:
        if finding.name in names and finding.name is not None:
            told.setdefault(finding.name, []).append(f"{finding.code}: {finding.sentence}")
            worst = str(words.get(finding.name, "info"))
            words[finding.name] = min(worst, finding.severity, key=RANK.__getitem__)
    return {"values": words, "notes": {name: "; ".join(lines) for name, lines in told.items()}}


def values_of(path: Path) -> dict[str, Any]:
    """What a file says of layers: names with numbers or words, or the layers of a bench."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UnreadableError(
            f"cannot be read: {error.strerror or error}", Where(str(path))
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} cannot be read as JSON: {error}") from error
    if isinstance(content, dict) and isinstance(rows := content.get("layers"), list):
        content, unit = _times(rows), "s"
        if not content:
            raise UsageError(
                f"{path} has no times of layers", hint="bench MODEL --layers --json prints them"
            )
    else:
        unit = ""
    if not isinstance(content, dict) or not all(
        isinstance(value, (int, float, str)) for value in content.values()
    ):
        raise UsageError(f"{path} is no JSON object of layers' names with numbers or words")
    return {"values": content, "unit": unit}


def _times(rows: list[Any]) -> dict[str, Any]:
    """Seconds by the layers' names; a layer in a body has a row for each turn."""
    times: dict[Any, Any] = {}
    for row in rows:
        if not isinstance(row, dict) or "seconds" not in row:
            continue
        name, seconds = row.get("name"), row["seconds"]
        if isinstance(name, str):
            both = isinstance(seconds, float) and isinstance(times.get(name), float)
            times[name] = times[name] + seconds if both else seconds
    return times
