"""Programs give what the definitions give, on networks made at random."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import calls
import numpy as np
import pytest
from networks import Drawer
from oracle import Call, single
from vinoir import ir
from vinoir.ir.engine.kernels import convolution
from vinoir.ir.engine.plan.building import build
from vinoir.ir.engine.program import Program
from vinoir.ir.engine.workers.processes import Forked, can_fork, shared
from vinoir.ir.engine.workers.team import Part, Team
from vinoir.schemas import Array, Shape, Tensor, UsageError

NETWORKS = int(os.environ.get("VINOIR_NETWORKS", "60"))


def feed(model: ir.Model, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    inferred = ir.infer(model)
    return [
        rng.standard_normal(inferred.of(p)[0].shape.static).astype("f4") for p in model.parameters
    ]


def assert_close(found: ir.Outputs, wanted: ir.Outputs, tolerance: float = 1e-4) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        scale = max(float(np.abs(array).max(initial=0)), 1e-6)
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance * scale)


def assert_alike(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind in "iubT":
        np.testing.assert_array_equal(found, wanted)
    else:
        found, wanted = found.astype("f8"), wanted.astype("f8")
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_a_program_gives_what_the_definitions_give(seed: int) -> None:
    model = Drawer(seed).model(batch=1 + seed % 3)
    inputs = feed(model)
    program = ir.compile(model, threads=1 + seed % 2)
    wanted = ir.run(model, inputs)
    assert_close(program(inputs), wanted)
    # A second call, with other values, must not see what the first left in memory.
    others = feed(model, 1)
    assert_close(program(others), ir.run(model, others))
    assert_close(program(inputs), wanted)


@pytest.mark.parametrize("call", [c for c in calls.samples() if not c.kind.is_random], ids=str)
def test_a_program_of_one_operation_gives_what_its_kernel_gives(call: Call) -> None:
    inputs = call.tensors()
    xml, weights = single(call.make(), inputs)
    model = ir.loads(xml.encode(), weights)
    given = [a for t, a in zip(inputs, call.arrays(), strict=True) if t.value is None]
    program, kept = ir.compile(model), [array.copy() for array in given]
    taken = [*given, *program(given).values()]
    for found, wanted in zip(program(given).values(), ir.run(model, given).values(), strict=True):
        # What is handed out belongs to nobody else, and what was given is as it was.
        assert not any(np.may_share_memory(found, other) for other in taken)
        taken.append(found)
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert_alike(found, wanted)
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("call", [c for c in calls.samples() if not c.kind.is_random], ids=str)
def test_a_program_folds_and_walks_to_the_same(call: Call) -> None:
    """With every input a constant, and with no size known beforehand."""
    inputs, arrays = call.tensors(known=True), call.arrays()
    loose = [
        t if i in call.const else Tensor(t.type, Shape.of_rank(t.rank))
        for i, t in enumerate(inputs)
    ]
    count = len(call.make().infer_outputs(call.tensors()))
    for tensors in (inputs, loose):
        xml, weights = single(call.make(), tensors, count)
        model = ir.loads(xml.encode(), weights)
        given = [a for t, a in zip(tensors, arrays, strict=True) if t.value is None]
        found, wanted = ir.compile(model)(given), ir.run(model, given)
        for one, other in zip(found.values(), wanted.values(), strict=True):
            assert_alike(one, other)


@pytest.mark.parametrize("kind", ["u1", "nf4", "u4", "i4", "f8e4m3", "f16", "bf16", "boolean"])
def test_the_type_of_another_tensor_is_that_which_the_model_declares(kind: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (4,))
    like = net.constant(np.zeros(2, Tensor(kind, ()).type.dtype), kind)
    alike = net.add("ConvertLike", "opset1", [x, like])
    net.result(net.add("Convert", "opset1", [alike], destination_type="f32"), name="y")
    model, given = net.model(), [np.array([-0.6, 0.3, 1.7, 5.2], "f4")]
    found = [ir.run(model, given)["y"], ir.compile(model)(given)["y"]]
    plain = ir.Builder()
    x = plain.parameter("x", "f32", (4,))
    alike = plain.add("Convert", "opset1", [x], destination_type=kind)
    plain.result(plain.add("Convert", "opset1", [alike], destination_type="f32"), name="y")
    for array in found:
        np.testing.assert_array_equal(array, ir.run(plain.model(), given)["y"])


def test_a_result_may_feed_a_layer() -> None:
    xml = """<net name="m" version="11"><layers>
      <layer id="0" name="x" type="Parameter" version="opset1">
        <data shape="2,3" element_type="f32"/>
        <output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
      <layer id="1" name="first" type="Result" version="opset1">
        <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
        <output><port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
      <layer id="2" name="turned" type="Negative" version="opset1">
        <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
        <output><port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
      <layer id="3" name="second" type="Result" version="opset1">
        <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input></layer>
    </layers><edges>
      <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
      <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
      <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
    </edges></net>"""
    model = ir.loads(xml.encode(), b"")
    given = np.array([[-1, 2, 3], [4, -5, 6]], "f4")
    for outputs in (ir.run(model, [given]), ir.compile(model)([given])):
        np.testing.assert_array_equal(outputs[0], given)
        np.testing.assert_array_equal(outputs[1], -given)


#: Input channels, output channels, height and width, kernel, stride: one row for each way that
#: convolutions are computed, by blocks of weights, by Winograd's tiles of all sizes, by windows.
WAYS = [
    (256, 128, 14, 3, 1), (64, 192, 21, 3, 1), (96, 128, 17, 5, 2),
    (128, 64, 7, 3, 1), (128, 64, 9, 1, 1), (256, 96, 5, 1, 1), (192, 128, 14, 3, 2),
    (128, 128, 28, 3, 1), (96, 96, 13, 3, 1), (64, 33, 11, 3, 1), (3, 24, 31, 3, 2),
    (3, 16, 33, 7, 2), (40, 300, 6, 3, 1), (40, 300, 6, 1, 1), (48, 32, 10, 5, 1),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("memory", [True, False])
def test_every_way_to_convolve(
    way: tuple[int, ...], shuffled: bool, memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not memory:  # then weights are kept as they are, and transformed at each call
        monkeypatch.setattr("vinoir.ir.engine.planned.ALLOWANCE", -(1 << 40))
    given, made, size, kernel, stride = way
    net, rng = ir.Builder(), np.random.default_rng(0)
    x = net.parameter("x", "f32", (2, given, size, size))
    # What comes before a 1x1 convolution is done to its blocks.
    y = net.add(
        "ReLU", "opset1", [net.add("Multiply", "opset1", [x, net.constant(np.float32(0.5))])]
    )
    weights = rng.standard_normal((made, given, kernel, kernel)) / np.sqrt(given * kernel**2)
    words = dict.fromkeys(("pads_begin", "pads_end"), (kernel // 2,) * 2)
    y = net.add(
        "Convolution", "opset1", [y, net.constant(weights.astype("f4"))],
        strides=(stride, stride), dilations=(1, 1), **words,
    )  # fmt: skip
    bias = net.constant(rng.standard_normal((1, made, 1, 1)).astype("f4"))
    y = net.add("ReLU", "opset1", [net.add("Add", "opset1", [y, bias])])
    if shuffled:
        groups = next(g for g in (4, 3) if made % g == 0)
        y = net.add("ShuffleChannels", "opset3", [y], axis=1, group=groups)
    net.result(y, name="y")
    model = net.model()
    inputs = feed(model)
    wanted = ir.run(model, inputs)
    for threads in (1, 2, 3):
        assert_close(ir.compile(model, threads=threads)(inputs), wanted)


@pytest.mark.parametrize(("memory", "afresh"), [(1 << 30, False), (0, True)])
def test_weights_are_kept_transformed_where_there_is_memory(memory: int, afresh: bool) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 64, 56, 56))
    weights = net.constant(np.ones((64, 64, 3, 3), "f4"))
    words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    net.result(net.add("Convolution", "opset1", [x, weights], **words))
    model = net.model()
    plan = build(model, ir.infer(model))
    assert plan is not None
    (node,) = (node for node in plan.nodes if node.kind == "Convolution")
    (way,) = convolution.choose_tilings([node], memory)
    assert way is not None
    assert way.afresh == afresh
    (blocks,) = convolution.lay_out(node, way).matrices
    taken = 9 if afresh else way.points**2
    assert blocks.nbytes == taken * 64 * 64 * 4 == way.nbytes(convolution.Sizes(node))


@pytest.mark.parametrize("channels", [24, 36, 20])
@pytest.mark.parametrize("groups", [(4, 4), (2, 4), (4, 2), (4, 1)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("between", ["nothing", "bias", "bias and ReLU"])
@pytest.mark.parametrize("before", ["ReLU", "bias and ReLU", "bias and Clamp", "no shuffle"])
def test_channels_are_shuffled_around_a_depthwise_convolution(
    channels: int, groups: tuple[int, int], stride: int, between: str, before: str
) -> None:
    rng = np.random.default_rng(channels)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, channels, 9, 8))

    def convolved(y: Any, groups: int, inner: int, size: int, stride: int = 1) -> Any:
        outer = channels // groups
        weights = rng.standard_normal((groups, outer, inner, size, size)).astype("f4")
        words = dict.fromkeys(("pads_begin", "pads_end"), (size // 2,) * 2)
        return net.add(
            "GroupConvolution", "opset1", [y, net.constant(weights)],
            strides=(stride, stride), dilations=(1, 1), **words,
        )  # fmt: skip

    def biased(y: Any) -> Any:
        bias = rng.standard_normal((1, channels, 1, 1)).astype("f4")
        return net.add("Add", "opset1", [y, net.constant(bias)])

    y = convolved(x, groups[0], channels // groups[0], 1)
    y = y if before == "ReLU" else biased(y)
    if before == "bias and Clamp":
        y = net.add("Clamp", "opset1", [y], min=-0.5, max=1.0)
    else:
        y = net.add("ReLU", "opset1", [y])
    if before != "no shuffle":
        y = net.add("ShuffleChannels", "opset3", [y], axis=1, group=groups[0])
    y = convolved(y, channels, 1, 3, stride)
    if between != "nothing":
        y = biased(y)
    if between == "bias and ReLU":
        y = net.add("ReLU", "opset1", [y])
    y = convolved(y, groups[1], channels // groups[1], 1)
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    model = net.model()
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)(feed(model))
        assert_close(found, ir.run(model, feed(model)))


@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize("follower", ["ReLU", "Clamp", "Sigmoid", "two users", "no bias"])
@pytest.mark.parametrize("pads", [(0, 1), (1, 2), (3, 3)])
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_the_largest_is_found_before_what_grows_with_it(
    channels: int, follower: str, pads: tuple[int, int], rounding: str
) -> None:
    rng = np.random.default_rng(channels + pads[0])
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, channels, 17, 14))
    weights = net.constant(rng.standard_normal((24, channels, 3, 3)).astype("f4") / 9)
    words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    y = net.add("Convolution", "opset1", [x, weights], **words)
    if follower != "no bias":
        bias = net.constant(rng.standard_normal((1, 24, 1, 1)).astype("f4"))
        y = net.add("Add", "opset1", [y, bias])
    bounds = {"min": -0.2, "max": 0.1} if follower == "Clamp" else {}
    kind = follower if follower in ("Clamp", "Sigmoid") else "ReLU"
    y = net.add(kind, "opset1", [y], **bounds)
    if follower == "two users":
        net.result(y, name="z")
    begin, end = pads
    y = net.add(
        "MaxPool", "opset1", [y], kernel=(3, 3), strides=(2, 3), pads_begin=(begin, 0),
        pads_end=(end, 1), rounding_type=rounding,
    )  # fmt: skip
    net.result(y, name="y")
    model = net.model()
    assert_close(ir.compile(model)(feed(model)), ir.run(model, feed(model)))


def test_what_is_largest_is_told_as_it_was_found() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 3, 8, 8))
    weights = net.constant(np.random.default_rng(0).standard_normal((4, 3, 1, 1)).astype("f4"))
    words = dict.fromkeys(("strides", "dilations"), (1, 1))
    words |= dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
    # Where all of a window is below zero, the first place is the largest after a ReLU.
    y = net.add("ReLU", "opset1", [net.add("Convolution", "opset1", [x, weights], **words)])
    pool = net.add(
        "MaxPool", "opset8", [y], kernel=(2, 2), axis=0, index_element_type="i64", **words
    )
    for name, output in zip(("largest", "place"), pool, strict=True):
        net.result(output, name=name)
    model = net.model()
    wanted, found = ir.run(model, feed(model)), ir.compile(model)(feed(model))
    np.testing.assert_allclose(found["largest"], wanted["largest"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["place"], wanted["place"])


def test_exact_keeps_to_the_definitions() -> None:
    model = Drawer(3).model()
    inputs = feed(model)
    found, wanted = ir.compile(model, exact=True)(inputs), ir.run(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_outputs_belong_to_the_caller() -> None:
    model = Drawer(5).model()
    program = ir.compile(model)
    first = program(feed(model))
    kept = {name: array.copy() for name, array in first.items()}
    program(feed(model, 1))
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])


def test_each_shape_gets_its_plan() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,2,?,?")
    w = net.constant(np.random.default_rng(0).standard_normal((3, 2, 3, 3)).astype("f4"))
    words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    net.result(net.add("Convolution", "opset1", [x, w], **words), name="y")
    model = net.model()
    program = ir.compile(model)
    for sizes in [
        (1, 2, 5, 5),
        (2, 2, 7, 4),
        (1, 2, 5, 5),
        (3, 2, 9, 9),
        (1, 2, 8, 8),
        (1, 2, 6, 6),
    ]:
        image = np.random.default_rng(1).standard_normal(sizes).astype("f4")
        assert_close(program([image]), ir.run(model, [image]))


def test_a_program_refuses_what_run_refuses() -> None:
    model = Drawer(1).model()
    program = ir.compile(model)
    with pytest.raises(UsageError, match=r'no input is named "y"'):
        program({"y": np.zeros(3, "f4")})
    with pytest.raises(UsageError, match="has the shape"):
        program([np.zeros((1, 99, 3, 3), "f4")])


def test_an_arena_larger_than_the_machine_is_refused() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1")
    net.result(net.add("Broadcast", "opset3", [x, net.constant(np.array([10**12]))], mode="numpy"))
    with pytest.raises(ir.IRError, match=r"not enough memory: 40000000[0-9]+ bytes are needed"):
        ir.compile(net.model())


@pytest.mark.parametrize("signs", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("between", ["nothing", "average", "padded average"])
def test_a_scale_and_a_relu_before_a_convolution(signs: str, between: str) -> None:
    rng = np.random.default_rng(len(signs) + len(between))
    scale = rng.uniform(0.2, 2, (1, 24, 1, 1)).astype("f4")
    if signs != "positive":
        scale *= -1 if signs == "negative" else rng.choice([-1, 0, 1], scale.shape)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 24, 12, 12))
    value = net.add("Multiply", "opset1", [x, net.constant(scale.astype("f4"))])
    shift = rng.standard_normal(scale.shape).astype("f4")
    value = net.add("ReLU", "opset1", [net.add("Add", "opset1", [value, net.constant(shift)])])
    ones = dict.fromkeys(("strides", "dilations"), (1, 1))
    zeros = dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
    if between != "nothing":
        pads = zeros if between == "average" else dict.fromkeys(zeros, (1, 1))
        value = net.add(
            "AvgPool", "opset1", [value], data={"exclude-pad": "false"},
            kernel=(2, 2), strides=(2, 2), rounding_type="floor", **pads,
        )  # fmt: skip
    weights = net.constant(rng.standard_normal((40, 24, 1, 1)).astype("f4"))
    value = net.add("Convolution", "opset1", [value, weights], **ones, **zeros)
    net.result(net.add("ReLU", "opset1", [value]), name="y")
    model = net.model()
    inputs = feed(model)
    assert_close(ir.compile(model)(inputs), ir.run(model, inputs))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("pad", [0, 1])
def test_a_bias_between_two_convolutions(groups: int, pad: int) -> None:
    rng = np.random.default_rng(groups + pad)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 24, 9, 9))
    ones = dict.fromkeys(("strides", "dilations"), (1, 1))

    def convolved(value: Any, groups: int, outer: int, size: int, pad: int) -> Any:
        shape = (groups, outer // groups, 24 // groups, size, size)
        weights = rng.standard_normal(shape).astype("f4")
        kind = "GroupConvolution" if groups > 1 else "Convolution"
        weights = weights if groups > 1 else weights[0]
        pads = dict.fromkeys(("pads_begin", "pads_end"), (pad, pad))
        found = net.add(kind, "opset1", [value, net.constant(weights)], **ones, **pads)
        bias = rng.standard_normal((1, outer, 1, 1)).astype("f4")
        return net.add("Add", "opset1", [found, net.constant(bias)])

    value = convolved(convolved(x, 24, 24, 3, 1), groups, 32, 1, pad)
    net.result(net.add("ReLU", "opset1", [value]), name="y")
    model = net.model()
    inputs = feed(model)
    assert_close(ir.compile(model)(inputs), ir.run(model, inputs))


@pytest.mark.parametrize(("stride", "pad"), [(1, 1), (2, 1), (1, 0), (2, 0)])
def test_shuffled_channels_go_into_a_depthwise_convolution(stride: int, pad: int) -> None:
    rng = np.random.default_rng(stride + pad)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 24, 11, 9))
    ones = dict.fromkeys(("strides", "dilations"), (1, 1))
    zeros = dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
    weights = net.constant(rng.standard_normal((3, 8, 8, 1, 1)).astype("f4"))
    value = net.add("GroupConvolution", "opset1", [x, weights], **ones, **zeros)
    value = net.add("ReLU", "opset1", [value])
    value = net.add("ShuffleChannels", "opset1", [value], axis=1, group=3)
    weights = net.constant(rng.standard_normal((24, 1, 1, 3, 3)).astype("f4"))
    pads = dict.fromkeys(zeros, (pad, pad))
    strides = {**ones, "strides": (stride, stride)}
    net.result(
        net.add("GroupConvolution", "opset1", [value, weights], **strides, **pads), name="y"
    )
    model = net.model()
    inputs = feed(model)
    assert_close(ir.compile(model)(inputs), ir.run(model, inputs))


def shared_work() -> tuple[ir.Model, Program, np.ndarray]:
    """A model, a program that runs with a helper, and an input."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 64, 40, 40))
    weights = net.constant(np.random.default_rng(3).standard_normal((64, 64, 3, 3)).astype("f4"))
    ones = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    for _ in range(3):
        x = net.add("ReLU", "opset1", [net.add("Convolution", "opset1", [x, weights], **ones)])
    net.result(x, name="y")
    model = net.model()
    image = np.random.default_rng(4).standard_normal((1, 64, 40, 40)).astype("f4")
    return model, ir.compile(model, threads=2), image


