"""Fourier transforms: bounds, definitions where OpenVINO's CPU errs, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def op(kind: str, **data: str) -> Any:
    number = {"DFT": 7, "IDFT": 7, "RDFT": 9, "IRDFT": 9, "STFT": 15, "ISTFT": 16}[kind]
    return Op.registry[kind, number].read(data)


def inferred(op: Any, *inputs: Any) -> str:
    """Shape of the output; text is a float tensor's shape, anything else a known value."""
    tensors = [
        i if isinstance(i, Tensor)
        else Tensor("f32", Shape.parse(i)) if isinstance(i, str)
        else Tensor.of(np.array(i, "i8"))
        for i in inputs
    ]  # fmt: skip
    (output,) = op.infer_outputs(tensors)
    shape: str = output.shape.spelling
    return shape


PAIR = Tensor("i64", (2,))
PARTLY, MAYBE = (
    Tensor("i64", (2,), bounds=(np.array([least, 7]), np.array([5, 7]))) for least in (2, -1)
)


@pytest.mark.parametrize(
    ("kind", "inputs", "output"),
    [
        ("DFT", ("3..,?,6,2", [0, -1]), "3..,?,6,2"),
        ("DFT", ("3..,4,6,2", PAIR), "3..,4,6,2"),
        ("DFT", ("3..,4,6,2", [0, -1], PAIR), "?,4,?,2"),
        ("DFT", ("3..,4,6,2", PAIR, [5, -1]), "?,?,?,2"),
        ("DFT", ("3,4,6,2", [0, 1], PARTLY), "2..5,7,6,2"),
        ("RDFT", ("3,4,6", [0, 1], PARTLY), "2..5,?,6,2"),
        ("IRDFT", ("3,4,6,2", [1, 0], PARTLY), "?,2..5,6"),
        ("IDFT", ("3,4,6,2", [0, 1], MAYBE), "?,7,6,2"),
        ("IDFT", ("3..,4,6,2", [0, -1], [5, -1]), "5,4,6,2"),
        ("RDFT", ("3..,?,6,3..7", [0, -1]), "3..,?,6,2..4,2"),
        ("RDFT", ("3..,..1,6", [1]), "3..,..1,6,2"),
        ("RDFT", ("3,4,5", PAIR), "?,?,?,2"),
        ("IRDFT", ("3..,?,6,2", [0, -1]), "3..,?,10"),
        ("IRDFT", ("3,..1,2..4,2", [2]), "3,..1,2..6"),
        ("IRDFT", ("3,4,6,2", [0, 1], [-1, 9]), "3,9,6"),
    ],
)
def test_shape(kind: str, inputs: tuple[Any, ...], output: str) -> None:
    assert inferred(op(kind), *inputs) == output


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("DFT", ("3,4,3", [0]), "does not end with pairs"),
        ("DFT", ("3,4,2", [0, 0]), "axis 0 stands twice"),
        ("DFT", ("3,4,2", [2]), "axis 2 is beyond the 2 axes"),
        ("DFT", ("3,4,2", [0, 1], [5]), "2 axes, 1 signal sizes"),
        ("DFT", ("3,2", PAIR), "2 axes to transform, shape 3,2 has 1"),
        ("RDFT", ("3,2", []), "no axis to transform"),
        ("RDFT", ("3,2", [0], [-2]), "a size is -2"),
    ],
)
def test_refusal(kind: str, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(IRError, match=message):
        inferred(op(kind), *inputs)


@pytest.mark.parametrize("size", [5, 6, 12])
def test_real_transform_there_and_back(size: int) -> None:
    """Longer than the data too, where OpenVINO's CPU reads beyond it."""
    data = np.random.default_rng(0).random((3, 6), "f4")
    axes, sizes = np.array([0, 1]), np.array([4, size])
    (there,) = op("RDFT").run(data, axes, sizes)
    padded = np.pad(data[:, :size], ((0, 1), (0, max(size - 6, 0))))
    k = np.exp(-2j * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(size)) / size)
    wanted = np.fft.fft(padded @ k.T, axis=0)
    np.testing.assert_allclose(there, np.stack([wanted.real, wanted.imag], -1), atol=1e-4)
    (back,) = op("IRDFT").run(there, axes, sizes)
    np.testing.assert_allclose(back, padded, atol=1e-5)


@pytest.mark.parametrize("size", [7, 8])
def test_frames_there_and_back(size: int) -> None:
    signal = np.random.default_rng(0).random((2, 4 * 3 + size), "f4")
    settings = [np.full(size, 0.5, "f4"), np.array(size), np.array(3)]
    (frames,) = op("STFT", transpose_frames="true").run(signal, *settings)
    (back,) = op("ISTFT", center="false", normalized="false").run(frames, *settings)
    np.testing.assert_allclose(back, signal, rtol=1e-4)
    middle = op("ISTFT", center="true", normalized="false")
    (back,) = middle.run(frames, *settings, np.array([5]))
    np.testing.assert_allclose(back, signal[:, size // 2 :][:, :5], rtol=1e-4)


@pytest.mark.parametrize(("center", "length"), [("false", 8), ("true", 0)])
def test_no_frames_are_as_long_as_one(center: str, length: int) -> None:
    made = op("ISTFT", center=center, normalized="false")
    rest = [np.ones(8, "f4"), np.array(8), np.array(4)]
    (found,) = made.run(np.zeros((2, 5, 0, 2), "f4"), *rest)
    assert found.tolist() == [[0] * length] * 2
    assert inferred(made, "2,5,0,2", *map(Tensor.of, rest)) == f"2,{length}"


def test_frames_of_unknown_length() -> None:
    stft = op("STFT", transpose_frames="false")
    settings = [Tensor("f32", (8,)), Tensor.of(np.array(8)), Tensor.of(np.array(4))]
    assert inferred(stft, "?,..20", *settings) == "?,1..4,5,2"
    assert inferred(stft, "16", *settings[:2], Tensor("i64", ())) == "?,?,2"
    with pytest.raises(IRError, match="a frame of 8 is longer than the signal of 7"):
        inferred(stft, "7", *settings)


@pytest.mark.parametrize(
    ("what", "size", "step"), [("step", 4, 0), ("step", 4, -4), ("size", 0, 2)]
)
def test_frames_that_values_tell_are_looked_at_too(what: str, size: int, step: int) -> None:
    numbers = np.array(size), np.array(step)
    window = np.ones(max(size, 1), "f4")
    with pytest.raises(IRError, match=f"the frame {what} is .*, the least is 1"):
        op("STFT", transpose_frames="true").run(np.ones((1, 16), "f4"), window, *numbers)
    back = op("ISTFT", center="false", normalized="false")
    with pytest.raises(IRError, match=f"the frame {what} is .*, the least is 1"):
        back.run(np.ones((1, 3, 4, 2), "f4"), window, *numbers)
