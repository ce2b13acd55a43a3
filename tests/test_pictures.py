"""Pictures: nothing overlaps, no edge runs through a box, all that is in a model is there."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import lzma
import random
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium
from conftest import SHARED, Written
from lxml import etree
from networks import Drawer
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.display.pictures.hierarchy import Group
from vinoir.ir.display.pictures.scene import OPEN, SAMPLE, Box, Picture, scene

HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "comment": "<!--<script>",
    "controls": "a\tb\nc",
    "direction": "abc\u202egnp.exe\u2066",
    "quotes": "\"'`&amp;&lt;]]>@DATA@",
    "long": "x" * 1_000_000,
    "dot": '"]; evil [label="\\',
    "mermaid": 'a"] --> b; click b "javascript:alert(1)"',
}


def tangle(seed: int, layers: int = 60) -> ir.Model:
    """Layers that read whatever came before them, near or far."""
    rng = random.Random(seed)
    net = ir.Builder(f"tangle{seed}")
    made = [net.parameter(f"x{i}", "f32", (1, 8)) for i in range(rng.randint(1, 3))]
    scopes = ["", "a/", "a/b/", "a/c/", "d.0/", "d.1/"]
    for index in range(layers):
        near = made[-rng.choice([1, 2, 3, 8, len(made)]) :]
        one, two = rng.choice(near), rng.choice(made)
        name = f"{rng.choice(scopes)}n{index}"
        kind = rng.random()
        if kind < 0.3:
            two = net.constant(np.ones((1, 8), "f4"))
        if kind < 0.7:
            made.append(net.add("Add", "opset1", [one, two], name=name))
        else:
            made.append(net.add("ReLU", "opset1", [one], name=name))
    for index in range(rng.randint(1, 3)):
        net.result(made[-1 - index], name=f"y{index}")
    return net.model()


def tower(blocks: int = 12, *, named: bool = False) -> ir.Model:
    """Equal blocks with a way around each."""
    net = ir.Builder("tower")
    x = net.parameter("x", "f32", (1, 8, 6, 6))
    for block in range(blocks):
        scope = f"net/blocks.{block}/" if named else ""
        start = x
        for part in ("one", "two"):
            weights = net.constant(np.full((8, 8, 3, 3), 0.1, "f4"), name=f"{scope}w{part}{block}")
            x = net.add(
                "Convolution", "opset1", [x, weights], name=f"{scope}conv_{part}{block}",
                strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
            )  # fmt: skip
            x = net.add("ReLU", "opset1", [x], name=f"{scope}relu_{part}{block}")
        x = net.add("Add", "opset1", [x, start], name=f"{scope}add{block}")
    net.result(x, name="y")
    return net.model()


def content_of(page: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert found is not None
    content: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1]), -15))
    return content


def states_of(picture: Picture, seed: int | None) -> dict[int, int]:
    """All groups open, or some of them."""
    rng = random.Random(seed)
    states = {picture.tree.root: OPEN}
    for index, group in enumerate(picture.tree.groups[:-1]):
        state = OPEN if seed is None else rng.choice([0, SAMPLE, OPEN, OPEN])
        states[picture.tree.count + index] = OPEN if group.kind != "run" and state else state
    return states


def frame(picture: Picture, box: Box, *, chips: bool = True) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what a box takes."""
    beside = 0.0 if box.open or not chips else float(picture.labels.chips[box.number])
    return box.x - box.left, box.y, box.x + box.right + beside, box.y + box.height


