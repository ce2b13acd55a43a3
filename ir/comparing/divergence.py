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

from ...layers.budget import within
from ...layers.leftovers import tidy
from ...schemas import Array, IRError, UsageError
from ...schemas.numbers import at_least, random_of
from ...schemas.printing import Table, counted, printable, printable_name
from ..document import Layer, Model, named_inputs
from ..execution import (
    Inputs,
    check_inputs,
    fill,
    infer_for,
    refuse_unknown,
    sized,
    tell_made_up,
)
from ..faces import Shown
from ..opening import ModelLike, opened
from .extraction import Spot
from .judging import Memory, Step, variable_of
from .pairing import pair_ends
from .recorded import Recorded
from .references import (
    ENDS,
    InPieces,
    OnnxRuntime,
    OtherModel,
    Reference,
    from_constants,
    make_reference,
)
from .rounding import MODEL_TIMES
from .walking import steps_of_sample, walk

#: Names that are listed of many.
_SHOWN = 4


@dataclass(repr=False)
class Comparison(Shown):
    """How a model's run and a reference differ, layer by layer in the order of computing."""

    against: str
    samples: int
    #: The variables of the model, and whether they keep what they hold from sample to sample.
    variables: list[str] = field(default_factory=list)
    sequence: bool = False
    steps: list[Step] = field(default_factory=list)
    #: Layers that the reference refused, and why.
    refused: dict[str, str] = field(default_factory=dict)
    #: The outputs of the model and what it remembers, of which another model or a recording tells.
    outputs: list[Step] = field(default_factory=list)
    #: Layers and outputs without a counterpart, of which nothing is known.
    uncompared: list[str] = field(default_factory=list)
    #: Layers that are others there, and right together: the last make up for the first.
    right_together: list[str] = field(default_factory=list)
    #: How inputs and outputs were paired where no name says which is which: it is a guess.
    pairing: list[str] = field(default_factory=list)

    @property
    def first(self) -> Step | None:
        """The first layer that is wrong with exact inputs."""
        return next((step for step in self.steps if step.is_wrong), None)

    @property
    def parts(self) -> Step | None:
        """The first layer whose result is off, for whatever reason."""
        return next((step for step in self.steps if step.is_off), None)

    @property
    def wrong(self) -> list[Step]:
        """Every layer that is wrong with exact inputs: what would have to stay in f32."""
        return [step for step in self.steps if step.is_wrong]

    @property
    def differing(self) -> list[Step]:
        """Every output, and variable, that differs, though no layer that was compared says why."""
        return [step for step in self.outputs if step.is_wrong]

    @property
    def unread(self) -> list[Step]:
        """Every output of a layer that differs and that nothing reads: no matter to the model."""
        return [step for step in self.steps if step.is_unread]

    def worst(self, most: int) -> list[Step]:
        """The worst layers by their own errors, beside what is allowed; what is read is first."""
        rows = sorted(self.steps, key=lambda step: -step.own / (step.tolerance or 1e-30))
        return sorted(rows, key=lambda step: not step.is_read)[:most]

    def __bool__(self) -> bool:
        return self.first is not None or bool(self.differing)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_table(self) -> Table:
        """The layers, the worst first."""
        worst = sorted(self.steps, key=_badness, reverse=True)
        return Table(
            next(self.lines()),
            ("layer", "operation", "own error", "accumulated", "tolerance"),
            (
                (s.place.name, s.operation, f"{s.own:.3g}", f"{s.accumulated:.3g}", s.tolerance)
                for s in worst
            ),
            len(worst),
            "print(comparison), comparison.first",
        )

    def lines(self, most: int = 10) -> Iterator[str]:
        """What there is to say, the worst layers last."""
        count = len({step.place for step in self.steps})
        head = f"{counted(count, 'layer')} against {self.against}"
        head += f", {counted(self.samples, 'sample')}"
        differing = self.differing
        if self.first is None and differing:
            variables = sum(bool(step.variable) for step in self.outputs)
            outputs = f"{len(differing)} of {counted(len(self.outputs) - variables, 'output')}"
            outputs += f" and {counted(variables, 'variable')}" if variables else ""
            verb = "differs" if len(differing) == 1 else "differ"
            yield f"{head}: no layer is wrong, but {outputs} {verb}"
        elif not self.steps and self.outputs:
            agree = "agrees" if len(self.outputs) == 1 else "agree"
            yield f"{head}: {counted(len(self.outputs), 'output')} {agree}"
        elif self.first is None:
            largest = max((step.own for step in self.steps if step.is_read), default=0.0)
            yield f"{head}: none is wrong, the largest error of a layer is {largest:.3g}"
        else:
            yield f"{head}: {len(self.wrong)} wrong"
            yield f"first: {printable(self.first.alone)}"
            for step in self.first.inside():
                yield f"in its {step.within}: {printable(step.alone)}"
        yield from self.pairing
        for step in differing[: most or len(differing)]:
            yield printable(step) if step.variable else f"output {printable(step)}"
        if self.variables and not self.sequence:
            begin = "begins" if len(self.variables) == 1 else "begin"
            text = f"{counted(len(self.variables), 'variable')} {begin} anew in each sample: "
            yield f"{text}{_some(self.variables)}; a sequence of samples keeps what is assigned"
        if self.uncompared:
            yield f"without a counterpart there, not compared: {_some(self.uncompared)}"
        if self.right_together:
            yield f"other layers there, right together: {_some(self.right_together)}"
        if self.unread:
            spots = [f"{one.place.name}, {one.which}" for one in self.unread]
            yield f"differ, but nothing reads them: {_some(spots, '; ')}"
        off = self.parts
        if off is not None and off is not self.first:
            yield f"results part at {printable(off)}"
        for name, reason in self.refused.items():
            yield f"not asked: {printable(name)}: {printable(reason, 300)}"
        for step in self.worst(most):
            if step.own or step.is_wrong:
                yield f"  {printable(step.alone)}"

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        first, parts = self.first, self.parts
        return {
            "against": self.against,
            "samples": self.samples,
            "variables": self.variables,
            "sequence": self.sequence,
            "first": None if first is None else asdict(first),
            "parts": None if parts is None else asdict(parts),
            "keep_in_f32": [step.place.name for step in self.wrong],
            "steps": [asdict(step) for step in self.steps],
            "outputs": [asdict(step) for step in self.outputs],
            "uncompared": self.uncompared,
            "right_together": self.right_together,
            "pairing": self.pairing,
            "refused": self.refused,
        }


