"""What a check must not complain about."""

from __future__ import annotations

import random
import re
import string

from lxml import etree

from .base import (
    Damaged,
    File,
    Made,
    attributes,
    block,
    constants,
    layers,
    line_of,
    outer,
    pick,
    port_lines,
    raw,
    set_attribute,
    text,
    without,
)


@text("ok")
def sections_swapped(file: File, rng: random.Random) -> Made:
    section, edges = file.root.find("layers"), file.root.find("edges")
    (a, b), (c, d) = block(section, file), block(edges, file)
    lines = file.lines[: a - 1] + file.lines[c - 1 : d] + file.lines[a - 1 : b] + file.lines[d:]
    return "\n".join(lines), set(), set()


@text("ok")
def layers_shuffled(file: File, rng: random.Random) -> Made:
    rows = outer(file)
    pieces = [file.lines[block(x, file)[0] - 1 : block(x, file)[1]] for x in rows]
    keep = [i for i, x in enumerate(rows) if x.get("type") in ("Parameter", "Result")]
    mixed = list(range(len(rows)))
    rng.shuffle(mixed)
    for kind in ("Parameter", "Result"):
        places = [n for n, i in enumerate(mixed) if rows[i].get("type") == kind]
        order = sorted(mixed[n] for n in places)
        for n, i in zip(places, order, strict=True):
            mixed[n] = i
    del keep
    section = file.root.find("layers")
    a, b = block(section, file)
    body = [line for i in mixed for line in pieces[i]]
    return "\n".join([*file.lines[:a], *body, *file.lines[b - 1 :]]), set(), set()


@text("ok")
def edges_shuffled(file: File, rng: random.Random) -> Made:
    edges = [line_of(file, e) for e in file.root.iterfind("edges/edge")]
    rng.shuffle(edges)
    a, b = block(file.root.find("edges"), file)
    if b == a:
        return None
    return "\n".join([*file.lines[:a], *edges, *file.lines[b - 1 :]]), set(), set()


@text("ok")
def ids_with_gaps(file: File, rng: random.Random) -> Made:
    root = etree.fromstring(file.text.encode())
    numbers = {x.get("id"): str(int(x.get("id")) * 10 + 7) for x in root.iterfind("layers/layer")}
    for x in root.iterfind("layers/layer"):
        x.set("id", numbers[x.get("id")])
    for e in root.iterfind("edges/edge"):
        e.set("from-layer", numbers[e.get("from-layer")])
        e.set("to-layer", numbers[e.get("to-layer")])
    return etree.tostring(root).decode(), set(), set()


@text("ok")
def ports_with_gaps(file: File, rng: random.Random) -> Made:
    root = etree.fromstring(file.text.encode())
    for x in root.iterfind("layers/layer"):
        for p in x.iterfind("input/port"):
            p.set("id", str(int(p.get("id")) * 3 + 1))
        for p in x.iterfind("output/port"):
            p.set("id", str(int(p.get("id")) * 3 + 1))
    for e in root.iterfind("edges/edge"):
        e.set("from-port", str(int(e.get("from-port")) * 3 + 1))
        e.set("to-port", str(int(e.get("to-port")) * 3 + 1))
    return etree.tostring(root).decode(), set(), set()


@text("ok")
def one_line(file: File, rng: random.Random) -> Made:
    return re.sub(r">\s*\n\s*<", "><", file.text), set(), set()


@text("ok")
def children_swapped(file: File, rng: random.Random) -> Made:
    root = etree.fromstring(file.text.encode())
    for x in root.iter("layer"):
        rows = list(x)
        rng.shuffle(rows)
        x[:] = rows
    return etree.tostring(root).decode(), set(), set()


@text("ok")
def attributes_reversed(file: File, rng: random.Random) -> Made:
    root = etree.fromstring(file.text.encode())
    for x in root.iter("layer", "port", "edge", "data"):
        rows = list(x.attrib.items())[::-1]
        x.attrib.clear()
        for name, value in rows:
            x.set(name, value)
    return etree.tostring(root).decode(), set(), set()


