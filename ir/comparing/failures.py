"""Ways in which a model may fail, each told by a text that stays the same while it shrinks."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from ...schemas import (
    Array,
    InternalError,
    IRError,
    LimitError,
    Tensor,
    UnsupportedError,
    UsageError,
)
from ...schemas.packing import plain_texts
from ..document import Layer, Model, Port
from ..engine import Program
from ..execution import Traced, run
from ..files import write
from ..inference import infer
from .divergence import refused_layer, wrong_layer
from .references import Compiled, OpenVINO, Reference
from .rounding import allowed_for, error, has_nan, may_be_rounding
from .runtimes import RuntimeProcess, end_with_children, run_openvino

#: Seconds that a command has for a model of nothing.
_PATIENCE = 60.0
#: The inputs of a model in order, for each sample.
Samples = Sequence[Sequence[Array]]


class Failure(NamedTuple):
    """How a sample fails: a text that stays the same, and the layer that seems at fault."""

    text: str
    layer: int | None = None


#: How each sample fails; None where it does not.
Failures = list[Failure | None]


class Failing(Protocol):
    """Tells how a model fails on each sample."""

    #: What is asked of the model, in the words of the command line.
    word: str
    #: The lines of a test that fails as long as the model does.
    test: Sequence[str]

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """How each sample fails; ``until`` is the time by which an answer is wanted."""


def failure(model: Model, error: IRError | InternalError) -> Failure:
    """What an error says, and which layer of the model it speaks of, if one around a body."""
    where = error.where
    for layer in model.layers:
        if layer.id == where.layer and layer.name == where.name:
            return Failure(skeleton(error), layer.id)
    for layer in model.layers:
        inner = [one for body in layer.bodies.values() for one in body.everywhere()]
        if any(one.id == where.layer and one.name == where.name for one in inner):
            return Failure(skeleton(error), layer.id)
    return Failure(skeleton(error))


def skeleton(error: BaseException) -> str:
    """What an error says, without names and numbers, which change as the model shrinks."""
    if isinstance(error, (IRError, InternalError)):
        text, kind = error.message, error.where.type or ""
    else:
        text, kind = str(error), ""
    text = re.sub(r'"[^"]*"', '""', text)
    text = re.sub(r"[\[(][-\d., ?]*[\])]", "[]", text)
    return f"{type(error).__name__} {kind}: {re.sub(r'-?[0-9]+', 'N', text)[:200]}"


class FailsToInfer:
    """Types and shapes cannot be worked out."""

    word: str = "infer"
    test: Sequence[str] = ("ir.infer(model)",)

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """The error; samples make no difference."""
        try:
            infer(model, max_seconds=_left(until))
        except LimitError:
            raise
        except (IRError, InternalError) as found:
            return [failure(model, found)]
        return [None]


class FailsToRun:
    """A run ends with an error, or gives NaN though no input has any."""

    word: str = "run"
    test: Sequence[str] = (
        "for sample in samples:",
        "    for array in ir.run(model, sample).values():",
        "        assert array.dtype.kind not in 'fV' or not np.isnan(array).any()",
    )

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """The error of each sample."""
        found: Failures = []
        for sample in samples:
            first: list[int] = []

            def note(step: Traced, first: list[int] = first) -> None:
                if not (first or step.layer.is_constant) and any(map(has_nan, step.outputs)):
                    first.append(step.layer.id)

            try:
                outputs = run(model, list(sample), trace=note, max_seconds=_left(until))
            except LimitError:
                raise
            except (IRError, InternalError) as failed:
                found.append(failure(model, failed))
                continue
            given = any(has_nan(array) for array in sample)
            bad = not given and any(has_nan(array) for array in outputs.values())
            found.append(Failure("NaN", first[0] if first else None) if bad else None)
        return found


class FailsToCompile:
    """A compiled program fails, or gives something else than a run."""

    word: str = "compile"
    test: Sequence[str] = (
        "from vinoir.ir.comparing.rounding import allowed_for, error",
        "program = ir.compile(model)",
        "for sample in samples:",
        "    wanted, found = ir.run(model, sample), program(sample)",
        "    for name, array in wanted.items():",
        "        assert error(found[name], array) <= allowed_for(array), name",
    )

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """The error, or that outputs differ."""
        found: Failures = []
        for sample in samples:
            wanted = [*run(model, list(sample), max_seconds=_left(until)).values()]
            try:
                outputs = [*Program(model)(list(sample)).values()]
            except (IRError, InternalError) as failed:
                found.append(failure(model, failed))
                continue
            found.append(differing(model, sample, outputs, wanted, Compiled(model), until))
        return found


class FailsToAgree:
    """OpenVINO fails, crashes, or gives something else than a run."""

    word: str = "compare"
    test: Sequence[str] = ('assert not ir.compare(model, "openvino", samples=samples)',)

    def __init__(self, process: RuntimeProcess) -> None:
        self.process = process

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """That outputs differ, or why there are none."""
        found: Failures = []
        for sample in samples:
            wanted = [*run(model, list(sample), max_seconds=_left(until)).values()]
            reference = OpenVINO(model, self.process)
            try:
                outputs = run_openvino(self.process, model, sample, _left(until))
            except LimitError:
                raise
            except UnsupportedError as failed:
                layer = refused_layer(model, reference, sample, _left(until))
                found.append(Failure(skeleton(failed), layer))
                continue
            found.append(differing(model, sample, outputs, wanted, reference, until))
        return found


class FailsCommand:
    """A command ends with another exit code than 0."""

    def __init__(self, command: str) -> None:
        self.word = command
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"the command {command!r} cannot be read: {error}") from None
        if not self.words:
            raise UsageError("the command is empty")
        self.test: Sequence[str] = (
            "import os, shutil, subprocess, tempfile",
            "with tempfile.TemporaryDirectory() as name:",
            "    folder = Path(name)",
            "    for file in ('reduced.xml', 'reduced.bin'):",
            "        shutil.copy(FOLDER / file, folder)",
            f"    words = {self.words!r}",
            "    path = str(folder / 'reduced.xml')",
            "    words = [w.replace('{}', path) for w in words] if any('{}' in w for w in words) "
            "else [*words, path]",
            "    inputs = folder / 'inputs.npz'",
            "    for n in range(len(samples)):",
            "        np.savez(inputs, **{f'0.{i}': held[f'{n}.{i}'] for i in range(len(types))})",
            "        told = {**os.environ, 'VINOIR_INPUTS': str(inputs)}",
            "        assert subprocess.run(words, check=False, env=told).returncode == 0",
        )

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """The exit code for each sample, whose inputs lie beside the model in inputs.npz."""
        found: Failures = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            write(model, path)
            for sample in samples:
                save_samples(path.with_name("inputs.npz"), [sample])
                found.append(self._run(str(path), _left(until)))
        return found

    def _run(self, path: str, seconds: float | None) -> Failure | None:
        words = [word.replace("{}", path) for word in self.words]
        if words == self.words:
            words.append(path)
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "VINOIR_INPUTS": str(Path(path).with_name("inputs.npz"))},
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"{words[0]} cannot be started: {error.strerror}",
                hint="the command is started without a shell: give the path of a program, and "
                "its words with {} for the .xml",
            ) from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise LimitError(f"the command took more than {seconds:g} seconds") from None
        finally:
            if process.poll() is None:
                end_with_children(process)
                process.wait()
        return None if code == 0 else Failure(f"exit {code}")

    def doubt(self, text: str) -> str | None:
        """What speaks against the command: it fails alike with a model of nothing."""
        empty = Model("nothing", 11)
        port = Port.of(0, Tensor("f32", (1,)), ("x",))
        words = {"shape": "1", "element_type": "f32"}
        given = empty.add(Layer("Parameter", "opset1", "x", data=words, outputs=[port]))
        taken = empty.add(Layer("Result", "opset1", "y", inputs=[Port(0, "FP32", (1,))]))
        empty.connect((given, 0), taken, 0)
        (found,) = self(empty, [[np.ones(1, np.float32)]], time.monotonic() + _PATIENCE)
        if found is None or found.text != text:
            return None
        return (
            f"the command ends with {text} also for a model of one input and one output: it may "
            "fail whatever it is given (a file that is not there, an output that it looks for)"
        )


class FailsFunction:
    """A function of the caller's says so."""

    word: str = "function"
    test: Sequence[str] = ("raise NotImplementedError('call what failed: model, samples')",)

    def __init__(self, function: Callable[[Model, Samples], bool]) -> None:
        self.function = function

    def __call__(self, model: Model, samples: Samples, until: float | None) -> Failures:
        """Whether each sample fails."""
        fails = Failure("fails")
        return [fails if self.function(model, [sample]) else None for sample in samples]


