"""Bodies, scalars, old versions and odd text: ONNX models against ONNX Runtime."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from vinoir import ir
from vinoir.schemas import UnreadableError

RNG = np.random.default_rng(7)


def info(name: str, shape: Sequence[Any] | None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def tensors(**arrays: Any) -> list[Any]:
    return [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any] = (),
    opset: int = 17,
) -> Any:  # fmt: skip
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(given))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def same(made: Any, feed: dict[str, Any], tolerance: float = 1e-4) -> None:
    """Shapes, types and values of ``run`` and ``compile`` against ONNX Runtime."""
    options = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=options)
    wanted = session.run(None, feed)
    found = ir.from_onnx(made)
    for outputs in (ir.run(found, feed), ir.compile(found, fork=False, threads=1)(feed)):
        for one, other in zip(outputs.values(), wanted, strict=True):
            assert one.shape == np.shape(other)
            assert one.dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, tolerance, tolerance)


ONES = [(), (1,)]


@pytest.mark.parametrize("state", [(), (1,), (2,), (2, 3)])
@pytest.mark.parametrize("turn", ONES)
@pytest.mark.parametrize("going", ONES)
def test_a_loop_whose_numbers_are_lists_of_one(
    state: tuple[int, ...], turn: tuple[int, ...], going: tuple[int, ...]
) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Cast", ["i"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["s", "number"], ["s_out"]),
            helper.make_node("Identity", ["s_out"], ["each"]),
        ],
        "body",
        [info("i", turn, TensorProto.INT64), info("c", going, TensorProto.BOOL), info("s", None)],
        [info("c_out", going, TensorProto.BOOL), info("s_out", None), info("each", None)],
    )
    for count in ONES:
        made = model(
            [helper.make_node("Loop", ["n", "c", "x"], ["last", "all"], body=body)],
            [info("x", state)],
            [info("last", None), info("all", None)],
            tensors(n=np.full(count, 2), c=np.full(going, True)),
        )
        same(made, {"x": np.ones(state, np.float32)})


@pytest.mark.parametrize("opset", [9, 11, 13, 18])
@pytest.mark.parametrize(
    "kind",
    ["Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"],
)
def test_reductions_of_a_scalar(kind: str, opset: int) -> None:
    as_input = opset >= 18 or (kind == "Sum" and opset >= 13)
    for axis, keep in itertools.product((-1, 0), (0, 1)):
        more: dict[str, Any] = {} if as_input else {"axes": [axis]}
        node = helper.make_node(
            f"Reduce{kind}", ["x", "axes"] if as_input else ["x"], ["y"], keepdims=keep, **more
        )
        given = tensors(axes=[axis]) if as_input else []
        made = model([node], [info("x", ())], [info("y", None)], given, opset)
        try:
            same(made, {"x": np.array(2.5, np.float32)})
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
            continue  # it refuses keepdims=0 in some versions


@pytest.mark.parametrize("sizes", [(7, 9), (8, 8), (5, 4)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_old_resize_grows_and_shrinks(mode: str, sizes: tuple[int, int]) -> None:
    for scales in itertools.product((0.3, 0.5, 0.75, 1, 1.5, 2.6), repeat=2):
        made = model(
            [helper.make_node("Resize", ["x", "s"], ["y"], mode=mode)],
            [info("x", (1, 2, *sizes))],
            [info("y", None)],
            tensors(s=np.array([1, 1, *scales], np.float32)),
            10,
        )
        same(made, {"x": RNG.standard_normal((1, 2, *sizes), np.float32)})


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("shape", [(5, 2, 3), (None, None, 3), None], ids=str)
def test_recurrence_in_a_branch(kind: str, shape: tuple[int | None, ...] | None) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    weights = tensors(
        w=RNG.standard_normal((1, gates * 4, 3), np.float32),
        r=RNG.standard_normal((1, gates * 4, 4), np.float32),
        one=[1],
    )

    def branch(name: str, negate: bool) -> Any:
        nodes = [
            helper.make_node("Neg" if negate else "Identity", ["x"], [f"{name}x"]),
            helper.make_node(kind, [f"{name}x", "w", "r"], [f"{name}y", f"{name}h"],
                             hidden_size=4),
            helper.make_node("Squeeze", [f"{name}y", "one"], [f"{name}s"]),
            helper.make_node("Transpose", [f"{name}s"], [f"{name}t"], perm=[1, 0, 2]),
        ]  # fmt: skip
        outputs = [info(f"{name}t", None), info(f"{name}h", None)]
        return helper.make_graph(nodes, name, [], outputs)

    made = model(
        [helper.make_node("If", ["c"], ["y", "h"], then_branch=branch("a", False),
                          else_branch=branch("b", True))],
        [info("x", shape), info("c", (1,), TensorProto.BOOL)],
        [info("y", None), info("h", None)],
        weights,
    )  # fmt: skip
    for choice in (True, False):
        x = RNG.standard_normal((5, 2, 3), np.float32)
        same(made, {"x": x, "c": np.array([choice])})


WORDS = ["INPUT", "OUTPUT", "NODE", "GRAPH", "SIZE", "Relu"]


def with_bad_text(word: str) -> bytes:
    """A model in which a word is not UTF-8."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["INPUT"], ["OUTPUT"], name="NODE")],
        "GRAPH",
        [info("INPUT", ["SIZE"])],
        [info("OUTPUT", ["SIZE"])],
    )
    content = helper.make_model(graph).SerializeToString()
    assert onnx.load_from_string(content).graph.name == "GRAPH"
    return content.replace(word.encode(), b"\xff" + word[1:].encode())


