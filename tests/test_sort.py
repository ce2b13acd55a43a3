"""Sorting: equal elements, what is refused, and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir.layers import sort, sort_rows, sort_suppression
from vinoir.layers.sort import SearchSortedV15, TopKV1, TopKV11
from vinoir.layers.sort_nms import (
    NonMaxSuppressionV4,
    NonMaxSuppressionV5,
    NonMaxSuppressionV9,
)
from vinoir.layers.sort_rotated import overlaps_rotated
from vinoir.schemas import Array, Dim, IRError, Shape, Tensor

VALUE = {"axis": "0", "mode": "max", "sort": "value"}


@pytest.mark.parametrize(
    ("attributes", "values", "indices"),
    [
        (VALUE, [2, 2, 1], [1, 4, 0]),
        (VALUE | {"mode": "min"}, [0, 1, 1], [3, 0, 2]),
        (VALUE | {"sort": "index"}, [1, 2, 2], [0, 1, 4]),
    ],
)
def test_of_equal_elements_the_first_are_taken(
    attributes: dict[str, str], values: list[int], indices: list[int]
) -> None:
    for dtype in ("f4", "u1", "i8", "?"):
        data = np.array([1, 2, 1, 0, 2]).astype(dtype)
        found, places = TopKV11.read(attributes).run(data, np.array(3))
        assert found.dtype == data.dtype
        if dtype != "?":
            assert (found.tolist(), places.tolist()) == (values, indices)


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("kind", ["f4", "f2", "i4", "i8", "u1"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((300,), 0), ((7, 300), 0), ((300, 7), 1), ((2, 9, 40), 1), ((2, 300, 8, 8), 1),
     ((3, 1, 50), 1), ((1, 70000, 33), 1), ((2, 5, 4), -2)],
)  # fmt: skip
def test_the_best_is_the_first_of_its_equals(
    mode: str, kind: str, shape: tuple[int, ...], axis: int
) -> None:
    data = np.random.default_rng(len(shape)).integers(0, 9, shape).astype(kind)
    op = TopKV11.read(VALUE | {"mode": mode, "axis": str(axis), "index_element_type": "i32"})
    for number in (data, data[..., ::-1], -data):
        values, places = op.run(number, np.array(1))
        seek = np.argmax if mode == "max" else np.argmin
        np.testing.assert_array_equal(places, seek(number, axis=axis, keepdims=True))
        np.testing.assert_array_equal(values, np.take_along_axis(number, places, axis))
        assert (values.dtype, places.dtype) == (data.dtype, np.int32)


@pytest.mark.parametrize("shape", [(6, 90), (6, 5, 90), (90, 6)])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_best_beside_what_is_no_number_is_that_of_the_order(
    shape: tuple[int, ...], mode: str
) -> None:
    """NaN stands above all: first of the largest, last of the smallest."""
    data = np.random.default_rng(1).standard_normal(shape).astype("f4")
    data[1, 3:5] = np.nan
    op = TopKV11.read(VALUE | {"mode": mode, "axis": "1"})
    best, place = op.run(data, np.array(1))
    few, places = op.run(data, np.array(2))
    np.testing.assert_array_equal(best, few[:, :1])
    np.testing.assert_array_equal(place, places[:, :1])


@pytest.mark.parametrize(
    ("size", "k", "expected"),
    [
        (5, Dim(2, 8), Dim(2, 5)),
        (Dim(1, 6), Dim(2, 4), Dim(1, 4)),
        (Dim(3, None), Dim(2, 8), Dim(2, None)),
        (Dim(9, 12), Dim(3, None), Dim(3, 12)),
        (5, Dim(0, None), Dim(0, 5)),
    ],
)
def test_k_known_in_part_bounds_the_axis(size: int | Dim, k: Dim, expected: Dim) -> None:
    # As OpenVINO gives it where k is read from the shape of a dynamic input.
    parts = np.empty((), object)
    parts[()] = k
    values, _ = TopKV11.read(VALUE).infer(Tensor("f32", (size,)), Tensor("i64", (), parts=parts))
    assert values.shape == Shape((expected,))


def test_refusals() -> None:
    data, k = Tensor("f32", (2, 5)), Tensor.of(np.array(3))
    with pytest.raises(IRError, match="stable"):
        TopKV11.read(VALUE | {"sort": "none", "stable": "true"}).infer(data, k)
    with pytest.raises(IRError, match="not one of i8, i32, i64"):
        TopKV1.read(VALUE).infer(data, Tensor("u8", ()))
    with pytest.raises(IRError, match="k is 7, the axis has 2 elements"):
        TopKV11.read(VALUE).run(np.zeros((2, 5)), np.array(7))
    with pytest.raises(ValueError, match="i32 or i64, not u8"):
        TopKV1.read(VALUE | {"index_element_type": "u8"})
    with pytest.raises(IRError, match="the values are a scalar"):
        SearchSortedV15.read({}).infer(data, Tensor("f32", ()))


#: The second overlaps the first by exactly a half, the third lies apart.
THREE = np.array([[[0, 0, 1, 2], [0, 0, 1, 1], [5, 5, 6, 6]]], "f4")
MARKS = np.array([[[0.9, 0.8, 0.7]]], "f4")


@pytest.mark.parametrize(("threshold", "kept"), [(0.5, [0, 1, 2]), (0.4, [0, 2]), (0, [0, 2])])
def test_boxes_go_that_overlap_more_than_they_may(threshold: float, kept: list[int]) -> None:
    # OpenVINO's CPU lets those go, too, that overlap exactly as much.
    for op in (NonMaxSuppressionV4, NonMaxSuppressionV9):
        places, *_ = op.read({}).run(THREE, MARKS, np.array(3), np.array(threshold, "f4"))
        assert places[:, 2].tolist() == kept


@pytest.mark.parametrize(
    ("op", "kept"), [(NonMaxSuppressionV5, [0, 2]), (NonMaxSuppressionV9, [0, 2, 1])]
)
def test_fading_scores_spare_from_the_threshold_only_in_the_last_version(
    op: type[NonMaxSuppressionV5], kept: list[int]
) -> None:
    limits = [np.array(n, "f4") for n in (0.4, 0, 0.5)]
    places, scores, count = op.read({}).run(THREE, MARKS, np.array(3), *limits)
    assert (places[:, 2].tolist(), count.tolist()) == (kept, [len(kept)])
    if len(kept) == 3:
        assert scores[2, 2] == pytest.approx(0.8 * np.exp(-0.25))


def test_a_turned_square_shares_an_octagon() -> None:
    square = np.array([0, 0, 2, 2, 0], "f4")
    turned = np.array([[0, 0, 2, 2, np.pi / 4], [0, 0, 2, 2, np.pi / 2], [9, 9, 2, 2, 1]], "f4")
    octagon = 8 * (np.sqrt(2) - 1)
    expected = [octagon / (8 - octagon), 1, 0]
    np.testing.assert_allclose(overlaps_rotated(square, turned), expected, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_boxes_that_are_no_numbers_end_the_search_without_a_warning(bad: float) -> None:
    boxes = THREE.copy()
    boxes[0, 0, 2:] = bad
    limits = [np.array(n, "f4") for n in (0.4, 0, 0.5)]
    for op in (NonMaxSuppressionV5, NonMaxSuppressionV9):
        _, _, count = op.read({}).run(boxes, MARKS, np.array(3), *limits)
        assert count <= 3


@pytest.mark.parametrize("seed", range(80))
def test_boxes_swept_together_stay_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.choice([0, 1, 4, 60, 700, 1300]))
    apart = rng.integers(0, 9, (count, 1)) * 40 * rng.random() * (seed % 3 > 0)
    if rng.random() < 0.5:  # many the same, many that only touch
        corners = rng.integers(0, 12, (count, 2)).astype("f4")
        sides = rng.integers(-1, 4, (count, 2)).astype("f4")
    else:
        corners = (rng.random((count, 2)) * rng.choice([1, 30])).astype("f4")
        sides = rng.random((count, 2)).astype("f4")
    # Classes moved to places of their own, along both axes or along one.
    corners = (corners + apart * np.array([[seed % 2, 1]])).astype("f4")
    boxes = np.concatenate([corners, corners + sides], 1)
    order = rng.permutation(count)[: rng.integers(0, count + 1)]
    most = int(rng.choice([0, 1, 5, 530, 10**6]))
    limit = sort_suppression.above(float(rng.choice([0, 0.1, 0.5, 1])))
    extra = float(rng.choice([0, 0, 1]))
    for measure in (sort_suppression.overlaps, sort_suppression.overlaps_met):
        measure = sort_suppression.grown(measure, extra)
        found = sort_rows.best(boxes, order, most, limit, measure)
        alone = sort_suppression.one_by_one(boxes, order, most, limit, measure)
        np.testing.assert_array_equal(found, alone)
        columns = sort_suppression.Columns.of(boxes, order, extra)
        if not extra:
            places = sort_suppression.swept(columns, most, limit)
            np.testing.assert_array_equal(order[places], alone)


@pytest.mark.parametrize("kind", ["f4", "i4"])
@pytest.mark.parametrize("seed", range(10))
def test_long_rows_are_ordered_by_keys_as_by_comparison(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [2, 3]
    axis = int(rng.integers(0, 3))
    shape.insert(axis, int(rng.integers(2, 600)))
    data = rng.integers(*([-9, 9] if seed % 2 else [-(2**31), 2**31 - 1]), shape).astype(kind)
    if kind == "f4":
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45]
        data.flat[rng.integers(0, data.size, 200)] = rng.choice(np.array(values, "f4"), 200)
    else:
        data.flat[:2] = -(2**31), 2**31 - 1
    least = data.argsort(axis, kind="stable")
    np.testing.assert_array_equal(sort.ascending(data, axis), least)
    largest = np.flip(data, axis).argsort(axis, kind="stable")
    largest = data.shape[axis] - 1 - np.flip(largest, axis)
    np.testing.assert_array_equal(sort.descending(data, axis), largest)


def in_order(data: Array, axis: int, *, largest: bool) -> Array:
    """All indices in order; of equals, the first comes first."""
    if not largest:
        return data.argsort(axis, kind="stable")
    return data.shape[axis] - 1 - np.flip(np.flip(data, axis).argsort(axis, kind="stable"), axis)


@pytest.mark.parametrize("seed", range(160))
def test_a_few_of_rows_are_the_first_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(0 if seed % 9 == 0 else 1, 4, rng.integers(0, 3))]
    axis = int(rng.integers(0, len(sizes) + 1))
    size = int(rng.choice([1, 2, 3, 70, 300, 900, 3001, 5003]))
    if size < 100 and rng.random() < 0.5:
        sizes.append(int(rng.integers(30, 900)))  # rows whose elements lie apart
    shape = (*sizes[:axis], size, *sizes[axis:])
    kind = rng.choice(["f4", "i4", "i8", "u1", "f2"])
    data = rng.integers(0, rng.choice([3, 60000]), shape).astype(kind)
    if data.dtype.kind == "f" and data.size and rng.random() < 0.5:
        places = rng.integers(0, data.size, 20)
        data.flat[places] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 20)
    count = int(rng.integers(0, min(size, 20) + 1))
    for largest in (True, False):
        wanted = np.take(in_order(data, axis, largest=largest), np.arange(count), axis)
        found = sort.first_few(data, axis, count, largest=largest)
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize(("size", "count"), [(600, 4), (5000, 7), (260, 64), (410, 100)])
def test_few_of_many_rows_are_bounded_first(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    for data in (
        rng.standard_normal((40, size)).astype("f4"),
        np.full((40, size), -np.inf, "f4"),
        np.full((40, size), 5, "i4"),
        np.where(rng.random((40, size)) < 0.01, 1, np.iinfo("i4").min).astype("i4"),
        np.tile(np.arange(size, dtype="f4"), (40, 1)),
    ):
        for largest in (True, False):
            wanted = in_order(data, 1, largest=largest)[:, :count]
            found = sort.first_few(data, 1, count, largest=largest)
            np.testing.assert_array_equal(found, wanted)
