"""Errors of bodies and of state."""

from __future__ import annotations

import random
import re

from .base import (
    Element,
    File,
    Made,
    at,
    block,
    layers,
    line_of,
    names,
    outer,
    pick,
    set_attribute,
    text,
    without,
)


def entries(file: File, tag: str) -> list[Element]:
    return [
        e for m in ("port_map", "then_port_map", "else_port_map") for e in file.all(f"{m}/{tag}")
    ]


@text("error")
def lost_port_map_line(file: File, rng: random.Random) -> Made:
    entry = pick(rng, entries(file, "input") + entries(file, "output"))
    if entry is None or entry.get("purpose") == "current_iteration":
        return None
    return without(file, entry), {entry.sourceline, entry.sourceline - 1}, names(entry)


@text("error")
def internal_layer_unknown(file: File, rng: random.Random) -> Made:
    entry = pick(rng, entries(file, "input") + entries(file, "output"))
    if entry is None:
        return None
    other = entry.getparent().getparent()
    wrong = "99"
    if rng.random() < 0.5 and other.find("body") is not None:
        kind = "Result" if entry.tag == "input" else "Parameter"
        wrong = next(
            x.get("id") for x in other.iterfind("body/layers/layer") if x.get("type") == kind
        )
    return set_attribute(file, entry, "internal_layer_id", wrong), at(entry), names(entry)


@text("error")
def external_port_unknown(file: File, rng: random.Random) -> Made:
    entry = pick(rng, [e for e in entries(file, "input") if e.get("purpose") is None])
    if entry is None:
        return None
    return (
        set_attribute(file, entry, "external_port_id", rng.choice(["77", "9"])),
        at(entry),
        names(entry),
    )


@text("error")
def two_inputs_to_one_parameter(file: File, rng: random.Random) -> Made:
    rows = [e for e in entries(file, "input") if e.get("purpose") is None]
    for one in rows:
        for two in rows:
            if one.getparent() is two.getparent() and one is not two:
                changed = set_attribute(
                    file, one, "internal_layer_id", two.get("internal_layer_id")
                )
                return changed, at(one) | at(two) | at(one.getparent()), names(one)
    return None


@text("error")
def bad_slice(file: File, rng: random.Random) -> Made:
    entry = pick(rng, [e for e in entries(file, "input") if e.get("axis") is not None])
    if entry is None:
        return None
    name, value = rng.choice([("part_size", "0"), ("stride", "0"), ("stride", "-1"), ("axis", "9"),
                              ("start", "50"), ("part_size", "-1"), ("stride", "x"),
                              ("axis", "1x")])  # fmt: skip
    return set_attribute(file, entry, name, value), at(entry), names(entry)


@text("error")
def bad_back_edge(file: File, rng: random.Random) -> Made:
    edge = pick(rng, file.all("back_edges/edge"))
    if edge is None:
        return None
    name = rng.choice(["from-layer", "to-layer"])
    value = rng.choice(["99", None, "x", "3"])
    return set_attribute(file, edge, name, value), at(edge), names(edge)


@text("error")
def back_edge_to_slice(file: File, rng: random.Random) -> Made:
    for edge in file.all("back_edges/edge"):
        loop = edge.getparent().getparent()
        sliced = [e for e in loop.iterfind("port_map/input") if e.get("axis") is not None]
        if sliced:
            return (
                set_attribute(file, edge, "to-layer", sliced[0].get("internal_layer_id")),
                at(edge),
                names(edge),
            )
    return None


@text("error")
def lost_body(file: File, rng: random.Random) -> Made:
    section = pick(rng, file.all("body") + file.all("then_body") + file.all("else_body"))
    if section is None:
        return None
    return without(file, section), {section.sourceline}, names(section)


@text("error")
def variable_renamed(file: File, rng: random.Random) -> Made:
    pairs = layers(file, "Assign")
    layer = pick(rng, layers(file, "ReadValue", "Assign")) if pairs else None
    if layer is None:
        return None
    data = layer.find("data")
    return (
        set_attribute(file, data, "variable_id", "another"),
        set(),
        set().union(*map(names, layers(file, "ReadValue", "Assign"))),
    )


@text("error")
def variable_of_another_type(file: File, rng: random.Random) -> Made:
    layer = pick(
        rng,
        [
            x
            for x in layers(file, "ReadValue")
            if x.find("data").get("variable_type") and x.find("input/port") is not None
        ],
    )
    if layer is None:
        return None
    data = layer.find("data")
    name, value = rng.choice(
        [("variable_type", "i32"), ("variable_shape", "7,7"), ("variable_shape", "2,3,4,6")]
    )
    return set_attribute(file, data, name, value), at(data), names(layer)


@text("error")
def second_assign(file: File, rng: random.Random) -> Made:
    layer = pick(rng, [x for x in outer(file) if x.get("type") in ("Assign", "ReadValue")])
    if layer is None:
        return None
    first, last = block(layer, file)
    copy = list(file.lines[first - 1 : last])
    copy[0] = re.sub(r'id="\d+" name="[^"]*"', 'id="700" name="another"', copy[0])
    lines = [*file.lines[:last], *copy, *file.lines[last:]]
    changed = "\n".join(lines)
    for edge in file.root.iterfind("edges/edge"):
        if edge.get("to-layer") == layer.get("id"):
            old = line_of(file, edge)
            changed = changed.replace(
                old, old + "\n" + old.replace(f'to-layer="{layer.get("id")}"', 'to-layer="700"')
            )
    return changed, {first + 1, last + 2}, names(layer) | {"700", "another"}
