"""Sequences by hand: what OpenVINO's CPU does not have or gets wrong, and errors."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.layers import Op
from vinoir.schemas import Array, Dim, IRError, Shape, Tensor

USUAL = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
NUMBERS = np.random.default_rng(5)


def op(name: str, number: int, **attributes: str) -> Any:
    return Op.registry[name, number].read(attributes)


def make(*shape: int) -> Array:
    return NUMBERS.normal(size=shape).astype("f4")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("ignore_negative", [[1, 0], [0, 0], [0, 0], [0, 0]]),
        ("normalize", [[1, 0], [0, 1], [0, 0], [0, 0]]),
    ],
)
def test_one_hot(mode: str, expected: list[list[int]]) -> None:
    made = op("OneHot", 16, axis="-1", negative_indices_mode=mode)
    given = [np.array([0, -1, 2, -3]), np.array(2), np.array(1), np.array(0)]
    assert made.run(*given)[0].tolist() == expected


def test_one_hot_takes_a_depth_that_is_partly_known() -> None:
    depth = Tensor("i64", (), parts=np.array(Dim(2, 5), object))
    (found,) = op("OneHot", 1, axis="0").infer(
        Tensor("i64", Shape.parse("?,3")), depth, Tensor("f32", ()), Tensor("f32", ())
    )
    assert str(found) == "f32[2..5,?,3]"


@pytest.mark.parametrize(("merged", "expected"), [("true", [1, 1, 0, -1, -1]),
                                                   ("false", [1, 1, 1, 0, -1])])  # fmt: skip
def test_greedy_decoders(merged: str, expected: list[int]) -> None:
    steps = [1, 1, 2, 1, 0]  # of the classes 0, 1 and the blank 2
    data = np.eye(3, dtype="f4")[steps]
    rows, counts = op("CTCGreedyDecoderSeqLen", 6, merge_repeated=merged).run(
        data[None], np.array([5])
    )
    assert rows.tolist() == [expected]
    assert counts.tolist() == [len([n for n in expected if n >= 0])]
    old = op("CTCGreedyDecoder", 1, ctc_merge_repeated=merged)
    (found,) = old.run(data[:, None], np.ones((5, 1), "f4"))
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("target", [[0], [0, 1], [0, 0], [1, 0, 1], []])
def test_ctc_loss_is_that_of_all_paths(merged: bool, target: list[int]) -> None:
    logits = make(1, 4, 3)
    chances = np.exp(logits[0] - np.log(np.exp(logits[0]).sum(1, keepdims=True)))
    total = 0.0
    for path in product(range(3), repeat=4):
        kept = [n for n, _ in groupby(path)] if merged else list(path)
        if [n for n in kept if n != 2] == target:
            total += float(np.prod([chances[step, n] for step, n in enumerate(path)]))
    made = op("CTCLoss", 4, ctc_merge_repeated=str(merged).lower())
    labels = np.array([[*target, *[0] * (4 - len(target))]])
    (found,) = made.run(logits, np.array([4]), labels, np.array([len(target)]))
    np.testing.assert_allclose(found, [-np.log(total)], rtol=1e-5)


def test_ctc_loss_of_what_cannot_be_spelt_is_infinite() -> None:
    made = op("CTCLoss", 4)
    (found,) = made.run(make(1, 2, 3), np.array([2]), np.array([[0, 0]]), np.array([2]))
    assert found.tolist() == [np.inf]


def test_the_gates_of_the_first_lstm_cell_may_stand_in_another_order() -> None:
    x, h, c, w, r, b = make(2, 3), make(2, 4), make(2, 4), make(16, 3), make(16, 4), make(16)
    wanted = op("LSTMCell", 4, hidden_size="4").run(x, h, c, w, r, b)
    for order in ("fico", "icof", "ifco", "ifoc", "iofc"):
        turned = [
            np.concatenate([np.split(array, 4)["fico".index(gate)] for gate in order])
            for array in (w, r, b)
        ]
        made = op("LSTMCell", 1, hidden_size="4", weights_format=order)
        for found, want in zip(made.run(x, h, c, *turned), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def test_coupled_gates_and_peepholes() -> None:
    one = np.ones((1, 1), "f4")
    zeros = [np.zeros((4, 1), "f4"), np.zeros((4, 1), "f4"), np.zeros(4, "f4")]
    made = op("LSTMCell", 1, hidden_size="1", weights_format="fico", input_forget="true",
              activations="sigmoid, tanh, relu")  # fmt: skip
    peepholes = np.array([2, 50, 3], "f4")  # forget, input, output; the input is coupled
    h, c = made.run(one, one, one, *zeros, peepholes)
    forget = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(c, [[forget]], rtol=1e-6)
    np.testing.assert_allclose(h, [[forget / (1 + np.exp(-3 * forget))]], rtol=1e-6)


def test_hard_sigmoid_takes_its_slope_and_offset() -> None:
    made = op("RNNCell", 3, hidden_size="1", activations="hardsigmoid",
              activations_alpha="0.5", activations_beta="0.25")  # fmt: skip
    one = np.ones((1, 1), "f4")
    assert made.run(one, one * 0, one, one, np.zeros(1, "f4"))[0].tolist() == [[0.75]]


def test_a_cell_of_unsigned_integers_negates_them_as_reals() -> None:
    made, one = op("GRUCell", 3, hidden_size="1"), np.ones((3, 1), "u8")
    # z = sigmoid(9), h = tanh(1 + sigmoid(9) * 8): (1 - z) * h + z * 8 is just below 8.
    assert made.run(one[:1], one[:1] * 8, one, one, one[:, 0] * 0)[0].tolist() == [[7]]


def test_a_reversed_sequence_begins_at_its_own_end() -> None:
    made = op("RNNSequence", 5, hidden_size="1", direction="reverse", activations="relu")
    x = np.array([[[1], [2], [4]], [[1], [2], [4]], [[1], [2], [4]]], "f4")
    one, none = np.ones((1, 1, 1), "f4"), np.zeros((1, 1), "f4")
    start = np.full((3, 1, 1), 10, "f4")
    y, last = made.run(x, start, np.array([3, 2, 0]), one, one, none)
    assert y[:, 0, :, 0].tolist() == [[17, 16, 14], [13, 12, 0], [0, 0, 0]]
    assert last.ravel().tolist() == [17, 13, 0]


def test_a_sink_is_one_more_key_without_a_value() -> None:
    query, key, value = make(1, 2, 3, 4), make(1, 2, 5, 4), make(1, 2, 5, 6)
    made = op("ScaledDotProductAttention", 13, causal="false")
    mask, scale = np.zeros((1, 1, 3, 5), "f4"), np.array(0.5, "f4")
    (found,) = made.run(query, key, value, mask, scale, np.log(np.full((1, 2, 1, 1), 7, "f4")))
    weights = np.exp(query @ np.swapaxes(key, -1, -2) / 2)
    wanted = weights @ value / (weights.sum(-1, keepdims=True) + 7)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_mask_of_more_columns_than_there_are_keys_is_refused() -> None:
    """Which is seen once the number of keys is."""
    made = op("ScaledDotProductAttention", 13, causal="false")
    given = (make(2, 3, 4), make(2, 1, 4), make(2, 1, 6), make(3, 5))
    with pytest.raises(IRError, match="mask makes 5 scores of each query, there are 1"):
        made.run(*given)


@pytest.mark.parametrize(
    ("name", "states", "gates"), [("RNN", 1, 1), ("GRU", 1, 3), ("LSTM", 2, 4)]
)
@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("width", [4, 7])
def test_weights_take_what_x_has(
    name: str, states: int, gates: int, along: bool, width: int
) -> None:
    """OpenVINO's CPU reads a layer whose W does not, and then refuses it."""
    openvino = pytest.importorskip("openvino")
    made = op(f"{name}{'Sequence' if along else 'Cell'}", 5 if along else 4 if states == 2 else 3,
              hidden_size="3", activations=", ".join(USUAL[name]),
              **({"direction": "forward"} if along else {}))  # fmt: skip
    ways, sizes = ("1,", "2,5,4") if along else ("", "2,4")
    rows = 3 * gates
    shapes = [sizes, *[f"2,{ways}3"] * states, *["2"] * along]
    shapes += [f"{ways}{rows},{width}", f"{ways}{rows},3", f"{ways}{rows}"]
    net = ir.Builder("m")
    given = [
        net.parameter(f"x{i}", "i32" if shape == "2" else "f32", shape)
        for i, shape in enumerate(shapes)
    ]
    count = states + along
    tensors = [Tensor("f32", Shape.parse(sizes))] * count
    net.result(net.add(made, None, given, outputs=tensors), name="y")
    source = ir.dumps(net.model())[0]
    weights = openvino.Tensor(openvino.Type.u8, openvino.Shape([0]))
    arrays = [np.ones(Shape.parse(s).static, "i4" if s == "2" else "f4") for s in shapes]
    model = openvino.Core().read_model(source, weights)
    try:
        openvino.Core().compile_model(model, "CPU")(arrays)
        runs = True
    except RuntimeError:
        runs = False
    said = [found.message for found in ir.check(source).errors]
    assert runs is (width == 4)
    assert not runs or not said
    assert runs or "X has 4 numbers at each step, W takes 7" in said[0]
    every = [Tensor("i32" if s == "2" else "f32", Shape.parse(s)) for s in shapes]
    every[0] = Tensor("f32", Shape.parse(sizes[:-1] + "1..4"))
    if width == 7:
        with pytest.raises(IRError, match=r"X has 1\.\.4 numbers at each step, W takes 7"):
            made.infer(*every)
    else:
        made.infer(*every)


