"""ONNX models as IR: networks, node cases, hostile files, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_models import model_of, one_node  # noqa: E402
from vinoir.ir.onnx.importing.entry import examine  # noqa: E402
from vinoir.schemas import UnsupportedError  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
import onnx_coverage  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
NETWORKS = sorted(path.stem for path in LIGHT.glob("*.onnx"))

#: Cases whose numbers differ, and why.
DIFFERENT = {
    "test_attention_4d_causal_bf16": "bfloat16 is rounded at other steps",
    "test_attention_4d_causal_bf16_expanded": "bfloat16 is rounded at other steps",
    "test_cast_FLOAT_to_FLOAT4E2M1": "NaN, which f4e2m1 has not",
    "test_cast_FLOAT16_to_FLOAT4E2M1": "NaN, which f4e2m1 has not",
    "test_castlike_FLOAT_to_FLOAT4E2M1": "NaN, which f4e2m1 has not",
    "test_castlike_FLOAT_to_FLOAT4E2M1_expanded": "NaN, which f4e2m1 has not",
    "test_castlike_FLOAT16_to_FLOAT4E2M1": "NaN, which f4e2m1 has not",
    "test_castlike_FLOAT16_to_FLOAT4E2M1_expanded": "NaN, which f4e2m1 has not",
    "test_cast_e8m0_FLOAT_to_FLOAT8E8M0": "IR rounds to the nearest, ONNX up",
    "test_cast_e8m0_FLOAT16_to_FLOAT8E8M0": "IR rounds to the nearest, ONNX up",
    **{
        f"test_mod_float_edge_cases_fmod_0_{kind}": "IR leaves no number of an infinite divisor"
        for kind in ("float16", "float32", "float64")
    },
    "test_reduce_max_empty_set": "IR's largest of nothing is the lowest finite number",
    "test_reduce_min_empty_set": "IR's least of nothing is the highest finite number",
    "test_resize_downsample_scales_linear_align_corners": "IR spans the whole elements",
    "test_resize_downsample_scales_cubic_align_corners": "IR spans the whole elements",
}

#: Families of which every node case imports and passes.
WHOLE = {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "Conv",
         "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "Softmax", "LogSoftmax",
         "GRU", "RNN", "Slice", "Gather", "ScatterND", "ScatterElements", "TopK", "Einsum",
         "MaxUnpool", "NonMaxSuppression"}  # fmt: skip


def network_input(proto: Any) -> dict[str, Any]:
    """The input for which the networks' outputs were made."""
    made = {tensor.name for tensor in proto.graph.initializer}
    (value,) = (value for value in proto.graph.input if value.name not in made)
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return {value.name: (np.arange(count).reshape(shape) / count).astype(np.float32)}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_the_outputs_beside_them(name: str) -> None:
    path = LIGHT / f"{name}.onnx"
    model, given = ir.from_onnx(path), network_input(onnx.load(path))
    data = (LIGHT / f"{name}_output_0.pb").read_bytes()
    wanted = numpy_helper.to_array(TensorProto.FromString(data))
    if name == "light_squeezenet":
        # Equal weights everywhere make logits of 1e10 that are equal: the last bit of a sum, which
        # processors take in other orders, decides what the softmax gives. So that is held against
        # theirs by what it is made of, and against its own definition.
        proto = onnx.load(path)
        (last,) = (node for node in proto.graph.node if node.op_type == "Softmax")
        proto.graph.output.extend([helper.make_empty_tensor_value_info(last.input[0])])
        ort = pytest.importorskip("onnxruntime")
        session = ort.InferenceSession(proto.SerializeToString())
        _, theirs = session.run(None, given)
        both = ir.compile(ir.from_onnx(proto), threads=1)(given)
        found, logits = both.values()
        np.testing.assert_allclose(logits, theirs, 1e-4)
        np.testing.assert_allclose(logits, np.full_like(logits, logits.max()), 1e-5)
        wide = np.exp(logits.astype("f8") - logits.max())
        wanted = (wide / wide.sum()).astype("f4")
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-6)
        return
    (found,) = ir.compile(model, threads=1)(given).values()
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-6)