def check_scene(picture: Picture, states: dict[int, int]) -> None:
    """Closed boxes are apart, groups hold what is in them, edges pass beside boxes."""
    seen = scene(picture, states)
    closed = [box for box in seen.boxes if not box.open]
    frames = np.array([frame(picture, box) for box in closed]).reshape(-1, 4)
    left, top, right, bottom = frames.T
    for index, (a, b, c, d) in enumerate(frames.tolist()):
        over = (left < c - 0.01) & (right > a + 0.01) & (top < d - 0.01) & (bottom > b + 0.01)
        assert over.sum() == 1, (index, closed[index], [closed[i] for i in np.flatnonzero(over)])
    holders: list[Box] = []
    for box in seen.boxes:
        holders = holders[: box.depth]
        for outer in holders[1:]:
            a, b, c, d = frame(picture, box)
            assert outer.x - outer.left <= a + 0.01, (outer, box)
            assert outer.x + outer.right >= c - 0.01, (outer, box)
            assert outer.y <= b + 0.01, (outer, box)
            assert outer.y + outer.height >= d - 0.01, (outer, box)
        holders.append(box)
    for line in seen.lines:
        (x0, y0), (x1, y1) = line.points[0], line.points[-1]
        for (ax, ay), (bx, by) in itertools.pairwise(line.points):
            assert by >= ay - 0.01, line
            a, c = min(ax, bx), max(ax, bx)
            over = (
                (left < c - 0.01) & (right > a + 0.01) & (top < by - 0.01) & (bottom > ay + 0.01)
            )
            # Its own ends touch it, from below and above; a box with high chips is less high.
            for hit in np.flatnonzero(over).tolist():
                inside = left[hit] <= ax <= right[hit] and a == c
                ends = ((x0, y0), (x1, y1))
                own = [abs(ax - x) < 0.01 and top[hit] <= y <= bottom[hit] for x, y in ends]
                assert inside, (line, closed[hit])
                assert any(own), (line, closed[hit])


def models() -> Iterator[tuple[str, Callable[[], ir.Model]]]:
    for seed in range(12):
        yield f"tangle{seed}", lambda seed=seed: tangle(seed)
    for seed in range(6):
        yield f"network{seed}", lambda seed=seed: Drawer(seed).model(layers=25)
    yield "tower", tower
    yield "named tower", lambda: tower(named=True)


@pytest.mark.parametrize(
    "make", [make for _, make in models()], ids=[name for name, _ in models()]
)
def test_nothing_overlaps_however_it_is_opened(make: Callable[[], ir.Model]) -> None:
    picture = Picture.of(make())
    for seed in (None, 1, 2, 3):
        check_scene(picture, states_of(picture, seed))
    check_scene(picture, picture.opened())
    check_scene(picture, {picture.tree.root: OPEN})


@pytest.mark.parametrize("name", ["If.8", "Loop.5", "TensorIterator"])
def test_bodies_are_in_their_box(written: Written, name: str) -> None:
    for path in written.all(f"{name}*"):
        model = ir.read(path)
        picture = Picture.of(model)
        check_scene(picture, states_of(picture, None))
        inside = [layer for layer in model.everywhere() if layer.graph is not model]
        boxes = {box.number for box in scene(picture, states_of(picture, None)).boxes}
        for number, layer in enumerate(picture.sheet.layers):
            if layer in inside and picture.sheet.shown(number):
                assert picture.tree.owners.get(number, number) in boxes
        # Values go on inside: from the layer around to the body's inputs.
        if inside:
            assert any(line.points for line in scene(picture, states_of(picture, None)).lines)


def test_every_layer_is_a_box_or_a_chip() -> None:
    for seed in range(6):
        picture = Picture.of(tangle(seed))
        sheet = picture.sheet
        boxes = {box.number for box in scene(picture, states_of(picture, None)).boxes}
        chips = {chip for found in sheet.chips.values() for chip in found}
        for number in range(len(sheet.layers)):
            if sheet.chip[number] < 0:
                assert number in boxes
            else:
                assert sheet.chip[number] in chips
        wired = {(s, t) for s, t, _ in sheet.wires}
        wanted = {(s, t) for s, _, t, _ in sheet.edges if sheet.shown(s) and sheet.shown(t)}
        assert wired == wanted


def test_the_main_path_is_straight() -> None:
    picture = Picture.of(tower(3))
    seen = scene(picture, states_of(picture, None))
    types = {"Parameter", "Convolution", "ReLU", "Add", "Result"}
    middles = {
        round(box.x, 3)
        for box in seen.boxes
        if box.number < picture.tree.count and picture.sheet.layers[box.number].type in types
    }
    assert len(middles) == 1


