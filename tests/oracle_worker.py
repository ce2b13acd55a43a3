"""OpenVINO in a process of its own: answers the questions of ``oracle.py`` on standard input."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import openvino
from vinoir.schemas import Array, ElementType, Shape
from vinoir.schemas.packing import pack, unpack


@cache
def core() -> Any:
    found = openvino.Core()
    words = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        # Else the data of products with weights of few bits would become integers.
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "KV_CACHE_PRECISION": "f32",
    }
    found.set_property("CPU", words)
    return found


def load(xml: str, weights: bytes) -> Any:
    """OpenVINO's model of an IR text."""
    blob = np.frombuffer(weights or b"\0", np.uint8).copy()
    return core().read_model(xml.encode(), openvino.Tensor(blob))


def shapes(xml: str, weights: bytes) -> list[str]:
    """What OpenVINO infers for each output."""
    return outputs_of(load(xml, weights))


def compiled(xml: str, weights: bytes) -> None:
    """Let OpenVINO compile a model, which it may refuse, or crash over."""
    core().compile_model(load(xml, weights), "CPU")


def file(path: str, weights: str) -> list[str]:
    """What OpenVINO infers for each output of a file."""
    return outputs_of(core().read_model(path, weights) if weights else core().read_model(path))


def version(xml: str, weights: bytes, name: str) -> str:
    """Under which version OpenVINO knows the operation of a layer."""
    nodes = load(xml, weights).get_ops()
    found: str = next(
        node.get_type_info().version_id for node in nodes if node.get_friendly_name() == name
    )
    return found


def outputs_of(model: Any) -> list[str]:
    """Types and shapes of a model's outputs, as ``f32[1,3,?]``."""
    return [
        f"{o.get_element_type().to_string()}[{Shape.parse(str(o.get_partial_shape())).spelling}]"
        for o in model.outputs
    ]


def values(xml: str, weights: bytes, arrays: Sequence[Array]) -> list[Array]:
    """What OpenVINO computes for each output."""
    return run(load(xml, weights), arrays)


def inputs(xml: str, weights: bytes) -> list[list[str]]:
    """The names by which OpenVINO is given each input."""
    return [sorted(port.get_names()) for port in load(xml, weights).inputs]


def reference(xml: str, weights: bytes, arrays: Sequence[Array]) -> list[Array]:
    """What OpenVINO's reference implementation computes for each output."""
    model = load(xml, weights)
    return evaluate(model, _given(model, arrays))


def run(model: Any, arrays: Sequence[Array]) -> list[Array]:
    """Outputs of an OpenVINO model for arrays in the order of its inputs.

    Where its CPU does not have the operation, its reference implementation is asked.
    """
    given = _given(model, arrays)
    try:
        compiled = core().compile_model(model, "CPU")
        request = compiled.create_infer_request()
        for index, tensor in enumerate(given):
            request.set_input_tensor(index, tensor)
        request.infer()
        return [_array(request.get_output_tensor(i)) for i in range(len(model.outputs))]
    except RuntimeError:
        return evaluate(model, given)


def evaluate(model: Any, given: Sequence[Any]) -> list[Array]:
    """Outputs of the reference implementation."""
    empty = openvino.Shape([0])
    results = [openvino.Tensor(o.get_element_type(), empty) for o in model.outputs]
    if not model.evaluate(results, given):
        raise RuntimeError("OpenVINO's reference does not evaluate the model")
    return [_array(tensor) for tensor in results]


def _given(model: Any, arrays: Sequence[Array]) -> list[Any]:
    return [_tensor(p.get_element_type(), a) for p, a in zip(model.inputs, arrays, strict=True)]


def _tensor(kind: Any, array: Array) -> Any:
    ours = ElementType.parse(kind.to_string())
    if ours is ElementType.STRING:
        return openvino.Tensor(array.tolist())
    if array.dtype.type.__module__ == "numpy" and array.dtype.itemsize * 8 == ours.bits:
        # NumPy gives a scalar an axis here.
        return openvino.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    # NumPy types that OpenVINO does not know go as bytes.
    tensor = openvino.Tensor(kind, openvino.Shape(list(array.shape)))
    tensor.data.reshape(-1).view(np.uint8)[...] = np.frombuffer(pack(array, ours), np.uint8)
    return tensor


def _array(tensor: Any) -> Array:
    kind = ElementType.parse(tensor.get_element_type().to_string())
    if kind is ElementType.STRING:
        return np.array(tensor.str_data, dtype=kind.dtype).reshape(tuple(tensor.get_shape()))
    data = np.array(tensor.data)
    if kind.bits < 8:
        return unpack(data.reshape(-1).view(np.uint8), kind, tuple(tensor.get_shape()))
    return data.view(kind.dtype) if data.dtype != kind.dtype else data


def main() -> None:
    """Answer one pickled question after the other."""
    known = (compiled, file, inputs, reference, shapes, values, version)
    questions = {function.__name__: function for function in known}
    # What OpenVINO prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            question, words = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = questions[question](*words)
        except RuntimeError as error:
            answer = RuntimeError(str(error))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
