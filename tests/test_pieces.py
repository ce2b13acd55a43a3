"""Definitions that go through large tensors in pieces give what they give at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir.layers import Op, budget, convolution, sequence
from vinoir.schemas import Array, IRError

ENOUGH = 1 << 40


def op(kind: str, version: int, **data: str) -> Any:
    return Op.registry[kind, version].read(data)


def both(made: Any, arrays: list[Array], piece: int) -> None:
    """Refuse an operation that gives something else in pieces of so many bytes."""
    found = []
    for size in (ENOUGH, piece):
        with pytest.MonkeyPatch.context() as patch:
            for module in (budget, convolution, sequence):
                patch.setattr(module, "PIECE", size)
            found.append(made.run(*arrays)[0])
    assert found[0].dtype == found[1].dtype
    assert found[0].flags.c_contiguous == found[1].flags.c_contiguous
    # Sums of large numbers that cancel are as far apart as these are from what they stand for.
    scale = np.abs(found[0]).max(initial=10)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6 * scale)


def windows(draw: Any, axes: int) -> dict[str, str]:
    """Strides, dilations and paddings for these axes."""
    rows = {"strides": (1, 3), "dilations": (1, 2), "pads_begin": (0, 2), "pads_end": (0, 2)}
    return {
        name: ",".join(str(draw(st.integers(*ends))) for _ in range(axes))
        for name, ends in rows.items()
    }


@st.composite
def convolutions(draw: Any) -> tuple[Any, list[Array], int]:
    axes, batch, groups = (draw(st.integers(1, 3)) for _ in range(3))
    inner, outer = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(axes)]
    sizes = [draw(st.integers(5, 8)) for _ in range(axes)]
    kind = draw(st.sampled_from(["GroupConvolution", "GroupConvolutionBackpropData"]))
    filters = [groups, outer, inner] if kind == "GroupConvolution" else [groups, inner, outer]
    data = windows(draw, axes)
    if "Backprop" in kind:
        data |= {"pads_begin": ",".join("0" * axes), "pads_end": ",".join("0" * axes)}
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int8]))
    arrays = [
        (4 * rng.standard_normal(shape)).astype(dtype)
        for shape in ([batch, groups * inner, *sizes], [*filters, *kernel])
    ]
    return op(kind, 1, **data), arrays, draw(st.sampled_from([1, 300, 3000]))


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_convolutions(drawn: tuple[Any, list[Array], int]) -> None:
    both(*drawn)


@pytest.mark.parametrize("causal", ["true", "false"])
@pytest.mark.parametrize("mask", [None, (1, 7), (5, 7), (2, 1, 5, 7), (), bool])
@pytest.mark.parametrize("sink", [False, True])
def test_attention(causal: str, mask: Any, sink: bool) -> None:
    rng = np.random.default_rng(3)
    shapes = [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)]
    arrays = [rng.standard_normal(shape).astype("f4") for shape in shapes]
    if mask is bool:
        arrays.append(np.tri(5, 7) > 0)
    elif mask is not None or sink:
        arrays.append(rng.standard_normal(mask or (1, 1)).astype("f4"))
    if sink:
        arrays += [np.float32(0.3), rng.standard_normal((1, 3, 5, 1)).astype("f4")]
    made = op("ScaledDotProductAttention", 13, causal=causal)
    for piece in (1, 700):
        both(made, arrays, piece)


def test_one_query_that_a_mask_makes_several() -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype("f4")
              for shape in [(1, 1, 4), (1, 7, 4), (1, 7, 6), (5, 7)]]  # fmt: skip
    both(op("ScaledDotProductAttention", 13, causal="false"), arrays, 1)


def test_limits_that_widen_what_is_quantized_are_refused() -> None:
    made = op("FakeQuantize", 1, levels="256")
    ends = [np.float32(end) for end in (-1, 1, -1)]
    with pytest.raises(IRError, match="limits widen the data"):
        made.run(np.zeros((1, 3), "f4"), *ends, np.ones((2, 1), "f4"))


LARGE = """
import numpy as np
from vinoir.layers import Op

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10

rng = np.random.default_rng(0)
WHAT
made.run(*(array[..., :64, :] for array in arrays))
before = peak()
made.run(*arrays)
print((peak() - before) >> 20)
"""
CONVOLUTION = """
data = dict(strides="1,1", dilations="1,1", pads_begin="1,1", pads_end="1,1")
made = Op.registry["Convolution", 1].read(data)
arrays = [rng.random((1, 16, 512, 512), "f4"), rng.random((16, 16, 3, 3), "f4")]
"""
ATTENTION = """
made = Op.registry["ScaledDotProductAttention", 13].read({"causal": "false"})
arrays = [rng.random((1, 4, 2048, 8), "f4") for _ in range(3)]
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no VmHWM")
@pytest.mark.parametrize(("what", "most"), [(CONVOLUTION, 70), (ATTENTION, 45)])
def test_memory_on_the_way_is_that_of_a_piece(what: str, most: int) -> None:
    """All windows would take 144 MB, beside 16 of the data and the output; all scores 64 MB."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE.replace("WHAT", what)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert int(done.stdout) < most, done.stdout
