"""Generation by hand: the specification's random numbers, ranges without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import ElementType, IRError, Shape, Tensor


def made(name: str, **attributes: str) -> Op:
    kind, _, number = name.rpartition("V")
    op: Op = Op.registry[kind, int(number)].read(attributes)
    return op


@pytest.mark.parametrize(
    ("kind", "seeds", "shape", "ends", "wanted"),
    [
        ("f32", (150, 10), [3, 3], (0, 1),
         [[0.7011236, 0.30539632, 0.93931055], [0.9456035, 0.11694777, 0.50770056],
          [0.5197197, 0.22727466, 0.991374]]),
        ("f64", (80, 100), [2, 2], (2, 10), [[5.65927959, 4.23122376], [2.67008206, 2.36423758]]),
        ("i32", (80, 100), [2, 3], (50, 100), [[65, 70, 56], [59, 82, 92]]),
    ],
)  # fmt: skip
def test_random_numbers_are_those_of_the_specification(
    kind: str, seeds: tuple[int, int], shape: list[int], ends: tuple[int, int], wanted: Any
) -> None:
    op = made(
        "RandomUniformV8", output_type=kind, global_seed=str(seeds[0]), op_seed=str(seeds[1])
    )
    low, high = (np.array(end) for end in ends)
    (found,) = op.run(np.array(shape), low, high)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_without_seeds_each_run_is_another_and_nothing_is_known_before() -> None:
    op = made("RandomUniformV8", output_type="f32", global_seed="0", op_seed="0")
    shape, low, high = np.array([8]), np.float32(0), np.float32(1)
    assert not np.array_equal(op.run(shape, low, high), op.run(shape, low, high))
    (output,) = op.infer_outputs([Tensor.of(value) for value in (shape, low, high)])
    assert output.shape == (8,)
    assert output.value is None


@pytest.mark.parametrize(
    ("log_probs", "probs"),
    [("false", [[0.0, 3.0, 0.0], [1.0, 0.0, 1.0]]), ("true", [[-99.0, 0.0, -99.0], [0, -99, 0]])],
)
def test_only_likely_classes_are_drawn(log_probs: str, probs: Any) -> None:
    op = made(
        "MultinomialV13", convert_type="i64", with_replacement="true", log_probs=log_probs,
        global_seed="3", op_seed="4",
    )  # fmt: skip
    (drawn,) = op.run(np.array(probs, "f4"), np.array(50))
    assert set(drawn[0]) == {1}
    assert set(drawn[1]) == {0, 2}


def test_without_replacement_no_class_comes_twice() -> None:
    op = made("MultinomialV13", convert_type="i32", with_replacement="false", log_probs="false")
    (drawn,) = op.run(np.array([[0.1, 0.2, 0.3, 0.4]], "f4"), np.array(4))
    assert sorted(drawn[0].tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "u4", "u8", "i8"])
def test_samples_are_counted_in_any_integer_type(kind: str) -> None:
    op = made(
        "MultinomialV13", convert_type="i32", with_replacement="true", log_probs="false",
        global_seed="1", op_seed="2",
    )  # fmt: skip
    given = [np.full((2, 4), 0.25, "f4"), np.array(3, kind)]
    assert op.infer_outputs([Tensor.of(array) for array in given])[0].shape == (2, 3)
    assert op.run(*given)[0].tolist() == [[3, 2, 1], [0, 1, 0]]  # as OpenVINO's CPU draws them


@pytest.mark.parametrize(
    ("name", "ends", "wanted"),
    [
        ("RangeV4", (23, 2, -3), [23, 20, 17, 14, 11, 8, 5]),
        ("RangeV4", (1, 1, 5), []),
        ("RangeV4", (1.9, 3.9, 1.9), [1, 2]),  # cut to whole numbers first
        ("RangeV4", (0.5, 5.5, 0.5), []),  # nothing is left of the step
        ("RangeV4", (1.0, -1.0, -0.1), []),
    ],
)
def test_ranges(name: str, ends: Any, wanted: list[int]) -> None:
    tensors = [Tensor.of(np.array(end)) for end in ends]
    (output,) = made(name, output_type="i32").infer_outputs(tensors)
    assert output.shape == (len(wanted),)
    assert output.ints() == wanted


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize(
    ("start", "step", "size"),
    [(0, 1, 5), (250, 3, 4), (-4, 2, 6), (9, -4, 5), (2**31 - 2, 1, 4), (2**40, -(2**33), 3)],
)
def test_whole_numbers_of_a_range_go_round(kind: str, start: int, step: int, size: int) -> None:
    op = made("RangeV4", output_type=kind)
    (found,) = op.run(*map(np.array, (start, start + size * step, step)))
    bits = 8 * found.dtype.itemsize
    wanted = [(start + place * step) % 2**bits for place in range(size)]
    assert found.dtype == ElementType(kind).dtype
    assert [int(number) % 2**bits for number in found] == wanted


@pytest.mark.parametrize(
    ("name", "ends", "complaint"),
    [
        ("RangeV1", (0.0, 3.0, 0.0), "step is 0"),
        ("RangeV4", (0.0, np.inf, 1.0), "stop is inf, it has to be finite"),
        ("RangeV4", (0.0, 3.0, 0.0), "step 0 has no end"),
    ],
)
def test_ranges_without_end(name: str, ends: Any, complaint: str) -> None:
    attributes = {"output_type": "i64"} if name == "RangeV4" else {}
    with pytest.raises(IRError, match=complaint):
        made(name, **attributes).infer_outputs([Tensor.of(np.array(end)) for end in ends])


def test_a_matrix_has_as_many_rows_as_a_value_says() -> None:
    rows = Tensor("i64", (), parts=np.array(Shape.parse("2..5")[0], object))
    one = Tensor.of(np.int64(1))
    (output,) = made("EyeV9", output_type="f32").infer_outputs([rows, one, one])
    assert str(output.shape) == "2..5,1"


@pytest.mark.parametrize("kind", ["u4", "i4", "u2"])
def test_ranges_of_few_bits(kind: str) -> None:
    ends = [np.array(end) for end in (0, 3, 1)]
    op = made("RangeV4", output_type=kind)
    assert op.run(*ends)[0].astype(int).tolist() == [0, 1, 2]
    assert op.infer_outputs([Tensor.of(end) for end in ends])[0].value is not None
