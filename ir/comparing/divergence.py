"""Where a run parts from a reference: the layer whose own error is the first that is too large.

Example::

    found = ir.compare(model, "openvino", [image])
    print(found.first)          # the layer that is wrong, given exact inputs
    print(found.parts)          # the layer from which on results are off

Both are gone through together. Each layer is computed twice: from what was computed here (its
error is what has accumulated), and from the reference's own values (its error is the layer's own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ...layers.budget import within
from ...layers.casting import as_computed
from ...layers.memory import give_back, nbytes
from ...schemas import Array, ElementType, IRError, UsageError
from ...schemas.printing import Table, printable
from ..document import Layer, Model
from ..execution import (
    Inputs,
    Interpreter,
    InterpreterStep,
    check_inputs,
    fill,
    infer_for,
    refuse_unknown,
)
from ..faces import Shown
from ..inference import Inferred
from ..opening import ModelLike, opened
from .differences import Place
from .extraction import Spot
from .references import (
    REFUSALS,
    TOLERANCES,
    InPieces,
    Recorded,
    Reference,
    from_constants,
    has_state,
    in_32_bits,
    make_reference,
)
from .rounding import MODEL_TIMES, Shake, endless, error, farthest, identical, real, too_far
from .weights import lean, made_of_constants

#: Layers for which the reference is asked at once; and bytes of what they take from the file and
#: give, as a part of the whole file, but so many at least and at most.
_LAYERS, _PART, _LEAST, _MOST = 32, 8, 2 << 20, 32 << 20
RANDOM = "inputs were made at random, unknown sizes as small as may be: give inputs that fit"
#: How often inputs are shaken to see whether a result stands on an edge.
_SHAKES = 8


@dataclass(frozen=True)
class Step:
    """How one output of a layer differs from the reference, in the worst sample.

    Verdicts are ``equal``, ``rounding`` (within tolerance, or its inputs' rounding made larger),
    ``ties`` (a decision between values that rounding tells apart), ``inherited`` (right for its
    inputs, which were off), ``NaN``, ``shape`` and ``wrong``.
    """

    place: Place
    output: int
    #: The error with the reference's own inputs, and with those computed here.
    own: float
    accumulated: float
    tolerance: float
    verdict: str
    sample: int = 0
    reason: str = ""
    #: Constants that the layer takes.
    constants: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether the layer itself is at fault."""
        return self.verdict in ("NaN", "shape", "wrong")

    def __str__(self) -> str:
        text = f"layer {self.place}: {self.verdict}, its own error {self.own:.3g}"
        text += f", accumulated {self.accumulated:.3g} (tolerance {self.tolerance:.3g})"
        if self.reason:
            text += f"; {self.reason}"
        if self.is_wrong and self.constants:
            text += f"; it takes {', '.join(self.constants)}"
        return text


@dataclass(repr=False)
class Comparison(Shown):
    """How a model's run and a reference differ, layer by layer in the order of computing."""

    against: str
    samples: int
    steps: list[Step] = field(default_factory=list)
    #: Layers that the reference refused, and why.
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Step | None:
        """The first layer that is wrong with exact inputs."""
        return next((step for step in self.steps if step.is_wrong), None)

    @property
    def parts(self) -> Step | None:
        """The first layer whose result is off, for whatever reason."""
        return next((s for s in self.steps if s.accumulated > s.tolerance), None)

    @property
    def wrong(self) -> list[Step]:
        """Every layer that is wrong with exact inputs: what would have to stay in f32."""
        return [step for step in self.steps if step.is_wrong]

    def __bool__(self) -> bool:
        return self.first is not None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_table(self) -> Table:
        """The layers, the worst first."""
        worst = sorted(self.steps, key=_badness, reverse=True)
        return Table(
            next(self.lines()),
            ("layer", "operation", "own error", "accumulated", "tolerance"),
            (
                (s.place.name, s.place.type, f"{s.own:.3g}", f"{s.accumulated:.3g}", s.tolerance)
                for s in worst
            ),
            len(worst),
            "print(comparison), comparison.first",
        )

    def lines(self, most: int = 10) -> Iterator[str]:
        """What there is to say, the worst layers last."""
        count = len({step.place for step in self.steps})
        head = f"{count} layers against {self.against}, {self.samples} samples"
        if self.first is None:
            largest = max((step.own for step in self.steps), default=0.0)
            yield f"{head}: none is wrong, the largest error of a layer is {largest:.3g}"
        else:
            yield f"{head}: {len(self.wrong)} wrong"
            yield f"first: {printable(self.first)}"
        off = self.parts
        if off is not None and off is not self.first:
            yield f"results part at {printable(off)}"
        for name, reason in self.refused.items():
            yield f"not asked: {printable(name)}: {printable(reason, 300)}"
        worst = sorted(self.steps, key=lambda step: -step.own / (step.tolerance or 1e-30))
        for step in worst[:most]:
            if step.own or step.is_wrong:
                yield f"  {printable(step)}"

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        first, parts = self.first, self.parts
        return {
            "against": self.against,
            "samples": self.samples,
            "first": None if first is None else asdict(first),
            "parts": None if parts is None else asdict(parts),
            "keep_in_f32": [step.place.name for step in self.wrong],
            "steps": [asdict(step) for step in self.steps],
            "refused": self.refused,
        }


def compare(
    model: ModelLike,
    against: ModelLike = "openvino",
    inputs: Inputs | None = None,
    *,
    samples: Iterable[Inputs] | int = 1,
    seed: int = 0,
    tolerance: float | None = None,
    onnx: str | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
    progress: Callable[[Layer], None] | None = None,
) -> Comparison:
    """Find where a model's run parts from another, layer by layer, holding few tensors at a time.

    Args:
        model: The model, or its .xml.
        against: ``openvino``, ``onnxruntime``, another model or its .xml, an .onnx, an .npz of
            recorded tensors, ``compiled`` for the programs that its pieces are compiled to, or
            ``f16`` and ``bf16`` for the model itself at half precision.
        inputs: One sample: an array for each input.
        samples: Several samples, or how many random ones.
        seed: Seed of random inputs.
        tolerance: How far a layer may be off in place of what its type allows.
        onnx: The same model as ONNX, for onnxruntime.
        max_memory: Bytes that may be taken; None for what the machine has left.
        max_seconds: Looked at between layers; None for no limit.
        progress: Called with each layer that is done.

    Raises:
        UsageError: An input is missing or of another shape, or a runtime is not installed.
    """
    whole = opened(model)
    refuse_unknown(whole.order())
    if tolerance is not None and not tolerance >= 0:
        raise UsageError(f"the tolerance is {tolerance}, the least is 0")
    reference = make_reference(whole, against, onnx)
    try:
        with within(max_memory, max_seconds) as budget:
            rows = list(_samples(whole, reference, inputs, samples, seed))
            found = Comparison(reference.name, len(rows))
            worst: dict[Spot, Step] = {}
            try:
                for number, given in enumerate(rows):
                    for spot, step in _walk(whole, reference, given, tolerance, progress):
                        budget.check_time()
                        step = replace(step, sample=number)
                        known = worst.get(spot)
                        if known is None or _badness(step) > _badness(known):
                            worst[spot] = step
            except IRError as error:
                if inputs is None and isinstance(samples, int) and whole.parameters:
                    error.hint = error.hint or RANDOM
                raise
            found.steps = [*worst.values()]
            if isinstance(reference, InPieces):
                found.refused = {
                    whole.layer(key).name: reason for key, reason in reference.refused.items()
                }
            return found
    finally:
        for held in ("process", "content"):  # of a runtime, and of a file of recorded arrays
            if hasattr(reference, held):
                getattr(reference, held).close()


def wrong_layer(
    model: Model, reference: Reference, sample: Sequence[Array], max_seconds: float | None = None
) -> int | None:
    """The id of a layer that is wrong with exact inputs, for one sample.

    The first that is so far off that it would be noticed in a model of its own, else the first.
    """
    first = None
    with within(None, max_seconds) as budget:
        for _, step in _walk(model, reference, check_inputs(model, list(sample)), None, None):
            budget.check_time()
            if step.is_wrong and not step.own <= MODEL_TIMES * step.tolerance:
                return step.place.id
            if step.is_wrong and first is None:
                first = step.place.id
    return first


def refused_layer(
    model: Model, reference: InPieces, sample: Sequence[Array], max_seconds: float | None = None
) -> int | None:
    """The id of a layer that the reference refuses by itself, for one sample."""
    with within(None, max_seconds) as budget:
        for _ in _walk(model, reference, check_inputs(model, list(sample)), None, None):
            budget.check_time()
            if reference.refused:
                break
    return next(iter(reference.refused), None)


def _badness(step: Step) -> tuple[bool, float, float]:
    return step.is_wrong, step.own, step.accumulated


def _samples(
    model: Model,
    reference: Reference,
    inputs: Inputs | None,
    samples: Iterable[Inputs] | int,
    seed: int,
) -> Iterator[Mapping[int, Array]]:
    """The inputs of every sample, checked."""
    if not isinstance(samples, int):
        for one in samples:
            yield check_inputs(model, one)
    elif inputs is not None:
        yield check_inputs(model, inputs)
    elif isinstance(reference, Recorded) and reference.inputs():
        yield check_inputs(model, reference.inputs())
    elif isinstance(reference, Recorded) and model.parameters:
        raise UsageError(
            "the recorded arrays hold no inputs", hint="give those with which they were recorded"
        )
    else:
        if samples < 1:
            raise UsageError(f"{samples} samples are asked for, the least is 1")
        rng = np.random.default_rng(seed)
        for _ in range(samples):
            arrays = check_inputs(model, [fill(x, "random", rng) for x in model.parameters])
            try:
                infer_for(model, arrays)
            except IRError as error:
                error.hint = error.hint or RANDOM
                raise
            yield arrays


def _walk(
    model: Model,
    reference: Reference,
    arrays: Mapping[int, Array],
    tolerance: float | None,
    progress: Callable[[Layer], None] | None,
) -> Iterator[tuple[Spot, Step]]:
    """Go through one sample, piece by piece."""
    inferred = infer_for(model, arrays)
    reference.begin(arrays, inferred)
    judge = Judge(model, reference, inferred, tolerance)
    ours, theirs = judge.ours, judge.theirs
    for layer_id, array in arrays.items():
        ours[layer_id] = theirs[layer_id] = (as_computed(array),)
    sizes: dict[int, int] = {}
    for piece in _pieces(model, Interpreter(model, None, inferred=inferred), inferred, sizes):
        told = dict(reference.told([step.layer for step in piece], theirs))
        for place, step in enumerate(piece):
            if step.kernel is not None:
                yield from judge.layer(step, told)
            rest = [one.layer for one in piece[place + 1 :]]
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


def _pieces(
    model: Model, walk: Interpreter, inferred: Inferred, sizes: Mapping[int, int]
) -> Iterator[list[InterpreterStep]]:
    """The steps in pieces of a few layers, none of which goes on after a layer with a state.

    ``sizes`` are the bytes that layers gave so far.
    """
    piece: list[InterpreterStep] = []
    size, count, held = 0, 0, 0 if model.weights is None else model.weights.size
    most = min(max(held // _PART, _LEAST), _MOST)
    guessed: dict[int, int] = {}
    for step in walk.steps:
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


class Judge:
    """The values of both runs that are still needed, and the judgement on each layer."""

    def __init__(
        self, model: Model, reference: Reference, inferred: Inferred, tolerance: float | None
    ) -> None:
        self.model, self.reference, self.inferred = model, reference, inferred
        self.tolerance = tolerance
        self.ours: dict[int, Sequence[Array]] = {}
        self.theirs: dict[int, Sequence[Array]] = {}
        #: Layers that depend on constants alone: their values belong to those that take them.
        self.fixed = from_constants(model)

    def untold(self, layers: Iterable[Layer], told: Mapping[Spot, Array]) -> bool:
        """Whether of some layer that has values of its own nothing is told."""
        return any(
            layer.type not in ("Parameter", "Result")
            and layer.id not in self.fixed
            and (layer.id, 0) not in told
            for layer in layers
        )

    def layer(
        self, step: InterpreterStep, told: Mapping[Spot, Array]
    ) -> Iterator[tuple[Spot, Step]]:
        """Compute a layer from both runs' values, and compare it with what is told of it."""
        layer = step.layer
        if layer.id in self.fixed:
            with np.errstate(all="ignore"):
                made = made_of_constants(step, self.ours, self.inferred.of(layer))
            self.ours[layer.id] = self.theirs[layer.id] = made
            return
        with np.errstate(all="ignore"), layer.at():
            step, given = lean(step, self.ours)
            assert step.kernel is not None
            outputs = step.kernel(*given)
        self.ours[layer.id] = self.theirs[layer.id] = outputs
        if layer.op is not None and layer.op.is_random:
            found = [told.get((layer.id, i), array) for i, array in enumerate(outputs)]
            self.ours[layer.id] = self.theirs[layer.id] = tuple(found)
            return
        there = [
            array if i in self.fixed else self.theirs[i][k]
            for array, (i, k) in zip(given, step.sources, strict=True)
        ]
        own = self._own(step, given, there, outputs)
        values = outputs if own is None else own
        self.theirs[layer.id] = tuple(
            self._meant(told.get((layer.id, i), array), array) for i, array in enumerate(values)
        )
        if layer.type == "Result":
            return
        for index, array in enumerate(outputs):
            wanted = told.get((layer.id, index))
            if wanted is not None:
                yield (layer.id, index), self._judged(step, index, there, array, own, wanted)

    def _own(
        self,
        step: InterpreterStep,
        given: Sequence[Array],
        there: Sequence[Array],
        outputs: tuple[Array, ...],
    ) -> tuple[Array, ...] | None:
        """What the layer gives for the reference's inputs; None where it does not take them."""
        pairs = [*zip(given, there, strict=True)]
        if all(identical(a, b) for a, b in pairs):
            return outputs
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
            return None
        assert step.kernel is not None
        try:
            with np.errstate(all="ignore"), step.layer.at():
                return step.kernel(*there)
        except REFUSALS:
            return None

    def _allowed(self, step: InterpreterStep) -> float:
        """How far a layer may be off."""
        if self.tolerance is not None:
            return self.tolerance
        said = self.reference.tolerance(step.layer)
        if said is not None:
            return said
        types = [tensor.type for tensor in self.inferred.of(step.layer)]
        types += [self.inferred.tensors[i][k].type for i, k in step.sources]
        return max((TOLERANCES.get(kind, 0.0) for kind in types), default=0.0)

    def _sayable(self, array: Array, told: Array) -> Array:
        """An array, of numbers that the reference cannot hold what it tells in their place."""
        if not self.reference.narrows or array.dtype != np.int64 or array.shape != told.shape:
            return array
        return np.where(array == in_32_bits(array), array, told)

    def _meant(self, told: Array, own: Array) -> Array:
        """What is told, but numbers that the reference cannot hold as they are here."""
        if not self.reference.narrows or told.dtype != np.int64 or told.shape != own.shape:
            return told
        return np.where(own == in_32_bits(own), told, own)

    def _judged(
        self,
        step: InterpreterStep,
        index: int,
        there: Sequence[Array],
        array: Array,
        own: tuple[Array, ...] | None,
        wanted: Array,
    ) -> Step:
        allowed = self._allowed(step)
        ours = self._sayable(array, wanted)
        found = ours if own is None else self._sayable(own[index], wanted)
        total = error(ours, wanted)
        alone = 0.0 if own is None else error(found, wanted)
        verdict, reason = "equal", ""
        if own is None:
            verdict, reason = "inherited", "its inputs are of other shapes there"
        elif alone > allowed:
            verdict, reason = self._verdict(step, index, there, found, wanted, allowed)
        elif total > allowed:
            verdict = "inherited"
        elif alone or total:
            verdict = "rounding"
        layer = step.layer
        constants = tuple(
            source[0].name
            for source in self.model.sources(layer)
            if source is not None and source[0].id in self.fixed
        )
        place = Place(layer.id, layer.name, layer.type, layer.version)
        return Step(
            place, index, alone, total, allowed, verdict, reason=reason, constants=constants
        )

    def _verdict(
        self,
        step: InterpreterStep,
        index: int,
        there: Sequence[Array],
        found: Array,
        wanted: Array,
        allowed: float,
    ) -> tuple[str, str]:
        """What is the matter with a layer that is off by more than is allowed."""
        if found.shape != wanted.shape:
            return "shape", f"the shape is {found.shape}, there {wanted.shape}"
        if found.dtype.kind == "T" or wanted.dtype.kind == "T":
            return "wrong", "texts differ"
        bad = [endless(found), endless(wanted)]
        if bad[0] != bad[1]:
            return "NaN", f"{bad[0]} values are NaN or infinite, there {bad[1]}"
        if (
            step.layer.type == "TopK"
            and index == 1
            and _equal_ranks(step, there[0], found, wanted)
        ):
            return "ties", "the values at other places are the same, give or take a rounding"
        if allowed and self._stands_on_edge(step, index, there, found, wanted, allowed):
            if found.dtype.kind in "iub":
                return "ties", "the decision is between values that rounding tells apart"
            return "rounding", "the layer makes rounding of its inputs larger"
        worst = np.unravel_index(farthest(found, wanted), found.shape) if found.ndim else ()
        place = ",".join(str(int(i)) for i in worst)
        return "wrong", f"[{place}] is {found[worst]:.6g}, there {wanted[worst]:.6g}"

    def _stands_on_edge(
        self,
        step: InterpreterStep,
        index: int,
        there: Sequence[Array],
        found: Array,
        wanted: Array,
        allowed: float,
    ) -> bool:
        """Whether a result moves as far when the inputs are shaken in their last digits."""
        moving = [
            place
            for place, (i, _) in enumerate(step.sources)
            if i not in self.fixed and there[place].dtype.kind == "f"
        ]
        if not moving or has_state(step.layer):
            return False
        assert step.kernel is not None
        # What is within the tolerance needs no explanation.
        places = too_far(found, wanted, allowed)
        right, far = real(found.flat[places]), real(wanted.flat[places])
        with np.errstate(all="ignore"):
            off, reach = np.abs(right - far), np.zeros(len(places))
            for turn in range(_SHAKES):
                shake, given = Shake(turn), list(there)
                for place in moving:
                    given[place] = shake(there[place], allowed)
                try:
                    moved = step.kernel(*given)[index]
                except REFUSALS:
                    return False
                if moved.shape != found.shape:
                    return True
                now = np.abs(real(moved.flat[places]) - right)
                np.maximum(reach, now, out=reach)
                if (off <= 2 * reach).all():
                    return True
        return False


def _equal_ranks(step: InterpreterStep, data: Array, found: Array, wanted: Array) -> bool:
    """Whether the places that a TopK tells are those of the same values."""
    said = step.layer.data
    axis = int(said.get("axis", "-1"))
    size = data.shape[axis]
    if not ((wanted >= 0) & (wanted < size)).all():
        return False
    one, two = (np.take_along_axis(data, x.astype(np.int64), axis) for x in (found, wanted))
    if said.get("sort") != "value":
        one, two = np.sort(one, axis), np.sort(two, axis)
    return error(one, two) <= TOLERANCES.get(ElementType.of(data.dtype), 0.0)