@tidy
def compare(
    model: ModelLike,
    against: ModelLike = "openvino",
    inputs: Inputs | None = None,
    *,
    samples: Iterable[Inputs] | int = 1,
    seed: int = 0,
    sequence: bool = False,
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
        sequence: Whether variables keep from sample to sample what they hold, as in calls one
            after another; else each sample begins anew.
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
    if tolerance is not None:
        at_least(0, tolerance, "the tolerance")
    if sequence:
        _refuse_inner_variables(whole)
    reference = make_reference(whole, against, onnx)
    try:
        with within(max_memory, max_seconds):
            rows = list(_samples(whole, reference, inputs, samples, seed))
            found = Comparison(reference.name, len(rows), _variables(whole), sequence)
            memory = Memory(sequence)
            worst: dict[Spot, Step] = {}
            together: set[int] = set()
            try:
                if isinstance(reference, OnnxRuntime):
                    found.pairing = pair_ends(reference, rows[0])
                for number, given in enumerate(rows):
                    steps, others = steps_of_sample(
                        whole, reference, given, tolerance, progress, memory
                    )
                    together |= others
                    for spot, step in steps.items():
                        known = worst.get(spot)
                        if known is None or _badness(step) > _badness(known):
                            worst[spot] = _of_sample(step, number)
            except IRError as error:
                recorded = isinstance(reference, Recorded)
                if inputs is None and isinstance(samples, int) and not recorded:
                    tell_made_up(error, whole)
                raise
            found.steps = [x for x in worst.values() if x.place.type not in ENDS]
            found.outputs = [x for x in worst.values() if x.place.type in ENDS]
            if isinstance(reference, InPieces):
                found.refused = {
                    whole.layer(key).name: reason for key, reason in reference.refused.items()
                }
            elif isinstance(reference, (OnnxRuntime, OtherModel, Recorded)):
                together -= {layer_id for layer_id, _ in worst}  # told of another sample
                found.right_together = [x.name for x in whole.order() if x.id in together]
                found.uncompared = _uncompared(whole, reference, worst, together)
            if not worst:
                _refuse_nothing(whole, reference, found.refused)
            return found
    finally:
        for held in ("process", "content"):  # of a runtime, and of a file of recorded arrays
            if hasattr(reference, held):
                getattr(reference, held).close()


def _to_compare(model: Model) -> list[Layer]:
    """The layers that compute something from the inputs, and nothing at random."""
    fixed = from_constants(model)
    return [
        layer
        for layer in model.order()
        if layer.type not in ("Parameter", "Result", "ReadValue", "Assign")
        and layer.id not in fixed
        and not (layer.op is not None and layer.op.is_random)
    ]


def _variables(model: Model) -> list[str]:
    """The ids of the variables that a model, or a body in it, reads and assigns."""
    layers = [x for x in model.everywhere() if x.type in ("ReadValue", "Assign")]
    return [*dict.fromkeys(map(variable_of, layers))]


def _refuse_inner_variables(model: Model) -> None:
    """Refuse a sequence where a body remembers something: it is run for both sides."""
    whole = {id(layer) for layer in model.layers}
    for layer in model.everywhere():
        if layer.type == "Assign" and id(layer) not in whole:
            raise UsageError(
                f'"{layer.name}" assigns variable "{variable_of(layer)}" in a body: such samples '
                "cannot be a sequence",
                hint="compare samples that begin anew",
            )


def _uncompared(
    model: Model, reference: Reference, worst: Mapping[Spot, Step], together: set[int]
) -> list[str]:
    """Layers and outputs of which the reference told nothing."""
    known = {layer_id for (layer_id, _), step in worst.items() if step.is_read} | together
    ends = [*model.results, *(x for x in model.order() if x.type == "Assign")]
    for end in ends:
        source = model.producer(end, 0)
        if end.type == "Assign" and isinstance(reference, OtherModel):
            continue  # that the tensor is there does not say that it is remembered
        if source is not None and (source[0].id, source[1]) in worst:
            known.add(end.id)  # by whatever name: the tensor that it hands out was compared
    return [x.name for x in (*_to_compare(model), *ends) if x.id not in known]


def _refuse_nothing(model: Model, reference: Reference, refused: Mapping[str, str]) -> None:
    """Refuse to call right what was compared with nothing, though there are layers to compare."""
    layers = _to_compare(model)
    if not layers:
        return
    if refused:
        name, reason = next(iter(refused.items()))
        raise UsageError(
            f"nothing was compared: {reference.name} refuses {len(refused)} of {len(layers)} "
            f"layers; {printable(name)}: {printable(reason, 300)}"
        )
    said = ", ".join(names[0] for _, names in named_inputs(model.parameters)) or "none"
    theirs: Sequence[str] | None = None
    if isinstance(reference, OtherModel):
        theirs = [names[0] for _, names in named_inputs(reference.other.parameters)]
    elif isinstance(reference, OnnxRuntime):
        theirs = reference.inputs
    told = "" if theirs is None else f", its {', '.join(theirs) or 'none'}"
    raise UsageError(
        f"nothing was compared: of {len(layers)} layers none has a counterpart in "
        f"{reference.name}; the model's inputs are {said}{told}",
        hint="compare with another version of the same model, of its names or outputs",
    )


@tidy
def wrong_layer(
    model: Model, reference: Reference, sample: Sequence[Array], max_seconds: float | None = None
) -> int | None:
    """The id of a layer that is wrong with exact inputs, for one sample.

    The first that is so far off that it would be noticed in a model of its own, else the first.
    """
    first = None
    with within(None, max_seconds) as budget:
        for _, step in walk(model, reference, check_inputs(model, list(sample)), None, None):
            budget.check_time()
            if step.is_wrong and not step.own <= MODEL_TIMES * step.tolerance:
                return step.place.id
            if step.is_wrong and first is None:
                first = step.place.id
    return first


@tidy
def refused_layer(
    model: Model, reference: InPieces, sample: Sequence[Array], max_seconds: float | None = None
) -> int | None:
    """The id of a layer that the reference refuses by itself, for one sample."""
    with within(None, max_seconds) as budget:
        for _ in walk(model, reference, check_inputs(model, list(sample)), None, None):
            budget.check_time()
            if reference.refused:
                break
    return next(iter(reference.refused), None)


def _some(names: Sequence[str], between: str = ", ") -> str:
    """The first of many names."""
    more = f"{between}…" if len(names) > _SHOWN else ""
    return between.join(map(printable_name, names[:_SHOWN])) + more


def _of_sample(step: Step, number: int) -> Step:
    inner = None if step.inner is None else _of_sample(step.inner, number)
    return replace(step, sample=number, inner=inner)


def _badness(step: Step) -> tuple[bool, float, float]:
    return step.is_wrong or step.is_unread, step.own, step.accumulated


def _samples(
    model: Model,
    reference: Reference,
    inputs: Inputs | None,
    samples: Iterable[Inputs] | int,
    seed: int,
) -> Iterator[Mapping[int, Array]]:
    """The inputs of every sample, checked."""
    if isinstance(samples, int) and samples < 1:
        raise UsageError(f"{samples} samples are asked for, the least is 1")
    if not isinstance(samples, int):
        for one in several(samples):
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
        rng, words = random_of(seed), sized(model, {})
        for _ in range(samples):
            made = [fill(x, words.get(x.id, "random"), rng) for x in model.parameters]
            arrays = check_inputs(model, made)
            try:
                infer_for(model, arrays)
            except IRError as error:
                tell_made_up(error, model)
                raise
            yield arrays


def several(samples: Iterable[Inputs]) -> list[Inputs]:
    """Samples as a caller gives them; there is at least one."""
    try:
        found = list(samples)
    except TypeError:
        what = f"samples is {type(samples).__name__}: several samples are wanted, or their number"
        raise UsageError(what, hint="for one sample give inputs") from None
    if not found:
        raise UsageError("no sample is given, the least is 1")
    return found
