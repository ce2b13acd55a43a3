"""What a run is compared with: runtimes, other models, recorded tensors, half precision.

A reference tells the tensors of some layers at a time, so that never all are held.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from ...layers.casting import as_computed
from ...schemas import (
    Array,
    ElementType,
    InternalError,
    IRError,
    LimitError,
    Shape,
    Tensor,
    UsageError,
)
from ...schemas.errors import MISTAKES
from ...schemas.shapes import compatible
from ..document import Layer, Model, named_inputs, paired_by_name
from ..engine import Program
from ..execution import Interpreter, State, check_inputs, infer_for
from ..inference import Inferred
from .extraction import Spot, Values, extract
from .fingerprints import Numbers
from .matching import Matching, match
from .naming import Names
from .recorded import Recorded
from .runtimes import RuntimeProcess, run_openvino
from .weights import lean, made_of_constants


class Reference(Protocol):
    """What tells the values that are taken for right."""

    name: str
    #: Whether it tells more when layers that it did not tell are known.
    asks_again: bool
    #: Whether it holds integers of 64 bits in 32.
    narrows: bool

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Get ready for one sample; its inputs are given by layer id."""

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """The tensors of layers that come next; ``known`` are its values of what feeds them."""

    def tolerance(self, layer: Layer) -> float | None:
        """How far a layer may be off; None: as its type allows."""


class InPieces:
    """What runs whole models, asked for each piece of the graph with all its tensors."""

    asks_again = True
    narrows = False

    def __init__(
        self, model: Model, name: str, compute: Callable[[Model, Sequence[Array]], Sequence[Array]]
    ) -> None:
        self.model, self.name, self.compute = model, name, compute
        self.fixed = from_constants(model)
        self.places = {layer.id: place for place, layer in enumerate(model.order())}
        #: Why layers could not be asked about, by their ids.
        self.refused: dict[int, str] = {}

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Keep the types and shapes of this sample."""
        self.inferred = inferred

    def tolerance(self, layer: Layer) -> float | None:
        """As its type allows."""
        return None

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """Their outputs; where a piece is refused, those of its halves."""
        rows = [x for x in layers if x.type not in ("Parameter", "Result", "ReadValue", "Assign")]
        rows = [x for x in rows if x.id not in self.fixed and x.id not in self.refused]
        rows = self._within_reach(rows, known)
        if not rows:
            return {}

        def tensor(layer: Layer, index: int) -> Tensor:
            found = self.inferred.of(layer)[index]
            kind = found.type
            array = known[layer.id][index]
            return Tensor(ElementType.of(array.dtype) if kind.is_dynamic else kind, array.shape)

        # What is made of constants comes along: as inputs, weights would be several times as
        # large, and what is declared as f16, which is computed in f32, would be rounded.
        made = self._made_of_constants(rows)
        part = extract(self.model, [*made, *rows], tensor, every_output=True, silent=self.fixed)
        given = [known[layer_id][index] for layer_id, index in part.inputs]
        given = [in_32_bits(array) if self.narrows else array for array in given]
        try:
            found = self.compute(part.model, given)
        except LimitError:
            raise
        except (IRError, InternalError) as error:
            if len(rows) == 1:
                self.refused[rows[0].id] = error.message
                return {}
            half = len(rows) // 2
            first = self.told(rows[:half], known)
            # What takes a layer that is refused is asked for again when that is computed.
            return {**first, **self.told(rows[half:], _with_told(known, rows[:half], first))}
        return {spot: as_computed(array) for spot, array in zip(part.outputs, found, strict=True)}

    def _made_of_constants(self, rows: Sequence[Layer]) -> list[Layer]:
        """The layers between constants and what takes them, in order."""
        found: dict[int, Layer] = {}
        pending = [*rows]
        while pending:
            for source in self.model.sources(pending.pop()):
                if source is None or source[0].is_constant or source[0].id not in self.fixed:
                    continue
                if source[0].id not in found:
                    found[source[0].id] = source[0]
                    pending.append(source[0])
        return sorted(found.values(), key=lambda layer: self.places[layer.id])

    def _within_reach(self, layers: Sequence[Layer], known: Values) -> list[Layer]:
        """The layers all of whose inputs are known, constants, or given by layers before."""
        found: list[Layer] = []
        reached = known.keys() | self.fixed
        for layer in layers:
            if all(source and source[0].id in reached for source in self.model.sources(layer)):
                found.append(layer)
                reached.add(layer.id)
        return found


def in_32_bits(array: Array) -> Array:
    """What is left of numbers of 64 bits in half of them."""
    if array.dtype == np.float64:
        most = np.finfo(np.float32).max
        return np.where(np.isinf(array), array, np.clip(array, -most, most))
    if array.dtype not in (np.int64, np.uint64):
        return array
    ends = np.iinfo(np.int32)
    return np.clip(array, 0 if array.dtype == np.uint64 else ends.min, ends.max)


def _with_told(known: Values, layers: Sequence[Layer], told: Mapping[Spot, Array]) -> Values:
    """What is known, and what was told of layers."""
    found = dict(known)
    for layer in layers:
        arrays = [told.get((layer.id, index)) for index in range(len(layer.outputs))]
        if all(array is not None for array in arrays):
            found[layer.id] = [array for array in arrays if array is not None]
    return found


class OpenVINO(InPieces):
    """OpenVINO's CPU at f32."""

    narrows = True

    def __init__(self, model: Model, process: RuntimeProcess) -> None:
        self.process = process
        super().__init__(model, f"OpenVINO {process.version}", partial(run_openvino, self.process))

    def tolerance(self, layer: Layer) -> float | None:
        """As its type allows; of Fourier transforms that are no power of two, by their length.

        It sums up as many products of turns whose angles it computes in f32.
        """
        if layer.type not in _TRANSFORMS or self.inferred.of(layer)[0].type is not ElementType.F32:
            return None
        ports = [self.inferred.of(layer)[0]]
        ports += [self.inferred.of(x[0])[x[1]] for x in self.model.sources(layer)[:1] if x]
        sizes = [size for port in ports for size in port.shape.sizes or ()]
        longest = max((size for size in sizes if isinstance(size, int)), default=0)
        return TOLERANCES[ElementType.F32] + _EACH_TURN * longest


