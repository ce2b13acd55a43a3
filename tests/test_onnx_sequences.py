"""Sequences of ONNX: what they hold is followed while importing; answers are ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from test_onnx_bodies import info, model, same, tensors
from vinoir import ir
from vinoir.schemas import IRError, UnsupportedError

RNG = np.random.default_rng(21)


def listed(name: str, kind: int = TensorProto.FLOAT) -> Any:
    """A sequence among a body's inputs or outputs."""
    return helper.make_tensor_sequence_value_info(name, kind, None)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def one_output(*nodes: Any, x: Sequence[Any], kind: int = TensorProto.FLOAT, **held: Any) -> Any:
    return model(nodes, [info("x", x)], [info("y", None, kind)], tensors(**held))


@settings(max_examples=60, deadline=None)
@given(
    axis=st.integers(-3, 2),
    size=st.integers(1, 5),
    each=st.sampled_from([None, 1, 2, 3, "lengths"]),
    keepdims=st.booleans(),
    place=st.integers(-2, 1),
    known=st.booleans(),
)
def test_parts_are_taken_and_joined(
    axis: int, size: int, each: Any, keepdims: bool, place: int, known: bool
) -> None:
    """Where sizes are open, too."""
    shape = [2, 3, 4]
    shape[axis] = size
    held, more = {}, ""
    if each == "lengths":
        held["lengths"] = np.array([1, size - 1] if size > 1 else [size])
        more = " lengths"
    elif each is not None:
        held["each"], more = np.array(each), " each"
    count = len(held["lengths"]) if each == "lengths" else -(-size // (each or 1))
    place = max(min(place, count - 1), -count)
    dims: list[Any] = [*shape] if known else ["a", "b", "c"]
    # ONNX Runtime fails where larger parts are to lose the axis.
    keepdims |= (each or 1) != 1
    split = node("SplitToSequence", "x" + more, "s", axis=axis, keepdims=int(keepdims))
    squeezed = not keepdims
    back = node("ConcatFromSequence", "s", "y", axis=axis, new_axis=int(squeezed))
    x = numbers(*shape)
    same(one_output(split, back, x=dims, **held), {"x": x})
    held["place"] = np.array(place)
    same(one_output(split, node("SequenceAt", "s place", "y"), x=dims, **held), {"x": x})
    length = node("SequenceLength", "s", "y")
    same(one_output(split, length, x=dims, kind=TensorProto.INT64, **held), {"x": x})


@pytest.mark.parametrize("new_axis", [0, 1])
@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
def test_a_sequence_is_put_together_and_changed(axis: int, new_axis: int) -> None:
    nodes = [
        node("SequenceEmpty", "", "none"),
        node("SequenceInsert", "none x", "a"),
        node("Neg", "x", "n"),
        node("Exp", "x", "e"),
        node("SequenceInsert", "a n", "b"),
        node("SequenceInsert", "b e zero", "c"),
        node("SequenceErase", "c minus", "d"),
        node("SequenceConstruct", "n e x", "f"),
        node("SequenceErase", "f", "g"),
        node("SequenceAt", "g one", "h"),
        node("SequenceInsert", "d h minus", "i"),
        node("Identity", "i", "j"),
        node("ConcatFromSequence", "j", "y", axis=axis, new_axis=new_axis),
    ]
    held = {"zero": np.array(0), "one": np.array(1), "minus": np.array(-1)}
    same(one_output(*nodes, x=[2, 3], **held), {"x": numbers(2, 3)})


@pytest.mark.parametrize("semantics", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("lengths", [np.array(1), np.array([1, 1, 1])])
def test_parts_of_one_lose_their_axis_as_exporters_mean_it(lengths: Any, semantics: Any) -> None:
    """PyTorch writes so what it unbinds; by the letter the axis stays where lengths are given."""
    nodes = [
        node("SplitToSequence", "x lengths", "s", axis=1, keepdims=0),
        node("SequenceAt", "s at", "y"),
    ]
    held = {"lengths": lengths, "at": np.array(1)}
    made = one_output(*nodes, x=[2, 3], **held)
    x = numbers(2, 3)
    if semantics == "onnxruntime":
        same(made, {"x": x})
        return
    # Of lengths it is as ONNX Runtime has it.
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    (found,) = ir.run(ir.from_onnx(made, semantics=semantics), {"x": x}).values()
    assert wanted.shape == (2, 1)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_parts_of_one_of_an_open_axis(axis: int, keepdims: int) -> None:
    nodes = [
        node("SplitToSequence", "x", "s", axis=axis, keepdims=keepdims),
        node("SequenceAt", "s at", "y"),
    ]
    made = one_output(*nodes, x=["a", "b", "c"], at=np.array(-1))
    same(made, {"x": numbers(2, 3, 4)})


@pytest.mark.parametrize("place", [-3, 0, 2])
def test_parts_of_lengths_that_depend_on_values(place: int) -> None:
    for number in ([3], ["n"]):
        made = model(
            [
                node("SplitToSequence", "x lengths", "s", axis=1),
                node("SequenceAt", "s at", "part"),
                node("ConcatFromSequence", "s", "whole", axis=-1),
                node("SequenceLength", "s", "count"),
            ],
            [info("x", [2, "m"]), info("lengths", number, TensorProto.INT64)],
            [info("part", None), info("whole", None), info("count", None, TensorProto.INT64)],
            tensors(at=np.array(place)),
        )
        same(made, {"x": numbers(2, 7), "lengths": np.array([3, 0, 4])})


@pytest.mark.parametrize("size", [7, "n"])
@pytest.mark.parametrize("place", [-3, -1, 0, 2])
@pytest.mark.parametrize("by", ["number", "lengths", "parts"])
def test_a_place_among_parts_of_other_sizes_that_depends_on_values(
    size: Any, place: int, by: str
) -> None:
    nodes = {
        "number": [node("SplitToSequence", "x three", "s", axis=-1)],
        "lengths": [node("SplitToSequence", "x lengths", "s", axis=-1)],
        "parts": [node("Concat", "x x", "z", axis=-1), node("SequenceConstruct", "x z x", "s")],
    }[by]
    made = model(
        [*nodes, node("SequenceAt", "s at", "y")],
        [info("x", [2, size]), info("at", [], TensorProto.INT64),
         info("lengths", [3], TensorProto.INT64)],
        [info("y", None)], tensors(three=np.array(3)),
    )  # fmt: skip
    feed = {"x": numbers(2, 7), "at": np.array(place), "lengths": np.array([3, 0, 4])}
    same(made, feed)


def test_a_turn_reads_its_part_of_the_last_that_is_shorter() -> None:
    body = helper.make_graph(
        [node("SequenceAt", "s i", "part"), node("ReduceSum", "part", "sum", keepdims=0),
         node("Add", "t sum", "t_out"), node("Identity", "c", "c_out")],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL), info("t", [])],
        [info("c_out", [], TensorProto.BOOL), info("t_out", [])],
    )  # fmt: skip
    made = one_output(
        node("SplitToSequence", "x three", "s"), node("Loop", "turns  zero", "y", body=body),
        x=[7, 2], three=np.array(3), turns=np.array(3), zero=np.float32(0),
    )  # fmt: skip
    made.graph.node[1].input[:] = ["turns", "", "zero"]
    same(made, {"x": numbers(7, 2)})


