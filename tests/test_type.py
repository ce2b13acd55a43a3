"""Conversions by hand: types that OpenVINO's CPU does not convert, ends of types, errors."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.layers.casting import as_float, rounded_to_half
from vinoir.layers.type import converted
from vinoir.schemas import Dim, ElementType, IRError, Tensor, UnsupportedError

INF, NAN = np.inf, np.nan


# What Model.evaluate of OpenVINO gives, where the specification defines anything.
@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        ("f32", [1.5, -1.7, -7.5, 100.6, 127.5], "i4", [1, -1, -7, 4, -1]),
        ("f32", [1.5, -1.7, -7.5, 100.6, 127.5], "u4", [1, 15, 9, 4, 15]),
        ("f32", [1.5, -1.7, -7.5, 100.6, 127.5], "u6", [1, 63, 57, 36, 63]),
        ("f32", [1.5, -1.7, -7.5, 100.6, 127.5], "u3", [1, 7, 1, 4, 7]),
        ("f32", [1.5, -1.7, 5.6, 100.6], "u2", [1, 3, 1, 0]),
        ("f32", [0.4, 1.5, 2.5, -1.7], "u1", [0, 1, 0, 1]),
        ("f32", [-7.5, 256.5, 65520, NAN, 3e9], "u8", [249, 0, 240, 0, 0]),
        ("f32", [3e9, -3e9, NAN, INF], "i32", [-(2**31)] * 4),
        ("f32", [3e9, -3e9, 1e19, NAN], "i64", [3 * 10**9, -3 * 10**9, -(2**63), -(2**63)]),
        ("f64", [1e19, -7.5, INF], "u64", [10**19, 2**64 - 7, 0]),
        ("f32", [3e9, -7.5], "u32", [3 * 10**9, 2**32 - 7]),
        ("i64", [-(2**40) - 1, 2**53 + 1], "i32", [-1, 1]),
        ("i32", [-1, 300], "u8", [255, 44]),
        ("i32", [70000, -70000], "f16", [INF, -INF]),
        ("f32", [0.4, -0.5, 0.0, -0.0, NAN], "boolean", [True, True, False, False, True]),
        ("f32", [448, 465, -INF, 100.6], "f8e4m3", [448, NAN, NAN, 104]),
        ("f32", [65504, 500, 0.4], "f8e5m2", [INF, 512, 0.375]),
        # By way of f16, where each becomes a tie.
        ("f32", [0.7813113927841187, 0.8437326550483704], "f8e4m3", [0.75, 0.875]),
        ("f64", [0.6564749479293823], "f8e4m3", [0.625]),
        ("f32", [-2.250141143798828, -0.9374534487724304], "f8e5m2", [-2, -1]),
        ("f32", [0.25, 0.75, 1.25, 2.5, 7, NAN, -INF], "f4e2m1", [0, 1, 1, 2, 6, 6, -6]),
        ("f32", [-1, 0, 0.75, 1.5, 6, 448, INF, NAN, 1e-40], "f8e8m0",
         [2.0**-127, 2.0**-127, 0.5, 2, 8, 512, 2.0**127, NAN, 2.0**-127]),
        ("f8e5m2", [-1.5, 448], "i32", [-1, 448]),
        ("f4e2m1", [-6, 0.5], "u8", [250, 0]),
    ],
)  # fmt: skip
def test_converted(source: str, values: list[float], target: str, expected: list[float]) -> None:
    kind = ElementType(target)
    found = converted(np.array(values, ElementType(source).dtype), kind)
    assert found.dtype == kind.dtype
    wanted = np.array(expected, kind.dtype)
    if kind.is_real:
        found, wanted = found.astype("f8"), wanted.astype("f8")
    np.testing.assert_array_equal(found, wanted)


def test_nf4_takes_the_nearest_of_its_sixteen_values() -> None:
    found = converted(np.array([0.4, -0.5, 0.25, 9, -INF, NAN], "f4"), ElementType.NF4)
    wanted = [0.44070983, -0.52507305, 0.24611230, 1, -1, -1]
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


def test_an_array_does_not_tell_narrow_types_from_u8_but_its_tensor_does() -> None:
    op = Op.registry["ConvertLike", 1].read({})
    data, like = np.array([5.0], "f4"), Tensor("u1", (1,))
    (found,) = op.prepare([Tensor.of(data), like])(data, np.array([0], "u1"))
    assert found.tolist() == [1]


@pytest.mark.parametrize(
    ("size", "target", "expected"),
    [
        (Dim(2, 5), "i32", Dim(2, 5)),
        (Dim(2, 5), "f16", Dim(2, 5)),
        (Dim(2, None), "i32", Dim(2, None)),
        (Dim(2, None), "f32", Dim(2, None)),
        (Dim(2, None), "u8", Dim(0, 255)),  # 256 becomes 0
        (300, "u8", 44),
        (300, "i8", 44),
        (Dim(256, 512), "u8", Dim(0, 255)),
        (Dim(-1, 5), "boolean", Dim(0, 1)),
        (Dim(1, 5), "boolean", 1),
    ],
)
def test_partly_known_values_are_carried(
    size: int | Dim, target: str, expected: int | Dim
) -> None:
    parts = np.array([size, Dim(0, 3)], object)
    data = Tensor("i64", (2,), parts=parts)
    for kind in (target, "i64"):
        (data,) = Op.registry["Convert", 1].read({"destination_type": kind}).infer_outputs([data])
    sizes = data.sizes()
    assert sizes is not None
    assert sizes[0] == expected


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="string is not converted to f32"):
        converted(np.array(["a"], np.dtypes.StringDType()), ElementType.F32)
    promote = Op.registry["ConvertPromoteTypes", 14].read({})
    with pytest.raises(IRError, match="f16 and i64 become f16"):
        promote.infer(Tensor("f16", (2,)), Tensor("i64", (2,)))
    pack = Op.registry["StringTensorPack", 15].read({})
    with pytest.raises(IRError, match="string 0 is 0 to 9 of 3 symbols"):
        pack.run(np.array([0]), np.array([9]), np.zeros(3, "u1"))
    with pytest.raises(IRError, match="string 0 is not UTF-8"):
        pack.run(np.array([0]), np.array([1]), np.array([255], "u1"))


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1"])
def test_reals_of_a_byte_are_what_their_type_says(kind: str) -> None:
    held = ElementType(kind).dtype
    every = np.arange(16 if kind == "f4e2m1" else 256, dtype=np.uint8).view(held)
    for given in (every, every[::-3], every.reshape(2, -1).T):
        np.testing.assert_array_equal(as_float(given), given.astype(np.float32))


def test_numbers_are_rounded_as_float16_rounds_them() -> None:
    rng = np.random.default_rng(1)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    normal = halves[(abs(halves) >= 2.0**-14) & (abs(halves) < 60000)]
    cases = [
        halves, (normal[1:] + normal[:-1]) / 2,  # as they are, and half way
        rng.integers(0, 2**32, 1 << 16, dtype=np.uint64).astype(np.uint32).view(np.float32),
        rng.standard_normal((300, 200)).astype("f4").T, np.float32([65503.9, 65504, 65519, 65520]),
        np.zeros((0, 3), "f4"), np.array(1 / 3, "f4"),
    ]  # fmt: skip
    for given in cases:
        with np.errstate(all="ignore"):
            wanted = given.astype(np.float16).astype(np.float32)
        rounded = rounded_to_half(given)
        np.testing.assert_array_equal(rounded, wanted, strict=True)
        np.testing.assert_array_equal(np.signbit(rounded), np.signbit(wanted))