class Compiled(InPieces):
    """The compiled program of each piece."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, "compiled", _compiled)

    def tolerance(self, layer: Layer) -> float | None:
        """As its type allows; products of convolutions may be of sums, which costs two bits."""
        sums = layer.type in ("Convolution", "GroupConvolution")
        single = self.inferred.of(layer)[0].type is ElementType.F32
        return 4 * TOLERANCES[ElementType.F32] if sums and single else None


def _compiled(part: Model, given: Sequence[Array]) -> list[Array]:
    """The outputs of a program that is needed but once."""
    found = [*Program(part, threads=1)(list(given)).values()]
    gc.collect()  # the memory of its tensors is held by its steps, and these by one another
    return found


class OnnxRuntime:
    """The same model as ONNX, its tensors found by their names."""

    asks_again = False
    narrows = False

    def __init__(self, model: Model, path: str, process: RuntimeProcess) -> None:
        self.model, self.path, self.process = model, path, process
        self.name = f"ONNX Runtime {process.version}"
        self.inputs, made, outputs = process.ask("onnx_names", path)
        self.held, self.names = {*made, *outputs}, Names(model)
        #: Of no name in common outputs are paired as inputs are: in order.
        self.in_order = not self.names.known & self.held and len(model.results) == len(outputs)
        if self.in_order:
            self.names.outputs = {
                result.id: [name] for result, name in zip(model.results, outputs, strict=True)
            }

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Give the inputs their ONNX names."""
        parameters = self.model.parameters
        named = [names for _, names in named_inputs(parameters)]
        places = paired_by_name("inputs", named, self.path, self.inputs)
        self.given = {
            self.inputs[place]: arrays[parameter.id]
            for place, parameter in zip(places, parameters, strict=True)
        }

    def tolerance(self, layer: Layer) -> float | None:
        """As its type allows."""
        return None

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """Those of their outputs that have a name there."""
        wanted = {spot: names[0] for spot, names in self.names.told(layers, self.held)}
        if not wanted:
            return {}
        asked = [*dict.fromkeys(wanted.values())]
        found = self.process.ask("onnxruntime_run", self.path, asked, self.given)
        return {spot: as_computed(found[name]) for spot, name in wanted.items()}


#: Fourier transforms, and how far OpenVINO's may be off for each element that is transformed.
_TRANSFORMS = ("DFT", "IDFT", "RDFT", "IRDFT")
_EACH_TURN = 4e-6


