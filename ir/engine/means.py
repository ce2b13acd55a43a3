"""What a plan may count on: room for weights as numbers, integer products, quick functions."""

from __future__ import annotations

from math import prod
from typing import Literal, TypeAlias

from ...layers.budget import fits
from .kernels import SWISH_FACTOR, quickness
from .plan import Means, Plan
from .workers import integer_products

#: Whether weights of few bits stay so, or are made numbers where that is quicker.
Memory: TypeAlias = Literal["small", "fast"]
#: Bytes that a weight takes as a number: where it lies, and again as its kernel wants it.
NUMBERS = 8
#: A quarter of the memory is worth so many times the time, where nobody says otherwise.
PATIENCE = 1.5


def means(plan: Plan, memory: Memory | None) -> Means:
    """What a plan may count on.

    Where nobody says so, weights become numbers that would take much longer as levels, if these
    take no more than half of what memory is free.
    """
    found = integer_products()
    packed = {value.packed for node in plan.nodes for value in node.inputs if value.packed}
    taken = NUMBERS * sum(prod(one.shape) for one in packed)
    is_small = memory == "small" or (memory is None and not fits(2 * taken))
    rate, rounds = (found.rate, found.rounds) if found else (0.0, False)
    patience = 1.0 if memory == "fast" else PATIENCE
    return Means(is_small, patience, rate, quickness(), SWISH_FACTOR, rounds)


def kept_weights(plan: Plan) -> str:
    """How weights that a file keeps in few bits are kept here, and whether somebody said so."""
    if not plan.levels and not plan.numbers:
        return ""
    means = plan.means
    told = "small" if means.is_small else "fast" if means.patience == 1.0 else "balanced"
    return f", memory {told}: {plan.levels} weights as levels, {plan.numbers} as numbers"
