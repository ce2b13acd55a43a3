"""IR files as OpenVINO writes them: every sample call, bodies, state, and networks.

Run: python tests/openvino_files.py FOLDER. Names are those of the operation and its version
(``Gather.8.0.xml``, ``Gather.8.1.xml``); networks are called ``network.0.xml`` and so on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calls
import numpy as np
import openvino
import openvino.opset3 as opset3
import openvino.opset13 as ops
from networks import Drawer
from oracle import single
from test_subgraphs import choice, iterator, loop, parameter
from vinoir import ir

#: How many networks are drawn.
NETWORKS = 6


def models() -> Iterator[tuple[str, Any]]:
    """Each model with the name of what it shows."""
    core = openvino.Core()

    def read(xml: str | bytes, weights: bytes) -> Any:
        blob = np.frombuffer(weights or b"\0", np.uint8).copy()
        text = xml if isinstance(xml, bytes) else xml.encode()
        return core.read_model(text, openvino.Tensor(blob))

    for call in calls.samples():
        kind, _, number = call.op.rpartition("V")
        yield f"{kind}.{number}", read(*single(call.make(), call.tensors()))
    yield "TensorIterator.1", iterator("2,6,3", 1, 0, -1, 1)
    yield "TensorIterator.1", iterator("1..4,6,3", 2, -1, 0, -2)
    yield "Loop.5", sliced_loop()
    yield "Loop.5", loop("2,6,3", 4, True, False)
    yield "Loop.5", loop("?,?,3", None, None, False)
    yield "If.8", choice("2,6,3", None, "2,4,3")
    for name in ("ReadValue.6", "Assign.6"):
        yield name, state("2,3", "2,3")
        yield name, state("?,3", "1..4,3")
    for name in ("ReadValue.3", "Assign.3"):
        yield name, old_state()
    for name in ("Parameter.1", "Result.1"):
        x = parameter("2,?,1..4")
        yield name, openvino.Model([x], [x], "through")
    yield "Const.1", openvino.Model([ops.constant(np.arange(6.0).reshape(2, 3))], [], "constant")
    for seed in range(NETWORKS):
        yield "network", read(*ir.dumps(Drawer(seed).model()))


def sliced_loop() -> Any:
    """A Loop that takes a slice and a kept value, and hands out the last and all of the sums."""
    x, first = parameter("1,4,3"), parameter("1,1,3")
    turn, part, kept = parameter("", openvino.Type.i64), parameter("1,1,3"), parameter("1,1,3")
    always = ops.constant(np.array(True))
    total = ops.add(part, kept)
    body = openvino.Model([always, total, ops.relu(total)], [turn, part, kept], "body")
    made = ops.loop(ops.constant(np.int64(4)), ops.constant(np.array(True)))
    made.set_function(body)
    made.set_special_body_ports([0, 0])
    made.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 1)
    made.set_merged_input(kept, first.output(0), body.results[1].output(0))
    last = made.get_iter_value(body.results[1].output(0), -1)
    every = made.get_concatenated_slices(body.results[2].output(0), 0, 1, 1, -1, 1)
    return openvino.Model([last, every], [x, first], "loop")


def state(variable: str, initial: str) -> Any:
    """A variable that grows by one."""
    x = parameter(initial)
    shape = openvino.PartialShape(f"[{variable}]")
    kept = ops.read_value(x, "v", openvino.Type.f32, shape)
    sink = ops.assign(ops.add(kept, ops.constant(np.float32(1))), "v")
    return openvino.Model([kept.output(0)], [sink], [x], "state")


def old_state() -> Any:
    """The same as opset3 has it, without the type and shape of the variable."""
    x = parameter("2,3")
    kept = opset3.read_value(x, "v")
    sink = opset3.assign(ops.add(kept, ops.constant(np.float32(1))), "v")
    return openvino.Model([kept.output(0)], [sink], [x], "state")


def describe(model: Any) -> None:
    """Names of tensors and notes, as files from converters have them."""
    for side, ports in (("in", model.inputs), ("out", model.outputs)):
        for index, port in enumerate(ports):
            port.get_tensor().add_names({f"{side}{index}", f"{side} {index} & more"})
    model.set_rt_info("none", ["conversion_parameters", "compress_to_fp16"])


def write(folder: Path) -> None:
    """Write every model into a folder; every second one with names and notes."""
    numbers: Counter[str] = Counter()
    for index, (name, model) in enumerate(models()):
        if index % 2:
            describe(model)
        openvino.serialize(model, folder / f"{name}.{numbers[name]}.xml")
        numbers[name] += 1


if __name__ == "__main__":
    write(Path(sys.argv[1]))
