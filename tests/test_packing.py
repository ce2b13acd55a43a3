"""Values to bytes and back; the bytes are OpenVINO's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vinoir.schemas import ElementType, IRError
from vinoir.schemas.packing import pack, unpack

# Seen in files that OpenVINO wrote.
BYTES = [
    ("u1", [1, 0, 1, 1, 0, 0, 0, 0, 1, 1], "b0c0"),
    ("u2", [0, 1, 2, 3, 1], "e401"),
    ("u3", [0, 1, 2, 3, 4, 5, 6, 7, 1, 2], "1b1b0f600000"),
    ("u4", [1, 2, 3, 4, 15], "21430f"),
    ("i4", [1, -2, 3, -8, 7], "e18307"),
    ("u6", [1, 2, 3, 63, 32], "123f03000080"),
    ("nf4", [-1, 0, 1], "700f"),
    ("f4e2m1", [0.5, -1, 6], "a107"),
    ("f8e8m0", [1, 2], "7f80"),
    ("boolean", [True, False], "0100"),
    ("bf16", [1], "803f"),
    ("f16", [1], "003c"),
    ("i64", [-1], "ff" * 8),
    ("string", ["abc", "", "déf"], "03000000000000000300000003000000070000006162636" + "4c3a966"),
]


@pytest.mark.parametrize(("kind", "values", "text"), BYTES)
def test_bytes(kind: str, values: list[Any], text: str) -> None:
    element = ElementType(kind)
    packed = pack(np.array(values), element)
    assert packed.hex() == text
    found = unpack(packed, element, (len(values),))
    assert found.tolist() == values
    assert found.dtype == element.dtype
    assert not found.flags.writeable


NUMBERS = {
    **{kind: st.integers(0, 2 ** int(kind[1:]) - 1) for kind in ("u1", "u2", "u3", "u4", "u6")},
    "i4": st.integers(-8, 7),
}


@given(
    st.sampled_from(sorted(NUMBERS)),
    hnp.array_shapes(min_dims=0, min_side=0, max_dims=3),
    st.data(),
)
def test_narrow_types_come_back(kind: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    element = ElementType(kind)
    values = data.draw(hnp.arrays(np.int16, shape, elements=NUMBERS[kind]))
    packed = pack(values, element)
    assert len(packed) == element.nbytes(values.size)
    np.testing.assert_array_equal(unpack(packed, element, shape).astype(np.int16), values)


@given(st.lists(st.text()))
def test_strings_come_back(values: list[str]) -> None:
    values = [text.encode("utf-8", "ignore").decode() for text in values]
    array = np.array(values, np.dtypes.StringDType())
    assert (
        unpack(pack(array, ElementType.STRING), ElementType.STRING, (len(values),)).tolist()
        == values
    )


@given(
    st.binary(max_size=200),
    st.sampled_from(list(ElementType)),
    st.lists(st.integers(-1, 9), max_size=3),
)
def test_any_bytes_are_values_or_our_error(
    data: bytes, kind: ElementType, shape: list[int]
) -> None:
    try:
        values = unpack(data, kind, shape)
    except IRError:
        return
    assert values.shape == tuple(shape)
    if kind not in (ElementType.STRING, ElementType.NF4, ElementType.BOOLEAN) and kind.bits >= 8:
        assert data.startswith(pack(values, kind))


@pytest.mark.parametrize(
    ("kind", "shape", "size", "words"),
    [
        ("f32", (4,), 15, "16 bytes"),
        ("f32", (2**40, 2**40), 16, "do not fit 64 bits"),
        ("f32", (2**32, 2**31), 16, "do not fit 64 bits"),
        ("f32", (2**61,), 16, "takes 9223372036854775808 bytes"),
        ("u1", (9,), 1, "2 bytes"),
        ("u3", (10,), 4, "6 bytes"),
        ("f32", (-1, 0), 16, "negative"),
        ("dynamic", (1,), 16, "dynamic"),
        ("string", (2,), 3, "4 bytes"),
        ("string", (2,), 16, "holds 0 strings"),
    ],
)
def test_refused(kind: str, shape: tuple[int, ...], size: int, words: str) -> None:
    with pytest.raises(IRError, match=words):
        unpack(bytes(size), ElementType(kind), shape)


@pytest.mark.parametrize(
    "block",
    [
        np.array([2, 0, 3, 1], "<i4"),  # descends
        np.array([2, 0, 1, 99], "<i4"),  # beyond the end
        np.array([2, 5, 6, 7], "<i4"),  # does not begin at zero
        np.array([2, 0, -1, 1], "<i4"),
        np.array([2, 0], "<i4"),
        np.array([2**31 - 1, 0, 1, 1], "<i4"),
    ],
)
def test_blocks_of_strings_that_lie(block: Any) -> None:
    with pytest.raises(IRError):
        unpack(block.tobytes() + b"abc", ElementType.STRING, (2,))


@pytest.mark.parametrize(
    ("kind", "value"), [("u4", 16), ("i4", 8), ("i4", -9), ("u1", 2), ("i8", 200), ("u8", -1),
                        ("i32", 1.5), ("boolean", 2), ("u6", 64)],
)  # fmt: skip
def test_values_that_do_not_fit(kind: str, value: float) -> None:
    with pytest.raises(IRError, match="does not fit"):
        pack(np.array([value]), ElementType(kind))


def test_wide_types_are_views() -> None:
    buffer = bytearray(pack(np.arange(6, dtype=np.float32), ElementType.F32))
    values = unpack(buffer, ElementType.F32, (2, 3))
    assert np.shares_memory(values, np.frombuffer(buffer, np.uint8))
    odd = unpack(memoryview(b"\0" + bytes(buffer))[1:], ElementType.F32, (6,))  # not aligned
    assert odd.tolist() == [0, 1, 2, 3, 4, 5]


def test_other_types_are_brought_over() -> None:
    assert pack(np.array([1.0, 2.0]), ElementType.I8) == b"\1\2"
    assert pack(np.array([1, 2], ml_dtypes.int4), ElementType.I4) == b"\x21"
    assert unpack(b"\2\0", ElementType.BOOLEAN, (2,)).tolist() == [True, False]
