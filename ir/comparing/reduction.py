"""A failing model made as small as it can be and still fail in the same way.

Example::

    found = ir.reduce(model, "compare", [image], output="failing/", max_seconds=300)
    found.model, found.samples      # as written to failing/reduced.xml and inputs.npz

First layers are left out (delta debugging: a cut tensor becomes an input that has the value it
had), then sizes are made smaller, then constants are replaced by random numbers from a seed. Each
step is checked with every sample, and kept only if the failure is the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ...schemas import (
    ANY,
    Array,
    ElementType,
    InternalError,
    IRError,
    LimitError,
    Shape,
    Tensor,
    UsageError,
)
from ...schemas.version import VERSION
from ..document import Layer, Model
from ..execution import Inputs, Traced, check_inputs, fill, run
from ..files import dumps, read, write
from ..inference import infer_layer
from ..opening import ModelLike, opened
from ..surgery import reshape
from .extraction import Spot, extract
from .failures import Failing, Samples, failing, save_samples
from .minimizing import smallest

#: Constants up to this many elements are left alone: shapes, axes, scales.
_SMALL = 16
PHASES = ("layers", "shapes", "constants", "done")


@dataclass
class Reduction:
    """A small model that fails, and how it came about."""

    model: Model
    samples: list[list[Array]]
    #: How it fails, and which samples do.
    failure: str
    failing: list[int]
    #: Layers other than constants, inputs and outputs, before and after.
    before: int
    after: int
    checks: int = 0
    seconds: float = 0.0
    #: Whether it went on to the end, or the time was over.
    finished: bool = False
    #: Constants and inputs that are random numbers of a seed.
    seeds: dict[str, str] = field(default_factory=dict)
    origin: str = ""
    asked: str = ""

    @property
    def note(self) -> str:
        """How it was made, for whoever gets it."""
        end = "to the end" if self.finished else "until the time was over, it may get smaller"
        lines = [
            f"# {self.failure}",
            "",
            f"Reduced from `{self.origin}` by vinoir {VERSION}, {end}: {self.before} layers",
            f"became {self.after} in {self.checks} checks of `{self.asked}`.",
        ]
        if self.samples:
            lines += [
                f"It fails with {len(self.failing)} of {len(self.samples)} samples "
                f"({', '.join(map(str, self.failing))}), which are in inputs.npz as SAMPLE.INPUT."
            ]
        if self.seeds:
            lines += ["", "Random numbers stand in place of:", ""]
            lines += [f"- {name}: {text}" for name, text in self.seeds.items()]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        layers = ", ".join(
            f'{x.type} "{x.name}"' for x in self.model.layers if x.type in _operations(self.model)
        )
        end = "" if self.finished else " (the time was over)"
        return (
            f"{self.before} layers became {self.after} in {self.checks} checks{end}: {layers}; "
            f"fails: {self.failure}"
        )


def reduce(
    model: ModelLike,
    fails: str | Callable[[Model, Samples], bool],
    inputs: Inputs | None = None,
    *,
    samples: Iterable[Inputs] | int = 1,
    seed: int = 0,
    against: str = "openvino",
    output: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Reduction:
    """Make a failing model as small as it can be and still fail in the same way.

    Args:
        model: The model, or its .xml.
        fails: ``infer``, ``run`` (an error or NaN), ``compile`` (another result than a run),
            ``compare`` (OpenVINO gives another result, refuses or crashes), a command that ends
            with another exit code than 0 (``{}`` stands for the .xml), or a function of a model
            and samples.
        inputs: One sample: an array for each input.
        samples: Several samples, or how many random ones; each candidate is checked with all.
        seed: Seed of random inputs.
        against: What ``compare`` compares with.
        output: A folder for the result as it grows smaller; what is there of the same model and
            failure is gone on with.
        max_seconds: When to stop with what has been reached.
        progress: Called with a line after each step that made it smaller.

    Raises:
        UsageError: The model does not fail.
    """
    whole = opened(model)
    with failing(fails, against) as check:
        rows = [] if check.word == "infer" else list(_samples(whole, inputs, samples, seed))
        until = None if max_seconds is None else time.monotonic() + max_seconds
        folder = None if output is None else Folder(Path(output), whole, check.word, rows)
        return _Reducer(whole, rows, check, until, folder, progress).run()


def _samples(
    model: Model, inputs: Inputs | None, samples: Iterable[Inputs] | int, seed: int
) -> Iterator[list[Array]]:
    if isinstance(samples, int):
        if inputs is not None:
            rows: Iterable[Inputs] = [inputs]
        elif samples < 1:
            raise UsageError(f"{samples} samples are asked for, the least is 1")
        else:
            rng = np.random.default_rng(seed)
            rows = ([fill(x, "random", rng) for x in model.parameters] for _ in range(samples))
    else:
        rows = samples
    for row in rows:
        given = check_inputs(model, row)
        yield [given[x.id] for x in model.parameters]


class Folder:
    """Where the result is written as it grows smaller, and gone on with."""

    def __init__(self, path: Path, model: Model, word: str, samples: Samples) -> None:
        self.path = path
        digest = blake2b(digest_size=16)
        for part in (
            *dumps(model),
            word.encode(),
            *(np.asarray(a).tobytes() for s in samples for a in s),
        ):
            digest.update(part)
        self.digest = digest.hexdigest()
        self.state = path / "reduce.json"
        self.held: dict[str, Any] = {}
        if path.exists() and any(path.iterdir()):
            if not self.state.is_file():
                raise UsageError(
                    f"{path} is not empty, and no reduction to go on with is in it",
                    hint="give another folder",
                )
            try:
                self.held = json.loads(self.state.read_text("utf-8"))
            except ValueError:
                raise UsageError(f"{self.state} is no state of a reduction") from None
            if self.held.get("digest") != self.digest:
                raise UsageError(
                    f"{path} holds the reduction of another model, failure or inputs",
                    hint="give another folder, or empty it",
                )

    def load(self, samples: int) -> tuple[Model, list[list[Array]], str, dict[str, Any]] | None:
        """The smallest model so far, its samples and the phase it is in."""
        if not self.held:
            return None
        model = read(self.path / "reduced.xml")
        with np.load(self.path / "inputs.npz", allow_pickle=False) as content:
            rows = [
                [
                    content[f"{number}.{place}"].astype(x.outputs[0].type.dtype, copy=False)
                    for place, x in enumerate(model.parameters)
                ]
                for number in range(samples)
            ]
        return model, rows, str(self.held["phase"]), self.held

    def save(self, found: Reduction, phase: str, test: Sequence[str]) -> None:
        """Write the model, its inputs, the note and the test."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = deepcopy(found.model)
        for layer in fresh.constants:
            layer.keep_value()
        write(fresh, self.path / "reduced.xml", repack=True)
        save_samples(self.path / "inputs.npz", found.samples)
        (self.path / "NOTE.md").write_text(found.note, "utf-8")
        (self.path / "test_reduced.py").write_text(_test(found, test), "utf-8")
        state = {
            "digest": self.digest,
            "phase": phase,
            "failure": found.failure,
            "before": found.before,
            "checks": found.checks,
            "seeds": found.seeds,
        }
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps(state, indent=2), "utf-8")
        os.replace(new, self.state)


