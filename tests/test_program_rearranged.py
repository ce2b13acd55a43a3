"""Programs that compute in another order than the model: the same comes out, by fewer steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.kernels import copies, volume_pooling
from vinoir.ir.engine.memory import in_blocks, in_runs, lies_in, straight_copy, turning
from vinoir.schemas import Array


def kinds(model: ir.Model) -> Counter[str]:
    """How often each type of node is in the plan of a model."""
    nodes = ir.compile(model, threads=1, fork=False)._planned(shapes(model)).plan.nodes  # type: ignore[union-attr]
    return Counter(node.kind for node in nodes)


def shapes(model: ir.Model) -> tuple[tuple[int, ...], ...]:
    return tuple(p.outputs[0].tensor.shape.static for p in model.parameters)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is saved."""
    module = import_module("vinoir.ir.engine.passes.convolve_first")
    monkeypatch.setattr(module, "WORTH", -(1 << 40))


def enlarged(draw: Draw, x: ir.builder.Output, height: int, width: int) -> ir.builder.Output:
    """An image of so many rows and columns made of a smaller one."""
    mode = draw.pick("nearest", "linear", "linear_onnx", "cubic")
    words = {"mode": mode, "shape_calculation_mode": "sizes", "nearest_mode": "floor"}
    words["coordinate_transformation_mode"] = draw.pick("half_pixel", "asymmetric")
    sizes, axes = draw.constant([height, width]), draw.constant([2, 3])
    if draw.chance():
        return draw.add("Interpolate", "opset11", x, sizes, axes, **words)
    scales = draw.constant(np.ones(2, "f4"))
    return draw.add("Interpolate", "opset4", x, sizes, scales, axes, **words)


def multiplied(draw: Draw, x: ir.builder.Output, outputs: int) -> ir.builder.Output:
    weights = draw.constant(draw.array(outputs, draw.sizes(x)[1], 1, 1))
    return draw.add("Convolution", "opset1", x, weights, **windows(2))


def convolved(draw: Draw) -> None:
    """1x1 convolutions of images of several sizes, side by side."""
    images, height, width = draw.number(1, 2), draw.number(4, 9), draw.number(4, 9)
    parts = []
    for number in range(draw.number(1, 4)):
        small = number == 0 or draw.chance()
        rows, columns = (draw.number(1, 4), draw.number(1, 4)) if small else (height, width)
        x = draw.input(images, draw.number(1, 6), rows, columns)
        if draw.chance(0.3):
            x = draw.add("ReLU", "opset1", x)
        parts.append(enlarged(draw, x, height, width) if small or draw.chance() else x)
    if draw.chance():
        parts.reverse()
    x = draw.add("Concat", "opset1", *parts, axis=1)
    draw.check(*(
        draw.surrounded(multiplied(draw, x, draw.number(1, 7))) for _ in range(draw.number(1, 2))
    ))  # fmt: skip


def decoded(draw: Draw) -> None:
    """Rows that become images, of which a convolution joins the channels."""
    parts = []
    height, width, channels = draw.number(2, 6), draw.number(2, 6), draw.number(4, 9)
    for scale in range(draw.number(1, 3)):
        rows, columns = max(1, height >> scale), max(1, width >> scale)
        x = draw.input(1, rows * columns, draw.number(1, 9))
        deep, turned = draw.sizes(x)[2], draw.chance()
        weights = draw.array(channels, deep) if turned else draw.array(deep, channels)
        x = draw.add("MatMul", "opset1", x, draw.constant(weights), transpose_b=turned)
        if draw.chance(0.8):
            bias = draw.array(*draw.pick((1, 1, channels), (channels,), (1,)))
            x = draw.add("Add", "opset1", x, draw.constant(bias))
        x = draw.add("Transpose", "opset1", x, draw.constant([0, 2, 1]))
        pattern = draw.constant([1, channels, rows, columns])
        x = draw.add("Reshape", "opset1", x, pattern, special_zero=False)
        parts.append(enlarged(draw, x, height, width))
    joined = draw.add("Concat", "opset1", *parts, axis=1) if len(parts) > 1 else parts[0]
    draw.check(draw.surrounded(multiplied(draw, joined, draw.number(1, 4))))