def test_computations_of_shapes_are_beside_the_main_path() -> None:
    net = ir.Builder("shapes")
    x = net.parameter("x", "f32", "?,8")
    a = net.add("ReLU", "opset1", [x], name="a")
    shape = net.add("ShapeOf", "opset3", [a], name="shape", output_type="i64")
    for index in range(5):
        shape = net.add("Abs", "opset1", [shape], name=f"abs{index}")
    b = net.add("Reshape", "opset1", [a, shape], name="b", special_zero=False)
    net.result(b, name="y")
    picture = Picture.of(net.model())
    place = {picture.sheet.layers[box.number].name: box.x
             for box in scene(picture, states_of(picture, None)).boxes
             if box.number < picture.tree.count}  # fmt: skip
    assert place["x"] == place["a"] == place["b"]
    assert place["abs2"] != place["a"]


@pytest.mark.parametrize("named", [False, True])
def test_equal_blocks_are_folded(named: bool) -> None:
    tree = Picture.of(tower(12, named=named)).tree
    runs = [group for group in tree.groups if group.kind == "run"]
    assert [len(run.children) for run in runs if len(run.children) > 3] == [12]
    if named:
        assert runs[-1].label.endswith("blocks")


def test_blocks_that_differ_are_not_folded() -> None:
    model = tower(12)
    odd = model.layer("relu_two5")
    odd.type, odd.version = "Sigmoid", "opset1"
    runs = [g for g in Picture.of(model).tree.groups if g.kind == "run" and len(g.children) > 2]
    assert sorted(len(run.children) for run in runs) == [5, 6]


def test_modules_are_boxes_even_where_they_feed_each_other() -> None:
    net = ir.Builder("modules")
    x = net.parameter("x", "f32", (1, 8))
    for index in range(4):
        for scope in ("left", "right"):
            for part in range(3):
                x = net.add("ReLU", "opset1", [x], name=f"{scope}/r{index}{part}")
    net.result(x, name="y")
    picture = Picture.of(net.model())
    check_scene(picture, states_of(picture, None))
    modules = [group.label for group in picture.tree.groups if group.kind == "module"]
    assert set(modules) <= {"left", "right"}
    assert picture.tree.groups[-1].children


def test_groups_are_intervals_of_one_order() -> None:
    for seed in range(8):
        tree = Picture.of(tangle(seed)).tree
        rank: dict[int, int] = {}
        stack = [tree.root]
        while stack:
            each = stack.pop()
            if each < tree.count:
                rank[each] = len(rank)
            else:
                group: Group = tree.groups[each - tree.count]
                stack += reversed(group.children)
        picture = Picture.of(tangle(seed))
        for source, target, _ in picture.sheet.wires:
            assert rank[source] < rank[target]


def test_a_page_is_small_and_strict() -> None:
    page = ir.draw(tower(40)).html()
    data = re.search(r'id="data">([^<]*)<', page)
    assert data is not None
    assert len(page) - len(data[1]) <= 150_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert body is not None
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert not re.search(r"https?:|innerHTML|eval\(|document\.write", page)


def test_data_of_a_page_are_few() -> None:
    model = ir.Model()
    for seed in (1, 2):
        model = tangle(seed, 2000)
        page = ir.draw(model).html(values=False)
        data = re.search(r'id="data">([^<]*)<', page)
        assert data is not None
        assert len(data[1]) * 3 / 4 <= 100 * len(model)


def test_the_same_model_gives_the_same_page() -> None:
    assert ir.draw(tangle(3)).html() == ir.draw(tangle(3)).html()


def hostile() -> ir.Model:
    net = ir.Builder("<b>&amp;</title><script>")
    x = net.parameter("x", "f32", (1, 4))
    for key, name in HOSTILE.items():
        x = net.add("ReLU", "opset1", [x], name=name)
        assert x.layer.name == name, key
    net.result(x, name="y")
    return net.model()


def test_hostile_names_do_nothing() -> None:
    model = hostile()
    model.layer("x").type = "Parameter"
    drawing = ir.draw(model)
    page = drawing.html()
    assert len(page) < 200_000
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "alert" not in page
    names = content_of(page)["names"]
    assert all(text.isprintable() for text in names[1])
    picture = drawing.svg()
    tree = etree.fromstring(picture.encode())
    assert {etree.QName(each).localname for each in tree.iter()} <= {
        "svg", "title", "style", "path", "g", "rect", "text"
    }  # fmt: skip
    for line in drawing.dot().splitlines():
        # Quotes are in pairs, and what is between them holds none.
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        assert '"' not in bare, line
        assert "evil" not in bare, line
    chart = drawing.mermaid()
    boxes = [line for line in chart.splitlines() if '["' in line]
    assert len(boxes) == len(HOSTILE) + 2
    assert all(line.count('"') == 2 for line in boxes)
    assert "javascript:" not in chart
    assert any("javascript#58;alert" in line for line in boxes)  # the name, and no more than that


