"""Regions of images and chosen boxes: what is done for many at once is what the pages say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir.layers import detection, detection_cells
from vinoir.layers.detection import (
    PSROIPoolingV1,
    RegionYoloV1,
    ReorgYoloV1,
    ROIAlignV9,
    ROIPoolingV1,
    between,
)
from vinoir.layers.detection_output import DetectionOutputV8, shared_part
from vinoir.layers.detection_sampling import DeformablePSROIPoolingV1, ROIAlignRotatedV15
from vinoir.layers.sort_classes import MatrixNmsV8
from vinoir.schemas import Array, IRError, Tensor

SEEDS = range(12)


def boxes_of(rng: np.random.Generator, count: int, size: float) -> Array:
    """Boxes some of which are off the image, turned around or without an extent."""
    corners = rng.uniform(-0.2 * size, size, (count, 2))
    sides = rng.uniform(-0.1 * size, 0.6 * size, (count, 2)) * rng.integers(0, 2, (count, 1))
    return np.concatenate([corners, corners + sides], 1).astype("f4")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["asymmetric", "half_pixel_for_nn", "half_pixel"])
def test_means_of_samples_are_products_of_weights(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((2, 5, 9, 7)).astype("f4")
    rois, images = boxes_of(rng, 9, 36), rng.integers(0, 2, 9)
    ratio = int(rng.integers(0, 4))
    op: Any = ROIAlignV9.read(
        {"pooled_h": "3", "pooled_w": "2", "sampling_ratio": str(ratio), "spatial_scale": "0.25",
         "mode": "avg", "aligned_mode": mode}
    )  # fmt: skip
    (found,) = op.run(data, rois, images)
    before, after, least = op.shifts[mode]
    for index, (left, top, right, bottom) in enumerate((rois + before) / np.float32(4) + after):
        y, in_y = op.places(top, bottom - top, 3, 9, at_least_one=least)
        x, in_x = op.places(left, right - left, 2, 7, at_least_one=least)
        wanted = np.zeros((5, 3, 2), "f4")
        if y.size and x.size:
            samples = between(data[images[index]], y.ravel(), x.ravel())
            samples = np.where(in_y.ravel()[:, None] & in_x.ravel(), samples, 0)
            wanted = samples.reshape(5, *y.shape, *x.shape).mean((2, 4))
        np.testing.assert_allclose(found[index], wanted, atol=2e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_stays_in_the_cells_that_sample_it(bad: float) -> None:
    data = np.ones((1, 2, 8, 8), "f4")
    data[0, 1, 0, 0] = bad
    op = ROIAlignV9.read(
        {"pooled_h": "2", "pooled_w": "2", "sampling_ratio": "1", "spatial_scale": "1",
         "mode": "avg"}
    )  # fmt: skip
    with np.errstate(all="ignore"):
        (found,) = op.run(data, np.array([[0, 0, 8, 8]], "f4"), np.array([0]))
    np.testing.assert_array_equal(found, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_largest_of_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((2, 3, 8, 9)).astype("f4")
    boxes = boxes_of(rng, 8, 16)
    rois = np.concatenate([rng.integers(0, 2, (8, 1)), boxes], 1).astype("f4")
    op = ROIPoolingV1.read({"pooled_h": "3", "pooled_w": "4", "spatial_scale": "0.5"})
    (found,) = op.run(data, rois)
    for index, (image, *corners) in enumerate(rois):
        corners = np.array(corners, "f4") * np.float32(0.5)
        left, top, right, bottom = detection_cells.round_away(corners)[:, None].astype(int)
        tops, bottoms = (ends[0] for ends in detection_cells.cells(top, bottom, 3, 8))
        lefts, rights = (ends[0] for ends in detection_cells.cells(left, right, 4, 9))
        for i, rows in enumerate(map(slice, tops, bottoms)):
            for j, columns in enumerate(map(slice, lefts, rights)):
                cell = data[int(image), :, rows, columns]
                wanted = cell.max((1, 2)) if cell.size else np.zeros(3)
                np.testing.assert_array_equal(found[index, :, i, j], wanted)


@pytest.mark.parametrize("cells", [2, 3, 6, 7, 11, 14])
def test_cells_of_boxes_of_any_height_are_those_of_openvino(cells: int) -> None:
    """From which row to which each reaches is seen from rows that are numbered up and down."""
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    count = 200
    rows = np.broadcast_to(np.arange(count, dtype="f4")[:, None], (count, 12))
    data = np.stack([rows, -rows])[None]
    boxes = np.array([[0, 0, row % 3, 11, row] for row in range(count)], "f4")
    inputs = [ops.parameter(array.shape, np.float32) for array in (data, boxes)]
    theirs = ops.roi_pooling(*inputs, output_roi=[cells, cells], method="max", spatial_scale=1.0)
    compiled = ov.Core().compile_model(ov.Model([theirs], inputs), "CPU")
    words = {"pooled_h": str(cells), "pooled_w": str(cells), "spatial_scale": "1"}
    (found,) = ROIPoolingV1.read(words).run(data, boxes)
    np.testing.assert_array_equal(found, compiled([data, boxes])[0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rows", [1, 3])
def test_samples_of_many_boxes_are_those_of_each(
    seed: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((2, 3, 8, 9)).astype("f4")
    corners = rng.uniform(-0.2, 1.2, (7, 4)).astype("f4")
    rois = np.concatenate([rng.integers(0, 2, (7, 1)), corners], 1).astype("f4")
    rois[5, 0] = -1  # where boxes end
    words = {"pooled_h": str(rows), "pooled_w": "4", "spatial_scale": "1", "method": "bilinear"}
    op = ROIPoolingV1.read(words)
    (found,) = op.run(data, rois)
    assert not found[5:].any()
    for index, (image, left, top, right, bottom) in enumerate(rois[:5]):
        y, x = detection.spread(top, bottom, rows, 8), detection.spread(left, right, 4, 9)
        for i, j in np.ndindex(rows, 4):
            within = 0 <= y[i] <= 7 and 0 <= x[j] <= 8
            wanted = (
                between(data[int(image)], y[i : i + 1], x[j : j + 1])[:, 0, 0] if within else 0
            )
            np.testing.assert_array_equal(found[index, :, i, j], wanted)
    monkeypatch.setattr(detection, "SAMPLES", 1)
    np.testing.assert_array_equal(op.run(data, rois)[0], found)


@pytest.mark.parametrize("number", [2, 7, np.nan])
def test_a_box_of_no_image_is_refused(number: float) -> None:
    words = {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1", "method": "bilinear"}
    boxes = np.array([[0, 0, 0, 1, 1], [number, 0, 0, 1, 1]], "f4")
    with pytest.raises(IRError, match="a region is of image"):
        ROIPoolingV1.read(words).run(np.zeros((2, 3, 4, 4), "f4"), boxes)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_cells_from_sums_are_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((2, 18, 8, 9)).astype("f4")
    rois = np.concatenate([rng.integers(0, 2, (8, 1)), boxes_of(rng, 8, 16)], 1).astype("f4")
    op: Any = PSROIPoolingV1.read({"output_dim": "2", "group_size": "3", "spatial_scale": "0.5"})
    (found,) = op.run(data, rois)
    wanted = [op.averages(data[int(image)], np.array(box, "f4")) for image, *box in rois]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_means_beside_a_pixel_that_is_no_number_are_those_of_finite_ones(bad: float) -> None:
    data = np.random.default_rng(0).standard_normal((1, 4, 8, 9)).astype("f4")
    rois = np.array([[0, 3, 3, 3, 3], [0, 15, 4, 13, 2], [0, 1, 2, 9, 11]], "f4")
    op = PSROIPoolingV1.read({"output_dim": "1", "group_size": "2", "spatial_scale": "0.0625"})
    (wanted,) = op.run(data, rois)
    assert wanted.all()
    data[0, :, 7, 8] = bad
    np.testing.assert_allclose(op.run(data, rois)[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("corner", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", ["average", "bilinear"])
@pytest.mark.parametrize("pixel", [1.0, np.inf])
def test_a_box_without_an_end_leaves_the_others_as_they_are(
    corner: float, place: int, mode: str, pixel: float
) -> None:
    data = np.ones((1, 4, 8, 8), "f4")
    data[0, :, 7, 7] = pixel
    rois = np.array([[0, 0, 0, 0.5, 0.5], [0, 0, 0, 0.5, 0.5]], "f4")
    rois[0, place] = corner
    op = PSROIPoolingV1.read(
        {"output_dim": "1", "group_size": "2", "spatial_scale": "1", "mode": mode,
         "spatial_bins_x": "2", "spatial_bins_y": "2"}
    )  # fmt: skip
    np.testing.assert_array_equal(op.run(data, rois)[0][1], 1)


@pytest.mark.parametrize(
    ("box", "complaint"),
    [
        ((0, 0, np.inf, 4), "a cell of inf pixels takes as many samples, they are below inf"),
        ((-np.inf, 0, 3, 4), "a cell of inf pixels"),
        ((np.nan, 0, 3, 4), "a cell of nan pixels"),
        ((np.inf, 0, 3, 4), None),
    ],
)
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_cells_that_would_take_samples_without_end_are_refused(
    box: tuple[float, ...], complaint: str | None, mode: str
) -> None:
    data, images = np.ones((1, 2, 8, 8), "f4"), np.zeros(2, int)
    rois = np.array([box, (0, 0, 4, 4)], "f4")
    words = {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1", "mode": mode}
    op = ROIAlignV9.read(words | {"sampling_ratio": "0"})
    if complaint is None:  # it ends before it begins, off the image
        np.testing.assert_array_equal(
            op.run(data, rois, images)[0], [[[[0] * 2] * 2] * 2, [[[1] * 2] * 2] * 2]
        )
    else:
        with pytest.raises(IRError, match=complaint):
            op.run(data, rois, images)
    (found,) = ROIAlignV9.read(words | {"sampling_ratio": "2"}).run(data, rois, images)
    np.testing.assert_array_equal(found[1], 1)


@pytest.mark.parametrize("side", [-np.inf, -3, 0])
def test_a_turned_region_without_extent_takes_no_samples(side: float) -> None:
    data, rois = np.ones((1, 2, 8, 8), "f4"), np.array([(3, 3, side, 2, 0)], "f4")
    words = {"pooled_h": "1", "pooled_w": "1", "spatial_scale": "1", "sampling_ratio": "0"}
    (found,) = ROIAlignRotatedV15.read(words).run(data, rois, np.array([0]))
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize(
    ("op", "channels", "words", "complaint"),
    [
        (RegionYoloV1, 20, {}, "20 channels, 2 regions of 8 are expected"),
        (RegionYoloV1, 12, {}, "12 channels, 2 regions of 8"),
        (RegionYoloV1, 12, {"do_softmax": "false", "mask": "0, 1"}, "12 channels, 2 regions of 8"),
        (ReorgYoloV1, 6, {"stride": "2"}, "6 channels are no multiple of 4, of stride 2"),
    ],
)
def test_channels_that_do_not_go_into_cells_are_refused_when_run(
    op: Any, channels: int, words: dict[str, str], complaint: str
) -> None:
    # OpenVINO infers shapes of them, and computes what lies in memory or crashes.
    yolo = {"axis": "1", "end_axis": "3", "coords": "4", "classes": "3", "num": "2"}
    read = op.read(words if op is ReorgYoloV1 else yolo | words)
    data = np.zeros((1, channels, 4, 2), "f4")
    read.infer(Tensor.of(data))
    with pytest.raises(IRError, match=complaint):
        read.run(data)


def test_infinite_classes_are_no_warning() -> None:
    words = {"axis": "1", "end_axis": "3", "coords": "4", "classes": "3", "num": "1"}
    data = np.zeros((1, 8, 1, 1), "f4")
    data[0, 5] = np.inf
    (found,) = RegionYoloV1.read(words).run(data)
    np.testing.assert_array_equal(found[0, 5:], np.nan)  # as on OpenVINO's CPU


def chosen_one_by_one(op: Any, boxes: Array, scores: Array) -> list[tuple[int, int]]:
    """Labels and priors of one image, box by box."""
    found = []
    for label in range(scores.shape[1]):
        if label == op.background_label_id:
            continue
        place = boxes[:, 0 if op.share_location else label]
        order = np.argsort(-scores[:, label], kind="stable")
        order = order[scores[order, label] > np.float32(op.confidence_threshold)]
        kept: list[int] = []
        for prior in order[: len(order) if op.top_k == -1 else op.top_k].tolist():
            near = shared_part(place[prior], place[kept]) <= op.nms_threshold
            if not kept or near.all():
                kept.append(prior)
        found += [(label, prior) for prior in kept]
    if -1 < op.keep_top_k[0] < len(found):
        found.sort(key=lambda one: (-scores[one[1], one[0]], one[1]))
        found = sorted(found[: op.keep_top_k[0]], key=lambda one: one[0])
    return found


@pytest.mark.parametrize("seed", range(30))
def test_detections_are_chosen_as_box_by_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, priors = 4, int(rng.choice([1, 30, 200]))
    share = bool(rng.integers(0, 2))
    op: Any = DetectionOutputV8.read(
        {
            "keep_top_k": str(rng.choice([-1, 3, 50])),
            "top_k": str(rng.choice([-1, 5, 40])),
            "nms_threshold": str(rng.choice([0, 0.3, 0.5, 1])),
            "confidence_threshold": "0.2",
            "share_location": str(share).lower(),
            "normalized": "true",
        }
    )
    boxes = np.round(boxes_of(rng, priors * (1 if share else classes), 1), 1)
    boxes = boxes.reshape(priors, -1, 4)
    if seed % 5 == 0:
        boxes[0] = np.nan
    scores = np.round(rng.random((priors, classes)), 1 + seed % 2).astype("f4")
    labels, chosen = op.choose(boxes, scores)
    wanted = chosen_one_by_one(op, boxes, scores)
    assert list(zip(labels.tolist(), chosen.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("normalized", ["true", "false"])
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_fall_with_the_overlap_of_all_at_once(seed: int, normalized: str) -> None:
    rng = np.random.default_rng(seed)
    op: Any = MatrixNmsV8.read(
        {"normalized": normalized, "score_threshold": "0.1", "post_threshold": "0.05",
         "sort_result_type": "score", "background_class": "-1", "nms_top_k": "-1",
         "keep_top_k": "-1"}
    )  # fmt: skip
    boxes = boxes_of(rng, 40, 10)
    scores = rng.random(40).astype("f4")
    with np.errstate(all="ignore"):
        good = op.is_enough(scores[None])
        _, chosen, left, _ = op.suppressed(boxes, np.zeros(1, int), scores[None], good, 40)
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > np.float32(0.1)]
        extra = np.float32(0 if normalized == "true" else 1)
        wanted = []
        shared = np.zeros((len(order), len(order)))
        for i, one in enumerate(order):
            for j, other in enumerate(order[:i]):
                low = np.maximum(boxes[one, :2], boxes[other, :2])
                high = np.minimum(boxes[one, 2:], boxes[other, 2:])
                areas = [(boxes[n, 2:] - boxes[n, :2] + extra).prod() for n in (one, other)]
                if (high >= low).all() and min(areas) > 0:
                    both = np.maximum(high - low + extra, 0).prod()
                    shared[i, j] = both / (areas[0] + areas[1] - both)
        most = shared.max(1)
        for i, one in enumerate(order):
            decays = [(1 - shared[i, j]) / (1 - most[j] + 1e-10) for j in range(i)]
            score = scores[one] * min([1, *decays])
            if score > 0.05:
                wanted.append((one, score))
    assert chosen.tolist() == [one for one, _ in wanted]
    np.testing.assert_allclose(left, [score for _, score in wanted], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", ["average", "bilinear", "bilinear_deformable"])
def test_boxes_end_where_proposal_marks_the_end(mode: str) -> None:
    """Those behind the mark are zero, too, as on OpenVINO's CPU."""
    ov = pytest.importorskip("openvino")
    import openvino.opset15 as ops

    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 12 if mode == "bilinear" else 18, 8, 9)).astype("f4")
    rois = np.array([[1, 2, 2, 9, 9], [0, 1, 3, 7, 9], [-1, 2, 2, 9, 9], [1, 2, 2, 9, 9]], "f4")
    rois[:, 1:] *= 0.05 if mode == "bilinear" else 1
    words = {"output_dim": "2", "group_size": "3", "spatial_scale": "0.5", "mode": mode,
             "spatial_bins_x": "3", "spatial_bins_y": "2"}  # fmt: skip
    op: Any = (DeformablePSROIPoolingV1 if mode == "bilinear_deformable" else PSROIPoolingV1).read(
        words
    )
    inputs = [ops.parameter(array.shape, np.float32) for array in (data, rois)]
    if mode == "bilinear_deformable":
        theirs = ops.deformable_psroi_pooling(
            *inputs, output_dim=2, group_size=3, spatial_scale=0.5, mode=mode,
            spatial_bins_x=3, spatial_bins_y=2, trans_std=1.0, part_size=1,
        )  # fmt: skip
    else:
        theirs = ops.psroi_pooling(*inputs, 2, 3, 0.5, 3, 2, mode)
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(ov.Model([theirs], inputs), "CPU", hint)
    (found,) = op.run(data, rois)
    assert found[:2].any()
    assert not found[2:].any()
    np.testing.assert_allclose(found, compiled([data, rois])[0], atol=1e-5)


@pytest.mark.parametrize("words", [{"mode": "avg"}, {"mode": "max"}, {}])
@pytest.mark.parametrize("ratio", ["-1", "-3"])
def test_of_no_samples_there_are_zeros(words: dict[str, str], ratio: str) -> None:
    data, images = np.ones((1, 2, 8, 8), "f4"), np.zeros(3, int)
    rois = np.array([(0, 0, 4, 4, 0), (1, 1, 2, 3, 0), (5, 5, 2, 2, 1)], "f4")
    words = words | {"pooled_h": "3", "pooled_w": "2", "spatial_scale": "1"}
    kind = ROIAlignV9 if "mode" in words else ROIAlignRotatedV15
    boxes = rois[:, : 4 if "mode" in words else 5]
    (found,) = kind.read(words | {"sampling_ratio": ratio}).run(data, boxes, images)
    np.testing.assert_array_equal(found, np.zeros((3, 2, 3, 2), "f4"))
