"""Quantizations by hand: halves, ends, odd limits, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import Call, expected_values
from vinoir import ir
from vinoir.layers import Op
from vinoir.layers.casting import as_half
from vinoir.schemas import ElementType, IRError, Shape, Tensor


def op(name: str, number: int, **attributes: str) -> Any:
    return Op.registry[name, number].read(attributes)


@pytest.mark.parametrize(
    ("levels", "limits", "data", "expected"),
    [
        # Five levels of 0 to 4: halves go to the even one, beyond the ends lie the outputs' ends.
        (5, (0, 4, 0, 4), [0.5, 1.5, 2.5, -9, 9, 3.4], [0, 2, 2, 0, 4, 3]),
        (5, (0, 4, 10, -10), [0, 1, 4, 9], [10, 5, -10, -10]),
        (2, (0, 1, -1, 1), [0.5, 0.51, 0.49], [-1, 1, -1]),
        # Limits that are the same: what is above is the upper output.
        (256, (1, 1, 0, 5), [0.5, 1, 1.5], [0, 0, 5]),
        # Limits the wrong way round.
        (5, (4, 0, 0, 4), [-1, 0, 1, 4, 5], [0, 0, 3, 0, 4]),
    ],
)
def test_levels(
    levels: int, limits: tuple[float, ...], data: list[float], expected: list[float]
) -> None:
    made = op("FakeQuantize", 1, levels=str(levels))
    (found,) = made.run(np.array(data, "f4"), *(np.array(limit, "f4") for limit in limits))
    assert found.tolist() == expected


@pytest.mark.parametrize(("levels", "expected"), [(2, 2.5), (16, -1.5), (256, -1.5)])
@pytest.mark.parametrize("before", ["Parameter", "Add"])
def test_there_is_no_level_for_nan(levels: int, expected: float, before: str) -> None:
    net = ir.Builder()
    given = net.parameter("x", "f32", (1, 3, 4, 5))
    x = given if before == "Parameter" else net.add("Add", "opset1", [given, given])
    limits = [net.constant(np.float32(limit)) for limit in (-1, 2, -1.5, 2.5)]
    net.result(net.add("FakeQuantize", "opset1", [x, *limits], levels=levels), name="y")
    model = net.model()
    data = np.full((1, 3, 4, 5), 9, "f4")
    data[0, 1, 2] = np.nan
    wanted = np.full((1, 3, 4, 5), 2.5, "f4")
    wanted[0, 1, 2] = expected
    for found in (ir.run(model, [data])["y"], ir.compile(model)([data])["y"]):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, strict=True)


def test_limits_of_paddlepaddle_begin_at_the_front() -> None:
    made = op("FakeQuantize", 1, levels="2", auto_broadcast="pdpd")
    limits = [np.array(limit, "f4") for limit in ([0, 0], [1, 10], [0, 0], [1, 10])]
    (found,) = made.run(np.full((2, 3), 0.9, "f4"), *limits)
    assert found.tolist() == [[1] * 3, [0] * 3]
    single = [np.array(value, "f4") for value in (0.9, 0, 1, 0, 1)]
    assert made.run(*single)[0].tolist() == 1


@pytest.mark.parametrize("kind", ["i4", "i1", "u1"])
def test_of_integers_the_nearest_is_taken(kind: str) -> None:
    low = 0 if kind == "u1" else -4
    for first, last in ((low and -3.5, 3.5), (low and -300, 300)):
        limits = [np.array(value, "f4") for value in (low, low + 7, first, last)]
        inputs = [np.arange(low, low + 8).astype(kind).reshape(1, 8, 1, 1), *limits]
        call = Call("FakeQuantizeV1", inputs, {"levels": "8"}, const=(1, 2, 3, 4))
        (wanted,) = expected_values(call.make(), call.tensors(), call.arrays())
        np.testing.assert_array_equal(call.make().run(*call.arrays())[0], wanted)


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (
            "f8e4m3",
            [449, 1e6, -np.inf, 0.4, 2.0**-9, 2.0**-11],
            [448, 448, -448, 0.40625, 2**-9, 0],
        ),
        ("f8e5m2", [61440, 1e6, -np.inf, 0.4, 0.3], [57344, 57344, -57344, 0.375, 0.3125]),
        # By way of float16, which makes a half of it, and that goes to the even number.
        ("f8e5m2", [1.1251], [1]),
    ],
)
def test_rounded_to_eight_bits(kind: str, data: list[float], expected: list[float]) -> None:
    made = op("FakeConvert", 13, destination_type=kind)
    (found,) = made.run(np.array(data, "f4"), np.array(1, "f4"))
    assert found.tolist() == expected


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
def test_every_number_is_rounded_by_way_of_halves(kind: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype("f4")
    halves = np.sort(halves[np.isfinite(halves)])
    between = (halves[1:] + halves[:-1]) / 2
    sides = [np.nextafter(between, np.float32(side)) for side in (-1e9, 1e9)]
    data = np.concatenate([halves, between, *sides, [np.nan, np.inf, -np.inf]], dtype="f4")
    to = ElementType(kind).dtype
    most = 448 if kind == "f8e4m3" else 57344
    wanted = as_half(np.clip(data, -most, most)).astype(to).astype("f4")
    (found,) = op("FakeConvert", 13, destination_type=kind).run(data, np.array(1, "f4"))
    np.testing.assert_array_equal(found, wanted)
    (found,) = op("FakeConvert", 13, destination_type=kind).run(data[9], np.array(1, "f4"))
    assert found == wanted[9]
    assert found.shape == ()


def test_scaled_shifted_and_back() -> None:
    made = op("FakeConvert", 13, destination_type="f8e4m3")
    (found,) = made.run(np.array([0.3], "f4"), np.array([10], "f4"), np.array([2], "f4"))
    np.testing.assert_allclose(found, [0.3])
    (found,) = made.run(np.array([0.31], "f4"), np.array([10], "f4"), np.array([2], "f4"))
    np.testing.assert_allclose(found, [(1.125 + 2) / 10])


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("scale", [0.37, 12.7])
def test_what_comes_back_is_openvinos_to_the_bit(kind: str, scale: float, tmp_path: Path) -> None:
    """A network of several such is far off as soon as one number ends beside another."""
    ov = pytest.importorskip("openvino")
    rng, net = np.random.default_rng(2), ir.Builder()
    x = (rng.standard_normal((64, 256)) * 10 ** rng.uniform(-3, 3, (64, 256))).astype("f4")
    sides = [net.constant(np.full(1, number, "f4")) for number in (scale, 0.3)]
    y = net.add(
        "FakeConvert", "opset13", [net.parameter("x", "f32", x.shape), *sides],
        destination_type=kind,
    )  # fmt: skip
    net.result(net.add("ReLU", "opset1", [y]))
    path = tmp_path / "model.xml"
    ir.write(net.model(), path)
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    (wanted,) = ov.Core().compile_model(path, "CPU", exact)([x]).values()
    for ours in (ir.run(path, [x]), ir.compile(path)([x])):
        np.testing.assert_array_equal(*ours.values(), wanted)


def test_refusals() -> None:
    four = [Tensor("f32", Shape.parse(s)) for s in ("", "", "", "4")]
    with pytest.raises(IRError, match="do not broadcast"):
        op("FakeQuantize", 1, levels="2").infer(Tensor("f32", (2, 3)), *four)
    with pytest.raises(IRError, match="levels is 1, the least is 2"):
        op("FakeQuantize", 1, levels="1").infer(*[Tensor("f32", (2,))] * 5)
    with pytest.raises(IRError, match="limits widen the data"):
        op("FakeQuantize", 1, levels="2").run(np.ones(1, "f4"), *[np.ones(2, "f4")] * 4)
    with pytest.raises(IRError, match="destination_type is f16"):
        op("FakeConvert", 13, destination_type="f16").infer(*[Tensor("f32", (2,))] * 2)
    with pytest.raises(IRError, match="1,3 and 2,3 differ"):
        op("FakeConvert", 13, destination_type="f8e5m2").infer(
            Tensor("f32", (1, 3)), Tensor("f32", (2, 3))
        )
