"""What works by luck or tolerance."""

from __future__ import annotations

import random
import re

from .base import (
    Damaged,
    File,
    Made,
    after,
    at,
    block,
    constants,
    kinds,
    layers,
    line_of,
    names,
    outer,
    pick,
    port_lines,
    put,
    raw,
    set_attribute,
    text,
    without,
)


@text("warning")
def wrong_dim(file: File, rng: random.Random) -> Made:
    rows = [d for d in file.all("output/port/dim") + file.all("input/port/dim") if d.text != "-1"]
    rows = [
        d
        for d in rows
        if d.getparent().getparent().getparent().get("type") != "Result"
        or d.getparent().getparent().tag == "input"
    ]
    dim = pick(rng, rows)
    if dim is None:
        return None
    changed = put(file, dim, line_of(file, dim).replace(f">{dim.text}<", f">{int(dim.text) + 7}<"))
    return changed, at(dim), names(dim)


@text("warning")
def lost_dim(file: File, rng: random.Random) -> Made:
    dim = pick(rng, file.all("output/port/dim"))
    if dim is None or dim.text == "-1":
        return None
    return without(file, dim), at(dim), names(dim)


@text("warning")
def wrong_precision(file: File, rng: random.Random) -> Made:
    port = pick(
        rng,
        [
            p
            for p in port_lines(file)
            if p.get("precision") and p.get("precision") != "UNSPECIFIED"
        ],
    )
    if port is None:
        return None
    new = rng.choice([p for p in ("FP32", "I64", "U8", "BOOL") if p != port.get("precision")])
    return set_attribute(file, port, "precision", new), at(port), names(port)


@text("warning")
def swapped_ports(file: File, rng: random.Random) -> Made:
    rows = [s for s in file.all("layer/input") + file.all("layer/output") if len(s) > 1]
    side = pick(rng, rows)
    if side is None:
        return None
    n = rng.randrange(len(side) - 1)
    (a, b), (c, d) = block(side[n], file), block(side[n + 1], file)
    if file.lines[a - 1 : b] == file.lines[c - 1 : d]:
        return None
    lines = file.lines[: a - 1] + file.lines[c - 1 : d] + file.lines[a - 1 : b] + file.lines[d:]
    return "\n".join(lines), {a, c, a + d - c + 1}, names(side)


@text("warning")
def dead_layer(file: File, rng: random.Random) -> Made:
    source = next((x for x in outer(file) if x.get("type") == "Parameter"), None)
    if source is None:
        return None
    port = source.find("output/port")
    dims = "".join(f"<dim>{d.text}</dim>" for d in port.iterfind("dim"))
    make = (
        '\t\t<layer id="900" name="dead" type="ShapeOf" version="opset1"><input>'
        f'<port id="0" precision="{port.get("precision")}">{dims}</port></input><output>'
        f'<port id="1" precision="I64"><dim>{len(port.findall("dim"))}</dim></port>'
        "</output></layer>"
    )
    line = file.root.find("layers").sourceline
    edge = (
        f'<edge from-layer="{source.get("id")}" from-port="{port.get("id")}" '
        'to-layer="900" to-port="0" />'
    )
    changed = after(file, line, make).replace("\t<edges>\n", f"\t<edges>\n\t\t{edge}\n")
    return None if edge not in changed else (changed, {line + 1}, {"900", "dead"})


@text("warning")
def constant_too_large(file: File, rng: random.Random) -> Made:
    data = pick(rng, [d for d in constants(file) if d.get("element_type") != "string"
                      and int(d.get("offset")) + int(d.get("size")) < len(file.weights)
                      and int(d.get("size")) > 1])  # fmt: skip
    if data is None:
        return None
    return set_attribute(file, data, "size", str(int(data.get("size")) + 1)), at(data), names(data)


@raw("warning")
def longer_weights(file: File, rng: random.Random) -> Damaged:
    if not constants(file):
        return None
    return file.text.encode(), file.weights + bytes(rng.choice([1, 100, 4096])), set(), set()


