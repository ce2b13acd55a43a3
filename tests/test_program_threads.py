"""One program, one input, one answer: whoever shares the work, from wherever it is called."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from networks import Drawer
from vinoir import ir
from vinoir.ir.engine.kernels.activations import activation
from vinoir.ir.engine.kernels.rooms import NEAR
from vinoir.ir.engine.program import Program
from vinoir.ir.engine.workers import processes
from vinoir.ir.engine.workers.blas_threads import MODULE, Blas, blas, describe, single_blas
from vinoir.ir.engine.workers.processes import can_fork
from vinoir.ir.engine.workers.team import HelpersLostError, Threads
from vinoir.layers import Op
from vinoir.schemas import Array

forking = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")
#: Networks that are worth being shared, by what there is to compute.
Make = Callable[[ir.Builder, np.random.Generator], None]


def weights(net: ir.Builder, rng: np.random.Generator, *shape: int) -> ir.Output:
    """Random weights of a size that keeps values where they are."""
    scale = np.sqrt(np.prod(shape[1:]))
    return net.constant((rng.standard_normal(shape) / scale).astype("f4"))


def convolved(
    net: ir.Builder,
    rng: np.random.Generator,
    x: ir.Output,
    made: int,
    kernel: int,
    stride: int = 1,
) -> ir.Output:
    """A convolution with a bias and a ReLU."""
    axes = len(x.tensor.shape) - 2
    given = x.tensor.shape.static[1]
    words = {
        "strides": (stride,) * axes, "dilations": (1,) * axes,
        "pads_begin": (kernel // 2,) * axes, "pads_end": (kernel // 2,) * axes,
    }  # fmt: skip
    taken = weights(net, rng, made, given, *[kernel] * axes)
    x = net.add("Convolution", "opset1", [x, taken], **words)
    bias = net.constant(rng.standard_normal((1, made, *[1] * axes)).astype("f4"))
    return net.add("ReLU", "opset1", [net.add("Add", "opset1", [x, bias])])


def images(*steps: tuple[int, int, int], size: int = 28, given: int = 16, batch: int = 1) -> Make:
    """Convolutions (channels, kernel, stride) one after the other."""

    def make(net: ir.Builder, rng: np.random.Generator) -> None:
        x = net.parameter("x", "f32", (batch, given, size, size))
        for step in steps:
            x = convolved(net, rng, x, *step)
        net.result(x, name="y")

    return make


def volumes(net: ir.Builder, rng: np.random.Generator) -> None:
    """Convolutions of volumes."""
    x = net.parameter("x", "f32", (1, 16, 9, 17, 17))
    net.result(convolved(net, rng, convolved(net, rng, x, 32, 3), 24, 1), name="y")


def enlarged(net: ir.Builder, rng: np.random.Generator) -> None:
    """A transposed convolution between two others."""
    x = convolved(net, rng, net.parameter("x", "f32", (1, 32, 21, 21)), 64, 1)
    x = net.add(
        "ConvolutionBackpropData", "opset1", [x, weights(net, rng, 64, 48, 4, 4)],
        strides=(2, 2), dilations=(1, 1), pads_begin=(1, 1), pads_end=(1, 1),
    )  # fmt: skip
    net.result(convolved(net, rng, x, 33, 1), name="y")


def pooled(net: ir.Builder, rng: np.random.Generator) -> None:
    """Average poolings where channels are last, and one of whole images."""
    x = convolved(net, rng, net.parameter("x", "f32", (1, 8, 43, 43)), 64, 3)
    for kernel, stride in ((5, 1), (3, 2), (7, 3)):
        x = net.add(
            "AvgPool", "opset1", [x], kernel=(kernel, kernel), strides=(stride, stride),
            pads_begin=(1, 1), pads_end=(1, 1), **{"exclude-pad": True, "rounding_type": "ceil"},
        )  # fmt: skip
        x = convolved(net, rng, x, 64, 1)
    axes = net.constant(np.array([2, 3], "i8"))
    net.result(net.add("ReduceMean", "opset1", [x, axes], keep_dims=False), name="y")


def attention(rows: int, deep: int) -> Make:
    """Products of matrices with SoftMax and MVN between them."""

    def make(net: ir.Builder, rng: np.random.Generator) -> None:
        x = net.parameter("x", "f32", (1, rows, deep))
        straight = {"transpose_a": False, "transpose_b": False}
        q, k, v = (
            net.add("MatMul", "opset1", [x, weights(net, rng, deep, deep)], **straight)
            for _ in range(3)
        )
        scores = net.add("MatMul", "opset1", [q, k], transpose_a=False, transpose_b=True)
        scores = net.add("SoftMax", "opset8", [scores], axis=-1)
        y = net.add("MatMul", "opset1", [scores, v], **straight)
        y = net.add("Add", "opset1", [x, y])
        last = net.constant(np.array([-1], "i8"))
        y = net.add(
            "MVN", "opset6", [y, last], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt"
        )
        y = net.add("MatMul", "opset1", [y, weights(net, rng, deep, 4 * deep)], **straight)
        y = net.add("Gelu", "opset7", [y], approximation_mode="ERF")
        net.result(net.add("MatMul", "opset1", [y, weights(net, rng, 4 * deep, deep)], **straight),
                   name="y")  # fmt: skip

    return make


NETWORKS: dict[str, Make] = {
    "squeezed": images(
        (16, 1, 1), (64, 3, 1), (32, 1, 1), (128, 3, 2), (64, 1, 1), size=55, given=3
    ),
    "deep": images((512, 1, 1), (512, 3, 1), (33, 1, 1), size=7, given=192),
    "strided": images((24, 7, 2), (40, 5, 2), (300, 3, 1), (17, 1, 1), size=61, given=3),
    "batch": images((48, 3, 1), (64, 1, 1), (10, 1, 1), size=19, given=24, batch=3),
    "plain": images((256, 1, 1), (100, 1, 1), (256, 1, 1), size=13, given=64),
    "volumes": volumes,
    "enlarged": enlarged,
    "pooled": pooled,
    "attention": attention(197, 192),
    "few rows": attention(7, 256),
    "one row": attention(1, 512),
}


def network(name: str) -> tuple[ir.Model, list[Array]]:
    """A network and an input."""
    rng = np.random.default_rng(len(name))
    net = ir.Builder()
    if name.startswith("random"):
        model = Drawer(int(name[6:])).model(batch=2)
    else:
        NETWORKS[name](net, rng)
        model = net.model()
    shape = ir.infer(model).of(model.parameters[0])[0].shape.static
    return model, [rng.standard_normal(shape).astype("f4")]


def same(found: ir.Outputs, wanted: ir.Outputs) -> bool:
    """Whether outputs are the same bit for bit."""
    pairs = zip(found.values(), wanted.values(), strict=True)
    return all(one.tobytes() == other.tobytes() for one, other in pairs)


@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("name", [*NETWORKS, *(f"random{seed}" for seed in range(6))])
def test_answers_do_not_depend_on_the_number_of_workers(
    name: str, fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Helpers come at once, however small the network is.
    monkeypatch.setattr("vinoir.ir.engine.planned.LARGE", 0)
    monkeypatch.setattr("vinoir.ir.engine.planned.SMALL", 0)
    model, inputs = network(name)
    wanted = ir.compile(model, threads=1)(inputs)
    for threads in (1, 2, 3, 4):
        program = ir.compile(model, threads=threads, fork=fork)
        # The first call, those that try what is quicker, and those after.
        for _ in range(9):
            assert same(program(inputs), wanted)


CURVES = [
    ("Elu", 1, {"alpha": 1.0}),
    ("Gelu", 7, {"approximation_mode": "ERF"}),
    ("Gelu", 7, {"approximation_mode": "TANH"}),
    ("HSigmoid", 5, {}),
    ("HSwish", 4, {}),
    ("Mish", 4, {}),
    ("Sigmoid", 1, {}),
    ("Swish", 4, {}),
]


@pytest.mark.parametrize(("kind", "version", "words"), CURVES)
@pytest.mark.parametrize("large", [9, 50, 300, 1e30, np.inf, np.nan])
def test_curves_do_not_depend_on_their_neighbours(
    kind: str, version: int, words: dict[str, object], large: float
) -> None:
    rng = np.random.default_rng(0)
    x = (4 * rng.standard_normal((1, 96, 200))).astype("f4")
    x[0, 0, 5] = large
    x[0, 50, 9] = -large
    op = Op.registry[kind, version].model_validate(words)
    found = []
    for near in (NEAR, 1000):
        target = np.empty_like(x)
        part = activation(op, x, target, near=near)
        assert part is not None
        with np.errstate(all="ignore"):
            part()
        found.append(target)
    np.testing.assert_array_equal(found[0].view("u4"), found[1].view("u4"))


def test_answers_of_definitions_do_not_depend_on_threads_of_blas() -> None:
    model, inputs = network("attention")
    library = blas()
    program = ir.compile(model, exact=True)
    wanted = program(inputs)
    for many in (1, 2, 3):
        before = library.count() if library is not None else 1
        try:
            if library is not None:
                library.limit(many)
            assert same(program(inputs), wanted)
            assert same(program([np.asfortranarray(array) for array in inputs]), wanted)
            assert same(ir.compile(model, exact=True, threads=many)(inputs), wanted)
        finally:
            if library is not None:
                library.limit(before)


def test_weights_that_are_folded_do_not_depend_on_threads_of_blas() -> None:
    rng, net = np.random.default_rng(0), ir.Builder()
    x = net.parameter("x", "f32", (1, 700))
    halves = [weights(net, rng, 700, 700) for _ in range(2)]
    words = {"transpose_a": False, "transpose_b": False}
    joined = net.add("MatMul", "opset1", halves, **words)
    net.result(net.add("MatMul", "opset1", [x, joined], **words), name="y")
    model, library = net.model(), blas()
    inputs = [rng.standard_normal((1, 700)).astype("f4")]
    wanted = ir.compile(model, threads=1)(inputs)
    before = library.count() if library is not None else 1
    for many in (1, 2, 3):
        try:
            if library is not None:
                library.limit(many)
            assert same(ir.compile(model, threads=many)(inputs), wanted)
        finally:
            if library is not None:
                library.limit(before)


KERNELS = pytest.mark.parametrize("kernels", ["", "Haswell"])


def alone(function: Callable[[], None], kernels: str = "") -> None:
    """Call a function of a module in a process of its own; it may not hang."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("OPENBLAS_CORETYPE", None)
    if kernels:
        environment["OPENBLAS_CORETYPE"] = kernels
    module = function.__module__
    code = f"import {module}; {module}.{function.__name__}()"
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def ready(name: str, *, fork: bool = True) -> tuple[Program, list[Array], ir.Outputs]:
    """A program with two workers, an input, and what one worker makes of it."""
    model, inputs = network(name)
    return ir.compile(model, threads=2, fork=fork), inputs, ir.compile(model, threads=1)(inputs)