def helpers_of(program: Program) -> list[int]:
    """The processes that help a program, which come with its second call."""
    image = np.zeros(ir.infer(program.model).of(program.model.parameters[0])[0].shape.static, "f4")
    program([image])
    program([image])
    (planned,) = program._plans.values()
    assert planned is not None
    assert not all(planned.team.alone)
    helpers = planned.team._helpers
    return list(helpers._crew.pids) if isinstance(helpers, Forked) else []


def is_there(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


forking = pytest.mark.skipif(not can_fork(), reason="helpers are threads here")


def test_helpers_that_are_threads_compute_the_same() -> None:
    model, program, image = shared_work()
    (wanted,) = program([image]).values()
    threaded = ir.compile(model, threads=3, fork=False)
    for _ in range(9):
        (found,) = threaded([image]).values()
        assert np.array_equal(found, wanted)


@forking
def test_a_helper_that_is_not_always_needed_keeps_count() -> None:
    room = shared(8 * 6).view(np.int64)

    def part(place: int) -> Part:
        def run() -> None:
            room[place] += 1

        return run

    steps = [[part(0), part(1)], [part(2), part(3), part(4)], [part(5)]]
    team = Team(steps, 3, Forked)
    for _ in range(50):
        for shared_steps in ({0}, {0}, {1}, {0, 1}):
            team.alone = [number not in shared_steps for number in range(3)]
            team.run()
    team.dismiss()
    assert room.tolist() == [200] * 6


@forking
def test_a_helper_that_is_killed_is_not_missed() -> None:
    _, program, image = shared_work()
    (wanted,) = program([image]).values()
    (helper,) = helpers_of(program)
    os.kill(helper, signal.SIGKILL)
    for _ in range(3):
        (found,) = program([image]).values()
        assert np.array_equal(found, wanted)


@forking
def test_without_processes_to_be_had_the_caller_works_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, program, image = shared_work()

    def refuse() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    (alone,) = program([image]).values()
    monkeypatch.undo()
    (together,) = shared_work()[1]([image]).values()
    assert np.array_equal(alone, together)


@forking
def test_a_program_that_is_let_go_takes_its_helpers_along() -> None:
    _, program, image = shared_work()
    program([image])
    helpers = helpers_of(program)
    assert all(map(is_there, helpers))
    del program
    gc.collect()
    assert not any(map(is_there, helpers))


@forking
@pytest.mark.parametrize("moment", ["between calls", "in the middle of one"])
def test_helpers_end_with_the_process(moment: str) -> None:
    code = f"""
import os, signal, sys, time
import test_program
_, program, image = test_program.shared_work()
program([image])
print(*test_program.helpers_of(program), flush=True)
if {moment!r} != "between calls":
    (planned,) = program._plans.values()
    alone = planned.team.alone
    planned.team._helpers.begin([step for step in range(len(alone)) if not alone[step]])
    time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=60,
    )  # fmt: skip
    (helper,) = map(int, done.stdout.split())
    deadline = time.monotonic() + 10
    while is_there(helper) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_there(helper)


@forking
def test_a_copy_of_the_process_works_in_memory_of_its_own() -> None:
    _, program, image = shared_work()
    (wanted,) = program([image]).values()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for _ in range(20):
                (found,) = program([-image]).values()
            (again,) = program([image]).values()
            code = 0 if np.array_equal(again, wanted) and not np.array_equal(found, wanted) else 2
        finally:
            os._exit(code)
    for _ in range(40):
        (found,) = program([image]).values()
        assert np.array_equal(found, wanted)
    assert os.waitpid(pid, 0)[1] == 0


def test_threads_end_with_their_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.engine.planned.can_fork", lambda: False)
    before = threading.active_count()
    for _ in range(5):
        shared_work()[1]([np.zeros((1, 64, 40, 40), "f4")])
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert threading.active_count() <= before
