"""Old layers that go on in time: cells, sequences, iterators, memory; and those that detect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from older.files import OldFile
from oracle import ask
from vinoir import ir
from vinoir.schemas import Array, IRError

RNG = np.random.default_rng(11)
FUNCTIONS = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: x * (x > 0),
}


def draw(*dims: int) -> Array:
    return RNG.normal(0, 1, dims).astype(np.float32)


def rnn(x: Array, h: Array, w: Array, b: Array, acts: list[str], **_: Any) -> list[Array]:
    return [FUNCTIONS[acts[0]](np.hstack([x, h]) @ w.T + b)]


def gru(
    x: Array, h: Array, w: Array, b: Array, acts: list[str], *, before: bool = False
) -> list[Array]:
    """Gates update, reset, hidden."""
    f, g = (FUNCTIONS[name] for name in acts)
    size, width = h.shape[1], x.shape[1]
    parts = w.reshape(3, size, -1)
    biases = b.reshape(-1, size)
    z = f(np.hstack([x, h]) @ parts[0].T + biases[0])
    r = f(np.hstack([x, h]) @ parts[1].T + biases[1])
    into, back = parts[2][:, :width], parts[2][:, width:]
    if before:
        inner = g(x @ into.T + biases[2] + r * (h @ back.T + biases[3]))
    else:
        inner = g(x @ into.T + (r * h) @ back.T + biases[2])
    return [z * h + (1 - z) * inner]


def lstm(
    x: Array, h: Array, c: Array, w: Array, b: Array, acts: list[str], **_: Any
) -> list[Array]:
    """Gates forget, input, candidate, output."""
    first, second, third = (FUNCTIONS[name] for name in acts)
    size = h.shape[1]
    forget, take, new, give = np.split(np.hstack([x, h]) @ w.T + b, 4, 1)
    assert forget.shape[1] == size
    c = first(forget) * c + first(take) * second(new)
    return [first(give) * third(c), c]


CELLS = {
    "RNN": (rnn, 1, 1, ["tanh"]),
    "GRU": (gru, 3, 1, ["sigmoid", "tanh"]),
    "LSTM": (lstm, 4, 2, ["sigmoid", "tanh", "tanh"]),
}
VARIANTS = [
    ("RNN", {}), ("RNN", {"activations": "relu"}), ("GRU", {}), ("LSTM", {}),
    ("GRU", {"linear_before_reset": 1}), ("LSTM", {"activations": "sigmoid,relu,tanh", "clip": 0}),
]  # fmt: skip


def made(kind: str, data: dict[str, Any], width: int, size: int) -> tuple[Array, Array, list[str]]:
    _, gates, _, usual = CELLS[kind]
    acts = data.get("activations", ",".join(usual)).split(",")
    count = 4 if data.get("linear_before_reset") else gates
    return draw(gates * size, width + size) * 0.5, draw(count * size) * 0.5, acts


@pytest.mark.parametrize(("kind", "data"), VARIANTS)
def test_cells(kind: str, data: dict[str, Any]) -> None:
    step, _, states, _ = CELLS[kind]
    w, b, acts = made(kind, data, 3, 4)
    file = OldFile(5)
    spots = [file.input((2, 3), "x"), *(file.input((2, 4), f"s{i}") for i in range(states))]
    blobs = {"weights": w, "biases": b}
    file.many(f"{kind}Cell", spots, [(2, 4)] * states, {"hidden_size": 4, **data}, blobs)
    given = [draw(2, 3), *(draw(2, 4) for _ in range(states))]
    want = step(*given, w, b, acts, before=bool(data.get("linear_before_reset")))  # type: ignore[operator]
    agree(file, given, want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("direction", ["Forward", "Backward"])
@pytest.mark.parametrize(("kind", "data"), VARIANTS[2:4])
def test_sequences(kind: str, data: dict[str, Any], direction: str, axis: int) -> None:
    step, _, states, _ = CELLS[kind]
    w, b, acts = made(kind, data, 3, 4)
    dims = (2, 5, 3) if axis == 1 else (5, 2, 3)
    file = OldFile(6)
    spots = [file.input(dims, "x"), *(file.input((2, 4), f"s{i}") for i in range(states))]
    attributes = {"hidden_size": 4, "direction": direction, "axis": axis, **data}
    outputs = [(*dims[:2], 4), *[(2, 4)] * states]
    file.many(f"{kind}Sequence", spots, outputs, attributes, {"weights": w, "biases": b})
    given = [draw(*dims), *(draw(2, 4) for _ in range(states))]
    x, kept = given[0] if axis == 1 else given[0].swapaxes(0, 1), given[1:]
    turns = range(5) if direction == "Forward" else range(4, -1, -1)
    rows: dict[int, Array] = {}
    for turn in turns:
        kept = step(x[:, turn], *kept, w, b, acts)  # type: ignore[operator]
        rows[turn] = kept[0]
    every = np.stack([rows[turn] for turn in range(5)], 1)
    agree(file, given, [every if axis == 1 else every.swapaxes(0, 1), *kept])


def test_a_sequence_of_v3_that_gives_no_states() -> None:
    w, b, acts = made("LSTM", {}, 3, 4)
    file = OldFile(3)
    data = {"cell_type": "LSTM", "axis": 1, "direction": "Forward"}
    file.add("RNN", [file.input((1, 3, 3), "x")], [(1, 3, 4)], data, {"weights": w, "biases": b})
    x, h, c = draw(1, 3, 3), np.zeros((1, 4), "f4"), np.zeros((1, 4), "f4")
    rows = []
    for turn in range(3):
        h, c = lstm(x[:, turn], h, c, w, b, acts)
        rows.append(h)
    agree(file, [x], [np.stack(rows, 1)])


def test_a_bidirectional_sequence_has_no_counterpart() -> None:
    file = OldFile(6)
    data = {"hidden_size": 4, "direction": "Bidirectional"}
    blobs = {"weights": draw(4, 7), "biases": draw(4)}
    file.add("RNNSequence", [file.input((1, 3, 3), "x")], [(1, 3, 8)], data, blobs, name="rnn")
    refused(file, r'\d+ "rnn" \(RNNSequence v6\)')


def test_an_iterator_whose_body_names_no_parameters() -> None:
    inner = OldFile(5)
    w = draw(4, 12)
    fed = inner.add(
        "FullyConnected", [inner.add("Concat", [(2, 8), (2, 4)], [(2, 12)], {"axis": 1})],
        [(2, 4)], {"out-size": 4}, {"weights": w},
    )  # fmt: skip
    out = inner.add("Activation", [fed], [(2, 4)], {"type": "tanh"})
    inner.add("Reshape", [out], [(2, 1, 4)], {"dim": "0,1,-1"})
    squeezed = (
        '<body><layers><layer id="10" name="cut" type="Reshape"><data dim="0,-1"/>'
        '<input><port id="0"><dim>2</dim><dim>1</dim><dim>8</dim></port></input>'
        '<output><port id="1"><dim>2</dim><dim>8</dim></port></output></layer>'
    )
    body = (
        squeezed + "\n".join(inner.layers) + "</layers><edges>"
        '<edge from-layer="10" from-port="1" to-layer="0" to-port="0"/>'
        + "\n".join(inner.edges) + "</edges></body>"
    )  # fmt: skip
    wiring = (
        "<port_map>"
        '<input external_port_id="1" internal_layer_id="0" internal_port_id="1"/>'
        '<input external_port_id="0" internal_layer_id="10" internal_port_id="0" axis="1" '
        'stride="1" part_size="1" start="0" end="-1"/>'
        '<output external_port_id="2" internal_layer_id="3" internal_port_id="1" axis="1" '
        'stride="1" part_size="1" start="0" end="-1"/>'
        '<output external_port_id="3" internal_layer_id="2" internal_port_id="1" axis="-1"/>'
        "</port_map>"
        '<back_edges><edge from-layer="2" from-port="1" to-layer="0" to-port="1"/></back_edges>'
    )
    file = OldFile(5)
    file.bin = inner.bin
    x, h = file.input((2, 3, 8), "x"), file.input((2, 4), "h")
    file.many("TensorIterator", [x, h], [(2, 3, 4), (2, 4)], inside=wiring + body, name="loop")
    given = [draw(2, 3, 8), draw(2, 4)]
    state, rows = given[1], []
    for turn in range(3):
        state = np.tanh(np.hstack([given[0][:, turn], state]) @ w.T)
        rows.append(state)
    agree(file, given, [np.stack(rows, 1), state])


def test_what_enters_a_loop_keeps_its_type_where_the_port_inside_has_none() -> None:
    inner, table = OldFile(6), draw(4, 2)
    words = inner.const(table)
    inner.add("Gather", [words, (1, 1)], [(1, 1, 2)], {"axis": 0})
    body = (
        f"<body><layers>{''.join(inner.layers)}</layers>"
        f"<edges>{''.join(inner.edges)}</edges></body>"
    )
    wiring = (
        '<port_map><input external_port_id="0" internal_layer_id="1" internal_port_id="1" '
        'axis="1"/><output external_port_id="1" internal_layer_id="1" internal_port_id="2" '
        'axis="1"/></port_map>'
    )
    file = OldFile(6)
    file.bin = inner.bin
    x = file.input((1, 3), "x", precision="I32")
    file.many("TensorIterator", [x], [(1, 3, 2)], inside=wiring + body, name="loop")
    agree(file, [np.int32([[0, 2, 3]])], [table[None, [0, 2, 3]]])


def test_memory_is_a_variable_that_is_read_before_it_is_written() -> None:
    file = OldFile(2)
    x = file.input((1, 3), "x")
    before = file.add("Memory", [], [(1, 3)], {"id": "r", "index": 1, "size": 2}, name="past")
    file.add("Eltwise", [x, before], [(1, 3)], {"operation": "sum"}, name="both")
    file.many("Memory", [x], [], {"id": "r", "index": 0, "size": 2}, name="keep")
    model = ir.loads(file.xml, file.bin)
    state: dict[str, Array] = {}
    last = np.zeros((1, 3), np.float32)
    program = ir.compile(model)
    for turn in range(3):
        now = np.full((1, 3), turn + 1, np.float32)
        assert (ir.run(model, [now], state=state)["both"] == now + last).all()
        assert (program([now])["both"] == now + last).all()
        last = now
    xml, weights = ir.dumps(model)
    assert ir.check(xml, weights=weights).ok
    assert ask("shapes", xml.decode(), weights) == ["f32[1,3]"]


def detection_file(**more: Any) -> tuple[OldFile, list[Array]]:
    file = OldFile(4)
    spots = [
        file.input(d, n) for d, n in (((1, 16), "loc"), ((1, 8), "conf"), ((1, 2, 16), "prior"))
    ]
    data = {
        "num_classes": 2, "keep_top_k": 3, "nms_threshold": 0.45, "top_k": 4, "eta": 1.0,
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": 1,
        "background_label_id": 0, "variance_encoded_in_target": 0, "visualize": "False",
    } | more  # fmt: skip
    file.add("DetectionOutput", spots, [(1, 1, 3, 7)], data, name="found")
    boxes = np.array([[0.1, 0.1, 0.3, 0.3], [0.5, 0.5, 0.9, 0.8], [0.11, 0.1, 0.3, 0.3],
                      [0.6, 0.1, 0.8, 0.4]], np.float32)  # fmt: skip
    priors = np.stack([boxes.ravel(), np.tile(np.float32([0.1, 0.1, 0.2, 0.2]), 4)])[None]
    conf = np.array([[0.1, 0.9, 0.4, 0.6, 0.3, 0.7, 0.95, 0.05]], np.float32)
    return file, [np.zeros((1, 16), np.float32), conf, priors]


def test_detections_of_priors_that_are_normalized_though_the_file_does_not_say() -> None:
    file, given = detection_file(confidence_threshold=0.2)
    model = ir.loads(file.xml, file.bin)
    found = ir.run(model, given)["found"].reshape(3, 7)
    # The third box lies on the first, which is likelier; the fourth is below the threshold.
    want = np.float32([[0, 1, 0.9, 0.1, 0.1, 0.3, 0.3], [0, 1, 0.6, 0.5, 0.5, 0.9, 0.8],
                       [-1, 0, 0, 0, 0, 0, 0]])  # fmt: skip
    np.testing.assert_allclose(found[:2], want[:2], atol=1e-5)
    assert found[2, 0] == -1
    assert any("normalized" in str(remark) for remark in model.origin.remarks)  # type: ignore[union-attr]
    xml, weights = ir.dumps(model)
    theirs = ask("values", xml.decode(), weights, given)[0].reshape(3, 7)
    np.testing.assert_allclose(found[:2], theirs[:2], atol=1e-5)


def test_a_code_of_boxes_without_its_prefix_was_that_of_corners() -> None:
    found = []
    for code in ("CENTER_SIZE", "caffe.PriorBoxParameter.CORNER"):
        file, given = detection_file(confidence_threshold=0.2, code_type=code)
        given[0] = draw(1, 16) if not found else found[0][1]
        model = ir.loads(file.xml, file.bin)
        found.append((ir.run(model, given)["found"], given[0]))
        assert model.origin is not None
        told = any("CENTER_SIZE" in str(remark) for remark in model.origin.remarks)
        assert told is (code == "CENTER_SIZE")
    np.testing.assert_array_equal(found[0][0], found[1][0])


def test_detections_without_a_threshold_are_all() -> None:
    file, given = detection_file()
    found = ir.run(ir.loads(file.xml, file.bin), given)["found"].reshape(3, 7)
    assert found[:, 2].tolist() == pytest.approx([0.9, 0.6, 0.05])


def test_boxes_that_stay_are_followed_by_rows_of_minus_one() -> None:
    file = OldFile(7)
    spots = [file.input((1, 4, 4), "boxes"), file.input((1, 1, 4), "scores")]
    spots += [
        file.const(np.int32([3])),
        file.const(np.float32([0.5])),
        file.const(np.float32([0])),
    ]
    data = {"center_point_box": 0, "sort_result_descending": 1}
    file.add("NonMaxSuppression", spots, [(3, 3)], data, precision="I32")
    boxes = np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6], [0, 5, 1, 6.1]]])
    scores = np.float32([[[0.5, 0.9, 0.3, 0.8]]])
    agree(file, [boxes, scores], [np.int32([[0, 0, 1], [0, 0, 3], [-1, -1, -1]])])


def test_prior_boxes_of_mxnet_with_a_largest_size_are_refused() -> None:
    file = OldFile(6)
    data = {"min_size": 4, "max_size": 9, "offset": 0.5, "step": 10, "scale_all_sizes": 0}
    spots = [file.input((1, 8, 2, 3), "map"), file.input((1, 3, 20, 30), "image")]
    file.add("PriorBox", spots, [(1, 2, 48)], data)
    refused(file, r'\d+ "priorbox2" \(PriorBox v6\)')
    told = "\n".join(map(str, ir.check(file.xml, weights=file.bin)))
    assert "max_size is 9 where scale_all_sizes is 0" in told


@pytest.mark.parametrize("count", [2, 3])
def test_boxes_that_are_the_same_stay_where_no_overlap_is_given(count: int) -> None:
    file = OldFile(7)
    spots = [file.input((1, 3, 4), "boxes"), file.input((1, 1, 3), "scores")]
    spots += [file.const(np.int32([3]))][: count - 2]
    file.add("NonMaxSuppression", spots, [(3, 3)], {"center_point_box": 0}, precision="I32")
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]])
    scores = np.float32([[[0.9, 0.8, 0.7]]])
    agree(file, [boxes, scores], [np.int32([[0, 0, 0], [0, 0, 1], [0, 0, 2]])])


def test_proposal_and_pooling_of_regions() -> None:
    file = OldFile(5)
    scores, deltas = file.input((1, 6, 4, 4), "scores"), file.input((1, 12, 4, 4), "deltas")
    info = file.const(np.array([[64, 64, 1]], np.float32))
    data = {
        "feat_stride": 16, "base_size": 16, "min_size": 4, "ratio": "1", "scale": "1,2,3",
        "pre_nms_topn": 20, "post_nms_topn": 5, "nms_thresh": 0.7, "framework": "caffe",
        "for_deformable": 0, "clip_before_nms": "true",
    }  # fmt: skip
    boxes = file.add("Proposal", [scores, deltas, info], [(5, 5)], data, name="boxes")
    file.add(
        "ROIPooling", [file.input((1, 2, 4, 4), "map"), boxes], [(5, 2, 2, 2)],
        {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 0.0625}, name="pooled",
    )  # fmt: skip
    model = ir.loads(file.xml, file.bin)
    given = [np.abs(draw(1, 6, 4, 4)), draw(1, 12, 4, 4) * 0.1, draw(1, 2, 4, 4)]
    mine = ir.run(model, given)["pooled"]
    xml, weights = ir.dumps(model)
    np.testing.assert_allclose(mine, ask("values", xml.decode(), weights, given)[0], atol=1e-5)


def test_of_six_numbers_about_an_image_four_count() -> None:
    rng, found = np.random.default_rng(1), []
    given = [rng.random((1, 2, 4, 4), np.float32), rng.random((1, 4, 4, 4), np.float32) - 0.5]
    data = {
        "feat_stride": 16, "base_size": 16, "min_size": 16, "ratio": "1", "scale": "1",
        "pre_nms_topn": 20, "post_nms_topn": 6, "nms_thresh": 0.7,
    }  # fmt: skip
    for count in (3, 4, 6):
        file = OldFile(5)
        spots = [file.input((1, 2, 4, 4), "scores"), file.input((1, 4, 4, 4), "deltas")]
        spots.append(file.const(np.float32([[64, 64, 1, 3, 9, 9][:count]])))
        file.add("Proposal", spots, [(6, 5)], data)
        (boxes,) = ir.run(ir.loads(file.xml, file.bin), given).values()
        found.append(boxes)
    np.testing.assert_array_equal(found[2], found[1])
    assert (found[2] != found[0]).any()


def test_weights_of_a_bit_each() -> None:
    file = OldFile(6)
    bits = RNG.integers(0, 256, 9, np.uint8).tobytes()
    x = file.input((1, 4, 3, 3), "x")
    data = {
        "kernel": "3,3", "input": 4, "output": 2, "pads_begin": "0,0", "pads_end": "0,0",
        "mode": "xnor-popcount", "pad_value": 0,
    }  # fmt: skip
    file.add("BinaryConvolution", [x], [(1, 2, 1, 1)], data, {"weights": bits})
    w = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").reshape(2, 4, 3, 3)
    given = RNG.integers(0, 2, (1, 4, 3, 3)).astype(np.float32)
    same = (given[0] == w).sum((1, 2, 3)) * 2 - 36
    agree(file, [given], [same.reshape(1, 2, 1, 1).astype(np.float32)])


def agree(file: OldFile, given: list[Array], want: list[Array]) -> None:
    """The upgraded model gives what is wanted, here and in OpenVINO."""
    model = ir.loads(file.xml, file.bin)
    assert model.origin is not None
    assert [str(r) for r in model.origin.remarks if r.kind in ("unlike", "missing")] == []
    for found, one in zip(ir.run(model, given).values(), want, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5)
    xml, weights = ir.dumps(model)
    assert [str(one) for one in ir.diff(model, ir.loads(xml, weights))] == []
    assert ir.check(xml, weights=weights).ok
    for found, one in zip(ask("values", xml.decode(), weights, given), want, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5)


def refused(file: OldFile, message: str) -> None:
    """The model is read and checked, and refuses to run."""
    model = ir.loads(file.xml, file.bin)
    assert [r.kind for r in model.origin.remarks if r.kind == "missing"] == ["missing"]  # type: ignore[union-attr]
    assert "IR952" in {finding.code for finding in ir.check(file.xml, weights=file.bin)}
    with pytest.raises(IRError, match=message):
        ir.run(model, [draw(*layer.outputs[0].dims) for layer in model.parameters])
