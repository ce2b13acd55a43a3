"""What definitions take of memory beside their results is asked for before it is taken."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.layers.budget import Budget, within
from vinoir.layers.memory import run_within_memory
from vinoir.schemas import LimitError

#: More than any of the calls below takes.
MUCH = 1 << 30
COUNT = 200_000
RANDOM = np.random.default_rng(0)
LINE = RANDOM.random(COUNT, dtype=np.float32)
#: Pairs for complex numbers in two axes, and small boxes that lie apart.
PLANE = LINE.reshape(100, 1000, 2)
BOXES = np.concatenate([LINE.reshape(1, -1, 2), LINE.reshape(1, -1, 2) + np.float32(1e-4)], -1)
SUPPRESS = [BOXES, LINE[None, None, : BOXES.shape[1]], np.array(100), np.float32(0.5)]
WINDOW = [np.hanning(256).astype(np.float32), np.array(256), np.array(64)]
HALF = {"index_element_type": "i32"}
#: Of the operations' samples scaled up, those that took the most beyond what they asked for.
GREEDY: list[tuple[str, int, Mapping[str, str], list[Any]]] = [
    ("Unique", 10, {}, [LINE]),
    ("Unique", 10, {"sorted": "false"} | HALF, [LINE.astype(np.float64)]),
    ("Unique", 10, {}, [LINE.reshape(-1, 4), np.array(0)]),
    ("Unique", 10, {}, [LINE.reshape(4, -1), np.array(0)]),
    ("DFT", 7, {}, [PLANE, np.array([0, 1])]),
    ("DFT", 7, {}, [PLANE.astype(np.float16), np.array([0, 1])]),
    ("DFT", 7, {}, [PLANE, np.array([0, 1]), np.array([400, 1000])]),
    ("IDFT", 7, {}, [PLANE, np.array([0, 1])]),
    ("RDFT", 9, {}, [LINE, np.array([0])]),
    ("RDFT", 9, {}, [LINE.reshape(200, 1000), np.array([0, 1])]),
    ("IRDFT", 9, {}, [PLANE, np.array([0, 1])]),
    ("IRDFT", 9, {}, [PLANE.astype(np.float16), np.array([1])]),
    ("STFT", 15, {"transpose_frames": "true"}, [LINE, *WINDOW]),
    ("TopK", 11, {"axis": "0", "mode": "max", "sort": "value"}, [LINE, np.array(COUNT // 2)]),
    (
        "TopK", 11, {"axis": "0", "mode": "min", "sort": "index"} | HALF,
        [LINE.astype(np.float64), np.array(COUNT)],
    ),
    (
        "TopK", 11, {"axis": "1", "mode": "max", "sort": "value"},
        [LINE.reshape(-1, 1000), np.array(7)],
    ),
    ("SearchSorted", 15, {"output_type": "i32"}, [np.sort(LINE), LINE]),
    ("NonZero", 3, {"output_type": "i32"}, [LINE]),
    ("NonZero", 3, {}, [LINE.reshape(100, 20, 100)]),
    ("Bucketize", 3, {"output_type": "i32"}, [LINE, LINE[:9]]),
    ("SegmentMax", 16, {"fill_mode": "zero"}, [LINE, np.arange(COUNT)]),
    ("SegmentMax", 16, {"fill_mode": "zero"}, [LINE, np.arange(COUNT) // 999]),
    ("NonMaxSuppression", 9, {}, [*SUPPRESS, np.float32(0.1)]),
    ("NonMaxSuppression", 9, {}, [*SUPPRESS, np.float32(0.1), np.float32(0.5)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "data", "inputs"), GREEDY)
def test_no_more_is_taken_than_was_asked_for(
    kind: str,
    version: int,
    data: Mapping[str, str],
    inputs: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    op, asked, require = Op.registry[kind, version].read(dict(data)), [0], Budget.require

    def noted(budget: Budget, nbytes: int) -> None:
        asked.append(nbytes)
        require(budget, nbytes)

    monkeypatch.setattr(Budget, "require", noted)
    with within(max_memory=MUCH):
        tracemalloc.start()
        try:
            run_within_memory(op, *inputs)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert taken <= 1.05 * max(asked) + 50_000
    # Nor is so much asked for that what fits is refused without need.
    assert max(asked) <= 2.5 * taken + 50_000
    with within(max_memory=taken // 2), pytest.raises(LimitError, match="not enough memory"):
        run_within_memory(op, *inputs)