@text("ok")
def spaces_in_lists(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind in ("int[]",))
    rows = [r for r in rows if "," in r[0].get(r[1])]
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    old = data.get(name)
    value = rng.choice(
        [old.replace(", ", ","), old.replace(", ", " , "), old + ",", " " + old, old + " "]
    )
    return set_attribute(file, data, name, value), set(), set()


@text("ok")
def lower_case_precision(file: File, rng: random.Random) -> Made:
    port = pick(rng, [p for p in port_lines(file) if p.get("precision") == "FP32"])
    if port is None:
        return None
    return set_attribute(file, port, "precision", "f32"), set(), set()


@text("ok")
def undeclared_second_output(file: File, rng: random.Random) -> Made:
    for x in layers(file, "MaxPool", "TopK", "AdaptiveMaxPool"):
        ports = x.findall("output/port")
        if len(ports) == 2:
            used = {
                e.get("from-port")
                for e in file.root.iterfind("edges/edge")
                if e.get("from-layer") == x.get("id")
            }
            if ports[1].get("id") not in used:
                return without(file, ports[1]), set(), set()
    return None


@raw("ok")
def gap_in_weights(file: File, rng: random.Random) -> Damaged:
    rows = constants(file)
    if not rows:
        return None
    root = etree.fromstring(file.text.encode())
    gap = rng.choice([1, 3, 64])
    for data in root.iter("data"):
        if "offset" in data.attrib and data.getparent().get("type") == "Const":
            data.set("offset", str(int(data.get("offset")) + gap))
    return etree.tostring(root), bytes(gap) + file.weights, set(), set()


@raw("ok")
def harmless_bytes(file: File, rng: random.Random) -> Damaged:
    kind = rng.randrange(6)
    body = file.text.replace('<?xml version="1.0"?>', "")
    if kind == 0:
        return b"\xef\xbb\xbf" + file.text.encode(), file.weights, set(), set()
    if kind == 1:
        return (
            ('<?xml version="1.0" encoding="UTF-16"?>' + body).encode("utf-16"),
            file.weights,
            set(),
            set(),
        )
    if kind == 2:
        return (
            ('<?xml version="1.0" encoding="ISO-8859-1"?>' + body).encode("latin-1"),
            file.weights,
            set(),
            set(),
        )
    if kind == 3:
        return file.text.replace("\n", "\r\n").encode(), file.weights, set(), set()
    if kind == 4:
        return (
            file.text.replace("\t<layers>", "\t<!-- a comment -->\n\t<layers>", 1).encode(),
            file.weights,
            set(),
            set(),
        )
    return body.strip().encode(), file.weights, set(), set()


@text("ok")
def newer_opset(file: File, rng: random.Random) -> Made:
    rows = layers(file, "Add", "Multiply", "Convolution", "Parameter", "Result", "Const", "Concat")
    layer = pick(rng, rows)
    if layer is None:
        return None
    return set_attribute(file, layer, "version", f"opset{rng.randrange(2, 17)}"), set(), set()


@text("ok")
def renamed(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    value = "".join(rng.choice(string.ascii_letters + "/:-._ äé") for _ in range(12))
    return set_attribute(file, layer, "name", value), set(), set()


#: Words that OpenVINO takes in no other letters.
EXACT = {
    ("DeformablePSROIPooling", "mode"), ("DetectionOutput", "code_type"), ("Interpolate", "mode"),
    ("PSROIPooling", "mode"), ("ROIPooling", "method"),
}  # fmt: skip


@text("ok")
def choice_in_another_case(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind == "enum")
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    if (data.getparent().get("type"), name) in EXACT:
        return None
    return set_attribute(file, data, name, data.get(name).upper()), set(), set()


@text("ok")
def model_information(file: File, rng: random.Random) -> Made:
    info = '<framework value="x" /><a><b value="1" /></a><info name="c d" value="2" />'
    return (
        re.sub(r"\n\t<rt_info ?/>\n</net>", f"\n\t<rt_info>{info}</rt_info>\n</net>", file.text),
        set(),
        set(),
    )
