"""What frontends write out in many nodes, in few: norms, Gelu, cut images, rows put one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_kernels import DRAWS, Draw, windows
from test_program_rearranged import kinds
from vinoir import ir
from vinoir.ir.engine import kept_plans
from vinoir.ir.engine.plan import unrolling
from vinoir.schemas import Array, ElementType, Tensor

Output: TypeAlias = ir.Output


def either(draw: Draw, kind: str, one: Output, other: Output) -> Output:
    """Two operands in either order."""
    return draw.add(kind, "opset1", *draw.pick((one, other), (other, one)))


def number(draw: Draw, value: float, rank: int = 0) -> Output:
    return draw.constant(np.full((1,) * rank, value, "f4"))


def averaged(draw: Draw, x: Output, axes: Sequence[int], *, wrong: float = 1.0) -> Output:
    """The mean along axes, which stay: as such, or as a sum that is put back and divided."""
    named = draw.constant(np.array(axes))
    if draw.chance() and wrong == 1:
        return draw.add("ReduceMean", "opset1", x, named, keep_dims=True)
    keeps = draw.chance()
    total = draw.add("ReduceSum", "opset1", x, named, keep_dims=keeps)
    shape = draw.sizes(x)
    if not keeps:
        kept = draw.constant([1 if axis in axes else n for axis, n in enumerate(shape)])
        total = draw.add("Reshape", "opset1", total, kept, special_zero=False)
    count = wrong * np.prod([shape[axis] for axis in axes])
    if draw.chance():
        return draw.add("Divide", "opset1", total, number(draw, count))
    return either(draw, "Multiply", total, number(draw, 1 / count))


def inverse(
    draw: Draw, x: Output, mean: Output, axes: Sequence[int], wrong: float = 1.0
) -> Output:
    """One over the root of the variance and a little more."""
    way = draw.number(0, 2)
    if way == 0:
        squares = either(draw, "SquaredDifference", x, mean)
    else:
        apart = draw.add("Subtract", "opset1", x, mean)
        two = number(draw, 2.0)
        squares = (
            draw.add("Multiply", "opset1", apart, apart) if way == 1
            else draw.add("Power", "opset1", apart, two)
        )  # fmt: skip
    variance = averaged(draw, squares, axes, wrong=wrong)
    more = either(draw, "Add", variance, number(draw, 1e-3))
    if draw.chance():
        return draw.add("Power", "opset1", more, number(draw, -0.5))
    root = draw.add("Sqrt", "opset1", more)
    return draw.add("Divide", "opset1", number(draw, 1.0), root)


def norm(draw: Draw, way: str, axes: Sequence[int]) -> Output:
    """A norm of an input, written out in some way."""
    x = draw.image(2) if draw.chance() else draw.input(2, 3, 5, 4)
    mean = averaged(draw, x, axes)
    scale = inverse(draw, x, mean, axes)
    shape = [size if axis in axes else 1 for axis, size in enumerate(draw.sizes(x))]
    if draw.chance(0.7):
        scale = either(draw, "Multiply", scale, draw.constant(draw.array(*shape)))
    if way == "first":
        y = either(draw, "Multiply", draw.add("Subtract", "opset1", x, mean), scale)
    elif way == "last":
        more = draw.constant(draw.array(*shape))
        less = draw.add("Subtract", "opset1", more, either(draw, "Multiply", mean, scale))
        y = either(draw, "Add", either(draw, "Multiply", x, scale), less)
    elif way == "negative":
        turned = either(draw, "Multiply", mean, number(draw, -1.0, 4))
        less = either(draw, "Multiply", turned, scale)
        y = either(draw, "Add", either(draw, "Multiply", x, scale), less)
    else:
        less = either(draw, "Multiply", mean, scale)
        y = draw.add("Subtract", "opset1", either(draw, "Multiply", x, scale), less)
    return y


@pytest.mark.parametrize("axes", [[1], [3], [2, 3], [1, 2, 3]])
@pytest.mark.parametrize("way", ["first", "last", "negative", "apart"])
@pytest.mark.parametrize("seed", range(4))
def test_a_norm_written_out_is_one_node(way: str, axes: list[int], seed: int) -> None:
    draw = Draw(seed)
    y = norm(draw, way, axes)
    draw.check(draw.surrounded(y))
    assert kinds(draw.net.model())["MVN"] == 1


def root_mean_square(draw: Draw, way: str, axes: Sequence[int]) -> Output:
    """A value over the root of the mean of its squares, times what norms are multiplied by."""
    x = draw.image(2) if draw.chance() else draw.input(2, 3, 5, 4)
    squares = (
        draw.add("Multiply", "opset1", x, x) if draw.chance()
        else draw.add("Power", "opset1", x, number(draw, 2.0))
    )  # fmt: skip
    more = either(draw, "Add", averaged(draw, squares, axes), number(draw, 1e-3))
    if way == "over":
        y = draw.add("Divide", "opset1", x, draw.add("Sqrt", "opset1", more))
    else:
        root = draw.add("Sqrt", "opset1", more)
        y = either(draw, "Multiply", x, (
            draw.add("Power", "opset1", more, number(draw, -0.5)) if way == "power"
            else draw.add("Divide", "opset1", number(draw, 1.0), root)
        ))  # fmt: skip
    scale = draw.pick("none", "number", "constant", "computed", "twice")
    if scale == "number":
        return either(draw, "Multiply", y, number(draw, -1.5))
    if scale == "computed":
        return either(draw, "Multiply", y, draw.add("Tanh", "opset1", x))
    for _ in range({"none": 0, "constant": 1, "twice": 2}[scale]):
        y = either(draw, "Multiply", y, draw.constant(draw.array(draw.sizes(x)[-1])))
    return y


@pytest.mark.parametrize("axes", [[1], [3], [2, 3], [1, 2, 3]])
@pytest.mark.parametrize("way", ["over", "power", "times"])
@pytest.mark.parametrize("seed", range(4))
def test_a_root_mean_square_written_out_is_one_node(way: str, axes: list[int], seed: int) -> None:
    draw = Draw(seed)
    y = root_mean_square(draw, way, axes)
    draw.check(draw.surrounded(y))
    assert kinds(draw.net.model())["NormalizeL2"] == 1


def spoilt(draw: Draw, way: str) -> Output:
    """What looks like a norm, and is none."""
    x = draw.input(2, 3, 5, 4)
    mean = averaged(draw, x, [3])
    scale = inverse(draw, x, mean, [3], wrong=2.0 if way == "other size" else 1.0)
    if way == "other size":
        return draw.add("Multiply", "opset1", draw.add("Subtract", "opset1", x, mean), scale)
    if way == "added":
        total = draw.add("Add", "opset1", draw.add("Multiply", "opset1", mean, scale), mean)
        return draw.add("Add", "opset1", draw.add("Multiply", "opset1", x, scale), total)
    if way == "other mean":
        other = draw.add("ReduceMean", "opset1", x, draw.constant([2]), keep_dims=True)
        return draw.add("Multiply", "opset1", draw.add("Subtract", "opset1", x, other), scale)
    if way == "other scale":
        twice = draw.add("Multiply", "opset1", scale, number(draw, 2.0))
        less = draw.add("Multiply", "opset1", mean, twice)
        return draw.add("Subtract", "opset1", draw.add("Multiply", "opset1", x, scale), less)
    # What is left of a difference would have the other sign.
    rest = draw.add("Multiply", "opset1", mean, scale)
    rest = draw.add("Add", "opset1", rest, draw.constant(draw.array(4)))
    return draw.add("Subtract", "opset1", draw.add("Multiply", "opset1", x, scale), rest)


@pytest.mark.parametrize("way", ["added", "other mean", "other scale", "other size", "sign"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_no_norm_stays_as_it_is(way: str, seed: int) -> None:
    draw = Draw(seed)
    draw.check(spoilt(draw, way))
    assert not kinds(draw.net.model())["MVN"]


def gelu(draw: Draw, x: Output, kind: str, half: float = 0.5, within: float = 1.0) -> Output:
    """A Gelu written out: the half anywhere, the curve of x or of -x."""
    sign = draw.pick(1.0, -1.0)
    if kind == "Erf":
        root = within * sign * np.sqrt(0.5)
        inner = (
            either(draw, "Multiply", x, number(draw, root)) if draw.chance()
            else draw.add("Divide", "opset1", x, number(draw, 1 / root))
        )  # fmt: skip
    else:
        cube = draw.add("Power", "opset1", x, number(draw, 3.0))
        if draw.chance():
            square = draw.add("Multiply", "opset1", x, x)
            cube = either(draw, "Multiply", square, x)
        inner = either(draw, "Add", x, either(draw, "Multiply", cube, number(draw, 0.044715)))
        inner = either(draw, "Multiply", inner, number(draw, within * sign * np.sqrt(2 / np.pi)))
    curve = draw.add(kind, "opset1", inner)
    one = number(draw, 1.0)
    if sign > 0:
        gate = either(draw, "Add", curve, one)
    else:
        gate = draw.add("Subtract", "opset1", one, curve)
    place = draw.number(0, 2)
    if place == 0:
        gate = either(draw, "Multiply", gate, number(draw, half))
    y = either(draw, "Multiply", either(draw, "Multiply", x, number(draw, half)), gate)
    if place != 1:
        y = either(draw, "Multiply", x, gate)
    return either(draw, "Multiply", y, number(draw, half)) if place == 2 else y


@pytest.mark.parametrize("kind", ["Erf", "Tanh"])
@pytest.mark.parametrize("seed", range(8))
def test_a_gelu_written_out_is_one_node(kind: str, seed: int) -> None:
    draw = Draw(seed)
    draw.check(draw.surrounded(gelu(draw, draw.image(draw.number(1, 2)), kind)))
    found = kinds(draw.net.model())
    assert not found[kind] or kind == "Tanh"


@pytest.mark.parametrize("kind", ["Erf", "Tanh"])
@pytest.mark.parametrize(("half", "within"), [(0.25, 1.0), (0.5, 1.1), (0.5, 2.0)])
def test_what_is_no_gelu_stays_as_it_is(kind: str, half: float, within: float) -> None:
    draw = Draw(1)
    draw.check(gelu(draw, draw.input(2, 3, 4), kind, half, within))
    found = kinds(draw.net.model())
    assert found["Gelu"] == 0


@pytest.mark.parametrize("spoilt", ["", "other axis", "other sum", "no maximum"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_soft_maximum_written_out_is_one_node(spoilt: str, axis: int, keeps: bool) -> None:
    draw = Draw(axis)
    x = draw.input(3, 3, 3)

    def reduced(kind: str, of: Output, along: int) -> Output:
        made = draw.add(kind, "opset1", of, draw.constant([along]), keep_dims=keeps)
        return made if keeps else draw.add("Unsqueeze", "opset1", made, draw.constant([along]))

    most = reduced("ReduceMax", x, (axis + (spoilt == "other axis")) % 3)
    if spoilt == "no maximum":
        most = reduced("ReduceMin", x, axis)
    powers = draw.add("Exp", "opset1", draw.add("Subtract", "opset1", x, most))
    whole = reduced("ReduceSum", powers, (axis + (spoilt == "other sum")) % 3)
    draw.check(draw.surrounded(draw.add("Divide", "opset1", powers, whole)))
    assert kinds(draw.net.model())["SoftMax"] == (not spoilt)


def dilated(draw: Draw) -> tuple[Output, bool]:
    """Images that are dealt out to batches and convolved; whether they may stay whole."""
    axes = draw.number(1, 2)
    blocks = [draw.number(1, 3) for _ in range(axes)]
    window, gap = [draw.number(1, 3) for _ in blocks], draw.number(1, 2)
    cut = [draw.number(5, 7) for _ in blocks]  # of each part of an image
    begins = [draw.number(0, 4) for _ in blocks]
    ends = [draw.number(0, 3) for _ in blocks]
    sizes = [
        part * block - begin - end
        for part, block, begin, end in zip(cut, blocks, begins, ends, strict=True)
    ]
    sizes = [max(size, 1) for size in sizes]
    ends = [
        part * block - begin - size
        for part, block, begin, size in zip(cut, blocks, begins, sizes, strict=True)
    ]
    if min(ends) < 0:
        begins = [begin + min(0, end) for begin, end in zip(begins, ends, strict=True)]
        ends = [max(0, end) for end in ends]
    channels, made = draw.number(1, 4), draw.number(1, 4)
    x = draw.input(draw.number(1, 2), channels, *sizes)
    words = [[1, 1, *blocks], [0, 0, *begins], [0, 0, *ends]]
    y = draw.add("SpaceToBatch", "opset2", x, *map(draw.constant, words))
    flat = axes == 1 and draw.chance()
    if flat:  # rows as images of one line
        y = draw.add("Unsqueeze", "opset1", y, draw.constant([2]))
        window = [1, *window]
    grouped = draw.chance(0.3)
    made = channels if grouped else made
    each = (channels, 1, 1) if grouped else (made, channels)
    weights = draw.constant(draw.array(*each, *window))
    gaps = {"dilations": (1, gap) if flat else (gap,) * axes}
    pads = draw.number(0, 1)
    around = (0, pads) if flat else (pads,) * axes
    words_of = windows(len(window)) | gaps | {"pads_begin": around, "pads_end": around}
    kind = "GroupConvolution" if grouped else "Convolution"
    y = draw.add(kind, "opset1", y, weights, **words_of)
    if draw.chance():
        bias = draw.array(1, made, *[1] * len(window))
        y = draw.add("Add", "opset1", y, draw.constant(bias))
    if flat:
        y = draw.add("Squeeze", "opset1", y, draw.constant([2]))
    if draw.chance():
        y = draw.add("ReLU", "opset1", y)
    long = min(draw.sizes(y)[2:]) > 1
    rows = [size * block for size, block in zip(draw.sizes(y)[2:], blocks, strict=True)]
    crops = [[draw.number(0, min(3, size - 1)) for size in rows], [0] * axes]
    if draw.chance():
        crops.reverse()
    y = draw.add(
        "BatchToSpace", "opset2", y, draw.constant([1, 1, *blocks]),
        *(draw.constant([0, 0, *crop]) for crop in crops),
    )  # fmt: skip
    around_all = [block * pads for block in blocks]
    inside = all(
        begin + pad >= low and end + pad >= high
        for begin, end, pad, low, high in zip(begins, ends, around_all, *crops, strict=True)
    )
    return y, inside and (not flat or long)


@pytest.mark.parametrize("seed", range(4 * DRAWS))
def test_images_cut_into_batches_stay_whole(seed: int) -> None:
    draw = Draw(seed)
    y, may = dilated(draw)
    draw.check(draw.surrounded(y))
    layers = [node.op.xml_type for node in planned(draw.net.model())]
    assert not may or "BatchToSpace" not in layers


def planned(model: ir.Model) -> list[Any]:
    """The nodes of the plan of a model whose shapes are known."""
    (plan,) = ir.compile(model, threads=1, fork=False)._plans.values()
    assert plan is not None
    return plan.plan.nodes


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axes", [[0, 2], [1, 4], [0, 2, 4], [1, 2, 4], [-1, -3], [0, 1]])
@pytest.mark.parametrize("keep", [True, False])
def test_what_joins_along_axes_apart(kind: str, axes: list[int], keep: bool) -> None:
    draw = Draw(len(axes))
    x = draw.input(3, 4, 1, 5, 6)
    draw.check(draw.add(kind, "opset1", x, draw.constant(axes), keep_dims=keep))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4),
    st.integers(0, 2),
)
def test_tiles_of_any_sizes(axes: list[tuple[int, int]], more: int) -> None:
    draw = Draw(more)
    x = draw.input(*(size for size, _ in axes))
    repeats = [*[2] * more, *(count for _, count in axes)]
    y = draw.add("Tile", "opset1", x, draw.constant(repeats))
    draw.check(draw.add("ReLU", "opset1", y))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(
    "between", ["nothing", "Reshape", "Transpose", "MaxPool", "Concat", "ReLU"]
)
def test_what_is_rounded_is_not_rounded_again(same: bool, between: str) -> None:
    draw = Draw(0)

    def rounded(x: Output, high: float) -> Output:
        limits = [number(draw, value) for value in (-1.5, high, -1.5, high)]
        return draw.add("FakeQuantize", "opset1", x, *limits, levels=256)

    x = rounded(draw.input(1, 4, 6, 6), 1.25)
    if between == "Reshape":
        x = draw.add(between, "opset1", x, draw.constant([1, 8, 3, 6]), special_zero=False)
    elif between == "Transpose":
        x = draw.add(between, "opset1", x, draw.constant([0, 2, 1, 3]))
    elif between == "MaxPool":
        around = {"pads_begin": (0, 0), "pads_end": (0, 0)}
        x = draw.add(between, "opset1", x, kernel=(2, 2), strides=(2, 2), **around)
    elif between == "Concat":
        x = draw.add(between, "opset1", x, rounded(draw.input(1, 2, 6, 6), 1.25), axis=1)
    elif between == "ReLU":  # which leaves levels levels, but is not looked through
        x = draw.add(between, "opset1", x)
    y = rounded(x, 1.25 if same else 1.75)
    y = draw.add("Add", "opset1", y, draw.input(*draw.sizes(y)))
    draw.check(y)
    steps = [
        op.xml_type
        for node in planned(draw.net.model())
        for op in (node.op, *(step for step, _ in node.epilogue))
    ]
    alone = 2 if between == "Concat" else 1
    dropped = same and between != "ReLU"
    assert steps.count("FakeQuantize") == (alone if dropped else alone + 1)


def loop(
    turns: int,
    *,
    kind: str = "cell",
    trip: bool = False,
    dynamic: bool = False,
    wide: int = 4,
) -> ir.Model:
    """A Loop as TensorFlow writes recurrent layers: rows chosen and put by number."""
    net = ir.Builder()
    rng = np.random.default_rng(turns)
    x = net.parameter("x", "f32", ("?" if dynamic else turns, 2, wide))
    start = net.constant(rng.standard_normal((2, wide)).astype("f4"))
    room = net.constant(np.zeros((turns, 2, wide), "f4"))
    zero, yes = net.constant(np.int32(0)), net.constant(np.array(True))
    most = net.constant(np.int32(turns if trip else -1))
    f32, i32 = ElementType("f32"), ElementType("i32")
    shapes = [Tensor(f32, (turns, 2, wide)), Tensor(f32, (2, wide)), Tensor(i32, ())]
    made = net.add("Loop", "opset5", [most, yes, zero, room, start, x], outputs=shapes)
    body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
    t = body.parameter("t", "i32", ())
    held = body.parameter("room", "f32", (turns, 2, wide))
    h = body.parameter("h", "f32", (2, wide))
    rows = body.parameter("rows", "f32", ("?" if dynamic else turns, 2, wide))
    one, axis = body.constant(np.int32(1)), body.constant(np.int32(0))
    row = body.add("Gather", "opset8", [rows, t, axis])
    weights = body.constant(rng.standard_normal((wide, wide)).astype("f4") / wide)
    fed = body.add("MatMul", "opset1", [h, weights])
    after = body.add("Tanh", "opset1", [body.add("Add", "opset1", [row, fed])])
    later = body.add("Add", "opset1", [t, one])
    at = body.add("Reshape", "opset1", [t, body.constant(np.array([-1]))], special_zero=True)
    lone = body.add("Unsqueeze", "opset1", [after, axis])
    if kind == "scattered":
        put = body.add("ScatterUpdate", "opset3", [held, at, lone, axis])
    else:
        words = [body.constant(np.array([n], "i4")) for n in (0, 1, turns)]
        end = body.add("Unsqueeze", "opset1", [later, axis])
        head = body.add("Slice", "opset8", [held, words[0], at, words[1], words[0]])
        tail = body.add("Slice", "opset8", [held, end, words[2], words[1], words[0]])
        put = body.add("Concat", "opset1", [head, lone, tail], axis=0)
    limit = body.constant(np.int32(turns))
    goes = body.constant(np.array(True)) if trip else body.add("Less", "opset1", [later, limit])
    results = [
        body.result(value, name=f"r{n}") for n, value in enumerate((put, after, later, goes))
    ]
    ends = [layer.id for layer in results]
    begins = [p.id for p in (held.layer, h.layer, t.layer, rows.layer)]
    for port, place in zip((3, 4, 2, 5), begins, strict=True):
        wiring.add("input", external_port_id=port, internal_layer_id=place)
    for port, place in enumerate(ends[:3]):
        wiring.add("output", external_port_id=port, internal_layer_id=place)
    wiring.add(
        "output", external_port_id=-1, internal_layer_id=ends[3], purpose="execution_condition"
    )
    made.layer.add_body("body", body.graph, wiring)
    back = zip(ends[:3], begins[:3], strict=True)
    made.layer.back_edges = [ir.BackEdge(end, begin) for end, begin in back]
    for place in range(3):
        net.result(made[place], name=f"y{place}")
    return net.model()


def assert_same(program: ir.Program, model: ir.Model, inputs: list[Array]) -> None:
    wanted = ir.run(model, inputs)
    for name, found in program(inputs).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("trip", [True, False])
@pytest.mark.parametrize("kind", ["cell", "scattered"])
@pytest.mark.parametrize("turns", [1, 2, 9])
def test_known_turns_take_the_place_of_a_loop(
    turns: int, kind: str, trip: bool, threads: int
) -> None:
    model = loop(turns, kind=kind, trip=trip)
    program = ir.compile(model, threads=threads)
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert_same(program, model, [rng.standard_normal((turns, 2, 4)).astype("f4")])
    layers = [node.op.xml_type for node in planned(model)]
    assert not {"Loop", "ScatterUpdate"} & set(layers)
    assert layers.count("Tanh") <= turns


def test_a_loop_of_many_turns_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loop(9)
    given = [np.random.default_rng(0).standard_normal((9, 2, 4)).astype("f4")]
    inside = ir.compile(model)(given)
    monkeypatch.setattr(unrolling, "MOST", 8 * 9)
    assert_same(ir.compile(model), model, given)
    assert "Loop" in [node.op.xml_type for node in planned(model)]
    for name, found in ir.compile(model)(given).items():
        np.testing.assert_allclose(found, inside[name], rtol=1e-5, atol=1e-6)


def test_a_loop_without_end_is_no_hang_of_compile() -> None:
    net = ir.Builder()
    zero, yes = net.constant(np.int32(0)), net.constant(np.array(True))
    most = net.constant(np.int32(-1))
    tensors = [Tensor(ElementType("i32"), ())]
    made = net.add("Loop", "opset5", [most, yes, zero], outputs=tensors)
    body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
    t = body.parameter("t", "i32", ())
    end = body.result(body.add("Add", "opset1", [t, body.constant(np.int32(1))]), name="r")
    goes = body.result(body.constant(np.array(True)), name="goes")
    place = {"external_port_id": -1, "purpose": "execution_condition"}
    wiring.add("input", external_port_id=2, internal_layer_id=t.layer.id)
    wiring.add("output", external_port_id=0, internal_layer_id=end.id)
    wiring.add("output", internal_layer_id=goes.id, **place)
    made.layer.add_body("body", body.graph, wiring)
    made.layer.back_edges = [ir.BackEdge(end.id, t.layer.id)]
    net.result(made, name="y")
    assert "Loop" in [node.op.xml_type for node in planned(net.model())]


def iterator(turns: int, size: int, stride: int) -> ir.Model:
    """A TensorIterator that sums slices from either end."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, turns * size))
    start = net.constant(np.zeros((2, size), "f4"))
    f32 = ElementType("f32")
    tensors = [Tensor(f32, (2, size)), Tensor(f32, (2, turns * size))]
    made = net.add("TensorIterator", "opset1", [x, start], outputs=tensors)
    body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
    part, held = (body.parameter(name, "f32", (2, size)) for name in ("part", "held"))
    total = body.add("Add", "opset1", [part, held])
    end = body.result(total, name="total")
    ends = {"start": 0, "end": -1} if stride > 0 else {"start": -1, "end": 0}
    sliced = {"axis": 1, **ends, "stride": stride * size, "part_size": size}
    wiring.add("input", external_port_id=0, internal_layer_id=part.layer.id, **sliced)
    wiring.add("input", external_port_id=1, internal_layer_id=held.layer.id)
    wiring.add("output", external_port_id=0, internal_layer_id=end.id)
    wiring.add("output", external_port_id=1, internal_layer_id=end.id, **sliced)
    made.layer.add_body("body", body.graph, wiring)
    made.layer.back_edges = [ir.BackEdge(end.id, held.layer.id)]
    for place in range(2):
        net.result(made[place], name=f"y{place}")
    return net.model()


