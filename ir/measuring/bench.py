"""How fast a model runs, in turn with other runtimes, and where the time goes.

Example::

    from vinoir.ir.measuring import measure

    report = measure(model, [image], against=["openvino"])
    report.rows[1].ratio        # our median time over theirs
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...schemas import Array, IRError, Shape, UnsupportedError, UsageError
from ...schemas.numbers import integers_apart
from ...schemas.packing import plain_texts
from ..document import Layer, Model, named_inputs, output_names, paired_by_name, path_of
from ..engine import Node, Program, describe, products
from ..execution import Traced, run
from ..optional import optional
from .lifetimes import held_by_layers, held_by_nodes

#: Runs a model once: inputs in order, outputs in order.
Call: TypeAlias = "Callable[[Sequence[Array]], list[Array]]"


#: Seconds in which the process must rest before the next runtime has its turn, and for how long
#: that is waited for: threads of ONNX Runtime look for work for some 50 milliseconds.
REST, LONGEST = 0.005, 0.2
#: Seconds of runs that are not counted, before the one that is.
WARM = 0.015
#: Runs of which a layer's time is the least.
LAYER_RUNS = 7


@dataclass
class Row:
    """What was measured of one runtime."""

    name: str
    version: str
    #: Seconds to make it ready, and of each run.
    prepared: float
    seconds: list[float] = field(default_factory=list)
    #: Bytes of resident memory that came with it.
    memory: int = 0
    #: How far its outputs are from ours, relative to their largest value.
    difference: float = 0.0
    #: Our median time over its.
    ratio: float = 1.0

    @property
    def least(self) -> float:
        """The quickest run."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)


@dataclass
class LayerRow:
    """The time of one step: a layer with those that are fused with it."""

    name: str
    operation: str
    #: That of its first output; with open sizes where it depends on values.
    shape: Shape
    seconds: float
    operations: float
    bytes: int
    #: Bytes of all values that are needed while it is carried out.
    held: int = 0
    #: Whether the operation was carried out as it is defined, as nothing was planned.
    by_definition: bool = False

    @property
    def gigaflops(self) -> float:
        """Sums and products by the definition, in 1e9 a second."""
        return self.operations / self.seconds / 1e9

    @property
    def gigabytes(self) -> float:
        """Inputs, weights and outputs, in 1e9 bytes a second."""
        return self.bytes / self.seconds / 1e9


@dataclass
class Report:
    """All of it; the first row is ours."""

    rows: list[Row]
    layers: list[LayerRow]
    threads: int
    #: Resident memory of the process at its highest, in bytes.
    peak: int
    #: The library that multiplies matrices for ours.
    blas: str

    @property
    def difference(self) -> float:
        """The largest difference to another runtime."""
        return max(row.difference for row in self.rows)

    @property
    def between(self) -> float:
        """Seconds of our quickest run that no layer took: calls, and waiting of workers."""
        taken = sum(row.seconds for row in self.layers)
        return max(0.0, self.rows[0].least - taken) if self.layers else 0.0