def attended(draw: Draw) -> None:
    """Samples of images of several sizes, weighted and summed up."""
    images, channels = draw.number(1, 3), draw.pick(1, 3, 8)
    sums, stacked = draw.number(1, 12), draw.chance()
    same, samples = draw.number(1, 4), []
    words = {"mode": draw.pick("bilinear", "nearest", "bicubic"), "align_corners": draw.chance()}
    words["padding_mode"] = draw.pick("zeros", "border")
    for _ in range(draw.number(1, 3)):
        points = same if stacked else draw.number(1, 4)
        x = draw.input(images, channels, draw.number(2, 6), draw.number(2, 6))
        grid = draw.input(images, sums, points, 2)
        one = draw.add("GridSample", "opset9", x, grid, **words)
        if stacked:
            one = draw.add("Unsqueeze", "opset1", one, draw.constant([-2]))
        samples.append(one)
    y = draw.add("Concat", "opset1", *samples, axis=-2 if stacked else -1)
    terms = draw.sizes(y)[-1]
    if stacked:
        terms *= len(samples)
        pattern = draw.constant([images, channels, sums, terms])
        y = draw.add("Reshape", "opset1", y, pattern, special_zero=False)
    if draw.chance():
        rows = draw.input(images, sums, 1, terms)
        weights = draw.add("Transpose", "opset1", rows, draw.constant([0, 2, 1, 3]))
        weights = draw.add("SoftMax", "opset8", weights, axis=-1)
    else:
        weights = draw.constant(draw.array(images, 1, sums, terms))
    pair = draw.pick((y, weights), (weights, y))
    y = draw.add("Multiply", "opset1", *pair)
    keep = draw.chance(0.2)
    y = draw.add("ReduceSum", "opset1", y, draw.constant([-1]), keep_dims=keep)
    draw.check(draw.surrounded(y))


def shown(draw: Draw) -> None:
    """Images that are made larger for nobody but the caller, or for what wants them in order."""
    x = draw.image(2, draw.pick(1, 3, 21))
    y = enlarged(draw, x, draw.number(9, 30), draw.number(9, 30))
    if draw.chance(0.3):
        y = draw.add("SoftMax", "opset8", y, axis=draw.pick(1, -1))
    if draw.chance(0.3):
        y = draw.add("Add", "opset1", y, draw.input(*draw.sizes(y)))
    draw.check(y)


def split(draw: Draw) -> None:
    """Parts of an image that come together again, with what is made of one of them."""
    channels = [draw.number(1, 4) for _ in range(draw.number(1, 3))]
    x = draw.surrounded(draw.image(2, sum(channels)))
    axis, lengths = draw.constant(np.int64(draw.pick(1, -3))), draw.constant(channels)
    outputs = draw.add("VariadicSplit", "opset1", x, axis, lengths)
    parts = [outputs[n] for n in range(len(channels))] if len(channels) > 1 else [outputs]
    weights = draw.constant(draw.array(3, channels[-1], 3, 3))
    ones = dict.fromkeys(("pads_begin", "pads_end"), (1, 1))
    made = draw.surrounded(
        draw.add("Convolution", "opset1", parts[-1], weights, **windows(2) | ones)
    )
    if draw.chance(0.2):
        parts.reverse()
    if draw.chance(0.2):
        parts.pop()
    together = [*parts, made] if draw.chance() else [made, *parts, *parts]
    y = draw.add("Concat", "opset1", *together, axis=draw.pick(1, -3))
    results = [draw.surrounded(y)]
    if draw.chance(0.3):
        results.append(draw.add("ReLU", "opset1", x))
    if draw.chance(0.3):
        results.append(draw.add("MaxPool", "opset1", x, kernel=(2, 2), strides=(1, 1),
                                pads_begin=(0, 0), pads_end=(0, 0)))  # fmt: skip
    draw.check(*results)


