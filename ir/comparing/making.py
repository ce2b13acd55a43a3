"""Layers that depend on constants alone, looked at where a layer that takes them is wrong.

What they give is made when it is taken, and judged with what takes it: decompressed weights would
be several times as large as their file. Only where that is wrong they are gone through, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...layers.casting import as_computed
from ...schemas import Array, InternalError, IRError, LimitError
from ..document import Graph, Layer
from ..execution import Interpreter, InterpreterStep
from .extraction import Spot, extract
from .judging import Judge, Step
from .references import HalfPrecision, InPieces, OtherModel, Reference


def with_makers(
    judge: Judge,
    step: InterpreterStep,
    told: Mapping[Spot, Array],
    steps: Mapping[int, InterpreterStep],
) -> Iterator[tuple[Spot, Step]]:
    """The verdicts on a layer that seems wrong; before it those on what makes its constants so.

    ``steps`` are those of all layers, by id.
    """
    rows = _makers(judge.model, [step.layer], judge.fixed, judge.places)
    told_of = _told(judge.reference, [x for x in rows if not x.is_constant])
    if not told_of:
        return
    inner = judge.apart({layer.id for layer in rows if layer.is_constant})
    for number, _ in step.sources:
        if number not in judge.fixed:
            inner.ours[number], inner.theirs[number] = judge.ours[number], judge.theirs[number]
    found = [one for x in rows for one in inner.layer(steps[x.id], told_of)]
    wrong = [(spot, one) for spot, one in found if one.is_wrong]
    if wrong:
        yield from wrong
        yield from inner.layer(step, told)


def _makers(
    graph: Graph, layers: Sequence[Layer], fixed: set[int], places: Mapping[int, int]
) -> list[Layer]:
    """The layers that make the constants that some layers take, in order: that of ``places``."""
    found: dict[int, Layer] = {}
    pending = [*layers]
    while pending:
        for source in graph.sources(pending.pop()):
            if source is not None and source[0].id in fixed and source[0].id not in found:
                found[source[0].id] = source[0]
                pending.append(source[0])
    return sorted(found.values(), key=lambda layer: places[layer.id])


def _told(reference: Reference, layers: Sequence[Layer]) -> Mapping[Spot, Array]:
    """What a reference tells of layers that depend on constants alone."""
    if not layers or isinstance(reference, HalfPrecision):
        return {}  # half precision is as far off as it is: none of them is at fault
    if isinstance(reference, InPieces):
        return _asked(reference, layers)
    if isinstance(reference, OtherModel):
        return _computed(reference, layers)
    return reference.told(layers, {})


def _asked(reference: InPieces, layers: Sequence[Layer]) -> Mapping[Spot, Array]:
    """What a runtime gives for layers; nothing where it refuses them."""
    inferred = reference.inferred
    part = extract(reference.model, layers, lambda x, i: inferred.of(x)[i], every_output=True)
    try:
        found = reference.compute(part.model, [])
    except LimitError:
        raise
    except (IRError, InternalError):
        return {}
    return {spot: as_computed(array) for spot, array in zip(part.outputs, found, strict=True)}


def _computed(reference: OtherModel, layers: Sequence[Layer]) -> Mapping[Spot, Array]:
    """What the counterparts of layers give in another model."""
    matching, fixed = reference.matching, reference.fixed[1]
    pairs = [(x, matching.forth[x.id]) for x in layers if x.id in matching.forth]
    pairs = [(x, y) for x, y in pairs if y.id in fixed and not y.is_constant]
    pairs = [(x, y) for x, y in pairs if x.type == y.type or matching.is_certain(x, y)]
    wanted = [y for _, y in pairs]
    places = reference.places
    makers = {y.id: y for y in (*wanted, *_makers(reference.other, wanted, fixed, places))}
    order = sorted(makers.values(), key=lambda layer: places[layer.id])
    walk = Interpreter(reference.other, None, order, reference.inferred)
    values: dict[int, tuple[Array, ...]] = {}
    for step in walk.steps:
        assert step.kernel is not None
        with np.errstate(all="ignore"), step.layer.at():
            values[step.layer.id] = step.kernel(*(values[i][k] for i, k in step.sources))
    return {(x.id, k): a for x, y in pairs for k, a in enumerate(values[y.id])}