class OtherModel:
    """Another model, its layers paired with ours by what they compute."""

    asks_again = False
    narrows = False

    def __init__(self, model: Model, other: Model) -> None:
        self.other = other
        self.name = other.place or other.name
        self.numbers = Numbers()
        self.matching: Matching = match(model, other, self.numbers)
        self.model = model
        for one, two in zip(*self._unpaired_results(), strict=False):
            self.matching.pair(one, two)
        self.order = other.order()
        self.places = {layer.id: place for place, layer in enumerate(self.order)}
        #: What its variables hold at first.
        self.state: State = {}
        #: What depends on constants alone, in either.
        self.fixed = from_constants(model), from_constants(other)

    def _unpaired_results(self) -> tuple[list[Layer], list[Layer]]:
        """The outputs of both that are of other names, if they are as many."""
        ones = [x for x in self.model.results if x.id not in self.matching.forth]
        twos = [x for x in self.other.results if x.id not in self.matching.back]
        return (ones, twos) if len(ones) == len(twos) else ([], [])

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Start the other model on the same inputs."""
        self.expected = inferred
        given: dict[int, Array] = {}
        for place, parameter in enumerate(self.other.parameters):
            ours = self.matching.back.get(parameter.id)
            if ours is None or ours.id not in arrays:
                raise UsageError(f'input "{parameter.name}" of {self.name} is none of the model')
            array, kind = arrays[ours.id], parameter.outputs[0].type
            given[place] = array if kind.is_dynamic else array.astype(kind.dtype, copy=False)
        try:
            held = check_inputs(self.other, given)
            self.inferred = infer_for(self.other, held, self.state)
        except IRError as error:
            raise UsageError(
                f"{self.name} does not take these inputs: {error.message}",
                hint="compare with another version of the same model, of the same inputs",
            ) from None
        self.walk = Interpreter(self.other, None, self.order, self.inferred)
        self.walk.begin(self.state)
        self.steps = iter(self.walk.steps)
        self.arrays = held
        self.values: dict[int, Sequence[Array]] = {}
        self.asked: dict[int, Sequence[Array]] = {}
        self.wanted = {
            y.id
            for x, y in self.matching.pairs
            if x.type == y.type in ENDS or (y.id not in self.fixed[1] and self._is_meant(x, y))
        }

    def _is_meant(self, layer: Layer, other: Layer) -> bool:
        """Whether two layers mean the same tensors: a guess must be one operation on such."""
        return self.matching.is_certain(layer, other) or (
            layer.type == other.type and self.matching.takes_the_same(layer, other, self.fixed)
        )

    def tolerance(self, layer: Layer) -> float | None:
        """None at all where other numbers or attributes go in: whatever differs is told.

        What is computed there from other tensors, or by another operation, may be rounded.
        """
        other = self.matching.forth.get(layer.id)
        if other is None or layer.type != other.type:
            return None
        if not self.matching.takes_the_same(layer, other, self.fixed):
            return None
        if self.matching.one.local[layer.id] != self.matching.two.local[other.id]:
            return 0.0
        ones = self.matching.one.sources[layer.id]
        twos = self.matching.two.sources[other.id]
        for one, two in zip(ones, twos, strict=False):
            if one is None or two is None or one[0].id not in self.fixed[0]:
                continue
            if two[0].id in self.fixed[1] and not self.matching.same(one[0], two[0]):
                held = [
                    anatomy.held_types(source[0])
                    for anatomy, source in (
                        (self.matching.one, one),
                        (self.matching.two, two),
                    )
                ]
                # The same numbers in another type are as near as that type is.
                alike = held[0] == held[1] and self.matching.is_made_alike(one[0], two[0])
                return 0.0 if alike else None
        return None

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """The outputs of their counterparts, which are computed as far as they are needed."""
        found: dict[Spot, Array] = {}
        for layer in layers:
            other = self.matching.forth.get(layer.id)
            if other is None or other.id not in self.wanted:
                continue
            while other.id not in self.asked and self._step():
                pass
            certain = self.matching.is_certain(layer, other)
            for index, array in enumerate(self.asked.pop(other.id, ())):
                if certain or _may_be(self.expected.of(layer)[index].shape, array):
                    found[layer.id, index] = array
        if self.other.weights is not None:
            self.other.weights.release()
        return found

    def end(self) -> State:
        """Compute the rest: what variables hold then."""
        while self._step():
            pass
        return self.walk.end()

    def _step(self) -> bool:
        """Compute one more layer; whether there was one."""
        step = next(self.steps, None)
        if step is None:
            return False
        with np.errstate(all="ignore"), step.layer.at():
            outputs: Sequence[Array]
            if step.kernel is None:
                outputs = (as_computed(self.arrays[step.layer.id]),)
            elif step.layer.id in self.fixed[1]:
                tensors = self.inferred.of(step.layer)
                outputs = made_of_constants(step, self.values, tensors)
            else:
                thin, given = lean(step, self.values)
                assert thin.kernel is not None
                outputs = thin.kernel(*given)
        self.values[step.layer.id] = outputs
        if step.layer.id in self.wanted:
            self.asked[step.layer.id] = outputs
        for done in step.freed:
            del self.values[done]
        return True


class HalfPrecision:
    """The model itself with every f32 tensor and constant rounded to half precision."""

    asks_again = False
    narrows = False

    def __init__(self, model: Model, kind: ElementType) -> None:
        self.model, self.kind, self.name = model, kind, f"{kind} throughout"

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Make its kernels ready."""
        self.steps = {
            step.layer.id: step for step in Interpreter(self.model, None, inferred=inferred).steps
        }

    def tolerance(self, layer: Layer) -> float | None:
        """As half precision allows."""
        return TOLERANCES[self.kind]

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """What layers give whose inputs and outputs are rounded."""
        values: dict[int, tuple[Array, ...]] = {}
        found: dict[Spot, Array] = {}
        for layer in layers:
            step = self.steps[layer.id]
            if step.kernel is None or layer.type in ("Assign", "ReadValue", "Result"):
                continue
            given = [
                self._rounded((values.get(i) or known[i])[index]) for i, index in step.sources
            ]
            with np.errstate(all="ignore"), layer.at():
                values[layer.id] = tuple(map(self._rounded, step.kernel(*given)))
            if not layer.is_constant:
                found |= {(layer.id, i): a for i, a in enumerate(values[layer.id])}
        return found

    def _rounded(self, array: Array) -> Array:
        if array.dtype != np.float32:
            return array
        with np.errstate(all="ignore"):
            return array.astype(self.kind.dtype).astype(np.float32)


