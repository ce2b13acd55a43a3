"""The edit set-batch: several samples at once give what each gives alone, in OpenVINO too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.surgery.side_by_side import Trial

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
RNG = np.random.default_rng(7)


def weights(*shape: int) -> ov.Node:
    return op.constant(RNG.standard_normal(shape).astype("f4"))


def ints(*values: int) -> ov.Node:
    return op.constant(np.array(values, "i8"))


def tokens(x: ov.Node) -> ov.Node:
    """Patches behind a token of their own, attention of two heads, and the token alone."""
    patches = op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(0, 2, 1))
    rows = op.concat([weights(1, 1, 8), patches], 1)
    three = op.reshape(op.matmul(rows, weights(8, 24), False, False), ints(1, 10, 3, 2, 4), False)
    q, k, v = (
        op.gather(op.transpose(three, ints(2, 0, 3, 1, 4)), op.constant(np.int64(i)), ints(0))
        for i in range(3)
    )
    q, k, v = (op.reshape(one, ints(1, 2, 10, 4), False) for one in (q, k, v))
    found = op.matmul(op.softmax(op.matmul(q, k, False, True), -1), v, False, False)
    joined = op.reshape(op.transpose(found, ints(0, 2, 1, 3)), ints(10, 8), False)
    rows = op.reshape(op.matmul(joined, weights(8, 8), False, False), ints(1, 10, 8), True)
    begin, end = ints(0, 0, 0), ints(1, 1, 8)
    return op.strided_slice(
        rows, begin, end, ints(1, 1, 1), [0, 0, 0], [0, 0, 0], shrink_axis_mask=[0, 1, 0]
    )


def windows(x: ov.Node) -> ov.Node:
    """Windows of an image, each with a mask of its own, as Swin shifts them."""
    cut = op.reshape(x, ints(1, 8, 3, 1, 3, 1), False)
    rows = op.reshape(op.transpose(cut, ints(0, 2, 4, 3, 5, 1)), ints(9, 1, 8), False)
    masked = op.add(rows, weights(9, 1, 8))
    back = op.transpose(op.reshape(masked, ints(1, 3, 3, 1, 1, 8), False), ints(0, 5, 1, 3, 2, 4))
    return op.reshape(back, ints(1, 8, 3, 3), False)


def recurrent(x: ov.Node) -> ov.Node:
    rows = op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(0, 2, 1))
    zeros = op.constant(np.zeros((1, 1, 4), "f4"))
    made = op.lstm_sequence(
        rows, zeros, weights(1, 1, 4), op.constant(np.array([9], "i4")), weights(1, 16, 8),
        weights(1, 16, 4), weights(1, 16), 4, "forward",
    )  # fmt: skip
    return made.output(0)


def rows_first(x: ov.Node) -> ov.Node:
    """Samples lie behind the rows, as in PyTorch's recurrent layers, and go back before them."""
    rows = op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(2, 0, 1))
    made = op.matmul(op.reshape(rows, ints(9, 8), False), weights(8, 5), False, False)
    return op.transpose(op.reshape(made, ints(9, 1, 5), False), ints(1, 0, 2))


def sliced(x: ov.Node) -> ov.Node:
    return op.slice(x, ints(0, 2), ints(1, 6), ints(1, 1), ints(0, 1))


def resized(x: ov.Node) -> ov.Node:
    return op.interpolate(x, ints(1, 8, 6, 6), "nearest", "sizes", axes=ints(0, 1, 2, 3))


def sliced_as_i32(x: ov.Node) -> ov.Node:
    first, end, step = (op.constant(np.array(row, "i4")) for row in ((0, 2), (1, 6), (1, 1)))
    return op.slice(x, first, end, step)


def resized_whole(x: ov.Node) -> ov.Node:
    return op.interpolate(x, op.constant(np.array([1, 8, 6, 6], "i4")), "nearest", "sizes")


def widened(x: ov.Node) -> ov.Node:
    return op.broadcast(op.reduce_mean(x, ints(2, 3), True), ints(1, 8, 2, 2))


