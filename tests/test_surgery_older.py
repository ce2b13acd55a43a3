"""Newer operations said by older ones: the same numbers, and what cannot be is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import calls
import numpy as np
import pytest
from conftest import Written
from oracle import Call, ask
from vinoir import ir
from vinoir.ir.checking.rules import known
from vinoir.ir.surgery.older_forms import RULES

CALLS = [call for call in calls.samples() if (call.kind.xml_type, call.kind.number) in RULES]
#: Oldest opset that the rules are asked to reach, one at a time and as far as they go.
OLDEST = 1


def single(call: Call) -> tuple[ir.Model, list[Any]]:
    """A model of one operation, its constants constant, and arrays for the other inputs."""
    net = ir.Builder("m")
    given, inputs = [], []
    for index, tensor in enumerate(call.tensors()):
        if tensor.value is not None:
            inputs.append(net.constant(tensor.value, tensor.type))
        else:
            inputs.append(net.parameter(f"in{index}", tensor.type, tensor.shape))
            given.append(call.arrays()[index])
    made = net.add(call.make(), inputs=inputs, name="op")
    for index, output in enumerate(made):
        net.result(output, name=f"out{index}")
    return net.model(), given


def opsets(model: ir.Model) -> list[int]:
    return [known.opset_number(layer.version) or 0 for layer in model.everywhere()]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_older_forms_give_the_same(call: Call) -> None:
    model, given = single(call)
    answers = ir.run(model, given)
    newest = call.kind.opset_numbers()[0]
    for opset in {newest - 1, (newest + OLDEST) // 2, OLDEST} - {0}:
        done = ir.convert(model, opset=opset, partial=True)
        if done.report.refusals:
            with pytest.raises(ir.UnsupportedError, match="cannot be converted"):
                ir.convert(model, opset=opset)
            continue
        assert max(opsets(done.model)) <= opset
        assert not [x for x in ir.check(done.model).findings if x.severity == "error"]
        older = ir.run(done.model, given)
        assert list(older) == list(answers)
        for name, wanted in answers.items():
            found = older[name]
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(
                found.astype("f8"), wanted.astype("f8"), rtol=1e-4, atol=2e-5, err_msg=name
            )


def test_every_rule_has_a_call() -> None:
    met = {(call.kind.xml_type, call.kind.number) for call in CALLS}
    assert set(RULES) - met <= {("Assign", 6), ("ReadValue", 6), ("GatherND", 8)}


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("seed", range(12))
def test_ceil_torch_by_padding(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 16, 2).tolist()
    kernel = rng.integers(1, 5, 2).tolist()
    pads = [[int(rng.integers(0, k // 2 + 1)) for k in kernel] for _ in range(2)]
    words: dict[str, Any] = {"dilations": (1, 1)} if kind == "MaxPool" else {}
    net = ir.Builder("m")
    x = net.parameter("x", "f32", (1, 2, *sizes))
    made = net.add(
        kind, "opset14", [x], kernel=kernel, strides=rng.integers(1, 5, 2).tolist(),
        pads_begin=pads[0], pads_end=pads[1], rounding_type="ceil_torch",
        data={"exclude-pad": "true"} if kind == "AvgPool" else None, **words,
    )  # fmt: skip
    net.result(made[0], name="y")
    model = net.model()
    older = ir.convert(model, opset=8).model
    array = rng.standard_normal((1, 2, *sizes)).astype("f4")
    wanted = ir.run(model, [array])["y"]
    np.testing.assert_allclose(ir.run(older, [array])["y"], wanted, rtol=1e-6, atol=1e-6)
    xml, weights = ir.dumps(older)
    (theirs,) = ask("values", xml.decode(), weights, [array])
    np.testing.assert_allclose(theirs, wanted, rtol=1e-5, atol=1e-6)


def test_what_cannot_is_listed_with_its_layer() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,2,8,8")
    y = net.add("AvgPool", "opset16", [x], kernel=(2, 2), strides=(1, 1), pads_begin=(0, 0),
                pads_end=(0, 0), dilations=(2, 2), data={"exclude-pad": "true"},
                name="wide")  # fmt: skip
    net.result(net.add("Swish", "opset4", [y], name="soft"), name="y")
    with pytest.raises(ir.UnsupportedError, match=r'"wide" .*dilations are \[2, 2\]'):
        ir.convert(net.model(), target="2022.3")
    done = ir.convert(net.model(), target="2022.3", partial=True)
    assert [row.layer for row in done.report.refusals] == ["wide"]
    done = ir.convert(net.model(), opset=16)
    assert not done.report.changes


def test_bits_of_booleans_are_truth() -> None:
    for kind, fits in (("boolean", True), ("i32", False)):
        net = ir.Builder("m")
        x, y = (net.parameter(name, kind, "2,3") for name in "xy")
        both = net.add("BitwiseAnd", "opset13", [x, y], auto_broadcast="numpy")
        net.result(net.add("BitwiseNot", "opset13", [both], name="not"), name="z")
        done = ir.convert(net.model(), target="2022.3", partial=True)
        assert bool(done.report.refusals) is not fits
        types = {layer.type for layer in done.model}
        assert ({"LogicalAnd", "LogicalNot"} <= types) is fits
    assert "of boolean LogicalAnd does" in done.report.refusals[0].reason


def test_a_layer_that_was_not_made_keeps_its_name() -> None:
    """An input of the model, the name of which begins with that of a layer that goes."""
    net = ir.Builder("m")
    made = net.add("Identity", "opset16", [net.parameter("x/in", "f32", "2")], name="x")
    net.result(net.add("ReLU", "opset1", [made], name="r"), name="y")
    done = ir.convert(net.model(), opset=8)
    assert [layer.name for layer in done.model.layers] == ["x/in", "r", "y"]


@pytest.mark.parametrize("known", [True, False])
def test_scattered_indices_count_from_the_start(known: bool) -> None:
    """ScatterElementsUpdate-3 has no others."""
    net, indices = ir.Builder("m"), np.array([[-1, 0, 1], [2, -3, -2]])
    x, given = net.parameter("x", "f32", "2,4"), [np.arange(8, dtype="f4").reshape(2, 4)]
    if known:
        places = net.constant(indices)
    else:
        places = net.parameter("i", "i64", "2,3")
        given.append(indices)
    inputs = [x, places, net.constant(np.full((2, 3), 9, "f4")), net.constant(np.array(1))]
    net.result(net.add("ScatterElementsUpdate", "opset12", inputs, name="s"), name="y")
    older = ir.convert(net.model(), target="2022.3").model
    assert older.layer("s").version == "opset3"
    assert "FloorMod" in {layer.type for layer in older}
    wanted = given[0].copy()
    np.put_along_axis(wanted, indices % 4, 9, 1)
    np.testing.assert_array_equal(ir.run(older, given)["y"], wanted)
    xml, weights = ir.dumps(older)
    (theirs,) = ask("values", xml.decode(), weights, given)
    np.testing.assert_array_equal(theirs, wanted)


def test_targets_and_versions(tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,4")
    net.result(net.add("Swish", "opset4", [x], name="soft"), name="y")
    done = ir.convert(net.model(), target="2020.4")
    assert done.model.version == 10
    ir.write(done.model, tmp_path / "old.xml")
    codes = {x.code for x in ir.check(tmp_path / "old.xml", "2020.4").findings}
    assert not codes & {"IR901", "IR902", "IR903", "IR904"}
    again = ir.convert(done.model, ir_version=11).model
    assert again.version == 11
    array = np.linspace(-2, 2, 4, dtype="f4")[None]
    np.testing.assert_allclose(
        ir.run(again, [array])["y"], ir.run(net.model(), [array])["y"], rtol=1e-6
    )
    for words in ({}, {"opset": 99}, {"target": "2019.1"}, {"ir_version": 7}):
        with pytest.raises(ir.UsageError):
            ir.convert(net.model(), **words)


def test_ir_version_10_to_11_keeps_what_is_seen_from_outside(tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f16", "1,4")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    net.result(net.add("ShapeOf", "opset3", [x], name="sizes"), name="s")
    old = net.model()
    old.version = 10
    new = ir.convert(old, ir_version=11).model
    assert [str(t) for t in ir.infer(new).values()] == [str(t) for t in ir.infer(old).values()]
    assert {layer.data["element_type"] for layer in new.parameters} == {"f32"}


@pytest.mark.parametrize("words", [{"target": "2024.0"}, {"ir_version": 10}])
def test_outputs_keep_the_names_that_stand_at_the_result(
    words: dict[str, Any], tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,4")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="r")
    model = net.model()
    (result,) = model.results
    model.layer("relu").outputs[0].names = ()
    result.output_names = "o,p"
    ir.write(ir.convert(model, **words).model, tmp_path / "old.xml")
    (output,) = openvino.Core().read_model(tmp_path / "old.xml").outputs
    assert {"o", "p"} <= output.get_names()
    assert {"o", "p"} <= {*ir.read(tmp_path / "old.xml").outputs[0].names}
    model.layer("x").outputs[0].names = ("p",)
    with pytest.raises(ir.UnsupportedError, match='two tensors would be named "p"'):
        ir.convert(model, **words)


def test_ir_version_10_to_11_keeps_the_names_by_which_openvino_asks(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "2,4")
    parts = net.add("Split", "opset1", [x, net.constant(np.array(1))], num_splits=2, name="cut")
    for index, part in enumerate(parts):
        net.result(part, name=f"r{index}")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="r2")
    old = net.model()
    old.layer("x").outputs[0].names = ("t",)
    for layer in old.results:
        layer.output_names = None
    old.version = 10
    ir.write(old, tmp_path / "old.xml")
    ir.write(ir.convert(old, ir_version=11).model, tmp_path / "new.xml")
    one, two = (openvino.Core().read_model(tmp_path / f"{x}.xml") for x in ("old", "new"))
    for side in ("inputs", "outputs"):
        for before, after in zip(getattr(one, side), getattr(two, side), strict=True):
            assert before.get_names() == after.get_names()


@pytest.mark.parametrize(("sigma", "fits"), [(None, True), (0.0, True), (0.5, False)])
def test_boxes_that_fade_are_not_those_of_older_suppressions(
    sigma: float | None, fits: bool
) -> None:
    net = ir.Builder("m")
    given = [net.parameter("b", "f32", "1,4,4"), net.parameter("s", "f32", "1,1,4")]
    given.append(net.constant(np.array(4, "i8"), "i64"))
    numbers = (0.3, 0.01) if sigma is None else (0.3, 0.01, sigma)
    given += [net.constant(np.array(number, "f4"), "f32") for number in numbers]
    made = net.add("NonMaxSuppression", "opset9", given, name="nms")
    net.result(made[0] if isinstance(made, tuple) else made, name="y")
    done = ir.convert(net.model(), opset=8, partial=True)
    assert done.model.layer("nms").version == ("opset5" if fits else "opset9")
    assert bool(done.report.refusals) is not fits


def test_files_of_openvino_can_be_brought_down(written: Written, tmp_path: Path) -> None:
    reached = 0
    for path in [*written.folder.glob("network.*.xml"), *written.all("*Pool.*")]:
        model = ir.read(path)
        done = ir.convert(model, target="2022.3", partial=True)
        if done.report.refusals:
            continue
        reached += 1
        ir.write(done.model, tmp_path / "old.xml")
        report = ir.check(tmp_path / "old.xml", "2022.3")
        assert not report.errors, report
    assert reached > 5
