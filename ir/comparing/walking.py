"""One sample gone through on both sides, piece by piece, and into the bodies of what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...layers.budget import budget
from ...layers.casting import as_computed
from ...layers.memory import give_back, nbytes
from ...schemas import Array, InternalError, IRError, LimitError
from ..document import Layer, Model
from ..execution import Interpreter, InterpreterStep, infer_for
from ..inference import Inferred
from .extraction import Spot, extract_body
from .judging import Judge, Memory, Step
from .making import with_makers
from .recasting import recast
from .references import Compiled, OpenVINO, OtherModel, Reference, has_state
from .turns import models_of_turns, recording_room

#: Layers for which the reference is asked at once; and bytes of what they take from the file and
#: give, as a part of the whole file, but so many at least and at most.
_LAYERS, _PART, _LEAST, _MOST = 32, 8, 2 << 20, 32 << 20


def steps_of_sample(
    model: Model,
    reference: Reference,
    arrays: Mapping[int, Array],
    tolerance: float | None,
    progress: Callable[[Layer], None] | None = None,
    memory: Memory | None = None,
) -> tuple[dict[Spot, Step], set[int]]:
    """The verdicts on one sample; and the layers that are others there, and right together."""
    steps: dict[Spot, Step] = {}
    for spot, step in walk(
        model, reference, arrays, tolerance, progress, memory, enters_bodies=True
    ):
        budget().check_time()
        steps[spot] = step
    others = recast(model, steps) if isinstance(reference, OtherModel) else set()
    return {spot: step for spot, step in steps.items() if spot[0] not in others}, others


def walk(
    model: Model,
    reference: Reference,
    arrays: Mapping[int, Array],
    tolerance: float | None,
    progress: Callable[[Layer], None] | None,
    memory: Memory | None = None,
    *,
    enters_bodies: bool = False,
) -> Iterator[tuple[Spot, Step]]:
    """Go through one sample, piece by piece.

    Args:
        model: The model.
        reference: What it is compared with.
        arrays: Its inputs, by layer id.
        tolerance: How far a layer may be off in place of what its type allows.
        progress: Called with each layer that is done.
        memory: What variables hold.
        enters_bodies: Look for the layer in a body that makes its holder wrong.
    """
    memory = Memory() if memory is None else memory
    inferred = infer_for(model, arrays, memory.ours)
    if isinstance(reference, OtherModel):
        reference.state = memory.others
    reference.begin(arrays, inferred)
    judge = Judge(model, reference, inferred, tolerance, memory)
    ours, theirs = judge.ours, judge.theirs
    for layer_id, array in arrays.items():
        ours[layer_id] = theirs[layer_id] = (as_computed(array),)
    sizes: dict[int, int] = {}
    runner = Interpreter(model, None, inferred=inferred)
    runner.begin(memory.ours)
    steps = {step.layer.id: step for step in runner.steps}
    for piece in _pieces(model, runner, inferred, sizes):
        told = dict(reference.told([step.layer for step in piece], theirs))
        for place, step in enumerate(piece):
            rest = [one.layer for one in piece[place + 1 :]]
            if step.kernel is not None:
                before = len(judge.in_company)
                found = dict(judge.layer(step, told, alone=len(piece) == 1))
                if any(one.is_wrong for one in found.values()):
                    found = dict(with_makers(judge, step, told, steps)) or found
                    if enters_bodies and step.layer.bodies:
                        found = _entered(judge, step, found)
                yield from found.items()
                if len(judge.in_company) > before:
                    told |= reference.told(rest, theirs)
            # What comes after a layer that is not told could not be reached without it.
            if (
                reference.asks_again
                and judge.untold([step.layer], told)
                and judge.untold(rest, told)
            ):
                told |= reference.told(rest, theirs)
            if progress is not None:
                progress(step.layer)
            if step.layer.id not in judge.fixed:
                sizes[step.layer.id] = sum(array.nbytes for array in ours[step.layer.id])
            for index in range(len(step.layer.outputs)):
                told.pop((step.layer.id, index), None)  # whoever takes it has it from there
            for done in step.freed:
                del ours[done], theirs[done]
        if model.weights is not None:
            model.weights.release()  # what these layers took, no other takes
        give_back()
    yield from judge.outputs(arrays)
    yield from judge.as_a_whole(arrays)
    if memory.is_kept:
        memory.ours, memory.theirs = runner.end(), {**memory.theirs, **judge.assigned}
        if isinstance(reference, OtherModel):
            memory.others = reference.end()


def _pieces(
    model: Model, runner: Interpreter, inferred: Inferred, sizes: Mapping[int, int]
) -> Iterator[list[InterpreterStep]]:
    """The steps in pieces of a few layers, none of which goes on after a layer with a state.

    ``sizes`` are the bytes that layers gave so far.
    """
    piece: list[InterpreterStep] = []
    size, count, held = 0, 0, 0 if model.weights is None else model.weights.size
    most = min(max(held // _PART, _LEAST), _MOST)
    guessed: dict[int, int] = {}
    for step in runner.steps:
        if step.kernel is None:
            continue
        tensors = inferred.of(step.layer)
        more = nbytes(tensors)
        if not all(tensor.shape.is_static for tensor in tensors):
            # Of unknown size: as large as what the layer takes.
            taken = [sizes.get(i, guessed.get(i, 0)) for i, _ in step.sources]
            more = guessed[step.layer.id] = max(more, *taken, 0)
        if piece and (size + more > most or count == _LAYERS):
            yield piece
            piece, size, count = [], 0, 0
        piece.append(step)
        size += more
        count += not step.layer.is_constant
        if has_state(step.layer):
            yield piece
            piece, size, count = [], 0, 0
    if piece:
        yield piece


# Bodies.


def _entered(judge: Judge, step: InterpreterStep, found: Mapping[Spot, Step]) -> dict[Spot, Step]:
    """The verdicts on a layer with bodies; those that are wrong with the layer inside that is."""
    inner = _first_inside(judge, step)
    return {
        spot: replace(one, inner=inner) if inner is not None and one.is_wrong else one
        for spot, one in found.items()
    }


def _first_inside(judge: Judge, step: InterpreterStep) -> Step | None:
    """The first layer that is wrong in the first turn in which one is, of those looked at."""
    layer = step.layer
    tells = _references_inside(judge.reference, layer)
    if tells is None:
        return None  # before turns are run for nothing
    exact = [judge.theirs[i][index] for i, index in step.sources]
    turns = sorted(models_of_turns(layer, exact, recording_room()), key=lambda one: one[0].number)
    for turn, body, arrays in turns:
        try:
            given = {one.id: x for one, x in zip(body.parameters, arrays, strict=True)}
            steps, _ = steps_of_sample(body, tells(turn.tag, body), given, judge.tolerance)
        except LimitError:
            raise
        except (IRError, InternalError):
            continue  # there the body takes other inputs: of this turn no layer can be named
        wrong = next((one for one in steps.values() if one.is_wrong), None)
        if wrong is not None:
            number = None if layer.type == "If" else turn.number
            return replace(_put_inside(wrong, layer.name), tag=turn.tag, turn=number)
    return None


def _references_inside(
    reference: Reference, layer: Layer
) -> Callable[[str, Model], Reference] | None:
    """What tells of each body of a layer by itself; None where nothing does."""
    if isinstance(reference, OpenVINO):
        return lambda tag, body: OpenVINO(body, reference.process)
    if isinstance(reference, Compiled):
        return lambda tag, body: Compiled(body)
    other = reference.matching.forth.get(layer.id) if isinstance(reference, OtherModel) else None
    if other is None or not set(layer.bodies) <= set(other.bodies):
        return None
    return lambda tag, body: OtherModel(body, extract_body(other, tag, {}))


def _put_inside(step: Step, name: str) -> Step:
    """A verdict on a layer of a body, and on those in bodies of it, with the layer around it."""
    place = replace(step.place, body=(name, *step.place.body))
    inner = None if step.inner is None else _put_inside(step.inner, name)
    return replace(step, place=place, inner=inner)
