"""Two models in step in one page: what a person does to see what changed, by mouse and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from conftest import Written
from test_pictures import call, hostile
from test_pictures_browser import find, hold, side
from vinoir import ir

browsed = pytest.mark.browser


def network(other: bool = False) -> ir.Model:
    """Equal blocks; the other has a constant, an attribute, a type, a layer less and one more."""
    net = ir.Builder("network")
    x = net.parameter("x", "f32", (1, 8, 16, 16))
    x = net.add("Abs", "opset1", [x], name="stem/abs")
    if not other:
        x = net.add("ReLU", "opset1", [x], name="stem/relu")
    for block in range(8):
        start = x
        for part in ("a", "b"):
            weights = np.full((8, 8, 3, 3), 0.01 * block + 0.02, "f4")
            if other and (block, part) == (2, "a"):
                weights[3] += 0.5
            held = net.constant(weights, name=f"w{block}{part}")
            x = net.add(
                "Convolution", "opset1", [x, held], name=f"body/block.{block}/conv_{part}",
                strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1),
            )  # fmt: skip
            alpha = 0.5 if other and (block, part) == (5, "b") else 1.0
            x = net.add("Elu", "opset1", [x], name=f"body/block.{block}/elu_{part}", alpha=alpha)
        x = net.add("Add", "opset1", [x, start], name=f"body/block.{block}/sum")
    x = net.add("Tanh" if other else "Sigmoid", "opset1", [x], name="head/gate")
    if other:
        x = net.add("Floor", "opset1", [x], name="head/floor")
    net.result(net.add("Exp", "opset1", [x], name="head/exp"), name="y")
    return net.model()


def test_what_changed_is_counted_by_layer_and_word() -> None:
    found = ir.diff(network(), network(other=True))
    drawing = ir.draw(found)
    words = {drawing.pictures[0].sheet.layers[n].name: w
             for n, w in drawing.pictures[0].sheet.marks.items()}  # fmt: skip
    assert words["stem/relu"] == "removed"
    assert words["w2a"] == words["body/block.2/conv_a"] == "constant"
    assert words["body/block.5/elu_b"] == "attribute"
    assert words["head/gate"] == "type"
    after = {drawing.pictures[1].sheet.layers[n].name: w
             for n, w in drawing.pictures[1].sheet.marks.items()}  # fmt: skip
    assert after["head/floor"] == "added"
    assert "head/floor" not in words
    assert len(drawing.pairs) == len(found.pairs) == found.paired
    assert drawing.html() == drawing.html()
    with pytest.raises(ir.UsageError, match=r"does not end in \.html"):
        drawing.save("diff.svg")


def test_bodies_are_told_apart(written: Written) -> None:
    model = ir.read(written.first("If.8*"))
    other = ir.read(written.first("If.8*"))
    owner = next(x for x in other.layers if x.bodies)
    inner = next(x for x in owner.bodies["else_body"].layers if x.type not in
                 ("Const", "Parameter", "Result"))  # fmt: skip
    inner.type, inner.version = "Floor", "opset1"
    found = ir.diff(model, other)
    assert found
    assert {id(two) for one, two in found.ends if two is not None} == {id(inner)}
    page = ir.draw(found)
    assert page.pictures[1].sheet.marks[page.pictures[1].sheet.layers.index(inner)] == "type"
    assert page.html()


def test_the_command_draws_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(network(), tmp_path / "a.xml")
    ir.write(network(other=True), tmp_path / "b.xml")
    words = ["diff", tmp_path / "a.xml", tmp_path / "b.xml", "-q", "-o", tmp_path / "d.html"]
    assert call(*words) == 1
    text = (tmp_path / "d.html").read_text("utf-8")
    assert "<title>a.xml → b.xml</title>" in text
    assert call(*words) == 2
    assert call(*words, "--force") == 1
    assert call(*words[:-1], tmp_path / "d.svg") == 2
    assert call("diff", tmp_path / "a.xml", tmp_path / "a.xml", "-o", tmp_path / "s.html") == 0


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "diff.html"
    ir.draw(ir.diff(network(), network(other=True))).save(target)
    return target.as_uri()


def views(tab: Browser) -> list[list[float]]:
    """The middle of the screen and the scale, of both pictures, in their own terms."""
    tab.rest()
    found: list[list[float]] = tab.value(
        "['canvas', 'canvas2'].map(id => document.getElementById(id).dataset.view"
        ".split(' ').map(Number))"
    )
    return found


def chosen(tab: Browser) -> str:
    return tab.text("#side .name")


@browsed
def test_the_changes_are_listed(tab: Browser) -> None:
    assert tab.text("#title") == "network (before) → network (after)"
    assert tab.text("#changed") == "5 changes"
    legend = tab.value("[...document.querySelectorAll('#legend span')].map(s => s.textContent)")
    assert {*legend} == {"removed", "added", "type", "attribute", "constant", "follows"}
    words = tab.value("[...document.querySelectorAll('#list i')].map(i => i.dataset.word)")
    assert sorted(words) == ["added", "attribute", "constant", "removed", "type"]


@browsed
def test_a_change_is_gone_to_with_the_mouse(tab: Browser) -> None:
    place = tab.value(
        "[...document.querySelectorAll('#list i')].findIndex(i => i.dataset.word == 'attribute')"
    )
    tab.press(f"#list li:nth-child({place + 1}) button")
    assert chosen(tab) == "body/block.5/elu_b"
    assert "alpha: 1" in side(tab)
    assert tab.value("document.querySelectorAll('#list [aria-current]').length") == 1


@browsed
def test_changes_are_gone_through_with_the_keyboard(tab: Browser) -> None:
    met = []
    for _ in range(5):
        tab.key(".")
        met.append(chosen(tab))
    assert set(met) == {"stem/relu", "w2a", "body/block.5/elu_b", "head/gate", "head/floor"}
    tab.key(",")
    assert chosen(tab) == met[-2]
    assert "change 4 of 5" in tab.text("#spoken")


@browsed
def test_what_was_added_is_in_the_second_picture(tab: Browser) -> None:
    assert "active" in tab.value("document.querySelector('#stage').className")
    tab.key(",")
    while chosen(tab) != "head/floor":
        tab.key(",")
    assert "active" in tab.value("document.querySelector('#stage2').className")
    assert "has it not" in side(tab)
    tab.key("ArrowDown")
    assert chosen(tab) == "head/exp"
    tab.key("w")
    assert "active" in tab.value("document.querySelector('#stage').className")
    assert chosen(tab) == "head/exp"


@browsed
def test_what_is_chosen_is_chosen_in_both(tab: Browser) -> None:
    find(tab, "name:block.3/conv_b")
    tab.key("w")
    assert chosen(tab) == "body/block.3/conv_b"
    tab.value("[...document.querySelectorAll('#side .go')][0].id = 'partner'")
    tab.press("#partner")
    assert chosen(tab) == "body/block.3/conv_b"
    assert "active" in tab.value("document.querySelector('#stage').className")


@browsed
def test_both_are_moved_in_step(tab: Browser) -> None:
    find(tab, "name:block.3/conv_b")
    before = views(tab)
    assert before[0][2] == before[1][2]
    x, y, *_ = hold(tab)
    tab.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x + 90, y=y + 200, deltaX=0,
            deltaY=120)  # fmt: skip
    tab.until(f"document.getElementById('canvas').dataset.view !== '{text_of(before[0])}'")
    after = views(tab)
    moved = [b[1] - a[1] for a, b in zip(before, after, strict=True)]
    assert moved[0] > 50
    assert moved[0] == pytest.approx(moved[1], abs=2)
    tab.key("w")
    tab.key("z")
    last = views(tab)
    assert last[0][2] == last[1][2] > after[0][2]


def text_of(view: list[float]) -> str:
    return " ".join(f"{number:g}" for number in view)


@browsed
def test_groups_are_opened_in_both(tab: Browser) -> None:
    find(tab, "name:block.4/conv_a")
    tab.key("Backspace")
    title = tab.text("#side h2")
    boxes = "Number(document.getElementById('canvas2').dataset.boxes)"
    tab.key("0")
    before = tab.value(boxes)
    tab.key("Enter")
    tab.key("0")
    assert tab.text("#side h2") == title
    assert tab.value(boxes) != before


@browsed
def test_a_view_of_the_second_picture_is_in_the_address(tab: Browser) -> None:
    tab.key("w")
    find(tab, "type:Floor")
    tab.until("location.hash.includes('s=1') && location.hash.includes('l=')")
    tab.open(tab.value("location.href"))
    assert chosen(tab) == "head/floor"
    assert "active" in tab.value("document.querySelector('#stage2').className")


@browsed
def test_the_table_is_of_the_model_that_is_looked_at(tab: Browser) -> None:
    tab.key("t")
    assert tab.text("#page").endswith("of 62")
    tab.key("w")
    assert tab.text("#page").endswith("of 62")
    find(tab, "type:Floor")
    assert tab.text("#page") == "1 to 1 of 1"


@browsed
def test_a_path_is_shown_in_both(tab: Browser) -> None:
    find(tab, "name:stem/abs")
    tab.key("j")
    assert "on the path" in tab.text("#hits")
    tab.key("Escape")
    assert chosen(tab) == "stem/abs"


@browsed
@pytest.mark.parametrize("look", ["light", "dark"])
def test_strange_addresses_and_equal_models(chrome: Browser, tmp_path: Path, look: str) -> None:
    ir.draw(ir.diff(network(), network())).save(tmp_path / "same.html")
    chrome.session = None
    chrome.said.clear()
    chrome.open((tmp_path / "same.html").as_uri() + "#s=7&l=99999&b=-1&x=NaN", look=look)
    assert chrome.text("#changed") == "no difference"
    for key in (".", ",", "w", "ArrowDown", "+", "-", "0"):
        chrome.key(key)
    assert chrome.troubles() == []


@browsed
def test_hostile_names_are_only_shown(chrome: Browser, tmp_path: Path) -> None:
    other = hostile()
    for layer in other.layers:
        if layer.type == "ReLU":
            layer.type = "Tanh"
    ir.draw(ir.diff(hostile(), other)).save(tmp_path / "hostile.html")
    chrome.session = None
    chrome.said.clear()
    chrome.open((tmp_path / "hostile.html").as_uri())
    tags = "document.querySelectorAll('script').length + document.querySelectorAll('img').length"
    for _ in range(12):
        chrome.key(".")
    assert chrome.value(tags) == 2
    assert chrome.troubles() == []
