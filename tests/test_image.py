"""Images: where OpenVINO gives no numbers to compare with, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir import ir
from vinoir.layers.image import (
    InterpolateV1,
    InterpolateV4,
    InterpolateV11,
    Mode,
    Settings,
    by_size,
    gathered,
    mixed,
    taps_of,
    taps_pillow,
)
from vinoir.schemas import Dim, IRError, Shape, Tensor

ROW = np.array([0, 10, 20, 30, 40, 50], "f4")
ALL = {"mode": "nearest", "shape_calculation_mode": "sizes"}
SCALES = {"mode": "nearest", "shape_calculation_mode": "scales"}


def test_linear_with_antialias_averages_over_what_an_output_pixel_covers() -> None:
    # OpenVINO's CPU ignores antialias up to four axes; its reference and the specification do not.
    op = InterpolateV11.read(ALL | {"mode": "linear", "antialias": "true"})
    (out,) = op.run(ROW, np.array([3]))
    # A triangle of half width 2 about 0.5: weights 3/4, 3/4, 1/4 for 0, 10, 20.
    np.testing.assert_allclose(out, [12.5 / 1.75, 25, 50 - 12.5 / 1.75], rtol=1e-6)


def test_pillow_cubic_has_a_coefficient_of_its_own() -> None:
    # The specification gives the attribute to this mode, too; Pillow, PyTorch (which exports a
    # file that says -0.75) and OpenVINO's CPU take -0.5.
    data = np.array([0, 0, 1, 0, 0, 0, 0, 0], "f4")
    for a in (-0.5, -0.75):
        op = InterpolateV11.read(ALL | {"mode": "bicubic_pillow", "cube_coeff": str(a)})
        (out,) = op.run(data, np.array([16]))
        assert out[7] == pytest.approx(-0.5 * (1.25**3 - 5 * 1.25**2 + 8 * 1.25 - 4), abs=1e-6)


@pytest.mark.parametrize(
    ("scale", "size", "expected"),
    [
        (1.0, Dim(2, 5), Dim(2, 5)),
        (0.5, Dim(2, None), Dim(1, None)),
        (1 / 3, 3, 1),
        (1.5, Dim(1, 4), Dim(1, 6)),
    ],
)
def test_scales_multiply_bounds(scale: float, size: int | Dim, expected: int | Dim) -> None:
    (out,) = InterpolateV11.read(SCALES).infer(
        Tensor("f32", (size,)), Tensor.of(np.array([scale], "f4"))
    )
    assert out.shape == Shape((expected,))


def test_a_scale_that_makes_more_than_a_size_can_be_is_refused() -> None:
    op, scales = InterpolateV11.read(SCALES), np.array([3e38], "f4")
    with pytest.raises(IRError, match=r"2 pixels times a scale of 3e\+38 are more than"):
        op.infer(Tensor("f32", (2,)), Tensor.of(scales))
    with pytest.raises(IRError, match="2 pixels times"):
        op.run(ROW[:2], scales)
    (out,) = op.infer(Tensor("f32", (Dim(0, 9),)), Tensor.of(scales))
    assert out.shape == Shape((Dim(0, None),))


def test_first_version_takes_its_axes_in_ascending_order() -> None:
    op = InterpolateV1.read({"mode": "nearest", "axes": "3, 2"})
    (out,) = op.infer(Tensor("f32", (1, 1, 5, 5)), Tensor.of(np.array([7, 9])))
    assert out.shape == (1, 1, 7, 9)


@pytest.mark.parametrize(
    ("data", "axes", "message"),
    [
        ((2, 3), [2], "axis 2 is not one of 0 to 1"),
        ((2, 3), [-1], "axis -1 is not one of 0 to 1"),
        ((2, 3), [0, 1], "1 sizes for 2 axes"),
    ],
)
def test_refusals(data: tuple[int, ...], axes: list[int], message: str) -> None:
    op = InterpolateV11.read(ALL)
    with pytest.raises(IRError, match=message):
        op.infer(Tensor("f32", data), Tensor.of(np.array([4])), Tensor.of(np.array(axes)))


def test_pillow_came_with_version_eleven() -> None:
    with pytest.raises(ValueError, match="needs Interpolate-11"):
        InterpolateV4.read(ALL | {"mode": "bilinear_pillow"})


@pytest.mark.parametrize("mode", ["linear_onnx", "cubic", "bilinear_pillow"])
def test_a_matrix_gives_what_gathering_gives(mode: Mode) -> None:
    data = np.random.default_rng(0).standard_normal((2, 7, 3)).astype("f4")
    step, settings = by_size(1, 7, 11), Settings(mode)
    taps = (taps_pillow if mode.endswith("pillow") else taps_of([step], settings))(step, settings)
    np.testing.assert_allclose(mixed(data, 1, taps), gathered(data, 1, taps), atol=1e-6)


def test_what_is_infinite_stays_in_its_place() -> None:
    data = np.array([0, np.inf, 0, 0], "f4")
    (out,) = InterpolateV11.read(ALL | {"mode": "linear_onnx"}).run(data, np.array([8]))
    assert not np.isfinite(out[1:5]).any()
    assert np.isfinite(out[5:]).all()


def test_an_image_is_not_resized_to_less_than_nothing() -> None:
    net = ir.Builder()
    x, sizes = net.parameter("x", "f32", "1,1,3,4"), net.parameter("sizes", "i64", "2")
    words = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    net.result(
        net.add("Interpolate", "opset11", [x, sizes, net.constant(np.int64([2, 3]))], **words),
        name="y",
    )
    model, image = net.model(), np.ones((1, 1, 3, 4), "f4")
    for call in (lambda given: ir.run(model, given), ir.compile(model)):
        assert call([image, np.int64([0, 2])])["y"].shape == (1, 1, 0, 2)
        with pytest.raises(IRError, match="a size is -1, the least is 0"):
            call([image, np.int64([-1, 2])])
