"""Programs on images as cameras and decoders give them: bytes, YUV planes, float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import converting, copies, pixels
from vinoir.ir.engine.plan import Node
from vinoir.layers.casting import as_half
from vinoir.schemas import Array

MODES = ("linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow")


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several bands, of several workers, of small images, too."""
    monkeypatch.setattr(pixels, "BAND", 1 << 6)
    monkeypatch.setattr(pixels, "WORTH", 1)
    monkeypatch.setattr(copies, "SMALL", 1)
    monkeypatch.setattr(converting, "NEAR", 1 << 6)


def numbers(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    low = -128 if kind == "i1" else 0
    return (rng.random(shape) * 255 + low).astype(kind)


class Watched:
    """A kernel, and whether it has taken a node."""

    def __init__(self, kernel: str | None) -> None:
        self._prepare = None if kernel is None else getattr(pixels, kernel)
        self.used = False

    def __call__(self, node: Node, workers: int) -> Any:
        assert self._prepare is not None
        found = self._prepare(node, workers)
        self.used |= found is not None
        return found


def check(net: ir.Builder, arrays: list[Array], *, kernel: str | None = None) -> None:
    """A program gives, on any number of threads, exactly what the definition gives.

    By a kernel of its own, if one is named.
    """
    model = net.model()
    wanted = ir.run(model, arrays)
    for threads in (1, 2, 3):
        watched = Watched(kernel)
        with pytest.MonkeyPatch.context() as patch:
            if kernel is not None:
                patch.setattr(pixels, kernel, watched)
            program = ir.compile(model, threads=threads)
        assert watched.used == (kernel is not None)
        for _ in range(2):
            for name, found in program(arrays).items():
                np.testing.assert_array_equal(found, wanted[name], strict=True)


@given(st.data())
def test_colours_of_video_frames(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(pixels.COLORS))
    of = data.draw(st.sampled_from(("u8", "f32", "f16")))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    batch, height, width = (data.draw(st.integers(1, 4)) for _ in range(3))
    height, width = 2 * height, 2 * width
    dtype = {"u8": "u1", "f32": "f4", "f16": "f2"}[of]
    chroma = (2,) if kind.startswith("NV12") else (1, 1)
    planes = [numbers(rng, dtype, batch, height, width, 1)]
    planes += [numbers(rng, dtype, batch, height // 2, width // 2, deep) for deep in chroma]
    if data.draw(st.booleans()):
        flat = [plane.reshape(batch, -1) for plane in planes]
        planes = [np.concatenate(flat, 1).reshape(batch, height * 3 // 2, width, 1)]
    net = ir.Builder()
    given_ = [net.parameter(f"x{place}", of, plane.shape) for place, plane in enumerate(planes)]
    y = net.add(kind, "opset8", given_)
    if data.draw(st.booleans()):  # what models make of it
        y = net.add("Transpose", "opset1", [y, net.constant(np.array([0, 3, 1, 2]))])
        y = net.add("Convert", "opset1", [y], destination_type="f32")
    net.result(y)
    check(net, planes, kernel="colored")


@given(st.data())
def test_bytes_are_resized(data: st.DataObject) -> None:
    """Sums near the middle of two bytes show in which order they were summed up."""
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    dtype, mode = data.draw(st.sampled_from(("u1", "i1"))), data.draw(st.sampled_from(MODES))
    images, deep, height, width = (data.draw(st.integers(1, 7)) for _ in range(4))
    axes = data.draw(st.sampled_from(([1, 2], [2, 1], [2, 3], [3, 2])))
    if mode == "linear_onnx" or mode.endswith("pillow"):
        axes = sorted(axes)
    net = ir.Builder()
    kind = {"u1": "u8", "i1": "i8"}[dtype]
    x = net.parameter("x", kind, (images, deep, height, width))
    new = [data.draw(st.integers(1, 9)) for _ in axes]
    sizes = net.constant(np.array(new))
    y = net.add(
        "Interpolate", "opset11", [x, sizes, net.constant(np.array(axes))],
        mode=mode, shape_calculation_mode="sizes", antialias=data.draw(st.booleans()),
        coordinate_transformation_mode=data.draw(st.sampled_from(("half_pixel", "asymmetric"))),
    )  # fmt: skip
    net.result(y)
    same = new == [x.tensor.shape.static[axis] for axis in axes]
    given_ = [numbers(rng, dtype, images, deep, height, width)]
    check(net, given_, kernel=None if same else "resized")


@given(st.data())
def test_bytes_become_numbers_beside_convolutions(data: st.DataObject) -> None:
    """Whose channels are last, where those of the image are first, or the other way round."""
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    images, deep = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    sides = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30)))
    before = data.draw(st.sampled_from(("u8", "i8", "i32", "i64", "f32")))
    net = ir.Builder()
    shape = (images, deep, *sides)
    last = data.draw(st.booleans())
    x = y = net.parameter("x", before, (images, *sides, deep) if last else shape)
    if last:
        y = net.add("Transpose", "opset1", [x, net.constant(np.array([0, 3, 1, 2]))])
    if data.draw(st.booleans()):
        y = net.add("Convert", "opset1", [y], destination_type="i32")
    y = net.add("Convert", "opset1", [y], destination_type="f32")
    # One tap of each channel: such sums are the same in any order.
    kernel = np.zeros((deep, deep, 1, 1), "f4")
    kernel[np.arange(deep), rng.permutation(deep)] = 0.5
    words: dict[str, Any] = dict.fromkeys(("strides", "dilations"), (1, 1))
    words |= dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
    net.result(net.add("Convolution", "opset1", [y, net.constant(kernel)], **words))
    dtype = {"u8": "u1", "i8": "i1", "i32": "i4", "i64": "i8", "f32": "f4"}[before]
    check(net, [numbers(rng, dtype, *x.tensor.shape.static)])


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-9, 3e4])
def test_float16_comes_in_and_goes_out(scale: float) -> None:
    """Enough numbers for the library, among them such as float16 keeps few digits of, or none."""
    rng = np.random.default_rng(3)
    net = ir.Builder()
    x, y = net.parameter("x", "f16", (2, 3, 64, 65)), net.parameter("y", "f32", (65,))
    z = net.add(
        "Multiply", "opset1", [net.add("Convert", "opset1", [x], destination_type="f32"), y]
    )
    net.result(net.add("Convert", "opset1", [z], destination_type="f16"))
    net.result(
        net.add("Convert", "opset1", [net.add("ReLU", "opset1", [z])], destination_type="f16")
    )
    arrays = [as_half(rng.standard_normal((2, 3, 64, 65)).astype("f4") * 2)]
    arrays.append((rng.standard_normal(65) * scale).astype("f4"))
    check(net, arrays)
    turned = arrays[0].transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2)
    check(net, [turned, arrays[1]])


def test_half_precision_is_rounded_as_numpy_rounds() -> None:
    """To each number of float16, between each two, and beside that; beyond the largest."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        wide = np.append(np.unique(every[np.isfinite(every)]).astype("f4"), np.float32(2**16))
        between = (wide[1:] + wide[:-1]) / 2
        given_ = np.concatenate([
            wide, -wide, between, -between, every.astype("f4"),
            np.array([1e-30, -1e-30, 1e30], "f4"),
            *(np.nextafter(between, np.float32(side * np.inf)) for side in (-1, 1)),
        ])  # fmt: skip
        for numbers_ in (given_, given_.astype("f8"), given_[:7].reshape(7, 1)):
            wanted = numbers_.astype(np.float16)
            found = as_half(numbers_)
            np.testing.assert_array_equal(found, wanted, strict=True)
            kept = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(wanted[kept]))
