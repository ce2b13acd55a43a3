"""Proof by trial: a model before and after on random inputs, and each rewrite by itself."""

from __future__ import annotations

from copy import deepcopy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.casting import as_computed, computing
from ....layers.memory import run_within_memory
from ....schemas import (
    Array,
    Dim,
    ElementType,
    IRError,
    LimitError,
    MismatchError,
    Size,
    Tensor,
    UnsupportedError,
)
from ....schemas.numbers import random_of
from ....schemas.shapes import limits
from ...document import Layer, Model, array_of
from ...execution import Outputs, run
from .fold_constants import is_made_of_constants
from .rewriter import Rewriter, Value

#: What numbers may differ by, in parts of the largest of their tensor.
TOLERANCES = {ElementType.F16: 4e-3, ElementType.BF16: 2e-2}
TOLERANCE = 1e-5
#: Layers of a pattern, and elements of a tensor, up to which a rewrite is tried by itself.
_LAYERS = 48
#: Levels of a FakeQuantize at which it rounds no more than a number of 32 bits is rounded.
_FINE = 1 << 24
_ELEMENTS = 1 << 24
#: Named sizes are drawn below it.
_LARGEST = 6


class Certificate(NamedTuple):
    """What was compared, and by how much it differed at most."""

    #: Random inputs on which the whole model was run before and after.
    runs: int
    #: The greatest difference of an output, in parts of the largest number in it.
    difference: float
    #: Rewrites that were tried alone, those whose shapes are not known or that are too large
    #: for it, and the greatest difference.
    alone: int
    not_alone: int
    difference_alone: float
    #: The greatest difference of an output in runs where it is only rounding: numbers that stood
    #: between two levels of a FakeQuantize fell to the other, and with finer levels all is equal.
    ties: float = 0.0