def flat(x: ov.Node) -> ov.Node:
    return op.matmul(op.reshape(x, ints(1, -1), False), weights(72, 3), False, False)


def boxes(x: ov.Node) -> ov.Node:
    """The layout of detectors: heads side by side, -1 where the places are."""
    one = op.reshape(op.transpose(x, ints(0, 2, 3, 1)), ints(1, -1, 4), True)
    other = op.reshape(op.transpose(x, ints(0, 2, 3, 1)), ints(1, 18, 4), True)
    return op.concat([one, other], 1)


def turned_back(x: ov.Node) -> ov.Node:
    rows = op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(2, 0, 1))
    return op.transpose(op.reverse_sequence(rows, ints(5), 1, 0), ints(1, 0, 2))


def exported(x: ov.Node) -> ov.Node:
    """Attention as torch.onnx exports it: keys are turned while heads lie among the samples."""
    rows = op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(0, 2, 1))
    q, k, v = (
        op.transpose(
            op.reshape(op.matmul(rows, weights(8, 8), False, False), ints(1, -1, 2, 4), False),
            ints(0, 2, 1, 3),
        )
        for _ in range(3)
    )
    turned = op.transpose(op.reshape(k, ints(-1, 9, 4), False), ints(0, 2, 1))
    k = op.multiply(op.reshape(turned, ints(1, 2, 4, 9), False), np.float32(0.7))
    scores = op.matmul(op.multiply(q, np.float32(0.7)), k, False, False)
    found = op.matmul(op.softmax(scores, -1), v, False, False)
    return op.reshape(op.transpose(found, ints(0, 2, 1, 3)), ints(1, 9, 8), False)


MODELS = [
    turned_back, exported,
    tokens, windows, recurrent, rows_first, sliced, sliced_as_i32, resized, resized_whole, widened,
    flat, boxes,
]  # fmt: skip


def made(
    build: Callable[[ov.Node], ov.Node], folder: Path, shape: tuple[int, ...] = (1, 8, 3, 3)
) -> Path:
    x = op.parameter(shape, np.float32, name="x")
    path = folder / "given.xml"
    ov.serialize(ov.Model([build(x)], [x], "net"), path)
    return path