def test_a_place_among_tensors_that_nothing_holds_is_refused() -> None:
    made = model(
        [node("Transpose", "x", "t"), node("SequenceConstruct", "x t", "s"),
         node("SequenceAt", "s at", "y")],
        [info("x", [2, 3]), info("at", [], TensorProto.INT64)], [info("y", None)],
    )  # fmt: skip
    _refused(made, UnsupportedError, "shapes [2,3] and [3,2]", "which of them is read")


@pytest.mark.parametrize("order", ["a b c", "b a c", "b c a"])
def test_tensors_of_sizes_that_nobody_knows_may_come_first(order: str) -> None:
    """A size that is not known fits each of two that do not fit each other."""
    made = model(
        [node("SequenceConstruct", order, "s"), node("SequenceAt", "s at", "y")],
        [info("a", ["n", "m"]), info("b", [3, 2]), info("c", [4, 2]),
         info("at", [], TensorProto.INT64)],
        [info("y", None)],
    )  # fmt: skip
    given = {"a": numbers(5, 2), "b": numbers(3, 2), "c": numbers(4, 2)}
    for place in range(3):
        same(made, given | {"at": np.array(place)})


@pytest.mark.parametrize("shape", [[2, 3], ["n", "m"]])
def test_a_place_that_depends_on_values(shape: list[Any]) -> None:
    made = model(
        [
            node("Neg", "x", "n"),
            node("SequenceConstruct", "x n", "s"),
            node("SequenceAt", "s at", "y"),
        ],
        [info("x", shape), info("at", [], TensorProto.INT64)],
        [info("y", None)],
    )
    for place in (-2, -1, 0, 1):
        same(made, {"x": numbers(2, 3), "at": np.array(place)})