def with_random_weights(proto: Any) -> Any:
    """The network with seeded weights in the place of each ConstantOfShape."""
    rng = np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    kept = []
    for node in proto.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]].tolist()
        spread = (2 / max(np.prod(shape[1:]), 1)) ** 0.5
        weights = rng.standard_normal(shape, np.float32) * np.float32(spread)
        if len(shape) == 1:
            weights = np.abs(weights) + np.float32(0.5)  # a variance is not below zero
        proto.graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    return proto


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet", "light_inception_v1"])
def test_what_the_importer_knows_is_what_inference_finds(name: str) -> None:
    importer = examine(LIGHT / f"{name}.onnx")
    known, found = importer.tensors, ir.infer(importer.model)
    assert known is not None
    for layer in importer.model.layers:
        for one, other in zip(known[layer.id], found.of(layer), strict=True):
            assert one == other, layer
            assert (one.value is None) == (other.value is None), layer
            if one.value is not None and other.value is not None:
                np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet", "light_inception_v1"])
def test_networks_with_random_weights_are_those_of_onnx_runtime(name: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    proto = with_random_weights(onnx.load(LIGHT / f"{name}.onnx"))
    proto.ir_version = 8
    given = network_input(proto)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, given)
    (found,) = ir.compile(ir.from_onnx(proto), threads=1)(given).values()
    assert wanted.std() > 0
    np.testing.assert_allclose(found, wanted, 2e-3, 1e-5)


