"""Sizes of inputs that nobody gave: found such that the layers take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from cli_folder import caller
from vinoir import ir
from vinoir.ir.execution import sized, suiting
from vinoir.layers.budget import within
from vinoir.schemas import LimitError, Tensor

WINDOW = {"dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}


def image(net: ir.Builder, positions: int, shape: str = "?,?,?,?") -> ir.Value:
    """Patches of 16x16 pixels of five channels, each at a place of its own."""
    x = net.parameter("image", "f32", shape)
    weights = net.constant(np.full((6, 5, 16, 16), 0.01, "f4"))
    x = net.add("Convolution", "opset1", [x, weights], strides=(16, 16), **WINDOW)
    rows = net.add("Reshape", "opset1", [x, net.constant(np.array([0, 6, -1]))], special_zero=True)
    # One that stands for the whole image is among them.
    rows = net.add("Concat", "opset1", [net.constant(np.ones((1, 6, 1), "f4")), rows], axis=2)
    return net.add("Add", "opset1", [rows, net.constant(np.ones((1, 6, positions), "f4"))])


def words(net: ir.Builder, most: int) -> ir.Value:
    """Words of a text, each at a place of its own, of which there are some."""
    x = net.parameter("words", "i64", "?,?")
    table = net.constant(np.ones((10, 6), "f4"))
    rows = net.add("Gather", "opset8", [table, x, net.constant(np.array(0))], batch_dims=0)
    length = net.add("ShapeOf", "opset3", [x], output_type="i64")
    one, axis = net.constant(np.array([1])), net.constant(np.array(0))
    end = net.add("Gather", "opset8", [length, one, axis], batch_dims=0)
    places = net.constant(np.ones((1, most, 6), "f4"))
    begin = net.constant(np.array([2]))
    some = net.add("Slice", "opset8", [places, net.constant(np.array([0])), end, one, one])
    more = net.add("Slice", "opset8", [rows, begin, end, one, one])
    return net.add("Concat", "opset1", [net.add("Add", "opset1", [rows, some]), more], axis=1)


def features(net: ir.Builder) -> ir.Value:
    """Rows of as many features as weights have."""
    x = net.parameter("rows", "f32", "?,?,?")
    weights = net.constant(np.ones((52, 3), "f4"))
    return net.add("MatMul", "opset1", [x, weights], transpose_a=False, transpose_b=False)


MODELS = {
    "patches, each of which has a place": ([lambda net: image(net, 197)], ["1,5,224,224"]),
    "patches, fewer": ([lambda net: image(net, 17)], ["1,5,64,64"]),
    "an image of which the width is known": (
        [lambda net: image(net, 9, "?,?,?,64")], ["1,5,32,64"],
    ),
    "a size of one to three": ([lambda net: image(net, 5, "1..3,?,?,?")], ["1,5,32,32"]),
    "features": ([features], ["1,1,52"]),
    "a text beside an image": (
        [lambda net: words(net, 7), lambda net: image(net, 197)], ["1,1", "1,5,224,224"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sizes_that_all_layers_take_are_found(name: str) -> None:
    makers, wanted = MODELS[name]
    net = ir.Builder("m")
    for number, make in enumerate(makers):
        net.result(make(net), name=f"y{number}")
    model = net.model()
    found = sized(model, {x.id: "zeros" for x in model.parameters})
    # The least is said by no sizes.
    told = [found[x.id] for x in model.parameters]
    shapes = [
        text.removeprefix("zeros:") if ":" in text else ",".join(["1"] * sizes.count(",") + ["1"])
        for text, sizes in zip(told, wanted, strict=True)
    ]
    assert shapes == wanted
    arrays = [
        np.zeros([int(size) for size in sizes.split(",")], "i8" if x.name == "words" else "f4")
        for x, sizes in zip(model.parameters, shapes, strict=True)
    ]
    xml, weights = ir.dumps(model)
    ours = ir.run(model, arrays)
    theirs = oracle.ask("values", xml.decode(), weights, arrays)
    for one, other in zip(ours.values(), theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_the_least_sizes_are_kept_where_they_do() -> None:
    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "?,3,5..9")]), name="y")
    model = net.model()
    assert sized(model, {}) == {}


def test_a_large_model_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ir.Builder("m")
    value = image(net, 17)
    for _ in range(40):
        value = net.add("ReLU", "opset1", [value])
    net.result(value, name="y")
    model = net.model()
    (x,) = model.parameters
    assert sized(model, {}) == {x.id: "random:1,5,64,64"}
    monkeypatch.setattr(suiting, "LAYERS", 100)
    asked = []
    infer_graph = suiting.infer_graph
    monkeypatch.setattr(
        suiting, "infer_graph", lambda *a, **k: asked.append(1) or infer_graph(*a, **k)
    )
    assert sized(model, {}) == {}
    assert len(asked) < 30


def test_sizes_that_are_too_large_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ir.Builder("m")
    net.result(image(net, 17), name="y")
    model = net.model()
    (x,) = model.parameters
    infer_graph = suiting.infer_graph

    def limited(graph: ir.Model, given: dict[int, Tensor], **words: object) -> object:
        if suiting.PRIME in given[x.id].shape:
            raise LimitError("it is too large")
        return infer_graph(graph, given, **words)

    monkeypatch.setattr(suiting, "infer_graph", limited)
    assert sized(model, {}) == {x.id: "random:1,5,64,64"}


def test_no_sizes_are_looked_for_when_time_is_over() -> None:
    net = ir.Builder("m")
    net.result(image(net, 17), name="y")
    with within(max_seconds=1e-9), pytest.raises(LimitError):
        sized(net.model(), {})


def test_sizes_that_were_given_stay() -> None:
    net = ir.Builder("m")
    net.result(image(net, 17), name="y")
    model = net.model()
    key = model.parameters[0].id
    assert sized(model, {key: "ones:1,?,?,?"}) == {key: "ones:1,5,64,64"}
    assert sized(model, {key: "ones:1,5,32,128"}) == {key: "ones:1,5,32,128"}
    assert sized(model, {key: "image.npy"}) == {key: "image.npy"}


@pytest.mark.parametrize(
    "verb", [["run"], ["bench", "--runs", "1"], ["compare", "--against", "f16"]]
)
def test_verbs_choose_sizes_that_fit_and_say_so(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = ir.Builder("m")
    net.result(image(net, 17), name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    code, _, said = caller(capsys)(*verb, tmp_path / "m.xml")
    assert code == 0, said
    assert "usual ones that fit: -i image=random:1,5,64,64" in said