def growing(
    body: Sequence[Any], state: str = "SequenceEmpty", more: Sequence[Any] = (), **join: Any
) -> Any:
    """A Loop over the rows of x, whose body puts tensor r behind a sequence."""
    turn = helper.make_graph(
        [node("Identity", "c", "going"), node("Gather", "x i", "row"), *body],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL), listed("s")],
        [
            info("going", [], TensorProto.BOOL),
            listed("s_out"),
            *[info(name, None) for name in more],
        ],
    )
    start = [node(state, "" if state == "SequenceEmpty" else "first", "start")]
    return model(
        [
            node("Shape", "x", "sizes"),
            node("Gather", "sizes zero", "n"),
            node("Gather", "x zero", "first"),
            *start,
            helper.make_node("Loop", ["n", "", "start"], ["end", *more], body=turn),
            node("ConcatFromSequence", "end", "y", **join),
        ],
        [info("x", ["n", 3, 2])],
        [info("y", None), *[info(name, None) for name in more]],
        tensors(zero=np.array(0)),
    )


@pytest.mark.parametrize("start", ["SequenceEmpty", "SequenceConstruct"])
@pytest.mark.parametrize("new_axis", [0, 1])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_a_loop_makes_a_sequence_longer(start: str, new_axis: int, axis: int) -> None:
    body = [node("Exp", "row", "r"), node("SequenceInsert", "s r", "s_out")]
    made = growing(body, start, axis=axis, new_axis=new_axis)
    for count in (1, 4):
        same(made, {"x": numbers(count, 3, 2)})


@pytest.mark.parametrize("start", ["SequenceEmpty", "SequenceConstruct"])
def test_what_becomes_of_it_is_the_same_in_openvino(start: str) -> None:
    """A Loop that makes a sequence longer, and parts of lengths that depend on values."""
    ov = pytest.importorskip("openvino")
    body = [node("Exp", "row", "r"), node("SequenceInsert", "s r", "s_out")]
    made = growing(body, start, axis=0, new_axis=0)
    made.graph.input.append(info("lengths", ["k"], TensorProto.INT64))
    made.graph.node.append(node("SplitToSequence", "y lengths", "parts", axis=0))
    made.graph.node.append(node("SequenceAt", "parts zero", "part"))
    made.graph.output.append(info("part", None))
    found = ir.from_onnx(made)
    assert not ir.check(found).errors
    given = [numbers(4, 3, 2), np.array([5, 7])]
    xml, weights = ir.dumps(found)
    core = ov.Core()
    loaded = core.read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    wanted = core.compile_model(loaded, "CPU", options)(given)
    for one, other in zip(ir.run(found, given).values(), wanted.values(), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-6)


