"""OpenVINO and ONNX Runtime in a process of their own, where they may crash.

Started as a program of its own: it reads pickled questions from standard input and writes pickled
answers to standard output. Arrays travel as element type, shape and bytes, as OpenVINO holds them.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: Element type, shape and bytes.
Packed = tuple[str, tuple[int, ...], Any]


@cache
def core() -> Any:
    """OpenVINO, told to compute in f32 as files say, and to quantize nothing on the way."""
    import openvino

    found = openvino.Core()
    words = {
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "KV_CACHE_PRECISION": "f32",
    }
    found.set_property("CPU", words)
    # Low precision transformations carry a quantized network out in 8 bits and move scales across
    # layers: no tensor inside would be what the file says that it is.
    with suppress(RuntimeError):  # a version that has no such switch
        found.set_property("CPU", {"LP_TRANSFORMS_MODE": False})
    return found


def openvino_version() -> str:
    """The version of OpenVINO."""
    import openvino

    return str(openvino.__version__.split("-")[0])


def onnxruntime_version() -> str:
    """The version of ONNX Runtime."""
    import onnxruntime

    return str(onnxruntime.__version__)


def openvino_run(path: str, inputs: list[Packed]) -> list[Packed]:
    """The outputs of an IR, in order."""
    compiled = core().compile_model(core().read_model(path), "CPU")
    request = compiled.create_infer_request()
    for index, given in enumerate(inputs):
        request.set_input_tensor(index, _tensor(given))
    request.infer()
    return [_packed(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]


def _tensor(given: Packed) -> Any:
    import numpy as np
    import openvino

    kind, shape, content = given
    if kind == "string":
        return openvino.Tensor(np.array(content, dtype=np.str_).reshape(shape))
    tensor = openvino.Tensor(getattr(openvino.Type, kind), openvino.Shape(list(shape)))
    held = tensor.data.reshape(-1).view(np.uint8)
    held[...] = np.frombuffer(content, np.uint8)[: held.size]
    return tensor


def _packed(tensor: Any) -> Packed:
    import numpy as np

    kind, shape = tensor.get_element_type().to_string(), tuple(tensor.get_shape())
    if kind == "string":
        return kind, shape, np.array(tensor.str_data).reshape(-1).tolist()
    return kind, shape, tensor.data.reshape(-1).view(np.uint8).tobytes()


def onnx_names(path: str) -> tuple[list[str], list[str], list[str]]:
    """The inputs, all tensors that nodes give, and the outputs of an ONNX model."""
    graph = _onnx(path).graph
    weights = {one.name for one in graph.initializer}
    made = [name for node in graph.node for name in node.output if name]
    inputs = [one.name for one in graph.input if one.name not in weights]
    return inputs, made, [one.name for one in graph.output]


def onnxruntime_run(path: str, wanted: list[str], inputs: dict[str, Any]) -> dict[str, Any]:
    """Tensors of an ONNX model by name, also those inside."""
    import onnxruntime

    model = _onnx(path)
    known = {one.name for one in model.graph.output}
    model.graph.output.extend(
        type(model.graph.output[0])(name=name) for name in wanted if name not in known
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    folder = os.fspath(Path(path).resolve().parent)
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", folder
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(wanted, session.run(wanted, inputs), strict=True))


def _onnx(path: str) -> Any:
    import onnx

    return onnx.load(path, load_external_data=False)


def main() -> None:
    """Answer one pickled question after the other."""
    questions = {
        function.__name__: function
        for function in (
            openvino_version, onnxruntime_version, openvino_run, onnx_names, onnxruntime_run
        )
    }  # fmt: skip
    # What a runtime prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            question, words = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, questions[question](*words))
        except Exception as error:  # told to who asked, who knows what was asked
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


if __name__ == "__main__":
    main()