def differing(
    model: Model,
    sample: Sequence[Array],
    found: Sequence[Array],
    wanted: Sequence[Array],
    reference: Reference,
    until: float | None,
) -> Failure | None:
    """That outputs differ, by their kind; None where rounding alone may have made them differ.

    A layer that is wrong with exact inputs is looked for, which tells where it comes from. Where
    there is none, other layers may be at fault together: unless as much would come of rounding.
    """
    for one, two in zip(found, wanted, strict=True):
        if one.shape != two.shape:
            return Failure("shapes differ", wrong_layer(model, reference, sample, _left(until)))
    if all(error(one, two) <= allowed_for(two) for one, two in zip(found, wanted, strict=True)):
        return None
    layer = wrong_layer(model, reference, sample, _left(until))
    if layer is None and may_be_rounding(model, sample, found, wanted, _left(until)):
        return None
    return Failure("values differ", layer)


def _left(until: float | None) -> float | None:
    return None if until is None else max(until - time.monotonic(), 0.0)


def save_samples(path: Path, samples: Samples) -> None:
    """Write inputs to an .npz, as ``SAMPLE.INPUT``; types that NumPy has not, as their bytes."""
    arrays: dict[str, Array] = {}
    for number, sample in enumerate(samples):
        for place, array in enumerate(sample):
            plain = plain_texts(array) if array.dtype.kind == "T" else array
            if plain.dtype.isbuiltin != 1 and plain.dtype.kind == "V":
                plain = plain.astype(np.float32)
            arrays[f"{number}.{place}"] = plain
    np.savez(path, **arrays)  # type: ignore[arg-type]  # the names are no other arguments


@contextmanager
def failing(fails: str | Callable[[Model, Samples], bool], against: str) -> Iterator[Failing]:
    """The way to fail that a word, a command or a function means."""
    plain: Mapping[str, Callable[[], Failing]] = {
        "infer": FailsToInfer, "run": FailsToRun, "compile": FailsToCompile
    }  # fmt: skip
    if not isinstance(fails, str) and not callable(fails):
        raise UsageError(
            f"{type(fails).__name__} does not say what fails",
            hint="give infer, run, compile, compare, a command, or a function",
        )
    if not isinstance(fails, str):
        yield FailsFunction(fails)
    elif fails in plain:
        yield plain[fails]()
    elif fails == "compare":
        if against != "openvino":
            raise UsageError(
                f'what fails against "{against}" cannot be reduced: that does not shrink along',
                hint="compare with openvino, or give a command",
            )
        with RuntimeProcess("openvino") as process:
            yield FailsToAgree(process)
    else:
        yield FailsCommand(fails)
