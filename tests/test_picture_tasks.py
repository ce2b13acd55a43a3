"""Twenty tasks at the page of a model, and of two in step: each by mouse, and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from browser import Browser
from test_pictures_browser import DRAWN, click_canvas, find, hold, side
from test_pictures_browser import network as one_model
from test_stepping_browser import network as two_models
from vinoir import ir

pytestmark = pytest.mark.browser

Act = Callable[[Browser], None]


class Task(NamedTuple):
    """What a person wants, how with the mouse, how with keys, and what is seen then."""

    name: str
    mouse: Act
    keys: Act
    seen: Callable[[Browser], bool]
    page: str = "one"


def name(tab: Browser) -> str:
    found = tab.value("document.querySelector('#side .name')?.textContent || ''")
    assert isinstance(found, str)
    return found


def typed(query: str) -> Act:
    """Search with the mouse, up to the first match."""

    def act(tab: Browser) -> None:
        tab.press("#query")
        tab.type(query)
        tab.press("#next")

    return act


def sought(query: str, *keys: str) -> Act:
    """Search with the keyboard, and press further keys."""

    def act(tab: Browser) -> None:
        find(tab, query)
        pressed(*keys)(tab)

    return act


def pressed(*keys: str) -> Act:
    def act(tab: Browser) -> None:
        for key in keys:
            tab.key(key)

    return act


def clicked(*selectors: str, first: Act | None = None) -> Act:
    def act(tab: Browser) -> None:
        if first is not None:
            first(tab)
        for selector in selectors:
            tab.press(selector)

    return act


def told(text: str) -> Callable[[Browser], bool]:
    return lambda tab: text in side(tab)


def named(text: str) -> Callable[[Browser], bool]:
    return lambda tab: name(tab) == text


def link(text: str, first: Act) -> Act:
    """Click a name in the panel."""

    def act(tab: Browser) -> None:
        first(tab)
        tab.value(
            "[...document.querySelectorAll('#side .go')].find(b => b.textContent === "
            f"{text!r}).id = 'wanted'"
        )
        tab.press("#wanted")

    return act


def painted(word: str) -> Act:
    """Choose a paint as a click into the list does."""

    def act(tab: Browser) -> None:
        tab.value(
            "(() => { const s = document.querySelector('#paint'); s.value = [...s.options].find("
            f"o => o.textContent === {word!r}).value; s.dispatchEvent(new Event('change')); }})()"
        )

    return act


def paint_is(word: str) -> Callable[[Browser], bool]:
    script = "document.querySelector('#paint').selectedOptions[0].textContent"
    return lambda tab: bool(tab.value(script) == word)


def dragged(tab: Browser) -> None:
    x, y, *_ = hold(tab)
    for kind, at in (("mousePressed", 300), ("mouseMoved", 100), ("mouseReleased", 100)):
        tab.ask("Input.dispatchMouseEvent", type=kind, x=x + 150, y=y + at, button="left",
                buttons=1)  # fmt: skip
    tab.rest()


def wheeled(tab: Browser) -> None:
    x, y, *_ = hold(tab)
    tab.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x + 150, y=y + 150, deltaX=0,
            deltaY=-300, modifiers=2)  # fmt: skip
    tab.rest()


def view(tab: Browser, part: int) -> float:
    found: str = tab.value("document.querySelector('#canvas').dataset.view")
    return float(found.split()[part])


def row_of(text: str) -> Act:
    """Click the row of the list of changes that has a name."""

    def act(tab: Browser) -> None:
        place = tab.value(
            "[...document.querySelectorAll('#list li')].findIndex(e => e.textContent.includes("
            f"{text!r})) + 1"
        )
        tab.press(f"#list li:nth-child({place}) button")

    return act


def until_named(key: str, text: str) -> Act:
    def act(tab: Browser) -> None:
        for _ in range(8):
            tab.key(key)
            if name(tab) == text:
                return

    return act


def slowest_row(tab: Browser) -> None:
    tab.press("#tabled")
    place = tab.value(
        "[...document.querySelectorAll('#head th')].findIndex(t => t.textContent === 'time') + 1"
    )
    tab.press(f"#head th:nth-child({place}) button")
    tab.press("#rows tr:nth-child(1)")


ADD = "name:stem/add"
TASKS = [
    Task("find a layer by type and shape", typed("type:MaxPool shape:1,8,4,4"),
         sought("type:MaxPool shape:1,8,4,4"), named("head/pool")),
    Task("find one by an attribute", typed("attr.kernel=2 shape:1,?,8,8"),
         sought("attr.kernel=2 shape:1,?,8,8"), named("stem/pool")),
    Task("go to the next match", clicked("#next", first=typed("type:MaxPool")),
         sought("type:MaxPool", "n"), named("head/pool")),
    Task("go back to the match before", clicked("#next", "#previous", first=typed("type:MaxPool")),
         sought("type:MaxPool", "n", "N"), named("stem/pool")),
    Task("choose a box", lambda tab: click_canvas(tab, "Parameter"), pressed("ArrowDown"),
         lambda tab: bool(tab.text("#side h2") == "Parameter")),
    Task("open what is folded", clicked("#close", "#close", "#close", "#open", "#open", "#fit"),
         pressed("-", "-", "-", "+", "+", "0"), lambda tab: int(tab.value(DRAWN)) > 10),
    Task("fold what is open", clicked("#close", "#close", "#close", "#fit"),
         pressed("-", "-", "-", "0"), lambda tab: int(tab.value(DRAWN)) < 10),
    Task("go along a value", link("stem/pool", typed(ADD)), sought(ADD, "ArrowDown"),
         named("stem/pool")),
    Task("go up along a value", link("stem/add", typed("name:stem/pool")),
         sought("name:stem/pool", "ArrowUp"), named("stem/add")),
    Task("see all that comes before", clicked("#path-before", first=typed("name:stem/pool")),
         sought("name:stem/pool", "u"), lambda tab: tab.text("#hits") == "4 on the path"),
    Task("see all that comes after", clicked("#path-after", first=typed("name:stem/pool")),
         sought("name:stem/pool", "j"), lambda tab: tab.text("#hits") == "46 on the path"),
    Task("read a constant", link("bias", typed(ADD)), sought(ADD, "ArrowRight"),
         told("0, 0.25, 0.5, 0.75")),
    Task("see all layers as a table", clicked("#tabled"), pressed("t"),
         lambda tab: tab.text("#page") == "1 to 65 of 65"),
    Task("paint by bytes", painted("bytes"), pressed("v"), paint_is("bytes")),
    Task("find the slowest layer", slowest_row, pressed("V", "b"), named("head/pool")),
    Task("read in the dark", clicked("#dark"), pressed("d"),
         lambda tab: bool(tab.value("document.documentElement.dataset.look") == "dark")),
    Task("look further down", dragged, pressed("PageDown"), lambda tab: view(tab, 1) > 500),
    Task("look nearer", wheeled, pressed("z", "z"), lambda tab: view(tab, 2) > 1.2),
    Task("spot the changed layer", row_of("elu_b"), until_named(".", "body/block.5/elu_b"),
         told("alpha: 1"), "two"),
    Task("spot what was added", row_of("head/floor"), until_named(",", "head/floor"),
         told("has it not"), "two"),
]  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("page")
    drawing = ir.draw(one_model(), title="network")
    drawing.paint("time", {"head/pool": 0.003, "stem/add": 0.001, "head/exp": 0.002}, unit="s")
    drawing.paint("type").save(folder / "one.html")
    ir.draw(ir.diff(two_models(), two_models(other=True))).save(folder / "two.html")
    return {page: (folder / f"{page}.html").as_uri() for page in ("one", "two")}


@pytest.mark.parametrize("by", ["mouse", "keys"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_is_done(chrome: Browser, pages: dict[str, str], task: Task, by: str) -> None:
    chrome.session = None
    chrome.said.clear()
    chrome.open(pages[task.page])
    (task.mouse if by == "mouse" else task.keys)(chrome)
    chrome.rest()
    assert task.seen(chrome), (name(chrome), side(chrome)[:200])
    assert chrome.troubles() == []
