"""Elementwise operations: values that are partly known, accuracy, corners of integers and NaN."""

from __future__ import annotations

import contextlib
import math
from itertools import product
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.layers.arithmetic_functions import erf_inverse
from vinoir.layers.elementwise import Binary, Unary, erf, settled
from vinoir.layers.value_bounds import largest
from vinoir.schemas import Array, Dim, ElementType, IRError, Shape, Tensor

INF, NAN = np.inf, np.nan

#: Limits of sizes; None: without limit.
SIZES = [(2, 5), (3, None), (7, 7), (0, None), (0, 4)]
OTHERS = [(2, 2), (2, 5), (3, None), (0, None), (1, 4), (6, 8)]
#: Operation, its name in OpenVINO's Python, subtracted from the sizes before.
PAIRS = [
    ("AddV1", "add", 0),
    ("AddV1", "add", 3),
    ("SubtractV1", "subtract", 0),
    ("MultiplyV1", "multiply", 0),
    ("MultiplyV1", "multiply", 3),
    ("DivideV1", "divide", 0),
    ("MinimumV1", "minimum", 3),
    ("MaximumV1", "maximum", 3),
    ("PowerV1", "power", 0),
    ("EqualV1", "equal", 0),
]


def op(name: str, **data: str) -> Op:
    kind, _, number = name.rpartition("V")
    made: Op = Op.registry[kind, int(number)].read(data)
    return made


def partly(rows: Any, kind: str, less: int) -> Tensor:
    """ShapeOf of such sizes, less a number."""
    parts = np.empty(len(rows), object)
    parts[:] = [low if low == high else Dim(low, high) for low, high in rows]
    shape = Tensor(kind, (len(rows),), parts=parts)
    if not less:
        return shape
    number = Tensor.of(np.array(less, shape.type.dtype))
    return op("SubtractV1").infer_outputs([shape, number])[0]


def theirs(ov: Any, rows: Any, kind: str, less: int) -> Any:
    """The same in OpenVINO."""
    import openvino.opset15 as ops

    sizes = [ov.Dimension(low, -1 if high is None else high) for low, high in rows]
    shape = ops.shape_of(ops.parameter(ov.PartialShape(sizes), np.float32), kind)
    number = np.array(less, np.int32 if kind == "i32" else np.int64)
    return ops.subtract(shape, ops.constant(number)) if less else shape


def their_bounds(node: Any) -> tuple[Array, Array] | None:
    import openvino.opset15 as ops

    # What needs the value makes OpenVINO work it out; it refuses sizes below zero.
    with contextlib.suppress(RuntimeError):
        ops.broadcast(ops.constant(1.0), ops.convert(node, "i64"))
    tensor = node.output(0).get_tensor()
    try:
        return np.array(tensor.get_lower_value().data), np.array(tensor.get_upper_value().data)
    except RuntimeError:
        # Its tensors say so when they are read, if there is nothing in them.
        return None


@pytest.mark.parametrize("kind", ["i64", "i32"])
@pytest.mark.parametrize(("name", "builder", "less"), PAIRS)
def test_bounds_are_those_of_openvino(name: str, builder: str, less: int, kind: str) -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    for one, other in product(SIZES, OTHERS):
        inputs = [partly([one], kind, less), partly([other], kind, less)]
        (ours,) = op(name).infer_outputs(inputs)
        nodes = [theirs(ov, [one], kind, less), theirs(ov, [other], kind, less)]
        wanted = their_bounds(getattr(ops, builder)(*nodes))
        assert (ours.bounds is None) == (wanted is None)
        if wanted is not None and ours.bounds is not None:
            same_bounds(ours.bounds, wanted, f"{one} {other}")


def same_bounds(ours: tuple[Array, Array], theirs: tuple[Array, Array], told: str = "") -> None:
    """As OpenVINO has them, which tells of what has no limit that it is not below zero."""
    endless = theirs[1] == largest(theirs[1].dtype)
    low = np.where(endless, np.maximum(ours[0], theirs[0]), ours[0])
    np.testing.assert_array_equal((low, ours[1]), theirs, told)