@pytest.mark.parametrize("word", WORDS)
def test_text_that_is_not_utf_8_is_refused_with_its_place(word: str) -> None:
    with pytest.raises(UnreadableError, match="is not UTF-8") as raised:
        ir.from_onnx(with_bad_text(word))
    assert f"\\xff{word[1:]}" in str(raised.value)


REFUSED = """
import pickle
import sys
from google.protobuf.internal import api_implementation
from vinoir import ir

assert api_implementation.Type() == "python"
said = []
for content in pickle.load(sys.stdin.buffer):
    try:
        ir.from_onnx(content)
    except ir.IRError as error:
        said.append((type(error).__name__, str(error)))
sys.stdout.buffer.write(pickle.dumps(said))
"""


def test_protobuf_in_python_refuses_alike() -> None:
    """It is what there is where nobody has built protobuf's library."""
    damaged = [with_bad_text(word) for word in WORDS]
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], input=pickle.dumps(damaged), capture_output=True,
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}, check=True,
    )  # fmt: skip
    said = []
    for content in damaged:
        with pytest.raises(UnreadableError) as raised:
            ir.from_onnx(content)
        said.append((type(raised.value).__name__, str(raised.value)))
    assert pickle.loads(done.stdout) == said


def over_rows(nodes: Sequence[Any], shape: Sequence[Any]) -> Any:
    """A Loop of n turns over x that gives r of each turn."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c_out"]), *nodes],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL)],
        [info("c_out", [], TensorProto.BOOL), info("r", None)],
    )
    return model(
        [helper.make_node("Loop", ["n", ""], ["y"], body=body)],
        [info("x", shape), info("n", [], TensorProto.INT64)],
        [info("y", None)],
        tensors(one=np.array([1]), zero=np.array([0])),
    )


@pytest.mark.parametrize(
    ("shape", "wanted"), [([2, 3], (0, 2, 3)), (["a", 3], (0, 0, 3)), (["a", "b"], (0, 0, 0))]
)
def test_a_loop_without_a_turn_gives_nothing_of_the_rank_that_turns_would_give(
    shape: list[Any], wanted: tuple[int, ...]
) -> None:
    """Sizes that are known beforehand are there, as in OpenVINO."""
    ov = pytest.importorskip("openvino")
    found = ir.from_onnx(over_rows([helper.make_node("Exp", ["x"], ["r"])], shape))
    given = [np.ones((2, 3), np.float32), np.array(0)]
    xml, weights = ir.dumps(found)
    loaded = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    (asked,) = ov.Core().compile_model(loaded, "CPU")(given).values()
    assert asked.shape == wanted
    for outputs in (ir.run(found, given), ir.compile(found, threads=1)(given)):
        (one,) = outputs.values()
        assert (one.shape, one.dtype) == (wanted, np.dtype(np.float32))


def test_turns_that_give_other_sizes_cannot_be_joined() -> None:
    """Whether turns are known beforehand or not, it is said which does, and where."""
    nodes = [
        helper.make_node("Unsqueeze", ["i", "zero"], ["at"]),
        helper.make_node("Add", ["at", "one"], ["stop"]),
        helper.make_node("Slice", ["x", "zero", "stop"], ["r"]),
    ]
    proto = over_rows(nodes, [2, 3])
    known = over_rows(nodes, [2, 3])
    del known.graph.input[1]
    known.graph.initializer.extend(tensors(n=np.array(2)))
    x = np.ones((2, 3), np.float32)
    for made, given in ((proto, [x, np.array(2)]), (known, [x])):
        found = ir.from_onnx(made)
        for go in (ir.run, lambda model, arrays: ir.compile(model)(arrays)):
            with pytest.raises(ir.IRError, match=r"turn 1 .* \[1, 2, 3\] .* \[1, 1, 3\].* axis 0"):
                go(found, given)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, -2, 2])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_products_so_far(
    kind: type, exclusive: int, reverse: int, axis: int, open_sizes: bool
) -> None:
    x = (RNG.standard_normal((3, 4, 2)) * 3).astype(kind)
    number = helper.np_dtype_to_tensor_dtype(x.dtype)
    sizes = ["a", "b", "c"] if open_sizes else x.shape
    op = helper.make_node("CumProd", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    outer = [info("x", sizes, number)], [info("y", None, number)]
    made = model([op], *outer, tensors(axis=np.array(axis)), opset=26)
    turned = np.flip(x, axis) if reverse else x
    wanted = np.cumprod(turned, axis).astype(kind)
    if exclusive:
        cut = [slice(None)] * 3
        cut[axis] = slice(0, -1)
        ones = np.ones_like(wanted.take([0], axis))
        wanted = np.concatenate([ones, wanted[tuple(cut)]], axis)
    wanted = np.flip(wanted, axis) if reverse else wanted
    found = ir.from_onnx(made)
    assert not ir.check(found).errors
    for outputs in (ir.run(found, {"x": x}), ir.compile(found, fork=False, threads=1)({"x": x})):
        (y,) = outputs.values()
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y, wanted, 1e-6)


def test_products_along_an_axis_that_is_not_known_are_refused() -> None:
    op = helper.make_node("CumProd", ["x", "axis"], ["y"])
    given = [info("x", [2, 3]), info("axis", [], TensorProto.INT64)]
    with pytest.raises(ir.UnsupportedError, match=r"axis \(input 1\) is not constant"):
        ir.from_onnx(model([op], given, [info("y", None)], opset=26))
    given[0] = info("x", [3])  # of one axis there is no other
    made = ir.from_onnx(model([op], given, [info("y", None)], opset=26))
    (y,) = ir.run(made, {"x": np.array([2, 3, 4], np.float32), "axis": np.array(0)}).values()
    assert y.tolist() == [2, 6, 24]


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("given", [["bias"], ["past"], ["bias", "past"], []])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_causal_convolution_keeps_what_the_next_call_meets(
    activation: str, given: list[str], length: int
) -> None:
    """By its function, which depends on the size of the kernel; batch and length are open."""
    x = RNG.standard_normal((2, 3, length)).astype(np.float32)
    held = {"w": RNG.standard_normal((3, 1, 4)), "bias": RNG.standard_normal(3)}
    past = RNG.standard_normal((2, 3, 3)).astype(np.float32)
    names = ["x", "w", *(name if name in given else "" for name in ("bias", "past"))]
    op = helper.make_node("CausalConvWithState", names, ["y", "state"], activation=activation)
    outer = [info("x", ["n", 3, "l"]), info("past", ["n", 3, 3])]
    constants = tensors(**{name: array.astype(np.float32) for name, array in held.items()})
    made = model([op], outer, [info("y", None), info("state", None)], constants, opset=27)
    before = past if "past" in given else np.zeros_like(past)
    joined = np.concatenate([before, x], 2)
    wanted = np.stack(
        [(joined[..., i : i + 4] * held["w"][:, 0]).sum(2) for i in range(length)], 2
    )
    if "bias" in given:
        wanted += held["bias"][:, None]
    if activation == "silu":
        wanted = wanted / (1 + np.exp(-wanted))
    y, state = ir.run(ir.from_onnx(made), {"x": x, "past": past}).values()
    np.testing.assert_allclose(y, wanted, 1e-4, 1e-5)
    np.testing.assert_array_equal(state, joined[..., -3:])


def while_like(bound: int | None, states: Sequence[float], until: float = 20) -> Any:
    """A Loop that adds until its state is so large, and hands out all states."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "one"], ["s_out"]),
            helper.make_node("ReduceSum", ["s_out"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "until"], ["c_out"]),
            helper.make_node("Identity", ["s_out"], ["each"]),
        ],
        "body",
        [info("i", (), TensorProto.INT64), info("c", (), TensorProto.BOOL), info("s", [2])],
        [info("c_out", (), TensorProto.BOOL), info("s_out", [2]), info("each", [2])],
    )
    given = tensors(one=np.float32(1), until=np.float32(until))
    inputs = [info("x", [len(states)])]
    if bound is None:
        inputs.append(info("n", (), TensorProto.INT64))
    else:
        given += tensors(n=np.array(bound))
    node = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)
    return model([node], inputs, [info("last", None), info("all", None)], given)