def test_imported_network_is_sound_and_the_same_in_openvino(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    proto = with_random_weights(onnx.load(LIGHT / "light_squeezenet.onnx"))
    model = ir.from_onnx(proto)
    assert not ir.check(model).errors
    ir.write(model, tmp_path / "m.xml")
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = ov.Core().compile_model(tmp_path / "m.xml", "CPU", options)
    given = network_input(proto)
    names = {port.get_any_name() for port in compiled.outputs}
    assert names == {value.name for value in proto.graph.output}
    (wanted,) = compiled(given).values()
    (found,) = ir.compile(model, threads=1)(given).values()
    np.testing.assert_allclose(found, wanted, 2e-3, 1e-5)


@cache
def node_cases() -> list[Any]:
    """The package takes seconds to make them."""
    return list(onnx_coverage.cases())


def test_node_cases() -> None:
    cases = node_cases()
    names = {case.name: case.model.graph.node[0].op_type for case in cases
             if len(case.model.graph.node) == 1}  # fmt: skip
    onnx_coverage._whole.update(names)
    outcomes = [onnx_coverage.attempt(case) for case in cases]
    bad = {o.name: o.why for o in outcomes if o.verdict in ("wrong", "refused")}
    assert set(bad) <= set(DIFFERENT), bad
    missing = [o for o in outcomes if o.operator in WHOLE and o.verdict != "passed"]
    assert not missing, [(o.name, o.why[:100]) for o in missing]
    if onnx.__version__ == "1.23.2":
        assert sum(o.verdict == "passed" for o in outcomes) >= 1691


@pytest.mark.parametrize(
    "operator",
    ["LSTM", "GRU", "RNN", "TopK", "Resize", "GridSample", "DFT", "ScatterND", "QuantizeLinear",
     "Loop", "If", "Scan", "Pad", "Slice", "InstanceNormalization", "ArgMax", "Trilu", "OneHot",
     "CumProd", "CausalConvWithState"],
)  # fmt: skip
def test_imported_nodes_load_and_compute_in_openvino(operator: str) -> None:
    ov = pytest.importorskip("openvino")
    core = ov.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    asked = 0
    for case in node_cases():
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type != operator or asked == 6:
            continue
        outcome = onnx_coverage.attempt(case)
        if outcome.verdict != "passed":
            continue
        model = ir.from_onnx(case.model)
        assert not ir.check(model).errors, case.name
        xml, weights = ir.dumps(model)
        inputs, outputs = case.data_sets[0]
        given = [onnx_coverage.as_array(value) for value in inputs]
        wanted = [onnx_coverage.as_array(value) for value in outputs]
        narrow = {
            "bfloat16",
            "int4",
            "uint4",
            "uint2",
            "float4_e2m1fn",
            "float8_e4m3fn",
            "float8_e5m2",
        }
        if {array.dtype.name for array in (*given, *wanted)} & narrow:
            continue  # OpenVINO's arrays show none of these as they are
        loaded = core.read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
        found = core.compile_model(loaded, "CPU", options)(given)
        asked += 1
        for one, other in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(
                np.float64(one), np.float64(other), 1e-3, 1e-4, err_msg=case.name
            )
    assert asked


# Graphs.


def relu_chain(length: int) -> Any:
    """A chain of nodes, out of order."""
    nodes = [
        helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(length)
    ]
    x = helper.make_tensor_value_info("t0", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info(f"t{length}", TensorProto.FLOAT, [2])
    return model_of(helper.make_graph(nodes[::-1], "chain", [x], [y]), 13)


def test_names_survive_and_order_does_not_matter() -> None:
    model = ir.from_onnx(relu_chain(3))
    assert [layer.name for layer in model.order()] == ["t0", "n0", "n1", "n2", "t3/sink_port_0"]
    assert [port.names for layer in model for port in layer.outputs if layer.type == "ReLU"] == [
        ("t3",), ("t2",), ("t1",)
    ][::-1]  # fmt: skip
    assert list(ir.run(model, {"t0": np.float32([-1, 1])})) == ["t3"]


def test_long_chains_need_no_recursion() -> None:
    assert len(ir.from_onnx(relu_chain(5000))) == 5002


def graph(
    nodes: list[Any], inputs: list[Any], outputs: list[str], opset: int = 17, **more: Any
) -> Any:
    """A model of nodes over f32 tensors; inputs are names with shapes."""
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    initializer = more.pop("initializer", [])
    made = helper.make_graph(nodes, "g", values, results, initializer=initializer)
    return model_of(made, opset, **more)


def test_initializers_are_no_inputs_and_identities_keep_names() -> None:
    weight = numpy_helper.from_array(np.float32([1, 2]), "w")
    nodes = [
        helper.make_node("Add", ["x", "w"], ["s"], name="sum"),
        helper.make_node("Identity", ["s"], ["one"]),
        helper.make_node("Identity", ["s"], ["two"]),
    ]
    proto = graph(nodes, [("x", [2]), ("w", [2])], ["one", "two", "s", "x"], initializer=[weight])
    model = ir.from_onnx(proto)
    assert [layer.name for layer in model.parameters] == ["x"]
    found = ir.run(model, {"x": np.float32([1, 1])})
    assert {name: value.tolist() for name, value in found.items()} == {
        "one": [2, 3], "two": [2, 3], "s": [2, 3], "x": [1, 1]
    }  # fmt: skip


def test_functions_are_inlined() -> None:
    body = [
        helper.make_node("Constant", [], ["c"]),
        helper.make_node("Mul", ["a", "c"], ["m"], name="scale"),
        helper.make_node("Add", ["m", "b"], ["r"], name="move"),
    ]
    reference = body[0].attribute.add()
    reference.name, reference.ref_attr_name = "value_float", "factor"
    reference.type = onnx.AttributeProto.FLOAT
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Affine", ["a", "b"], ["r"], body, imports, ["factor"])
    nodes = [
        helper.make_node("Affine", ["x", "x"], ["y"], name="one", domain="own", factor=2.0),
        helper.make_node("Affine", ["y", "x"], ["z"], name="two", domain="own", factor=3.0),
    ]
    proto = graph(nodes, [("x", [2])], ["z"], functions=[function])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    model = ir.from_onnx(proto)
    assert {"one/scale", "one/move", "two/scale", "two/move"} <= {layer.name for layer in model}
    assert ir.run(model, [np.float32([1, 2])])["z"].tolist() == [10, 20]


def recursive() -> Any:
    body = [helper.make_node("Endless", ["a"], ["r"], domain="own")]
    imports = [helper.make_opsetid("own", 1), helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Endless", ["a"], ["r"], body, imports)
    node = helper.make_node("Endless", ["x"], ["y"], domain="own")
    proto = graph([node], [("x", [2])], ["y"], functions=[function])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


def exponential() -> Any:
    functions, imports = [], [helper.make_opsetid("own", 1), helper.make_opsetid("", 17)]
    for level in range(30):
        kind = f"F{level - 1}" if level else "Neg"
        domain = "own" if level else ""
        body = [
            helper.make_node(kind, ["a"], ["b"], domain=domain),
            helper.make_node(kind, ["b"], ["r"], domain=domain),
        ]
        functions.append(helper.make_function("own", f"F{level}", ["a"], ["r"], body, imports))
    node = helper.make_node("F29", ["x"], ["y"], domain="own")
    proto = graph([node], [("x", [2])], ["y"], functions=functions)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


def node(kind: str, inputs: list[str], outputs: list[str], **more: Any) -> Any:
    return helper.make_node(kind, inputs, outputs, name=f"{kind} of {outputs[0]}", **more)


def tensor(dims: list[int], kind: int = TensorProto.FLOAT, **fields: Any) -> Any:
    made = TensorProto(name="w", dims=dims, data_type=kind)
    for name, value in fields.items():
        if isinstance(value, bytes):
            setattr(made, name, value)
        else:
            getattr(made, name).extend(value)
    return made


def weighted(weight: Any) -> Any:
    return graph([node("Add", ["x", "w"], ["y"])], [("x", [2])], ["y"], initializer=[weight])


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "dangling input": (lambda: graph([node("Relu", ["xx"], ["y"])], [("x", [2])], ["y"]),
                       'reads tensor "xx", which nothing makes.*did you mean "x"'),
    "dangling output": (lambda: graph([node("Relu", ["x"], ["y"])], [("x", [2])], ["z"]),
                        'output "z" of the graph is a tensor that nothing makes'),
    "cycle": (lambda: graph([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])],
                            [("x", [2])], ["b"]), "in a cycle: .*Relu of b"),
    "made twice": (lambda: graph([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])],
                                 [("x", [2])], ["y"]), 'tensor "y" is made twice'),
    "recursion": (recursive, "more than 32 deep"),
    "explosion": (exponential, "more than 2000 nodes"),
    "too few bytes": (lambda: weighted(tensor([2], raw_data=b"123")), "takes 8 bytes, 3 are"),
    "too few values": (lambda: weighted(tensor([2], float_data=[1.0])), "takes 2 values, 1"),
    "huge": (lambda: weighted(tensor([2**40, 2**40], raw_data=b"1")), "are there"),
    "negative": (lambda: weighted(tensor([-1], raw_data=b"")), "negative size"),
    "bad type": (lambda: weighted(tensor([0], 99)), "99 is not the number of an element type"),
    "no opset": (lambda: onnx.ModelProto(graph=onnx.GraphProto()), "names no opset"),
    "no graph": (onnx.ModelProto, "no graph"),
    "newer": (lambda: graph([node("Relu", ["x"], ["y"])], [("x", [2])], ["y"], 999), "newer than"),
    "older": (lambda: graph([node("Gelu", ["x"], ["y"])], [("x", [2])], ["y"]), "in opset 20"),
    "inputs": (lambda: graph([node("Relu", ["x", "x"], ["y"])], [("x", [2])], ["y"]), "takes 1"),
    "unknown": (lambda: graph([node("Reluu", ["x"], ["y"])], [("x", [2])], ["y"]),
                "1 of 1 nodes .*Reluu is not an operator of ONNX"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_broken_models_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.onnx.importing.importer._MOST_NODES", 2000)
    make, message = HOSTILE[name]
    with pytest.raises(ir.IRError, match=message):
        ir.from_onnx(make())


def test_truncated_files_never_do_harm() -> None:
    data = relu_chain(3).SerializeToString()
    for size in range(len(data)):
        with pytest.raises(ir.IRError):
            ir.from_onnx(data[:size])


def test_damaged_files_never_do_harm() -> None:
    rng = np.random.default_rng(0)
    whole = np.frombuffer(relu_chain(3).SerializeToString(), np.uint8)
    for _ in range(300):
        data = whole.copy()
        data[rng.integers(len(data), size=3)] = rng.integers(256, size=3)
        try:
            ir.from_onnx(data.tobytes())
        except ir.IRError:
            continue


def outside(tmp_path: Path, location: str, offset: int = 0, size: int = 8) -> Path:
    """A model whose weights are in a file."""
    weight = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=1)
    facts = {"location": location, "offset": str(offset), "length": str(size)}
    for key, value in facts.items():
        weight.external_data.add(key=key, value=value)
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    np.float32([7, 1, 2]).tofile(folder / "parts" / "w.bin")
    np.float32([7, 1, 2]).tofile(tmp_path / "secret.bin")
    if not (folder / "link.bin").is_symlink():
        (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
        (folder / "up").symlink_to(tmp_path)
        (folder / "inner.bin").symlink_to(folder / "parts" / "w.bin")
    (folder / "m.onnx").write_bytes(weighted(weight).SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize("location", ["parts/w.bin", "parts/../parts/w.bin", "inner.bin"])
def test_external_data(tmp_path: Path, location: str) -> None:
    model = ir.from_onnx(outside(tmp_path, location, 4))
    assert ir.run(model, [np.float32([1, 1])])["y"].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("location", "offset", "size", "message"),
    [
        ("../secret.bin", 0, 8, "outside the folder"),
        ("link.bin", 0, 8, "outside the folder"),
        ("up/secret.bin", 0, 8, "outside the folder"),
        ("/etc/passwd", 0, 8, "outside the folder"),
        ("none.bin", 0, 8, "is not there"),
        ("parts", 0, 8, "not an ordinary file"),
        ("parts/w.bin", 8, 8, "has 12"),
        ("parts/w.bin", -4, 8, "not a number of bytes"),
        ("parts/w.bin", 0, 4, "8 bytes are needed"),
        ("", 0, 8, "no location"),
    ],
)
def test_external_data_is_read_in_the_folder_only(
    tmp_path: Path, location: str, offset: int, size: int, message: str
) -> None:
    with pytest.raises(ir.IRError, match=message) as caught:
        ir.from_onnx(outside(tmp_path, location, offset, size))
    assert 'tensor "w"' in str(caught.value)


def test_external_data_lies_where_a_link_to_the_model_leads(tmp_path: Path) -> None:
    model = outside(tmp_path, "parts/w.bin", 4)
    snapshot = tmp_path / "snapshot"
    (snapshot / "parts").mkdir(parents=True)
    (snapshot / "m.onnx").symlink_to("../model/m.onnx")
    (snapshot / "parts" / "w.bin").symlink_to("../../model/parts/w.bin")
    given = [np.float32([1, 1])]
    assert ir.run(ir.from_onnx(snapshot / "m.onnx"), given)["y"].tolist() == [2, 3]
    (snapshot / "parts" / "w.bin").unlink()
    (snapshot / "parts" / "w.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ir.IRError, match="outside the folder"):
        ir.from_onnx(snapshot / "m.onnx")
    assert ir.run(ir.from_onnx(model), given)["y"].tolist() == [2, 3]


def test_external_data_without_a_length(tmp_path: Path) -> None:
    model = ir.from_onnx(outside(tmp_path, "parts/w.bin", 4, 0))  # 0 as if it were not given
    assert ir.run(model, [np.float32([1, 1])])["y"].tolist() == [2, 3]


def test_a_model_without_a_folder_reads_no_file(tmp_path: Path) -> None:
    with pytest.raises(ir.IRError, match="the model has no folder"):
        ir.from_onnx(outside(tmp_path, "parts/w.bin").read_bytes())


def test_all_that_is_unsupported_is_listed() -> None:
    nodes = [
        node("StringNormalizer", ["x"], ["a"]),
        node("Relu", ["x"], ["b"]),
        node("TfIdfVectorizer", ["b"], ["c"], mode="TF", min_gram_length=1, max_gram_length=1,
             max_skip_count=0, ngram_counts=[0], ngram_indexes=[0]),
        node("Add", ["b", "c"], ["d"]),
    ]  # fmt: skip
    nodes[0].input[0] = "s"
    proto = graph(nodes, [("x", [2])], ["d"])
    proto.graph.input.append(helper.make_tensor_value_info("s", TensorProto.STRING, [2]))
    message = "2 of 4 nodes.*Normalizer.*Vectorizer"
    with pytest.raises(ir.UnsupportedError, match=message) as found:
        ir.from_onnx(proto)
    assert found.value.exit_code == 4


# Without the package, and from the command line.


def vinoir(*words: str, hidden: bool = False) -> subprocess.CompletedProcess[str]:
    program = "import sys; "
    if hidden:
        program += "sys.modules['onnx'] = None; "
    program += "from vinoir.ir.cli import main; main(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_the_package_onnx_is_asked_for() -> None:
    done = vinoir("import", "model.onnx", "-o", "m.xml", hidden=True)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert 'pip install "vinoir[onnx]"' in done.stderr


def test_import_verb(tmp_path: Path) -> None:
    x = np.zeros((1, 1, 5), np.float32)
    source, target = tmp_path / "p.onnx", tmp_path / "p.xml"
    onnx.save(
        one_node("MaxPool", 12, [x], kernel_shape=[2], strides=[2], pads=[1, 1], ceil_mode=1),
        source,
    )
    done = vinoir("import", str(source), "-o", str(target), "--explain")
    assert done.returncode == 0, done.stderr
    assert "ceil rule" in done.stdout
    assert "[4] and [3] windows" in done.stdout
    assert ir.run(ir.read(target), [x])["y0"].shape == (1, 1, 3)
    assert vinoir("import", str(source), "-o", str(target)).returncode == 2  # it is there
    done = vinoir("import", str(source), "--dry-run", "--json", "--semantics", "openvino")
    report = json.loads(done.stdout)
    assert report["nodes"][0]["becomes"] == ["MaxPool-8"] or report["nodes"][0]["becomes"] == [
        "MaxPool-1"
    ]


def test_dry_run_lists_what_cannot_be(tmp_path: Path) -> None:
    source = tmp_path / "p.onnx"
    nodes = [node("Relu", ["x"], ["a"]), node("TfIdfVectorizer", ["a"], ["b"]),
             node("Flatten", ["b"], ["y"])]  # fmt: skip
    onnx.save(graph(nodes, [("x", [2])], ["y"]), source)
    done = vinoir("import", str(source), "--dry-run")
    assert "ReLU-1" in done.stdout
    assert "no converter for TfIdfVectorizer-9" in done.stdout
    assert 'needs what "TfIdfVectorizer of b" gives' in done.stdout
    assert "3 nodes: 1 ok, 1 unsupported, 1 waits" in done.stderr
    assert done.returncode == 4


def test_operators_of_classical_models_are_told_by_their_domain() -> None:
    nodes = [
        helper.make_node(kind, ["x"], [f"y{kind}"], domain="ai.onnx.ml")
        for kind in ("Scaler", "TreeEnsembleClassifier", "LabelEncoder")
    ]
    proto = graph(nodes, [("x", [2, 3])], [node.output[0] for node in nodes])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    with pytest.raises(UnsupportedError) as caught:
        ir.from_onnx(proto)
    for node in nodes:
        assert f"no converter for ai.onnx.ml.{node.op_type}-1: IR has no trees" in str(
            caught.value
        )


def test_operators_are_listed() -> None:
    done = vinoir("ops", "--onnx", "--json")
    rows = json.loads(done.stdout)["operators"]
    pool = next(row for row in rows if row["operator"] == "AveragePool")
    assert pool["versions"] == [1, 7, 10, 11, 19, 22]
    assert len({row["operator"] for row in rows}) > 150
