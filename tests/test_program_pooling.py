"""Poolings of programs: every window, stride and padding, in both layouts, alone and shared."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.document.builder import Output
from vinoir.ir.engine import planned as engine
from vinoir.ir.engine.kernels import channels_first as planar
from vinoir.ir.engine.kernels import flat_windows, pooling
from vinoir.ir.engine.kernels.axis import Axis
from vinoir.ir.engine.plan import Value
from vinoir.ir.engine.program import Program
from vinoir.ir.engine.trials import TRIALS
from vinoir.ir.engine.workers.team import Threads
from vinoir.layers.budget import within
from vinoir.schemas import Array

SEEDS = int(os.environ.get("VINOIR_POOLINGS", "48"))


def image(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def pool(net: ir.Builder, rng: np.random.Generator, shape: tuple[int, ...], x: Output) -> Output:
    """A pooling drawn at random, of windows that fit a shape."""
    kernel = [int(rng.integers(1, min(16, size + 4) + 1)) for size in shape[2:]]
    strides = [int(n) for n in rng.integers(1, 4, 2)]
    if rng.random() < 0.5:
        kernel, strides = [kernel[0]] * 2, [strides[0]] * 2
    # Not so much padding that a window sees nothing else.
    begin = [int(rng.integers(0, size // 2 + 1)) for size in kernel]
    end = [int(rng.integers(0, size // 2 + 1)) for size in kernel]
    # Windows fit what is there.
    end = [
        max(after, size - given - before)
        for after, size, given, before in zip(end, kernel, shape[2:], begin, strict=True)
    ]
    words = {
        "kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end,
        "rounding_type": str(rng.choice(["floor", "ceil"])),
    }  # fmt: skip
    if rng.random() < 0.5:
        return net.add("MaxPool", "opset1", [x], **words)
    padded = all(after < size for after, size in zip(end, kernel, strict=True))
    without = "true" if padded and rng.random() < 0.5 else "false"
    return net.add("AvgPool", "opset1", [x], **words, data={"exclude-pad": without})


def assert_program_agrees(
    model: ir.Model, inputs: list[Array], threads: int, *, fork: bool = True
) -> None:
    wanted = ir.run(model, inputs)
    program = ir.compile(model, threads=threads, fork=fork)
    kept = [array.copy() for array in inputs]
    for _ in range(3):
        for name, array in program(inputs).items():
            finite = wanted[name][np.isfinite(wanted[name])]
            scale = np.abs(finite).max(initial=1e-6)
            np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5 * scale)
    for array, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("layout", ["first", "last"])
def test_poolings_at_random(seed: int, layout: str) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        channels = int(rng.choice([1, 3, 16, 40]))
        shape = (int(rng.integers(1, 4)), channels, *map(int, rng.integers(1, 34, 2)))
        net = ir.Builder()
        try:
            y = pool(net, rng, shape, net.parameter("x", "f32", shape))
            if layout == "last":
                # A convolution wants channels last, and so its neighbours have them last.
                one = net.constant(np.eye(channels, dtype="f4")[:, :, None, None])
                words = dict.fromkeys(("pads_begin", "pads_end"), (0, 0))
                y = net.add(
                    "Convolution", "opset1", [y, one], strides=(1, 1), dilations=(1, 1), **words
                )
            elif rng.random() < 0.3:
                y = net.add("ReLU", "opset1", [y])
        except ir.IRError:
            continue  # a window of padding alone
        net.result(y, name="y")
        assert_program_agrees(net.model(), [image(shape, seed)], threads=1 + seed % 2)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("followed", [False, True])
def test_images_of_one_channel_beside_convolutions_are_one_run(
    kind: str, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[int, ...]] = []
    planar_way = pooling.planar

    def watched(source: Value, *rest: Any) -> Any:
        taken.append(source.shape)
        return planar_way(source, *rest)

    monkeypatch.setattr(pooling, "planar", watched)
    net = ir.Builder()
    x = net.parameter("x", "f32", (40, 1, 12, 9))
    sides = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    y = net.add("Convolution", "opset1", [x, net.constant(image((1, 1, 3, 3)))], **sides)
    words = {"kernel": (2, 3), "strides": (2, 2), "pads_begin": (0, 1), "pads_end": (1, 1)}
    data = {"data": {"exclude-pad": "true"}} if kind == "AvgPool" else {}
    y = net.add(kind, "opset1", [y], **words, **data)
    if followed:
        y = net.add("Tanh", "opset1", [y])
    net.result(net.add("Convolution", "opset1", [y, net.constant(image((4, 1, 3, 3)))], **sides))
    assert_program_agrees(net.model(), [image((40, 1, 12, 9), 1)], threads=2)
    assert bool(taken) != followed


@pytest.mark.parametrize("threads", range(1, 6))
@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_poolings_shared_by_workers(
    threads: int, fork: bool, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(threads)
    monkeypatch.setattr(planar, "SHARED", 0)
    for _ in range(6):
        # One plane at a time and many; a caller who does more than the others, and much more.
        monkeypatch.setattr(planar, "AT_ONCE", int(rng.choice([1, 1 << 12, 1 << 16])))
        monkeypatch.setattr(planar, "BY_THREADS", int(rng.choice([1, 1 << 12, 1 << 16])))
        monkeypatch.setattr(planar, "AWAKE", int(rng.choice([0, 1 << 12, 1 << 20])))
        shape = (
            int(rng.integers(1, 4)),
            int(rng.choice([1, 3, 40])),
            *map(int, rng.integers(5, 34, 2)),
        )
        net = ir.Builder()
        x = net.parameter("x", "f32", shape)
        try:
            # One at both ends, one that others follow, one between others, one at the end.
            found = {"a": pool(net, rng, shape, x)}
            found["b"] = net.add("ReLU", "opset1", [pool(net, rng, shape, x)])
            if not alone:
                begin = net.add("Abs", "opset1", [x])
                found["c"] = net.add("Sigmoid", "opset1", [pool(net, rng, shape, begin)])
                negative = net.add("Negative", "opset1", [begin])
                found["d"] = pool(net, rng, shape, negative)
        except ir.IRError:
            continue  # a window of padding alone
        for name, source in found.items():
            net.result(source, name=name)
        assert_program_agrees(net.model(), [image(shape, threads)], threads, fork=fork)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("window", range(1, 17))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_every_window(kind: str, window: int, stride: int) -> None:
    words = {
        "kernel": (window, window), "strides": (stride, stride), "pads_begin": (window // 2,) * 2,
        "pads_end": ((window - 1) // 2,) * 2, "rounding_type": "floor",
    }  # fmt: skip
    more = {"data": {"exclude-pad": "true"}} if kind == "AvgPool" else {}
    net = ir.Builder()
    for number, sizes in enumerate([(window, window + 1), (17, 22), (30, 13)]):
        x = net.parameter(f"x{number}", "f32", (2, 5, *sizes))
        net.result(net.add(kind, "opset1", [x], **words, **more), name=f"y{number}")
    model = net.model()
    shapes = [ir.infer(model).of(p)[0].shape.static for p in model.parameters]
    assert_program_agrees(model, [image(shape) for shape in shapes], threads=1)


def two_poolings() -> tuple[ir.Model, Array]:
    """One after the other and one beside them, of an input that is an output as well."""
    shape = (2, 3, 9, 12)
    words = {"pads_begin": (1, 1), "pads_end": (1, 1), "rounding_type": "floor"}
    net = ir.Builder()
    x, z = net.parameter("x", "f32", shape), net.parameter("z", "f32", shape)
    largest = net.add("MaxPool", "opset1", [x], kernel=(3, 3), strides=(1, 1), **words)
    again = net.add("MaxPool", "opset1", [largest], kernel=(3, 2), strides=(2, 2), **words)
    other = net.add("MaxPool", "opset1", [z], kernel=(2, 3), strides=(2, 1), **words)
    for name, source in {"a": largest, "b": again, "c": other, "d": other, "e": z}.items():
        net.result(source, name=name)
    return net.model(), image(shape)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_poolings_of_poolings(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planar, "SHARED", 0)
    model, array = two_poolings()
    # Columns that do not lie side by side are inputs like others.
    turned = np.asfortranarray(array)
    assert_program_agrees(model, [array, turned], threads)


def one_pooling(*, followed: bool = False) -> tuple[ir.Model, Array, Array]:
    shape = (1, 7, 20, 20)
    net = ir.Builder()
    words = dict.fromkeys(("pads_begin", "pads_end"), (1, 1))
    x = net.parameter("x", "f32", shape)
    y = net.add(
        "MaxPool", "opset1", [x], kernel=(3, 3), strides=(1, 1), rounding_type="floor", **words
    )
    # What follows is something else than a pooling: then workers share it.
    net.result(net.add("Sign", "opset1", [y]) if followed else y, name="y")
    model, array = net.model(), image(shape)
    return model, array, ir.run(model, [array])["y"]


@pytest.mark.parametrize("threads", [1, 2])
def test_results_belong_to_the_caller(threads: int) -> None:
    model, array, wanted = one_pooling()
    program = ir.compile(model, threads=threads)
    found = [program([array])["y"] for _ in range(4)]
    program([array + 1])
    for one in found:
        np.testing.assert_array_equal(one, wanted)
        one[:] = 0
    np.testing.assert_array_equal(program([array])["y"], wanted)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_large_poolings_alone_are_shared_by_threads_on_the_callers_arrays(kind: str) -> None:
    shape = (8, 64, 40, 40)
    net = ir.Builder()
    words = dict.fromkeys(("pads_begin", "pads_end"), (1, 1))
    more = {"data": {"exclude-pad": "true"}} if kind == "AvgPool" else {}
    y = net.add(
        kind, "opset1", [net.parameter("x", "f32", shape)], kernel=(3, 3), strides=(2, 2),
        rounding_type="floor", **words, **more,
    )  # fmt: skip
    net.result(y, name="y")
    array = image(shape)
    program, single = (ir.compile(net.model(), threads=threads) for threads in (2, 1))
    wanted = single([array])["y"]
    for _ in range(2):  # the first goes to wake everything up, then both ways are tried
        np.testing.assert_array_equal(program([array])["y"], wanted)
    (planned,) = program._plans.values()
    assert planned is not None
    assert isinstance(planned.team._helpers, Threads)
    assert {*planned.plan.inputs.values(), *planned.plan.outputs} == planned._direct.keys()
    for _ in range(2 * TRIALS):
        np.testing.assert_array_equal(program([array])["y"], wanted)
    assert planned._trials is None


def test_small_poolings_alone_are_done_by_the_caller() -> None:
    model, array, wanted = one_pooling()
    program = ir.compile(model, threads=2)
    for _ in range(3):
        np.testing.assert_array_equal(program([array])["y"], wanted)
    (planned,) = program._plans.values()
    assert planned is not None
    assert all(planned.team.alone)
    assert planned.team._helpers is None


def test_the_short_way_is_left_for_arrays_that_lie_otherwise() -> None:
    model, array, wanted = one_pooling()
    program = ir.compile(model)
    assert program._short is None
    program([array])
    short = program._short
    assert short is not None
    locked = array.copy()
    locked.flags.writeable = False
    apart = np.zeros((1, 14, 20, 20), "f4")[:, ::2]
    apart[:] = array
    for other in (array, locked, np.asfortranarray(array), apart, array.tolist()):
        for inputs in ([other], {"x": other}):
            np.testing.assert_array_equal(program(inputs)["y"], wanted)
    assert program._short is not None
    for value in (*planned_values(program), *planned_values(program)):
        # Nothing of the caller's is kept from call to call.
        assert value.store is not None
        assert not np.may_share_memory(value.store, array)
    with pytest.raises(ir.IRError, match="20"):
        program([array[..., :-1]])
    with pytest.raises(ir.IRError):
        program([])
    np.testing.assert_array_equal(program([array])["y"], wanted)


def planned_values(program: Program) -> list[Value]:
    (planned,) = program._plans.values()
    assert planned is not None
    return [*planned.plan.inputs.values(), *planned.plan.outputs]


def test_the_short_way_is_that_of_the_shapes_of_the_call() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, -1, 9, 8))
    words = dict.fromkeys(("pads_begin", "pads_end"), (0, 1))
    y = net.add(
        "MaxPool", "opset1", [x], kernel=(2, 2), strides=(1, 2), rounding_type="floor", **words
    )
    net.result(y, name="y")
    model = net.model()
    program = ir.compile(model)
    for channels in (3, 3, 5, 3, 5, 5, 3):
        array = image((1, channels, 9, 8), channels)
        np.testing.assert_array_equal(program([array])["y"], ir.run(model, [array])["y"])


def test_limits_take_the_long_way() -> None:
    model, array, wanted = one_pooling()
    limited = ir.compile(model, max_memory=1 << 30)
    limited([array])
    assert limited._short is None
    program = ir.compile(model)
    program([array])
    with within(None, 1e-9), pytest.raises(ir.LimitError):
        program([array])
    np.testing.assert_array_equal(program([array])["y"], wanted)


def test_threads_of_the_caller_take_turns() -> None:
    model, array, wanted = one_pooling()
    program = ir.compile(model)
    arrays = [array + number for number in range(4)]
    with ThreadPoolExecutor(4) as pool_:
        for _ in range(20):
            found = pool_.map(lambda one: program([one])["y"], arrays)
            for number, each in enumerate(found):
                np.testing.assert_allclose(each, wanted + number, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sooner", ["one", "several"])
def test_what_follows_keeps_to_what_was_sooner(
    sooner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planar, "SHARED", 0)
    monkeypatch.setattr(engine, "SMALL", 0)
    model, array, wanted = one_pooling(followed=True)
    program = ir.compile(model, threads=2, fork=False)
    (planned,) = program._plans.values()
    assert planned is not None
    program([array])
    while planned._trials is not None and len(planned._trials._left) > 1:
        np.testing.assert_array_equal(program([array])["y"], wanted)
    shared = [len(step) > 1 for step in planned.team.steps]
    assert any(shared)
    assert planned._trials is not None
    planned._trials._least[sooner == "several"] = dict.fromkeys(planned._names(), 0.0)
    for _ in range(3):
        np.testing.assert_array_equal(program([array])["y"], wanted)
    assert planned._trials is None
    assert planned.team.alone == [sooner == "one" or not each for each in shared]


#: The three ways of a pooling whose channels come first.
WAYS = [planar.Padded, planar.Lined, planar.Flat]


@given(
    kind=st.sampled_from(["MaxPool", "AvgPool"]),
    way=st.sampled_from(WAYS),
    axes=st.tuples(*[st.tuples(*map(st.integers, (1, 1, 1, 0, 0), (12, 9, 3, 8, 8)))] * 2),
    planes=st.integers(1, 40),
    at_once=st.sampled_from([1, 300, 1 << 16]),
    exclude=st.booleans(),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_way_is_the_definition(
    kind: str, way: type, axes: Any, planes: int, at_once: int, exclude: bool
) -> None:
    axes = [(size, min(window, size), stride, min(before, window - 1), min(after, window - 1))
            for size, window, stride, before, after in axes]  # fmt: skip
    axes = [(n, k, s, min(b, k - 1), min(a, k - 1)) for n, k, s, b, a in axes]
    sizes, kernel, strides, begin, end = zip(*axes, strict=True)
    if way is not planar.Padded and max(kernel) == 1:
        return
    words = {
        "kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end,
        "rounding_type": "floor",
    }  # fmt: skip
    more = {"data": {"exclude-pad": str(exclude).lower()}} if kind == "AvgPool" else {}
    net = ir.Builder()
    shape = (1, planes, *sizes)
    net.result(
        net.add(kind, "opset1", [net.parameter("x", "f32", shape)], **words, **more), name="y"
    )
    taken: list[bool] = []

    def only(down: Axis, along: Axis, *, overlap: bool) -> Any:
        flat = [flat_windows.is_flat(down), flat_windows.is_flat(along)]
        fits = {planar.Padded: True, planar.Lined: flat[0], planar.Flat: all(flat)}[way]
        taken.append(fits)
        return (way if fits and (down.window > 1 or way is not planar.Lined) else planar.Padded)(
            down, along, overlap=overlap
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planar, "quickest", only)
        patch.setattr(planar, "AT_ONCE", at_once)
        assert_program_agrees(net.model(), [image(shape, planes)], threads=1)
    assert taken


def test_each_way_is_taken_where_it_is_quickest() -> None:
    same, half = Axis(56, 3, 1, 1, 56), Axis(56, 3, 2, 1, 28)
    assert type(planar.quickest(same, same, overlap=True)) is planar.Flat
    assert type(planar.quickest(half, half, overlap=True)) is planar.Padded
    assert type(planar.quickest(*[Axis(56, 2, 2, 0, 28)] * 2, overlap=True)) is planar.Lined
    assert type(planar.quickest(*[Axis(13, 7, 1, 3, 13)] * 2, overlap=False)) is planar.Padded
    # Windows in padding alone can only be made beside it.
    assert not flat_windows.is_flat(Axis(5, 2, 1, 2, 8))
    assert type(planar.quickest(*[Axis(5, 2, 1, 2, 8)] * 2, overlap=True)) is planar.Padded


def test_numbers_that_are_none_stay_in_their_windows() -> None:
    """What is joined across the ends of rows and planes is mended, whatever it is."""
    shape = (2, 3, 9, 11)
    for kind, special in product(("MaxPool", "AvgPool"), (np.nan, np.inf, -np.inf)):
        for window in (2, 3, 5):
            words = {
                "kernel": (window, window), "strides": (1, 1), "rounding_type": "floor",
                "pads_begin": (window // 2,) * 2, "pads_end": ((window - 1) // 2,) * 2,
            }  # fmt: skip
            net = ir.Builder()
            more = {"data": {"exclude-pad": "true"}} if kind == "AvgPool" else {}
            x = net.parameter("x", "f32", shape)
            net.result(net.add(kind, "opset1", [x], **words, **more), name="y")
            model = net.model()
            for place in ((0, 0, 8, 10), (0, 1, 0, 0), (1, 2, 4, 10), (1, 0, 4, 0)):
                array = image(shape)
                array[place] = 0
                wanted = ir.run(model, [array])["y"]
                array[place] = special
                found = ir.compile(model)([array])["y"]
                reached = near(shape, place, window)
                np.testing.assert_allclose(found[~reached], wanted[~reached], rtol=1e-5, atol=1e-5)
                # The least there is takes part in no maximum.
                if kind == "AvgPool" or not special < 0:
                    assert not np.isfinite(found[reached]).any()


def near(shape: tuple[int, ...], place: tuple[int, ...], window: int) -> Array:
    """Where windows reach a place."""
    found = np.zeros(shape, bool)
    image_, channel, row, column = place
    up, low = (window - 1) // 2, window // 2
    found[
        image_, channel, max(row - up, 0) : row + low + 1, max(column - up, 0) : column + low + 1
    ] = True
    return found


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize(
    ("given", "wanted", "plain"),
    [
        ((12,), (3,), True), ((56, 56), (7, 7), True), ((13, 8), (6, 8), True),
        ((9, 1), (1, 1), True), ((6, 4), (1, 2), True), ((4, 6, 6), (2, 3, 1), True),
        ((4, 6, 6), (1, 1, 1), True), ((14, 20), (3, 3), False), ((3,), (5,), False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["AdaptiveAvgPool", "AdaptiveMaxPool"])
def test_poolings_to_a_size(
    kind: str, given: tuple[int, ...], wanted: tuple[int, ...], plain: bool, places: bool
) -> None:
    """Windows that are alike are those of a plain pooling, unless it is asked where maxima are."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 5, *given))
    found = net.add(kind, "opset8", [x, net.constant(np.array(wanted))])
    both = places and kind == "AdaptiveMaxPool"
    net.result(found[0] if kind == "AdaptiveMaxPool" else found, name="y")
    if both:
        net.result(found[1], name="places")
    model = net.model()
    values = [image((2, 5, *given))]
    for threads in (1, 2):
        assert_program_agrees(model, values, threads)
    measured = ir.compile(model).times(values, runs=1)
    assert measured is not None
    kinds = {node.kind for node, *_ in measured}
    assert kinds.isdisjoint({"", kind}) == (plain and not both)