def test_hostile_types_do_nothing() -> None:
    model = tower(1)
    model.layer("relu_one0").type = "</script><img src=x>"
    model.layer("relu_one0").version = "\u202e<b>"
    model.layer("relu_two0").data = {"</script>": "\x00\u2067" * 9, "a": "b" * 10**6}
    page = ir.draw(model).html()
    assert page.count("</script>") == 2
    etree.fromstring(ir.draw(model).svg().encode())
    assert len(page) < 200_000


def test_what_is_around_a_layer() -> None:
    drawing = ir.draw(tower(4))
    near = drawing.mermaid(around="relu_one1", hops=1)
    assert near.count('["') == 3
    assert drawing.mermaid(around="relu_one1", hops=2).count('["') > 3
    assert "Convolution" in drawing.svg(around="relu_one1", hops=1)
    with pytest.raises(ir.UsageError, match="no layer or tensor"):
        drawing.svg(around="nothing")
    for name in ("x", "wone0", "y"):
        etree.fromstring(drawing.svg(around=name, hops=3).encode())


def test_around_a_layer_with_a_body(written: Written) -> None:
    model = ir.read(written.first("Loop.5.*"))
    loop = next(layer for layer in model if layer.bodies)
    picture = ir.draw(model).svg(around=loop.name, hops=1)
    assert "Loop" in picture
    etree.fromstring(picture.encode())


def test_conditions_and_bodies_are_in_texts(written: Written) -> None:
    model = ir.read(written.first("If.8.*"))
    (chosen,) = [layer for layer in model if layer.bodies]
    feeders = [source[0] for source in model.sources(chosen) if source is not None]
    assert feeders[0].type == "Parameter"  # the condition
    chart, dot = ir.draw(model).mermaid(), ir.draw(model).dot()
    groups = re.findall(r'subgraph (n\d+)\["(\w+)"\]', chart)
    assert [name for _, name in groups] == ["If", "then_body", "else_body"]
    assert chart.count("\n    end") + chart.count("\n  end") == 3
    assert len(re.findall(rf"--> {groups[0][0]}$", chart, re.MULTILINE)) == 1
    assert len(re.findall(rf"lhead=cluster_{groups[0][0][1:]}\]", dot)) == 1
    assert "compound=true;" in dot  # else no arrow is cut at a cluster
    assert dot.count("{") == dot.count("}")


def test_a_layer_in_a_body_is_told_from_one_that_is_not_there(written: Written) -> None:
    model = ir.read(written.first("If.8.*"))
    (chosen,) = [layer for layer in model if layer.bodies]
    inside = next(iter(chosen.bodies["else_body"].layers))
    inside.name = "deep inside"
    for ask in (lambda: model["deep inside"], lambda: ir.extract(model, outputs="deep inside")):
        with pytest.raises(ir.UsageError) as caught:
            ask()
        assert caught.value.hint == f'it is in the body "{chosen.name}/else_body"'


def test_a_chart_has_two_hundred_layers_at_most() -> None:
    with pytest.raises(ir.UsageError, match="takes 200 layers, these are 302"):
        ir.draw(tower(60)).mermaid()


def test_painted_by_numbers_and_words() -> None:
    drawing = ir.draw(tower(2))
    macs = next(p for p in content_of(drawing.html())["paints"] if p["name"] == "MACs")
    assert macs["values"] == [8 * 36 * 72] * 4
    drawing.paint("time", {"conv_one0": 2e-3, "relu_one0": 1e-4}, unit="s")
    content = content_of(drawing.html())
    assert content["paint"] == 3
    assert content["paints"][3]["values"] == [2e-3, 1e-4]
    drawing.paint("difference", {"conv_one0": "changed"}, notes={"conv_one0": "kernel 3 to 5"})
    assert "#f2b84b" in drawing.svg()
    with pytest.raises(ir.UsageError, match="model has none"):
        drawing.paint("time", {"elsewhere": 1.0})
    with pytest.raises(ir.UsageError, match="nothing known"):
        drawing.paint("colour")
    with pytest.raises(ir.UsageError, match="no finite number"):
        drawing.paint("time", {"conv_one0": float("nan")})


