"""Values that callers give for constants: what is held is their own, and what was meant."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError

ROW = np.arange(3, dtype=np.float32)


def sum_of(value: Any, kind: str = "f32") -> ir.Model:
    """A model that adds a value to its input."""
    net = ir.Builder("m")
    net.result(ir.ops.Add(net.parameter("x", kind, "3"), value), name="y")
    return net.model()


def constant_of(value: Any, kind: str | None = None) -> ir.Layer:
    return ir.Builder("m").constant(value, kind, name="k").layer


def test_a_buffer_that_is_used_again_changes_no_model() -> None:
    buffer = np.empty(3, np.float32)
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "3")
    for step in (1, 2, 4):
        buffer[:] = step
        x = net.add("Add", "opset1", [x, buffer])
        buffer[:] = 10 * step
        x = net.add("Add", "opset1", [x, net.constant(buffer)])
    net.result(x, name="y")
    buffer[:] = 1000
    assert ir.run(net.model(), {"x": ROW})["y"].tolist() == [77, 78, 79]


def test_a_buffer_that_is_used_again_changes_no_known_value() -> None:
    sizes = np.array([2, 3])
    net = ir.Builder("m")
    turned = net.add("Reshape", "opset1", [sizes, np.array([1, 2])], special_zero=False)
    sizes[:] = 7
    assert turned.tensor.value is not None
    assert turned.tensor.value.tolist() == [[2, 3]]


def test_a_new_value_is_apart_from_the_array_it_was_given_as() -> None:
    model = sum_of(ROW)
    (constant,) = model.constants
    given = np.ones(3, np.float32)
    constant.value = given
    program = ir.compile(model)
    given[:] = 100
    assert program({"x": ROW})["y"].tolist() == [1, 2, 3]
    assert constant.value.tolist() == [1, 1, 1]
    for one in (
        constant,
        model.copy().constants[0],
        pickle.loads(pickle.dumps(model)).constants[0],
    ):
        with pytest.raises(ValueError, match="read-only"):
            one.value[:] = 7


def test_a_read_only_view_of_what_the_caller_changes_is_not_trusted() -> None:
    given = np.ones(3, np.float32)
    view = given.view()
    view.flags.writeable = False
    constants = [constant_of(view), constant_of(np.broadcast_to(given, (2, 3)))]
    constants.append(constant_of(np.broadcast_to(given[:1], (1000, 3))))
    given[:] = 5
    assert all((constant.value == 1).all() for constant in constants)
    assert constants[2].value.strides[0] == 0  # held once, as it was given


def test_an_array_that_was_made_read_only_may_have_older_views() -> None:
    given, raw = np.ones(3, np.float32), bytearray(np.ones(3, np.float32).tobytes())
    older, seen = given[:], np.frombuffer(memoryview(raw).toreadonly(), np.float32)
    given.flags.writeable = False
    constants = [constant_of(given), constant_of(given[:2]), constant_of(seen)]
    older[:] = 5
    raw[:] = bytes(12)
    assert all((constant.value == 1).all() for constant in constants)
    # What a constant holds another can hold, too.
    held = constants[0].value
    assert constant_of(held).value is held
    assert np.shares_memory(constant_of(held[1:]).value, held)


def test_one_text_stays_of_any_width() -> None:
    layer = constant_of("text")
    assert layer.value.dtype == np.dtypes.StringDType()
    assert copy.deepcopy(layer).value.dtype == np.dtypes.StringDType()
    assert ir.Builder().add("Unsqueeze", "opset1", [np.array("text"), [0]]).tensor.type == "string"


def test_a_hint_about_numbers_is_given_where_a_number_is_of_another_type() -> None:
    net = ir.Builder()
    image, fraction = net.parameter("x", "f32", "1,3,4,4"), "beside it"
    with pytest.raises(IRError, match="3 channels, the filters take 5") as caught:
        net.add(
            "Convolution", "opset1", [image, np.ones((2, 5, 1, 1), "f4")],
            strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
        )  # fmt: skip
    assert fraction not in str(caught.value)
    with pytest.raises(IRError, match="do not broadcast") as caught:
        net.add("Add", "opset1", [image, [1.0, 2.0, 3.0]])
    assert fraction not in str(caught.value)
    whole = net.parameter("y", "i32", "2")
    with pytest.raises(IRError, match="differ") as caught:
        net.add("Add", "opset1", [whole, 0.5])
    assert fraction in str(caught.value)


def test_weights_that_nobody_changes_are_not_copied(tmp_path: Any) -> None:
    ir.write(sum_of(ROW), tmp_path / "m.xml")
    model = ir.read(tmp_path / "m.xml")
    (constant,) = model.constants
    mapped = constant.value
    assert np.shares_memory(constant_of(mapped).value, mapped)
    still = np.frombuffer(ROW.tobytes(), np.float32)
    assert np.shares_memory(constant_of(still).value, still)


@pytest.mark.parametrize(("kind", "most"), [("f16", 65504.0), ("bf16", 2.0**128 - 2.0**120)])
def test_numbers_do_not_become_infinite(kind: str, most: float) -> None:
    for value in (most, -most, float("inf"), float("nan")):
        for model in (sum_of(value, kind), sum_of([value] * 3, kind)):
            held = np.float64(model.constants[0].value.reshape(-1)[0])
            assert np.array_equal(held, value, equal_nan=True) or abs(held) == most
    for value in (most * 2, [1.0, -most * 2, 0.0]):
        with pytest.raises(IRError, match=rf"{kind} and f32 differ|{kind} does not hold"):
            sum_of(value, kind)
        with pytest.raises(IRError, match=f"{kind} does not hold"):
            constant_of(value, kind)
        with pytest.raises(IRError, match=f"{kind} does not hold"):
            sum_of(ROW).constants[0].set_value(value, kind)


@pytest.mark.parametrize(("value", "kind"), [
    (300, "u8"), (-1, "u8"), (-1, "u64"), (2**63, "i64"), (np.int32([-1]), "u32"),
    (np.uint8([200]), "i8"), (0.5, "i32"), (2, "boolean"), (16, "u4"), (-1, "u1"),
    (0, "f8e8m0"), (1000, "f8e4m3"), (2**70, None), (["a"], "f32"), ([1], "string"),
    (np.complex64([1]), None), (np.longdouble([1]), None), (np.zeros(1, "M8[D]"), None),
    (np.zeros(2, [("a", "f4")]), None), (None, None), ([[1], [1, 2]], None),
    (["\ud800"], None), (["\ud800"], "string"), ([b"\xff"], None), ([1], "dynamic"),
])  # fmt: skip
def test_what_a_type_does_not_hold_is_refused(value: Any, kind: str | None) -> None:
    with pytest.raises(ir.UsageError):
        constant_of(value, kind)
    layer = ir.Layer("Const", "opset1", "k")
    with pytest.raises(ir.UsageError):
        layer.set_value(value, kind)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">f8", ">u8"])
def test_numbers_of_the_other_byte_order(dtype: str) -> None:
    given = np.arange(3).astype(dtype)
    held = constant_of(given).value
    assert held.dtype == np.dtype(dtype).newbyteorder("=")
    assert held.tolist() == [0, 1, 2]
    kind = {"f": "f", "i": "i", "u": "u"}[dtype[1]] + str(8 * int(dtype[2]))
    feed = np.zeros(3, held.dtype)
    assert ir.run(sum_of(given, kind), {"x": feed})["y"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["string", "f32", "u4", "i64", "boolean"])
def test_nothing_is_of_every_type(kind: str) -> None:
    assert constant_of([], kind).value.shape == (0,)


def test_a_whole_number_takes_the_type_beside_it() -> None:
    model = sum_of(2**63, "u64")
    assert ir.run(model, {"x": np.zeros(3, np.uint64)})["y"].tolist() == [2**63] * 3
    for kind, value in (("u8", 255), ("i8", -128), ("f32", 2**24), ("f16", 2048)):
        assert sum_of(value, kind).constants[0].value == value
    for kind, value in (("u8", -1), ("f32", 2**24 + 1), ("f16", 100000), ("i64", 2**63)):
        with pytest.raises(IRError, match=r"differ|hold"):
            sum_of(value, kind)


def test_a_whole_number_may_lose_digits_where_a_real_type_is_asked_for() -> None:
    assert constant_of([2**24 + 1], "f32").value.tolist() == [2**24]
    assert constant_of([300], "f8e4m3").value.tolist() == [288]