X = np.array([1, 2], np.float32)


@pytest.mark.parametrize("bound", [-1, -(2**63), 0, 3, 2**31, 2**63 - 2, 2**63 - 1])
def test_a_bound_of_turns_below_zero_is_none_and_a_large_one_takes_no_memory(bound: int) -> None:
    same(while_like(bound, X), {"x": X})
    same(while_like(None, X), {"x": X, "n": np.array(bound)})


def test_a_condition_that_stays_true_is_refused_before_its_turns() -> None:
    endless = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Add", ["s", "s"], ["e"]),
        ],
        "body",
        [info("i", (), TensorProto.INT64), info("c", (), TensorProto.BOOL), info("s", [2])],
        [info("c_out", (), TensorProto.BOOL), info("s", [2]), info("e", [2])],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=endless)
    outputs = [info("last", None), info("all", None)]
    made = model([node], [info("x", [2])], outputs, tensors(n=np.array(2**40)))
    with pytest.raises(ir.IRError, match=r"not enough memory: 17592186044416 bytes"):
        ir.run(ir.from_onnx(made), {"x": X})


def test_a_scan_of_nothing_leaves_its_state() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["s_out"]), helper.make_node("Abs", ["e"], ["o"])],
        "body", [info("s", [3]), info("e", [3])], [info("s_out", [3]), info("o", [3])],
    )  # fmt: skip
    node = helper.make_node("Scan", ["x", "r"], ["last", "all"], body=body, num_scan_inputs=1)
    for rows in (None, 0):
        made = model([node], [info("x", [3]), info("r", [rows, 3])],
                     [info("last", None), info("all", None)])  # fmt: skip
        feed = {"x": np.ones(3, "f4"), "r": np.ones((0, 3), "f4")}
        found = ir.from_onnx(made)
        for outputs in (ir.run(found, feed), ir.compile(found, fork=False, threads=1)(feed)):
            last, every = outputs.values()
            assert last.tolist() == [1, 1, 1]
            assert every.shape == (0, 3)


