"""Single edits of IR files, made on the XML itself."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree
from vinoir.layers import Op

#: A layer, and the graph (``<net>`` or a body) that it stands in.
Element = Any
BODIES = ("body", "then_body", "else_body")


@dataclass
class Pair:
    """An .xml as a tree, and its .bin."""

    tree: Element
    weights: bytes

    @classmethod
    def of(cls, path: Path) -> Pair:
        return cls(etree.parse(path).getroot(), path.with_suffix(".bin").read_bytes())

    def save(self, path: Path) -> Path:
        path.write_bytes(etree.tostring(self.tree))
        path.with_suffix(".bin").write_bytes(self.weights)
        return path

    def graphs(self) -> list[Element]:
        return list(self.tree.iter("net", *BODIES))


@dataclass(frozen=True)
class Edit:
    """What was edited: kinds that are right for it, the ids of layers that may be told."""

    kinds: frozenset[str]
    body: tuple[str, ...]
    layers: frozenset[int]

    def __str__(self) -> str:
        return f"{sorted(self.kinds)} at {sorted(self.layers)} in {self.body}"


def layers_of(graph: Element) -> list[Element]:
    return graph.findall("layers/layer")


def edges_of(graph: Element) -> list[Element]:
    return graph.findall("edges/edge")


def around(graph: Element) -> tuple[str, ...]:
    """The names of the layers around a body."""
    names = [x.get("name") for x in graph.iterancestors("layer")]
    return tuple(reversed(names))


def edit(graph: Element, kinds: str, *layers: Element) -> Edit:
    ids = frozenset(int(layer.get("id")) for layer in layers)
    return Edit(frozenset(kinds.split(",")), around(graph), ids)


# Single edits: each takes a pair and a graph in it, and tells what it did; None: nothing to do.


def attribute(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = []
    for layer in layers_of(graph):
        kind, data = Op.find(layer.get("type"), layer.get("version")), layer.find("data")
        if kind is None or data is None or layer.get("type") in ("Const", "Parameter"):
            continue
        rows += [(layer, data, a) for a in kind.describe() if a.name in data.attrib]
    rng.shuffle(rows)
    for layer, data, found in rows:
        old = data.get(found.name)
        if found.kind == "int":
            new = str(int(float(old)) + 1)
        elif found.kind == "float":
            new = repr(float(old) * 2 + 1)
        elif found.kind == "bool":
            new = "false" if old.lower() in ("true", "1") else "true"
        elif found.kind == "enum" and len(found.choices) > 1:
            new = rng.choice([c for c in found.choices if c.lower() != old.lower()])
        elif found.kind == "int[]" and old.strip():
            numbers = old.split(",")
            place = rng.randrange(len(numbers))
            numbers[place] = str(int(numbers[place]) + 1)
            new = ",".join(numbers)
        else:
            continue
        data.set(found.name, new)
        return edit(graph, "attribute,type,shape,element type", layer)
    return None


def weight(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    ranges = [
        (int(d.get("offset")), int(d.get("size")))
        for d in pair.tree.iter("data")
        if d.get("offset") is not None and d.getparent().get("type") == "Const"
    ]
    rows = []
    for layer in layers_of(graph):
        data = layer.find("data")
        if layer.get("type") != "Const" or data is None or "string" in data.get("element_type"):
            continue
        if "0" in data.get("shape").replace(" ", "").split(","):
            continue
        begin, size = int(data.get("offset")), int(data.get("size"))
        if size and sum(b < begin + size and begin < b + s for b, s in ranges) == 1:
            rows.append((layer, begin, size))
    if not rows:
        return None
    layer, begin, size = rng.choice(rows)
    place = begin + rng.randrange(size)
    changed = bytearray(pair.weights)
    # Of a boolean another bit would be no other value.
    changed[place] ^= 1
    pair.weights = bytes(changed)
    return edit(graph, "constant", layer)


def ports_with(graph: Element, side: str) -> list[Element]:
    return graph.findall(f"layers/layer/{side}/port")


def size(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    dims = graph.findall("layers/layer/output/port/dim")
    if not dims:
        return None
    dim = rng.choice(dims)
    dim.text = str(int(dim.text) + 1) if dim.text != "-1" else "3"
    return edit(graph, "shape", dim.getparent().getparent().getparent())


def precision(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    ports = [p for p in ports_with(graph, "output") if p.get("precision")]
    if not ports:
        return None
    port = rng.choice(ports)
    port.set("precision", "FP64" if port.get("precision") != "FP64" else "I64")
    return edit(graph, "element type", port.getparent().getparent())


def rt_info(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    layer = rng.choice(layers_of(graph))
    found = layer.find("rt_info")
    if found is None:
        found = etree.SubElement(layer, "rt_info")
        layer.insert(0 if layer.find("data") is None else 1, found)
    number = str(rng.randrange(10**6))
    etree.SubElement(found, "attribute", name="mark", version="0", value=number)
    return edit(graph, "rt_info", layer)


def operation(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    names = ["Relu", "Sigmoid", "Tanh", "Abs", "Exp", "Cos"]
    rows = [x for x in layers_of(graph) if x.get("type") in {*names, "ReLU"}]
    pairs = [x for x in layers_of(graph) if x.get("type") in ("Add", "Multiply", "Maximum")]
    if not rows + pairs:
        return None
    layer = rng.choice(rows + pairs)
    others = names if layer in rows else ["Add", "Multiply", "Maximum"]
    others = [n for n in others if n.lower() != layer.get("type").lower()]
    layer.set("type", rng.choice(others))
    layer.set("version", "opset1")
    return edit(graph, "type,attribute", layer)


def feeder(graph: Element, layer_id: str) -> Element:
    return next(x for x in layers_of(graph) if x.get("id") == layer_id)


def told(pair: Pair, graph: Element, layer: Element) -> tuple[object, ...]:
    """What a constant says; of others which layer it is."""
    if layer.get("type") != "Const":
        return (layer.get("id"),)
    data = dict(layer.find("data").attrib)
    begin, size = int(data.pop("offset", 0)), int(data.pop("size", 0))
    return (*sorted(data.items()), pair.weights[begin : begin + size])


def swapped(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    entering: dict[str, list[Element]] = {}
    for e in edges_of(graph):
        entering.setdefault(e.get("to-layer"), []).append(e)
    rows = [found for found in entering.values() if len(found) > 1]
    rng.shuffle(rows)
    for found in rows:
        one, two = rng.sample(found, 2)
        sources = [
            (told(pair, graph, feeder(graph, e.get("from-layer"))), e.get("from-port"))
            for e in (one, two)
        ]
        if sources[0] == sources[1]:
            continue
        ends = [(e.get("from-layer"), e.get("from-port")) for e in (one, two)]
        for e, (layer, port) in zip((one, two), reversed(ends), strict=True):
            e.set("from-layer", layer)
            e.set("from-port", port)
        return edit(graph, "input", feeder(graph, one.get("to-layer")))
    return None


def inserted(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = edges_of(graph)
    if not rows:
        return None
    edge = rng.choice(rows)
    new = max(int(x.get("id")) for x in layers_of(graph)) + 1
    source = feeder(graph, edge.get("from-layer"))
    port = next(p for p in source.findall("output/port") if p.get("id") == edge.get("from-port"))
    layer = etree.SubElement(
        graph.find("layers"), "layer", id=str(new), name="put_between", type="Abs",
        version="opset1",
    )  # fmt: skip
    for number, side in enumerate(("input", "output")):
        copy = etree.SubElement(
            etree.SubElement(layer, side), "port", id=str(number), precision=port.get("precision")
        )
        for dim in port.findall("dim"):
            etree.SubElement(copy, "dim").text = dim.text
    etree.SubElement(
        graph.find("edges"), "edge",
        {"from-layer": str(new), "from-port": "1", "to-layer": edge.get("to-layer"),
         "to-port": edge.get("to-port")},
    )  # fmt: skip
    edge.set("to-layer", str(new))
    edge.set("to-port", "0")
    return edit(graph, "added", layer)


def bypassed(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = []
    for layer in layers_of(graph):
        enters = [e for e in edges_of(graph) if e.get("to-layer") == layer.get("id")]
        leaves = [e for e in edges_of(graph) if e.get("from-layer") == layer.get("id")]
        ends = ("Result", "Assign", "ReadValue")
        if len(enters) == 1 and leaves and layer.get("type") not in ends:
            rows.append((layer, enters[0], leaves))
    if not rows:
        return None
    layer, enter, leaves = rng.choice(rows)
    done = edit(graph, "removed,storage", layer)
    for leave in leaves:
        leave.set("from-layer", enter.get("from-layer"))
        leave.set("from-port", enter.get("from-port"))
    enter.getparent().remove(enter)
    layer.getparent().remove(layer)
    return done


def output_of(graph: Element, edge: Element) -> Element:
    ports = feeder(graph, edge.get("from-layer")).findall("output/port")
    return next(port for port in ports if port.get("id") == edge.get("from-port"))


def tensor(port: Element) -> tuple[object, ...]:
    """The type and the sizes that a port declares."""
    return port.get("precision"), *(dim.text for dim in port.findall("dim"))


def rewired(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    layers = layers_of(graph)
    order = {layer.get("id"): place for place, layer in enumerate(layers)}
    rows = [
        (e, layer, port)
        for e in edges_of(graph)
        for layer in layers[: order[e.get("to-layer")]]
        if layer.get("type") != "Const" and layer.get("id") != e.get("from-layer")
        for port in layer.findall("output/port")
        if tensor(port) == tensor(output_of(graph, e))
    ]
    if not rows:
        return None
    edge, layer, port = rng.choice(rows)
    edge.set("from-layer", layer.get("id"))
    edge.set("from-port", port.get("id"))
    return edit(graph, "input", feeder(graph, edge.get("to-layer")))


def other_output(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [
        (e, port)
        for e in edges_of(graph)
        for port in feeder(graph, e.get("from-layer")).findall("output/port")
        if port.get("id") != e.get("from-port")
    ]
    if not rows:
        return None
    edge, port = rng.choice(rows)
    edge.set("from-port", port.get("id"))
    return edit(graph, "input", feeder(graph, edge.get("to-layer")))


def with_data(graph: Element, kind: str, name: str) -> list[Element]:
    """What layers of a type say, of those that say something by this name."""
    found = [x.find("data") for x in layers_of(graph) if x.get("type") == kind]
    return [data for data in found if data is not None and data.get(name)]


def retyped(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    others = {"f32": "i32", "i32": "u32", "i64": "u64", "u8": "i8", "i8": "u8", "f16": "bf16"}
    rows = [
        x for x in with_data(graph, "Const", "element_type") if x.get("element_type") in others
    ]
    if not rows:
        return None
    data = rng.choice(rows)
    data.set("element_type", others[data.get("element_type")])
    return edit(graph, "element type,attribute,storage,constant,type", data.getparent())


def reshaped(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = with_data(graph, "Const", "shape")
    if not rows:
        return None
    data = rng.choice(rows)
    data.set("shape", "1," + data.get("shape"))
    return edit(graph, "shape,attribute,constant", data.getparent())


def input_shape(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = with_data(graph, "Parameter", "shape")
    if not rows:
        return None
    data = rng.choice(rows)
    sizes = data.get("shape").split(",")
    place = rng.randrange(len(sizes))
    sizes[place] = "7" if sizes[place].strip() in ("?", "-1") else "?"
    data.set("shape", ",".join(sizes))
    return edit(graph, "shape,attribute", data.getparent())


def input_type(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = with_data(graph, "Parameter", "element_type")
    if not rows:
        return None
    data = rng.choice(rows)
    data.set("element_type", "f64" if data.get("element_type") != "f64" else "i64")
    return edit(graph, "element type,attribute,type", data.getparent())


def version(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [
        (layer, name)
        for layer in layers_of(graph)
        for name in (f"opset{number}" for number in (1, 3, 4, 6, 8, 11, 13))
        if Op.find(layer.get("type"), name)
        not in (None, Op.find(layer.get("type"), layer.get("version")))
    ]
    if not rows:
        return None
    layer, name = rng.choice(rows)
    layer.set("version", name)
    return edit(graph, "type,attribute", layer)


def result_removed(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [x for x in layers_of(graph) if x.get("type") == "Result"]
    if len(rows) < 2 or graph.tag != "net":
        return None
    layer = rng.choice(rows)
    done = edit(graph, "removed", layer)
    for e in edges_of(graph):
        if e.get("to-layer") == layer.get("id"):
            e.getparent().remove(e)
    layer.getparent().remove(layer)
    return done


def result_added(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [e for e in edges_of(graph) if e.get("from-layer") is not None]
    if not rows or graph.tag != "net":
        return None
    edge = rng.choice(rows)
    port = output_of(graph, edge)
    new = str(max(int(x.get("id")) for x in layers_of(graph)) + 1)
    layer = etree.SubElement(
        graph.find("layers"), "layer", id=new, name="one_more", type="Result", version="opset1"
    )
    copy = etree.SubElement(etree.SubElement(layer, "input"), "port", id="0")
    copy.set("precision", port.get("precision") or "FP32")
    for dim in port.findall("dim"):
        etree.SubElement(copy, "dim").text = dim.text
    ends = {"from-layer": edge.get("from-layer"), "from-port": edge.get("from-port")}
    etree.SubElement(graph.find("edges"), "edge", {**ends, "to-layer": new, "to-port": "0"})
    return edit(graph, "added", layer)


def port_map(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [
        (entry, name)
        for owner in layers_of(graph)
        for entry in owner.findall("port_map/*")
        for name in ("axis", "start", "end")
        if entry.get(name)
    ]
    if not rows:
        return None
    entry, name = rng.choice(rows)
    entry.set(name, str(int(entry.get(name)) + 1))
    return edit(graph, "wiring", entry.getparent().getparent())


def unheard_of(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [x.find("data") for x in layers_of(graph) if x.get("type") != "Const"]
    rows = [data for data in rows if data is not None]
    if not rows:
        return None
    data = rng.choice(rows)
    data.set("unheard_of", "1")
    return edit(graph, "attribute", data.getparent())


def exchanged(graph: Element, path: str, name: str, rng: random.Random) -> Edit | None:
    """Let two entries of a loop, found by a path, say each what the other said."""
    rows = [
        (one, two)
        for layer in layers_of(graph)
        for one in layer.findall(path)
        for two in layer.findall(path)
        if one.get(name) < two.get(name)
    ]
    if not rows:
        return None
    one, two = rng.choice(rows)
    said = one.get(name), two.get(name)
    one.set(name, said[1])
    two.set(name, said[0])
    return edit(graph, "wiring", one.getparent().getparent())


def ends_exchanged(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    """What two inputs of a loop are inside."""
    return exchanged(graph, "port_map/input", "internal_layer_id", rng)


def turns_exchanged(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    """What two values of a loop become in its next turn."""
    return exchanged(graph, "back_edges/edge", "from-layer", rng)


def number_of(pair: Pair, graph: Element, rng: random.Random, wanted: float) -> Edit | None:
    """A number of a constant that nothing else shares bytes with becomes this one."""
    kinds = {"f64": "<d", "f32": "<f", "f16": "<e"}
    held = [d for d in pair.tree.iter("data") if d.getparent().get("type") == "Const"]
    ranges = [(int(d.get("offset", 0)), int(d.get("size", 0))) for d in held]
    rows = []
    for data in with_data(graph, "Const", "size"):
        begin, size = int(data.get("offset")), int(data.get("size"))
        kind = kinds.get(data.get("element_type"))
        alone = sum(b < begin + size and begin < b + s for b, s in ranges) == 1
        if kind is None or not size or not alone or "0" in data.get("shape").split(","):
            continue
        new = struct.pack(kind, wanted)
        (was,) = struct.unpack_from(kind, pair.weights, begin)
        if was == was and (wanted or (was == 0 and not pair.weights[begin + len(new) - 1])):
            rows.append((data, begin, new))
    if not rows:
        return None
    data, begin, new = rng.choice(rows)
    pair.weights = pair.weights[:begin] + new + pair.weights[begin + len(new) :]
    return edit(graph, "constant", data.getparent())


def no_number(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    return number_of(pair, graph, rng, float("nan"))


def less_than_nothing(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    return number_of(pair, graph, rng, -0.0)


def layout(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [x for x in layers_of(graph) if x.get("type") == "Parameter"]
    if not rows:
        return None
    layer = rng.choice(rows)
    info = layer.find("rt_info")
    if info is None:
        info = etree.Element("rt_info")
        layer.insert(0 if layer.find("data") is None else 1, info)
    held = info.find("attribute[@name='layout']")
    if held is None:
        held = etree.SubElement(info, "attribute", name="layout", version="0")
    held.set("layout", "[N,?,Q]")
    return edit(graph, "rt_info", layer)


def port_info(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    port = rng.choice(ports_with(graph, "output") or [None])
    if port is None:
        return None
    info = etree.SubElement(port, "rt_info")
    etree.SubElement(info, "attribute", name="mark", version="0", value=str(rng.random()))
    return edit(graph, "rt_info", port.getparent().getparent())


def unfed(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    """An input that is fed by nothing any more."""
    if not edges_of(graph):
        return None
    edge = rng.choice(edges_of(graph))
    edge.getparent().remove(edge)
    return edit(graph, "input", feeder(graph, edge.get("to-layer")))


def somebodys_own(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    """An operation that nobody else knows in the place of another."""
    held = ("Const", "Parameter", "Result", "If", "Loop", "TensorIterator")
    rows = [x for x in layers_of(graph) if x.get("type") not in held]
    if not rows:
        return None
    layer = rng.choice(rows)
    layer.set("type", "Somebody")
    layer.set("version", "extension")
    return edit(graph, "type", layer)


def other_variable(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    rows = [*with_data(graph, "ReadValue", "variable_id"), *with_data(graph, "Assign",
            "variable_id")]  # fmt: skip
    if not rows:
        return None
    data = rng.choice(rows)
    data.set("variable_id", "another")
    return edit(graph, "attribute", data.getparent())


def taken_away(graph: Element, path: str, rng: random.Random) -> Edit | None:
    """Leave out one of the entries of a path, at the layers of bodies."""
    rows = [one for layer in layers_of(graph) for one in layer.findall(path)]
    if not rows:
        return None
    one = rng.choice(rows)
    layer = one.getparent().getparent()
    one.getparent().remove(one)
    return edit(graph, "wiring", layer)


def turn_removed(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    return taken_away(graph, "back_edges/edge", rng)


def end_removed(pair: Pair, graph: Element, rng: random.Random) -> Edit | None:
    return taken_away(graph, rng.choice(["port_map/input", "port_map/output"]), rng)


EDITS: list[Callable[[Pair, Element, random.Random], Edit | None]] = [
    attribute, weight, size, precision, rt_info, operation, swapped, inserted, bypassed,
    rewired, other_output, retyped, reshaped, input_shape, input_type, version, result_removed,
    result_added, port_map, unheard_of, ends_exchanged, turns_exchanged, no_number,
    less_than_nothing, layout, port_info, unfed, somebodys_own, other_variable, turn_removed,
    end_removed,
]  # fmt: skip


def edits(path: Path, rng: random.Random) -> Iterator[tuple[str, Pair, Edit]]:
    """Each kind of edit made once at random, in the model or in a body of it."""
    for change in EDITS:
        pair = Pair.of(path)
        done = change(pair, rng.choice(pair.graphs()), rng)
        if done is not None:
            yield change.__name__, pair, done
