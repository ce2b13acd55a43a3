"""Programs where the formula of a rewrite does not hold: then it is not made, and answers stay."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program import assert_close
from vinoir import ir
from vinoir.ir.engine.kernels.activations import power_of_two
from vinoir.ir.engine.kernels.loose_windows import met
from vinoir.layers.convolution import ConvolutionV1
from vinoir.schemas import IRError, Shape

RNG = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype("f4")


class Net:
    """A model of one input that is built step by step."""

    def __init__(self, shape: tuple[int, ...], kind: str = "f32") -> None:
        self.net = ir.Builder()
        self.x = self.net.parameter("x", kind, shape)

    def __call__(self, kind: str, *inputs: Any, opset: str = "opset1", **words: Any) -> Any:
        given = [self.net.constant(one) if isinstance(one, np.ndarray) else one for one in inputs]
        return self.net.add(kind, opset, given, **words)

    def convolved(self, x: Any, weights: Any, pad: int = 0, axes: int = 2) -> Any:
        axes = weights.ndim - 2 if isinstance(weights, np.ndarray) else axes
        words = {"pads_begin": (pad,) * axes, "pads_end": (pad,) * axes}
        ones = {"strides": (1,) * axes, "dilations": (1,) * axes}
        return self("Convolution", x, weights, **ones, **words)

    def model(self, made: Any) -> ir.Model:
        self.net.result(made, name="y")
        return self.net.model()


def same(model: ir.Model, *given: np.ndarray) -> None:
    wanted = ir.run(model, list(given))
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)(list(given))
        if wanted["y"].dtype.kind in "iu":
            np.testing.assert_array_equal(found["y"], wanted["y"])
        else:
            assert_close(found, wanted)


@pytest.mark.parametrize("kind", ["Add", "Multiply"])
@pytest.mark.parametrize(("made", "beside"), [(1, (1, 4, 1, 1)), (2, (4, 1, 1, 1))])
def test_a_constant_widens_what_is_cut(kind: str, made: int, beside: tuple[int, ...]) -> None:
    net = Net((1, 3, 10, 10))
    x = net(kind, net.convolved(net.x, real(made, 3, 3, 3), 2), real(*beside))
    ends = [np.array(one) for one in ([0, 0], [10, 10], [1, 1], [2, 3])]
    same(net.model(net("Slice", x, *ends, opset="opset8")), real(1, 3, 10, 10))


def spread(net: Net) -> Any:
    """A dilated convolution, as some frameworks write it."""
    sizes = [np.array(one) for one in ([1, 1, 2, 2], [0, 0, 2, 2], [0, 0, 2, 2])]
    x = net("SpaceToBatch", net("Convert", net.x, destination_type="f32"), *sizes, opset="opset2")
    nothing = np.zeros(4, int)
    cut = net.convolved(x, whole(16, 16, 3, 3))
    return net("BatchToSpace", cut, sizes[0], nothing, nothing, opset="opset2")


def averaged(net: Net) -> Any:
    x = net("Convert", net.x, destination_type="f32")
    words = {"kernel": (3, 3), "strides": (3, 3), "pads_begin": (0, 0), "pads_end": (0, 0)}
    made = net.convolved(x, whole(16, 16, 1, 1))
    return net("AvgPool", made, rounding_type="floor", **{"exclude-pad": True}, **words)


def branched(net: Net, other: Callable[[Any], Any]) -> Any:
    x = net("Convert", net.x, destination_type="f32")
    return net("Add", net.convolved(x, whole(16, 16, 3, 3), 1), other(x))


@pytest.mark.parametrize("size", [33, 56])
@pytest.mark.parametrize(
    "made",
    [
        spread,
        averaged,
        lambda net: branched(net, lambda x: x),
        lambda net: branched(net, lambda x: net.convolved(x, whole(16, 16, 1, 1))),
    ],
    ids=["spread", "averaged", "beside", "branched"],
)
def test_sums_of_bytes_are_whole(made: Callable[[Net], Any], size: int) -> None:
    if made is spread and size % 2:
        size += 1
    net = Net((1, 16, size, size), "u8")
    model = net.model(net("Convert", made(net), destination_type="i32"))
    same(model, RNG.integers(0, 256, (1, 16, size, size)).astype("u1"))


@pytest.mark.parametrize(
    ("scale", "zero", "kind"),
    [(1.0, 3, "u8"), (0.5, 1, "u8"), (1.0, 5, "i8"), (1.0, 4, "u8"), (0.75, 7, "u8")],
)
def test_halves_fall_to_the_even_side(scale: float, zero: int, kind: str) -> None:
    low, high = (0.0, 255.0) if kind == "u8" else (-128.0, 127.0)
    numbers = (np.arange(-50, 50, 0.5) * scale).astype("f4")
    net = Net(numbers.shape)
    point, step = np.float32(zero), np.float32(scale)
    x = net("Round", net("Divide", net.x, np.array(step)), opset="opset5", mode="half_to_even")
    x = net("Clamp", net("Add", x, np.array(point)), min=low, max=high)
    x = net("Convert", net("Convert", x, destination_type=kind), destination_type="f32")
    x = net("Multiply", net("Subtract", x, np.array(point)), np.array(step))
    model = net.model(net("ReLU", x))
    wanted = ir.run(model, [numbers])["y"]
    np.testing.assert_array_equal(ir.compile(model)([numbers])["y"], wanted)


@pytest.mark.parametrize("pads", ["same_upper", "same_lower"])
@pytest.mark.parametrize("clipped", [False, True])
def test_windows_with_gaps_reach_into_the_padding(pads: str, clipped: bool) -> None:
    net = Net((1, 3, 4, 4))
    weights = real(8, 3, 1, 1)
    words = {"kernel": (2, 2), "strides": (2, 2), "dilations": (2, 2), "exclude-pad": False}
    words |= {"auto_pad": pads, "rounding_type": "floor", "pads_begin": (0, 0), "pads_end": (0, 0)}
    if clipped:
        x = net("Add", net("Multiply", net.x, real(1, 3, 1, 1)), real(1, 3, 1, 1))
        x = net("AvgPool", net("ReLU", x), opset="opset16", **words)
        made = net.convolved(x, weights)
    else:
        x = net("Add", net.convolved(net.x, weights), 10 + real(1, 8, 1, 1))
        made = net("AvgPool", x, opset="opset16", **words)
    same(net.model(made), real(1, 3, 4, 4))


@pytest.mark.parametrize("before", ["nothing", "MatMul", "Convolution"])
def test_slopes_go_along_the_last_axis(before: str) -> None:
    shape = {"nothing": (2, 4, 6), "MatMul": (2, 4, 5), "Convolution": (1, 3, 10, 6)}[before]
    net = Net(shape)
    x = net.x
    if before == "MatMul":
        x = net("MatMul", x, real(5, 6))
    elif before == "Convolution":
        x = net.convolved(x, real(4, 3, 3, 3), 1)
    same(net.model(net("PReLU", x, real(6))), real(*shape))


@pytest.mark.parametrize("rule", ["numpy", "pdpd"])
@pytest.mark.parametrize("columns", [1, 4])
def test_a_bias_widens_a_product_before_a_convolution(rule: str, columns: int) -> None:
    net = Net((4, 16, 6))
    x = net("Add", net("MatMul", net.x, real(6, columns)), real(4), auto_broadcast=rule)
    made = 4 if rule == "numpy" or columns == 4 else 1
    x = net("Transpose", x, np.array([0, 2, 1]))
    x = net("Reshape", x, np.array([4, made, 4, 4]), special_zero=False)
    same(net.model(net.convolved(x, real(5, made, 1, 1))), real(4, 16, 6))


@pytest.mark.parametrize("pads", [(0, 0, 1, 1), (0, 1, 0, 0), (1, 0, 0, 0)])
def test_images_that_grow_by_further_channels(pads: tuple[int, ...]) -> None:
    net = Net((1, 256, 32, 32))
    x = net(
        "Interpolate", net.x, np.array([64, 64]), np.array([2.0, 2.0], "f4"), np.array([2, 3]),
        opset="opset4", mode="linear_onnx", shape_calculation_mode="sizes", pads_begin=pads,
        pads_end=(0, 0, 0, 0), coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    images, channels = 1 + pads[0], 256 + pads[1]
    more = real(images, 8, 64, 64)
    made = net("Concat", x, more, axis=1)
    model = net.model(net.convolved(made, real(16, channels + 8, 1, 1)))
    same(model, real(1, 256, 32, 32))


@pytest.mark.parametrize("least", [1e3, 65504, 1e6, 1e9])
def test_a_channel_that_is_never_alive(least: float) -> None:
    net = Net((1, 8, 16, 16))
    bias = np.zeros((1, 8, 1, 1), "f4")
    bias[0, 3] = -least
    x = net("Add", net.convolved(net.x, real(8, 8, 1, 1)), bias)
    same(net.model(net.convolved(net("ReLU", x), real(4, 8, 1, 1))), real(1, 8, 16, 16))


@pytest.mark.parametrize("kind", ["Add", "Maximum"])
def test_a_constant_that_begins_with_the_batch(kind: str) -> None:
    net = Net((3, 3, 4, 4))
    beside = np.array([-1, -2, -0.5], "f4").reshape(3, 1, 1)
    x = net(kind, net.x, beside, auto_broadcast="pdpd")
    same(net.model(net.convolved(x, real(2, 3, 1, 1))), real(3, 3, 4, 4))


def test_a_vector_of_bytes_that_is_turned() -> None:
    net = Net((5,), "u8")
    weights = RNG.integers(-9, 9, (5, 7)).astype("i4")
    x = net("MatMul", net("Convert", net.x, destination_type="i32"), weights, transpose_a=True)
    model = net.model(net("Convert", x, destination_type="f32"))
    same(model, RNG.integers(0, 255, 5).astype("u1"))


def test_a_norm_of_few_digits_is_rounded_once() -> None:
    net = Net((1, 2, 4, 4), "bf16")
    each = [np.full(2, one).astype(ml_dtypes.bfloat16) for one in (1, 0, 100, 3)]
    model = net.model(net("BatchNormInference", net.x, *each, opset="opset5", epsilon=1e-3))
    x = (100 + 2 * real(1, 2, 4, 4)).astype(ml_dtypes.bfloat16)
    wanted = ir.run(model, [x])["y"].astype("f4")
    np.testing.assert_array_equal(ir.compile(model)([x])["y"].astype("f4"), wanted)


@pytest.mark.parametrize("place", [3, 5, -4])
def test_rows_beyond_the_last_are_not_written(place: int) -> None:
    net = Net((3, 2))
    written = net(
        "ScatterUpdate", net.x, np.array([place]), real(1, 2), np.array(0), opset="opset3"
    )
    model = net.model(written)
    for answer in (ir.run, lambda model, given: ir.compile(model)(given)):
        with pytest.raises(IRError, match=f"index {place} is beyond"):
            answer(model, [real(3, 2)])


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("words", [
    {"kernel": (1, 2, 1), "strides": (1, 6, 1), "rounding_type": "ceil"},
    {"kernel": (1, 1, 1), "strides": (1, 2, 1), "pads_begin": (0, 1, 0), "pads_end": (0, 1, 0)},
    {"kernel": (1, 1, 2), "strides": (1, 1, 2), "pads_begin": (0, 0, 2), "pads_end": (0, 0, 2)},
])  # fmt: skip
def test_windows_of_volumes_in_the_padding(kind: str, words: dict[str, Any]) -> None:
    net = Net((1, 64, 2, 5, 300))
    x = net.convolved(net.x, np.eye(64, dtype="f4").reshape(64, 64, 1, 1, 1))
    usual = {"pads_begin": (0, 0, 0), "pads_end": (0, 0, 0), "rounding_type": "floor"}
    further = {"exclude-pad": False} if kind == "AvgPool" else {}
    model, given = net.model(net(kind, x, **{**usual, **words}, **further)), real(1, 64, 2, 5, 300)
    wanted = ir.run(model, [given])["y"]
    # The mean of nothing is no number.
    np.testing.assert_allclose(ir.compile(model)([given])["y"], wanted, rtol=1e-5, atol=1e-5)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_windows_meet_between_two_stops(data: Any) -> None:
    draw = data.draw
    size, taps, gap, stride = (draw(st.integers(1, 6)) for _ in range(4))
    begin, end = (draw(st.integers(0, 20)) for _ in range(2))
    count = (size + begin + end - (taps - 1) * gap - 1) // stride + 1
    if count < 1:
        return
    first = draw(st.integers(0, count - 1))
    stop = draw(st.integers(first + 1, count))
    op = ConvolutionV1(strides=(stride,), dilations=(gap,), pads_begin=(begin,), pads_end=(end,))
    image = np.arange(1, size + 1)
    rows, (before, after) = met(
        op, image.reshape(1, 1, -1), (taps,), [(begin, end)], (first, stop)
    )
    assert min(before, after) >= 0
    found = np.pad(image[rows], (before, after))
    start = first * stride
    wanted = np.pad(image, (begin, end + stride))[
        start : start + (stop - 1 - first) * stride + (taps - 1) * gap + 1
    ]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("opset", "mode"), [("opset1", "constant"), ("opset12", "edge")])
def test_a_number_has_no_margin(opset: str, mode: str) -> None:
    net = Net(())
    nothing = np.zeros(0, int)
    model = net.model(net("Pad", net.x, nothing, nothing, opset=opset, pad_mode=mode))
    same(model, np.array(3, "f4"))


def test_powers_do_not_tell_what_was_seen_before() -> None:
    room = np.empty(8, "f4")
    later = np.array([-3e38, 3e38, 126.5, 127.5, 129, -126.5, 1, 0], "f4")
    answers = []
    for before in (0, -200, 200):
        exponents = np.full(8, before, "f4")
        part = power_of_two(exponents, room)
        with np.errstate(over="ignore"):
            part()
            exponents[...] = later
            part()
        answers.append(1 + room)
    for found in answers[1:]:
        np.testing.assert_array_equal(found, answers[0])


def test_neighbours_along_an_axis_beyond_what_float32_counts() -> None:
    size = (1 << 24) + 65
    net = Net((1, 1, size))
    x = net(
        "Interpolate", net.x, np.array([size * 2]), np.array([2.0], "f4"), np.array([2]),
        opset="opset4", mode="nearest", shape_calculation_mode="sizes", pads_begin=(0, 0, 0),
        pads_end=(0, 0, 0), coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
    last = [np.array(one) for one in ([size * 2 - 99], [size * 2], [1], [2])]
    model = net.model(net("Slice", x, *last, opset="opset8"))
    image = np.zeros((1, 1, size), "f4")
    image[..., -99:] = real(99)
    same(model, image)


def test_margins_of_an_axis_that_is_not_resized() -> None:
    net = Net((2, 5, 6, 4))
    words = {"axes": [2, 3], "align_corners": False, "antialias": False}
    x = net(
        "Interpolate", net.x, np.array([7, 3]), mode="nearest", pads_begin=[0, 0, 0, 0],
        pads_end=[0, 1, 0, 0], **words,
    )  # fmt: skip
    model, given = net.model(x), real(2, 5, 6, 4)
    wanted = ir.run(model, [given])["y"]
    np.testing.assert_array_equal(ir.compile(model)([given])["y"], wanted)


def test_limits_beyond_float32_are_none() -> None:
    net = Net((2, 3))
    model = net.model(net("Clamp", net.x, min=-1.7e308, max=1.797e308))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(model, real(2, 3))


@pytest.mark.parametrize("kind", ["MatMul", "Convolution"])
def test_endless_factors_are_no_reason_to_warn(kind: str) -> None:
    net = Net((1, 4, 6, 6))
    factor = np.array([np.inf, 1, 1, 1], "f4")
    if kind == "MatMul":
        made = net("Multiply", net("MatMul", net.x, real(6, 4)), factor)
    else:
        made = net("Multiply", net.convolved(net.x, real(4, 4, 3, 3)), factor.reshape(1, 4, 1, 1))
    model = net.model(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ir.compile(model)([real(1, 4, 6, 6)])


def counting() -> ir.Model:
    """A variable that begins with 100, to which each call adds what it is given."""
    net = Net((1, 4))
    begin = net("Add", net.x, np.array(100, "f4"))
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": Shape([1, 4])}
    made = net("Add", net("ReadValue", begin, opset="opset6", **words), net.x)
    net("Assign", made, opset="opset6", variable_id="v")
    return net.model(made)


def test_states_are_reset_between_calls_not_within() -> None:
    program = ir.compile(counting(), threads=1)
    given, found, is_over = [np.ones((1, 4), "f4")], set(), threading.Event()

    def call() -> None:
        while not is_over.is_set():
            found.add(float(program(given)["y"][0, 0]))

    others = [threading.Thread(target=call) for _ in range(2)]
    for other in others:
        other.start()
    for _ in range(2000):
        program.reset()
    is_over.set()
    for other in others:
        other.join()
    assert min(found) == 102


def test_outputs_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net((2, 3))
    x = net.x
    for _ in range(20):
        x = net("Reshape", net("ReLU", x), np.array([3, 2]), special_zero=False)
        x = net("Reshape", x, np.array([2, 3]), special_zero=False)
    model, given = net.model(x), real(2, 3)
    with monkeypatch.context() as patch:
        patch.setattr(np, "may_share_memory", None)  # there would be pairs of all
        found = [given, *ir.run(model, [given], outputs="all").values()]
    for number, array in enumerate(found):
        assert not any(np.may_share_memory(array, other) for other in found[:number])


def test_what_is_run_belongs_to_the_caller() -> None:
    net = Net((2, 3))
    fixed = net.net.constant(real(2, 3))
    flat = net("Reshape", net.x, np.array([6]), special_zero=False)
    for made in (net.x, net.x, flat, fixed):
        net.net.result(made)
    model, given = net.net.model(), real(2, 3)
    taken = [given]
    for array in ir.run(model, [given]).values():
        assert array.flags.writeable
        assert not any(np.may_share_memory(array, other) for other in taken)
        taken.append(array)
    state: dict[str, np.ndarray] = {}
    x = np.ones((1, 4), "f4")
    ir.run(counting(), [x], state=state)["y"][...] = 7
    assert ir.run(counting(), [x], state=state)["y"][0, 0] == 103


@pytest.mark.parametrize("threads", [1, 2])
def test_zeros_of_both_signs_divide_as_they_are(threads: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (64, 33))
    for number in (0.0, -0.0, np.nan, 2.0):
        net.result(net.add("Divide", "opset1", [x, np.float32([number])]))
    array = np.ones((64, 33), "f4")
    model = net.model()
    pairs = zip(
        ir.run(model, [array]).values(),
        ir.compile(model, threads=threads)([array]).values(),
        strict=True,
    )
    for wanted, found in pairs:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("image", [0, 1])
def test_groups_beside_one_with_a_nan_keep_their_digits(image: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 4, 8, 8))
    sizes = [np.ones(4, "f4"), np.full(4, 0.3, "f4")]
    y = net.add("GroupNormalization", "opset12", [x, *sizes], num_groups=2, epsilon=1e-5)
    net.result(y)
    array = np.full((2, 4, 8, 8), 1234.5, "f4")
    array[image, 0, 0, 0] = np.nan
    (found,) = ir.compile(net.model())([array]).values()
    np.testing.assert_allclose(found[image, 2:], 0.3, rtol=1e-6)
    np.testing.assert_allclose(found[1 - image], 0.3, rtol=1e-6)


@pytest.mark.parametrize("alpha", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("after", ["nothing", "product", "convolution"])
def test_what_an_elu_leaves_alone_has_no_part_in_its_alpha(alpha: float, after: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 16, 16))
    y = x
    if after == "product":
        y = net.add("MatMul", "opset1", [y, np.eye(16, dtype="f4")])
    elif after == "convolution":
        filters = np.eye(8, dtype="f4").reshape(8, 8, 1, 1)
        words = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
        y = net.add("Convolution", "opset1", [y, filters], **words)
    net.result(net.add("Elu", "opset1", [y], alpha=alpha))
    array = np.arange(1, 8 * 256 + 1, dtype="f4").reshape(1, 8, 16, 16)
    (found,) = ir.compile(net.model())([array]).values()
    np.testing.assert_array_equal(found, array)
    (below,) = ir.compile(net.model())([-array]).values()
    np.testing.assert_allclose(below, np.expm1(-array) * np.float32(alpha), rtol=1e-6)