@pytest.mark.parametrize(
    ("batch", "simplified"),
    [("?", False), ("N", False), ("3", False), ("1..4", False), ("N", True)],
)
@pytest.mark.parametrize("build", MODELS)
def test_samples_at_once_give_what_each_gives_alone(
    build: Callable[[ov.Node], ov.Node], batch: str, simplified: bool, tmp_path: Path
) -> None:
    path, out = made(build, tmp_path), tmp_path / "out.xml"
    given = ir.simplify(path)[0] if simplified else ir.read(path)
    model, report = ir.edit(given, [{"op": "set-batch", "batch": batch}])
    assert report.counts["tried"] == 1
    ir.write(model, out)
    assert ir.check(out).ok
    size = model.outputs[0].tensor.shape[0]
    assert size == 3 if batch == "3" else str(model.inputs[0].tensor.shape[0]) == batch
    samples = [RNG.standard_normal((1, 8, 3, 3)).astype("f4") for _ in range(3)]
    core = ov.Core()
    alone = core.compile_model(path, "CPU", F32)
    wanted = np.concatenate([np.array(alone([one])[0]) for one in samples])
    together = [np.concatenate(samples)]
    for found in (
        core.compile_model(out, "CPU", F32)(together)[0],
        *ir.run(out, together).values(),
        *ir.compile(out)(together).values(),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_batch_of_two_becomes_any(tmp_path: Path) -> None:
    """What lies twice in the model for two samples is taken once."""

    def build(x: ov.Node) -> ov.Node:
        token = op.constant(np.tile(np.arange(8, dtype="f4"), (2, 1, 1)))
        rows = op.transpose(op.reshape(x, ints(2, 8, 9), False), ints(0, 2, 1))
        return op.concat([op.add(rows, token), token], 1)

    model = ir.edit(made(build, tmp_path, (2, 8, 3, 3)), [{"op": "set-batch"}]).model
    x = RNG.standard_normal((5, 8, 3, 3)).astype("f4")
    (found,) = ir.run(model, [x]).values()
    token = np.broadcast_to(np.arange(8, dtype="f4"), (5, 1, 8))
    rows = x.reshape(5, 8, 9).transpose(0, 2, 1) + token
    np.testing.assert_array_equal(found, np.concatenate([rows, token], 1))


def test_constants_of_each_place_are_refused(tmp_path: Path) -> None:
    """Two samples with something of their own each make no batch of any size."""
    path = made(lambda x: op.multiply(x, weights(2, 1, 1, 1)), tmp_path, (2, 8, 3, 3))
    with pytest.raises(ir.UsageError, match=r"is not that of each alone"):
        ir.edit(path, [{"op": "set-batch"}])


def number(value: float) -> ov.Node:
    return op.constant(np.float32(value))


REFUSED = {
    "squeeze": (lambda x: op.squeeze(x, ints(0)), "another number of axes"),
    "first": (lambda x: op.gather(x, ints(0), ints(0)), "would not tell samples apart"),
    "mean": (lambda x: op.reduce_mean(x, ints(0, 2, 3), True), "would not tell samples apart"),
    "softmax": (lambda x: op.softmax(x, 0), "depends on the one beside it"),
    # What is rounded is computed as if it were not: nothing hides among the levels.
    "levels": (
        lambda x: op.add(
            op.fake_quantize(x, *map(number, (-3.0, 3.0, -3.0, 3.0)), 256),
            op.multiply(op.softmax(x, 0), number(0.15)),
        ),
        "depends on the one beside it",
    ),
    "behind a pattern": (
        lambda x: op.softmax(
            op.reshape(op.concat([weights(1, 1, 3, 3), x], 1), ints(1, 81), False), 0
        ),
        "depends on the one beside it",
    ),
    "rows": (
        lambda x: op.add(
            op.reshape(
                op.transpose(op.reshape(x, ints(1, 8, 9), False), ints(2, 0, 1)), ints(9, 8), False
            ),
            weights(9, 8),
        ),
        "rows lie around samples",
    ),
    "ranks": (
        lambda x: op.multiply(
            op.reshape(x, ints(1, 9, 8), False), op.reduce_mean(x, ints(2, 3), False)
        ),
        "samples lie along other axes",
    ),
    "one row for all": (
        lambda x: op.concat([weights(1, 8, 3, 3), x], 0),
        "would not tell samples",
    ),
    "norm": (
        lambda x: op.subtract(x, op.reduce_mean(x, ints(0, 1, 2, 3), True)),
        "depends on the one beside it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_layers_in_which_samples_meet_are_named(name: str, tmp_path: Path) -> None:
    build, message = REFUSED[name]
    with pytest.raises(ir.UsageError, match=message) as error:
        ir.edit(made(build, tmp_path), [{"op": "set-batch"}])
    assert error.value.where is not None
    assert error.value.hint


LARGE = {
    "a constant": lambda x: op.constant(np.full((x.shape[0], 5), 1e6, "f4")),
    "a column": lambda x: op.multiply(op.reshape(x, ints(x.shape[0], -1), False), number(1e6)),
}


def beside_large(build: Callable[[ov.Node], ov.Node], large: str) -> Callable[[ov.Node], ov.Node]:
    """What is built, in a row with numbers a million times as large."""

    def both(x: ov.Node) -> ov.Node:
        rows = op.reshape(build(x), ints(x.shape[0], -1), False)
        return op.concat([rows, LARGE[large](x)], 1)

    return both


@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("name", [x for x in REFUSED if "beside it" in REFUSED[x][1]])
def test_large_numbers_hide_no_samples_that_meet(name: str, large: str, tmp_path: Path) -> None:
    path = made(beside_large(REFUSED[name][0], large), tmp_path)
    with pytest.raises(ir.UsageError, match="depends on the one beside it"):
        ir.edit(path, [{"op": "set-batch"}])


@pytest.mark.parametrize("large", LARGE)
def test_large_numbers_hide_no_constants_of_each_place(large: str, tmp_path: Path) -> None:
    build = beside_large(lambda x: op.multiply(x, weights(2, 1, 1, 1)), large)
    with pytest.raises(ir.UsageError, match=r"is not that of each alone"):
        ir.edit(made(build, tmp_path, (2, 8, 3, 3)), [{"op": "set-batch"}])


@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("build", [x for x in MODELS if x is not rows_first])
def test_large_numbers_stand_in_no_way(
    build: Callable[[ov.Node], ov.Node], large: str, tmp_path: Path
) -> None:
    path = made(beside_large(build, large), tmp_path)
    assert ir.edit(path, [{"op": "set-batch"}]).report.counts["tried"] == 1


def as_long_as(least: int, limit: float, picked: ov.Node) -> Callable[[ov.Node], ov.Node]:
    """Columns of what samples lie in: so many, and one more where a number is above a limit."""

    def build(x: ov.Node) -> ov.Node:
        rows = op.reshape(x, ints(1, 72), False)
        above = op.greater(
            op.reduce_max(op.multiply(rows, picked), ints(0, 1), True), number(limit)
        )
        count = op.add(op.convert(op.reshape(above, ints(1), False), "i64"), ints(least))
        return op.slice(rows, ints(0), count, ints(1), ints(1))

    return build


def test_sizes_that_depend_on_numbers_are_never_proven(tmp_path: Path) -> None:
    """Whether the random samples of a trial meet the limit or not, and whichever of them does."""
    outcomes = set()
    for place in range(8):
        picked = op.constant((np.arange(72) == place).astype("f4"))
        path = made(as_long_as(1 + place % 2, 0.1, picked), tmp_path)
        try:
            told = str(ir.edit(path, [{"op": "set-batch"}]).report)
        except ir.UsageError as error:
            told = str(error)
        found = re.search("sizes of output 0 (may )?depend on the numbers in samples", told)
        assert found is not None, told
        outcomes.add("untried" if found[1] else "refused")
    assert outcomes == {"refused", "untried"}


def test_sizes_of_open_inputs_depend_on_no_numbers(tmp_path: Path) -> None:
    x = op.parameter(ov.PartialShape("1,8,?,?"), np.float32, name="x")
    pooled = op.reshape(op.relu(x), ints(0, 8, -1), True)
    ov.serialize(ov.Model([pooled], [x], "net"), tmp_path / "net.xml")
    report = ir.edit(tmp_path / "net.xml", [{"op": "set-batch"}]).report
    assert report.counts["tried"] == 1


def test_the_axis_is_that_of_the_layout(tmp_path: Path) -> None:
    """A state of (layers, samples, numbers) is one of the inputs that take samples."""
    x, state = (op.parameter(s, np.float32, name=n) for n, s in (("x", (1, 4)), ("s", (2, 1, 4))))
    out = op.add(op.unsqueeze(x, ints(0)), state)
    ov.serialize(ov.Model([out], [x, state], "net"), tmp_path / "net.xml")
    layout = {"op": "set-layout", "input": "s", "layout": "?NC"}
    model = ir.edit(tmp_path / "net.xml", [layout, {"op": "set-batch", "batch": 3}]).model
    assert [str(end.tensor.shape) for end in model.inputs] == ["3,4", "2,3,4"]
    with pytest.raises(ir.UsageError, match=r"it takes 2 samples, the first input 1"):
        ir.edit(tmp_path / "net.xml", [{"op": "set-batch", "inputs": ["x", "s"]}])


def test_a_body_that_says_the_old_number_is_named(tmp_path: Path) -> None:
    x, one = (op.parameter((1, 4), np.float32, name=name) for name in ("x", "one"))
    body = op.reshape(op.multiply(one, one), ints(1, 4), False)
    bodies = [ov.Model([node], [one], "body") for node in (body, body)]
    asked = op.parameter((1,), np.bool_, name="asked")
    choice = op.if_op(asked.output(0))
    choice.set_then_body(bodies[0])
    choice.set_else_body(bodies[1])
    choice.set_input(x.output(0), one, one)
    choice.set_output(bodies[0].results[0], bodies[1].results[0])
    ov.serialize(ov.Model([choice.output(0)], [x, asked], "net"), tmp_path / "net.xml")
    with pytest.raises(ir.UsageError) as error:
        ir.edit(tmp_path / "net.xml", [{"op": "set-batch"}])
    assert "its body says the old number" in str(error.value)


def detected(x: ov.Node) -> ov.Node:
    def head(count: int) -> ov.Node:
        kernel = weights(count, 8, 1, 1)
        return op.reshape(
            op.convolution(x, kernel, [1, 1], [0, 0], [0, 0], [1, 1]), ints(1, -1), False
        )

    priors = op.constant(np.random.default_rng(1).uniform(0, 1, (1, 2, 72)).astype("f4"))
    scores = op.softmax(op.reshape(head(6), ints(1, -1, 3), False), -1)
    words = {"background_label_id": 0, "top_k": 10, "keep_top_k": [10], "nms_threshold": 0.5,
             "confidence_threshold": 0.5, "share_location": True, "normalized": True}  # fmt: skip
    return op.detection_output(head(8), op.reshape(scores, ints(1, -1), False), priors, words)


def test_outputs_that_a_file_leaves_out_are_not_missed(tmp_path: Path) -> None:
    def largest(x: ov.Node) -> ov.Node:
        return op.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)

    path = made(largest, tmp_path)
    port = r'<port id="2" precision="I64">.*?</port>'
    text, count = re.subn(port, "", path.read_text(), flags=re.DOTALL)
    assert count == 1
    path.write_text(text)
    assert ir.edit(path, [{"op": "set-batch"}]).report.counts["tried"] == 1


def test_lists_of_what_is_found_in_all_samples_are_taken(tmp_path: Path) -> None:
    path = made(detected, tmp_path)
    model, report = ir.edit(path, [{"op": "set-batch"}])
    assert "lists what is found in all samples" in str(report)
    assert report.counts["untried"] == 1
    x = RNG.standard_normal((3, 8, 3, 3)).astype("f4")
    rows = listed(model, x)
    for number in range(3):
        alone = listed(ir.read(path), x[number : number + 1])
        np.testing.assert_allclose(rows[rows[:, 0] == number][:, 1:], alone[:, 1:], rtol=1e-5)


def listed(model: ir.Model, x: np.ndarray) -> np.ndarray:
    """The rows of a list, up to the mark at its end."""
    (found,) = ir.run(model, [x]).values()
    rows = found.reshape(-1, 7)
    return rows[: [*rows[:, 0], -1].index(-1)]


def test_a_trial_that_sees_nothing_is_none(tmp_path: Path) -> None:
    path = made(lambda x: op.log(op.negative(op.softmax(x, 0))), tmp_path)
    assert ir.edit(path, [{"op": "set-batch"}]).report.counts["untried"] == 1


def test_what_a_rounding_layer_says_is_kept(tmp_path: Path) -> None:
    limits = [number(value) for value in (-3.0, 3.0, -3.0, 3.0)]
    path = made(lambda x: op.fake_quantize(x, *limits, 16), tmp_path)
    model = ir.edit(path, [{"op": "set-batch"}]).model
    assert [x.op.levels for x in model if x.type == "FakeQuantize"] == [16]


@pytest.mark.parametrize("kind", ["on the way", "on trial"])
def test_a_refused_batch_leaves_the_model_as_it_was(kind: str, tmp_path: Path) -> None:
    def build(x: ov.Node) -> ov.Node:
        return op.reduce_max(op.reshape(widened(x), ints(1, 32), False), ints(0), True)

    build = build if kind == "on the way" else REFUSED["behind a pattern"][0]
    model = ir.read(made(build, tmp_path))
    before = ir.dumps(model)
    with model.edit as edit, pytest.raises(ir.UsageError):
        edit.batch()
    assert ir.dumps(model) == before


def test_infer_tells_once_of_outputs_that_say_the_old_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of what is made of other inputs, nor of lists of what is found."""
    net = ir.Builder("net")
    x, y = (net.parameter(name, "f32", (1, 8)) for name in "xy")
    for number in range(5):
        flat = net.add("Reshape", "opset1", [x, np.array([1, -1])], special_zero=False)
        net.result(net.add("ReLU", "opset1", [flat]), name=f"left{number}")
    net.result(net.add("ReLU", "opset1", [y]), name="other")
    net.result(net.add("ReLU", "opset1", [x]), name="follows")
    ir.write(net.model(), tmp_path / "net.xml")
    with pytest.raises(SystemExit) as left:
        main(["infer", str(tmp_path / "net.xml"), "--input", "x=4,8"])
    assert left.value.code == 0
    said = capsys.readouterr().err
    assert said.count("set-batch") == 1
    assert 'outputs "left0", "left1", "left2" and 2 more: as before whatever the batch' in said
    assert "other" not in said
    assert "follows" not in said


def two_ends(folder: Path, first: Callable[[ov.Node], ov.Node]) -> Path:
    x = op.parameter((1, 8, 3, 3), np.float32, name="x")
    ends = [first(x), op.relu(x)]
    for end, name in zip(ends, "ab", strict=True):
        end.output(0).get_tensor().set_names({name})
    ov.serialize(ov.Model(ends, [x], "net"), folder / "net.xml")
    return folder / "net.xml"


def test_outputs_that_were_taken_out_before_say_nothing(tmp_path: Path) -> None:
    path = two_ends(tmp_path, lambda x: op.softmax(x, 0))
    edits = [{"op": "remove-output", "output": "a"}, {"op": "set-batch"}]
    assert ir.edit(path, edits).report.counts["tried"] == 1


def test_an_output_with_a_row_more_than_samples_is_refused(tmp_path: Path) -> None:
    path = two_ends(tmp_path, lambda x: op.concat([weights(1, 8, 3, 3), x], 0))
    with pytest.raises(ir.UsageError, match="would not tell samples apart"):
        ir.edit(path, [{"op": "set-batch"}])
    nothing = two_ends(
        tmp_path, lambda x: op.pad(x, ints(0, 0, 0, 0), ints(1, 0, 0, 0), "constant")
    )
    with pytest.raises(ir.UsageError, match="would not tell samples apart"):
        ir.edit(nothing, [{"op": "set-batch", "prove": False}])


def test_a_name_that_is_given_up_is_forgotten(tmp_path: Path) -> None:
    path = made(flat, tmp_path)
    for batch, wanted in (("?", "?,8,3,3"), ("1..4", "1..4,8,3,3"), ("M", "M,8,3,3")):
        edits = [{"op": "set-batch", "batch": "N"}, {"op": "set-batch", "batch": batch}]
        model = ir.edit(path, edits).model
        assert str(model.inputs[0].tensor.shape) == wanted


def test_what_an_input_took_is_what_it_said(tmp_path: Path) -> None:
    path = made(flat, tmp_path)
    ranged = ir.edit(path, [{"op": "set-batch", "batch": "1..4"}]).model
    report = ir.edit(ranged, [{"op": "set-batch", "batch": 2}]).report
    assert "takes 2,8,3,3, took 1..4,8,3,3" in str(report)


@pytest.mark.parametrize("batch", [0, "0", "0..3", "..3", "1,2", "...", "", True, 1.0, None])
def test_what_is_no_size_of_a_batch_is_refused(batch: object, tmp_path: Path) -> None:
    with pytest.raises(ir.UsageError, match="batch"):
        ir.edit(made(flat, tmp_path), [{"op": "set-batch", "batch": batch}])


def test_a_trial_for_which_there_is_no_memory_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_: object) -> float:
        raise ir.LimitError("not enough memory")

    monkeypatch.setattr(Trial, "difference", short_of_memory)
    report = ir.edit(made(flat, tmp_path), [{"op": "set-batch"}]).report
    assert "not enough memory" in str(report)
    assert report.counts["untried"] == 1
