"""What is the matter with a layer, which is computed from the values of both runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...layers.casting import as_computed
from ...schemas import Array, ElementType, InternalError, IRError, LimitError
from ..document import Layer, Model
from ..execution import InterpreterStep, State
from ..inference import Inferred
from .differences import Place
from .extraction import Spot
from .references import (
    ENDS,
    REFUSALS,
    TOLERANCES,
    InPieces,
    Reference,
    from_constants,
    has_state,
    in_32_bits,
)
from .rounding import (
    MODEL_TIMES,
    Shake,
    allowed_for,
    endless,
    error,
    farthest,
    may_be_rounding,
    real,
    same_bits,
    too_far,
)
from .weights import lean, made_of_constants

#: How often inputs are shaken to see whether a result stands on an edge.
_SHAKES = 8
#: From here on a number is endless in f16.
_HALF_ENDS = 65520
#: Operations that round numbers to whole ones.
_ROUNDING = ("Convert", "ConvertLike", "GridSample", "Interpolate")


@dataclass(frozen=True)
class Step:
    """How one output of a layer differs from the reference, in the worst sample.

    Verdicts are ``equal``, ``rounding`` (within tolerance, or its inputs' rounding made larger),
    ``ties`` (a decision between values that rounding tells apart), ``inherited`` (right for its
    inputs, which were off), ``NaN``, ``shape`` and ``wrong``. An output that nothing reads may be
    anything: whatever its verdict, it is neither wrong nor off.
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
    #: The variable that is assigned.
    variable: str = ""
    #: How many outputs the layer has; whether a layer that matters takes this one.
    outputs: int = 1
    is_read: bool = True
    #: Of a layer in a body: which body, and in which turn of a loop.
    tag: str = ""
    turn: int | None = None
    #: The first layer in a body of this one that is wrong by itself, if that was found.
    inner: Step | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the layer itself is at fault."""
        return self.is_read and self._differs

    @property
    def is_off(self) -> bool:
        """Whether what is read is too far from what is told, for whatever reason."""
        return self.is_read and self.accumulated > self.tolerance

    @property
    def is_unread(self) -> bool:
        """Whether it would be wrong if something read it."""
        return not self.is_read and self._differs

    @property
    def _differs(self) -> bool:
        return self.verdict in ("NaN", "shape", "wrong")

    @property
    def which(self) -> str:
        """Which output it is, where a layer has several."""
        return f"output {self.output}" if self.outputs > 1 else ""

    @property
    def operation(self) -> str:
        """The type of the layer, and which output it is."""
        return f"{self.place.type} {self.which}".strip()

    @property
    def within(self) -> str:
        """In which body it is, and in which turn, where it is in one."""
        return self.tag if self.turn is None else f"{self.tag}, turn {self.turn}"

    @property
    def alone(self) -> str:
        """What is to be said of this layer, without those in its bodies."""
        place = f"{self.place}, {self.which}" if self.which else f"{self.place}"
        head = f'variable "{self.variable}", assigned by ' if self.variable else ""
        text = f"{head}layer {place}: {self.verdict}, its own error {self.own:.3g}"
        text += f", accumulated {self.accumulated:.3g} (tolerance {self.tolerance:.3g})"
        if self.reason:
            text += f"; {self.reason}"
        if self.is_wrong and self.constants:
            text += f"; it takes {', '.join(self.constants)}"
        return text

    def inside(self) -> Iterator[Step]:
        """The layer in a body of this one that is wrong, that in a body of it, and so on."""
        if self.inner is not None:
            yield self.inner
            yield from self.inner.inside()

    def __str__(self) -> str:
        return "; in its ".join([self.alone, *(f"{x.within}: {x.alone}" for x in self.inside())])


class _Case(NamedTuple):
    """An output that differs: made by which layer of what, both values, what is allowed."""

    step: InterpreterStep
    output: int
    there: Sequence[Array]
    found: Array
    wanted: Array
    allowed: float
    #: By how much of its size each input is moved to see what rounding may do.
    shaken: float


@dataclass
class Memory:
    """What variables hold before a sample, and from one to the next where it is kept."""

    is_kept: bool = False
    ours: State = field(default_factory=dict)
    #: As the reference tells it, by our variables; and those of another model.
    theirs: State = field(default_factory=dict)
    others: State = field(default_factory=dict)


class Judge:
    """The values of both runs that are still needed, and the judgement on each layer."""

    def __init__(
        self,
        model: Model,
        reference: Reference,
        inferred: Inferred,
        tolerance: float | None,
        memory: Memory,
    ) -> None:
        self.model, self.reference, self.inferred = model, reference, inferred
        self.tolerance, self.memory = tolerance, memory
        #: What the reference's variables hold afterwards.
        self.assigned: State = {}
        self.ours: dict[int, Sequence[Array]] = {}
        self.theirs: dict[int, Sequence[Array]] = {}
        #: Layers that depend on constants alone: their values belong to those that take them.
        self.fixed = from_constants(model)
        order = model.order()
        #: The place of each layer in the order of computing.
        self.places = {layer.id: place for place, layer in enumerate(order)}
        #: The tensors that some layer takes.
        self._read = {
            (source[0].id, source[1])
            for layer in order
            for source in model.sources(layer)
            if source is not None
        }
        #: What layers are asked for with others that are right by themselves.
        self.in_company: dict[Spot, Step] = {}
        #: The ends of the model that are told: as found here and as told, and their verdicts.
        self._outputs: dict[int, tuple[Array, Array]] = {}
        self._verdicts: dict[int, Step] = {}
        #: Tensors that are told; whether what differs may come of one of their layers.
        self._told: set[Spot] = set()
        self._is_explained = self._is_random = False
        #: Outputs that are wrong though what they hand out is told.
        self._certain: set[int] = set()

    def apart(self, fixed: set[int]) -> Judge:
        """A judge of the same runs that has seen nothing yet, where only ``fixed`` are constant.

        What is known of the whole model is shared: to gather it takes a time that grows with it.
        """
        inner = copy(self)
        inner.fixed = fixed
        inner.assigned, inner.ours, inner.theirs = {}, {}, {}
        inner.in_company, inner._outputs, inner._verdicts = {}, {}, {}
        inner._told, inner._certain = set(), set()
        inner._is_explained = inner._is_random = False
        return inner

    def untold(self, layers: Iterable[Layer], told: Mapping[Spot, Array]) -> bool:
        """Whether of some layer that has values of its own nothing is told."""
        return any(
            layer.type not in ("Parameter", "Result")
            and layer.id not in self.fixed
            and (layer.id, 0) not in told
            for layer in layers
        )

    def layer(
        self, step: InterpreterStep, told: Mapping[Spot, Array], *, alone: bool = True
    ) -> Iterator[tuple[Spot, Step]]:
        """Compute a layer from both runs' values, and compare it with what is told of it.

        What seems wrong is asked for once more where it was not ``alone``: a runtime makes one of
        several layers, and what it tells of those inside may not be what they would give.
        """
        layer = step.layer
        if layer.id in self.fixed and (layer.type != "Result" or (layer.id, 0) not in told):
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
            known = {(layer.id, i) for i in range(len(outputs))} & told.keys()
            self._told |= known
            self._is_random |= not known
            self.ours[layer.id] = self.theirs[layer.id] = tuple(found)
            return
        there = [
            array if i in self.fixed else self.theirs[i][k]
            for array, (i, k) in zip(given, step.sources, strict=True)
        ]
        if layer.type in ENDS:
            self.theirs[layer.id] = (there[0],)
            if (layer.id, 0) in told:
                self._output(step, there, outputs[0], told[layer.id, 0])
            if layer.type == "Assign":
                self._hold(step, there, told)
                self.assigned[variable_of(layer)] = self.theirs[layer.id][0]
            return
        is_read = layer.type == "ReadValue"
        remembered = self.memory.theirs.get(variable_of(layer)) if is_read else None
        own = (remembered,) if remembered is not None else self._own(step, given, there, outputs)
        values = outputs if own is None else own
        self._hold(step, values, told)

        def judged(said: Mapping[Spot, Array]) -> dict[Spot, Step]:
            return {
                (layer.id, index): self._judged(
                    step, index, there, array, own, said[layer.id, index]
                )
                for index, array in enumerate(outputs)
                if (layer.id, index) in said
            }

        steps = judged(told)
        # What differs in what is remembered was told where it was assigned.
        if remembered is not None and not same_bits(remembered, outputs[0]):
            self._is_explained = True
        if not alone and isinstance(self.reference, InPieces) and not has_state(layer):
            wrong = {spot: one for spot, one in steps.items() if one.is_wrong}
            again = self.reference.told([layer], self.theirs) if wrong else {}
            better = judged(again)
            if better and not any(one.is_wrong for one in better.values()):
                steps = better
                self.in_company |= wrong
                self._hold(step, values, again)
        self._told |= steps.keys()
        self._is_explained |= any(
            one.is_wrong or one.verdict == "ties" or one.own > one.tolerance
            for one in steps.values()
            if one.is_read
        )
        yield from steps.items()

    def _hold(
        self, step: InterpreterStep, values: Sequence[Array], told: Mapping[Spot, Array]
    ) -> None:
        """Keep what is told of a layer, in its own types, for those that take it."""
        layer = step.layer
        self.theirs[layer.id] = tuple(
            self._meant(layer, i, told[layer.id, i], array) if (layer.id, i) in told else array
            for i, array in enumerate(values)
        )

    # The outputs of the model.

    def _output(
        self, step: InterpreterStep, there: Sequence[Array], found: Array, wanted: Array
    ) -> None:
        """Compare an output of the model with what is told of it."""
        spot, layer = step.sources[0], step.layer
        if self._is_random and spot not in self._told:
            return  # other random numbers may have gone in
        allowed = allowed_for(wanted) if self.tolerance is None else self.tolerance
        own = (self._held(step.layer, 0, there[0], wanted),)
        one = self._judged(step, 0, there, found, own, wanted, allowed)
        self._verdicts[layer.id] = one
        if one.is_wrong or one.is_off:
            self._outputs[layer.id] = self._held(step.layer, 0, found, wanted), wanted
        # What is told of the layer itself is not what comes out.
        known = spot in self._told or spot[0] in self.fixed
        if one.is_wrong and known and found.shape == wanted.shape:
            self._certain.add(layer.id)

    def outputs(self, arrays: Mapping[int, Array]) -> Iterator[tuple[Spot, Step]]:
        """The verdicts on the outputs of the model: rounding may be the cause, or a layer."""
        doubtful = {
            key
            for key, one in self._verdicts.items()
            if (one.is_off or one.is_wrong)
            and key not in self._certain
            and one.verdict != "shape"
            and not (self._is_explained and not one.is_wrong)
        }
        if doubtful:
            results = self.model.results
            ends = [*results, *(x for x in self.model.order()
                                if x.type == "Assign" and x.id in doubtful)]  # fmt: skip
            pairs = [self._outputs[x.id] if x.id in doubtful else (self.ours[x.id][0],) * 2
                     for x in ends]  # fmt: skip
            sample = [arrays[layer.id] for layer in self.model.parameters]
            ours, theirs = [one for one, _ in pairs], [two for _, two in pairs]
            rounding = may_be_rounding(
                self.model, sample, theirs, ours, ends=ends, state=self.memory.ours
            )
            for key in doubtful:
                one = self._verdicts[key]
                verdict, reason = "wrong", "no layer that was compared is wrong"
                if rounding:
                    verdict, reason = "rounding", "the model makes rounding larger"
                elif one.is_wrong:
                    continue
                self._verdicts[key] = replace(one, verdict=verdict, reason=reason)
        for key, one in self._verdicts.items():
            yield (key, 0), one

    def as_a_whole(self, arrays: Mapping[int, Array]) -> Iterator[tuple[Spot, Step]]:
        """What is wrong only with other layers around it, if the outputs of the model are, too."""
        reference = self.reference
        if not self.in_company or not isinstance(reference, InPieces) or self.memory.ours:
            return
        sample = [arrays[layer.id] for layer in self.model.parameters]
        try:
            told = [as_computed(one) for one in reference.compute(self.model, sample)]
        except LimitError:
            raise
        except (IRError, InternalError):
            return  # it refuses the whole: nothing is known of that
        for layer, one in zip(self.model.results, told, strict=True):
            mine = self._held(layer, 0, self.ours[layer.id][0], one)
            # What has come of rounding when it was asked layer by layer.
            rounded = error(mine, self.theirs[layer.id][0])
            if error(mine, one) > max(allowed_for(one), MODEL_TIMES * rounded):
                spot, step = next(iter(self.in_company.items()))
                reason = f"only with layers around it, as in the whole model; {step.reason}"
                yield spot, replace(step, reason=reason)
                return

    def _own(
        self,
        step: InterpreterStep,
        given: Sequence[Array],
        there: Sequence[Array],
        outputs: tuple[Array, ...],
    ) -> tuple[Array, ...] | None:
        """What the layer gives for the reference's inputs; None where it does not take them."""
        pairs = [*zip(given, there, strict=True)]
        if all(same_bits(a, b) for a, b in pairs):
            return outputs
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
            return None
        assert step.kernel is not None
        try:
            with np.errstate(all="ignore"), step.layer.at():
                return step.kernel(*there)
        except REFUSALS:
            return None

    def _allowed(self, step: InterpreterStep, wanted: Array) -> float:
        """How far a layer may be off."""
        if self.tolerance is not None:
            return self.tolerance
        said = self.reference.tolerance(step.layer)
        if said is not None:
            return said
        types = [tensor.type for tensor in self.inferred.of(step.layer)]
        types += [self.inferred.tensors[i][k].type for i, k in step.sources]
        types.append(ElementType.of(wanted.dtype))  # it may have been recorded in fewer bits
        return max((TOLERANCES.get(kind, 0.0) for kind in types), default=0.0)

    def _beyond(self, layer: Layer, index: int, array: Array, told: Array) -> Array | bool:
        """Where numbers of an output are beyond what the reference, or its type, can hold."""
        if self.reference.narrows and array.dtype in (np.int64, np.uint64, np.float64):
            return np.asarray((array != in_32_bits(array)) & ~np.isnan(array))
        if array.dtype == np.float32 and told.dtype.kind == "f":
            source = self.model.sources(layer)[0] if layer.type == "Result" else (layer, index)
            if source is not None and self.inferred.of(source[0])[source[1]].type == "f16":
                # Handed out it is endless; inside it goes on in 32 bits, here as there.
                return np.isinf(told) & (np.sign(told) * array >= _HALF_ENDS)
        return False

    def _held(self, layer: Layer, index: int, array: Array, told: Array) -> Array:
        """An array, of numbers that the reference cannot hold what it tells in their place."""
        if array.shape != told.shape or "T" in (array.dtype.kind, told.dtype.kind):
            return array
        beyond = self._beyond(layer, index, array, told)
        return array if beyond is False else np.where(beyond, told, array)

    def _meant(self, layer: Layer, index: int, told: Array, own: Array) -> Array:
        """What is told, in the layer's own type; what cannot be held is as it is here."""
        if own.dtype.kind == "T" or told.dtype.kind in "TSUO":
            return told
        with np.errstate(all="ignore"):
            meant = told.astype(own.dtype, copy=False)
        if told.shape != own.shape:
            return meant
        beyond = self._beyond(layer, index, own, told)
        return meant if beyond is False else np.where(beyond, own, meant)

    def _judged(
        self,
        step: InterpreterStep,
        index: int,
        there: Sequence[Array],
        array: Array,
        own: tuple[Array, ...] | None,
        wanted: Array,
        allowed: float | None = None,
    ) -> Step:
        shaken = self._allowed(step, wanted) if allowed is None else allowed
        allowed = shaken if allowed is not None or self._may_round(step, array) else 0.0
        ours = self._held(step.layer, index, array, wanted)
        found = ours if own is None else self._held(step.layer, index, own[index], wanted)
        total = error(ours, wanted)
        alone = 0.0 if own is None else error(found, wanted)
        verdict, reason = "equal", ""
        if own is None:
            verdict, reason = "inherited", "its inputs are of other shapes there"
        elif alone > allowed:
            case = _Case(step, index, there, found, wanted, allowed, shaken)
            verdict, reason = self._verdict(case)
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
        is_read = layer.type in ENDS or (layer.id, index) in self._read
        return Step(
            place, index, alone, total, allowed, verdict, reason=reason, constants=constants,
            outputs=len(layer.outputs), is_read=is_read,
            variable=variable_of(layer) if layer.type == "Assign" else "",
        )  # fmt: skip

    def _may_round(self, step: InterpreterStep, array: Array) -> bool:
        """Whether an output may be a little off: whole numbers are only where they are rounded."""
        return (
            self.tolerance is not None
            or array.dtype.kind not in "iub"
            or step.layer.type in _ROUNDING
        )

    def _verdict(self, case: _Case) -> tuple[str, str]:
        """What is the matter with a layer that is off by more than is allowed."""
        step, index, there, found, wanted, _, shaken = case
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
        if shaken and self._stands_on_edge(case):
            if found.dtype.kind in "iub":
                return "ties", "the decision is between values that rounding tells apart"
            return "rounding", "the layer makes rounding of its inputs larger"
        worst = np.unravel_index(farthest(found, wanted), found.shape) if found.ndim else ()
        place = ",".join(str(int(i)) for i in worst)
        finite = np.isfinite(found[worst]) and np.isfinite(wanted[worst])
        said = f"[{place}] is {found[worst]:.6g}, there {wanted[worst]:.6g}"
        return "wrong" if finite else "NaN", said

    def _stands_on_edge(self, case: _Case) -> bool:
        """Whether a result moves as far when the inputs are shaken in their last digits."""
        step, index, there, found, wanted, allowed, shaken = case
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
                    given[place] = shake(there[place], shaken)
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


def variable_of(layer: Layer) -> str:
    """The id of the variable that a layer reads or assigns."""
    return layer.data.get("variable_id", "")


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