def call_from_many_threads() -> None:
    for fork in (True, False):
        programs = [ready(name, fork=fork) for name in ("squeezed", "attention")]
        with ThreadPoolExecutor(4) as pool:
            for _ in range(2):
                calls = [
                    (pool.submit(program, inputs), wanted)
                    for _ in range(10)
                    for program, inputs, wanted in programs
                ]
                assert all(same(call.result(), wanted) for call, wanted in calls)


@KERNELS
def test_threads_of_a_pool_get_the_same_answers(kernels: str) -> None:
    alone(call_from_many_threads, kernels)


def threads_of_blas() -> int:
    """How many threads BLAS takes in this thread now."""
    library = blas()
    assert library is not None
    return library.count()


needs_many = pytest.mark.skipif(
    blas() is None or threads_of_blas() == 1, reason="BLAS has one thread here"
)


@needs_many
def test_threads_of_blas_are_put_back() -> None:
    before = threads_of_blas()
    with single_blas, single_blas:
        assert threads_of_blas() == 1
    assert threads_of_blas() == before
    program, inputs, _ = ready("squeezed")
    program(inputs)
    assert threads_of_blas() == before


@needs_many
def test_what_somebody_else_has_set_meanwhile_stays() -> None:
    library = blas()
    assert library is not None
    before = library.count()
    try:
        with single_blas:
            library.limit(before + 1)
            with single_blas:
                assert library.count() == 1
        assert library.count() == before + 1
        with single_blas:
            library.limit(before + 2)
        assert library.count() == before + 2
        library.limit(1)
        with single_blas:
            assert library.count() == 1
        assert library.count() == 1
    finally:
        library.limit(before)