#: How far results may be from those of another runtime, relative to their own size and to the
#: root of their mean square: sums are added up in another order, in types of this width.
TOLERANCES: dict[ElementType, float] = {
    ElementType.F64: 5e-5,  # OpenVINO computes it in f32
    ElementType.F32: 5e-5,  # some thousand products summed in 24 bits, in another order
    ElementType.F16: 4e-3,  # 11 bits: four units in the last place
    ElementType.BF16: 3e-2,  # 8 bits: four units in the last place
}


def _may_be(shape: Shape, array: Array) -> bool:
    """Whether an array has a shape, as far as that is known."""
    if shape.rank is None:
        return True
    return shape.rank == array.ndim and all(map(compatible, shape, array.shape))


#: What takes the outcome of a run: it is handed out, or remembered.
ENDS = ("Result", "Assign")


def has_state(layer: Layer) -> bool:
    """Whether a layer may give another result for the same inputs."""
    random = layer.op is not None and layer.op.is_random
    return layer.type in ("Assign", "ReadValue") or random


def from_constants(model: Model) -> set[int]:
    """The ids of constants, and of layers that depend on constants alone."""
    found: set[int] = set()
    for layer in model.order():
        if layer.type == "Parameter" or has_state(layer):
            continue
        if all(source and source[0].id in found for source in model.sources(layer)):
            found.add(layer.id)
    return found


def make_reference(
    model: Model, against: Model | str | os.PathLike[str], onnx: str | None
) -> Reference:
    """The reference that a word, a file or a model means."""
    if isinstance(against, Model):
        return OtherModel(model, against)
    if not isinstance(against, (str, os.PathLike)):
        what = f"{type(against).__name__} is nothing to compare with"
        raise UsageError(what, hint="give a model, or one of the words")
    word = os.fspath(against)
    if word == "openvino":
        return OpenVINO(model, RuntimeProcess("openvino"))
    if word == "compiled":
        return Compiled(model)
    if word in ("onnxruntime",) or word.endswith(".onnx"):
        path = word if word.endswith(".onnx") else onnx or _beside(model)
        if not Path(path).exists():
            raise UsageError(
                f"onnxruntime needs the model as ONNX, {path} is not there",
                hint="give it by --onnx FILE",
            )
        return OnnxRuntime(model, path, RuntimeProcess("onnxruntime"))
    if word in ("f16", "bf16"):
        return HalfPrecision(model, ElementType(word))
    if word.endswith(".npz"):
        return Recorded(model, word)
    if word.endswith(".xml"):
        from ..files import read

        return OtherModel(model, read(word))
    raise UsageError(
        f'"{word}" is nothing to compare with',
        hint="there are openvino, onnxruntime, compiled, f16, bf16, an .xml, an .onnx, "
        "or a recorded .npz",
    )


def _beside(model: Model) -> str:
    if model.path is None:
        raise UsageError("the model was not read from a file: say where the ONNX model is")
    return str(Path(model.path).with_suffix(".onnx"))


#: What a kernel may raise on inputs that the model itself would not give it.
REFUSALS = (IRError, *MISTAKES)
