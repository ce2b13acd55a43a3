"""``vinoir diff``: what changed from one model to another."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from ...schemas import IRError, UsageError
from ..comparing import Differences, diff, flattened, review_lines
from ..display import draw, operation_name, shape_text
from ..document import Graph, Info, Model
from ..files import find_pair, loads, read_pair
from .options import (
    STDIN,
    FileName,
    Source,
    format_option,
    lenient_option,
    refuse_present,
    stdin_bytes,
    verb,
)
from .output import note, print_json, say


@verb(
    "diff",
    "diff model.xml small.xml",
    "diff model.xml small.xml --names --json",
    "diff model.xml small.xml -o diff.html",
    "diff --textconv model.xml",
)
@click.argument("one", metavar="A", type=FileName(allow_dash=True))
@click.argument("two", metavar="B", type=FileName(allow_dash=True), required=False)
@lenient_option
@click.option("--weights-a", type=FileName(), help="The .bin of A, where it is not beside it.")
@click.option("--weights-b", type=FileName(), help="The .bin of B, where it is not beside it.")
@click.option("--names", is_flag=True, help="Also what makes no difference: names, order.")
@click.option("--all", "everything", is_flag=True, help="Also what follows from a difference.")
@click.option("-o", "--output", type=FileName(), help="A .html: both models drawn in step.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing, the exit code tells.")
@click.option(
    "--textconv",
    is_flag=True,
    help="Print A as text in which each layer is a line or two, for git's textconv; without its "
    "weights, and what is no IR as it is.",
)
@format_option()
def diff_command(
    one: str,
    two: str | None,
    lenient: bool,
    weights_a: str | None,
    weights_b: str | None,
    names: bool,
    everything: bool,
    output: str | None,
    force: bool,
    quiet: bool,
    textconv: bool,
    format_: str,
) -> None:
    """Tell what changed from A to B; exit 1 where anything did.

    Layers are paired by what they compute; ids, order, names and where bytes stand in the .bin
    are no differences.
    """
    if textconv:
        if two is not None:
            raise UsageError("--textconv prints one model, two are given")
        say_for_git(one, lenient)
        return
    first = Source(one, weights_a, lenient).read()
    if two is None:
        raise UsageError("two models are compared, one is given", hint="vinoir diff A.xml B.xml")
    if output is not None:
        refuse_present(force, output)
    found = diff(first, Source(two, weights_b, lenient).read())
    if output is not None:
        draw(found).save(output, force=force)
    if not quiet:
        show(found, format_, everything, names)
    if output is not None:
        note(f"drew both models into {output}")
    if found:
        sys.exit(1)


def show(found: Differences, format_: str, everything: bool, names: bool) -> None:
    """Print the differences."""
    if format_ == "json":
        print_json("diff", found.as_json())
        return
    for line in review_lines(found, everything=everything, names=names):
        say(line)


def say_for_git(path: str, lenient: bool) -> None:
    """Print a model as lines, without its weights; what is no IR as it is.

    Git gives up a whole ``git diff`` where this fails, and a pattern such as ``*.xml`` also meets
    files that are no IR.
    """
    text = stdin_bytes("the model") if path == STDIN else read_pair(find_pair(path)[0])[0]
    try:
        lines = list(text_lines(loads(text, lenient=lenient, need_weights=False)))
    except IRError:
        click.echo(text, nl=False)
        return
    for line in lines:
        say(line)


def text_lines(model: Model) -> Iterator[str]:
    """A model as lines in the order in which it computes, without ids."""
    yield f"model {model.name}, IR version {model.version}"
    yield from graph_lines(model, "")
    yield from info_lines("rt_info", model.rt_info, "")


def graph_lines(graph: Graph, indent: str) -> Iterator[str]:
    """The layers of a graph, bodies and how they are wired below the layers that hold them."""
    for layer in graph.order(reachable_only=False):
        sources = [
            "nothing" if source is None
            else source[0].name + (f":{source[1]}" if len(source[0].outputs) > 1 else "")
            for source in graph.sources(layer)
        ]  # fmt: skip
        ports = [f"{port.type}{shape_text(port.tensor.shape)}" for port in layer.outputs]
        fed = f" ({', '.join(sources)})" if sources else ""
        gives = f" -> {' '.join(ports)}" if ports else ""
        yield f"{indent}{layer.name} = {operation_name(layer)}{fed}{gives}"
        inner = f"{indent}    "
        for name, text in layer.data.items():
            # Of an older version git hands over the .xml alone: nothing is said of the .bin.
            if not (layer.is_constant and name in ("offset", "size")):
                yield f"{inner}{name}: {text}"
        yield from info_lines("rt_info", layer.rt_info, inner)
        for side, ends in (("input", layer.inputs), ("output", layer.outputs)):
            for number, port in enumerate(ends):
                yield from info_lines(f"{side} {number} rt_info", port.rt_info, inner)
        for tag, body in layer.bodies.items():
            yield f"{inner}{tag}:"
            yield from graph_lines(body, f"{inner}    ")
            names = {one.id: one.name for one in body.layers}
            wiring = layer.port_maps.get(tag)
            for entry in [] if wiring is None else wiring.entries:
                said = {k: v for k, v in entry.attributes.items() if k != "internal_layer_id"}
                words = " ".join(f"{name}={text}" for name, text in said.items())
                yield f"{inner}{entry.kind} {names.get(entry.internal_layer_id)}: {words}"
            for edge in layer.back_edges:
                yield f"{inner}back {names.get(edge.from_layer)} to {names.get(edge.to_layer)}"


def info_lines(word: str, info: Info | None, indent: str) -> Iterator[str]:
    """Further information as paths."""
    for path, text in flattened(info, names=True):
        yield f"{indent}{word} {path}: {text}"