def measure(
    model: Model,
    inputs: Sequence[Array],
    *,
    against: Sequence[str] = (),
    threads: int | None = None,
    runs: int = 15,
    layers: bool = False,
    onnx: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Run a model and other runtimes in turn, A B A B, and compare what they give.

    Args:
        model: The model.
        inputs: An array for each input, in order.
        against: ``openvino``, ``onnxruntime``.
        threads: For each of them; None for all cores.
        runs: How often each is measured; before each time there are runs that are not counted.
        layers: Also the time of each layer.
        onnx: The same model for onnxruntime; None for the .onnx beside the .xml.
        progress: Called with the name of the runtime after each run that is counted.

    Raises:
        UnsupportedError: Another runtime refuses the model.
    """
    unknown = [name for name in against if name not in RUNTIMES]
    if unknown:
        raise UsageError(
            f'no runtime is named "{unknown[0]}"', hint=f"there are {', '.join(RUNTIMES)}"
        )
    began, before = time.perf_counter(), resident()
    program = Program(model, threads=threads)
    ours = Row("vinoir", _own_version(), time.perf_counter() - began)

    def once(arrays: Sequence[Array]) -> list[Array]:
        program.reset()  # variables that grow would make each run another
        return [*program(arrays).values()]

    entrants: list[tuple[Row, Call]] = [(ours, once)]
    wanted = once(inputs)
    ours.memory = resident() - before
    for name in against:
        began, before = time.perf_counter(), resident()
        with _refusals(name):
            version, run_it = RUNTIMES[name](model, threads, onnx)
        row = Row(name, version, time.perf_counter() - began)
        call = _guarded(name, run_it)
        row.difference = difference(wanted, call(inputs))
        row.memory = resident() - before
        entrants.append((row, call))
    for _ in range(runs):
        for row, call in entrants:
            until_quiet()
            began = time.perf_counter()
            while time.perf_counter() - began < WARM:
                call(inputs)
            began = time.perf_counter()
            call(inputs)
            row.seconds.append(time.perf_counter() - began)
            if progress is not None:
                progress(row.name)
    rows = [row for row, _ in entrants]
    for row in rows[1:]:
        row.ratio = ours.median / row.median
    program.reset()
    steps = layer_rows(program, inputs) if layers else []
    return Report(rows, steps, program.threads, _peak(), describe())


def until_quiet() -> None:
    """Wait until no thread of the process works any more."""
    began = time.perf_counter()
    while time.perf_counter() - began < LONGEST:
        worked = time.process_time()
        time.sleep(REST)
        if time.process_time() - worked < REST / 5:
            return


def difference(wanted: Sequence[Array], found: Sequence[Array]) -> float:
    """The largest difference relative to the largest value; infinite for other shapes."""
    if len(wanted) != len(found):
        return float("inf")
    worst = 0.0
    for ours, theirs in zip(wanted, found, strict=True):
        if ours.shape != theirs.shape:
            return float("inf")
        if not ours.size:
            continue
        if ours.dtype.kind in "TOSU":
            worst = max(
                worst, 0.0 if np.array_equal(plain_texts(ours), plain_texts(theirs)) else 1.0
            )
            continue
        with np.errstate(all="ignore"):
            same = (ours == theirs) | ((ours != ours) & (theirs != theirs))  # NaN is what NaN is
            left, right = ours.astype(np.float64), theirs.astype(np.float64)
            finite = np.isfinite(left) & np.isfinite(right)
            if not (same | finite).all():
                return float("inf")
            scale = np.abs(left[finite]).max(initial=0.0)
            whole = ours.dtype.kind in "iu" and theirs.dtype.kind in "iu"
            off = integers_apart(ours, theirs) if whole else np.abs(left - right)
            apart = float(off[finite & ~same].max(initial=0.0))
        worst = max(worst, float(apart / scale if scale else apart))
    return worst


# Other runtimes.

#: What has OpenVINO's CPU compute in float32: else it rounds rows that meet weights of few bits,
#: and what variables hold of keys and values, to 8 bits.
AT_F32 = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
}


def _openvino(model: Model, threads: int | None, onnx: str | None) -> tuple[str, Call]:
    ov = _module("openvino")
    words: dict[str, Any] = {**AT_F32, "PERFORMANCE_HINT": "LATENCY"}
    if threads is not None:
        words["INFERENCE_NUM_THREADS"] = threads
    compiled = ov.Core().compile_model(_path(model), "CPU", words)
    request = compiled.create_infer_request()
    has_variables = bool(request.query_state())

    def call(arrays: Sequence[Array]) -> list[Array]:
        if has_variables:
            request.reset_state()
        found = request.infer(list(arrays))
        return [found[output] for output in compiled.outputs]

    return ov.__version__.split("-")[0], call


def _onnxruntime(model: Model, threads: int | None, onnx: str | None) -> tuple[str, Call]:
    runtime = _module("onnxruntime")
    path = Path(onnx) if onnx is not None else Path(_path(model)).with_suffix(".onnx")
    if not path.exists():
        raise UsageError(
            f"onnxruntime needs the model as ONNX, {path} is not there",
            hint="give it by --onnx FILE",
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names, outputs = (
        [entry.name for entry in entries]
        for entries in (session.get_inputs(), session.get_outputs())
    )
    known = [rows for _, rows in named_inputs(model.parameters)]
    names = [names[place] for place in paired_by_name("inputs", known, path, names)]
    known = [output_names(model, x) for x in model.results]
    outputs = [outputs[place] for place in paired_by_name("outputs", known, path, outputs)]

    def call(arrays: Sequence[Array]) -> list[Array]:
        return [*session.run(outputs, dict(zip(names, arrays, strict=True)))]

    return runtime.__version__, call


RUNTIMES: Mapping[str, Callable[[Model, int | None, str | None], tuple[str, Call]]] = {
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
}


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """What another runtime raises, whose errors are of its own types, as one of ours."""
    try:
        yield
    except IRError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # OpenVINO says last what is wrong, before it the places in its source.
        told = [line for line in lines if not line.startswith("Exception from ")] or lines
        said = " ".join(told) or type(error).__name__
        raise UnsupportedError(
            f"{name} does not run the model: {said:.600}",
            hint="give inputs that fit (--input NAME=FILE.npy), or measure without it",
        ) from error


def _guarded(name: str, call: Call) -> Call:
    """A call of another runtime, which may refuse the inputs at any run."""

    def guarded(arrays: Sequence[Array]) -> list[Array]:
        with _refusals(name):
            return call(arrays)

    return guarded


def _module(name: str) -> Any:
    return optional(name, f"{name} is not installed", f"pip install {name}")


def _path(model: Model) -> str:
    if model.path is None:
        raise UsageError("another runtime needs a model that was read from a file")
    return os.fspath(model.path)


def _own_version() -> str:
    from ...schemas.version import VERSION

    return VERSION


# Where the time goes.


def layer_rows(
    program: Program, inputs: Sequence[Array], runs: int = LAYER_RUNS
) -> list[LayerRow]:
    """The least time of each step of a program, with the work that it does."""
    timed = program.times(inputs, runs)
    if timed is not None:
        held = held_by_nodes([node for node, *_ in timed])
        rows = (planned_row(*took) for took in timed)
        return [replace(row, held=size) for row, size in zip(rows, held, strict=True)]
    traced: dict[int, tuple[Layer, float, tuple[Array, ...]]] = {}

    def note(step: Traced) -> None:
        known = traced.get(step.layer.id)
        least = step.seconds if known is None else min(step.seconds, known[1])
        traced[step.layer.id] = (step.layer, least, step.outputs)

    for _ in range(runs):
        run(program.model, dict(enumerate(inputs)), trace=note)
    shown = [row for row in traced.values() if row[0].type not in ("Parameter", "Const", "Result")]
    sizes = [sum(array.nbytes for array in outputs) for _, _, outputs in shown]
    held = held_by_layers([(row[0], size) for row, size in zip(shown, sizes, strict=True)])
    return [
        LayerRow(
            layer.name, layer.type, Shape(outputs[0].shape if outputs else ()),
            max(seconds, 1e-9), 0.0, size, needed, by_definition=True,
        )
        for (layer, seconds, outputs), size, needed in zip(shown, sizes, held, strict=True)
    ]  # fmt: skip


def planned_row(node: Node, seconds: float, turns: int) -> LayerRow:
    """The work of one node of a plan in all its turns: by the definition, whatever is saved."""
    output = node.outputs[0]
    shape = output.tensor.shape
    size = prod(output.shape) if shape.is_static else 0
    each = 1.0
    if products(node):
        each = 2.0 * products(node) / max(size, 1)
    elif node.kind in ("MaxPool", "AvgPool"):
        each = float(prod(node.op.kernel))  # type: ignore[attr-defined]  # poolings have it
    joined = [op.xml_type for op, _ in (*node.prologue, *node.epilogue)]
    moved = {
        id(value): value.nbytes
        for value in (*node.reads, *node.outputs)
        if value.tensor.shape.is_static
    }
    return LayerRow(
        path_of(node.layer),
        "+".join([node.op.xml_type, *joined]),
        shape,
        max(seconds, 1e-9),
        turns * size * (each + len(joined)),
        turns * sum(moved.values()),
    )


# Memory.


def resident() -> int:
    """Resident memory of this process and its helpers in bytes; 0 where it is not told.

    What several processes share is counted once.
    """
    held = 0
    for process in ("self", *_children()):
        held += next(_status(Path("/proc") / process / "smaps_rollup", "Pss"), 0)
    return held


def _children() -> Iterator[str]:
    for path in Path("/proc/self/task").glob("*/children"):
        yield from _told(path).split()


def _peak() -> int:
    return next(_status(Path("/proc/self/status"), "VmHWM"), 0)


def _status(path: Path, word: str) -> Iterator[int]:
    for line in _told(path).splitlines():
        if line.startswith(word + ":"):
            yield int(line.split()[1]) * 1024


def _told(path: Path) -> str:
    """What the system tells in a file; nothing of a thread or process that has ended."""
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


__all__ = ["LayerRow", "Report", "Row", "difference", "layer_rows", "measure"]
