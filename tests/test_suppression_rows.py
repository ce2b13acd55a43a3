"""Suppression in many rows at once is that of each row, box by box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir.layers import sort, sort_rotated, sort_rows, sort_suppression
from vinoir.layers.sort_classes import MatrixNmsV8, MulticlassNmsV9
from vinoir.layers.sort_nms import NMSRotatedV13, NonMaxSuppressionV5, NonMaxSuppressionV9
from vinoir.schemas import Array

SEEDS = st.integers(0, 2**32 - 1)


def upright(rng: np.random.Generator, count: int) -> Array:
    """Boxes some of which are the same, only touch, are turned around or without extent."""
    if rng.random() < 0.5:
        corners = rng.integers(0, 12, (count, 2)).astype("f4")
        sides = rng.integers(-1, 5, (count, 2)).astype("f4")
    else:
        corners = (rng.random((count, 2)) * rng.choice([1, 30])).astype("f4")
        sides = rng.random((count, 2)).astype("f4") * np.float32(rng.choice([1, 9]))
    return np.concatenate([corners, corners + sides], 1)


def marks(rng: np.random.Generator, *shape: int) -> Array:
    """Scores, some of them equal, some no numbers."""
    scores = rng.random(shape).astype("f4")
    if rng.random() < 0.5:
        scores = np.round(scores, 1)
    if scores.size and rng.random() < 0.3:
        scores.flat[rng.integers(0, scores.size, 3)] = rng.choice([np.nan, np.inf, -np.inf], 3)
    return scores


def by_rows(scores: Array, good: Array, first: Array, looked_at: int | None) -> list[Array]:
    """The boxes of each row in the order in which they are looked at."""
    orders = []
    for row, marks in enumerate(scores):
        some = good[row].nonzero()[0]
        some = some[np.lexsort((some, -marks[some]))][:looked_at]
        orders.append(some + first[row])
    return orders


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_each_row_is_chosen_from_as_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, count = int(rng.choice([1, 2, 5, 40])), int(rng.choice([0, 1, 7, 60, 300]))
    own = bool(rng.integers(0, 2))
    boxes = upright(rng, count * (rows if own else 1))
    if len(boxes) and rng.random() < 0.2:
        boxes.flat[rng.integers(0, boxes.size, 2)] = rng.choice([np.nan, np.inf, 3e38], 2)
    first = np.arange(rows) * count * own
    scores = marks(rng, rows, count)
    good = scores > np.float32(rng.choice([0, 0.5, 0.95]))
    most = int(rng.choice([0, 1, 5, 200]))
    looked_at = [None, 3, 100][rng.integers(0, 3)]
    limit = np.float32(rng.choice([-1, 0, 0.01, 0.3, 0.5, 0.7, 1]))
    limit = sort_suppression.above(limit) if rng.random() < 0.7 else limit
    eta = float(rng.choice([1, 1, 0.9, 0.5, 0]))
    measure: Any = [sort_suppression.overlaps, sort_suppression.overlaps_met][rng.integers(0, 2)]
    measure = sort_suppression.grown(measure, float(rng.choice([0, 0, 1])))
    with np.errstate(all="ignore"):
        found = sort_rows.best_of_rows(
            boxes, first, scores, good, most, limit, measure, eta, looked_at
        )
        orders = by_rows(scores, good, first, looked_at)
        wanted = [
            sort_suppression.one_by_one(boxes, order, most, limit, measure, eta)
            for order in orders
        ]
    assert found.counts.tolist() == [len(row) for row in wanted]
    np.testing.assert_array_equal(found.row, np.repeat(np.arange(rows), found.counts))
    places = np.concatenate([row - start for row, start in zip(wanted, first, strict=True)])
    np.testing.assert_array_equal(found.place, places)
    np.testing.assert_array_equal(found.score, scores[found.row, found.place])


@pytest.mark.parametrize("constant", ["TOGETHER", "BLOCK", "COMPARED"])
@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_blocks_of_any_size_choose_the_same(constant: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes, scores = upright(rng, 90), marks(rng, 5, 90)
    limit, good = sort_suppression.above(0.3), scores > 0
    given = (boxes, np.zeros(5, int), scores, good, 40, limit, sort_suppression.overlaps)
    eta = float(rng.choice([1, 0.9]))
    wanted = sort_rows.best_of_rows(*given, eta)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort_rows, constant, int(rng.integers(1, 9)))
        found = sort_rows.best_of_rows(*given, eta)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_scores_fade_in_many_rows_as_in_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, count = int(rng.choice([1, 3, 20])), int(rng.choice([1, 9, 80, 500]))
    boxes, scores = upright(rng, count), rng.permutation(rows * count).reshape(rows, count)
    scores = (scores / (rows * count)).astype("f4")
    most = int(rng.choice([0, 1, 6, 70]))
    judgement = sort_suppression.Judgement(
        np.float32(rng.choice([0.01, 0.3, 0.6])),
        np.float32(rng.choice([0, 0.4, 0.9])),
        np.float32(rng.choice([0.01, 0.5, 3])),
        bool(rng.integers(0, 2)),
    )
    found = sort_rows.faded_of_rows(
        boxes, np.zeros(rows, int), scores, scores > judgement.score, most, judgement,
        sort_suppression.overlaps,
    )  # fmt: skip
    for row, marks in enumerate(scores):
        with np.errstate(all="ignore"):
            _, left = sort_suppression.faded(
                boxes, marks, most, judgement, sort_suppression.overlaps
            )
        its = found.row == row
        # Roundings may put two that are nearly equal the other way round.
        np.testing.assert_allclose(found.score[its], left, rtol=1e-5, atol=1e-38)
        assert len(set(found.place[its].tolist())) == len(left)


def test_of_fading_scores_that_become_equal_the_first_stays_first() -> None:
    boxes = np.array([[[0, 0, 1, 1], [9, 9, 10, 10], [9, 9, 10, 10], [0, 0, 1, 1]]], "f4")
    scores = np.array([[[0.5, 0.9, 0.5, 0.9]]], "f4")
    limits = [np.array(n, "f4") for n in (0.5, 0, 0.5)]
    places, *_ = NonMaxSuppressionV9.read({}).run(boxes, scores, np.array(4), *limits)
    assert places[:, 2].tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("op", [NonMaxSuppressionV5, NonMaxSuppressionV9])
def test_scores_fade_beside_boxes_that_are_no_numbers(op: Any, bad: float) -> None:
    rng = np.random.default_rng(3)
    boxes, scores = upright(rng, 30)[None], rng.random((1, 3, 30)).astype("f4")
    limits = [np.array(n, "f4") for n in (0.5, 0.1, 0.5)]
    wanted = op.read({}).run(boxes, scores, np.array(9), *limits)
    far = np.full((1, 1, 4), bad, "f4")
    more = np.concatenate([boxes, far], 1), np.concatenate([scores, np.zeros((1, 3, 1), "f4")], 2)
    found = op.read({}).run(*more, np.array(9), *limits)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5, atol=1e-38)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_rotated_boxes_of_rows_are_chosen_as_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, kinds = int(rng.choice([1, 9, 120])), int(rng.choice([1, 4]))
    boxes = np.concatenate(
        [rng.random((count, 2)) * 9, rng.random((count, 2)) * 4,
         rng.choice([0, 0.5, np.pi / 2, 3], (count, 1))], 1,
    ).astype("f4")  # fmt: skip
    scores = marks(rng, 1, kinds, count)
    limit = np.float32(rng.choice([0, 0.1, 0.5, 0.8]))
    most = int(rng.choice([1, 50]))
    given = np.array(most), limit, np.float32(0.2)
    places, _, _ = NMSRotatedV13.read({"sort_result_descending": "false"}).run(
        boxes[None], scores, *given
    )
    wanted = []
    orders = by_rows(scores[0], scores[0] > np.float32(0.2), np.zeros(kinds, int), None)
    for kind, order in enumerate(orders):
        chosen = sort_suppression.one_by_one(
            boxes, order, most, sort_suppression.above(limit), sort_rotated.overlaps_rotated
        )
        wanted += [[0, kind, place] for place in chosen.tolist()]
    assert places.tolist() == wanted


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("op", [MatrixNmsV8, MulticlassNmsV9])
def test_images_and_classes_with_boxes_of_their_own(op: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = {"nms_top_k": str(rng.choice([-1, 7])), "keep_top_k": str(rng.choice([-1, 9])),
             "background_class": str(rng.choice([-1, 1])), "sort_result_type": "score",
             "score_threshold": "0.3"}  # fmt: skip
    layer = op.read(words)
    boxes, scores = np.stack([upright(rng, 40), upright(rng, 40)]), marks(rng, 2, 3, 40)
    rows, places, counts = layer.run(boxes, scores)
    parts = [layer.run(boxes[i : i + 1], scores[i : i + 1]) for i in range(2)]
    np.testing.assert_array_equal(rows, np.concatenate([part[0] for part in parts]))
    moved = np.concatenate([parts[0][1], parts[1][1] + 40])
    np.testing.assert_array_equal(places, moved)
    assert counts.tolist() == [len(part[0]) for part in parts]
    if op is MulticlassNmsV9:  # the same boxes, but of each class
        own = np.concatenate([np.broadcast_to(image, (3, 40, 4)) for image in boxes], 1)
        marks_of = np.concatenate(list(scores), 1)
        again, _, numbers = layer.run(own, marks_of, np.array([40, 40]))
        np.testing.assert_array_equal(again, rows)
        assert numbers.tolist() == counts.tolist()


@pytest.mark.parametrize("most", [1, 7, 60, 10_000])
@pytest.mark.parametrize("limit", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("spread", [40, 300, 3000])
@pytest.mark.parametrize("classes", [1, 5, 90])
def test_long_rows_give_what_boxes_give_one_by_one(
    classes: int, spread: float, limit: float, most: int
) -> None:
    rng = np.random.default_rng([classes, int(spread), int(100 * limit), most])
    count = int(rng.integers(600, 1800))
    centre, size = rng.random((count, 2)) * spread, 5 + 60 * rng.random((count, 2))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], 1)
    boxes += 5000 * rng.integers(0, classes, (count, 1))
    boxes = boxes.astype("f4")
    scores = rng.random((1, count)).astype("f4")
    measure, least = sort_suppression.overlaps, sort_suppression.above(limit)
    order = sort.descending(scores[0], 0)
    wanted = sort_suppression.one_by_one(boxes, order, most, least, measure)
    found = sort_rows.best_of_rows(
        boxes, np.zeros(1, int), scores, scores > 0, most, least, measure
    )
    np.testing.assert_array_equal(found.place, wanted)
    np.testing.assert_array_equal(found.score, scores[0, wanted])
