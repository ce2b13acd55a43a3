"""Errors of the document."""

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
    layers,
    line_of,
    matters,
    names,
    outer,
    pick,
    port_lines,
    put,
    rename_attribute,
    set_attribute,
    text,
)


@text("error")
def ir_version(file: File, rng: random.Random) -> Made:
    value = rng.choice(["7", "12", "99", "abc", "", "11.0", "-1", "2"])
    return set_attribute(file, file.root, "version", value), at(file.root), set()


@text("error")
def as_executed(file: File, rng: random.Random) -> Made:
    """Layers as those of an execution graph: without a version, with what they took."""
    marks = 'execTimeMcs="7" primitiveType="ref_any_f32" runtimePrecision="f32"'
    lines = list(file.lines)
    for order, layer in enumerate(outer(file)):
        row, data = layer.sourceline - 1, layer.find("data")
        lines[row] = re.sub(r' version="[^"]*"', "", lines[row], count=1)
        if data is None:
            lines[row] += f'<data execOrder="{order}" {marks} />'
        else:
            told = f'<data execOrder="{order}" {marks} '
            lines[data.sourceline - 1] = lines[data.sourceline - 1].replace("<data ", told, 1)
    return "\n".join(lines), at(file.root), set()


@text("error")
def no_ir_version(file: File, rng: random.Random) -> Made:
    return set_attribute(file, file.root, "version", None), at(file.root), set()


@text("error")
def wrong_root(file: File, rng: random.Random) -> Made:
    changed = file.text.replace("<net ", "<model ").replace("</net>", "</model>")
    return changed, at(file.root), set()


@text("error")
def prefixed_root(file: File, rng: random.Random) -> Made:
    changed = file.text.replace("<net ", '<o:net xmlns:o="urn:o" ').replace("</net>", "</o:net>")
    return changed, at(file.root), set()


@text("error")
def layer_without_attribute(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    name = rng.choice(["id", "name", "type", "version"])
    return set_attribute(file, layer, name, None), at(layer), names(layer)


@text("error")
def misspelled_layer_attribute(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    name, new = rng.choice(
        [("type", "Type"), ("version", "versoin"), ("name", "nmae"), ("id", "ID")]
    )
    return rename_attribute(file, layer, name, new), at(layer), names(layer)


@text("error")
def bad_layer_id(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    value = rng.choice(["-1", "one", "9223372036854775808", "1.5", "", "1a", "0x3"])
    return set_attribute(file, layer, "id", value), at(layer), names(layer)


@text("error")
def doubled_id(file: File, rng: random.Random) -> Made:
    rows = outer(file)
    if len(rows) < 2:
        return None
    one, two = rng.sample(rows, 2)
    changed = set_attribute(file, one, "id", two.get("id"))
    return changed, at(one) | at(two), names(one) | names(two)


@text("error")
def doubled_layer(file: File, rng: random.Random) -> Made:
    layer = rng.choice(outer(file))
    first, last = block(layer, file)
    changed = after(file, last, *file.lines[first - 1 : last])
    return changed, {first, last + 1}, names(layer)


@text("error")
def misspelled_section(file: File, rng: random.Random) -> Made:
    tag = rng.choice(["layers", "edges", "data", "input", "output"])
    element = pick(rng, file.all(tag))
    if (
        element is None
        or (tag == "data" and not element.attrib)
        or not (len(element) or tag == "data")
    ):
        return None
    first, last = block(element, file)
    new = rng.choice([tag.upper(), tag.capitalize(), tag[:-1] if tag != "data" else "dat"])
    if tag in ("layers", "edges") and new == tag[:-1]:
        new = tag + "s"
    lines = list(file.lines)
    lines[first - 1] = lines[first - 1].replace(f"<{tag}", f"<{new}")
    lines[last - 1] = lines[last - 1].replace(f"</{tag}>", f"</{new}>")
    if tag == "data" and not matters(element):
        return None
    return "\n".join(lines), {first, first - 1}, names(element)


@text("error")
def second_section(file: File, rng: random.Random) -> Made:
    """Half of the layers or edges in a second section, which is not read."""
    tag = rng.choice(["layers", "edges"])
    section = file.root.find(tag)
    if len(section) < 2:
        return None
    middle = section[rng.randrange(1, len(section))]
    changed = after(file, middle.sourceline - 1, f"\t</{tag}>", f"\t<{tag}>")
    line = middle.sourceline + 1
    near = {line, line - 1, line + 1}
    return changed, near, ends(file, middle) if tag == "edges" else names(middle)


@text("error")
def second_data(file: File, rng: random.Random) -> Made:
    data = pick(rng, [d for d in file.all("data") if matters(d)])
    if data is None:
        return None
    indent = re.match(r"\s*", line_of(file, data))[0]
    changed = after(file, data.sourceline - 1, f"{indent}<data />")
    return changed, {data.sourceline, data.sourceline + 1}, names(data)


@text("error")
def bad_dim(file: File, rng: random.Random) -> Made:
    dim = pick(rng, file.all("dim"))
    if dim is None:
        return None
    value = rng.choice(["?", "", "abc", "-2", "1..5", "1abc", "1.5", "1e2", "9 9"])
    return (
        put(file, dim, line_of(file, dim).replace(f">{dim.text}<", f">{value}<")),
        at(dim),
        names(dim),
    )


@text("error")
def bad_output_precision(file: File, rng: random.Random) -> Made:
    port = pick(rng, file.all("output/port"))
    if port is None or port.get("precision") is None:
        return None
    value = rng.choice(["FOO", "fp32", "F32", "float", "", "FP33", None])
    return set_attribute(file, port, "precision", value), at(port), names(port)


@text("error")
def port_without_id(file: File, rng: random.Random) -> Made:
    port = pick(rng, port_lines(file))
    if port is None or port.get("id") is None:
        return None
    value = rng.choice([None, "x", "-1", ""])
    return set_attribute(file, port, "id", value), at(port), names(port)


@text("error")
def doubled_port(file: File, rng: random.Random) -> Made:
    sides = [s for tag in ("layer/input", "layer/output") for s in file.all(tag) if len(s) > 1]
    side = pick(rng, sides)
    if side is None:
        return None
    changed = set_attribute(file, side[1], "id", side[0].get("id"))
    return changed, at(side[1]) | at(side[0]), names(side)
