"""Names of a Parameter's unknown sizes: kept in its rt_info, as IR has no other place.

As ONNX has it, sizes of one name are equal in every call: what is computed of them may be
replaced by what follows from that, and calls in which they differ are refused.
"""

from __future__ import annotations

import re

from ...schemas import Dim, IRError, Shape, Tensor
from .layer import Layer
from .parts import Info

KEY = "symbols"


def keep_symbols(parameter: Layer, shape: Shape) -> None:
    """Write the names down, where there are any; what is no word is made one."""
    if shape.rank is None or not any(isinstance(s, Dim) and s.symbol for s in shape):
        return
    words = [
        _word(str(s.symbol)) if isinstance(s, Dim) and s.symbol else str(Shape([s]).spelling)
        for s in shape
    ]
    info = parameter.rt_info or Info("rt_info")
    if info.find(KEY) is None:
        info.children.append(Info("attribute", {"name": KEY, "version": "0"}))
    info.set(KEY, ",".join(words))
    parameter.rt_info = info


def with_symbols(parameter: Layer, tensor: Tensor) -> Tensor:
    """What is known of a Parameter, its unknown sizes by their names."""
    named = _kept(parameter)
    if named is None or tensor.rank is None or named.rank != tensor.rank:
        return tensor
    sizes = [
        Dim(size.low, size.high, name.symbol)
        if isinstance(size, Dim) and isinstance(name, Dim) and name.symbol is not None
        else size
        for size, name in zip(tensor.shape, named, strict=True)
    ]
    return Tensor(tensor.type, sizes)


def named_axes(parameter: Layer) -> dict[int, str]:
    """The names of a Parameter's sizes by their axes, also of such as are known by now."""
    named = _kept(parameter)
    sizes = () if named is None or named.rank is None else tuple(named)
    return {
        axis: str(size.symbol)
        for axis, size in enumerate(sizes)
        if isinstance(size, Dim) and size.symbol is not None
    }


def _kept(parameter: Layer) -> Shape | None:
    """The shape that was written down with names."""
    info = parameter.rt_info
    held = None if info is None else info.find(KEY)
    if held is None or held.value is None:
        return None
    try:
        return Shape.parse(held.value, symbols=True)
    except (ValueError, IRError):
        return None


#: What is said of signs: sizes that differ in these alone are others.
_SIGNS = (
    (r"\s*\+\s*", "_plus_"),
    (r"\s+-\s+|-(?=\s*[\d(])|^-", "_minus_"),
    (r"\s*\*\s*", "_times_"),
    (r"\s*//?\s*", "_by_"),
)


def _word(name: str) -> str:
    word = name
    for sign, said in _SIGNS:
        word = re.sub(sign, said, word)
    word = re.sub(r"\W", "_", word, flags=re.ASCII)
    return word if not word[:1].isdigit() else f"_{word}"