def summed(draw: Draw) -> None:
    """Sums of products over named axes, in whatever order they are."""
    sizes = {label: draw.number(1, 5) for label in "abcdef"}
    shared, rows, columns, joined = (
        list(group[: draw.number(0, len(group))]) for group in ("a", "bc", "de", "f")
    )
    terms = [[*shared, *rows, *joined], [*shared, *columns, *joined], [*shared, *rows, *columns]]
    for term in terms:
        draw.rng.shuffle(term)
    if draw.chance(0.1) and len(terms[2]) > 1:
        terms[2].pop()  # an axis that one has alone is summed over
    given = [[sizes[label] for label in term] for term in terms[:2]]
    one, other = (
        draw.input(*shape) if shape and draw.chance(0.7) else draw.constant(draw.array(*shape))
        for shape in given
    )
    if not any(given):
        one = draw.input()
    equation = ",".join(map("".join, terms[:2])) + "->" + "".join(terms[2])
    y = draw.add("Einsum", "opset7", one, other, equation=equation)
    draw.check(draw.surrounded(y) if terms[2] else y)


def changed(draw: Draw, x: ir.builder.Output) -> ir.builder.Output:
    """Each number by itself."""
    kind = draw.pick("Gelu", "Swish", "ReLU", "PReLU", "Clamp", "Tanh", "FakeQuantize")
    number = draw.constant(np.float32(0.25))
    if kind == "Gelu":
        return draw.add(kind, "opset7", x)
    if kind == "Swish":
        return draw.add(kind, "opset4", x, *([number] if draw.chance() else []))
    if kind == "PReLU":
        return draw.add(kind, "opset1", x, draw.constant(np.array([0.25], "f4")))
    if kind == "Clamp":
        return draw.add(kind, "opset1", x, min=-0.5, max=0.75)
    if kind == "FakeQuantize":
        shape = [1] * draw.number(0, len(draw.sizes(x)))
        ends = [draw.constant(np.full(shape, end, "f4")) for end in (-0.7, 0.9, -0.7, 0.9)]
        return draw.add(kind, "opset1", x, *ends, levels=17)
    return draw.add(kind, "opset1", x)


def moved(draw: Draw) -> None:
    """What a product, a convolution or a sum makes is moved, and then changed number by number."""
    kind = draw.pick("MatMul", "Convolution", "GroupConvolution", "Add")
    images, channels, height, width = (draw.number(1, 6) for _ in range(4))
    x = draw.input(images, channels, height, width)
    if kind == "MatMul":
        x = draw.add(kind, "opset1", x, draw.constant(draw.array(width, draw.number(1, 9))))
    elif kind == "Convolution":
        x = multiplied(draw, x, draw.number(1, 9))
    elif kind == "GroupConvolution":
        taps = draw.constant(draw.array(channels, 1, 1, 3, 3))
        x = draw.add(kind, "opset1", x, taps, **windows(2, pads_begin=(1, 1), pads_end=(1, 1)))
    if kind == "Add" or draw.chance():
        sizes = draw.sizes(x)
        x = draw.add("Add", "opset1", x, draw.constant(draw.array(1, sizes[1], 1, 1)))
    for _ in range(draw.number(1, 3)):
        sizes = draw.sizes(x)
        how = draw.pick("Reshape", "Transpose", "Unsqueeze", "Squeeze")
        if how == "Reshape":
            joined = draw.constant([*sizes[:-2], -1])
            x = draw.add(how, "opset1", x, joined, special_zero=False)
        elif how == "Transpose":
            order = list(range(len(sizes)))
            draw.rng.shuffle(order)
            x = draw.add(how, "opset1", x, draw.constant(order))
        elif how == "Unsqueeze":
            x = draw.add(how, "opset1", x, draw.constant([draw.number(0, len(sizes))]))
        elif 1 in sizes and len(sizes) > 2:
            x = draw.add(how, "opset1", x, draw.constant([sizes.index(1)]))
        if len(draw.sizes(x)) < 3:
            break
    y = changed(draw, x)
    if draw.chance():
        y = changed(draw, y)
    draw.check(*([y] if draw.chance(0.7) else [x, y]))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kernel", [convolved, decoded, attended, shown, split, summed, moved])