def test_constants_have_values_and_a_histogram() -> None:
    net = ir.Builder("constants")
    x = net.parameter("x", "f32", (1, 100))
    values = np.linspace(-1, 1, 100, dtype="f4")[None]
    odd = np.array([[np.nan, np.inf, -np.inf, 3e38, -3e38] * 20], "f4")
    x = net.add("Add", "opset1", [x, net.constant(values, name="line")])
    x = net.add("Add", "opset1", [x, net.constant(odd, name="odd")])
    net.result(x, name="y")
    content = content_of(ir.draw(net.model()).html())
    names = []
    for count, rest in zip(*content["names"], strict=True):
        names.append((names[-1] if names else "")[:count] + rest)
    line, odd_one = (content["constants"][str(names.index(name))] for name in ("line", "odd"))
    assert line[0][0] == "-1"
    assert line[1:3] == ["-1", "1"]
    assert len(set(line[4])) <= 2
    assert odd_one[1:3] == ["-3e+38", "3e+38"]
    assert content_of(ir.draw(net.model()).html(values=False))["constants"] == {}


def test_a_model_without_its_weights_has_a_picture(tmp_path: Path) -> None:
    ir.write(tower(2), tmp_path / "model.xml")
    (tmp_path / "model.bin").unlink()
    page = ir.draw(ir.read(tmp_path / "model.xml")).html()
    assert content_of(page)["constants"] == {}


def test_a_cycle_is_told() -> None:
    model = tower(1)
    model.connect(model.layer("relu_two0"), model.layer("relu_one0"), 0)
    with pytest.raises(ir.IRError, match="cycle"):
        ir.draw(model)


def test_models_of_nothing_and_of_constants() -> None:
    assert "<svg" in ir.draw(ir.Model("empty")).svg()
    assert ir.draw(ir.Model("empty")).html()
    net = ir.Builder("constants")
    net.result(net.add("ReLU", "opset1", [net.constant(np.ones(3, "f4"))]), name="y")
    net.graph.add(ir.Layer("Const", "opset1", "alone", data={"element_type": "f32"}))
    drawing = ir.draw(net.model())
    assert "alone" in drawing.dot()
    assert drawing.html()


def test_wide_and_long_models() -> None:
    net = ir.Builder("wide")
    x = net.parameter("x", "f32", (1, 4))
    net.result(
        net.add("Concat", "opset1", [net.add("ReLU", "opset1", [x]) for _ in range(1500)], axis=1)
    )
    picture = Picture.of(net.model())
    check_scene(picture, {picture.tree.root: OPEN})
    net = ir.Builder("long")
    x = net.parameter("x", "f32", (1, 4))
    for index in range(3000):
        x = net.add(["Abs", "ReLU", "Exp"][(index * index) % 7 % 3], "opset1", [x])
    net.result(x)
    assert ir.draw(net.model()).html()


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    drawing = ir.draw(tower(2))
    for kind in ("html", "svg", "dot", "mmd"):
        target = tmp_path / f"model.{kind}"
        assert drawing.save(target) == drawing.count(constants=kind in ("html", "svg"))
        before = target.read_bytes()
        with pytest.raises(ir.UsageError, match="already there"):
            drawing.save(target)
        drawing.save(target, force=True)
        assert target.read_bytes() == before
    with pytest.raises(ir.UsageError, match=r"does not end in \.html"):
        drawing.save(tmp_path / "model.png")
    with pytest.raises(ir.UsageError, match="a page has all layers"):
        drawing.save(tmp_path / "part.html", around="x")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".dot", ".html", ".mmd", ".svg"]