def _test(found: Reduction, lines: Sequence[str]) -> str:
    """A test that fails as long as the model does."""
    body = "\n".join(f"    {line}" for line in lines)
    samples = (
        '    held = np.load(FOLDER / "inputs.npz")\n'
        "    types = [x.outputs[0].type.dtype for x in model.parameters]\n"
        "    samples = [\n"
        "        [held[f'{n}.{i}'].astype(kind) for i, kind in enumerate(types)]\n"
        f"        for n in range({len(found.samples)})\n"
        "    ]\n"
    )
    return (
        '"""Fails as long as reduced.xml does."""\n\n'
        "from pathlib import Path\n\n"
        "import numpy as np\n"
        "from vinoir import ir\n\n"
        "FOLDER = Path(__file__).parent\n\n\n"
        "def test_reduced() -> None:\n"
        '    model = ir.read(FOLDER / "reduced.xml")\n'
        f"{samples if found.samples else ''}{body}\n"
    )


class _Reducer:
    """One reduction on its way."""

    def __init__(
        self,
        model: Model,
        samples: list[list[Array]],
        check: Failing,
        until: float | None,
        folder: Folder | None,
        progress: Callable[[str], None] | None,
    ) -> None:
        self.whole, self.check, self.until, self.folder = model, check, until, folder
        self.progress = progress
        self.began = time.monotonic()
        count = len(_operations_of(model))
        self.best = Reduction(
            model,
            samples,
            "",
            [],
            count,
            count,
            origin=model.place or model.name,
            asked=check.word,
        )
        self.phase = PHASES[0]

    def run(self) -> Reduction:
        """Go through the phases."""
        held = None if self.folder is None else self.folder.load(len(self.best.samples))
        if held is not None:
            model, samples, phase, state = held
            self.best.model, self.best.samples = model, samples
            self.best.before, self.best.checks = state["before"], state["checks"]
            self.best.seeds, self.phase = state["seeds"], phase
            self.best.after = len(_operations_of(model))
        failures = self.check(self.best.model, self.best.samples, None)
        kinds = [text for text in failures if text is not None]
        if not kinds:
            raise UsageError(
                f"the model does not fail: {self.check.word} is well with "
                f"{len(failures)} of {len(failures)} samples"
            )
        self.best.failure = max(kinds, key=kinds.count)
        self.best.failing = self._failing(failures)
        try:
            for phase in PHASES[PHASES.index(self.phase) : -1]:
                self.phase = phase
                {"layers": self._layers, "shapes": self._shapes, "constants": self._constants}[
                    phase
                ]()
            self.phase, self.best.finished = PHASES[-1], True
        except _TimeIsOver:
            pass
        self._keep()
        return self.best

    def _failing(self, failures: Sequence[str | None]) -> list[int]:
        return [n for n, text in enumerate(failures) if text == self.best.failure]

    def _still(self, model: Model, samples: list[list[Array]]) -> bool:
        """Whether a candidate fails in the same way with some sample; all are looked at."""
        if self.until is not None and time.monotonic() > self.until:
            raise _TimeIsOver
        self.best.checks += 1
        try:
            failures = self.check(model, samples, self.until)
        except LimitError:
            if self.until is not None and time.monotonic() > self.until:
                raise _TimeIsOver from None
            return False
        except (IRError, InternalError):
            return False  # a candidate that cannot even be asked
        found = self._failing(failures)
        if found:
            self.best.failing = found
        return bool(found)

    def _take(self, model: Model, samples: list[list[Array]], what: str) -> None:
        """Go on with a candidate that fails."""
        self.best.model, self.best.samples = model, samples
        self.best.after = len(_operations_of(model))
        if self.progress is not None:
            self.progress(f"{self.phase}: {what}")
        self._keep()

    def _keep(self) -> None:
        self.best.seconds = time.monotonic() - self.began
        if self.folder is not None:
            self.folder.save(self.best, self.phase, self.check.test)

    # Layers.

    def _layers(self) -> None:
        model, samples = self.best.model, self.best.samples
        layers = _operations_of(model)
        recorded = Recording(model, samples)
        tried: dict[tuple[int, ...], bool] = {}

        def fails(kept: Sequence[Layer]) -> bool:
            key = tuple(layer.id for layer in kept)
            if key not in tried:
                part = extract(model, kept, recorded.tensor)
                given = [
                    [recorded.value(n, spot) for spot in part.inputs] for n in range(len(samples))
                ]
                tried[key] = self._still(part.model, given)
                if tried[key]:
                    count = len(kept)
                    self._take(part.model, given, f"{count} of {len(layers)} layers")
            return tried[key]

        if fails(layers):
            smallest(layers, fails)

    # Sizes.

    def _shapes(self) -> None:
        """Make sizes smaller: the same size everywhere at once, then of single inputs."""
        sizes = {
            size
            for layer in self.best.model.parameters
            for size in layer.outputs[0].dims
            if size > 1
        }
        for size in sorted(sizes, reverse=True):
            self._smaller(size, None)
        for place in range(len(self.best.model.parameters)):
            for axis in range(len(self.best.model.parameters[place].outputs[0].dims)):
                size = self.best.model.parameters[place].outputs[0].dims[axis]
                if size > 1:
                    self._smaller(size, (place, axis))

    def _smaller(self, size: int, only: tuple[int, int] | None) -> None:
        """Try what a size may become, the least first."""
        for new in sorted({1, 2, 3, 4, 8, size // 8, size // 4, size // 2} - {0}):
            if new >= size:
                return
            made = resized(self.best.model, self.best.samples, size, new, only)
            if made is not None and self._still(*made):
                self._take(*made, f"{size} became {new}")
                return

    # Constants and inputs.

    def _constants(self) -> None:
        """Put random numbers of a seed in place of constants and inputs."""
        for layer in list(self.best.model.constants):
            if not layer.has_value or layer.value.size <= _SMALL:
                continue
            if layer.name in self.best.seeds:
                continue
            model = deepcopy(self.best.model)
            target = model.layer(layer.id)
            text, array = like(layer.value)
            if array is None:
                continue
            target.set_value(array, layer.element_type)
            if self._still(model, self.best.samples):
                self.best.seeds[layer.name] = text
                self._take(model, self.best.samples, f'"{layer.name}" is {text}')
        for place, layer in enumerate(self.best.model.parameters):
            rows = [like(sample[place], number) for number, sample in enumerate(self.best.samples)]
            if not rows or any(array is None for _, array in rows):
                continue
            samples = [
                [
                    array if k == place and array is not None else old
                    for k, old in enumerate(sample)
                ]
                for sample, (_, array) in zip(self.best.samples, rows, strict=True)
            ]
            if self._still(self.best.model, samples):
                self.best.seeds[layer.name] = rows[0][0]
                self._take(self.best.model, samples, f'input "{layer.name}" is {rows[0][0]}')


class _TimeIsOver(Exception):  # noqa: N818  # it is no error
    """The time that was given is over."""


class Recording:
    """The tensors of a model for each sample, as far as it can be run."""

    def __init__(self, model: Model, samples: Samples) -> None:
        self.model = model
        self.values: list[dict[Spot, Array]] = []
        self.tensors = _inferred(model)
        for sample in samples:
            held: dict[Spot, Array] = {}
            for parameter, array in zip(model.parameters, sample, strict=True):
                held[parameter.id, 0] = array

            def note(step: Traced, held: dict[Spot, Array] = held) -> None:
                held.update({(step.layer.id, i): a for i, a in enumerate(step.outputs)})

            with suppress(IRError, InternalError):  # what comes after is not known
                run(model, list(sample), trace=note)
            self.values.append(held)

    def tensor(self, layer: Layer, index: int) -> Tensor:
        """Type and shape of a tensor."""
        known = self.tensors.get(layer.id)
        found = known[index] if known is not None else layer.outputs[index].tensor
        arrays = [held.get((layer.id, index)) for held in self.values]
        shapes = {array.shape for array in arrays if array is not None}
        if not shapes:
            return found
        kind = found.type
        if kind.is_dynamic:
            kind = next(ElementType.of(a.dtype) for a in arrays if a is not None)
        first = next(iter(shapes))
        if len(shapes) == 1:
            return Tensor(kind, first)
        if len({len(shape) for shape in shapes}) > 1:
            return Tensor(kind, Shape.UNKNOWN)
        sizes = [s[0] if len(set(s)) == 1 else ANY for s in zip(*shapes, strict=True)]
        return Tensor(kind, Shape(sizes))

    def value(self, sample: int, spot: Spot) -> Array:
        """The value of a tensor; one at random where the model did not come so far."""
        found = self.values[sample].get(spot)
        kind = self.tensor(self.model.layer(spot[0]), spot[1])
        if found is not None:
            return found.astype(kind.type.dtype, copy=False)
        sizes = [size if isinstance(size, int) else 1 for size in kind.shape.sizes or ()]
        rng = np.random.default_rng(spot[0])
        if kind.type.is_real:
            return rng.standard_normal(sizes).astype(kind.type.dtype)
        return np.ones(sizes, kind.type.dtype)


def _inferred(model: Model) -> dict[int, tuple[Tensor, ...]]:
    """What can be inferred of layers one by one; of the rest the file is trusted."""
    known: dict[int, tuple[Tensor, ...]] = {}
    for layer in model.order():
        try:
            known[layer.id] = infer_layer(model, layer, known, {})
        except (IRError, InternalError):
            known[layer.id] = tuple(port.tensor for port in layer.outputs)
    return known


def _operations_of(model: Model) -> list[Layer]:
    """The layers that compute, in order."""
    ends = ("Const", "Parameter", "Result")
    return [layer for layer in model.order() if layer.type not in ends]


def _operations(model: Model) -> set[str]:
    return {layer.type for layer in _operations_of(model)}


def resized(
    model: Model,
    samples: list[list[Array]],
    size: int,
    new: int,
    only: tuple[int, int] | None,
) -> tuple[Model, list[list[Array]]] | None:
    """A model in which a size is smaller: of one input's axis, or wherever it stands.

    None where shapes do not go together then.
    """
    made = deepcopy(model)
    given = [list(sample) for sample in samples]
    for place, parameter in enumerate(made.parameters):
        dims = parameter.outputs[0].dims
        axes = [
            axis
            for axis, held in enumerate(dims)
            if held == size and only in (None, (place, axis))
        ]
        if not axes:
            continue
        smaller = [new if axis in axes else held for axis, held in enumerate(dims)]
        spelt = Shape(ANY if s < 0 else s for s in smaller).spelling
        parameter.data = {**parameter.data, "shape": spelt}
        for sample in given:
            sample[place] = _cut(sample[place], axes, new)
    for layer in made.constants if only is None else []:
        if not layer.has_value:
            continue
        array, kind = layer.value, layer.element_type
        axes = [axis for axis, held in enumerate(array.shape) if held == size]
        if axes:
            layer.set_value(_cut(array, axes, new).copy(), kind)
        elif _names_sizes(array) and (array == size).any():
            layer.set_value(np.where(array == size, new, array).astype(array.dtype), kind)
    try:
        reshape(made)
    except (IRError, InternalError):
        return None
    return made, given


def _names_sizes(array: Array) -> bool:
    """Whether a constant may be a shape."""
    return array.dtype.kind in "iu" and array.ndim == 1 and array.size <= _SMALL


def _cut(array: Array, axes: Sequence[int], size: int) -> Array:
    """The first elements along axes."""
    where = tuple(slice(size) if axis in axes else slice(None) for axis in range(array.ndim))
    return np.ascontiguousarray(array[where]).reshape(array[where].shape)


def like(array: Array, seed: int = 0) -> tuple[str, Array | None]:
    """Random numbers of the same type, shape, mean and spread, and how to make them."""
    rng = np.random.default_rng(seed)
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        text = f"default_rng({seed}).integers({low}, {high + 1}, {array.shape})"
        return text, rng.integers(low, high, array.shape, endpoint=True).astype(array.dtype)
    if array.dtype.kind != "f" or not array.size:
        return "", None
    held = array.astype(np.float64)
    mean, spread = float(f"{held.mean():.3g}"), float(f"{held.std():.3g}")
    if not np.isfinite([mean, spread]).all():
        return "", None
    text = f"{mean:g} + {spread:g} * default_rng({seed}).standard_normal({array.shape})"
    return text, (mean + spread * rng.standard_normal(array.shape)).astype(array.dtype)
