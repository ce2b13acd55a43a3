"""OpenVINO as the oracle: one operation as a model of its own, its shapes and its values.

The model is written as IR text, so that any type, version and attributes can be asked about,
also those which no Python builder offers. An input with a value becomes a Const, one without
a Parameter.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import Array, Dim, IRError, Shape, Tensor


@dataclass(frozen=True)
class Call:
    """One sample call of an operation: class name, attributes in the XML's words, inputs.

    ``inputs`` are arrays, or ``(array, "u4")`` where NumPy's type does not tell the element
    type. ``const`` names the inputs (by index) that have to be constants in a file.
    """

    op: str
    inputs: Sequence[Any]
    data: dict[str, str] = field(default_factory=dict)
    const: tuple[int, ...] = ()
    #: Relative and absolute tolerance against OpenVINO.
    rtol: float = 1e-5
    atol: float = 1e-6
    #: Why OpenVINO is not asked for values: a known difference.
    differs: str = ""
    #: Why its reference implementation is asked for values, and not its CPU.
    reference: str = ""

    def __str__(self) -> str:
        return f"{self.op} {self.data}" if self.data else self.op

    @property
    def kind(self) -> type[Op]:
        name, _, number = self.op.rpartition("V")
        return Op.registry[name, int(number)]

    def make(self) -> Op:
        made: Op = self.kind.read(self.data)
        return made

    def arrays(self) -> list[Array]:
        return [np.asarray(i[0] if isinstance(i, tuple) else i) for i in self.inputs]

    def tensors(self, *, known: bool = False) -> list[Tensor]:
        """The inputs as tensors; values only of the constants, unless all are to be known."""
        rows = []
        for index, given in enumerate(self.inputs):
            kind = given[1] if isinstance(given, tuple) else None
            tensor = Tensor.of(given[0] if isinstance(given, tuple) else given, kind)
            if not known and index not in self.const:
                tensor = Tensor(tensor.type, tensor.shape)
            rows.append(tensor)
        return rows


def single(op: Op, inputs: Sequence[Tensor], outputs: int | None = None) -> tuple[str, bytes]:
    """The IR of one operation: its XML and its weights."""
    if outputs is None:
        outputs = len(op.infer_outputs(inputs))
    data = "".join(f' {name}="{text}"' for name, text in op.attributes().items())
    return write(op.xml_type, op.version(), data, inputs, outputs)


def write(
    kind: str, version: str, data: str, inputs: Sequence[Tensor], outputs: int
) -> tuple[str, bytes]:
    """IR text of one layer between its Parameters or Consts and its Results."""
    layers, edges, weights = [], [], b""
    for index, tensor in enumerate(inputs):
        dims = _dims(tensor.shape)
        port = f'<output><port id="0" precision="{tensor.type.port}">{dims}</port></output>'
        if tensor.value is None:
            layers.append(
                f'<layer id="{index}" name="in{index}" type="Parameter" version="opset1">'
                f'<data shape="{tensor.shape.spelling}" element_type="{tensor.type}"/>'
                f"{port}</layer>"
            )
        else:
            blob = packed(tensor)
            sizes = ", ".join(map(str, tensor.shape.static))
            layers.append(
                f'<layer id="{index}" name="in{index}" type="Const" version="opset1">'
                f'<data element_type="{tensor.type}" shape="{sizes}" offset="{len(weights)}" '
                f'size="{len(blob)}"/>{port}</layer>'
            )
            weights += blob
        edges.append(
            f'<edge from-layer="{index}" from-port="0" to-layer="1000" to-port="{index}"/>'
        )
    ports_in = "".join(
        f'<port id="{i}" precision="{t.type.port}">{_dims(t.shape)}</port>'
        for i, t in enumerate(inputs)
    )
    ports_out = "".join(f'<port id="{len(inputs) + i}" precision="FP32"/>' for i in range(outputs))
    layers.append(
        f'<layer id="1000" name="op" type="{kind}" version="{version}"><data{data}/>'
        f"<input>{ports_in}</input><output>{ports_out}</output></layer>"
    )
    for i in range(outputs):
        layers.append(
            f'<layer id="{2000 + i}" name="out{i}" type="Result" version="opset1">'
            f'<input><port id="0" precision="FP32"/></input></layer>'
        )
        edges.append(
            f'<edge from-layer="1000" from-port="{len(inputs) + i}" '
            f'to-layer="{2000 + i}" to-port="0"/>'
        )
    xml = (
        f'<?xml version="1.0"?><net name="m" version="11"><layers>{"".join(layers)}</layers>'
        f"<edges>{''.join(edges)}</edges><rt_info/></net>"
    )
    return xml, weights


def _dims(shape: Shape) -> str:
    if shape.rank is None:
        return ""
    return "".join(f"<dim>{s if isinstance(s, int) else -1}</dim>" for s in shape)


def packed(tensor: Tensor) -> bytes:
    """The bytes of a constant in the .bin."""
    from vinoir.schemas.packing import pack

    assert tensor.value is not None
    return pack(tensor.value, tensor.type) or b"\0"


def expected_shapes(op: Op, inputs: Sequence[Tensor], outputs: int | None = None) -> list[str]:
    """What OpenVINO infers, as ``f32[1,3,?]``; RuntimeError where it refuses."""
    shapes: list[str] = ask("shapes", *single(op, inputs, outputs))
    return shapes


def expected_values(
    op: Op,
    inputs: Sequence[Tensor],
    arrays: Sequence[Array],
    outputs: int | None = None,
    *,
    reference: bool = False,
) -> list[Array]:
    """What OpenVINO's CPU computes at f32, or its reference where the CPU cannot."""
    given = [a for t, a in zip(inputs, arrays, strict=True) if t.value is None]
    question = "reference" if reference else "values"
    values: list[Array] = ask(question, *single(op, inputs, outputs), given)
    return values


