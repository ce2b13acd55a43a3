"""Taking and putting by index, by hand: examples of the specifications, corners, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def made(name: str, attributes: dict[str, str]) -> Op:
    kind, _, number = name.rpartition("V")
    op: Op = Op.registry[kind, int(number)].read(attributes)
    return op


def run(name: str, *inputs: Any, **attributes: str) -> list[Any]:
    outputs = made(name, attributes).run(*(np.asarray(given) for given in inputs))
    return [output.tolist() for output in outputs]


@pytest.mark.parametrize(
    ("inputs", "batch_dims", "wanted"),
    [
        (([1, 2, 3, 4, 5], [0, 0, 4], 0), 0, [1, 1, 5]),
        (([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], [[0, 0, 4], [4, 0, 0]], 1), 1,
         [[1, 1, 5], [10, 6, 6]]),
        (([1, 2, 3, 4, 5], [0, -2, -1], 0), 0, [1, 4, 5]),
        (([1, 2, 3], [3, -4], 0), 0, [0, 0]),  # beyond the axis: zeros, as OpenVINO
        (([[1], [2]], [1, 0], -2), 0, [[2], [1]]),
    ],
)  # fmt: skip
def test_gather(inputs: Any, batch_dims: int, wanted: Any) -> None:
    assert run("GatherV8", *inputs, batch_dims=str(batch_dims)) == [wanted]


def test_batches_of_size_one_and_axes_that_are_computed() -> None:
    # OpenVINO's CPU crashes on these.
    assert run("GatherV8", [[-7, 5]], [[1, 0]], 1, batch_dims="1") == [[[5, -7]]]


@pytest.mark.parametrize(
    ("name", "data", "indices", "batch_dims", "wanted"),
    [
        ("GatherNDV8", [[1, 2], [3, 4]], [[0, 0], [1, 0]], 0, [1, 3]),
        ("GatherNDV8", [[1, 2], [3, 4]], [[1], [0]], 0, [[3, 4], [1, 2]]),
        ("GatherNDV8", [[1, 2], [3, 4]], [[-1]], 0, [[3, 4]]),
        ("GatherNDV8", [[1, 2, 3, 4], [5, 6, 7, 8]], [[[1]], [[0]]], 1, [[2], [5]]),
        ("GatherNDV8", [[[1, 2]], [[3, 4]]], [[[1]], [[0]]], 2, [[2], [3]]),
        ("GatherNDV5", [[[1, 2]], [[3, 4]]], [[[1]], [[0]]], 2, [2, 3]),
        ("GatherNDV8", [1, 2], np.zeros((2, 0), int), 0, [[1, 2], [1, 2]]),
    ],
)  # fmt: skip
def test_gather_nd(name: str, data: Any, indices: Any, batch_dims: int, wanted: Any) -> None:
    assert run(name, data, indices, batch_dims=str(batch_dims)) == [wanted]


def test_a_tree_is_followed_back_and_ends_at_the_end() -> None:
    steps = [[[1, 1, 1]], [[2, 10, 3]], [[4, 5, 6]]]
    parents = [[[0, 0, 0]], [[0, 1, 2]], [[1, 0, 2]]]
    assert run("GatherTreeV1", steps, parents, [3], 10) == [
        [[[1, 1, 1]], [[10, 2, 3]], [[10, 5, 6]]]
    ]
    assert run("GatherTreeV1", steps, parents, [0], 10) == [[[[10] * 3]] * 3]


@pytest.mark.parametrize(
    ("reduction", "first", "wanted"),
    [
        ("sum", "true", [52, 13, 104, 76]),  # examples of the specification
        ("sum", "false", [50, 10, 100, 70]),
        ("prod", "false", [600, 10, 2400, 70]),
        ("min", "true", [2, 3, 4, 6]),
        ("max", "false", [30, 10, 60, 70]),
        ("mean", "true", [17, 6, 34, 38]),
        ("mean", "false", [25, 10, 50, 70]),
    ],
)
def test_elements_are_reduced(reduction: str, first: str, wanted: list[int]) -> None:
    inputs = [2, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10, 20, 30, 40, 70, 60], [0]
    attributes = {"reduction": reduction, "use_init_val": first}
    assert run("ScatterElementsUpdateV12", *inputs, **attributes) == [wanted]


def test_a_mean_of_integers_is_rounded_down() -> None:
    inputs = [-1, 5], [0], [-2], 0
    assert run("ScatterElementsUpdateV12", *inputs, reduction="mean") == [[-2, 5]]


@pytest.mark.parametrize(
    ("reduction", "wanted"),
    [
        ("none", [50, 40, 20, 4]),  # of two updates of one element the last wins here
        ("sum", [61, 72, 23, 4]),
        ("sub", [-59, -68, -17, 4]),
        ("prod", [500, 2400, 60, 4]),
        ("max", [50, 40, 20, 4]),
    ],
)
def test_slices_are_reduced(reduction: str, wanted: list[int]) -> None:
    indices = np.array([0, 2, -3, -3, 0])[:, None]
    inputs = [1, 2, 3, 4], indices, [10, 20, 30, 40, 50]
    assert run("ScatterNDUpdateV15", *inputs, reduction=reduction) == [wanted]


def test_truth_is_reduced_by_logic() -> None:
    data, indices, updates = [True, True, False], [[0], [1], [2]], [False, True, True]
    for reduction, wanted in {
        "sum": [True, True, True],
        "prod": [False, True, False],
        "sub": [True, False, True],
    }.items():
        assert run("ScatterNDUpdateV15", data, indices, updates, reduction=reduction) == [wanted]


def test_half_precision_is_rounded_once() -> None:
    one, small = np.float16(1), np.float16(2**-12)
    inputs = [one], [0, 0], [small, small], 0
    typed = [np.asarray(v, np.float16 if i in (0, 2) else np.int64) for i, v in enumerate(inputs)]
    (found,) = made("ScatterElementsUpdateV12", {"reduction": "sum"}).run(*typed)
    assert found.dtype == np.float16
    assert found[0] == np.float16(1 + 2**-11)


@pytest.mark.parametrize(
    ("data", "axis", "first", "wanted"),
    [
        ([2, 1, 1, 3, 2], None, "true", [[1, 2, 3], [1, 0, 3], [1, 0, 0, 2, 1], [2, 2, 1]]),
        ([2, 1, 1, 3, 2], None, "false", [[2, 1, 3], [0, 1, 3], [0, 1, 1, 2, 0], [2, 2, 1]]),
        ([[1, 0], [0, 0], [1, 0]], 0, "true",
         [[[0, 0], [1, 0]], [1, 0], [1, 0, 1], [1, 2]]),
        ([[0, 1, 1], [1, 0, 0]], -1, "false",
         [[[0, 1], [1, 0]], [0, 1], [0, 1, 1], [1, 2]]),
    ],
)  # fmt: skip
def test_unique(data: Any, axis: int | None, first: str, wanted: Any) -> None:
    inputs = (data,) if axis is None else (data, axis)
    assert run("UniqueV10", *inputs, sorted=first) == wanted


def test_unique_of_a_type_that_numpy_does_not_sort() -> None:
    data = np.array([2, 1, 2], ml_dtypes.bfloat16)
    values, *_ = made("UniqueV10", {}).run(data)
    assert values.dtype == data.dtype
    assert values.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "shapes", "complaint"),
    [
        ("GatherV8", ["2,3", "4,5", [2]], "axis 2 is beyond the 2 axes"),
        ("GatherElementsV6", ["2,3", "2"], "the indices have 1 axes, the data has 2"),
        ("GatherNDV8", ["2,3", "4,3"], "rows of 3 indices for 2 axes"),
        ("ScatterUpdateV3", ["4,3", "2", "2,4", [0]], "data and indices ask for 2,3"),
        ("ScatterNDUpdateV3", ["4,3", "2,1", "2,4"], "data and indices ask for 2,3"),
        ("UniqueV10", ["2,3", [2]], "axis 2 is beyond the 2 axes"),
    ],
)
def test_refusals(name: str, shapes: list[Any], complaint: str) -> None:
    tensors = [
        Tensor("i64", Shape.parse(shape)) if isinstance(shape, str) else Tensor.of(np.array(shape))
        for shape in shapes
    ]
    attributes = {"axis": "0"} if name == "GatherElementsV6" else {}
    with pytest.raises(IRError, match=complaint):
        made(name, attributes).infer_outputs(tensors)


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_scattered_whole_are_scattered_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.integers(1, 5, rng.integers(2, 5))]
    axis = int(rng.integers(0, len(shape)))
    data = rng.random(shape).astype("f4")
    sizes = [int(rng.integers(1, n + 1)) for n in shape]
    sizes[axis] = int(rng.integers(1, 7))  # the last of several updates stays
    line = rng.integers(-shape[axis], shape[axis], sizes[axis])
    indices = np.broadcast_to(line.reshape(-1, *[1] * (len(shape) - axis - 1)), sizes).copy()
    if seed % 2:  # all but one of them
        indices[(0,) * len(shape)] = 0
    updates = rng.random(sizes).astype("f4")
    wanted = data.copy()
    for place in np.ndindex(*sizes):
        into = list(place)
        into[axis] = int(indices[place])
        wanted[tuple(into)] = updates[place]
    for version in (3, 12):
        op = made(f"ScatterElementsUpdateV{version}", {})
        (found,) = op.run(data, indices, updates, np.array(axis))
        np.testing.assert_array_equal(found, wanted)
        assert not np.may_share_memory(found, data)
    with pytest.raises(IRError):
        op.run(data, indices * 0 + shape[axis], updates, np.array(axis))