@pytest.mark.parametrize("seed", range(DRAWS))
def test_in_another_order_it_is_the_same(kernel: Callable[[Draw], None], seed: int) -> None:
    kernel(Draw(seed))


@pytest.mark.parametrize("read_twice", [False, True])
def test_numbers_are_changed_before_they_are_moved(read_twice: bool) -> None:
    draw = Draw(3)
    taps = draw.constant(draw.array(8, 1, 1, 3, 3))
    x = draw.add(
        "GroupConvolution",
        "opset1",
        draw.input(1, 8, 6, 6),
        taps,
        **windows(2, pads_begin=(1, 1), pads_end=(1, 1)),
    )
    flat = draw.constant([1, 8, 36])
    rows = draw.add("Reshape", "opset1", x, flat, special_zero=False)
    rows = draw.add("Transpose", "opset1", rows, draw.constant([0, 2, 1]))
    made = draw.add("Gelu", "opset7", rows)
    draw.net.result(draw.add("MatMul", "opset1", made, draw.constant(draw.array(8, 5))))
    if read_twice:
        draw.net.result(draw.add("SoftMax", "opset8", rows, axis=-1))
    assert kinds(draw.net.model())["Gelu"] == read_twice


def head(sizes: list[tuple[int, int]], outputs: int, channels: int = 64) -> ir.Model:
    """Images of several sizes made as large as the first, and a 1x1 convolution of all."""
    draw = Draw(0)
    parts = [draw.input(1, channels, *size) for size in sizes]
    parts[1:] = [enlarged(draw, x, *sizes[0]) for x in parts[1:]]
    x = draw.add("Concat", "opset1", *parts, axis=1)
    draw.net.result(draw.add("ReLU", "opset1", multiplied(draw, x, outputs)))
    return draw.net.model()


def test_small_images_are_convolved_before_they_are_enlarged() -> None:
    found = kinds(head([(40, 40), (20, 20), (10, 10)], 64, 128))
    assert found["Convolution"] == found["Interpolate"] + 1 == 3
    assert not found["Concat"]


@pytest.mark.parametrize(("size", "outputs"), [((8, 8), 64), ((40, 40), 512)])
def test_where_little_is_saved_images_stay_side_by_side(
    size: tuple[int, int], outputs: int
) -> None:
    rows, columns = size
    found = kinds(head([size, (rows - 1, columns - 1)], outputs, 16))
    assert found["Convolution"] == 1


@pytest.mark.usefixtures("always")
def test_a_product_of_rows_does_what_the_convolution_after_it_does() -> None:
    draw = Draw(1)
    x = draw.add("MatMul", "opset1", draw.input(1, 12, 5), draw.constant(draw.array(5, 7)))
    x = draw.add("Transpose", "opset1", x, draw.constant([0, 2, 1]))
    x = draw.add("Reshape", "opset1", x, draw.constant([1, 7, 3, 4]), special_zero=False)
    draw.net.result(multiplied(draw, x, 3))
    found = kinds(draw.net.model())
    assert found["MatMul"] == 1
    assert not found["Convolution"]


def test_parts_that_meet_again_were_never_apart() -> None:
    draw = Draw(5)
    x = multiplied(draw, draw.input(1, 4, 8, 8), 6)
    lengths, axis = draw.constant([2, 4]), draw.constant(np.int64(1))
    parts = draw.add("VariadicSplit", "opset1", x, axis, lengths)
    last = draw.add("ReLU", "opset1", parts[1])
    y = draw.add("Concat", "opset1", parts[0], parts[1], last, axis=1)
    draw.net.result(multiplied(draw, y, 3))
    found = kinds(draw.net.model())
    assert not found["VariadicSplit"] + found["Concat"]


