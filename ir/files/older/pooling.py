"""Pooling: the mean or the largest value of windows.

What ran is fixed by the declared sizes, and by the old CPU plug-in:

- Without ``rounding_type`` (or ``rounding-type``) the old shape rule rounded up, and only the
  word floor rounds down. A last window that would begin beyond the input and its padding before
  it was dropped: that is ``ceil_torch`` of MaxPool-14 and AvgPool-14, and not ``ceil``.
- ``exclude-pad`` is false where it is missing. With padding the divisor then is the part of the
  window that lies on the input and its declared padding; without any padding it is the part that
  lies on the input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...document import Output
from .convolution import (
    CUT,
    PADDING,
    Window,
    cut_off,
    places,
    read_window,
    same_pads,
    spatial,
    trimmed,
)
from .layer import Old
from .table import Made, converts

METHODS = {"max": "max", "avg": "avg"}
#: The spelling of layers that came straight from Caffe.
CAFFE = {"caffe.PoolingParameter.MAX": "max", "caffe.PoolingParameter.AVE": "avg"}

ROUNDINGS = ("floor", "ceil_torch", "ceil")


class Pool(NamedTuple):
    """A pooling layer, read."""

    window: Window
    method: str
    exclude_pad: bool
    #: As the file says it; None where it does not.
    rounding: str | None


@converts(
    "Pooling",
    "pool-method=max exclude-pad=false rounding_type? rounding-type? kernel? kernel-x? kernel-y? "
    "strides? stride-x=1 stride-y=1 pads_begin? pad-x=0 pad-y=0 pads_end? pad-r? pad-b? auto_pad= "
    "kernel_size? kernel_w=0 kernel_h=0 stride=1 stride_w=0 stride_h=0 pad=0 pad_w=0 pad_h=0 "
    "pool=caffe.PoolingParameter.MAX global_pool=0",
    becomes=f"MaxPool-14 AvgPool-14 Pad-1 {CUT}",
    idle="dilations engine",
)  # fmt: skip
def pooling(old: Old) -> Made:
    """MaxPool or AvgPool with the rounding that gives the declared sizes."""
    pool = _read(old)
    window = pool.window
    sizes = spatial(old, len(window.kernel))
    if window.auto_pad == "valid":
        nothing = (0,) * len(sizes)
        window = explicit(window, nothing, nothing)
        wanted = "floor"
    elif window.auto_pad.startswith("same"):
        window = explicit(window, *same_pads(window, sizes))
        wanted = "floor"
    else:
        wanted = "floor" if pool.rounding == "floor" else "ceil_torch"
    rounding = _rounding(old, pool, window, sizes, wanted)
    if pool.window.auto_pad.startswith("same") and rounding == "floor":
        nothing = (0,) * len(sizes)
        window = replace(pool.window, begin=nothing, end=nothing)  # the padding follows the size
    if pool.method == "max":
        made = old.add("MaxPool", "opset14", [old.reals(0)], _attributes(window, rounding))[0]
    else:
        made = _mean(old, pool, window, rounding)
    return trimmed(old, pool.window, made)


def explicit(window: Window, begin: tuple[int, ...], end: tuple[int, ...]) -> Window:
    """The window with explicit padding."""
    return replace(window, begin=begin, end=end, auto_pad="explicit")


def _read(old: Old) -> Pool:
    rounding = None
    for name in ("rounding_type", "rounding-type"):
        if old.has(name):
            rounding = old.text(name)
    if not old.has("kernel") and not old.has("kernel-x"):
        return _read_caffe(old, rounding)
    window = read_window(old, dilated=False)
    if old.flag("global_pool") and any(
        k != n for k, n in zip(window.kernel, old.dims()[2:], strict=False)
    ):
        old.remark(
            f"global_pool with the window {list(window.kernel)}: the window is taken, as the "
            "old readers did"
        )
    return Pool(window, old.choice("pool-method", METHODS), old.flag("exclude-pad"), rounding)


def _read_caffe(old: Old, rounding: str | None) -> Pool:
    """One number for both axes, or ``_h`` and ``_w``; no padding behind, and it counts."""
    size = old.integer("kernel_size", 1)

    def both(name: str, usual: int) -> tuple[int, int]:
        return old.integer(f"{name}_h", 0) or usual, old.integer(f"{name}_w", 0) or usual

    strides = both("stride", old.integer("stride", 1))
    window = Window(
        both("kernel", size), strides, both("pad", old.integer("pad", 0)), (0, 0), (1, 1),
        old.choice("auto_pad", PADDING),
    )  # fmt: skip
    return Pool(window, old.choice("pool", CAFFE), False, rounding)


def stops(size: int, begin: int, end: int, reach: int, stride: int, rounding: str) -> int:
    """How often a window stops; below 1 where it does not fit."""
    room = size + begin + end - reach
    if rounding == "floor":
        return room // stride + 1
    count = -(-room // stride) + 1
    if rounding == "ceil_torch" and (count - 1) * stride >= size + begin:
        count -= 1
    return count


def _rounding(old: Old, pool: Pool, window: Window, sizes: tuple[int, ...], wanted: str) -> str:
    """The rounding that gives the declared sizes: the one that is said, if it does."""
    declared = old.declared()[2:]
    given = {}
    for rounding in (wanted, *ROUNDINGS):
        given[rounding] = tuple(
            stops(n, window.begin[i], window.end[i], window.kernel[i], window.strides[i], rounding)
            for i, n in enumerate(sizes)
        )
        if given[rounding] == declared:
            break
    else:
        return wanted
    if rounding != wanted:
        old.remark(
            f"rounds {_word(rounding)}, as the declared sizes {list(declared)} need; the file "
            f"says {pool.rounding or 'nothing, which meant up'} and that gives "
            f"{list(given[wanted])}", fixed=0 if pool.window.auto_pad.startswith("same") else None,
        )  # fmt: skip
    elif pool.rounding is None and window.auto_pad == "explicit" and _matters(window, sizes):
        old.remark("rounds up (ceil_torch): the file does not say it, and that was the default")
    return rounding


def _matters(window: Window, sizes: tuple[int, ...]) -> bool:
    """Whether rounding up and down differ."""
    return any(
        (n + window.begin[i] + window.end[i] - window.kernel[i]) % window.strides[i]
        for i, n in enumerate(sizes)
    )


def _word(rounding: str) -> str:
    return "down" if rounding == "floor" else f"up ({rounding})"


def _attributes(window: Window, rounding: str) -> dict[str, object]:
    return {
        "kernel": window.kernel,
        "strides": window.strides,
        "pads_begin": window.begin,
        "pads_end": window.end,
        "rounding_type": rounding,
        "auto_pad": window.auto_pad,
    }


def _mean(old: Old, pool: Pool, window: Window, rounding: str) -> Output:
    """AvgPool; where padding counts and the last window overhangs it, Pad and then AvgPool."""
    padded = window.auto_pad != "explicit" or any(window.begin) or any(window.end)
    counted = padded and not pool.exclude_pad
    attributes = _attributes(window, rounding)
    if not counted or rounding == "floor":
        exclude = pool.exclude_pad or not padded
        return old.add("AvgPool", "opset14", [old.reals(0)], attributes | {"exclude-pad": exclude})
    old.remark(
        "padding counts, and what overhangs it does not: zeros are put around the input, and "
        "the mean is taken of what is there"
    )
    pads = old.indices(0, 0, *window.begin), old.indices(0, 0, *window.end)
    wide = old.add("Pad", "opset1", [old.reals(0), *pads, old.constant(0.0)], pad_mode="constant")
    nothing = (0,) * len(window.kernel)
    attributes = _attributes(explicit(window, nothing, nothing), rounding)
    made = old.add("AvgPool", "opset14", [wide], attributes | {"exclude-pad": True})
    pairs = zip(window.end, window.strides, window.kernel, strict=True)
    if rounding == "ceil" or all(end + stride <= kernel for end, stride, kernel in pairs):
        return made
    # A window that would begin in the padding behind was dropped: each begins before it.
    before = tuple(b + s - 1 for b, s in zip(window.begin, window.strides, strict=True))
    return cut_off(old, made, places(old, window, before))
