"""Errors of the graph."""

from __future__ import annotations

import random
import re

from .base import (
    File,
    Made,
    after,
    at,
    block,
    ends,
    graph_edges,
    layers,
    line_of,
    names,
    outer,
    pick,
    put,
    set_attribute,
    text,
    without,
)


@text("error")
def lost_edge(file: File, rng: random.Random) -> Made:
    edge = pick(rng, graph_edges(file))
    if edge is None:
        return None
    return without(file, edge), at(edge), ends(file, edge)


@text("error")
def edge_to_nowhere(file: File, rng: random.Random) -> Made:
    edge = pick(rng, graph_edges(file))
    if edge is None:
        return None
    name = rng.choice(["from-layer", "to-layer"])
    return set_attribute(file, edge, name, "977"), at(edge), ends(file, edge)


@text("error")
def edge_to_no_port(file: File, rng: random.Random) -> Made:
    edge = pick(rng, graph_edges(file))
    if edge is None:
        return None
    name = rng.choice(["from-port", "to-port"])
    return set_attribute(file, edge, name, "55"), at(edge), ends(file, edge)


@text("error")
def edge_without_end(file: File, rng: random.Random) -> Made:
    edge = pick(rng, graph_edges(file))
    if edge is None:
        return None
    name = rng.choice(["from-layer", "from-port", "to-layer", "to-port"])
    value = rng.choice([None, "a", "", "-3"])
    return set_attribute(file, edge, name, value), at(edge), ends(file, edge)


@text("error")
def edge_twice(file: File, rng: random.Random) -> Made:
    edge = pick(rng, graph_edges(file))
    if edge is None:
        return None
    changed = after(file, edge.sourceline, line_of(file, edge))
    return changed, {edge.sourceline, edge.sourceline + 1}, ends(file, edge)


@text("error")
def two_edges_into_one(file: File, rng: random.Random) -> Made:
    edges = list(file.root.iterfind("edges/edge"))
    if len(edges) < 2:
        return None
    one, two = rng.sample(edges, 2)
    if one.get("from-layer") == two.get("to-layer"):
        return None
    new = re.sub(r'from-layer="\d+" from-port="\d+"',
                 f'from-layer="{one.get("from-layer")}" from-port="{one.get("from-port")}"',
                 line_of(file, two))  # fmt: skip
    return after(file, two.sourceline, new), {two.sourceline, two.sourceline + 1}, ends(file, two)


@text("error")
def self_loop(file: File, rng: random.Random) -> Made:
    rows = [
        x
        for x in outer(file)
        if x.find("output/port") is not None and x.find("input/port") is not None
    ]
    layer = pick(rng, rows)
    if layer is None:
        return None
    number = layer.get("id")
    edge = next((e for e in file.root.iterfind("edges/edge") if e.get("to-layer") == number), None)
    if edge is None:
        return None
    port = layer.find("output/port").get("id")
    new = (
        f'\t\t<edge from-layer="{number}" from-port="{port}" to-layer="{number}" '
        f'to-port="{edge.get("to-port")}" />'
    )
    return put(file, edge, new), at(edge), ends(file, edge) | names(layer)


@text("error")
def no_results(file: File, rng: random.Random) -> Made:
    rows = [x for x in outer(file) if x.get("type") in ("Result", "Assign")]
    numbers = {x.get("id") for x in rows}
    drop = set()
    for x in rows:
        first, last = block(x, file)
        drop |= set(range(first, last + 1))
    drop |= {
        e.sourceline for e in file.root.iterfind("edges/edge") if e.get("to-layer") in numbers
    }
    return "\n".join(line for n, line in enumerate(file.lines, 1) if n not in drop), set(), set()


@text("error")
def lost_layer(file: File, rng: random.Random) -> Made:
    rows = [x for x in outer(file) if x.get("type") != "Result"]
    layer = pick(rng, rows)
    if layer is None:
        return None
    number = layer.get("id")
    touching = [e for e in file.root.iterfind("edges/edge")
                if number in (e.get("from-layer"), e.get("to-layer"))]  # fmt: skip
    if not touching:
        return None
    first, last = block(layer, file)
    cut = last - first + 1
    lines, layers_ = set(), names(layer)
    for e in touching:
        lines |= {e.sourceline - cut, e.sourceline}
        layers_ |= ends(file, e)
    return without(file, layer), lines, layers_


@text("error")
def unknown_type(file: File, rng: random.Random) -> Made:
    layer = rng.choice([x for x in layers(file) if x.get("type") not in ("Result",)])
    kind = layer.get("type")
    value = rng.choice([kind + "d", kind[:1] + kind, "Foo", kind[:-1] or "Q"])
    from_table = {x.get("type") for x in layers(file)}
    if value in from_table or value in ("Pad", "If"):
        return None
    return set_attribute(file, layer, "type", value), at(layer), names(layer)


@text("error")
def unknown_opset(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    value = rng.choice(["opset99", "opset0", "Opset1", "opset", "opset01", "", "1", "opset18"])
    return set_attribute(file, layer, "version", value), at(layer), names(layer)


@text("error")
def role_in_lower_case(file: File, rng: random.Random) -> Made:
    layer = pick(rng, layers(file, "Const", "Result"))
    if layer is None:
        return None
    return set_attribute(file, layer, "type", layer.get("type").lower()), at(layer), names(layer)


@text("error")
def opset_without_it(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    number = layer.get("version", "opset1")[5:]
    if layer.get("type") in ("Parameter", "Convert", "ShapeOf", "ErfInv", "GroupedMatMul"):
        return None
    value = "opset17" if number != "17" else "opset1"
    return set_attribute(file, layer, "version", value), at(layer), names(layer)