def test_a_loop_gives_more_than_a_sequence() -> None:
    """And a body reads a sequence from around it, at a place that changes."""
    body = [
        node("SequenceConstruct", "first first", "pair"),
        node("SequenceAt", "around one", "other"),
        node("Add", "row other", "r"),
        node("ReduceSum", "r", "total", keepdims=0),
        node("SequenceInsert", "s r", "s_out"),
    ]
    made = growing(body, more=["total"], axis=0, new_axis=1)
    made.graph.node.insert(3, node("Neg", "first", "less"))
    made.graph.node.insert(4, node("SequenceConstruct", "less first", "around"))
    made.graph.initializer.extend(tensors(one=np.array(-1)))
    same(made, {"x": numbers(3, 3, 2)})


def test_a_map_over_a_sequence() -> None:
    body = helper.make_graph([node("Exp", "e", "f")], "each", [info("e", None)], [info("f", None)])
    nodes = [
        node("SplitToSequence", "x", "s", axis=0),
        helper.make_node("SequenceMap", ["s"], ["t"], body=body),
        node("ConcatFromSequence", "t", "y", axis=0),
    ]
    same(one_output(*nodes, x=[3, 2]), {"x": numbers(3, 2)})


def test_what_may_be_there() -> None:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [
        node("Optional", "x", "o", type=kind),
        node("OptionalHasElement", "o", "has"),
        node("OptionalGetElement", "o", "z"),
        node("Where", "has z x", "y"),
    ]
    same(one_output(*nodes, x=[2, 3]), {"x": numbers(2, 3)})


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1, 3])
@pytest.mark.parametrize("known", [True, False])
def test_a_cache_is_written_where_each_of_the_batch_stands(
    mode: str, axis: int, known: bool
) -> None:
    """ONNX Runtime has no TensorScatter for these; the standard's own answers are asked."""
    past, update = numbers(2, 6, 5, 7), numbers(2, 6, 5, 7)
    update = np.take(update, range(3), axis)
    places = np.array([4, 1] if mode == "circular" else [2, 0])
    kinds = [info("x", list("abcd")), info("u", list("efgh"))]
    if known:
        kinds = [info("x", past.shape), info("u", update.shape)]
    for inputs in ("x u at", "x u"):
        made = model(
            [node("TensorScatter", inputs, "y", axis=axis, mode=mode)],
            [*kinds, info("at", [2], TensorProto.INT64)], [info("y", None)], opset=24,
        )  # fmt: skip
        feed = {"x": past, "u": update, "at": places}
        (wanted,) = ReferenceEvaluator(made).run(None, feed)
        (found,) = ir.run(ir.from_onnx(made), feed).values()
        np.testing.assert_array_equal(found, wanted)


def test_places_of_a_cache_take_no_memory_before_they_are_asked_for() -> None:
    shape = [1, 1 << 40]
    made = model(
        [node("TensorScatter", "x u", "y", axis=1)], [info("x", shape), info("u", shape)],
        [info("y", None)], opset=24,
    )  # fmt: skip
    (result,) = ir.from_onnx(made).results
    assert result.inputs[0].shape == tuple(shape)


def _refused(made: Any, kind: type[IRError], *words: str) -> None:
    with pytest.raises(kind) as caught:
        ir.from_onnx(made)
    for word in words:
        assert word in str(caught.value)


