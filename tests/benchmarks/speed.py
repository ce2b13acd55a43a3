"""Rows of the tables: networks, poolings, cold starts, scaling."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino as ov
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper
from vinoir import ir
from vinoir.ir.measuring import bench

from . import light
from .reading import chain

Row = dict[str, Any]
NATIVE = ("openvino", "onnxruntime")


def image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype("f4")


def networks(runs: int, threads: int | None) -> Iterator[Row]:
    """Each network against both runtimes; what takes most of its time."""
    for name in light.NAMES:
        path, source = light.network(name)
        model = ir.read(path)
        inputs = [image(tuple(ir.infer(model).of(p)[0].shape.static)) for p in model.parameters]
        report = bench.measure(
            model,
            inputs,
            against=NATIVE,
            threads=threads,
            runs=runs,
            layers=True,
            onnx=str(source),
        )  # fmt: skip
        ours, *others = report.rows
        whole = sum(row.seconds for row in report.layers)
        kinds: dict[str, float] = {}
        for step in report.layers:
            kind = step.operation.partition("+")[0]
            kinds[kind] = kinds.get(kind, 0) + step.seconds / whole
        work = sum(step.operations for step in report.layers)
        yield {
            "network": name,
            "ours ms": 1e3 * ours.median,
            **{f"{row.name} ms": 1e3 * row.median for row in others},
            **{f"ratio {row.name}": row.ratio for row in others},
            "differs": report.difference,
            "GFLOP": work / 1e9,
            "GFLOP/s": work / ours.median / 1e9,
            "time in": ", ".join(
                f"{kind} {share:.0%}" for kind, share in sorted(kinds.items(), key=lambda x: -x[1])
                if share > 0.03
            ),
        }  # fmt: skip


def poolings(runs: int, threads: int | None) -> Iterator[Row]:
    """Windows, strides, sizes, channels and batches."""
    places = [(13, 512), (56, 64), (112, 64), (224, 32)]
    for kind, batch, (size, channels), window, stride in itertools.product(
        ("MaxPool", "AvgPool"), (1, 8), places, (2, 3, 5, 7, 15), (1, 2)
    ):
        if window > size or (batch == 8 and size > 56):
            continue
        shape = (batch, channels, size, size)
        with tempfile.TemporaryDirectory() as folder:
            yield {
                "pooling": f"{kind} {window}x{window}/{stride} {list(shape)}",
                "window": window,
                **pooling(kind, shape, window, stride, Path(folder), runs, threads),
            }


def pooling(
    kind: str, shape: tuple[int, ...], window: int, stride: int, folder: Path, runs: int,
    threads: int | None,
) -> Row:  # fmt: skip
    pad = window // 2 if window % 2 else 0
    words: dict[str, Any] = {
        "kernel": (window, window), "strides": (stride, stride), "pads_begin": (pad, pad),
        "pads_end": (pad, pad), "rounding_type": "floor",
    }  # fmt: skip
    if kind == "AvgPool":
        words["data"] = {"exclude-pad": "true"}
    net = ir.Builder("pooling")
    net.result(net.add(kind, "opset1", [net.parameter("x", "f32", shape)], **words), name="y")
    ir.write(net.model(), folder / "p.xml")
    node = helper.make_node(
        "MaxPool" if kind == "MaxPool" else "AveragePool", ["x"], ["y"],
        kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4,
    )  # fmt: skip
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        for name, sizes in (("x", shape), ("y", None))
    ]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), folder / "p.onnx")
    array = image(shape)
    report = bench.measure(
        ir.read(folder / "p.xml"), [array], against=NATIVE, threads=threads, runs=runs
    )
    fastest = min(row.median for row in report.rows[1:])
    ours = report.rows[0].median
    began = time.perf_counter()
    naive(kind, array, window, stride, pad)
    return {
        "ours ms": 1e3 * ours,
        "fastest native ms": 1e3 * fastest,
        "ratio": ours / fastest,
        "sliding_window_view over ours": (time.perf_counter() - began) / ours,
        "differs": report.difference,
    }


def naive(kind: str, array: np.ndarray, window: int, stride: int, pad: int) -> np.ndarray:
    """The usual few lines: every window as a view, joined along its axes."""
    fill = -np.inf if kind == "MaxPool" else np.nan
    room = np.pad(array, [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=fill)
    windows = sliding_window_view(room, (window, window), axis=(2, 3))[:, :, ::stride, ::stride]
    return windows.max((4, 5)) if kind == "MaxPool" else np.nanmean(windows, (4, 5))


def sequences(runs: int, threads: int | None) -> Iterator[Row]:
    """Recurrent layers of one or both directions: samples, steps, inputs, hidden units."""
    sizes = [
        (1, 50, 64, 128, 1), (4, 50, 64, 128, 1), (16, 50, 64, 128, 1), (1, 50, 256, 256, 2),
        (4, 50, 256, 256, 1), (32, 20, 128, 512, 1), (8, 100, 80, 64, 2), (2, 30, 40, 32, 1),
    ]  # fmt: skip
    kinds = {
        "LSTMSequence": (4, 4, 2, ["sigmoid", "tanh", "tanh"]),
        "GRUSequence": (3, 4, 1, ["sigmoid", "tanh"]),
        "RNNSequence": (1, 1, 1, ["tanh"]),
    }
    for kind, (batch, count, taken, hidden, ways) in itertools.product(kinds, sizes):
        gates, biases, states, names = kinds[kind]
        net = ir.Builder("sequence")
        x = net.parameter("x", "f32", (batch, count, taken))
        start = [net.constant(image((batch, ways, hidden))) for _ in range(states)]
        weights = [
            net.constant(image((ways, rows * hidden, *columns)) / np.float32(hidden**0.5))
            for rows, columns in ((gates, (taken,)), (gates, (hidden,)), (biases, ()))
        ]
        words: dict[str, Any] = {
            "hidden_size": hidden, "direction": ("forward", "bidirectional")[ways - 1],
            "activations": names,
        }  # fmt: skip
        if kind == "GRUSequence":
            words["linear_before_reset"] = True
        lengths = net.constant(np.full(batch, count))
        found = net.add(kind, "opset5", [x, *start, lengths, *weights], **words)
        net.result(found[0], name="y")
        array = image((batch, count, taken))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.xml"
            ir.write(net.model(), path)
            report = bench.measure(
                ir.read(path), [array], against=("openvino",), threads=threads, runs=runs
            )
        ours, theirs = report.rows
        yield {
            "sequence": f"{kind} {batch}x{count}x{taken} to {ways}x{hidden}",
            "ours ms": 1e3 * ours.median,
            "openvino ms": 1e3 * theirs.median,
            "ratio": theirs.ratio,
            "differs": report.difference,
        }


OURS = """
import sys
import numpy as np
from vinoir import ir
ir.compile(ir.read(sys.argv[1]))([np.zeros((1, 3, 224, 224), "f4")])
"""
THEIRS = """
import sys
import numpy as np
import openvino as ov
words = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
ov.Core().compile_model(sys.argv[1], "CPU", words)([np.zeros((1, 3, 224, 224), "f4")])
"""
MEMORY = """
import json, sys
import numpy as np
from vinoir import ir
from vinoir.ir.measuring.bench import resident
program = ir.compile(ir.read(sys.argv[1]))
for _ in range(5):
    program([np.zeros((1, 3, 224, 224), "f4")])