def test_weighted_samples_are_never_all_there() -> None:
    draw = Draw(2)
    samples = [
        draw.add("GridSample", "opset9", draw.input(2, 8, n, n), draw.input(2, 5, 3, 2))
        for n in (2, 4)
    ]
    y = draw.add("Concat", "opset1", *samples, axis=-1)
    y = draw.add("Multiply", "opset1", y, draw.input(2, 1, 5, 6))
    draw.net.result(draw.add("ReduceSum", "opset1", y, draw.constant([3]), keep_dims=False))
    found = kinds(draw.net.model())
    assert found["GridSample"] == 2
    assert not found["Concat"] + found["Multiply"] + found["ReduceSum"]


@pytest.mark.usefixtures("always")
def test_who_else_reads_them_has_images_as_they_were() -> None:
    draw = Draw(3)
    large = enlarged(draw, draw.input(1, 4, 3, 3), 6, 6)
    x = draw.add("Concat", "opset1", large, draw.input(1, 2, 6, 6), axis=1)
    draw.check(multiplied(draw, x, 3), x, large)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_an_image_that_keeps_its_size_is_handed_on(mode: str) -> None:
    draw = Draw(4)
    x = draw.input(1, 3, 5, 5)
    words = {"mode": mode, "shape_calculation_mode": "sizes"}
    sizes, axes = draw.constant([5, 5]), draw.constant([2, 3])
    y = draw.add("Interpolate", "opset11", x, sizes, axes, **words)
    draw.check(y, draw.add("Add", "opset1", y, y))


@pytest.mark.parametrize("shape", [(2, 5, 7, 9), (1, 1, 30, 31), (3, 40, 1, 2)])
@pytest.mark.parametrize("last", [True, False])
def test_pixels_are_picked_by_several(
    shape: tuple[int, ...], last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "SMALL", 0)
    draw = Draw(3)
    x = y = draw.input(*shape)
    if last:
        y = multiplied(draw, x, shape[1])
    words = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    sizes, axes = draw.constant([11, 10]), draw.constant([2, 3])
    y = draw.add("Interpolate", "opset11", y, sizes, axes, **words)
    draw.check(multiplied(draw, y, 4) if last else y)


AXES = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@given(AXES, st.randoms(use_true_random=False), st.sampled_from([4, 64, 48 << 10]))
def test_blocks_are_all_of_an_array(sizes: list[int], random: object, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turning, "BLOCK", block)
        patch.setattr(turning, "FEWEST", 2)
        patch.setattr(turning, "LINES", 3)
        patch.setattr(turning, "NEAR", 4)
        orders = [list(range(len(sizes))) for _ in range(2)]
        for order in orders:
            random.shuffle(order)  # type: ignore[attr-defined]
        source = laid(np.arange(np.prod(sizes), dtype="f4").reshape(sizes), orders[0])
        if random.random() < 0.3:  # type: ignore[attr-defined]
            source = np.broadcast_to(source[:1], source.shape)
        target = laid(np.full(sizes, -1, "f4"), orders[1])
        times = laid(np.zeros(sizes, "f4"), orders[1])
        for one, other in zip(in_blocks(source, target), in_blocks(source, times), strict=True):
            np.copyto(one[1], one[0])
            np.add(other[1], 1, other[1])
        np.testing.assert_array_equal(target, source)
        np.testing.assert_array_equal(times, 1)
        copied = straight_copy(source)
        assert copied.flags.c_contiguous
        assert not np.may_share_memory(copied, source)
        np.testing.assert_array_equal(copied, source)


def laid(array: Array, order: list[int]) -> Array:
    """The same numbers, with the axes in memory in an order."""
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


@pytest.mark.parametrize(
    ("shape", "order"),
    [((2, 50, 70, 90), (0, 3, 1, 2)), ((2, 90, 50, 70), (0, 2, 3, 1)), ((1, 40, 2000), (0, 2, 1)),
     ((3, 200, 200), (2, 1, 0)), ((1, 3, 300, 300), (0, 2, 3, 1))],
)  # fmt: skip
def test_large_arrays_are_turned(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).random(shape, "f4").transpose(order)
    np.testing.assert_array_equal(straight_copy(array), array)


