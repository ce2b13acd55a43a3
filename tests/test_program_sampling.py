"""Programs that sample images: places far out and unknown, many small images, shared work."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import oracle
import pytest
from vinoir import ir

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
#: Inside, at and around the edges, far beyond them, and nowhere.
SPOTS = np.float32([
    -np.inf, -1e30, -7, -2, -1.5, -1.25, -1.001, -1, -0.75, 0, 0.3, 0.999, 1, 1.26, 1.6, 3, 1e9,
    1e38, np.inf, np.nan,
])  # fmt: skip


def sampled(shape: tuple[int, ...], places: tuple[int, ...], **words: Any) -> ir.Builder:
    """A sampling with an output of its own."""
    net = ir.Builder()
    images = net.parameter("images", "f32", shape)
    grid = net.parameter("grid", "f32", (shape[0], *places, 2))
    net.result(net.add("GridSample", "opset9", [images, grid], **words), name="sampled")
    return net


def compared(model: ir.Model, inputs: list[np.ndarray], *, calls: int = 1) -> None:
    wanted = ir.run(model, inputs)
    for threads in (1, 2):
        program = ir.compile(model, threads=threads)
        for _ in range(calls):
            found = program(inputs)
            for one, other in zip(found.values(), wanted.values(), strict=True):
                scale = max(np.abs(other[np.isfinite(other)]).max(initial=0), 1)
                np.testing.assert_allclose(one, other, rtol=0, atol=3e-6 * scale)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", [False, True])
def test_places_far_out_are_what_the_definition_says(mode: str, padding: str, align: bool) -> None:
    rng = np.random.default_rng(3)
    spots = SPOTS[np.isfinite(SPOTS)] if padding == "reflection" else SPOTS
    places = np.stack(np.meshgrid(spots, spots), -1)[None]
    for shape in ((1, 1, 5, 4), (1, 3, 1, 1), (1, 2, 40, 300)):
        words = {"mode": mode, "padding_mode": padding, "align_corners": align}
        model = sampled(shape, places.shape[1:3], **words).model()
        compared(model, [rng.standard_normal(shape, np.float32), places])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_next_to_an_endless_pixel_is_not_met(mode: str) -> None:
    images = np.zeros((1, 1, 3, 3), np.float32)
    images[0, 0, 0] = np.inf
    places = np.float32([[0.9, 0.9], [-1.9, -3], [0, 2.5]])[None, None]
    model = sampled((1, 1, 3, 3), (1, 3), mode=mode, padding_mode="zeros").model()
    (wanted,) = ir.run(model, [images, places]).values()
    (found,) = ir.compile(model)([images, places]).values()
    np.testing.assert_array_equal(found, wanted)
    assert np.isfinite(found[0, 0, 0, 1:]).all()


@pytest.mark.parametrize(("size", "align"), [*product([1, 2, 4, 16, 40], [False, True])])
def test_many_small_images_are_shared_and_stay_what_they_are(size: int, align: bool) -> None:
    rng = np.random.default_rng(size)
    shape = (300, 1, size, size)
    net = sampled(shape, (7, 7), align_corners=align)
    # So much else to do that workers share it, from the second call on.
    rows = net.parameter("rows", "f32", (256, 512))
    weights = net.constant(rng.standard_normal((512, 512), np.float32))
    net.result(net.add("MatMul", "opset1", [rows, weights]), name="product")
    given = [
        rng.standard_normal(shape, np.float32),
        rng.uniform(-1.3, 1.3, (300, 7, 7, 2)).astype("f4"),
        rng.standard_normal((256, 512), np.float32),
    ]
    given[2][:] = np.round(given[2])
    model = net.model()
    wanted = ir.run(model, given)["sampled"]
    for words in ({"threads": 2}, {"threads": 2, "fork": False}, {"threads": 4}):
        program = ir.compile(model, **words)
        for _ in range(4):
            np.testing.assert_allclose(program(given)["sampled"], wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize("size", [5, 64, 333, 1000, 1001])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", [False, True])
def test_half_way_between_pixels_the_nearest_is_openvinos(
    size: int, padding: str, align: bool
) -> None:
    halves = np.arange(2 * size + 1, dtype=np.float64) / 2
    along = halves * 2 / (size - 1) if align else (halves * 2 + 1) / size
    places = np.stack([along - 1, np.zeros_like(along)], -1).astype(np.float32)[None, None]
    images = np.arange(size, dtype=np.float32)[None, None, None]
    net = sampled(
        images.shape, places.shape[1:3], mode="nearest", padding_mode=padding, align_corners=align
    )
    model, given = net.model(), [images, places]
    xml, weights = ir.dumps(model)
    (wanted,) = oracle.ask("values", xml.decode(), weights, given)
    for outputs in (ir.run(model, given), ir.compile(model)(given)):
        np.testing.assert_array_equal(outputs["sampled"], wanted)
