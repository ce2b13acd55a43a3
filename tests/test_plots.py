"""Weights and runs drawn: ranges and histograms are what NumPy says, memory what values need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from test_pictures import call, tower
from vinoir import ir
from vinoir.ir.display import plot_run, plot_weights
from vinoir.ir.display.notebook import picture
from vinoir.ir.display.pictures.plots import BARS, Spread
from vinoir.ir.engine import Program
from vinoir.ir.measuring.bench import layer_rows
from vinoir.ir.measuring.lifetimes import held_by_layers


def test_weights_are_plotted(tmp_path: Path) -> None:
    net = ir.Builder("weights")
    x = net.parameter("x", "f32", (1, 1000))
    line = np.linspace(-1, 3, 1000, dtype="f4")[None]
    for name, value in (
        ("line", line), ("zeros", line * 0), ("odd", np.where(line < 0, np.nan, line * 1e38)),
        ("<b>\u202e", line.astype("f4")),
    ):  # fmt: skip
        x = net.add("Add", "opset1", [x, net.constant(value.astype("f4"), name=name)])
    net.result(x, name="y")
    ir.write(net.model(), tmp_path / "model.xml")
    target = tmp_path / "weights.svg"
    assert call("weights", "plot", tmp_path / "model.xml", "-o", target) == 0
    tree = etree.fromstring(target.read_bytes())
    texts = ["".join(each.itertext()) for each in tree.iter("{*}text")]
    assert "-1 to 3" in texts
    assert "mean 1, deviation 1.16" in texts
    assert "mean 0, deviation 0, 100% zeros" in texts
    assert "<b>\\u202e" in texts
    told = {each.getparent().get("class"): each.text for each in tree.iter("{*}title")}
    assert told["w"] == "250 values are infinite or no number"  # over the dot itself
    # A common scale by magnitudes: what is 3 of 6 decades below the largest lies half way.
    places = {"".join(each.itertext()): float(each.get("x")) for each in tree.iter("{*}text")}
    ticks = [places[text] for text in ("-3e+38", "-3e+35", "0", "3e+35", "3e+38")]
    np.testing.assert_allclose(np.diff(ticks), ticks[1] - ticks[0], atol=0.2)
    assert any("logarithmic" in text for text in texts)
    assert call("weights", "plot", tmp_path / "model.xml", "-o", target) == 2
    assert call("weights", "plot", tmp_path / "model.xml", "-o", tmp_path / "weights.png") == 2
    assert call(
        "weights", "plot", tmp_path / "model.xml", "-o", target, "--least", 9999, "--force"
    ) == 2  # fmt: skip


def test_constants_that_are_left_out_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = ir.Builder("weights")
    x = net.parameter("x", "f32", (1, 9))
    for number in range(5):
        x = net.add("Add", "opset1", [x, net.constant(np.full((1, 9), number, "f4"))])
    net.result(x, name="y")
    ir.write(net.model(), tmp_path / "model.xml")
    for most, said in ((3, "drew 3 constants, the largest of 5"), (9, "drew 5 constants into")):
        target = tmp_path / f"{most}.svg"
        words = ["weights", "plot", tmp_path / "model.xml", "-o", target, "--most", most]
        assert call(*words) == 0
        assert said in capsys.readouterr().err
        assert ("the 3 largest of 5" in target.read_text("utf-8")) is (most == 3)


def test_spread_is_what_numpy_says() -> None:
    rng = np.random.default_rng(0)
    for kind in ("f2", "f4", "f8", "i1", "u1", "i4", "?"):
        value = (rng.standard_normal((37, 41)) * 40).astype(kind)
        found = Spread.of(value)
        wide = value.astype("f8")
        assert (found.low, found.high) == (wide.min(), wide.max())
        np.testing.assert_allclose([found.mean, found.deviation], [wide.mean(), wide.std()])
        wanted, _ = np.histogram(wide, BARS, (wide.min(), wide.max()))
        np.testing.assert_allclose(found.bars, wanted, atol=3)
        assert sum(found.bars) == value.size


@pytest.mark.parametrize(
    "value",
    [[1.7e308] * 3, [1.7e308, -1.7e308] * 9, [1.7e308, *[-1.7e308] * 9], [5e-324, 0.0] * 9,
     [1e-300, 3e-300, 7e-300]],
    ids=["large", "both", "one", "least", "small"],
)  # fmt: skip
def test_spread_at_the_ends_of_numbers(value: list[float]) -> None:
    found = Spread.of(np.array(value))
    wide = np.array(value, np.longdouble)
    wanted = [float(each) for each in (wide.mean(), wide.std())]
    np.testing.assert_allclose([found.mean, found.deviation], wanted, rtol=1e-12, atol=5e-324)
    assert sum(found.bars) == len(value)
    if wide.min() < wide.max():
        assert (found.bars[0], found.bars[-1]) == (
            (wide == wide.min()).sum(), (wide == wide.max()).sum()
        )  # fmt: skip


@pytest.mark.parametrize("sizes", [(5, 5, 5, 9), (5, 9, 5, 5), (9, 5, 7, 5), (2, 2, 2, 2)])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_largest_are_shown_whatever_is_as_large(sizes: tuple[int, ...], most: int) -> None:
    net = ir.Builder("ties")
    for index, size in enumerate(sizes):
        net.result(net.constant(np.arange(size, dtype="f4"), name=f"c{index}"))
    shown = re.findall(r">c(\d)<", plot_weights(net.model(), most=most))
    assert sorted((sizes[int(i)] for i in shown), reverse=True) == sorted(sizes)[::-1][:most]
    assert shown == sorted(shown)


def test_a_notebook_shows_the_ends_of_numbers() -> None:
    for value in ([[-1.7e308, 1.7e308], [0, 1]], [[5e-324, 0], [0, 5e-324]]):
        text = picture(np.array(value))
        assert "#c00" not in text
        assert {"#282837", "#f0f0ff"} <= set(re.findall(r'fill="([^"]*)"', text))
    assert "#c00" in picture(np.array([[np.nan, 1], [2, 3]]))


def test_layers_that_are_drawn_are_named_and_counted() -> None:
    drawing = ir.draw(tower(4))
    assert "ReLU<br/>relu_one1<br/>" in drawing.mermaid(around="relu_one1", hops=1)
    assert drawing.count() == len(tower(4))
    assert drawing.count(around="relu_one1", hops=0) == 1
    assert drawing.count(around="relu_one1", hops=1) == 3 + 2  # the two convolutions' weights


@dataclass
class Step:
    name: str
    operation: str
    seconds: float
    held: int


def test_a_run_is_plotted() -> None:
    steps = [Step(f"layer{n}", "ReLU", 0.001 * (n + 1), 1024 * (n % 7)) for n in range(30)]
    steps.append(Step("</svg><script>\u202e", "Exp", 2.001, 5 << 20))
    tree = etree.fromstring(plot_run(steps, "<b>").encode())
    texts = ["".join(each.itertext()) for each in tree.iter("{*}text")]
    assert "time by layer, 2.47 s in all" in texts
    assert any("at most 5.0 MiB in </svg><script>\\u202e" in text for text in texts)
    assert sum(text.startswith("layer") for text in texts) == 19
    assert any(text.endswith("81.1%") for text in texts)
    bars = [each for each in tree.iter("{*}rect") if each.get("class") in ("b", "s")]
    tall = [float(each.get("height") or 0) for each in bars[:31]]
    assert tall[-1] == max(tall) == 170
    assert sorted(tall) == tall
    assert not list(tree.iter("{*}script"))
    with pytest.raises(ir.UsageError, match="nothing is computed"):
        plot_run([], "none")


def chain(layers: int) -> ir.Model:
    net = ir.Builder("chain")
    x = net.parameter("x", "f32", (1, 256, 64))
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype("f4") / 8
    for number in range(layers):
        held = net.constant(weights, name=f"w{number}")
        x = net.add("MatMul", "opset1", [x, held], name=f"m{number}", transpose_a=False,
                    transpose_b=False)  # fmt: skip
        x = net.add("SoftMax", "opset8", [x], name=f"s{number}", axis=-1)
    net.result(x, name="y")
    return net.model()


def test_memory_of_a_run_is_that_of_its_values_and_not_of_its_weights() -> None:
    each = 256 * 64 * 4
    program = Program(chain(6))
    rows = layer_rows(program, [np.ones((1, 256, 64), "f4")], 1)
    assert len(rows) >= 6
    assert all(each <= row.held <= 3 * each for row in rows)


def test_memory_of_layers_one_after_the_other() -> None:
    net = ir.Builder("fork")
    x = net.parameter("x", "f32", (10,))
    a = net.add("Exp", "opset1", [x], name="a")
    b = net.add("Abs", "opset1", [a], name="b")
    c = net.add("Floor", "opset1", [b], name="c")
    net.result(net.add("Add", "opset1", [a, c], name="d"), name="y")
    net.result(b, name="z")
    layers = [net.graph.layer(name) for name in "abcd"]
    # a until d, b until the end as it is handed out, c until d.
    assert held_by_layers([(layer, 40) for layer in layers]) == [40, 80, 120, 160]


def test_a_plot_from_the_command_line(tmp_path: Path) -> None:
    ir.write(chain(2), tmp_path / "model.xml")
    words = ["bench", tmp_path / "model.xml", "--runs", 1, "--plot", tmp_path / "run.svg"]
    assert call(*words) == 0
    assert etree.fromstring((tmp_path / "run.svg").read_bytes()).tag.endswith("svg")
    assert call(*words) == 2
    assert call(*words, "--force") == 0
    assert call(*words[:-1], tmp_path / "run.png") == 2
