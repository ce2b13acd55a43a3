"""Layers that make other tensors than before, for which the layers that take them make up.

Where `BatchNorm(Conv(x))` has become one convolution, that bears the name of the first and has
other weights: alone each layer is another, together they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..document import Layer, Model
from .extraction import Spot
from .judging import Step


def without_recast(model: Model, steps: dict[Spot, Step]) -> dict[Spot, Step]:
    """The steps of one sample without those of layers whose difference is made up for.

    A layer makes up where its result is right though it is wrong for the inputs that are told:
    the fault of one layer alone never looks so. What reaches an output stays.
    """
    rows: dict[int, list[Step]] = {}
    for (number, _), step in steps.items():
        rows.setdefault(number, []).append(step)
    off = {key for key, told in rows.items() if any(x.accumulated > x.tolerance for x in told)}
    wrong = {key for key, told in rows.items() if any(x.is_wrong for x in told)}
    closing = wrong - off
    order = model.order()
    ends = {layer.id for layer in order if layer.type in ("Result", "Assign")}
    # Ends that differ, or of which nothing is told; what is told and right lets nothing through.
    lost, closed = {key for key in ends if key in off or key not in rows}, set(closing)
    for layer in reversed(order):
        if layer.id in rows and layer.id not in off:
            continue
        users = {user.id for user, _ in model.consumers(layer)}
        if users & lost:
            lost.add(layer.id)
        if users & closed:
            closed.add(layer.id)
    recast = {key for key in closed - lost - closing if key in rows}
    for key in closing:
        reached = _reached(model, model.layer(key), rows, off)
        if reached and not reached & lost:
            recast.add(key)
    if ends & off and not wrong - recast:
        return steps  # else nothing would say why outputs differ
    return {spot: step for spot, step in steps.items() if spot[0] not in recast}


def _reached(model: Model, layer: Layer, rows: Mapping[int, object], off: set[int]) -> set[int]:
    """What is off, or not told, and comes to a layer with nothing between that is right."""
    found: set[int] = set()
    pending = [layer]
    while pending:
        for source in model.sources(pending.pop()):
            if source is None or source[0].id in found:
                continue
            if source[0].id in off or source[0].id not in rows:
                found.add(source[0].id)
                pending.append(source[0])
    return found & off


__all__ = ["without_recast"]