def test_a_number_for_each_thread_is_put_back_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = threading.local()

    def limit(count: int) -> None:
        counts.now = count

    library = Blas("one", "", "", lambda: getattr(counts, "now", 8), limit, by_thread=True)
    monkeypatch.setattr("vinoir.ir.engine.workers.blas_threads.blas", lambda: library)
    inside, after = threading.Event(), threading.Event()
    seen: list[int] = []

    def other() -> None:
        limit(3)
        with single_blas:
            seen.append(library.count())
            inside.set()
            after.wait()
        seen.append(library.count())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with single_blas, single_blas:
        assert library.count() == 1
    assert library.count() == 8
    after.set()
    thread.join()
    assert seen == [1, 3]


def test_a_blas_that_cannot_be_told_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program, inputs, wanted = ready("squeezed")
    for module in ("engine.program", "engine.workers.blas_threads"):
        monkeypatch.setattr(f"vinoir.ir.{module}.blas", lambda: None)
    untold = ir.compile(program.model, threads=4)
    assert untold.threads == 1
    for found, one in zip(untold(inputs).values(), wanted.values(), strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5)
    assert "cannot be told" in describe()


def test_blas_says_what_it_is() -> None:
    library = blas()
    if library is None or library.name != "OpenBLAS":
        pytest.skip("another BLAS")
    assert library.version
    assert library.version in describe()
    assert library.kernels in describe()
    code = "from vinoir.ir.engine.workers.blas_threads import describe; print(describe())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**environment, "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert "1 thread," in done.stdout
    if getattr(sys.modules[MODULE], "__cpu_features__", {}).get("AVX512_SKX"):
        assert "Haswell" in done.stdout
        assert "AVX-512, by OPENBLAS_CORETYPE=Haswell" in done.stdout


