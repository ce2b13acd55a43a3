"""ONNX pooling as IR: against ONNX Runtime where it keeps to the definition, else against that."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from vinoir import ir

onnx = pytest.importorskip("onnx")
from onnx_models import one_node, pool_model, pool_types, typed_outputs  # noqa: E402
from onnx_pool_oracle import Pool, definition  # noqa: E402

NAN, LOW = np.nan, float(np.finfo(np.float32).min)
VERSIONS = {
    "MaxPool": [1, 8, 10, 11, 12, 22],
    "AveragePool": [1, 7, 10, 11, 19, 22],
    "LpPool": [2, 11, 18, 22],
}
#: The version in which an attribute appears.
DILATIONS = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}
CEIL = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}


def draw(rng: random.Random, plain: bool) -> tuple[Pool, Any]:
    """A legal node and its input; ``plain``: symmetric paddings as numbers, no dilation."""
    kind = rng.choice(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    opset = rng.choice(VERSIONS[kind])
    axes = rng.choice([1, 2, 3])
    pool = Pool(kind, opset, [rng.randint(1, 3) for _ in range(axes)])
    if rng.random() < 0.8:
        pool.strides = [rng.randint(1, 3) for _ in range(axes)]
    if opset >= DILATIONS[kind] and not plain and rng.random() < 0.5:
        pool.dilations = [rng.randint(1, 3) for _ in range(axes)]
    if opset >= CEIL[kind]:
        pool.ceil_mode = rng.choice([0, 1, None])
    if kind == "AveragePool" and opset >= 7:
        pool.count_include_pad = rng.choice([0, 1, None])
    if kind == "MaxPool" and opset >= 8:
        pool.storage_order = rng.choice([0, 1, None])
        pool.indices = rng.random() < 0.5
    if kind == "LpPool":
        pool.p = rng.choice([None, 1, 2, 3])
    modes = (
        [None, "NOTSET"] if plain else [None, "NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"]
    )
    pool.auto_pad = rng.choice(modes)
    reaches = [
        (k - 1) * d + 1 for k, d in zip(pool.kernel, pool.dilations or [1] * 3, strict=False)
    ]
    pads = [0] * (2 * axes)
    if pool.auto_pad in (None, "NOTSET", "") and rng.random() < 0.8:
        ends = [[rng.randint(0, reach - 1) for reach in reaches] for _ in range(2)]
        pads = ends[0] * 2 if plain else ends[0] + ends[1]
        pool.pads = pads
    same = (pool.auto_pad or "").startswith("SAME")
    least = [
        1 if same else max(1, reach - pads[i] - pads[i + axes]) for i, reach in enumerate(reaches)
    ]
    sizes = [rng.randint(low, max(low, 9 - axes)) for low in least]
    count = 2 * int(np.prod(sizes))
    values = np.random.default_rng(rng.randint(0, 10**6)).permutation(count) - count // 2
    return pool, values.reshape(1, 2, *sizes).astype(np.float32)


def answer(pool: Pool, x: Any, shape: Any = None, semantics: Any = "onnxruntime") -> list[Any]:
    """What the imported node gives."""
    model = ir.from_onnx(pool_model(pool, x, shape), semantics=semantics)
    found = ir.run(model, {"x0": x})
    planned = ir.compile(model, threads=1)({"x0": x})
    for name, array in found.items():
        np.testing.assert_allclose(planned[name], array, 1e-5, 1e-5, err_msg=str(pool))
    return list(found.values())


@pytest.mark.parametrize("seed", range(8))
def test_any_legal_node_is_by_definition(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        pool, x = draw(rng, plain=False)
        named = ["N", "C", *(f"S{i}" for i in range(x.ndim - 2))] if rng.random() < 0.3 else None
        for found, wanted in zip(answer(pool, x, named), definition(pool, x), strict=True):
            assert found.shape == wanted.shape, pool
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-4, err_msg=str(pool))


@pytest.mark.parametrize("seed", range(4))
def test_plain_nodes_are_those_of_onnx_runtime(seed: int) -> None:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    rng = random.Random(1000 + seed)
    asked = 0
    while asked < 40:
        pool, x = draw(rng, plain=True)
        if pool.kind == "AveragePool" and pool.opset < 7:
            continue  # ONNX Runtime has no such kernel
        asked += 1
        proto = typed_outputs(pool_model(pool, x), pool_types(pool, x))
        session = ort.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        for found, wanted in zip(answer(pool, x), session.run(None, {"x0": x}), strict=True):
            assert found.shape == wanted.shape, pool
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-4, err_msg=str(pool))


@pytest.mark.parametrize("seed", range(2))
def test_openvino_computes_the_same_from_the_ir(seed: int) -> None:
    ov = pytest.importorskip("openvino")
    rng = random.Random(2000 + seed)
    core = ov.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    for _ in range(30):
        pool, x = draw(rng, plain=False)
        xml, weights = ir.dumps(ir.from_onnx(pool_model(pool, x)))
        model = core.read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
        found = core.compile_model(model, "CPU", options)([x])
        for one, wanted in zip(found.values(), definition(pool, x), strict=True):
            assert one.shape == wanted.shape, pool
            np.testing.assert_allclose(one, wanted, 1e-5, 1e-3, err_msg=str(pool))


def line(*values: float) -> Any:
    """A plane of one row."""
    return np.array(values, np.float32).reshape(1, 1, -1)


def grid(*rows: list[float]) -> Any:
    """A plane of rows."""
    return np.array(rows, np.float32)[None, None]


#: The cases on which the runtimes disagree: what we answer, and why.
DISAGREED: dict[str, tuple[str, dict[str, Any], Any, list[float]]] = {
    # The last window begins in the end padding: dropped, as ONNX-22 says and PyTorch does.
    "1": ("MaxPool-12", {"kernel_shape": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1},
          line(1, 2, 3, 4, 5), [1, 3, 5]),
    # The same without padding: the last window would begin behind the input.
    "2": ("MaxPool-22", {"kernel_shape": [1], "strides": [2], "ceil_mode": 1},
          line(1, 2, 3, 4), [1, 3]),
    # The divisor counts padding, but not what overhangs it: 4 / 2, not 4 / 3.
    "3": ("AveragePool-19", {"kernel_shape": [3], "strides": [2], "pads": [1, 1], "ceil_mode": 1,
                             "count_include_pad": 1}, line(1, 2, 3, 4), [1, 3, 2]),
    "4": ("AveragePool-11", {"kernel_shape": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1},
          line(1, 2, 3, 4, 5), [1, 2.5, 4.5]),
    # ceil(5 / 2) windows, the odd padding in front.
    "5": ("MaxPool-12", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_LOWER"},
          line(1, 2, 3, 4, 5), [2, 4, 5]),
    "6": ("MaxPool-12", {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 1, 1]},
          grid([1, 2], [3, 4]), [4, 4, 4, 4]),
    "8": ("MaxPool-12", {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]},
          grid([1, 2], [3, 4]).astype(np.int8), [4, 4, 4, 4]),
    # The formula for VALID comes to the floor, but every runtime rounds up.
    "9": ("MaxPool-12", {"kernel_shape": [3], "strides": [2], "auto_pad": "VALID", "ceil_mode": 1},
          line(1, 2, 3, 4, 5, 6), [3, 5, 6]),
    "10": ("AveragePool-11", {"kernel_shape": [3], "strides": [2], "auto_pad": "VALID",
                              "ceil_mode": 1}, line(1, 2, 3, 4, 5, 6), [2, 4, 5.5]),
    # What overhangs is not counted.
    "11": ("AveragePool-22", {"kernel_shape": [3], "strides": [3], "ceil_mode": 1},
           line(1, 2, 3, 4), [2, 4]),
    # SAME pads for the dilated kernel: ceil(7 / 3) windows.
    "12": ("AveragePool-19", {"kernel_shape": [3], "strides": [3], "dilations": [2],
                              "auto_pad": "SAME_UPPER"}, line(*range(1, 8)), [2, 4, 6]),
    "13": ("MaxPool-22", {"kernel_shape": [3], "strides": [3], "dilations": [2],
                          "auto_pad": "SAME_UPPER"}, line(*range(1, 8)), [3, 6, 7]),
    # A kernel shorter than its stride needs no padding, never less than none.
    "14": ("MaxPool-12", {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_UPPER"},
           line(*range(1, 7)), [1, 4]),
    "15": ("AveragePool-19", {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_UPPER"},
           line(*range(1, 7)), [1, 4]),
    # NaN and infinity are as OpenVINO's MaxPool has them: a window begins with the lowest
    # finite number and takes what is greater.
    "17": ("MaxPool-12", {"kernel_shape": [2]}, line(NAN, NAN), [LOW]),
    "18": ("MaxPool-12", {"kernel_shape": [2]}, line(NAN, 2), [2]),
    "19": ("MaxPool-12", {"kernel_shape": [2]}, line(-np.inf, -np.inf), [LOW]),
    # Windows of nothing but padding are legal for MaxPool, as in OpenVINO.
    "20": ("MaxPool-12", {"kernel_shape": [2], "pads": [2, 2]}, line(1, 2), [LOW, 1, 2, 2, LOW]),
    "21": ("MaxPool-12", {"kernel_shape": [2]}, np.zeros((0, 1, 4), np.float32), []),
    # auto_pad comes before pads.
    "23": ("MaxPool-12", {"kernel_shape": [3], "auto_pad": "VALID", "pads": [1, 1]},
           line(1, 2, 3, 4, 5), [3, 4, 5]),
    # Types and versions for which ONNX Runtime has no kernel.
    "26a": ("AveragePool-1", {"kernel_shape": [3]}, line(1, 2, 3, 4, 5), [2, 3, 4]),
    "26b": ("AveragePool-7", {"kernel_shape": [3]}, line(1, 2, 3, 4).astype(np.float64), [2, 3]),
    "26c": ("AveragePool-22", {"kernel_shape": [3]}, line(1, 2, 3, 4).astype(ml_dtypes.bfloat16),
            [2, 3]),
    "26d": ("MaxPool-22", {"kernel_shape": [3]}, line(1, 2, 3, 4).astype(ml_dtypes.bfloat16),
            [3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("row", DISAGREED)
def test_where_runtimes_disagree(row: str) -> None:
    spec, attributes, x, wanted = DISAGREED[row]
    kind, opset = spec.split("-")
    model = ir.from_onnx(one_node(kind, int(opset), [x], **attributes))
    (found,) = ir.run(model, [x]).values()
    assert found.dtype == x.dtype
    assert found.astype(np.float32).ravel().tolist() == np.float32(wanted).tolist()


def test_indices_count_in_the_whole_input() -> None:  # row 7
    x = np.arange(1, 7, dtype=np.float32).reshape(1, 2, 3)
    _, indices = answer(Pool("MaxPool", 12, [2], [1], indices=True), x)
    assert indices.ravel().tolist() == [1, 2, 4, 5]


@pytest.mark.parametrize(("order", "wanted"), [(0, [4, 2]), (1, [1, 4])])
def test_storage_order_numbers_columns_first(order: int, wanted: list[int]) -> None:  # row 16
    x = grid([0, 3, 9, 2], [5, 2, 1, 0])
    pool = Pool("MaxPool", 12, [2, 2], [2, 2], storage_order=order, indices=True)
    values, indices = answer(pool, x)
    assert (values.ravel().tolist(), indices.ravel().tolist()) == ([5, 9], wanted)
    assert indices.shape == values.shape


@pytest.mark.parametrize(
    ("spec", "attributes", "x", "message"),
    [
        # Row 22: IR has no empty windows; OpenVINO refuses as well.
        ("MaxPool-12", {"kernel_shape": [3]}, line(1, 2), "reaches over 3, there are 2"),
        ("AveragePool-19", {"kernel_shape": [3]}, line(1, 2), "reaches over 3, there are 2"),
        # Row 20: the mean of nothing.
        ("AveragePool-19", {"kernel_shape": [2], "pads": [2, 2]}, line(1), "that of nothing"),
        ("MaxPool-12", {"kernel_shape": [2], "pads": [1]}, line(1, 2), "1 entries, two for each"),
        ("MaxPool-8", {"kernel_shape": [2], "ceil_mode": 1}, line(1, 2), "needs MaxPool-10"),
        ("MaxPool-1", {"kernel_shape": [2], "storage_order": 1}, line(1, 2), "needs MaxPool-8"),
        ("MaxPool-8", {"kernel_shape": [2], "dilations": [2]}, line(1, 2), "needs MaxPool-10"),
        ("AveragePool-1", {"kernel_shape": [2], "count_include_pad": 1}, line(1, 2),
         "needs AveragePool-7"),
        ("AveragePool-7", {"kernel_shape": [2], "ceil_mode": 1}, line(1, 2), "AveragePool-10"),
        ("AveragePool-11", {"kernel_shape": [2], "dilations": [2]}, line(1, 2), "AveragePool-19"),
        ("MaxPool-12", {"kernel_shape": [2], "cell_mode": 1}, line(1, 2), "no attribute cell"),
        ("MaxPool-12", {}, line(1, 2), "kernel_shape is missing"),
        ("MaxPool-12", {"kernel_shape": [2, 2]}, line(1, 2), "2 axes, the input has 1"),
        ("MaxPool-12", {"kernel_shape": [2], "strides": [0]}, line(1, 2), "the least is 1"),
        ("MaxPool-12", {"kernel_shape": [2], "pads": [-1, 0]}, line(1, 2), "the least is 0"),
        ("MaxPool-12", {"kernel_shape": [2], "auto_pad": "SAME"}, line(1, 2), "is not one of"),
        ("MaxPool-8", {"kernel_shape": [2]}, line(1, 2).astype(np.int8), "MaxPool-12 does"),
        ("MaxPool-12", {"kernel_shape": [2]}, line(1, 2).astype(ml_dtypes.bfloat16),
         "MaxPool-22 does"),
        ("AveragePool-22", {"kernel_shape": [2]}, line(1, 2).astype(np.int8), "does not take"),
        ("MaxPool-12", {"kernel_shape": [1] * 4}, np.zeros((1,) * 6, np.float32), "1 to 3"),
    ],
)  # fmt: skip
def test_what_is_refused(spec: str, attributes: dict[str, Any], x: Any, message: str) -> None:
    kind, opset = spec.split("-")
    with pytest.raises(ir.IRError, match=message) as caught:
        ir.from_onnx(one_node(kind, int(opset), [x], **attributes))
    assert "the node" in str(caught.value)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int8", "uint8"])
def test_every_type_of_every_version(kind: str, dtype: str) -> None:
    x = np.arange(6).reshape(1, 1, 6).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for opset in VERSIONS[kind]:
        schema = onnx.defs.get_schema(kind, opset, "")
        word = {"float32": "float", "float64": "double"}.get(dtype, dtype)
        legal = f"tensor({word})" in schema.inputs[0].types
        proto = one_node(kind, opset, [x], kernel_shape=[2], strides=[2])
        if not legal:
            with pytest.raises(ir.IRError, match="does not take"):
                ir.from_onnx(proto)
            continue
        (found,) = ir.run(ir.from_onnx(proto), [x]).values()
        wanted = [1, 3, 5] if kind == "MaxPool" else [0.5, 2.5, 4.5]
        assert found.dtype == x.dtype
        assert found.astype(np.float32).ravel().tolist() == wanted


@pytest.mark.parametrize(
    ("kind", "attributes", "x", "wanted"),
    [
        ("GlobalMaxPool", {}, grid([1, 5], [3, 2]), [5]),
        ("GlobalAveragePool", {}, grid([1, 5], [3, 2]), [2.75]),
        ("GlobalLpPool", {}, grid([3, 0], [0, -4]), [5]),
        ("GlobalLpPool", {"p": 1}, grid([3, 0], [0, -4]), [7]),
        ("GlobalLpPool", {"p": 3}, grid([1, 2], [0, -3]), [36 ** (1 / 3)]),
    ],
)
@pytest.mark.parametrize("shape", [None, ["N", "C", "H", "W"]])
def test_global(kind: str, attributes: dict[str, int], x: Any, wanted: Any, shape: Any) -> None:
    proto = one_node(kind, 22, [x], shapes=[shape or x.shape], **attributes)
    (found,) = ir.run(ir.from_onnx(proto), [x]).values()
    assert found.shape == (1, 1, 1, 1)
    np.testing.assert_allclose(found.ravel(), wanted, 1e-6)


@pytest.mark.parametrize(
    ("semantics", "opset", "wanted"),
    [
        ("onnxruntime", 12, [1, 3, 5]),
        ("onnxruntime", 22, [1, 3, 5]),
        ("onnx", 12, [1, 3, 5, LOW]),  # the text before version 22 keeps the last window
        ("onnx", 22, [1, 3, 5]),
        ("openvino", 22, [1, 3, 5, LOW]),  # as its importer has it
    ],
)
def test_semantics_of_the_ceil_rule(semantics: Any, opset: int, wanted: list[float]) -> None:
    x = line(1, 2, 3, 4, 5)
    pool = Pool("MaxPool", opset, [2], [2], [1, 1], ceil_mode=1)
    (found,) = answer(pool, x, semantics=semantics)
    assert found.ravel().tolist() == np.float32(wanted).tolist()


@pytest.mark.parametrize("seed", range(2))
def test_semantics_openvino_is_what_its_importer_gives(seed: int) -> None:
    ov = pytest.importorskip("openvino")
    rng = random.Random(3000 + seed)
    core = ov.Core()
    for _ in range(25):
        pool, x = draw(rng, plain=True)
        if pool.kind == "LpPool":
            continue  # it has none
        proto = typed_outputs(pool_model(pool, x), pool_types(pool, x))
        model = core.read_model(proto.SerializeToString())
        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        wanted = core.compile_model(model, "CPU", options)([x])
        found = answer(pool, x, semantics="openvino")
        for one, other in zip(found, wanted.values(), strict=True):
            assert one.shape == other.shape, pool
            np.testing.assert_allclose(one, other, 1e-5, 1e-3, err_msg=str(pool))


def test_symbols_go_through_pooling() -> None:
    x = np.zeros((1, 1, 6, 6), np.float32)
    proto = one_node("MaxPool", 12, [x], shapes=[["batch", 1, "H", 6]], kernel_shape=[2, 2],
                     strides=[2, 2])  # fmt: skip
    model = ir.from_onnx(proto)
    for known in (model, ir.loads(*ir.dumps(model))):
        assert str(ir.infer(known)["y0"].shape) == "batch,1,H//2,3"