#: What is done with the sizes after they became real numbers, before they are whole again.
CHAINS = [
    ("MultiplyV1", "multiply", 2.0),
    ("MultiplyV1", "multiply", 0.5),
    ("MultiplyV1", "multiply", 0.7),
    ("DivideV1", "divide", 1.5),
    ("AddV1", "add", 0.5),
    ("SubtractV1", "subtract", 1.5),
    ("MinimumV1", "minimum", 2.5),
    ("MaximumV1", "maximum", 2.5),
    ("PowerV1", "power", 0.5),
]


@pytest.mark.parametrize(("name", "builder", "factor"), CHAINS)
def test_bounds_go_through_real_numbers(name: str, builder: str, factor: float) -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    number = np.array([factor], "f4")
    real = op("ConvertV1", destination_type="f32")
    whole = op("ConvertV1", destination_type="i64")
    (ours,) = real.infer_outputs([partly(SIZES, "i64", 0)])
    (ours,) = op(name).infer_outputs([ours, Tensor.of(number)])
    (ours,) = whole.infer_outputs([ours])
    node = ops.convert(theirs(ov, SIZES, "i64", 0), "f32")
    node = ops.convert(getattr(ops, builder)(node, ops.constant(number)), "i64")
    wanted = their_bounds(node)
    assert wanted is not None
    assert ours.bounds is not None
    same_bounds(ours.bounds, wanted)


def test_bounds_of_one_input() -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    for name, data, build in [
        ("AbsV1", {}, ops.abs),
        ("ClampV1", {"min": "1", "max": "3"}, lambda node: ops.clamp(node, 1, 3)),
        ("FloorV1", {}, ops.floor),
        ("ReLUV1", {}, ops.relu),
        ("NegativeV1", {}, ops.negative),
    ]:
        # OpenVINO's Abs of -1..2 does not reach 0.
        for less in (0, 3) if name != "AbsV1" else (0,):
            (ours,) = op(name, **data).infer_outputs([partly(SIZES, "i64", less)])
            wanted = their_bounds(build(theirs(ov, SIZES, "i64", less)))
            assert (ours.bounds is None) == (wanted is None)
            if wanted is not None:
                np.testing.assert_array_equal(ours.bounds, wanted, f"{name} {less}")


def test_bounds_of_what_is_selected() -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    chosen, numbers = np.array([True, False, True, True, False]), np.array([4, 2, 7, 1, 9])
    inputs = [Tensor.of(chosen), partly(SIZES, "i64", 0), Tensor.of(numbers)]
    (ours,) = op("SelectV1").infer_outputs(inputs)
    wanted = their_bounds(
        ops.select(ops.constant(chosen), theirs(ov, SIZES, "i64", 0), ops.constant(numbers))
    )
    assert wanted is not None
    assert ours.bounds is not None
    np.testing.assert_array_equal(ours.bounds, wanted)
    inputs[0] = op("EqualV1").infer_outputs([inputs[1], inputs[2]])[0]
    assert op("SelectV1").infer_outputs(inputs)[0].bounds is None


@pytest.mark.parametrize("name", ["ModV1", "FloorModV1"])
def test_bounds_of_remainders_hold(name: str) -> None:
    # OpenVINO's do not all hold, so they are counted out.
    rows = [(0, 4), (2, 5), (7, 7), (13, 14), (5, 9), (20, 23)]
    for one, other in product(rows, [(2, 2), (5, 5), (3, 9), (30, 40), (1, 3)]):
        (ours,) = op(name).infer_outputs([partly([one], "i64", 0), partly([other], "i64", 0)])
        found = [a % b for a in range(one[0], one[1] + 1) for b in range(other[0], other[1] + 1)]
        assert ours.bounds is not None
        assert ours.bounds[0] <= min(found) <= max(found) <= ours.bounds[1]
        if one[0] == one[1] and other[0] == other[1]:
            assert ours.value == found[0]


