"""``vinoir draw``: a model as a page, SVG, dot or Mermaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ...schemas import UnreadableError, UsageError, Where
from ...schemas.printing import counted, shown
from ..checking import RANK, check
from ..display import FORMATS, Drawing, draw, errors_of
from ..document import Layer, Model
from .naming import layer_names
from .options import (
    FileName,
    Source,
    force_option,
    model_options,
    output_option,
    refuse_present,
    verb,
)
from .output import note

#: What a bench tells of layers.
_TIME = "time"
#: A convolution has the time of the activation that is computed with it.
_TOGETHER = "no time of its own: computed with another layer, or nothing to compute"


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
    help="JSON: a number or word for each layer's name (in a body outer/inner), or what bench "
    "--layers --json (time) or compare --json printed: error, a layer's own, or accumulated.",
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
        paint_by(drawing, paint, Path(file))
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
    """The worst severity and all sentences of what a check finds, by the layers."""
    words: dict[Layer, str] = {}
    told: dict[Layer, list[str]] = {}
    sheet = drawing.picture.sheet
    exact: dict[tuple[str | None, int | None, str | None], list[Layer]] = {}
    named: dict[str | None, list[Layer]] = {}
    for number, layer in enumerate(sheet.layers):
        path = "/".join(f"{holder.id}/{tag}" for holder, tag in sheet.around_body(number))
        exact.setdefault((path or None, layer.id, layer.name), []).append(layer)
        named.setdefault(layer.name, []).append(layer)
    for finding in check(model).findings:
        # The layers of an older version, or of a file whose ids are wrong, are found by name.
        same = exact.get((finding.body, finding.layer, finding.name), [])
        for layer in same or named.get(finding.name, []):
            told.setdefault(layer, []).append(f"{finding.code}: {finding.sentence}")
            worst = words.get(layer, "info")
            words[layer] = min(worst, finding.severity, key=RANK.__getitem__)
    return {"values": words, "notes": {layer: "; ".join(lines) for layer, lines in told.items()}}


def paint_by(drawing: Drawing, name: str | None, path: Path) -> None:
    """Paint by what a file says of layers: names with numbers or words, a bench, a comparison."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UnreadableError(
            f"cannot be read: {error.strerror or error}", Where(str(path))
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} cannot be read as JSON: {error}") from error
    if isinstance(content, dict) and isinstance(rows := content.get("steps"), list):
        name = name or "error"
        drawing.paint(name, **errors_of(drawing.picture.sheet, name, rows))
        return
    if isinstance(content, dict) and isinstance(rows := content.get("layers"), list):
        content, unit, without = _times(rows), "s", _TOGETHER
        if name not in (None, _TIME):
            raise UsageError(
                f"a bench does not tell {shown(name)} of layers", hint=f"it tells {_TIME}"
            )
        name = _TIME
        if not content:
            raise UsageError(
                f"{path} has no times of layers", hint="bench MODEL --layers --json prints them"
            )
    else:
        unit = without = ""
    if not isinstance(content, dict) or not all(
        isinstance(value, (int, float, str)) for value in content.values()
    ):
        raise UsageError(f"{path} is no JSON object of layers' names with numbers or words")
    drawing.paint(name or "value", content, unit=unit, without=without)


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