@pytest.mark.parametrize(
    ("made", "shapes", "message"),
    [
        (op("CTCGreedyDecoder", 1), ["5,2,4", "4,2"], "sizes 5 and 4 differ"),
        (op("CTCGreedyDecoderSeqLen", 6), ["2,5,4", "2", "1,1"], "blank_index is a single number"),
        (op("RNNCell", 3, hidden_size="3"), ["2,4", "2,3", "6,4", "3,3", "3"], "W has 6 rows"),
        (op("GRUCell", 3, hidden_size="3"), ["2,4", "2,3", "9,4", "9,3", "12"], "B has 12 rows"),
        (op("LSTMCell", 4, hidden_size="3"), ["2,4", "3,3", "2,3", "12,4", "12,3", "12"],
         "sizes 2 and 3 differ"),
        (op("ScaledDotProductAttention", 13, causal="false"), ["2,3,4", "2,5,3", "2,5,6"],
         "sizes 4 and 3 differ"),
        (op("ScaledDotProductAttention", 13, causal="false"),
         ["2,3,4", "2,1,4", "2,1,6", "3,5"], "mask makes 5 scores of each query, there are 1"),
    ],
)  # fmt: skip
def test_refusals(made: Op, shapes: list[str], message: str) -> None:
    with pytest.raises(IRError, match=message):
        made.infer(*(Tensor("f32", Shape.parse(shape)) for shape in shapes))
