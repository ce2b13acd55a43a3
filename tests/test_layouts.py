"""Layouts as OpenVINO writes them: words, and ``...`` for any number of axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.document import axis_names, layout_spelling
from vinoir.ir.surgery.orders_ends import layout_of

SHAPE = (2, 3, 4, 5)
X = np.arange(120, dtype=np.float32).reshape(SHAPE)


def network(path: Path, layout: str | None = None) -> Path:
    """A file whose input says this layout, in these words."""
    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", SHAPE)], name="r"), name="y")
    model = net.model()
    if layout is not None:
        entry = {"name": "layout", "version": "0", "layout": layout}
        info = ir.Info("rt_info", children=[ir.Info("attribute", entry)])
        model.parameters[0].outputs[0].rt_info = info
    ir.write(model, path / "m.xml")
    return path / "m.xml"


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("N...C", {"reverse_channels": True}),
        ("...C", {"mean": [1, 2, 3, 4, 5]}),
        ("NC...", {"scale": [1, 2, 4], "type": "u8"}),
        ("N...C", {"layout": "NC...", "type": "f16"}),
        ("NH...C", {"layout": "C...HN", "reverse_channels": True}),
        ("[N,ROWS,COLS,C]", {"layout": "[N,COLS,C,ROWS]", "mean": [1, 2, 3, 4, 5]}),
        ("[batch,channels,height,width]", {"layout": "NHWC", "reverse_channels": True}),
        ("[N,CHAN,H,W]", {"layout": "[N,H,W,CHAN]", "mean": 1.0}),
    ],
)
def test_preprocessing_goes_by_the_layout_that_is_declared(
    layout: str, words: dict[str, Any], tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import preprocess

    path = network(tmp_path, openvino.Layout(layout).to_string())
    made = ir.edit(path, [{"op": "preprocess", "input": "x", **words}]).model
    core = openvino.Core()
    builder = preprocess.PrePostProcessor(core.read_model(path))
    entry = builder.input("x")
    if "layout" in words:
        entry.tensor().set_layout(openvino.Layout(words["layout"]))
    if "type" in words:
        entry.tensor().set_element_type(getattr(openvino.Type, words["type"]))
    steps = entry.preprocess()
    if "type" in words:
        steps.convert_element_type(openvino.Type.f32)
    if words.get("reverse_channels"):
        steps.reverse_channels()
    if "mean" in words:
        steps.mean(words["mean"])
    if "scale" in words:
        steps.scale(words["scale"])
    theirs = core.compile_model(builder.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    port = made.parameters[0].outputs[0]
    assert list(port.dims) == list(theirs.inputs[0].shape)
    x = np.random.default_rng(0).integers(0, 255, port.dims).astype(port.type.dtype)
    np.testing.assert_allclose(ir.run(made, [x])["y"], theirs([x])[0], rtol=1e-6)
    text, weights = ir.dumps(made)
    held = openvino.Tensor(np.frombuffer(weights or b"\0", np.uint8).copy())
    said = core.read_model(text, held).parameters[0].layout
    assert said == openvino.Layout(words.get("layout", layout))


@pytest.mark.parametrize("step", [{"scale": [3, 4, 5]}, {"mean": [3, 4, 5]}])
def test_openvino_takes_what_follows_a_resizing_in_any_layout(
    step: dict[str, Any], tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import preprocess

    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "8,9,3")]), name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    words = {"type": "u8", "layout": "WCH", "model_layout": "HWC", "resize": [7, 11], **step}
    made = ir.edit(tmp_path / "m.xml", [{"op": "preprocess", "input": "x", **words}]).model
    assert ir.check(made).ok
    ir.write(made, tmp_path / "made.xml")
    core, exact = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    builder = preprocess.PrePostProcessor(core.read_model(tmp_path / "m.xml"))
    entry = builder.input("x")
    entry.tensor().set_element_type(openvino.Type.u8).set_layout(openvino.Layout("WCH"))
    entry.tensor().set_spatial_static_shape(7, 11)
    entry.model().set_layout(openvino.Layout("HWC"))
    steps = entry.preprocess().convert_element_type(openvino.Type.f32)
    steps.resize(preprocess.ResizeAlgorithm.RESIZE_LINEAR)
    steps.scale(step["scale"]) if "scale" in step else steps.mean(step["mean"])
    x = np.random.default_rng(0).integers(0, 255, (11, 3, 7), dtype=np.uint8)
    theirs = core.compile_model(builder.build(), "CPU", exact)([x])[0]
    ours = core.compile_model(core.read_model(tmp_path / "made.xml"), "CPU", exact)([x])[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(ir.run(made, [x])["y"], theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("layout", "words", "told"),
    [
        ("N...C", {"layout": "NCHW"}, "NCHW has other axes than that of the model, N...C"),
        ("N...", {"mean": [1, 2, 3]}, r"N\?\?\? has no C \(say which are the channels"),
        ("[N,CHAN,H,W]", {"mean": [1, 2, 3]}, r"\[N,CHAN,H,W\] has no C"),
        ("N...C", {"resize": [6, 7]}, r"N\?\?C has no H and W"),
        ("NCDHW...", {"mean": 1.0}, "has 5 or more axes, the input 4"),
        ("NC", {"mean": 1.0}, "has 2 axes, the input 4"),
    ],
)
def test_what_a_declared_layout_does_not_say_is_not_guessed(
    layout: str, words: dict[str, Any], told: str, tmp_path: Path
) -> None:
    path = network(tmp_path, layout)
    with pytest.raises(ir.UsageError, match=rf'm.xml:\d+: layer 0 "x" .*{told}'):
        ir.edit(path, [{"op": "preprocess", "input": "x", **words}])


def test_a_layout_that_is_none_is_told_with_its_place(tmp_path: Path) -> None:
    path = network(tmp_path, "[N,N,H,W]")
    with pytest.raises(ir.UsageError, match=r'm.xml:\d+: layer 0 "x" .*"N" stands twice'):
        ir.edit(path, [{"op": "preprocess", "input": "x", "mean": 1.0}])


def test_an_input_that_says_any_axes_says_nothing(tmp_path: Path) -> None:
    path = network(tmp_path, "[...]")
    made = ir.edit(path, [{"op": "preprocess", "input": "x", "mean": [1, 2, 3]}]).model
    expected = np.maximum(X - np.float32([1, 2, 3]).reshape(3, 1, 1), 0)
    np.testing.assert_array_equal(ir.run(made, [X])["y"], expected)


@pytest.mark.parametrize(
    "layout",
    ["nchw", "N...", "...C", "N?...W", "[N,CHAN,H,W]", "[batch,...,a_b]", "N...CHW", "????",
     "[n, c, ?, ?]", "[Batch,N,H,W]", "[N,,H,W]", "N-HW", "NC...H...", "[N,C]", "NCHWD..."],
)  # fmt: skip
def test_layouts_that_are_set_are_those_of_openvino(layout: str, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    edit = {"op": "set-layout", "input": "x", "layout": layout}
    try:
        wanted = openvino.Layout(layout).to_string()
        openvino_takes = layout not in ("[N,C]", "NCHWD...")  # of another rank
    except RuntimeError:
        openvino_takes = False
    if not openvino_takes:
        with pytest.raises(ir.UsageError, match="layout"):
            ir.edit(network(tmp_path), [edit])
        return
    port = ir.edit(network(tmp_path), [edit]).model.parameters[0].outputs[0]
    assert [info.attributes["layout"] for info in port.rt_info] == [wanted]


def test_layouts_are_read_as_openvino_reads_them() -> None:
    """Of words put together at random: its spelling, or a refusal where it refuses."""
    openvino = pytest.importorskip("openvino")
    words = [
        *"NCHWDBb?_1*-. \t\n,[]", "", "...", "batch", "Channels", "a_b", "**SCALAR**",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    taken = 0
    for number in range(20_000):
        some = rng.choice(words, rng.integers(0, 7)).tolist()
        text = ["".join(some), "[" + "".join(some) + "]", "[" + ",".join(some) + "]"][number % 3]
        try:
            wanted = openvino.Layout(text).to_string()
        except RuntimeError:
            wanted = None
        try:
            found = layout_spelling(axis_names(text))
        except ValueError:
            found = None
        assert found == wanted, repr(text)
        taken += wanted is not None
    assert taken > 4_000


def test_samples_lie_where_a_layout_says_b(tmp_path: Path) -> None:
    path = network(tmp_path, "CBHW")
    model = ir.edit(path, [{"op": "set-batch", "inputs": ["x"]}]).model
    assert str(model.inputs[0].tensor.shape) == "2,?,4,5"


@pytest.mark.parametrize(
    ("layout", "letters"),
    [(None, None), ("N...C", "N??C"), ("...", None), ("[N,CHAN,H,W]", "N?HW"), ("...N", "???N"),
     ("[channel,batch,...]", "CN??")],
)  # fmt: skip
def test_each_axis_has_a_letter_or_none(
    layout: str | None, letters: str | None, tmp_path: Path
) -> None:
    port = ir.read(network(tmp_path, layout)).parameters[0].outputs[0]
    assert layout_of(port) == layout_of(port, 4) == letters
    port.dims = ()  # as where the rank is not known
    assert layout_of(port) == (None if layout and "..." in layout else letters)
