"""Pictures of what is odd: numbers at the ends, bodies, broken models, blocks that look alike."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from test_pictures import call, content_of, frame, states_of, tower
from vinoir import ir
from vinoir.ir.display.grouping import modules
from vinoir.ir.display.pictures.labels import TIMES
from vinoir.ir.display.pictures.painting import bytes_of
from vinoir.ir.display.pictures.scene import Picture, scene
from vinoir.ir.display.pictures.sheet import read_sheet
from vinoir.schemas import Tensor


def row(*names: str) -> ir.Model:
    """Activations one after the other."""
    net = ir.Builder("row")
    x = net.parameter("x", "f32", (1, 8))
    for name in names or ("a", "b", "c"):
        x = net.add("ReLU", "opset1", [x], name=name)
    net.result(x, name="y")
    return net.model()


def turns(count: int = 1, kinds: Sequence[str] = ("Add",), between: int = 0) -> ir.Model:
    """Loops between other layers, each of which reads a constant too."""
    net = ir.Builder("turns")
    x = net.add("ReLU", "opset1", [net.parameter("x", "f32", (3, 2))], name="m/before")
    for index in range(count):
        inner = ir.Builder("body", into=ir.Graph())
        part = inner.parameter("part", "f32", (1, 2))
        state = inner.parameter("state", "f32", (1, 2))
        inner.result(
            inner.add(kinds[index % len(kinds)], "opset1", [part, state], name="sum"), name="done"
        )
        body, wiring = inner.graph, ir.PortMap()
        slices = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
        ids = [each.id for each in (*body.parameters, *body.results)]
        wiring.add("input", external_port_id=0, internal_layer_id=ids[0], **slices)
        wiring.add("input", external_port_id=1, internal_layer_id=ids[1])
        wiring.add("output", external_port_id=2, internal_layer_id=ids[2], **slices)
        start = net.constant(np.ones((1, 2), "f4"), name=f"start{index}")
        x = net.add("TensorIterator", "opset1", [x, start], outputs=[Tensor("f32", (3, 2))],
                    name=f"m/r/loop{index}")  # fmt: skip
        x.layer.add_body("body", body, wiring)
        x.layer.back_edges = [ir.BackEdge(ids[2], ids[1])]
        for place in range(between):
            x = net.add(("Sin", "Cos", "Exp")[place], "opset1", [x], name=f"b{index}_{place}")
    net.result(net.add("Tanh", "opset1", [x], name="m/after"), name="y")
    return net.model()


def drawn(text: str) -> set[str]:
    """The names of the layers with boxes in a dot."""
    return set(re.findall(r'label="\w+\\n([^"]*)" fill', text))


# Numbers and words.


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a": -1, "b": 2}, False),
        ({"a": -5.0, "b": -2}, False),
        ({"a": -1.7e308, "b": 1.7e308, "c": 0.0}, False),
        ({"a": 5e-324, "b": 0.0}, False),
        ({"a": 3, "b": "slow", "c": 2.5}, True),
        ({"a": 3, "b": "3"}, True),
    ],
)
def test_all_numbers_and_words_can_be_painted(values: dict[str, float | str], words: bool) -> None:
    drawing = ir.draw(row()).paint("v", values)
    etree.fromstring(drawing.svg().encode())
    (paint,) = [each for each in content_of(drawing.html())["paints"] if each["name"] == "v"]
    assert paint["kind"] == ("word" if words else "number")
    assert all(isinstance(each, str) is words for each in paint["values"])
    # Equal values have one colour, others another.
    assert len(set(paint["colours"])) == len(set(map(str, values.values())))


def test_the_larger_number_is_painted_more_strongly() -> None:
    colours = {}
    for values in ({"a": -1, "b": 2}, {"a": 0, "b": 2}):
        paint = content_of(ir.draw(row()).paint("v", values).html())["paints"][-1]
        colours[values["a"]] = [paint["pairs"][each] for each in paint["colours"]]
    assert colours[-1] == colours[0]  # the least and the largest, whatever they are


def test_numbers_beyond_all_floats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ir.UsageError, match="no finite number"):
        ir.draw(row()).paint("v", {"a": 10**400})
    ir.write(row(), tmp_path / "model.xml")
    (tmp_path / "v.json").write_text(json.dumps({"a": 10**400}))
    command = ["draw", tmp_path / "model.xml", "-o", tmp_path / "m.html", "--values"]
    assert call(*command, tmp_path / "v.json") == 2


def test_many_words_take_little_time() -> None:
    names = [f"n{index}" for index in range(8000)]
    drawing = ir.draw(row(*names))
    begun = time.process_time()
    drawing.html()
    plain = time.process_time() - begun
    drawing.paint("w", {name: f"word {name}" for name in names})
    begun = time.process_time()
    drawing.html()
    assert time.process_time() - begun < 3 * plain + 0.3


def test_a_paint_of_a_known_name_is_that_of_the_values(tmp_path: Path) -> None:
    drawing = ir.draw(row()).paint("bytes", {"a": 7.0})
    assert content_of(drawing.html())["paints"][-1]["values"] == [7]
    with pytest.raises(ir.UsageError, match="by themselves"):
        drawing.paint("type", {"a": 7.0})
    ir.write(row(), tmp_path / "model.xml")
    (tmp_path / "v.json").write_text('{"a": 1}')
    command = ["draw", tmp_path / "model.xml", "-o", tmp_path / "m.html", "--paint", "type"]
    assert call(*command, "--values", tmp_path / "v.json") == 2


def test_times_of_turns_are_added(tmp_path: Path) -> None:
    ir.write(row(), tmp_path / "model.xml")
    rows = [{"name": n, "seconds": s} for n, s in [("a", 0.5), ("b", 1.0), ("a", 0.25)]]
    (tmp_path / "t.json").write_text(json.dumps({"layers": [*rows, {"name": [], "seconds": 1}]}))
    page = tmp_path / "m.html"
    assert call("draw", tmp_path / "model.xml", "-o", page, "--values", tmp_path / "t.json") == 0
    paint = content_of(page.read_text("utf-8"))["paints"][-1]
    assert paint["values"] == [0.75, 1]


# Constants.


@pytest.mark.parametrize(
    "value",
    [
        np.array([5e-324, 0] * 9),
        np.array([1.7e308] * 12),
        np.array([1.7e308, -1.7e308] * 9),
        np.array([1.7e308, -1.7e308, 0] * 9),
        np.r_[np.zeros(4096), np.ones(4095)].astype("f4"),
        np.r_[0, 1000, np.zeros(7), -7, np.zeros(99_990)].astype("f4"),
        np.array([65504, -65504] * 10, "f2"),
        np.arange(20) * 2**58,
    ],
    ids=["least", "large", "both", "three", "halves", "rare", "f16", "i64"],
)
def test_range_and_mean_are_those_of_the_constant(value: Any) -> None:
    net = ir.Builder("constant")
    net.result(net.constant(value, name="c"), name="y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (facts,) = content_of(ir.draw(net.model()).html())["constants"].values()
    wide = value.astype(np.longdouble)
    wanted = [float(each) for each in (wide.min(), wide.max(), wide.mean())]
    assert facts[1:4] == [f"{each:.4g}" for each in wanted]
    assert len(facts[4]) == 16
    if wide.min() < wide.max():
        # Both ends have a bar, as a value lies there; a sample may miss one that is rare.
        assert facts[4][0] != "0"
        assert facts[4][15] != "0" or value.size > 4096


def test_a_sample_is_called_one() -> None:
    net = ir.Builder("constant")
    for name, size in (("whole", 1 << 22), ("more", (1 << 22) + 1)):
        net.result(net.constant(np.zeros(size, "i1"), name=name))
    found = content_of(ir.draw(net.model()).html())["constants"].values()
    assert sorted(facts[6] > 0 for facts in found) == [False, True]


def test_sizes_that_nothing_could_hold_are_shown(tmp_path: Path) -> None:
    ir.write(row(), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text("utf-8")
    text = re.sub(r"<dim>1</dim>\s*<dim>8</dim>", f"<dim>{2**62}</dim>" * 20, text)
    text = text.replace('shape="1,8"', f'shape="{",".join([str(2**62)] * 20)}"')
    (tmp_path / "model.xml").write_text(text, "utf-8")
    for name in ("m.html", "m.svg"):
        assert call("draw", tmp_path / "model.xml", "-o", tmp_path / name) == 0
    assert bytes_of(read_sheet(ir.read(tmp_path / "model.xml"))).values == {}


def test_products_of_sizes_that_nothing_could_hold_are_shown() -> None:
    net = ir.Builder("large")
    sizes = (2**62,) * 20
    one, two = (net.parameter(name, "f32", sizes) for name in "ab")
    made = net.add("MatMul", "opset1", [one, two], name="product")
    net.result(made, name="y")
    model = net.model()
    assert ir.draw(model).html()


@pytest.mark.parametrize("kind", ["Multiply", "Subtract"])
@pytest.mark.parametrize("left", [0, 1])
def test_a_scale_that_is_not_there_is_shown(tmp_path: Path, kind: str, left: int) -> None:
    net = ir.Builder("scaled")
    weights = net.constant(np.ones((4, 8), "i1"), name="w")
    wide = net.add("Convert", "opset1", [weights], name="cv", destination_type="f32")
    ends = [net.constant(np.float32(2), name="scale"), wide]
    made = net.add(kind, "opset1", ends, name="scaled")
    x = net.parameter("x", "f32", (1, 8))
    made = net.add("MatMul", "opset1", [x, made], transpose_b=True, name="mm")
    net.result(made, name="y")
    ir.write(net.model(), tmp_path / "model.xml")
    root = etree.parse(tmp_path / "model.xml").getroot()
    (layer,) = root.xpath('//layer[@name="scaled"]')
    ports = layer.find("input").findall("port")
    for edge in root.xpath(f'//edge[@to-layer="{layer.get("id")}"]'):
        if edge.get("to-port") == ports[1 - left].get("id"):
            edge.getparent().remove(edge)
    layer.find("input").remove(ports[1 - left])
    if left == 0:  # the converted weights take the place that is left
        (convert,) = root.xpath('//layer[@name="cv"]/@id')
        for edge in root.xpath(f'//edge[@to-layer="{layer.get("id")}"]'):
            edge.set("from-layer", convert)
            edge.set("from-port", root.xpath('//layer[@name="cv"]/output/port/@id')[0])
    etree.ElementTree(root).write(str(tmp_path / "model.xml"))
    assert call("show", tmp_path / "model.xml") == 0


def test_a_convert_of_nothing_is_shown(tmp_path: Path) -> None:
    net = ir.Builder("scaled")
    x = net.parameter("x", "f32", (4, 8))
    wide = net.add("Convert", "opset1", [net.constant(np.ones(8, "i1"))], name="cv",
                   destination_type="f32")  # fmt: skip
    made = net.add("Multiply", "opset1", [x, wide], name="scaled")
    net.result(net.add("MatMul", "opset1", [made, x], transpose_b=True, name="mm"), name="y")
    ir.write(net.model(), tmp_path / "model.xml")
    root = etree.parse(tmp_path / "model.xml").getroot()
    (layer,) = root.xpath('//layer[@name="cv"]')
    for edge in root.xpath(f'//edge[@to-layer="{layer.get("id")}"]'):
        edge.getparent().remove(edge)
    layer.remove(layer.find("input"))
    etree.ElementTree(root).write(str(tmp_path / "model.xml"))
    assert call("show", tmp_path / "model.xml") == 0


def test_what_is_random_is_no_constant() -> None:
    net = ir.Builder("random")
    x = net.parameter("x", "f32", (1, 3))
    ends = [net.constant(np.array(each)) for each in ([1, 3], np.float32(0), np.float32(1))]
    noise = net.add("RandomUniform", "opset8", ends, name="noise", output_type="f32",
                    global_seed=0, op_seed=0)  # fmt: skip
    net.result(net.add("Add", "opset1", [x, noise], name="sum"), name="y")
    drawing = ir.draw(net.model())
    assert "noise" in drawn(drawing.dot())
    assert "RandomUniform" in drawing.mermaid()
    assert "RandomUniform" in drawing.svg()


# Bodies.


def test_hops_go_past_a_layer_with_bodies_and_into_it() -> None:
    drawing = ir.draw(turns())
    inside = {"part", "state", "sum", "done"}
    for hops, near in ((0, set()), (1, {"m/before", "m/after"}), (2, {"x", "y"})):
        inside |= near
        found = drawn(drawing.dot(around="m/r/loop0", hops=hops))
        assert found == inside, hops
    assert {"m/before", "part"} <= drawn(drawing.dot(around="m/before", hops=1))
    assert {"m/after", "done"} <= drawn(drawing.dot(around="m/after", hops=1))
    assert {"m/after", "m/before"} <= drawn(drawing.dot(around="m/after", hops=2))


def test_more_hops_than_layers_take_no_time() -> None:
    begun = time.process_time()
    assert ir.draw(row()).count(around="a", hops=10**9) == 5
    assert time.process_time() - begun < 5


def test_constants_of_an_open_layer_are_drawn() -> None:
    picture = Picture.of(turns())
    states = states_of(picture, None)
    text = ir.draw(turns()).svg()
    assert text.count('class="c"') == 1
    # Beside its frame, where nothing else is.
    seen = scene(picture, states)
    (group,) = picture.tree.owners.values()
    (open_,) = [box for box in seen.boxes if box.number == group]
    rect = next(
        each for each in etree.fromstring(text.encode()).iter() if each.get("class") == "c"
    )
    left, right = float(rect.get("x")), float(rect.get("x")) + float(rect.get("width"))
    assert left >= open_.x + open_.right
    assert right <= seen.right
    for box in seen.boxes:
        a, b, c, d = frame(picture, box)
        top, bottom = float(rect.get("y")), float(rect.get("y")) + float(rect.get("height"))
        within = box.open and a <= left and c >= right and box.number != group
        apart = c <= left or a >= right or d <= top or b >= bottom
        assert within or apart, box


def test_layers_that_a_kind_of_file_has_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(turns(), tmp_path / "model.xml")
    for name, count in (("m.svg", 10), ("m.html", 10), ("m.dot", 9), ("m.mmd", 9)):
        assert call("draw", tmp_path / "model.xml", "-o", tmp_path / name) == 0
        assert f"drew {count} layers" in capsys.readouterr().err
    words = ["--around", "m/r/loop0", "--hops", 1, "--force"]
    for name, count in (("m.svg", 8), ("m.dot", 7)):
        assert call("draw", tmp_path / "model.xml", "-o", tmp_path / name, *words) == 0
        assert f"drew {count} layers" in capsys.readouterr().err


def test_bodies_are_in_the_module_of_their_layer() -> None:
    found = {module.name: module.layers for _, module in modules(turns()).rows(None)}
    # The loop with its body and its constant, and what is after it, as that reads nothing else.
    assert found == {"m": 1 + 7, "r": 6 + 1}


def test_paths_go_through_the_walls_of_bodies() -> None:
    content = content_of(ir.draw(turns()).html())
    names = [each.name for each in read_sheet(turns()).layers]
    pairs = {(names[s], names[t]) for t, s in zip(*content["walls"], strict=True)}
    assert pairs == {("m/before", "part"), ("done", "m/after")}


def test_many_bodies_take_no_longer_each() -> None:
    took = []
    for count in (250, 2000):
        model = turns(count)
        begun = time.process_time()
        drawing = ir.draw(model)
        drawing.svg()
        took.append(time.process_time() - begun)
    assert took[1] < 8 * 2.5 * took[0] + 0.5, took


# Blocks.


def blocks(change: str, count: int = 4) -> ir.Model:
    """Blocks of which every second one is wired, or made, in another way."""
    net = ir.Builder("blocks")
    x = net.parameter("x", "f32", (1, 8))
    for index in range(count):
        other = index % 2 == 1
        axis = net.constant(np.array(1, "i8"), name=f"axis{index}")
        halves = net.add("Split", "opset1", [x, axis], name=f"split{index}", num_splits=2)
        first, second = (halves[1], halves[0]) if other and change == "outputs" else halves
        one = net.add("ReLU", "opset1", [first], name=f"a{index}")
        two = net.add("Tanh", "opset1", [second], name=f"b{index}")
        ends = [two, one] if other and change == "inputs" else [one, two]
        less = net.add("Subtract", "opset1", ends, name=f"less{index}")
        joined = net.add("Concat", "opset1", [less, one], name=f"cat{index}", axis=1)
        scale = net.constant(np.ones((1, 8), "f4"), name=f"scale{index}")
        ends = [scale, joined] if other and change == "constant" else [joined, scale]
        x = net.add("Divide", "opset1", ends, name=f"over{index}")
    net.result(x, name="y")
    return net.model()


@pytest.mark.parametrize("change", ["outputs", "inputs", "constant", "none"])
def test_blocks_that_are_wired_differently_are_not_the_same(change: str) -> None:
    groups = Picture.of(blocks(change)).tree.groups
    runs = [len(group.children) for group in groups if group.kind == "run"]
    assert runs == ([4] if change == "none" else [])


def test_layers_with_other_bodies_are_not_the_same() -> None:
    for kinds in (("Add",), ("Add", "Multiply")):
        groups = Picture.of(turns(4, kinds, between=3)).tree.groups
        assert any(each.kind == "run" for each in groups) is (len(kinds) == 1)


# Texts.


def test_an_arrow_says_what_goes_along_it() -> None:
    net = ir.Builder("topk")
    x = net.parameter("x", "f32", (2, 5))
    count = net.constant(np.array(3, "i8"))
    found = net.add("TopK", "opset3", [x, count], name="best", axis=1, mode="max", sort="value",
                    index_element_type="i32")  # fmt: skip
    net.result(net.add("ReLU", "opset1", [found[0]], name="values"), name="y")
    places = net.add("Convert", "opset1", [found[1]], name="places", destination_type="f32")
    net.result(places, name="z")
    drawing = ir.draw(net.model())
    number = {each.name: n for n, each in enumerate(drawing.picture.sheet.layers)}
    said = dict(re.findall(r'-> n(\d+) \[label="([^"]*)"', drawing.dot()))
    assert said[str(number["values"])] == f"f32 2{TIMES}3"
    assert said[str(number["places"])] == f"i32 2{TIMES}3"


def test_what_mermaid_does_not_draw_is_refused() -> None:
    net = ir.Builder("dense")
    made = [net.parameter("x", "f32", (1, 8))]
    for index in range(45):
        made.append(net.add("Concat", "opset1", [*made, made[0]], name=f"c{index}", axis=0))
    net.result(made[-1], name="y")
    with pytest.raises(ir.UsageError, match="takes 500 arrows, these are"):
        ir.draw(net.model()).mermaid()
    long = row(*("\N{GRINNING FACE}" * 58 + str(index) for index in range(195)))
    with pytest.raises(ir.UsageError, match="takes 50000 characters, these are"):
        ir.draw(long).mermaid()


def test_titles_are_those_of_their_boxes() -> None:
    tree = etree.fromstring(ir.draw(row("one", "two")).svg().encode())
    titles = {}
    for each in tree.iter("{*}title"):
        parent = each.getparent()
        assert parent is not None
        assert parent.index(each) == 0  # SVG 1.1: the first child of what it is a title of
        titles[each.text] = [etree.QName(child).localname for child in parent]
    assert {"one", "two", "x", "y"} < set(titles)
    assert titles["one"] == ["title", "rect", "text", "text"]


def test_edges_do_not_run_over_the_titles_of_open_groups() -> None:
    tree = etree.fromstring(ir.draw(turns(2)).svg().encode())
    parts = [str(each.get("class")) for each in tree]
    assert parts.count("g o") == parts.count("t o") > 0
    # What comes later is painted over what came before.
    assert max(at for at, part in enumerate(parts) if part == "e") < parts.index("t o")
    assert parts.index("t o") > max(at for at, part in enumerate(parts) if part == "g o")


def names_of(content: dict[str, Any]) -> list[str]:
    """The names as the page puts them together: in units of UTF-16."""
    found: list[bytes] = []
    for count, rest in zip(*content["names"], strict=True):
        found.append((found[-1] if found else b"")[: 2 * count] + rest.encode("utf-16-le"))
    return [each.decode("utf-16-le") for each in found]


@pytest.mark.parametrize(
    "names",
    [
        ("\N{GRINNING FACE}\N{GRINNING FACE}one", "\N{GRINNING FACE}\N{GRINNING FACE}two", "z"),
        ("\N{GRINNING FACE}", "\N{GRINNING CAT FACE WITH SMILING EYES}", "\N{GRINNING FACE}a"),
        ("layer1", "layer12", "lay"),
    ],
)
def test_names_are_put_together_as_they_are(names: Sequence[str]) -> None:
    assert names_of(content_of(ir.draw(row(*names)).html())) == ["x", *names, "y"]


def test_names_that_are_not_shown_whole_are_told() -> None:
    names = ("plain", "tab\there", "L" * 500, "back\u202eward", "\N{GRINNING FACE}")
    content = content_of(ir.draw(row(*names)).html())
    assert content["cut"] == [2, 3, 4]


def test_inputs_have_the_shapes_that_they_declare() -> None:
    net = ir.Builder("open")
    shapes = {"rank": "...", "bounds": "1..8,3", "scalar": "", "known": "1,3"}
    for name, shape in shapes.items():
        net.result(net.add("ReLU", "opset1", [net.parameter(name, "f32", shape)]), name=f"{name}_")
    model = ir.loads(*ir.dumps(net.model()))
    content = content_of(ir.draw(model).html())
    sheet = read_sheet(model)
    said = {
        layer.name: content["tensors"][content["layers"][1][number]]
        for number, layer in enumerate(sheet.layers)
        if layer.type == "Parameter"
    }
    assert said == {"rank": ["f32 ..."], "bounds": ["f32 1..8,3"], "scalar": ["f32"],
                    "known": ["f32 1,3"]}  # fmt: skip
    held = bytes_of(sheet).values
    sizes = {layer.name: held.get(n) for n, layer in enumerate(sheet.layers)}
    assert {name: sizes[name] for name in shapes} == {
        "rank": None, "bounds": None, "scalar": 4, "known": 12,
    }  # fmt: skip


def test_towers_are_still_folded() -> None:
    assert [g.label for g in Picture.of(tower(6)).tree.groups if g.kind == "run"] == ["blocks"]


def test_a_constant_with_a_body_is_shown(tmp_path: Path) -> None:
    """Which only a broken file has."""
    ir.write(turns(), tmp_path / "model.xml")
    root = etree.parse(tmp_path / "model.xml").getroot()
    body = root.find(".//body")
    constant = root.find("layers/layer[@type='Const']")
    assert body is not None
    assert constant is not None
    constant.append(body)
    etree.ElementTree(root).write(str(tmp_path / "model.xml"))
    model = ir.read(tmp_path / "model.xml")
    assert str(modules(model))
    etree.fromstring(ir.draw(model).svg().encode())