def elementwise() -> list[type[Op]]:
    return [kind for kind in Op.registry.values() if issubclass(kind, (Unary, Binary))]


@pytest.mark.parametrize("operation", elementwise(), ids=lambda kind: kind.__name__)
def test_every_type_that_is_allowed_is_calculated_with(operation: type[Op]) -> None:
    needed = {"Clamp": {"min": "0", "max": "2"}, "Elu": {"alpha": "1"}}
    taken = operation.read(needed.get(operation.xml_type, {}))
    for kind in operation.allowed:  # type: ignore[attr-defined]  # elementwise ones have it
        if kind in (ElementType.STRING, ElementType.DYNAMIC):
            continue
        numbers = [0, 1, np.iinfo(kind.dtype).max if kind.dtype.kind in "iu" else 1]
        with np.errstate(all="ignore"):
            given = np.array(numbers).astype(kind.dtype)
            arrays = [given] if issubclass(operation, Unary) else [given, given[::-1]]
            (found,) = taken.run(*arrays)
            (told,) = taken.infer_outputs([Tensor.of(array, kind) for array in arrays])
        assert found.dtype == told.type.dtype
        if told.value is not None:  # what is no number is not carried
            np.testing.assert_array_equal(told.value, found)


#: Of these many are multiples of others, or nearly; the rest is what formulas forget.
CORNERS = np.float32(
    [0, -0.0, 0.1, -0.1, 0.3, 0.5, -0.5, 0.7, 1, -1, 1.5, -1.5, 2, -2.5, 3, -3, 7, -7, 10, -10, 89,
     16777216, 1e10, 1e30, -1e30, 3.4e38, INF, -INF, NAN],
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "builder"),
    [("ModV1", "mod"), ("FloorModV1", "floor_mod"), ("DivideV1", "divide"),
     ("SquaredDifferenceV1", "squared_difference")],
)  # fmt: skip
def test_pairs_of_corners_give_what_openvino_gives(name: str, builder: str) -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    given = [np.ascontiguousarray(x.ravel()[None]) for x in np.meshgrid(CORNERS, CORNERS)]
    x, y = (ops.parameter(one.shape, np.float32) for one in given)
    model = ov.Model([getattr(ops, builder)(x, y)], [x, y])
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    wanted = ov.Core().compile_model(model, "CPU", exact)(given)[0]
    (found,) = op(name).run(*given)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, 0, 1, 2, 3, -2, 1 / 3, 1.5])
def test_powers_of_corners_are_those_of_openvino(exponent: float) -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    given, number = CORNERS[None], np.float32(exponent)
    x = ops.parameter(given.shape, np.float32)
    model = ov.Model([ops.power(x, ops.constant(number))], [x])
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    wanted = ov.Core().compile_model(model, "CPU", exact)([given])[0]
    (found,) = op("PowerV1").run(given, number)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_sizes_keep_their_names() -> None:
    parts = np.array([Dim(0, None, "H")], object)
    size = Tensor("i64", (1,), parts=parts)
    two = Tensor.of(np.array([2]))
    names = {"AddV1": "H+2", "SubtractV1": "H-2", "MultiplyV1": "2*H", "DivideV1": "H//2"}
    for name, text in names.items():
        (result,) = op(name).infer_outputs([size, two])
        assert [str(part.symbol) for part in result.sizes() or []] == [text]
    (difference,) = op("SubtractV1").infer_outputs([size, size])
    assert difference.ints() == [0]


