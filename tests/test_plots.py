"""Weights drawn: ranges and histograms are what NumPy says of the values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree
from test_pictures import call
from vinoir import ir
from vinoir.ir.display.pictures.plots import BARS, Spread


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
    assert any("250 values are infinite" in (each.text or "") for each in tree.iter("{*}title"))
    assert call("weights", "plot", tmp_path / "model.xml", "-o", target) == 2
    assert call("weights", "plot", tmp_path / "model.xml", "-o", tmp_path / "weights.png") == 2
    assert call(
        "weights", "plot", tmp_path / "model.xml", "-o", target, "--least", 9999, "--force"
    ) == 2  # fmt: skip


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