print(json.dumps({"resident": resident()}))
"""


def cold_starts(runs: int, threads: int | None) -> Iterator[Row]:
    """A new process: import, read, prepare, first output."""
    for name in ("squeezenet", "resnet50"):
        path, _ = light.network(name)
        times: dict[str, list[float]] = {OURS: [], THEIRS: []}
        # As after an installation: modules are compiled already.
        words = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        for turn in range(max(3, runs // 2) + 1):
            for code, found in times.items():
                began = time.perf_counter()
                subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=words)
                if turn:
                    found.append(time.perf_counter() - began)
        ours, theirs = (float(np.median(found)) for found in times.values())
        yield {
            "network": name,
            "ours ms": 1e3 * ours,
            "openvino ms": 1e3 * theirs,
            "ratio": ours / theirs,
        }


def memories(runs: int, threads: int | None) -> Iterator[Row]:
    """Resident memory once a network has run, against what it may be."""
    for name in light.NAMES:
        path, _ = light.network(name)
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(path)], check=True, capture_output=True, text=True
        )
        model = ir.read(path)
        weights = path.with_suffix(".bin").stat().st_size
        # Constants are of the weights; of what layers give, the two largest count.
        tensors = [(x, t) for x, _, t in ir.infer(model).ports() if not x.is_constant]
        largest = sorted(4 * int(np.prod(t.shape.static)) for _, t in tensors)[-2:]
        allowed = weights + 1.5 * sum(largest) + 100e6
        held = json.loads(done.stdout)["resident"]
        yield {
            "network": name, "MB": held / 1e6, "weights MB": weights / 1e6,
            "allowed MB": allowed / 1e6, "ratio": held / allowed,
        }  # fmt: skip


def readings(runs: int, threads: int | None) -> Iterator[Row]:
    """Reading a file, against ``Core.read_model``."""
    core = ov.Core()
    with tempfile.TemporaryDirectory() as folder:
        synthetic = Path(folder) / "chain8000.xml"
        synthetic.write_text(chain(8000))
        for path in [synthetic, *(light.network(name)[0] for name in light.NAMES)]:
            ours, theirs = [], []
            for _ in range(runs):
                ours.append(clock(partial(ir.read, path)))
                theirs.append(clock(partial(core.read_model, path)))
            yield {
                "file": path.name,
                "ours ms": 1e3 * float(np.median(ours)),
                "openvino ms": 1e3 * float(np.median(theirs)),
                "ratio": float(np.median(ours) / np.median(theirs)),
            }


def scaling(runs: int, threads: int | None) -> Iterator[Row]:
    """The same small network with more layers, larger images, larger batches."""
    cases = [("layers", n, n, 16, 1) for n in (100, 1000, 10_000, 100_000)]
    cases += [("image", n, 8, n, 1) for n in (56, 112, 224, 448, 896)]
    cases += [("batch", n, 8, 56, n) for n in (1, 4, 16, 32)]
    for what, number, layers, size, batch in cases:
        net = ir.Builder("scaling")
        shape = (batch, 16, size, size)
        x = net.parameter("x", "f32", shape)
        weights = net.constant(image((16, 16, 3, 3)) / 12)
        ones = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
        for _ in range(layers // 2):
            x = net.add("Convolution", "opset1", [x, weights], **ones)
            x = net.add("ReLU", "opset1", [x])
        net.result(x, name="y")
        model = net.model()
        began = time.perf_counter()
        program = ir.compile(model, threads=threads)
        ready = time.perf_counter() - began
        array = image(shape)
        program([array])
        often = runs if layers <= 100 else 3 if layers <= 10_000 else 1
        times = [clock(partial(program, [array])) for _ in range(often)]
        unit = layers * batch * size * size
        yield {
            "what": f"{what} {number}",
            "ready ms": 1e3 * ready,
            "ready us a layer": 1e6 * ready / layers,
            "ms": 1e3 * float(np.median(times)),
            "ns a layer and place": 1e9 * float(np.median(times)) / unit,
        }


def clock(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def versions() -> Row:
    """What was measured against what."""
    known = {"openvino": ov, "onnxruntime": onnxruntime, "numpy": np}
    return {name: module.__version__ for name, module in known.items()}