@text("warning")
def overlapping_constants(file: File, rng: random.Random) -> Made:
    rows = [
        d
        for d in constants(file)
        if int(d.get("size")) > 1 and d.get("element_type") not in ("string",)
    ]
    for one in rows:
        begin, size = int(one.get("offset")), int(one.get("size"))
        for two in rows:
            other = int(two.get("offset"))
            if two is not one and other == begin + size:
                if int(two.get("size")) + begin + 1 > len(file.weights):
                    continue
                if sum(d.get("offset") == two.get("offset") for d in rows) > 1:
                    continue
                return (
                    set_attribute(file, two, "offset", str(other - 1)),
                    at(two) | at(one),
                    names(two) | names(one),
                )
    return None


@text("warning")
def unknown_attribute(file: File, rng: random.Random) -> Made:
    data = pick(
        rng,
        [d for d in file.all("layer/data") if d.attrib and kinds(d.getparent())],
    )
    if data is None:
        return None
    changed = put(file, data, line_of(file, data).replace("<data ", '<data zz_custom="1" ', 1))
    return changed, at(data), names(data)


@raw("error")
def doctype(file: File, rng: random.Random) -> Damaged:
    changed = file.text.replace('<?xml version="1.0"?>', '<?xml version="1.0"?><!DOCTYPE net>', 1)
    return changed.encode(), file.weights, set(), set()


@raw("warning")
def blank_line_first(file: File, rng: random.Random) -> Damaged:
    return ("\n" + file.text).encode(), file.weights, set(), set()


@text("warning")
def type_in_another_case(file: File, rng: random.Random) -> Made:
    rows = [
        x
        for x in layers(file)
        if x.get("type") not in ("Const", "Result", "Parameter", "Assign", "ReadValue")
    ]
    layer = pick(rng, rows)
    if layer is None:
        return None
    kind = layer.get("type")
    value = rng.choice([kind.upper(), kind.lower(), kind.swapcase()])
    if value in (kind, "PReLU", "Relu", "PRelu", "Softmax", "IF" if kind == "IF" else ""):
        return None
    return set_attribute(file, layer, "type", value), at(layer), names(layer)


@raw("warning")
def root_in_another_case(file: File, rng: random.Random) -> Damaged:
    new = rng.choice(["NET", "Net"])
    return (
        file.text.replace("<net ", f"<{new} ").replace("</net>", f"</{new}>").encode(),
        file.weights,
        set(),
        set(),
    )


@text("warning")
def custom_operation(file: File, rng: random.Random) -> Made:
    rows = [
        x
        for x in outer(file)
        if x.get("type")
        not in (
            "Const",
            "Result",
            "Parameter",
            "Assign",
            "ReadValue",
            "If",
            "Loop",
            "TensorIterator",
        )
    ]
    layer = pick(rng, rows)
    if layer is None:
        return None
    line = re.sub(
        r'type="[^"]*" version="[^"]*"', 'type="MyOwnOp" version="extension"', line_of(file, layer)
    )
    return put(file, layer, line), at(layer), names(layer)


@text("warning")
def deep_nesting(file: File, rng: random.Random) -> Made:
    deep = "".join(f"<a{n}>" for n in range(400)) + "".join(f"</a{n}>" for n in range(399, -1, -1))
    changed = re.sub(r"\n\t<rt_info ?/>", f"\n\t<rt_info>{deep}</rt_info>", file.text)
    return changed, set(), set()


@text("warning")
def unknown_element(file: File, rng: random.Random) -> Made:
    layer = rng.choice(layers(file))
    indent = re.match(r"\s*", line_of(file, layer))[0]
    changed = after(file, layer.sourceline, f'{indent}\t<zz_extra a="1" />')
    return changed, {layer.sourceline + 1}, names(layer)


@text("warning")
def doubled_name(file: File, rng: random.Random) -> Made:
    rows = outer(file)
    if len(rows) < 2:
        return None
    one, two = rng.sample(rows, 2)
    changed = set_attribute(file, one, "name", two.get("name"))
    return changed, at(one) | at(two), names(one) | names(two)