def test_error_function() -> None:
    x = np.concatenate([np.linspace(-6, 6, 100001), 10.0 ** np.arange(-30, 2)]).astype("f4")
    x = x[x != 0]
    exact = np.array([math.erf(value) for value in x])
    assert np.abs(erf(x) / exact - 1).max() < 6e-7
    assert np.array_equal(erf(x.astype("f8")), exact)
    np.testing.assert_array_equal(erf(np.array([-INF, -4, 0, 5, INF, NAN], "f4")),
                                  np.array([-1, -1, 0, 1, 1, NAN], "f4"))  # fmt: skip


def test_inverse_of_the_error_function() -> None:
    x = np.array([-0.9999999, -0.999, -0.5, -1e-4, 0.1, 0.64, 0.9, 0.99, 0.99999])
    exact = [NormalDist().inv_cdf((value + 1) / 2) / math.sqrt(2) for value in x]
    np.testing.assert_allclose(erf_inverse(x), exact, rtol=1e-8)
    (ends,) = op("ErfInvV17").run(np.array([-1, 0, 1, 1.5], "f4"))
    np.testing.assert_array_equal(ends, np.array([-INF, 0, INF, NAN], "f4"))


#: Operation, attributes, inputs, result.
VALUES: list[tuple[str, dict[str, str], list[Any], Any]] = [
    # Eight bits stop at their ends, more wrap around.
    ("AddV1", {}, [np.int8([100, -100]), np.int8([100, -100])], np.int8([127, -128])),
    ("SubtractV1", {}, [np.uint8([1, 200]), np.uint8([2, 100])], np.uint8([0, 100])),
    ("MultiplyV1", {}, [np.uint8([200]), np.uint8([2])], np.uint8([255])),
    ("AddV1", {}, [np.int32([2**31 - 1]), np.int32([1])], np.int32([-(2**31)])),
    ("AddV1", {}, [np.int64([2**40]), np.int64([3])], np.int64([2**40 + 3])),
    ("DivideV1", {}, [np.int32([-7, 7, -9]), np.int32([2, -2, 4])], np.int32([-4, -4, -3])),
    ("DivideV1", {"m_pythondiv": "false"}, [np.int32([-7, 7, -9]), np.int32([2, -2, 4])],
     np.int32([-3, -3, -2])),
    ("ModV1", {}, [np.int32([-7, 7]), np.int32([2, -2])], np.int32([-1, 1])),
    ("FloorModV1", {}, [np.int32([-7, 7]), np.int32([2, -2])], np.int32([1, -1])),
    ("ModV1", {}, [np.float32([-7.5, 7.5]), np.float32([2, -2])], np.float32([-1.5, 1.5])),
    ("PowerV1", {}, [np.int32([7, 2, -1]), np.int32([-2, -1, -3])], np.int32([0, 0, -1])),
    ("SquaredDifferenceV1", {}, [np.int8([0, 20]), np.int8([5, 0])], np.int8([25, 127])),
    ("ExpV1", {}, [np.int32([0, 1, 2, 3])], np.int32([1, 3, 7, 20])),
    ("LogV1", {}, [np.int8([-1, 1, 2])], np.int8([-128, 0, 1])),
    ("AcosV1", {}, [np.uint8([2])], np.uint8([255])),
    ("RoundV5", {}, [np.float32([0.5, 1.5, -2.5])], np.float32([0, 2, -2])),
    ("RoundV5", {"mode": "half_away_from_zero"}, [np.float32([0.5, -2.5, 0.49999997])],
     np.float32([1, -3, 0])),
    ("ClampV1", {"min": "-1.5", "max": "2.5"}, [np.int32([-5, 5])], np.int32([-1, 2])),
    ("ClampV1", {"min": "-1", "max": "300"}, [np.uint8([0, 255])], np.uint8([0, 255])),
    # NaN goes through, where OpenVINO's CPU loses it.
    ("ReLUV1", {}, [np.float32([NAN, -1])], np.float32([NAN, 0])),
    ("MaximumV1", {}, [np.float32([NAN, 1]), np.float32([1, NAN])], np.float32([NAN, NAN])),
    ("GreaterV1", {}, [np.float32([NAN, 1]), np.float32([1, NAN])], np.array([False, False])),
    ("GeluV7", {}, [np.float32([-90, INF, NAN])], np.float32([-0.0, INF, NAN])),
    ("SoftMaxV8", {"axis": "-1"}, [np.float32([[1000, 1000]])], np.float32([[0.5, 0.5]])),
    ("SoftMaxV1", {"axis": "0"}, [np.float32(3)], np.float32(1)),
    ("LogSoftmaxV5", {"axis": "1"}, [np.zeros((2, 0), "f4")], np.zeros((2, 0), "f4")),
    ("BitwiseNotV13", {}, [np.array([0, 15, 5]).astype(ml_dtypes.uint4)],
     np.array([15, 0, 10]).astype(ml_dtypes.uint4)),
    ("BitwiseLeftShiftV15", {}, [np.array([3, 7]).astype(ml_dtypes.int4), np.array([2, 1]).astype(
        ml_dtypes.int4)], np.array([-4, -2]).astype(ml_dtypes.int4)),
    ("AddV1", {}, [np.array([1.5]).astype(ml_dtypes.bfloat16),
                   np.array([0.001]).astype(ml_dtypes.bfloat16)],
     np.array([1.5]).astype(ml_dtypes.bfloat16)),
    ("AddV1", {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "0"},
     [np.zeros((2, 3), "f4"), np.float32([1, 2])], np.float32([[1, 1, 1], [2, 2, 2]])),
    # The examples of CumSum's specification.
    ("CumSumV3", {}, [np.float32([1, 2, 3, 4, 5]), np.array(0)], np.float32([1, 3, 6, 10, 15])),
    ("CumSumV3", {"exclusive": "true"}, [np.float32([1, 2, 3, 4, 5]), np.array(0)],
     np.float32([0, 1, 3, 6, 10])),
    ("CumSumV3", {"reverse": "true"}, [np.float32([1, 2, 3, 4, 5])],
     np.float32([15, 14, 12, 9, 5])),
    ("CumSumV3", {"exclusive": "true", "reverse": "true"}, [np.float32([1, 2, 3, 4, 5])],
     np.float32([14, 12, 9, 5, 0])),
    # Of 8 bits OpenVINO's CPU lets sums wrap around.
    ("CumSumV3", {}, [np.uint8([100, 100, 100]), np.array(0)], np.uint8([100, 200, 44])),
    ("CumSumV3", {"reverse": "true"}, [np.int8([100, 100, 100])], np.int8([44, -56, 100])),
    ("SegmentMaxV16", {"fill_mode": "zero"},
     [np.float32([[1, 5], [4, 2], [7, 7]]), np.array([0, 0, 2]), np.array(4)],
     np.float32([[4, 5], [0, 0], [7, 7], [0, 0]])),
    ("SegmentMaxV16", {"fill_mode": "lowest"}, [np.int8([1, 2, 3]), np.array([1, 1, 5]),
                                                np.array(2)], np.int8([-128, 2])),
    ("NonZeroV3", {}, [np.float32(0)], np.zeros((0, 0), "i8")),
    ("NonZeroV3", {}, [np.float32(2)], np.zeros((1, 1), "i8")),
    ("BucketizeV3", {"output_type": "i32"}, [np.int32([1, 3, 4]), np.int32([1, 3])],
     np.int32([0, 1, 2])),
    ("BucketizeV3", {"with_right_bound": "false"}, [np.int32([1, 3, 4]), np.int32([1, 3])],
     np.int64([1, 2, 2])),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u8", "f2"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 5, 16), 1), ((40, 8), 0), ((2, 3, 4), 2), ((1, 9), 0), ((0, 9), 0), ((5, 0), 0),
     ((7, 9, 1, 9), -3)],
)  # fmt: skip
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_are_taken_in_the_order_of_the_axis(
    kind: str, shape: tuple[int, ...], axis: int, reverse: bool
) -> None:
    numbers = (np.random.default_rng(1).standard_normal(shape) * 90).astype("i8").astype(kind)
    if kind in {"f4", "f8"}:
        numbers /= np.dtype(kind).type(7)
    op = Op.registry["CumSum", 3].read({"reverse": str(reverse).lower()})
    (found,) = op.run(numbers, np.array(axis))
    wide = np.dtype("f4") if kind == "f2" else numbers.dtype
    turned = np.flip(numbers, axis) if reverse else numbers
    wanted = np.zeros(shape, wide)
    for place in np.ndindex(*shape):
        before = list(place)
        before[axis] -= 1
        earlier = wanted[tuple(before)] if before[axis] >= 0 else wide.type(0)
        with np.errstate(over="ignore"):
            wanted[place] = turned[place].astype(wide) + earlier
    wanted = np.flip(wanted, axis) if reverse else wanted
    np.testing.assert_array_equal(found, wanted.astype(kind))