def ask(question: str, *words: Any) -> Any:
    """Ask OpenVINO in a process of its own: on odd input it crashes."""
    pytest.importorskip("openvino")
    worker = _worker()
    try:
        pickle.dump((question, words), worker.stdin)
        worker.stdin.flush()
        answer = pickle.load(worker.stdout)
    except (BrokenPipeError, EOFError):
        _dismiss(worker)
        _worker.cache_clear()
        raise RuntimeError(f"OpenVINO crashed (exit {worker.returncode})") from None
    if isinstance(answer, RuntimeError):
        raise answer
    return answer


@cache
def _worker() -> Any:
    program = Path(__file__).with_name("oracle_worker.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    worker = subprocess.Popen(
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    atexit.register(_dismiss, worker)
    return worker


def _dismiss(worker: Any) -> None:
    for pipe in (worker.stdin, worker.stdout):
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    worker.wait()


def relaxed(tensor: Tensor, rng: random.Random) -> Tensor:
    """The same tensor with some of its sizes, or its rank, no longer known."""
    if tensor.value is not None:
        return tensor
    if rng.random() < 0.1:
        return Tensor(tensor.type, Shape.UNKNOWN)
    sizes: list[int | Dim] = []
    for size in tensor.shape.static:
        low, high = max(size - rng.randint(0, 3), 0), size + rng.randint(1, 4)
        sizes.append(rng.choice([size, size, Dim(), Dim(low, high), Dim(low)]))
    return Tensor(tensor.type, Shape(sizes))


def disagreements(call: Call, rng: random.Random, relaxations: int = 3) -> list[str]:
    """Where we and OpenVINO differ on a call: shapes known and partly known, then values.

    Where both refuse, they agree.
    """
    op, found = call.make(), []
    exact = call.tensors()
    for tensors in [exact, *([relaxed(t, rng) for t in exact] for _ in range(relaxations))]:
        try:
            ours: list[str] | None = [
                f"{t.type}[{t.shape.spelling}]" for t in op.infer_outputs(tensors)
            ]
        except IRError as error:
            ours, refusal = None, str(error)
        try:
            theirs: list[str] | None = expected_shapes(op, tensors, len(ours or [0]))
        except RuntimeError as error:
            theirs, refusal = None, str(error).strip().splitlines()[-1][:200]
            if "Accessing out-of-range dimension" in refusal:
                continue  # it looked into a shape of unknown rank
        if ours is None and theirs is None and tensors is exact:
            return found
        if ours != theirs:
            given = ", ".join(map(str, tensors))
            found.append(f"{call} on {given}: {ours or refusal}, OpenVINO {theirs or refusal}")
    if found or call.differs:
        return found
    values = op.run(*call.arrays())
    computed = expected_values(op, exact, call.arrays(), reference=bool(call.reference))
    for i, (value, wanted) in enumerate(zip(values, computed, strict=True)):
        if not agree(value, wanted, call):
            found.append(f"{call}, output {i}:\n{value}\nOpenVINO:\n{wanted}")
    return found


def agree(value: Array, wanted: Array, call: Call) -> bool:
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        return False
    if value.dtype.kind in "iubT":
        return bool(np.array_equal(value, wanted))
    return np.allclose(
        value.astype("f8"), wanted.astype("f8"), rtol=call.rtol, atol=call.atol, equal_nan=True
    )