def test_without_threads_to_be_had_the_caller_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = network("attention")
    wanted = ir.compile(model, threads=1)(inputs)
    started = threading.Thread.start
    more = [1]

    def start(self: threading.Thread) -> None:
        if not more:
            raise RuntimeError("can't start new thread")
        more.pop()
        started(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    program = ir.compile(model, threads=4, fork=False)
    for _ in range(9):
        assert same(program(inputs), wanted)
    with pytest.raises(HelpersLostError):
        Threads([[lambda: None] * 4], 4)


@forking
@pytest.mark.parametrize("kind", ["Gelu", "Swish", "HSwish", "FakeQuantize"])
def test_threads_that_come_where_processes_should_share_no_temporaries(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, rng = ir.Builder(), np.random.default_rng(3)
    x = net.parameter("x", "f32", (64, 512))
    y = net.add("MatMul", "opset1", [x, weights(net, rng, 512, 2048)])
    if kind == "FakeQuantize":
        ends = [net.constant(np.float32(end)) for end in (-2.1, 1.9, -2.1, 1.9)]
        y = net.add(kind, "opset1", [y, *ends], levels=256)
    else:
        y = net.add(kind, {"Gelu": "opset7"}.get(kind, "opset4"), [y])
    net.result(net.add("MatMul", "opset1", [y, weights(net, rng, 2048, 512)]), name="y")
    model, given = net.model(), [rng.standard_normal((64, 512)).astype("f4")]
    wanted = ir.compile(model, threads=1)(given)["y"].tobytes()
    monkeypatch.setattr(processes, "at_rest", lambda: False)  # as where BLAS never is
    program = ir.compile(model, threads=2)
    answers = {program(given)["y"].tobytes() for _ in range(40)}
    assert answers == {wanted}
    monkeypatch.undo()
    for planned in program._plans.values():
        assert isinstance(planned.team._helpers, Threads)
        planned.team.dismiss()
    assert program(given)["y"].tobytes() == wanted
