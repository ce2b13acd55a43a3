"""Pooling by hand: the specification's examples, edge cases, and what errors say."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.layers.pooling import places_on
from vinoir.schemas import IRError, Shape, Tensor

PLAIN = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
PADDED = PLAIN | {"pads_begin": "1,1", "pads_end": "1,1"}
MAX = [Op.registry["MaxPool", number] for number in (1, 8, 14)]
AVERAGE = [Op.registry["AvgPool", number] for number in (1, 14, 16)]


@pytest.mark.parametrize("op", MAX)
@pytest.mark.parametrize(
    ("attributes", "size", "stops"),
    [
        (PLAIN, 32, 16),
        (PLAIN, 33, 16),
        (PLAIN | {"rounding_type": "ceil"}, 33, 17),
        (PADDED, 32, 17),
        (PADDED | {"auto_pad": "valid"}, 32, 16),
        (PADDED | {"auto_pad": "same_upper"}, 5, 3),
        (PADDED | {"auto_pad": "SAME_LOWER"}, 5, 3),
    ],
)
def test_shape(op: type[Op], attributes: dict[str, str], size: int, stops: int) -> None:
    values, *_ = op.read(attributes).infer_outputs([Tensor("f32", (1, 3, size, size))])
    assert values == Tensor("f32", (1, 3, stops, stops))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("N,3,H,W", "N,3,H//2,W//2"),
        ("1,3,?,1..9", "1,3,1..,1..4"),
        ("...", "?,?,?,?"),
        ("?,?,32,32", "?,?,16,16"),
    ],
)
def test_partly_known_shapes(given: str, wanted: str) -> None:
    op = Op.registry["MaxPool", 14].read(PLAIN)
    values, _ = op.infer_outputs([Tensor("f32", Shape.parse(given, symbols=True))])
    assert str(values.shape) == wanted


def test_the_lesson_of_two_channels() -> None:
    image = np.broadcast_to(np.arange(9, dtype="f4").reshape(3, 3), (1, 2, 3, 3))
    op = Op.registry["MaxPool", 1].read(PLAIN | {"strides": "1,1"})
    np.testing.assert_array_equal(op.run(image)[0], [[[[4, 5], [7, 8]]] * 2])


LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("op", MAX)
def test_nan_is_never_the_largest_and_nothing_is_below_the_lowest(op: type[Op]) -> None:
    made = op.read({"kernel": "2", "strides": "2", "pads_begin": "0", "pads_end": "0"})
    image = np.array([[[np.nan, 2, np.nan, np.nan, -np.inf, -np.inf]]], np.float32)
    np.testing.assert_array_equal(made.run(image)[0], [[[2, LOWEST, LOWEST]]])


def test_a_window_of_padding_alone() -> None:
    data = {"kernel": "1", "strides": "2", "pads_begin": "0", "pads_end": "0"}
    image = np.arange(1, 5, dtype="f4").reshape(1, 1, 4)
    for rounding, wanted in [("ceil", [1, 3, LOWEST]), ("ceil_torch", [1, 3]), ("floor", [1, 3])]:
        op = Op.registry["MaxPool", 14].read(data | {"rounding_type": rounding})
        np.testing.assert_array_equal(op.run(image)[0][0, 0], wanted)
    half = Op.registry["MaxPool", 1].read(data | {"rounding_type": "ceil"})
    np.testing.assert_array_equal(half.run(image.astype("f2"))[0][0, 0], [1, 3, -np.inf])
    for op in AVERAGE:
        mean = op.read(data | {"rounding_type": "ceil", "exclude-pad": "true"})
        np.testing.assert_array_equal(mean.run(image)[0][0, 0], [1, 3, np.nan])


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i4", "i8", "u2", "f2", "f8", ml_dtypes.bfloat16, ml_dtypes.int4]
)
def test_every_element_type(dtype: object) -> None:
    image = np.array([[[1, 5, 3, 2]]]).astype(dtype)
    data = {"kernel": "2", "strides": "2", "pads_begin": "0", "pads_end": "0"}
    for op in MAX:
        (values, *_) = op.read(data).run(image)
        assert values.dtype == image.dtype
        np.testing.assert_array_equal(values.astype(int), [[[5, 3]]])


def test_no_images_and_no_channels() -> None:
    for op in MAX:
        assert op.read(PLAIN).run(np.empty((0, 3, 4, 4), "f4"))[0].shape == (0, 3, 2, 2)
        assert op.read(PLAIN).run(np.empty((2, 0, 4, 4), "f4"))[0].shape == (2, 0, 2, 2)


@pytest.mark.parametrize(
    ("op", "change", "shape", "message"),
    [
        ("MaxPoolV1", {}, (1, 3, 32), "strides has 2 axes, the input has 1 spatial axes"),
        ("MaxPoolV1", {}, (1, 3, 1, 32), "window reaches over 2, there are 1 + 0 + 0"),
        ("MaxPoolV8", {"axis": "4"}, (1, 3, 4, 4), "axis 4 is beyond the 4 axes of the input"),
        ("MaxPoolV1", {"strides": "0,1"}, (1, 3, 4, 4), "strides has 0, the least is 1"),
        ("MaxPoolV1", {}, (3, 3), "the input has 2 axes (3,3), pooling takes 3, 4 or 5"),
        (
            "AvgPoolV1",
            {"pads_end": "2,0", "exclude-pad": "true"},
            (1, 3, 4, 4),
            "padding 0 and 2 on axis 0 holds a whole window of 2, "
            "whose mean without padding is that of nothing",
        ),
    ],
)
def test_errors_say_both_numbers(
    op: str, change: dict[str, str], shape: tuple[int, ...], message: str
) -> None:
    kind, _, number = op.rpartition("V")
    made = Op.registry[kind, int(number)].read(PLAIN | change)
    with pytest.raises(IRError) as caught:
        made.infer_outputs([Tensor("f32", shape)])
    assert caught.value.message == message


def test_ceil_torch_tells_which_version_has_it() -> None:
    with pytest.raises(ValueError, match=r'"ceil_torch" needs MaxPool-14, this is MaxPool-8'):
        Op.registry["MaxPool", 8].read(PLAIN | {"rounding_type": "ceil_torch"})


@pytest.mark.parametrize("text", ["2,2a", "2.0,2", "", "2;2", "2,,2"])
def test_lists_are_read_by_whole_tokens(text: str) -> None:
    with pytest.raises(ValueError, match=r"kernel|strides|whole number"):
        Op.registry["MaxPool", 1].read(PLAIN | {"kernel": text}).infer_outputs(
            [Tensor("f32", (1, 1, 4, 4))]
        )


@pytest.mark.parametrize("seed", range(40))
def test_only_places_that_hold_data_are_looked_at(seed: int) -> None:
    rng = random.Random(seed)
    size, window = rng.randint(1, 4), rng.randint(1, 30)
    stride, dilation, count = rng.randint(1, 9), rng.randint(1, 3), rng.randint(0, 6)
    begin = rng.randint(0, 40)
    found = places_on(size, begin, window, stride, dilation, count)
    wanted = [
        place
        for place in range(window)
        if any(0 <= c * stride - begin + place * dilation < size for c in range(count))
    ]
    assert found == (wanted or [0]) or (found == list(range(window)) and window <= 2 * size)


@pytest.mark.parametrize("op", ["MaxPoolV1", "MaxPoolV14", "AvgPoolV1", "AvgPoolV14"])
def test_windows_of_millions_take_no_longer_than_the_data(op: str) -> None:
    wide = {"kernel": "1, 3000000", "strides": "1, 3000000", "pads_begin": "0, 1000000",
            "pads_end": "0, 2999999", "rounding_type": "floor", "exclude-pad": "true"}  # fmt: skip
    data = np.arange(1, 9, dtype="f4").reshape(1, 1, 1, 8)
    name, _, number = op.rpartition("V")
    outputs = Op.registry[name, int(number)].read(wide).run(data)
    assert outputs[0].ravel()[0] == (8 if name == "MaxPool" else 4.5)
