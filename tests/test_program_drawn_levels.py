"""Networks of levels drawn at random, in which every sum is exact, give what definitions give."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.kernels import convolution

from .drawn_levels import Levels

pytestmark = pytest.mark.usefixtures("integers_are_quick")
EACH = 20


@pytest.fixture(autouse=True)
def _by_plain_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """No convolution goes by values at points, which are not exact."""
    monkeypatch.setattr(convolution, "choose", lambda sizes, *_: [None] * len(sizes))
    monkeypatch.setattr(convolution, "quickest_size", lambda *_: None)


@pytest.mark.parametrize("first", range(0, 16 * EACH, EACH))
def test_every_bit(first: int) -> None:
    for seed in range(first, first + EACH):
        model, arrays = Levels(seed).drawn(4 + seed % 12)
        wanted = ir.run(model, arrays)
        program = ir.compile(model, threads=1 + seed % 2, fork=bool(seed % 3))
        for _ in range(2):  # what the first left in memory is there for the second
            for name, found in program(arrays).items():
                np.testing.assert_array_equal(found, wanted[name], f"{name} of network {seed}")
