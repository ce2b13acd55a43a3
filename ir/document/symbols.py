"""Names of a Parameter's unknown sizes: kept in its rt_info, as IR has no other place.

A name is an input's own: that another input has a size of this name does not say that both are
equal in every call, as exporters give one name to lengths that are not.
"""

from __future__ import annotations

import re

from ...schemas import Dim, IRError, Shape, Tensor
from .layer import Layer
from .parts import Info

KEY = "symbols"


def keep_symbols(parameter: Layer, shape: Shape) -> None:
    """Write the names down, what is no word as one; where there are none, none are kept."""
    if shape.rank is None or not any(isinstance(s, Dim) and s.symbol for s in shape):
        if parameter.rt_info is not None:
            parameter.rt_info.remove(KEY)
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
    info = parameter.rt_info
    held = None if info is None else info.find(KEY)
    if held is None or held.value is None or tensor.rank is None:
        return tensor
    try:
        named = Shape.parse(held.value, symbols=True)
    except (ValueError, IRError):
        return tensor
    if named.rank != tensor.rank:
        return tensor
    sizes = [
        Dim(size.low, size.high, name.symbol)
        if isinstance(size, Dim) and isinstance(name, Dim) and name.symbol is not None
        else size
        for size, name in zip(tensor.shape, named, strict=True)
    ]
    return Tensor(tensor.type, sizes)


def own_names(shape: Shape, owner: str, owners: dict[str, str]) -> Shape:
    """A shape whose named sizes are called otherwise where another input has such names.

    Args:
        shape: of an input.
        owner: the input.
        owners: the inputs that names belong to, by name; those of this one are added.
    """
    if shape.rank is None or not any(isinstance(x, Dim) and x.symbol for x in shape):
        return shape
    sizes: list[int | Dim] = []
    for size in shape:
        name = str(size.symbol) if isinstance(size, Dim) and size.symbol else None
        if isinstance(size, Dim) and name and owners.setdefault(name, owner) != owner:
            size = Dim(size.low, size.high, f"{name} of {owner}")
        sizes.append(size)
    return Shape(sizes)


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
