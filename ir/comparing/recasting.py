"""Layers that make other tensors than before, for which the layers that take them make up.

Where `BatchNorm(Conv(x))` has become one convolution, that bears the name of the first and has
other weights: alone each layer is another, together they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..document import Layer, Model
from .extraction import Spot
from .judging import Step


def recast(model: Model, steps: Mapping[Spot, Step]) -> set[int]:
    """The ids of layers that in one sample are others, and right together.

    A layer makes up where its result is right though it is wrong for the inputs that are told:
    the fault of one layer alone never looks so. What reaches an output stays.
    """
    rows: dict[int, list[Step]] = {}
    for (number, _), step in steps.items():
        rows.setdefault(number, []).append(step)
    off = {key for key, told in rows.items() if any(x.is_off for x in told)}
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
    found = {key for key in closed - lost - closing if key in rows}
    for key in closing:
        reached = _reached(model, model.layer(key), rows, off)
        if reached and not reached & lost:
            found.add(key)
    if ends & off and not wrong - found:
        return set()  # else nothing would say why outputs differ
    return found


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