@pytest.mark.parametrize("stride", [1, -1])
@pytest.mark.parametrize(("turns", "size"), [(1, 1), (4, 1), (3, 2)])
def test_slices_of_known_turns(turns: int, size: int, stride: int) -> None:
    model = iterator(turns, size, stride)
    given = [np.arange(2.0 * turns * size, dtype="f4").reshape(2, -1)]
    assert_same(ir.compile(model), model, given)
    assert "TensorIterator" not in [node.op.xml_type for node in planned(model)]


def test_where_shapes_vary_loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first shapes each has its turns planned, then plans have to be made quickly.

    What comes again is answered as it was, also when its plan had to be made anew.
    """
    monkeypatch.setattr(kept_plans, "ROOM", 0)
    model = loop(3, dynamic=True)
    program = ir.compile(model)
    rng = np.random.default_rng(0)
    given = {rows: rng.standard_normal((rows, 2, 4)).astype("f4") for rows in (3, 9, 5, 20, 7, 11)}
    first = {rows: program([array]) for rows, array in given.items()}
    for rows in (7, 3):
        assert_same(program, model, [given[rows]])
        for name, array in program([given[rows]]).items():
            np.testing.assert_array_equal(array, first[rows][name])
    plans = [plan for plan in program._plans.values() if plan is not None]
    found = ["Loop" in [node.op.xml_type for node in plan.plan.nodes] for plan in plans]
    assert found == [False, False, False, True, False]


def rows(draw: Draw) -> None:
    """Rows put into a tensor one after the other, some of them twice, some seen by others."""
    size, axis = draw.number(2, 5), draw.number(0, 1)
    shape = [3, 3]
    shape[axis] = size
    x = draw.input(*shape) if draw.chance() else draw.constant(draw.array(*shape))
    seen = []
    lone = [3, 3]
    lone[axis] = 1
    for _ in range(draw.number(1, 7)):
        place = draw.number(0, size - 1)
        row = draw.input(*lone)
        if draw.chance(0.3):
            row = draw.add("ReLU", "opset1", row)
        if draw.chance():
            at = draw.constant(np.array([place - draw.pick(0, size)]))
            x = draw.add("ScatterUpdate", "opset3", x, at, row, draw.constant(axis))
        else:
            words = [draw.constant([n]) for n in (0, place, place + 1, size, 1, axis)]
            zero, begin, end, stop, one, along = words
            head = draw.add("Slice", "opset8", x, zero, begin, one, along)
            tail = draw.add("Slice", "opset8", x, end, stop, one, along)
            parts = [head] * (place > 0) + [row] + [tail] * (place < size - 1)
            x = draw.add("Concat", "opset1", *parts, axis=axis) if len(parts) > 1 else row
        if draw.chance(0.2):
            seen.append(draw.add("ReLU", "opset1", x))
    draw.check(draw.add("Tanh", "opset1", x), *seen)


@pytest.mark.parametrize("seed", range(4 * DRAWS))
def test_rows_that_are_put_one_by_one(seed: int) -> None:
    rows(Draw(seed))