def test_a_notebook_shows_it_in_a_frame() -> None:
    shown = ir.draw(tower(1))._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ')
    assert shown.count("<") == 2


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(tower(3), tmp_path / "model.xml")
    model, page = tmp_path / "model.xml", tmp_path / "model.html"
    assert call("draw", model, "-o", page) == 0
    assert "drew 23 layers" in capsys.readouterr().err
    assert call("draw", model, "-o", page) == 2
    assert "already there" in capsys.readouterr().err
    assert call("draw", model, "-o", page, "--force", "--paint", "bytes") == 0
    assert content_of(page.read_text("utf-8"))["paint"] == 0
    part = tmp_path / "part.svg"
    assert call("draw", model, "-o", part, "--around", "relu_one1", "--hops", 1) == 0
    assert part.read_text("utf-8").count('class="t"') == 3
    times = tmp_path / "times.json"
    rows = [{"name": "conv_one1", "seconds": 0.5}, {"name": "add1", "seconds": 0.1}]
    times.write_text(json.dumps({"layers": rows}))
    assert call("draw", model, "-o", page, "--force", "--paint", "time", "--values", times) == 0
    paint = content_of(page.read_text("utf-8"))["paints"][-1]
    assert (paint["name"], paint["unit"], paint["values"]) == ("time", "s", [0.5, 0.1])
    for broken in ("[1", "[]", '{"layers": [1]}', '{"a": [1]}', "[" * 100_000):
        times.write_text(broken)
        assert call("draw", model, "-o", page, "--force", "--values", times) in (2, 3), broken
    assert call("draw", model, "-o", page, "--force", "--paint", "weather") == 2


def test_findings_are_painted(tmp_path: Path) -> None:
    ir.write(tower(2), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text("utf-8")
    damaged = text.replace('pads_begin="1, 1"', 'pads_begin="0, 0"', 1)
    assert damaged != text
    (tmp_path / "model.xml").write_text(damaged, "utf-8")
    assert (
        call("draw", tmp_path / "model.xml", "-o", tmp_path / "m.html", "--paint", "findings") == 0
    )
    paint = content_of((tmp_path / "m.html").read_text("utf-8"))["paints"][-1]
    assert paint["name"] == "findings"
    assert "error" in paint["values"]
    assert any("IR" in note for note in paint["notes"].values())


@pytest.mark.shared
def test_files_of_the_shared_folder() -> None:
    paths = sorted((SHARED / "witness").glob("*.xml"))
    if not paths:
        pytest.skip("no folder of shared files")
    for path in paths[::3]:
        picture = Picture.of(ir.read(path))
        check_scene(picture, states_of(picture, None))


def test_bodies_nested_deeply() -> None:
    inner: ir.Model | None = None
    for depth in range(40):
        net = ir.Builder(f"depth{depth}")
        x = net.parameter("x", "f32", (1, 4))
        for part in range(12):
            x = net.add("ReLU", "opset1", [x], name=f"a/b{part // 6}/c{part // 3}/r{part}")
        if inner is not None:
            loop = ir.Layer("TensorIterator", "opset1", "loop")
            net.graph.add(loop)
            loop.add_body("body", inner)
        net.result(x, name="y")
        inner = net.model()
    assert inner is not None
    picture = Picture.of(inner)
    check_scene(picture, states_of(picture, None))
    assert ir.draw(inner).html()
    assert "TensorIterator" in ir.draw(inner).svg()


@pytest.mark.shared
def test_networks_of_the_shared_folder() -> None:
    archives = sorted((SHARED / "networks").glob("*.xz"))[5::12]
    if not archives:
        pytest.skip("no folder of shared networks")
    for archive in archives:
        raw = lzma.decompress(archive.read_bytes())
        rest = raw[8 + int.from_bytes(raw[:8], "little") :]
        text = rest[8 : 8 + int.from_bytes(rest[:8], "little")]
        drawing = ir.draw(ir.loads(text, need_weights=False))
        picture = drawing.picture
        check_scene(picture, picture.opened())
        assert max(len(group.children) for group in picture.tree.groups) < 400, archive.name
        page = drawing.html()
        assert len(page) - 60_000 <= 150 * len(picture.sheet.layers) + 20_000, archive.name


def test_pages_are_looked_at_in_a_browser() -> None:
    if chromium() is None:
        pytest.skip("there is no Chromium: the tests of pages are left out")
    assert Path(chromium() or "").exists()
