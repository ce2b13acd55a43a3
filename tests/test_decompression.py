"""Weights made of levels in half precision are rounded where OpenVINO rounds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.document import Info
from vinoir.ir.execution import Halves, halves
from vinoir.schemas import ElementType

#: What reads the weights: the layer whose result is wanted, and what else reads them.
READERS = [
    ("MatMul", ""), ("MatMul", "MatMul"), ("MatMul", "Gather"), ("MatMul", "ShapeOf"),
    ("MatMul", "Relu"), ("MatMul", "Result"), ("MatMul", "Reshape"), ("MatMul", "old Gather"),
    ("MatMul", "Gather, ShapeOf"), ("MatMul", "Gather, Relu"), ("MatMul", "Gather, Result"),
    ("MatMul", "Gather, old Gather"), ("MatMul", "Gather, Reshape"),
    ("MatMul of Transpose", "Gather, ShapeOf"), ("MatMul of Transpose", "Gather"),
    ("MatMul of Transpose", ""), ("MatMul of Reshape", ""), ("Gather", ""), ("Add", ""),
    ("MatMul of Reshape", "Gather"), ("Gather", "Gather, ShapeOf"), ("Gather", "old Gather"),
    ("Convolution", "ShapeOf"),
    ("Convolution", ""), ("Convolution", "Relu"), ("Convolution of pixels", ""),
    ("Convolution of pixels", "Relu"), ("Convolution of points", ""),
    ("GroupConvolution", ""), ("GroupConvolution of pixels", ""), ("ConvolutionBackpropData", ""),
]  # fmt: skip
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "Convolution": ((24, 12, 3, 3), (1, 12, 7, 7)),
    "Convolution of pixels": ((24, 12, 1, 1), (1, 12, 7, 7)),
    "Convolution of points": ((24, 12, 1), (1, 12, 7)),
    "GroupConvolution of pixels": ((24, 1, 1, 1, 1), (1, 24, 7, 7)),
    "ConvolutionBackpropData": ((12, 6, 3, 3), (1, 12, 7, 7)),
    "GroupConvolution": ((24, 1, 1, 3, 3), (1, 24, 7, 7)),
    "Add": ((24, 32), (24, 32)),
}


def weights(net: ir.Builder, shape: tuple[int, ...], kind: str, zero: bool, groups: int) -> Any:
    rng = np.random.default_rng(3)
    levels_of = ElementType(kind)
    most = 1 << levels_of.bits
    low, high = (0, most) if kind.startswith("u") else (-most // 2, most // 2)
    sizes = (shape[0], groups, shape[1] // groups) if groups else shape
    beside = (shape[0], groups, 1) if groups else (shape[0], *[1] * (len(shape) - 1))

    def levels(sizes: tuple[int, ...]) -> Any:
        drawn = rng.integers(low, high, sizes)
        if not levels_of.is_integral:
            drawn = rng.uniform(-1, 1, sizes).astype("f4").astype(levels_of.dtype)
        made = net.constant(drawn, kind)
        return net.add("Convert", "opset1", [made], destination_type="f16")

    made = levels(sizes)
    if zero:
        made = net.add("Subtract", "opset1", [made, levels(beside)])
    scale = net.constant(rng.random(beside) / 50 + 0.001, "f16")
    made = net.add("Multiply", "opset1", [made, scale])
    if groups:
        made = net.add(
            "Reshape", "opset1", [made, net.constant(np.array(shape))], special_zero=False
        )
    return net.add("Convert", "opset1", [made], name="end", destination_type="f32")


def network(
    reader: str, other: str, *, kind: str = "u8", zero: bool = True, groups: int = 0
) -> tuple[ir.Model, tuple[int, ...]]:
    shape, sizes = SHAPES.get(reader, ((24, 32), (5, 32)))
    net = ir.Builder()
    x = net.parameter("x", "f32", sizes)
    end = given = weights(net, shape, kind, zero, groups)
    places, axis = net.constant(np.array([1, 2])), net.constant(np.array(0))
    if reader.endswith("Transpose"):
        given = net.add("Transpose", "opset1", [end, net.constant(np.array([1, 0]))])
    if reader.endswith("Reshape"):
        given = net.add(
            "Reshape", "opset1", [end, net.constant(np.array(shape))], special_zero=False
        )
    axes = len(sizes) - 2
    windows = {name: [1] * axes for name in ("strides", "dilations")}
    windows |= {name: [0] * axes for name in ("pads_begin", "pads_end")}
    if reader.startswith("MatMul"):
        turned = not reader.endswith("Transpose")
        made = net.add("MatMul", "opset1", [x, given], transpose_b=turned)
    elif reader == "Gather":
        net.result(net.add("Relu", "opset1", [x]))
        made = net.add("Gather", "opset8", [given, places, axis])
    else:
        words = windows if reader != "Add" else {}
        made = net.add(reader.split()[0], "opset1", [x, given], **words)
    net.result(made)
    for one in filter(None, other.split(", ")):
        if one == "MatMul":
            net.result(net.add("MatMul", "opset1", [x, end], transpose_b=True))
        elif one == "Gather":
            net.result(net.add("Gather", "opset8", [end, places, axis]))
        elif one == "old Gather":
            net.result(net.add("Gather", "opset1", [end, places, axis]))
        elif one == "ShapeOf":
            net.result(net.add("ShapeOf", "opset3", [end], output_type="i64"))
        elif one == "Relu":
            net.result(net.add("Relu", "opset1", [end]))
        elif one == "Reshape":
            flat = net.constant(np.array([-1]))
            net.result(net.add("Reshape", "opset1", [end, flat], special_zero=False))
        elif one == "Result":
            net.result(end)
    model = net.model()
    return model, sizes


def mark(model: ir.Model, name: str = "end") -> None:
    """As the end of a compression, the way models in half precision are saved."""
    layer = next(layer for layer in model.order() if layer.name == name)
    layer.rt_info = Info(
        "rt_info", {}, [Info("attribute", {"name": "decompression", "version": "0"})]
    )


#: Levels, zeros beside them, groups, which are of matrices; and who reads them.
CASES = [
    (*levels, *readers)
    for levels in (("u8", True, 0), ("i8", False, 0), ("u4", True, 4))
    for readers in READERS
    if not levels[2] or len(SHAPES.get(readers[0], ((), ()))[0]) <= 2
]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(("kind", "zero", "groups", "reader", "other"), CASES)
def test_levels_in_half_precision_become_what_openvino_makes_of_them(
    kind: str, zero: bool, groups: int, reader: str, other: str, marked: bool, tmp_path: Path
) -> None:
    ov = pytest.importorskip("openvino")
    model, sizes = network(reader, other, kind=kind, zero=zero, groups=groups)
    if marked:
        mark(model)
    path = tmp_path / "model.xml"
    ir.write(model, path)
    x = np.random.default_rng(1).standard_normal(sizes).astype("f4")
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    theirs = ov.Core().compile_model(path, "CPU", exact)([x]).values()
    for ours in (ir.run(path, [x]), ir.compile(path)([x])):
        for mine, wanted in zip(ours.values(), theirs, strict=True):
            assert np.abs(mine - wanted).max() <= 2e-6 * np.abs(wanted).max()


#: Who reads weights of any levels: products, rows of a table, what convolves pixels, others.
ANY_READERS = [
    ("MatMul", ""), ("MatMul of Transpose", ""), ("MatMul", "Gather"), ("MatMul", "Relu"),
    ("Gather", ""), ("Add", ""), ("Convolution of pixels", ""), ("Convolution", ""),
]  # fmt: skip


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(("reader", "other"), ANY_READERS)
@pytest.mark.parametrize(
    "kind", ["u1", "u2", "u3", "u6", "i4", "nf4", "f4e2m1", "f8e4m3", "f8e5m2"]
)
def test_levels_of_any_type_become_what_openvino_makes_of_them(
    kind: str, reader: str, other: str, marked: bool, tmp_path: Path
) -> None:
    zero = ElementType(kind).is_integral
    test_levels_in_half_precision_become_what_openvino_makes_of_them(
        kind, zero, 0, reader, other, marked, tmp_path
    )


def scaled(net: ir.Builder, source: str, columns: int) -> Any:
    """A scale in half precision, converted from constants of another type."""
    rng = np.random.default_rng(5)
    if source in ("i32", "u16"):
        made = net.constant(rng.integers(3000, 30000, (24, columns)), source)
    else:
        made = net.constant(rng.uniform(0.01, 0.02, (24, columns)), source)
    if source == "f8e4m3":  # as NNCF writes scales of nvfp4
        made = net.add("Convert", "opset1", [made], destination_type="f32")
        made = net.add("Multiply", "opset1", [made, net.constant(np.full((1, 1), 0.77, "f4"))])
    return net.add("Convert", "opset1", [made], destination_type="f16")


@pytest.mark.parametrize("reader", ["MatMul", "Add"])
@pytest.mark.parametrize("levels", ["f4e2m1", "u4", ""])
@pytest.mark.parametrize("source", ["f32", "f64", "bf16", "i32", "u16", "f8e4m3"])
def test_constants_that_a_convert_makes_halves_are_rounded(
    source: str, levels: str, reader: str, tmp_path: Path
) -> None:
    ov = pytest.importorskip("openvino")
    net, rng = ir.Builder(), np.random.default_rng(1)
    scale = scaled(net, source, 1 if levels else 32)
    if levels:
        given = net.constant(rng.integers(0, 6, (24, 32)), levels)
        given = net.add("Convert", "opset1", [given], destination_type="f16")
        scale = net.add("Multiply", "opset1", [given, scale])
    made = net.add("Convert", "opset1", [scale], destination_type="f32")
    x = rng.standard_normal((24, 32)).astype("f4")
    turned = {"transpose_b": True} if reader == "MatMul" else {}
    net.result(net.add(reader, "opset1", [net.parameter("x", "f32", x.shape), made], **turned))
    path = tmp_path / "model.xml"
    ir.write(net.model(), path)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    (wanted,) = ov.Core().compile_model(path, "CPU", exact)([x]).values()
    for ours in (ir.run(path, [x]), ir.compile(path)([x])):
        (mine,) = ours.values()
        assert np.abs(mine - wanted).max() <= 2e-6 * np.abs(wanted).max()


def test_constants_are_rounded_before_levels_are_made_of_them(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    net, rng = ir.Builder(), np.random.default_rng(4)
    weights = net.constant(rng.uniform(-1, 1, (24, 32)).astype("f4"))
    weights = net.add("Convert", "opset1", [weights], destination_type="f16")
    ends = [net.constant(np.full((24, 1), end, "f2")) for end in (-1, 0.9921875)] * 2
    weights = net.add("FakeQuantize", "opset1", [weights, *ends], levels=256)
    x = rng.standard_normal((5, 32)).astype("f4")
    given = net.parameter("x", "f32", x.shape)
    given = net.add("Convert", "opset1", [given], destination_type="f16")
    made = net.add("MatMul", "opset1", [given, weights], transpose_b=True)
    net.result(net.add("Convert", "opset1", [made], destination_type="f32"))
    path = tmp_path / "model.xml"
    ir.write(net.model(), path)
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    (wanted,) = ov.Core().compile_model(path, "CPU", exact)([x]).values()
    for ours in (ir.run(path, [x]), ir.compile(path)([x])):
        (mine,) = ours.values()
        assert np.abs(mine - wanted).max() <= 2e-6 * np.abs(wanted).max()


def test_what_is_rounded_is_told_by_who_reads_it() -> None:
    for reader, other in READERS:
        model, _ = network(reader, other)
        assert halves(model, model.order()) == Halves(set(), set())
        mark(model)
        takes_levels = reader in (
            "MatMul", "MatMul of Transpose", "Gather", "Convolution of pixels"
        )  # fmt: skip
        of_rows = "Gather" in (reader, *other.split(", "))
        rounded = not takes_levels or bool({*other.split(", ")} - {"", "MatMul", "Gather"})
        layers, inputs = halves(model, model.order())
        assert bool(layers) == (rounded and not of_rows)
        others = {reader, *other.split(", ")} - {"", "Gather", "ShapeOf"}
        assert bool(inputs) == (rounded and of_rows and bool(others))
        read = {(x.type, x.version) for x in (model.layer(place) for place, _ in inputs)}
        assert not read & {("ShapeOf", "opset3"), ("Gather", "opset8")}


def test_what_a_variable_holds_is_not_rounded() -> None:
    """It is no constant, though what it begins with is one."""
    net = ir.Builder()
    begin = net.constant(np.zeros(3), "f16")
    words = {"variable_id": "v", "variable_type": "f16", "variable_shape": "3"}
    held = net.add("ReadValue", "opset6", [begin], **words)
    end = net.add("Convert", "opset1", [held], name="end", destination_type="f32")
    net.result(net.add("Add", "opset1", [net.parameter("x", "f32", (3,)), end]))
    model = net.model()
    mark(model)
    assert halves(model, model.order()) == Halves(set(), set())
    third = np.full(3, 1 / 3, "f4")
    (found,) = ir.run(model, [third], state={"v": third}).values()
    np.testing.assert_array_equal(found, third + third)


def test_a_table_that_is_read_rounded_and_as_it_is_is_made_once_for_all_plans() -> None:
    net = ir.Builder()
    x, places = net.parameter("x", "f32", "?,32"), net.parameter("places", "i64", (3,))
    end = weights(net, (24, 32), "u8", True, 0)
    net.result(net.add("MatMul", "opset1", [x, end], transpose_b=True))
    net.result(net.add("Gather", "opset8", [end, places, net.constant(np.array(0))]))
    net.result(net.add("ShapeOf", "opset3", [end], output_type="i64"))
    model = net.model()
    mark(model)
    program = ir.compile(model)
    for rows in (2, 3):
        program([np.ones((rows, 32), np.float32), np.array([1, 2, 3])])
    plans = [planned.plan for planned in program._plans.values() if planned is not None]
    numbers = []
    for plan in plans:
        read = {node.kind: node.inputs for node in plan.nodes}
        # Rows of the table are taken of levels, numbers are what is multiplied by.
        assert read["Gather"][0].packed is not None
        assert read["MatMul"][1].packed is None
        numbers.append(read["MatMul"][1].constant)
    first, second = numbers
    assert first is not None
    assert second is not None
    assert np.shares_memory(first, second)