class Judge:
    """Runs each rewrite alone, the old layers and the new ones on the same random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random_of(seed)
        self.alone = self.not_alone = 0
        self.difference = 0.0

    def __call__(self, net: Rewriter, old: Value, new: Value) -> None:
        """Compare a value with the one that replaces it."""
        for deep in (False, True):
            ends, inside = _cone(net, new, set(), deep)
            reached, old_inside = _cone(net, old, ends, True)
            if reached == ends:
                break
        # What the old layers do not begin with says nothing of what the new ones make of it.
        if old_inside is None or inside is None or ends - reached:
            self.not_alone += 1
            return
        arrays: dict[Value, Array] = {}
        named: dict[str, int] = {}
        for end in reached | ends:
            array = self._with_names(net.tensor(end), named)
            if array is None:
                self.not_alone += 1
                return
            arrays[end] = array
        try:
            before, after = (_computed(net, one, dict(arrays)) for one in (old, new))
        except (IRError, LimitError, IndexError, ValueError):
            # Random numbers need not be what an operation takes, such as indices.
            self.not_alone += 1
            return
        self.alone += 1
        kind = net.kind(old)
        self.difference = max(self.difference, refuse(old[0].name, kind, before, after))

    def _with_names(self, tensor: Tensor, named: dict[str, int]) -> Array | None:
        """Random numbers for a tensor, whose named sizes are the same in all that has them."""
        shape = [self._number(size, named) for size in tensor.shape.sizes or ()]
        if tensor.rank is None or None in shape:
            return None
        parts = tensor.parts if tensor.has_symbols else None
        if parts is None:
            return self.draw(Tensor(tensor.type, shape, tensor.value))
        numbers = [self._number(size, named) for size in parts.ravel()]
        if None in numbers:
            return None
        return np.array(numbers).astype(tensor.type.dtype).reshape(parts.shape)

    def _number(self, size: Size, named: dict[str, int]) -> int | None:
        """A size as a number; None where it is not known and has no name, or one of a quotient."""
        if not isinstance(size, Dim):
            return int(size)
        if size.symbol is None or any("/" in name for name in size.symbol.names):
            return None
        for name in sorted(size.symbol.names):
            named.setdefault(name, int(self.random.integers(1, _LARGEST)))
        number = size.symbol.value(named)
        low, high = limits(size)
        return number if (low or 0) <= number <= (number if high is None else high) else None

    def draw(self, tensor: Tensor, unknown: int | None = None) -> Array | None:
        """Random numbers for a tensor; None where it has no sizes, or too many elements."""
        sizes = _sizes(tensor, unknown)
        if sizes is None or prod(sizes) > _ELEMENTS:
            return None
        if tensor.value is not None:
            return tensor.value
        kind = tensor.type
        if kind is ElementType.STRING:
            return np.array(["a", "b c"])[self.random.integers(0, 2, sizes)]
        if not kind.is_real:
            return array_of(self.random.integers(0, 2, sizes), kind, "random numbers")
        return array_of(self.random.standard_normal(sizes), kind, "random numbers")


def _sizes(tensor: Tensor, unknown: int | None) -> list[int] | None:
    if tensor.type.is_dynamic or tensor.shape.rank is None:
        return None
    sizes = []
    for size in tensor.shape.sizes:
        if isinstance(size, Dim):
            if unknown is None:
                return None
            most = unknown if size.high is None else min(unknown, size.high)
            size = max(most, size.low or 0)
        sizes.append(size)
    return sizes


def _cone(
    net: Rewriter, value: Value, ends: set[Value], deep: bool
) -> tuple[set[Value], set[Layer] | None]:
    """The values at which the layers above a value begin, and these layers.

    New layers are gone through, older ones only where ``deep``, up to the given ends; so is what
    repeats, widens or gathers constants, as rules may know the numbers of which it consists.
    """
    found: set[Value] = set()
    inside: set[Layer] = set()
    stack, first = [value], True
    while stack:
        one = stack.pop()
        layer = one[0]
        enter = layer.is_constant or net.is_fresh(layer) or (first and deep) or (
            deep and (bool(ends) or is_made_of_constants(net, layer))
        ) or _repeats(net, layer)  # fmt: skip
        first = False
        if one in ends or not enter or layer.op is None or layer.bodies or (
            layer.type in ("Parameter", "ReadValue")
        ):  # fmt: skip
            found.add(one)
            continue
        if layer not in inside:
            inside.add(layer)
            if len(inside) > _LAYERS:
                return found, None
            stack += net.inputs(layer)
    return found, inside


def _repeats(net: Rewriter, layer: Layer) -> bool:
    """Whether a layer repeats, widens or gathers constants."""
    return layer.type in ("Broadcast", "Convert", "Gather", "Tile") and all(
        source.is_constant or (source.type == "Convert" and _repeats(net, source))
        for source, _ in net.inputs(layer)
    )


def _computed(net: Rewriter, value: Value, arrays: dict[Value, Array]) -> Array:
    """A value, from the arrays at which its layers begin; by the definition of each operation."""
    stack = [value]
    with np.errstate(all="ignore"):
        while stack:
            one = stack[-1]
            if one in arrays:
                stack.pop()
                continue
            layer = one[0]
            if layer.is_constant:
                arrays[one] = layer.value
                continue
            missing = [source for source in net.inputs(layer) if source not in arrays]
            if missing:
                stack += missing
                continue
            op = layer.op
            assert op is not None
            made = run_within_memory(
                computing(op), *(as_computed(arrays[source]) for source in net.inputs(layer))
            )
            for index, array in enumerate(made):
                arrays[layer, index] = array
    return arrays[value]


def refuse(name: str, kind: ElementType, before: Array, after: Array) -> float:
    """The difference of two arrays; refused where it is more than rounding explains."""
    if before.shape != after.shape:
        raise MismatchError(f'"{name}" was {before.shape}, and is {after.shape} simplified')
    if not before.size or before.dtype.kind not in "fiub":
        if not np.array_equal(before, after):
            raise MismatchError(f'"{name}" is not what it was')
        return 0.0
    apart, largest, alike = measured(before, after)
    if not alike:
        raise MismatchError(f'"{name}" is infinite or no number elsewhere than it was')
    difference = apart / max(largest, 1.0)
    allowed = TOLERANCES.get(kind, TOLERANCE) if kind.dtype.kind == "f" else 0.0
    if difference > allowed:
        raise MismatchError(
            f'"{name}" differs by {apart:.3g} where the largest number is {largest:.3g}; '
            f"{allowed:g} of it is allowed"
        )
    return difference


def measured(before: Array, after: Array) -> tuple[float, float, bool]:
    """How far two arrays are apart, the largest number, and whether all else is equal."""
    one, other = (np.asarray(array, np.float64) for array in (before, after))
    finite = np.isfinite(one)
    alike = np.array_equal(finite, np.isfinite(other))
    alike = alike and np.array_equal(one[~finite], other[~finite], equal_nan=True)
    with np.errstate(invalid="ignore", over="ignore"):  # of what is infinite, or far apart
        apart = float(np.max(np.abs(one - other), where=finite, initial=0.0))
    return apart, float(np.max(np.abs(one), where=finite, initial=0.0)), alike


def compare_models(before: Model, after: Model, count: int, judge: Judge) -> Certificate:
    """Run two models on the same random inputs; refused where an output differs."""
    worst = ties = 0.0
    for number in range(count):
        feeds: dict[int, Any] = {}
        for place, parameter in enumerate(before.parameters):
            op = parameter.op
            array = None if op is None else judge.draw(op.infer()[0], 2 + number)
            if array is None:
                told = "" if op is None else f": it is {op.infer()[0]}"
                raise UnsupportedError(
                    f'no random numbers can be made for the input "{parameter.name}"{told}',
                    hint="give it a shape and a type, or leave the certificate out",
                )
            feeds[place] = array
        outputs = run(before, feeds), run(after, feeds)
        try:
            worst = max(worst, _difference(*outputs))
        except MismatchError as error:
            refusal = _unless_ties(error, before, after, feeds)
            if refusal is not None:
                raise refusal from None
            ties = max(ties, _apart(*outputs))
    return Certificate(count, worst, judge.alone, judge.not_alone, judge.difference, ties)


def _unless_ties(
    error: MismatchError, before: Model, after: Model, feeds: dict[int, Any]
) -> MismatchError | None:
    """The error; None where nothing is left of it once FakeQuantize has finer levels.

    What differs by rounding alone then differs by as little; a rewrite that is wrong, still is.
    """
    finer = with_finer_levels(before), with_finer_levels(after)
    if finer[0] is None or finer[1] is None:
        return error
    try:
        _difference(run(finer[0], feeds), run(finer[1], feeds))
    except MismatchError:
        error.hint = "the rewrites change more than rounding: with finer levels it differs, too"
        return error
    return None


def with_finer_levels(model: Model) -> Model | None:
    """A copy whose FakeQuantize hardly round; None where there are none."""
    new = deepcopy(model)
    layers = [layer for layer in new.everywhere() if layer.type == "FakeQuantize"]
    for layer in layers:
        layer.data["levels"] = str(_FINE)
    return new if layers else None


def _apart(one: Outputs, other: Outputs) -> float:
    """The greatest difference of outputs, in parts of the largest number of each."""
    return max((apart / max(largest, 1.0) for apart, largest, _ in map(
        measured, one.values(), other.values())), default=0.0)  # fmt: skip


def _difference(one: Outputs, other: Outputs) -> float:
    if list(one) != list(other):
        raise MismatchError(f"outputs were {list(one)}, and are {list(other)} simplified")
    worst = 0.0
    for name, array in one.items():
        worst = max(worst, refuse(name, ElementType.of(array.dtype), array, other[name]))
    return worst


__all__ = ["Certificate", "Judge", "compare_models", "measured", "with_finer_levels"]
