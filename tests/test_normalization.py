"""Normalizations by hand: what OpenVINO's CPU does not have, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import Call, expected_values
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor

LOCAL = {"alpha": "1", "beta": "1", "bias": "1.5", "size": "4"}


def op(name: str, number: int, **attributes: str) -> Any:
    return Op.registry[name, number].read(attributes)


def test_lrn_looks_the_same_way_to_either_side_and_divides_by_the_whole_size() -> None:
    # size 4: one neighbour on each side; the sum of squares / 4 + 1.5.
    (found,) = op("LRN", 1, **LOCAL).run(np.array([2, 4, 6], "f4"), np.array([0]))
    np.testing.assert_allclose(found, [2 / 6.5, 4 / 15.5, 6 / 14.5], rtol=1e-6)


def test_lrn_over_two_axes_sums_squares_of_a_square() -> None:
    data = np.ones((3, 3), "f4")
    (found,) = op("LRN", 1, **LOCAL | {"size": "3"}).run(data, np.array([0, -1]))
    np.testing.assert_allclose(found[0], [1 / (1.5 + 4 / 9), 1 / (1.5 + 6 / 9), 1 / (1.5 + 4 / 9)])


def test_mvn_takes_the_axes_that_are_listed() -> None:
    old = op("MVN", 1, eps="0", normalize_variance="true", reduction_axes="1")
    data = np.array([[[1, 10], [3, 30]]], "f4")
    np.testing.assert_allclose(old.run(data)[0], [[[-1, -1], [1, 1]]])
    plain = op("MVN", 1, eps="0", normalize_variance="false", across_channels="true")
    np.testing.assert_allclose(plain.run(data)[0], data - 11)


def test_normalize_l2_without_axes_makes_ones_of_all_but_zero() -> None:
    made = op("NormalizeL2", 1, eps="0.5", eps_mode="add")
    (found,) = made.run(np.array([-3, 0, 2], "f4"), np.array([], "i8"))
    assert found.tolist() == [1, 0, 1]


def test_half_precision_is_calculated_in_single() -> None:
    made = op("NormalizeL2", 1, eps="1e-8", eps_mode="add")
    (found,) = made.run(np.array([300, 400], "f2"), np.array([0]))
    assert found.dtype == np.float16
    assert found.tolist() == np.array([0.6, 0.8], "f2").tolist()


@pytest.mark.parametrize(
    ("made", "shapes", "message"),
    [
        (op("GRN", 1, bias="1"), ["2"], "the data have 1 axes, GRN takes 2, 3 or 4"),
        (op("LRN", 1, **LOCAL), ["2,3", "3"], "3 axes for data that have 2"),
        (op("LRN", 1, **LOCAL | {"size": "0"}), ["2,3", "1"], "size is 0"),
        (op("NormalizeL2", 1, eps="1", eps_mode="add"), ["2", "1,1"], "a number or a list"),
        (op("GroupNormalization", 12, num_groups="2", epsilon="1"), ["2,5", "5", "5"],
         "5 channels do not divide into 2 groups"),
        (op("GroupNormalization", 12, num_groups="2", epsilon="1"), ["2,4", "4", "3"],
         "3 scales or biases for 4 channels"),
        (op("BatchNormInference", 5, epsilon="1"), ["2,3", "4", "4", "4", "4"], "3 and 4 differ"),
        (op("BatchNormInference", 5, epsilon="-1"), ["2,3", "3", "3", "3", "3"], "epsilon is -1"),
    ],
)  # fmt: skip
def test_refusals(made: Op, shapes: list[str], message: str) -> None:
    lists = made.xml_type in ("LRN", "NormalizeL2")
    kinds = ["f32", *["i64" if lists else "f32"] * 4]
    with pytest.raises(IRError, match=message):
        made.infer(*(Tensor(k, Shape.parse(s)) for k, s in zip(kinds, shapes, strict=False)))


@pytest.mark.parametrize("kind", ["i4", "i1", "u1"])
@pytest.mark.parametrize(
    ("name", "attributes", "axes"),
    [
        ("MVNV1", {"across_channels": "false", "normalize_variance": "false", "eps": "1e-5"}, []),
        (
            "MVNV6",
            {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"},
            [2, 3],
        ),
        ("NormalizeL2V1", {"eps": "1e-5", "eps_mode": "add"}, [1]),
        ("GRNV1", {"bias": "1"}, []),
        ("LRNV1", {"alpha": "1", "beta": "0.5", "bias": "1", "size": "3"}, [1]),
    ],
)
def test_of_integers_the_nearest_is_taken(
    name: str, attributes: dict[str, str], axes: list[int], kind: str
) -> None:
    if (name, kind) == ("NormalizeL2V1", "i4"):
        kind = "i1"  # of the other OpenVINO has none
    numbers = np.random.default_rng(1).integers(0 if kind == "u1" else -20, 20, (1, 2, 2, 4))
    inputs = [numbers.astype(kind), *([np.array(axes)] if axes else [])]
    call = Call(name, inputs, attributes, const=(1,) if axes else ())
    (wanted,) = expected_values(call.make(), call.tensors(), call.arrays())
    (found,) = call.make().run(*call.arrays())
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["i4", "i8", "u4", "u8"])
@pytest.mark.parametrize(
    ("name", "attributes", "data", "others", "wanted"),
    [
        ("LRNV1", {"alpha": "0.001", "beta": "0.75", "bias": "1", "size": "5"},
         [[10, 20, 30, 7], [40, 5, 6, 9]], [[0]], [[8, 19, 26, 7], [32, 5, 5, 9]]),
        ("GRNV1", {"bias": "0.5"}, [[0, 0]], [], [[0, 0]]),
        ("MVNV1", {"eps": "1e-5", "normalize_variance": "true", "across_channels": "true"},
         [[[7, 7]]], [], [[[0, 0]]]),
        ("MVNV6", {"eps": "1e-5", "normalize_variance": "true", "eps_mode": "inside_sqrt"},
         [[7, 7]], [[1]], [[0, 0]]),
        ("NormalizeL2V1", {"eps": "0.5", "eps_mode": "add"}, [[0, 0]], [[1]], [[0, 0]]),
        ("NormalizeL2V1", {"eps": "0.5", "eps_mode": "max"}, [[0, 0]], [[1]], [[0, 0]]),
    ],
)  # fmt: skip
def test_of_integers_nothing_is_cut_before_the_end(
    kind: str, name: str, attributes: dict[str, str], data: Any, others: Any, wanted: Any
) -> None:
    made = Call(name, [], attributes).make()
    (found,) = made.run(np.array(data, kind), *map(np.array, others))
    assert found.tolist() == wanted


@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_groups_of_one_number_have_no_variance_also_of_integers(kind: str) -> None:
    made = op("GroupNormalization", 12, num_groups="1", epsilon="1e-5")
    data, one, none = (
        np.full(shape, value, kind) for shape, value in (((1, 2, 2), 7), (2, 1), (2, 0))
    )
    assert made.run(data, one, none)[0].tolist() == [[[0, 0], [0, 0]]]