def test_what_cannot_be_followed_is_told() -> None:
    construct = node("SequenceConstruct", "x x", "s")
    made = model([construct], [info("x", [2])], [listed("s")])
    _refused(made, UnsupportedError, 'output "s" is a sequence', "ConcatFromSequence")
    _refused(one_output(construct, node("Exp", "s", "y"), x=[2]), IRError, "Exp",
             "a sequence of 2 tensors stands where a tensor is needed")  # fmt: skip
    at = node("SequenceAt", "x zero", "y")
    _refused(one_output(at, x=[2], zero=np.array(0)), IRError, "input_sequence is tensor(float)")
    far = node("SequenceAt", "s two", "y")
    _refused(one_output(construct, far, x=[2], two=np.array(2)), IRError,
             "position 2 of a sequence of 2 tensors")  # fmt: skip
    joined = node("ConcatFromSequence", "s", "y", axis=0)
    split = node("SplitToSequence", "x two", "s")
    apart = node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)
    _refused(one_output(split, apart, x=["n"], two=np.array(2)), UnsupportedError,
             "not known how many tensors")  # fmt: skip
    numbers_alone = [node("ReduceSum", "row", "r", keepdims=0),
                     node("SequenceInsert", "s r", "s_out")]  # fmt: skip
    _refused(growing(numbers_alone, axis=0, new_axis=0), IRError, "no axis to be joined along")
    empty = node("SequenceEmpty", "", "s")
    _refused(one_output(empty, joined, x=[2]), UnsupportedError, "the sequence is empty")


def test_what_waits_for_another_problem_is_not_listed() -> None:
    nodes = [
        node("StringNormalizer", "x", "s"),
        node("SequenceAt", "s zero", "a"),
        node("RegexFullMatch", "x", "y", pattern="a"),
    ]
    made = model(
        nodes, [info("x", [2], TensorProto.STRING)], [info("a", None), info("y", None)],
        tensors(zero=np.array(0)), opset=20,
    )  # fmt: skip
    with pytest.raises(UnsupportedError) as caught:
        ir.from_onnx(made)
    assert "2 of 3 nodes" in str(caught.value)
    assert "SequenceAt" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (["SequenceInsert s row t", "SequenceInsert t row s_out"], "more than one"),
        (["SequenceLength s k", "SequenceInsert s row s_out"], "makes longer"),
        (["SequenceInsert s row zero s_out"], "elsewhere"),
        (["SequenceConstruct row s_out"], '"s_out", another sequence'),
    ],
)
def test_bodies_that_do_more_than_make_a_sequence_longer(body: list[str], word: str) -> None:
    nodes = []
    for line in body:
        kind, *inputs, output = line.split()
        nodes.append(helper.make_node(kind, inputs, [output]))
    _refused(growing(nodes, axis=0), IRError, "Loop", word)


@pytest.mark.parametrize("swapped", [False, True])
def test_two_sequences_of_a_loop_are_told_apart(swapped: bool) -> None:
    body = helper.make_graph(
        [
            node("Identity", "c", "going"), node("Gather", "x i", "r"), node("Exp", "r", "e"),
            node("SequenceInsert", "s r", "s_out"), node("SequenceInsert", "t e", "t_out"),
        ],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL),
         listed("s"), listed("t")],
        [info("going", [], TensorProto.BOOL),
         *[listed(name) for name in (("t_out", "s_out") if swapped else ("s_out", "t_out"))]],
    )  # fmt: skip
    nodes = [
        node("SequenceEmpty", "", "none"),
        node("SequenceConstruct", "first", "one"),
        helper.make_node("Loop", ["n", "", "none", "one"], ["a", "b"], body=body),
        node("ConcatFromSequence", "a", "y", axis=0, new_axis=1),
        node("ConcatFromSequence", "b", "z", axis=0, new_axis=1),
    ]
    made = model(
        nodes, [info("x", [3, 2]), info("first", [2])], [info("y", None), info("z", None)],
        tensors(n=np.array(3)),
    )  # fmt: skip
    if swapped:
        _refused(made, UnsupportedError, '"t_out", another sequence')
        return
    same(made, {"x": numbers(3, 2), "first": numbers(2)})


def test_a_body_that_leaves_a_sequence_as_it_is() -> None:
    made = growing([node("Identity", "s", "s_out")], "SequenceConstruct", axis=0)
    same(made, {"x": numbers(3, 3, 2)})
