"""A failing model made as small as it can be and still fail in the same way.

Example::

    found = ir.reduce(model, "compare", [image], output="failing/", max_seconds=300)
    found.model, found.samples      # as written to failing/reduced.xml and inputs.npz

First layers are left out (delta debugging: a cut tensor becomes an input that has the value it
had; a body that fails with what a turn was given becomes the model), then sizes are made smaller,
then constants are replaced by random numbers from a seed. Each step is checked with every sample,
and kept only if the failure is the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import NoneType

from ...schemas import Array, InternalError, IRError, LimitError, UsageError
from ...schemas.numbers import at_least, random_of
from ..document import Model
from ..execution import Inputs, check_inputs, fill, sized, tell_made_up
from ..opening import ModelLike, opened
from .bodies import opened_bodies
from .divergence import several
from .extraction import count_of, cut_off, extract, operations_of
from .failures import Failing, FailsCommand, Failures, Samples, failing
from .keeping import Folder, Reduction
from .minimizing import gathered, halved, smallest
from .recording import Recording
from .shrinking import SMALL, like, resized

#: Seconds that the first answer may take, however few are allowed.
_FIRST = 10.0
PHASES = ("layers", "shapes", "constants", "done")


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
    if max_seconds is not None:
        at_least(0, max_seconds, "max_seconds")
    if not isinstance(output, (str, os.PathLike, NoneType)):
        raise UsageError(f"output is {type(output).__name__}, the path of a folder is wanted")
    for layer in whole.everywhere() if output is not None else ():
        if layer.is_constant and not layer.has_value:
            layer.keep_value()  # which tells what is missing
    with failing(fails, against) as check:
        rows = [] if check.word == "infer" else list(_samples(whole, inputs, samples, seed))
        until = None if max_seconds is None else time.monotonic() + max_seconds
        folder = None if output is None else Folder(Path(output), whole, check.word, rows)
        reducer = _Reducer(whole, rows, check, until, folder, progress)
        at_random = inputs is None and isinstance(samples, int)
        if at_random and check.word in ("run", "compile", "compare"):
            reducer.best.doubt = _doubt(whole)
        try:
            return reducer.run()
        except IRError as error:
            if rows and at_random:
                tell_made_up(error, whole)
            raise


def _samples(
    model: Model, inputs: Inputs | None, samples: Iterable[Inputs] | int, seed: int
) -> Iterator[list[Array]]:
    if isinstance(samples, int):
        if inputs is not None:
            rows: Iterable[Inputs] = [inputs]
        elif samples < 1:
            raise UsageError(f"{samples} samples are asked for, the least is 1")
        else:
            rng, words = random_of(seed), sized(model, {})
            rows = (
                [fill(x, words.get(x.id, "random"), rng) for x in model.parameters]
                for _ in range(samples)
            )
    else:
        rows = several(samples)
    for row in rows:
        given = check_inputs(model, row)
        yield [given[x.id] for x in model.parameters]


def _doubt(model: Model) -> str | None:
    """What speaks against inputs made at random: sizes that are open in the file."""
    names = [x.name for x in model.parameters if not x.outputs[0].tensor.shape.is_static]
    if not names:
        return None
    return (
        "inputs were made at random, and nobody gave the open sizes of "
        f"{', '.join(names[:4])}: it may fail for that alone; give inputs that fit"
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
        count = count_of(model)
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
        held = None if self.folder is None else self.folder.load()
        if held is not None:
            model, samples, phase, state = held
            self.best.model, self.best.samples = model, samples
            self.best.before, self.best.checks = state["before"], state["checks"]
            self.best.seeds, self.phase = state["seeds"], phase
            self.best.opened = state["opened"]
            self.best.after = count_of(model)
        # Without the first answer nothing is known: it has some time in any case.
        first_until = None if self.until is None else max(self.until, self.began + _FIRST)
        try:
            failures = self.check(self.best.model, self.best.samples, first_until)
        except LimitError as error:
            if isinstance(self.check, FailsCommand):
                error.hint = (
                    "allow more seconds; where it is the failure that it hangs, let it end: "
                    '--check "timeout 60 COMMAND {}"'
                )
            raise
        kinds = [one.text for one in failures if one is not None]
        if not kinds and held is not None and self.folder is not None:
            raise UsageError(
                f"{self.folder.path / 'reduced.xml'}, which is gone on with, does not fail any "
                f"more: {self.check.word} is well with {len(failures)} of {len(failures)} samples",
                hint="give another folder, or empty it, to begin anew with the whole model",
            )
        if not kinds:
            raise UsageError(
                f"the model does not fail: {self.check.word} is well with "
                f"{len(failures)} of {len(failures)} samples"
            )
        self.best.failure = max(kinds, key=kinds.count)
        if held is not None:
            self.best.failure = held[-1]["failure"]
            if self.best.failure not in kinds:
                assert self.folder is not None  # what is held is in it
                raise UsageError(
                    f"the reduction in {self.folder.path} is of a model that "
                    f"fails by {self.best.failure!r}, now it fails by {kinds[0]!r}",
                    hint="give another folder, to begin anew",
                )
        self.best.failing = self._failing(failures)
        if isinstance(self.check, FailsCommand):
            with suppress(LimitError):
                self.best.doubt = self.check.doubt(self.best.failure) or self.best.doubt
        first = failures[self.best.failing[0]]
        self.suspect = None if first is None else first.layer
        try:
            for phase in PHASES[PHASES.index(self.phase) : -1]:
                self.phase = phase
                {"layers": self._layers, "shapes": self._shapes, "constants": self._constants}[
                    phase
                ]()
            self.phase, self.best.finished = PHASES[-1], True
        except (_TimeIsOver, LimitError):
            if self.until is None or time.monotonic() <= self.until:
                raise
        self._keep()
        return self.best

    def _failing(self, failures: Failures) -> list[int]:
        return [n for n, one in enumerate(failures) if one and one.text == self.best.failure]

    def _left(self) -> float | None:
        """The seconds that are left."""
        if self.until is None:
            return None
        if time.monotonic() > self.until:
            raise _TimeIsOver
        return self.until - time.monotonic()

    def _still(self, model: Model, samples: list[list[Array]]) -> bool:
        """Whether a candidate fails in the same way with some sample; all are looked at."""
        self._left()
        self.best.checks += 1
        try:
            failures = self.check(model, samples, self.until)
        except LimitError:
            self._left()
            return False
        except (IRError, InternalError):
            return False  # a candidate that cannot even be asked
        found = self._failing(failures)
        if found:
            self.best.failing = found
            first = failures[found[0]]
            self.suspect = None if first is None else first.layer
        return bool(found)

    def _take(self, model: Model, samples: list[list[Array]], what: str) -> None:
        """Go on with a candidate that fails."""
        self.best.model, self.best.samples = model, samples
        self.best.after = count_of(model)
        if self.progress is not None:
            self.progress(f"{self.phase}: {what}")
        self._keep()

    def _keep(self) -> None:
        self.best.seconds = time.monotonic() - self.began
        if self.folder is not None:
            self.folder.save(self.best, self.phase, self.check.test)

    # Layers.

    def _layers(self) -> None:
        """Leave out layers, then those around a body that fails by itself, and again within."""
        self._fewer()
        while self._open():
            self._fewer()

    def _open(self) -> bool:
        """Go on with a body alone, given what a turn of it was given, where that fails too."""
        recorded = Recording(self.best.model, self.best.samples)
        for layer in operations_of(self.best.model):
            if not layer.bodies:
                continue
            for body in opened_bodies(recorded, layer, self.best.failing[0], self._left()):
                if self._still(body.model, body.samples):
                    self.best.opened = [*self.best.opened, body.origin]
                    self._take(body.model, body.samples, body.origin)
                    return True
        return False

    def _fewer(self) -> None:
        """First where the fault seems to be, then in halves, at last layer by layer."""
        self.cut = Recording(self.best.model, self.best.samples)
        self.tried: dict[tuple[int, ...], bool] = {}
        ids = [layer.id for layer in operations_of(self.best.model)]
        found = self._near(ids) or halved(ids, self._fails)
        if len(found) == len(ids) and not self._fails(found):
            return
        smallest(gathered(found, self._fails), self._fails)

    def _near(self, ids: Sequence[int]) -> list[int] | None:
        """The surroundings of the layer at fault, as far as they are needed to fail."""
        model, known = self.best.model, set(ids)
        near = known & {self.suspect}
        size, steps = 0, 1
        while size < len(near) <= len(ids) // 2:
            found = [number for number in ids if number in near]
            if self._fails(found):
                return found
            size, steps = len(near), 2 * steps
            for _ in range(steps // 2):
                rows = [model.layer(number) for number in near]
                feeders = [x for row in rows for x in model.sources(row) if x is not None]
                takers = [x for row in rows for x in model.consumers(row)]
                near |= {layer.id for layer, _ in (*feeders, *takers)} & known
        return None

    def _fails(self, kept: Sequence[int]) -> bool:
        """Whether these layers alone fail."""
        key = tuple(kept)
        if key not in self.tried:
            layers = [self.cut.model.layer(number) for number in kept]
            known = self.cut.record(cut_off(self.cut.model, layers), self._left())
            part = extract(self.cut.model, layers, self.cut.tensor)
            given = [
                [self.cut.value(number, spot) for spot in part.inputs]
                for number in range(len(self.best.samples))
            ]
            self.tried[key] = self._still(part.model, given)
            if self.tried[key]:
                self._take(
                    part.model, given, f"{count_of(part.model)} of {self.best.before} layers"
                )
                if not known:  # from here on what comes after is known, too
                    self.cut = Recording(part.model, given)
        return self.tried[key]

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
            if not layer.has_value or layer.value.size <= SMALL:
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
                # Each sample has numbers of its own.
                for number, (text, _) in enumerate(rows):
                    one = "" if len(rows) == 1 else f" of sample {number}"
                    self.best.seeds[f"{layer.name}{one}"] = text
                text = rows[self.best.failing[0]][0]
                self._take(self.best.model, samples, f'input "{layer.name}" is {text}')


class _TimeIsOver(Exception):  # noqa: N818  # it is no error
    """The time that was given is over."""