def test_texts_are_copied_as_they_are() -> None:
    texts = np.array([["a", "b"], ["c", "d"]], object).T
    np.testing.assert_array_equal(straight_copy(texts), texts)


@given(seed=st.integers(0, 10_000), byte=st.booleans(), channels=st.sampled_from([1, 3, 26, 200]))
def test_short_runs_are_copied_as_they_are(seed: int, byte: bool, channels: int) -> None:
    rng = np.random.default_rng(seed)
    kind = np.int8 if byte else np.float32
    shape = (*rng.integers(1, 5, 3), channels)
    rooms = [rng.integers(-99, 99, (*shape[:3], channels + 5)).astype(kind) for _ in range(2)]
    begins = rng.integers(0, 6, 2)
    source, target = (
        room[..., begin : begin + channels] for room, begin in zip(rooms, begins, strict=True)
    )
    if seed % 2:
        source, target = np.moveaxis(source, -1, 1), np.moveaxis(target, -1, 1)
    if seed % 3 == 0:
        source = np.ascontiguousarray(source)
    wanted = rooms[1].copy()
    np.copyto(wanted[..., begins[1] : begins[1] + channels], source.reshape(target.shape)
              if not seed % 2 else np.moveaxis(source, 1, -1))  # fmt: skip
    given, into = in_runs(source, target)
    np.copyto(into, given)
    np.testing.assert_array_equal(rooms[1], wanted)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_what_is_joined_again_and_again_is_joined_once(
    pooled: bool, shown: bool, before: bool
) -> None:
    """As in dense blocks: each convolution reads all that those before it made."""
    draw = Draw(7)
    x = draw.input(2, 5, 9, 8)

    def convolution(y: ir.builder.Output, inner: int) -> ir.builder.Output:
        weights = draw.constant(draw.array(8, inner, 1, 1) / inner)
        return draw.add("Convolution", "opset1", y, weights, **windows(2))

    parts = [convolution(x, 5)]
    seen = []
    for _ in range(4):
        both = draw.add("Concat", "opset1", *parts, axis=1) if len(parts) > 1 else parts[0]
        seen.append(both)
        made = convolution(draw.add("ReLU", "opset1", both), 8 * len(parts))
        parts = [made, *parts] if before else [*parts, made]
    last = draw.add("Concat", "opset1", *parts, axis=1)
    if pooled:
        seen[2] = draw.add("MaxPool", "opset1", seen[2], strides=[1, 1], kernel=[2, 2],
                           pads_begin=[0, 0], pads_end=[0, 0])  # fmt: skip
    results = [draw.add("ReLU", "opset1", last), *([seen[2]] if pooled or shown else [])]
    for result in results:
        draw.net.result(result)
    model = draw.net.model()
    # Of those that somebody pools, or that go out, there is a copy.
    assert kinds(model)["Concat"] == int(pooled or shown)
    array = draw.rng.standard_normal((2, 5, 9, 8)).astype("f4")
    wanted = list(ir.run(model, [array]).values())
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)([array]).values()
        for value, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(value, right, atol=1e-5 * float(abs(right).max()))


@pytest.mark.parametrize("read", [False, True])
def test_a_scale_that_others_read_is_part_of_branches(read: bool) -> None:
    """A mixer less the norm of what it takes, times a factor, and that again: one convolution."""
    net, rng = ir.Builder(), np.random.default_rng(4)
    x = net.parameter("x", "f32", (1, 6, 9, 9))
    factor, shift, last = (net.constant(numbers(rng, 1, 6, 1, 1)) for _ in range(3))
    norm = net.add("Multiply", "opset1", [x, factor])
    norm = net.add("Add", "opset1", [norm, shift])
    sides = net.constant(numbers(rng, 6, 1, 1, 3, 3))
    ways = windows(2, pads_begin=[1, 1], pads_end=[1, 1])
    mixed = net.add("GroupConvolution", "opset1", [x, sides], **ways)
    mixed = net.add("Add", "opset1", [mixed, norm])
    less = net.add("Subtract", "opset1", [mixed, norm])
    found = net.add("Add", "opset1", [x, net.add("Multiply", "opset1", [less, last])])
    net.result(found, name="y")
    if read:
        net.result(net.add("Exp", "opset1", [norm]), name="z")
    model, given = net.model(), numbers(rng, 1, 6, 9, 9)
    left = kinds(model)
    assert left["GroupConvolution"] == 1
    assert left["Multiply"] == read
    assert not left["Subtract"]
    for name, wanted in ir.run(model, [given]).items():
        np.testing.assert_allclose(ir.compile(model)([given])[name], wanted, atol=1e-5)