@pytest.mark.parametrize("axis", [-2, -1, 1])
@pytest.mark.parametrize("back", [0, 1])
def test_a_scan_that_stacks_on_an_axis_from_the_end(axis: int, back: int, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    turn = [helper.make_node("Add", "se", ["t"]), helper.make_node("Neg", ["t"], ["o"])]
    body = helper.make_graph(
        turn, "body", [info("s", [2]), info("e", [2])], [info("t", [2]), info("o", [2])],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["x", "r"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[-1],
        scan_output_axes=[axis], scan_output_directions=[back],
    )  # fmt: skip
    ends = [info("last", None), info("all", None)]
    made = model([node], [info("x", [2]), info("r", [2, 5])], ends)
    feed = {"x": RNG.random(2, np.float32), "r": RNG.random((2, 5), np.float32)}
    same(made, feed)
    ir.write(ir.from_onnx(made), tmp_path / "m.xml")
    assert not [one for one in ir.check(tmp_path / "m.xml") if one.severity == "error"]
    found = ov.Core().compile_model(str(tmp_path / "m.xml"), "CPU")(feed)
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(["all"], feed)
    np.testing.assert_allclose(found["all"], wanted[0], 1e-5)


@pytest.mark.parametrize(("nodes", "names"), [
    (["Identity x z"], ["z", "y"]), (["Identity x a", "Dropout a z"], ["z", "a", "y"]),
    ([], ["x", "y"]), (["Identity y a", "Identity y b"], ["a", "y", "b"]),
])  # fmt: skip
def test_another_name_of_an_input_or_output_takes_none_away(
    nodes: list[str], names: list[str], tmp_path: Path
) -> None:
    ov = pytest.importorskip("openvino")
    spelled = [("Neg", "x", "y"), *(node.split() for node in nodes)]
    made = model(
        [helper.make_node(kind, [taken], [given]) for kind, taken, given in spelled],
        [info("x", ["n"])], [info(name, None) for name in names],
    )  # fmt: skip
    found = ir.from_onnx(made)
    feed = {"x": np.array([1, -2], np.float32)}
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(names, feed)
    by_name = ir.run(found, feed)
    ir.write(found, tmp_path / "m.xml")
    assert not [one for one in ir.check(tmp_path / "m.xml") if one.severity == "error"]
    given = ov.Core().compile_model(str(tmp_path / "m.xml"), "CPU")(feed)
    assert list(by_name) == names
    for name, value in zip(names, wanted, strict=True):
        np.testing.assert_array_equal(by_name[name], value)
        np.testing.assert_array_equal(given[name], value)
