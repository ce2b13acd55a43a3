"""Models of one node of ONNX Runtime's own domain, and whether its answers are ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_features__
from vinoir import ir

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402  # only where onnx is there

RNG = np.random.default_rng(0)
DOMAIN = "com.microsoft"


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def whole(kind: str, *shape: int) -> np.ndarray:
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(kind)


def narrow(*shape: int) -> np.ndarray:
    """Bytes; without VNNI of 7 bits, as ONNX Runtime's sums of larger ones overflow there."""
    most = 128 if __cpu_features__.get("AVX512VNNI") else 64
    return RNG.integers(-most, most, shape).astype("i1")


def few(value: float) -> np.ndarray:
    return np.float32(value)


def byte(value: int, kind: str = "u1") -> np.ndarray:
    return np.array(value, kind)


def model(kind: str, inputs: list[Any], fed: int, outputs: int = 1, **attributes: Any) -> Any:
    """A node whose first inputs are fed, and whose others are constant; None is left out."""
    names = [f"x{n}" if x is not None else "" for n, x in enumerate(inputs)]
    made = [f"y{n}" for n in range(outputs)]
    node = helper.make_node(kind, names, made, name="node", domain=DOMAIN, **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names[:fed], inputs[:fed], strict=True)
        if x is not None
    ]
    fixed = [
        numpy_helper.from_array(np.asarray(x), name)
        for name, x in zip(names[fed:], inputs[fed:], strict=True)
        if x is not None
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([node], "g", given, results, fixed)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def same(proto: Any, inputs: list[Any], tolerance: float = 1e-5) -> None:
    given = [x for x in inputs if x is not None]
    session = runtime.InferenceSession(proto.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    wanted = session.run(None, dict(zip(names, given, strict=True)))
    made = ir.from_onnx(proto.SerializeToString())
    assert not ir.check(made).errors
    for found in (ir.run(made, given), ir.compile(made)(given)):
        for ours, theirs in zip(found.values(), wanted, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            scale = max(float(np.abs(theirs.astype("f8")).max()), 1)
            far = np.abs(ours.astype("f8") - theirs.astype("f8")).max()
            # Whole numbers may be rounded the other way where two are as near.
            assert far <= (tolerance * scale if theirs.dtype.kind == "f" else 1)
