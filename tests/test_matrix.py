"""Products of matrices: bounds that OpenVINO gives, corners of the kernels, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def inferred(op: str, data: dict[str, str], *shapes: str) -> str:
    kind = Op.registry[op, {"MatMul": 1, "Einsum": 7, "Inverse": 14, "GroupedMatMul": 17}[op]]
    inputs = [Tensor("f32", Shape.parse(shape)) for shape in shapes]
    (output,) = kind.read(data).infer_outputs(inputs)
    return output.shape.spelling


@pytest.mark.parametrize(
    ("a", "b", "output"),
    [
        ("3", "3", ""),
        ("3", "3,4", "4"),
        ("2,3", "3", "2"),
        ("?,2..3", "4..5,5", "?,5"),
        ("2..,2,3", "..4,3,5", "2..,2,5"),
        ("2..3,2,3", "4..5,3,5", "?,2,5"),
        ("1..3,2,3", "2..5,3,5", "2..5,2,5"),
        ("1..5,2,3", "..7,3,5", "..7,2,5"),
        ("...", "3,4", "..."),
    ],
)
def test_matmul_gives_openvinos_bounds(a: str, b: str, output: str) -> None:
    assert inferred("MatMul", {}, a, b) == output


def test_transposition_leaves_vectors_alone() -> None:
    assert inferred("MatMul", {"transpose_a": "true", "transpose_b": "true"}, "3", "4,3") == "4"


@pytest.mark.parametrize(
    ("equation", "shapes", "output"),
    [
        ("ii", ("3,3",), "3,3"),
        ("bA", ("2,3",), "3,2"),
        ("ijk,ij...", ("2,3,4", "2,3,5,6"), "5,6,4"),
        ("ab,ab->ab", ("2..,3", "..4,1"), "2..,3"),
        ("...b,bc->...c", ("...", "3,4"), "..."),
        ("a...->a", ("...",), "?"),
        ("abcd,acd->bd", ("1,?,3,..4", "..."), "?,..4"),
        ("ab->ab...", ("2,3",), "2,3"),
        ("aab->b", ("2..,..5,7",), "7"),
    ],
)
def test_einsum_gives_openvinos_bounds(
    equation: str, shapes: tuple[str, ...], output: str
) -> None:
    assert inferred("Einsum", {"equation": equation}, *shapes) == output


@pytest.mark.parametrize(
    ("op", "data", "shapes", "message"),
    [
        ("MatMul", {}, ("2,3", "4,5"), "the inner sizes 3 and 4 differ"),
        ("MatMul", {}, ("2,2,3", "4,3,5"), "2 and 4 matrices cannot be paired"),
        ("MatMul", {}, ("", "3"), "one axis at least"),
        ("Einsum", {"equation": "a b,bc"}, ("2,3", "3,4"), '"a b" is more than letters'),
        ("Einsum", {"equation": "ab,bc"}, ("2,3",), "has 2 terms, 1 inputs"),
        ("Einsum", {"equation": "ab"}, (), "has 1 terms, 0 inputs"),
        ("Einsum", {"equation": "ab->c"}, ("2,3",), 'label "c" of the output'),
        ("Einsum", {"equation": "ab->a"}, ("2,3,4",), 'term "ab" does not name the 3 axes'),
        ("Einsum", {"equation": "aa->a"}, ("2,3",), "2 and 3 differ"),
        ("Inverse", {}, ("2,3",), "2 by 3 is not square"),
        ("GroupedMatMul", {}, ("6,4", "2,5,4"), "groups' ends as third input"),
        ("GroupedMatMul", {}, ("6,4", "2,4,5"), "inner sizes 4 and 5 differ"),
        ("GroupedMatMul", {}, ("4,6", "6,5"), "the second 3"),
    ],
)
def test_refusal(op: str, data: dict[str, str], shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(IRError, match=message):
        inferred(op, data, *shapes)


def test_inverse_of_singular_and_adjugate() -> None:
    inverse, adjugate = (
        Op.registry["Inverse", 14].read({"adjoint": text}) for text in ("false", "true")
    )
    pair = np.array([[[1, 2], [2, 4]], [[3, 1], [1, 4]]], "f4")
    (values,) = inverse.run(pair)
    assert np.isnan(values[0]).all()
    np.testing.assert_allclose(values[1] @ pair[1], np.eye(2), atol=1e-6)
    np.testing.assert_allclose(adjugate.run(pair)[0][1], [[4, -1], [-1, 3]], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_inverse_of_a_matrix_whose_determinant_is_no_number_of_32_bits(scale: float) -> None:
    values = np.random.default_rng(0).normal(size=(500, 64)) * scale
    matrix = (values.T @ values / 500).astype("f4")  # a covariance; its condition is about 4
    pair = np.stack([matrix, np.zeros_like(matrix)])
    (found,) = Op.registry["Inverse", 14].read({}).run(pair)
    np.testing.assert_allclose(found[0] @ matrix, np.eye(64), atol=1e-5)
    assert np.isnan(found[1]).all()


def test_groups_of_rows_and_rows_of_no_group() -> None:
    grouped = Op.registry["GroupedMatMul", 17].read({})
    rows = np.arange(8, dtype="f4").reshape(4, 2)
    matrices = np.array([[[1, 0]], [[0, 2]]], "f4")
    (values,) = grouped.run(rows, matrices, np.array([1, 3], "i4"))
    assert values.ravel().tolist() == [0, 6, 10, 0]


def test_infinity_times_nothing_is_nan_without_a_warning() -> None:
    rows, zeros = np.array([[np.inf, 1]], "f4"), np.zeros((2, 1), "f4")
    (product,) = Op.registry["MatMul", 1].read({}).run(rows, zeros)
    (summed,) = Op.registry["Einsum", 7].read({"equation": "ab,bc->ac"}).run(rows, zeros)
    assert np.isnan(product).all()
    assert np.isnan(summed).all()