def numbers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "before", "after"),
    [((3, 1, 383, 1, 1), (256, 1, 1), (1, 1, 1), (0, 0, 0), (0, 0, 0)),
     ((2, 5, 20, 7, 9), (4, 3, 2), (1, 1, 1), (2, 1, 0), (1, 1, 1)),
     ((1, 33, 19, 8, 6), (7, 2, 5), (3, 2, 1), (0, 0, 2), (4, 1, 2)),
     ((1, 4, 40, 5, 5), (9, 5, 5), (2, 3, 4), (5, 2, 3), (5, 2, 3))],
)  # fmt: skip
def test_windows_that_reach_over_many_images(
    kind: str,
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    whole: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume_pooling.Window, "is_sooner_whole", lambda *_: whole)
    net, rng = ir.Builder(), np.random.default_rng(6)
    x = net.parameter("x", "f32", shape)
    words: dict[str, object] = {"kernel": kernel, "strides": strides}
    words |= {"pads_begin": before, "pads_end": after, "rounding_type": "floor"}
    if kind == "AvgPool":
        words["exclude-pad"] = True
    y = net.add("ReLU", "opset1", [net.add(kind, "opset1", [x], **words)])
    other = net.constant(numbers(rng, 1, shape[1], 1, 1, 1))
    net.result(net.add("Multiply", "opset1", [y, other]), name="y")
    model, given = net.model(), numbers(rng, *shape)
    wanted = ir.run(model, [given])["y"]
    found = [ir.compile(model, threads=threads)([given])["y"] for threads in (1, 2)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6, strict=True)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("shape", "taken", "stops", "whole"),
    [((64, 383, 1, 1, 1), 256, 128, True), ((1, 500, 7, 7, 8), 64, 437, True),
     ((1, 32, 32, 32, 32), 5, 32, False), ((1, 16, 28, 28, 64), 4, 9, False),
     ((3, 8, 14, 14, 128), 7, 8, False), ((1, 64, 1, 1, 1), 1, 64, False)],
)  # fmt: skip
def test_many_small_images_are_joined_once(
    shape: tuple[int, ...], taken: int, stops: int, whole: bool
) -> None:
    window = volume_pooling.Window((taken, 1, 1), (1, 1, 1), [(0, 0)] * 3, np.add)
    assert window.is_sooner_whole(shape, stops, 2) is whole


@given(st.data())
def test_what_can_be_seen_in_another_shape_is_known_beforehand(data: st.DataObject) -> None:
    """Axes in any order, backwards, cut, repeated; NumPy copies the rest."""
    sizes = data.draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=5))
    array = np.empty(sizes, "f4").transpose(data.draw(st.permutations(range(len(sizes)))))
    cut = (slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2), None)
    array = array[tuple(data.draw(st.sampled_from(cut)) for _ in range(array.ndim))]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array[..., None], (*array.shape, data.draw(st.integers(1, 3))))
    split = [one for size in array.shape for one in ((size,) if size % 2 else (size // 2, 2))]
    for shape in (split, data.draw(st.permutations(array.shape)), (array.size,)):
        if np.prod(shape, dtype=int) == array.size:
            seen = array.size == 0 or np.may_share_memory(array.reshape(shape), array)
            assert lies_in(array, tuple(shape)) == seen