@pytest.mark.parametrize(
    ("name", "data", "inputs", "wanted"),
    VALUES,
    ids=[f"{i}-{row[0]}" for i, row in enumerate(VALUES)],
)
def test_values(name: str, data: dict[str, str], inputs: list[Array], wanted: Array) -> None:
    (result,) = op(name, **data).run(*(np.asarray(array) for array in inputs))
    assert result.dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(result, wanted)


def test_integers_take_the_nearest_and_stop_at_their_ends() -> None:
    reals = np.array([-1e30, -2.5, 0.5, 1.5, 9.3e18, 1e30, NAN])
    limit = np.iinfo("i8"), np.iinfo("i4")
    wide, narrow = (settled(reals, np.dtype(kind)).tolist() for kind in ("i8", "i4"))
    assert wide == [limit[0].min, -2, 0, 2, limit[0].max, limit[0].max, limit[0].min]
    assert narrow == [limit[1].min, -2, 0, 2, limit[1].max, limit[1].max, limit[1].min]


#: Operation, attributes, inputs, the refusal.
REFUSED = [
    ("AddV1", {}, ["boolean[2]", "boolean[2]"], "element type boolean is not one of"),
    ("AddV1", {}, ["f32[2]", "f16[2]"], "element types f32 and f16 differ"),
    ("AddV1", {}, ["f32[2,3]", "f32[2]"], "shapes 2,3 and 2 do not broadcast together"),
    ("LogicalAndV1", {}, ["i32[2]", "i32[2]"], "element type i32 is not one of boolean"),
    ("MishV4", {}, ["i32[2]"], "element type i32 is not one of"),
    ("ClampV1", {"min": "3", "max": "1"}, ["f32[2]"], "min 3 is above max 1"),
    ("SoftMaxV1", {"axis": "-1"}, ["f32[2]"], "axis is -1, the least is 0"),
    ("SoftMaxV8", {"axis": "2"}, ["f32[2,3]"], "axis 2 is beyond the 2 axes"),
    ("SwishV4", {}, ["f32[2]", "f32[1]"], "beta has 1 axes"),
    ("SegmentMaxV16", {"fill_mode": "zero"}, ["f32[4]", "i64[3]"], "sizes 4 and 3 differ"),
    ("NonZeroV3", {"output_type": "f32"}, ["f32[2]"], "output_type is f32, it is i32 or i64"),
    ("BucketizeV3", {}, ["f32[2]", "f32[2,2]"], "buckets have 2 axes"),
]


@pytest.mark.parametrize(("name", "data", "inputs", "refusal"), REFUSED)
def test_refusals(name: str, data: dict[str, str], inputs: list[str], refusal: str) -> None:
    tensors = []
    for text in inputs:
        kind, _, shape = text.partition("[")
        tensors.append(Tensor(kind, Shape.parse(f"[{shape}")))
    with pytest.raises(IRError, match=refusal):
        op(name, **data).infer_outputs(tensors)
