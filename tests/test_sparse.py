"""Bags of rows and sparse matrices: bounds, defaults, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def made(kind: str, number: int = 3, **data: str) -> Any:
    return Op.registry[kind, number].read(data)


def index(shape: str) -> Tensor:
    return Tensor("i64", Shape.parse(shape))


def table(shape: str, kind: str = "f32") -> Tensor:
    return Tensor(kind, Shape.parse(shape))


def value(*numbers: Any) -> Tensor:
    return Tensor.of(np.array(*numbers, "i8"))


@pytest.mark.parametrize(
    ("op", "inputs", "output"),
    [
        (made("EmbeddingBagPackedSum"), (table("5,2.."), index("2..5,2"), table("3..9,2")),
         "3..5,2.."),
        (made("EmbeddingBagPackedSum"), (table("5,2"), index("..."), table("4,?")), "4,2"),
        (made("EmbeddingBagOffsetsSum"), (table("5,2"), index("6"), index("3..")), "3..,2"),
        (made("EmbeddingBagOffsetsSum"), (table("5,2"), index("..."), index("...")), "?,2"),
        (made("EmbeddingSegmentsSum"), (table("5"), index("6"), index("6"), value(4)), "4"),
        (made("EmbeddingSegmentsSum"), (table("5,2"), index("6"), index("6"), value(-1)), "?,2"),
        (made("EmbeddingSegmentsSum"), (table("..."), index("6"), index("6"), value(4)), "..."),
    ],
)  # fmt: skip
def test_shape(op: Any, inputs: tuple[Tensor, ...], output: str) -> None:
    assert op.infer_outputs(inputs)[0].shape.spelling == output


@pytest.mark.parametrize(
    ("values", "places", "shapes"),
    [
        ("3", index("3,2"), ["?,2", "?", "4"]),
        ("?", value([[0, 1], [1, 2], [1, 3]]), ["5,2", "2..", "4"]),
        ("3", value([[1, 1], [0, 2], [3, 3]]), ["4,2", "4", "4"]),
    ],
)
def test_sparse_shape(values: str, places: Tensor, shapes: list[str]) -> None:
    op = made("SparseFillEmptyRows", 16)
    outputs = op.infer_outputs([table(values), value([4, 5]), places, table("")])
    assert [output.shape.spelling for output in outputs] == shapes


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (made("EmbeddingBagPacked", 15, reduction="mean"),
         (table("5,2"), index("4,2"), table("4,2")), "weights are for sums"),
        (made("EmbeddingBagOffsetsSum"), (table("5,2"), index("6"), index("3"), index("1")),
         "default_index has 1 axes"),
        (made("EmbeddingBagOffsetsSum"), (table(""), index("6"), index("3")), "has no axis"),
        (made("EmbeddingSegmentsSum"), (table("5,2"), index("6"), index("5"), value(4)),
         "shapes 6 and 5 differ"),
        (made("SparseFillEmptyRows", 16),
         (table("1"), value([4, 5]), value([[5, 3]]), table("")), "index 5, 3 is outside"),
    ],
)  # fmt: skip
def test_refusal(op: Any, inputs: tuple[Tensor, ...], message: str) -> None:
    with pytest.raises(IRError, match=message):
        op.infer_outputs(inputs)


def test_an_index_beyond_the_table_is_refused() -> None:
    rows = np.ones((4, 2), "f4")
    with pytest.raises(IRError, match="an index is beyond the 4 rows"):
        made("EmbeddingBagOffsetsSum").run(rows, np.array([-1]), np.array([0]))
    with pytest.raises(IRError, match="beyond the 1 that there are"):
        made("EmbeddingSegmentsSum").run(rows, np.array([0]), np.array([1]), np.array(1))


def test_means_of_whole_numbers_are_cut_and_weights_spare_the_default() -> None:
    rows = np.array([[1, -2], [10, -21]], "i4")
    bags = made("EmbeddingBagOffsets", 15, reduction="mean")
    (values,) = bags.run(rows, np.array([0, 1]), np.array([0, 2]), np.array(-1))
    assert values.tolist() == [[5, -11], [0, 0]]
    weighted = made("EmbeddingBagOffsetsSum").run(
        rows.astype("f4"), np.array([0]), np.array([0, 1]), np.array(1), np.array([0.5], "f4")
    )
    assert weighted[0].tolist() == [[0.5, -1], [10, -21]]


def test_matrix_without_values_gets_defaults() -> None:
    op = made("SparseFillEmptyRows", 16)
    places, values, empty = op.run(
        np.zeros(0, "f4"), np.array([2, 5]), np.zeros((0, 2), "i8"), np.array(9, "f4")
    )
    assert places.tolist() == [[0, 0], [1, 0]]
    assert (values.tolist(), empty.tolist()) == ([9, 9], [True, True])


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (made("EmbeddingSegmentsSum"), (np.ones((3, 2)), [0, 1, 2, 0], [0, 1], 2)),
        (made("EmbeddingSegmentsSum"), (np.ones((3, 2)), [], [0, 1], 2)),
        (made("EmbeddingSegmentsSum"), (np.ones((3, 2)), [0, 1], [0, 1], 2, 0, [1.0])),
        (made("EmbeddingBagPackedSum"), (np.ones((3, 2)), [[0, 1]], [[1.0], [2.0]])),
    ],
)
def test_lists_of_other_lengths_are_refused_by_the_kernel_too(op: Any, inputs: Any) -> None:
    table, *rest = (np.asarray(row) for row in inputs)
    arrays = [table.astype("f4"), *(r.astype("i8" if r.dtype.kind != "f" or not r.size else "f4")
                                    for r in rest)]  # fmt: skip
    for refused in (op.run, lambda *given: op.infer(*map(Tensor.of, given))):
        with pytest.raises(IRError, match="differ"):
            refused(*arrays)
