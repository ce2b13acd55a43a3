"""The page of a picture in a browser: what a person does, by mouse and by keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from test_pictures import hostile, tower
from test_pictures_odd import row, turns
from vinoir import ir

pytestmark = pytest.mark.browser

#: Where a box is on the screen: the page's own placing is asked in its own terms.
DRAWN = "document.documentElement.dataset.drawn"


def network() -> ir.Model:
    """Modules, a pooling of one shape among others, a constant, equal blocks."""
    net = ir.Builder("network")
    x = net.parameter("x", "f32", (1, 8, 16, 16))
    window = {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2),
              "rounding_type": "floor", "auto_pad": "explicit"}  # fmt: skip
    bias = net.constant(np.arange(8, dtype="f4").reshape(1, 8, 1, 1) / 4, name="bias")
    x = net.add("Add", "opset1", [x, bias], name="stem/add")
    x = net.add("MaxPool", "opset1", [x], name="stem/pool", **window)
    x = net.add("ReLU", "opset1", [x], name="stem/relu")
    for block in range(8):
        start = x
        for part in ("a", "b"):
            weights = np.full((8, 8, 3, 3), 0.01 * block, "f4")
            x = net.add(
                "Convolution", "opset1", [x, net.constant(weights)],
                name=f"body/block.{block}/conv_{part}", strides=(1, 1), pads_begin=(1, 1),
                pads_end=(1, 1), dilations=(1, 1),
            )  # fmt: skip
            x = net.add("ReLU", "opset1", [x], name=f"body/block.{block}/relu_{part}")
        x = net.add("Add", "opset1", [x, start], name=f"body/block.{block}/sum")
    x = net.add("MaxPool", "opset1", [x], name="head/pool", **window)
    x = net.add("Sigmoid", "opset1", [x], name="head/sigmoid")
    net.result(net.add("Exp", "opset1", [x], name="head/exp"), name="y")
    return net.model()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    drawing = ir.draw(network(), title="network")
    drawing.paint("time", {"head/pool": 0.003, "stem/add": 0.001, "head/exp": 0.002},
                  unit="s", without="computed with another")  # fmt: skip
    drawing.paint(
        "difference",
        {"body/block.6/conv_b": "changed", "head/exp": "added"},
        notes={"body/block.6/conv_b": "values differ"},
    )
    drawing.paint("type")
    target = tmp_path_factory.mktemp("page") / "network.html"
    drawing.save(target)
    return target.as_uri()


def side(tab: Browser) -> str:
    return tab.text("#side")


def find(tab: Browser, query: str) -> None:
    tab.key("/")
    tab.value("document.activeElement.select()")
    tab.type(query)
    tab.key("Enter")
    tab.key("Escape")


def hold(tab: Browser) -> list[float]:
    """Where on the screen the chosen box lies: the view keeps it in the middle part."""
    place: list[float] = tab.value(
        "(() => { const r = document.querySelector('#canvas').getBoundingClientRect();"
        " return [r.x, r.y, r.width, r.height]; })()"
    )
    return place


def click_canvas(tab: Browser, until: str, count: int = 1) -> None:
    """Click down the middle of the picture until the panel shows a title."""
    x, y, width, height = hold(tab)
    for step in range(12, int(height) - 8, 14):
        tab.click(x + width / 2, y + step)
        if tab.value("document.querySelector('#side h2').textContent") == until:
            if count == 2:
                tab.click(x + width / 2, y + step, 2)
            return
    pytest.fail(f"no {until} in the middle of the picture")


def test_a_picture_is_never_black_before_its_next_frame(page: str, tab: Browser) -> None:
    tab.open(page)
    # What observes last is told last, before anything is shown; no frame is waited for.
    corner = tab.value(
        "new Promise(told => { window.requestAnimationFrame = () => 0;"
        " const canvas = document.querySelector('#canvas'), room = canvas.parentNode;"
        " let wide = 0;"
        " new ResizeObserver(() => { if (wide && canvas.width !== wide)"
        " told([...canvas.getContext('2d').getImageData(2, 2, 1, 1).data]);"
        " else { wide = canvas.width; room.style.maxWidth = wide - 90 + 'px'; } })"
        ".observe(room); })"
    )
    assert corner == [255, 255, 255, 255]


def test_it_opens_at_once_and_asks_for_nothing(tab: Browser) -> None:
    assert tab.text("#title") == "network"
    assert "65 layers" in side(tab)
    assert int(tab.value(DRAWN)) > 3


def test_find_by_type_and_shape_with_the_keyboard(tab: Browser) -> None:
    find(tab, "type:MaxPool shape:1,8,4,4")
    assert tab.text("#hits") == "1 of 1"
    assert "head/pool" in side(tab)


def test_find_by_type_and_shape_with_the_mouse(tab: Browser) -> None:
    tab.press("#query")
    tab.type("type:MaxPool shape:1,?,8,8")
    tab.press("#next")
    assert "stem/pool" in side(tab)


QUERIES = {
    "type:maxpool": 2, "type:*pool": 2, "dtype:f32 type:Exp": 1, "dtype:f16": 0,
    "attr.kernel=2": 2, "attr.kernel=2,2": 2, "attr.kernel=3": 0, "relu_a": 8,
    "name:block.3 -type:Const": 5, '"head/sig"': 1, "op:MaxPool-1": 2, "id:0": 1,
    "in:1,8,16,16 type:Add": 1, "shape:1,8": 0, "type:(a+)+$": 0, "shape:": 0,
}  # fmt: skip


def test_queries(tab: Browser) -> None:
    for query, count in QUERIES.items():
        find(tab, query)
        assert tab.text("#hits") == (f"1 of {count}" if count else "0 found"), query


@pytest.mark.parametrize("query", ["bogus:3", "bytes>1000", "type>Add", "type:Exp kind=x"])
def test_what_is_no_condition_is_told(query: str, tab: Browser) -> None:
    find(tab, query)
    word = query.split()[-1]
    assert tab.text("#hits") == (
        f"0 found; {word} is no condition, these are: "
        "type: name: shape: dtype: id: op: in: attr.NAME="
    )


def test_titles_of_open_groups_stand_out_from_the_edges_below_them(tab: Browser) -> None:
    find(tab, "name:block.5/conv_a")
    tab.value(
        "(() => { const p = CanvasRenderingContext2D.prototype, f = p.strokeText;"
        " window.apart = [];"
        " p.strokeText = function (...words) { apart.push(words[0]); f.apply(this, words); }; })()"
    )
    tab.key("Escape")
    tab.key("n")
    tab.until("window.apart.some(title => title.startsWith('block'))")


def test_next_and_previous_match(tab: Browser) -> None:
    find(tab, "type:MaxPool")
    assert "stem/pool" in side(tab)
    tab.key("n")
    assert "head/pool" in side(tab)
    tab.key("N")
    assert "stem/pool" in side(tab)


def test_a_folded_block_is_opened_with_the_keyboard(tab: Browser) -> None:
    find(tab, "name:block.5/conv_a")
    assert "body/block.5/conv_a" in side(tab)
    tab.key("Backspace")
    tab.key("Backspace")
    assert "8 times" in side(tab)
    tab.key("Enter")
    closed = tab.value("location.hash")
    tab.until(f"location.hash !== {json.dumps(closed)}")
    tab.key("Enter")
    tab.key("Enter")
    assert "8 times" in side(tab)


def test_a_folded_block_is_opened_with_the_mouse(tab: Browser) -> None:
    tab.press("#close")
    tab.press("#close")
    tab.press("#close")
    tab.press("#fit")
    few = int(tab.value(DRAWN))
    for _ in range(3):
        tab.press("#open")
    assert int(tab.value(DRAWN)) > few


def test_a_box_is_chosen_with_the_mouse(tab: Browser) -> None:
    click_canvas(tab, "Parameter")
    assert "Parameter-1" in side(tab)


def test_along_the_values_with_the_keyboard(tab: Browser) -> None:
    find(tab, "name:stem/add")
    tab.key("ArrowDown")
    assert "stem/pool" in side(tab)
    tab.key("ArrowDown")
    assert "stem/relu" in side(tab)
    tab.key("ArrowUp", 2)
    assert tab.text("#side .name") == "stem/add"
    assert "stem/add" in tab.text("#spoken")


def test_along_the_values_with_the_mouse(tab: Browser) -> None:
    find(tab, "name:stem/pool")
    tab.value("[...document.querySelectorAll('#side .go')].at(-1).id = 'reader'")
    tab.press("#reader")
    assert tab.text("#side .name") == "stem/relu"


def test_a_path_up_and_down(tab: Browser) -> None:
    find(tab, "name:stem/pool")
    tab.key("u")
    assert tab.text("#hits") == "4 on the path"
    tab.key("j")
    assert tab.text("#hits") == "46 on the path"
    tab.key("p")
    assert tab.text("#hits") == "49 on the path"
    tab.key("Escape")
    assert "stem/pool" in side(tab)


def test_a_constant_is_read_with_the_keyboard(tab: Browser) -> None:
    find(tab, "name:stem/add")
    tab.key("ArrowRight")
    assert tab.text("#side .name") == "bias"
    assert tab.text("#values") == "0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75"


def test_a_constant_has_a_histogram(tab: Browser) -> None:
    find(tab, "type:Const shape:8,8,3,3")
    assert tab.value("document.querySelectorAll('#side .bars i').length") == 16
    assert "mean 0" in side(tab)


def test_the_changed_layer_in_a_difference(tab: Browser) -> None:
    tab.value(
        "(() => { const s = document.querySelector('#paint'); s.value = [...s.options].find("
        "o => o.textContent === 'difference').value; s.dispatchEvent(new Event('change')); })()"
    )
    assert tab.text("#legend") == "changedadded"
    find(tab, "name:block.6/conv_b")
    assert "values differ" in side(tab)
    assert "changed" in side(tab)


def test_the_legend_tells_what_has_no_number(tab: Browser) -> None:
    for name, last in (("time", "computed with another"), ("MACs", "not told")):
        tab.value(
            "(() => { const s = document.querySelector('#paint'); s.value = [...s.options].find("
            f"o => o.textContent === '{name}').value; s.dispatchEvent(new Event('change')); }})()"
        )
        legend = tab.value(
            "[...document.querySelectorAll('#legend span')].map(s => "
            "[s.textContent, s.firstChild.style.background])"
        )
        assert legend[-1][0] == last
        assert legend[-1][1] not in {colour for _, colour in legend[:-1]}


def test_the_slowest_layer_with_the_keyboard(tab: Browser) -> None:
    tab.value(
        "(() => { const s = document.querySelector('#paint'); s.value = [...s.options].find("
        "o => o.textContent === 'time').value; s.dispatchEvent(new Event('change')); })()"
    )
    tab.key("b")
    assert tab.text("#side .name") == "head/pool"
    assert "3.00 ms" in side(tab)
    tab.key("b")
    assert tab.text("#side .name") == "head/exp"


def test_the_table_sorts_and_chooses(tab: Browser) -> None:
    tab.press("#tabled")
    assert tab.text("#page") == "1 to 65 of 65"
    last = tab.value("document.querySelectorAll('#head th').length")
    tab.press("#head th:nth-child(3) button")
    kinds = tab.value(
        "[...document.querySelectorAll('#rows td:nth-child(3)')].map(t => t.textContent)"
    )
    assert kinds == sorted(kinds)
    assert tab.value("document.querySelectorAll('#head th')[2].getAttribute('aria-sort')") == (
        "ascending"
    )
    assert last >= 6
    tab.press("#rows tr:nth-child(1)")
    assert "Add-1" in side(tab)
    tab.key("t")
    assert tab.value("document.querySelector('#table').hidden")


def test_the_table_shows_what_was_found(tab: Browser) -> None:
    tab.key("t")
    find(tab, "type:Exp")
    assert tab.text("#page") == "1 to 1 of 1"


def test_the_view_is_in_the_address(tab: Browser) -> None:
    find(tab, "name:head/sigmoid")
    tab.key("z")
    tab.until("location.hash.includes('l=') && location.hash.includes('q=')")
    address = tab.value("location.href")
    tab.open(address)
    assert tab.text("#side .name") == "head/sigmoid"
    assert tab.value("document.querySelector('#query').value") == "name:head/sigmoid"


STRANGE = ("x=1e999&y=NaN&z=-1", "o=999999.2_-1.1_a.b", "l=1e9", "l=-3&b=0", "q=%3Cscript%3E",
           "p=none")  # fmt: skip


def test_strange_addresses_do_nothing(tab: Browser) -> None:
    for fragment in STRANGE:
        tab.value(f"location.hash = {json.dumps(fragment)}")
        tab.rest()
        tab.key("ArrowDown")
        assert tab.text("#title") == "network"
        assert tab.troubles() == []


def test_light_and_dark(tab: Browser) -> None:
    light = tab.value("getComputedStyle(document.body).backgroundColor")
    tab.key("d")
    assert tab.value("getComputedStyle(document.body).backgroundColor") != light
    tab.press("#dark")
    assert tab.value("getComputedStyle(document.body).backgroundColor") == light


def test_drag_and_wheel_move_the_picture(tab: Browser) -> None:
    x, y, *_ = hold(tab)
    tab.until("location.hash.includes('y=')")
    before = tab.value("location.hash")
    tab.ask(
        "Input.dispatchMouseEvent", type="mouseWheel", x=x + 200, y=y + 200, deltaX=0, deltaY=300
    )
    tab.until(f"location.hash !== {json.dumps(before)}")
    before = tab.value("location.hash")
    common: dict[str, Any] = {"button": "left", "buttons": 1}
    tab.ask("Input.dispatchMouseEvent", type="mousePressed", x=x + 200, y=y + 200, **common)
    tab.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + 260, y=y + 120, **common)
    tab.ask("Input.dispatchMouseEvent", type="mouseReleased", x=x + 260, y=y + 120, **common)
    tab.until(f"location.hash !== {json.dumps(before)}")


def test_hostile_names_are_only_shown(chrome: Browser, tmp_path: Path) -> None:
    ir.draw(hostile()).save(tmp_path / "hostile.html")
    chrome.session = None
    chrome.said.clear()
    chrome.open((tmp_path / "hostile.html").as_uri())
    tags = "document.querySelectorAll('script').length + document.querySelectorAll('img').length"
    assert chrome.value(tags) == 2
    chrome.key("t")
    chrome.key("t")
    for _ in range(9):
        chrome.key("ArrowDown")
    find(chrome, "</script>")
    assert "alert(1)" in side(chrome)
    assert chrome.value(tags) == 2
    assert chrome.troubles() == []


def test_a_page_may_not_reach_out(tab: Browser) -> None:
    told = tab.value("fetch('https://localhost:9/').then(() => 'reached', e => 'refused')")
    assert told == "refused"
    assert any("Content Security Policy" in text for text in tab.troubles())
    tab.said.clear()


def test_a_large_model_is_drawn_in_part(chrome: Browser, tmp_path: Path) -> None:
    ir.draw(tower(400)).save(tmp_path / "large.html")
    chrome.session = None
    chrome.said.clear()
    chrome.open((tmp_path / "large.html").as_uri())
    for _ in range(4):
        chrome.press("#open")
    assert int(chrome.value(DRAWN)) < 200
    chrome.press("#fit")
    assert int(chrome.value(DRAWN)) < 4000
    assert chrome.troubles() == []


def shown(chrome: Browser, folder: Path, model: ir.Model) -> Browser:
    """A page of another model."""
    ir.draw(model).save(folder / "shown.html")
    chrome.session = None
    chrome.said.clear()
    chrome.open((folder / "shown.html").as_uri())
    return chrome


@pytest.mark.parametrize("layers", [0, 1])
def test_keys_do_no_harm_where_there_is_nothing(
    chrome: Browser, tmp_path: Path, layers: int
) -> None:
    net = ir.Builder("nothing")
    if layers:
        net.constant(np.ones(3, "f4"), name="only")
    tab = shown(chrome, tmp_path, net.model())
    for key in ("ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft", "Enter", "+", "-", "0", "1",
                "b", "v", "b", "v", "b", "v", "b", "u", "j", "p", "t", "t", "n", "N", "Backspace",
                "c", "?", "?", "Escape"):  # fmt: skip
        tab.key(key)
    assert tab.troubles() == []


def test_the_largest_of_no_numbers(chrome: Browser, tmp_path: Path) -> None:
    tab = shown(chrome, tmp_path, row())
    tab.key("v", 2)
    assert tab.value("document.querySelector('#paint').selectedOptions[0].textContent") == "MACs"
    tab.key("b")
    assert tab.troubles() == []


def test_names_beyond_the_first_plane(chrome: Browser, tmp_path: Path) -> None:
    face = "\N{GRINNING FACE}"
    names = [f"{face}{face}one", f"{face}{face}two", "z"]
    tab = shown(chrome, tmp_path, row(*names))
    tab.key("t")
    rows = "[...document.querySelectorAll('#rows tr')].map(r => r.children[1].textContent)"
    assert tab.value(rows) == ["x", *names, "y"]
    assert tab.troubles() == []


def test_a_path_goes_through_bodies(chrome: Browser, tmp_path: Path) -> None:
    tab = shown(chrome, tmp_path, turns())
    find(tab, "name:m/after")
    tab.key("u")
    assert tab.text("#hits") == "9 on the path"  # all but the Result
    find(tab, "name:part")
    tab.key("u")
    assert tab.text("#hits") == "3 on the path"
    tab.key("j")
    assert tab.text("#hits") == "5 on the path"
    assert tab.troubles() == []


def test_a_constant_beside_an_open_box_is_chosen(chrome: Browser, tmp_path: Path) -> None:
    tab = shown(chrome, tmp_path, turns())
    chosen = "document.querySelector('#side .name')?.textContent"
    x, y, width, height = hold(tab)
    across, down = range(0, int(width), 12), range(12, int(height) - 8, 12)
    for place in ((x + a, y + d) for a in across if a > width / 2 for d in down):
        tab.click(*place)
        if tab.value(chosen) == "start0":
            break
    assert tab.value(chosen) == "start0"
    assert tab.troubles() == []


def test_the_command_is_there_where_it_works(chrome: Browser, tmp_path: Path) -> None:
    tab = shown(chrome, tmp_path, row("plain", "tab\there", "L" * 500))
    for layer, there in ((1, True), (2, False), (3, False)):
        tab.value(f"location.hash = '#l={layer}'")
        tab.rest()
        assert tab.value("document.querySelector('#command') !== null") is there
    assert tab.troubles() == []


def test_types_of_any_name_are_found(chrome: Browser, tmp_path: Path) -> None:
    model = row()
    model.layer("b").type = 'of "two" words'
    tab = shown(chrome, tmp_path, model)
    found = tab.value(
        "[...document.querySelectorAll('#side table:last-child button.go')].map(b => "
        "[b.textContent, (b.click(), document.querySelector('#hits').textContent)])"
    )
    assert dict(found) == {
        "ReLU": "2 found", "Parameter": "1 found", 'of "two" words': "1 found",
        "Result": "1 found",
    }  # fmt: skip
    find(tab, '-type:ReLU -"of two" -name:"x"')
    assert tab.text("#hits").endswith("of 2")
    assert tab.troubles() == []


def test_a_sample_says_so(chrome: Browser, tmp_path: Path) -> None:
    net = ir.Builder("large")
    net.result(net.constant(np.zeros((1 << 22) + 1, "i1"), name="more"))
    tab = shown(chrome, tmp_path, net.model())
    find(tab, "name:more")
    assert "of a sample of" in side(tab)
    assert "of its 4,194,305 values" in side(tab)
