"""Programs at the edges: tensors of nothing, odd windows, copies of processes, interrupts."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_program import assert_close, forking, helpers_of, shared_work
from vinoir import ir
from vinoir.ir.engine.workers import cores
from vinoir.ir.engine.workers.team import core_count
from vinoir.layers.sequence_recurrent import LSTMCellV1
from vinoir.schemas import IRError, UsageError

ONES = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype("f4")


def test_the_first_call_is_checked_as_any_other() -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "2,3")]))
    with pytest.raises(UsageError, match="is f32, the array is float64"):
        ir.compile(net.model())([np.zeros((2, 3))])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
def test_neighbours_are_as_many_on_either_side(size: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2,5,4,3")
    x = net.add("Convolution", "opset1", [x, net.constant(numbers(9, 5, 3, 3))], **ONES)
    y = net.add(
        "LRN", "opset1", [x, net.constant([1])], alpha=0.5, beta=0.75, bias=1.0, size=size
    )  # fmt: skip
    net.result(y, name="y")
    model, image = net.model(), numbers(2, 5, 4, 3)
    assert_close(ir.compile(model)([image]), ir.run(model, [image]))


EMPTY = [
    ((2, 3, 0, 4), "Convolution", (5, 3, 3, 3), (2, 5, 0, 4)),
    ((0, 3, 6, 4), "Convolution", (5, 3, 3, 3), (0, 5, 6, 4)),
    ((2, 3, 6, 4), "Convolution", (0, 3, 3, 3), (2, 0, 6, 4)),
    ((0, 3, 4, 4), "ConvolutionBackpropData", (3, 5, 3, 3), (0, 5, 4, 4)),
    ((2, 3, 5, 4), "ConvolutionBackpropData", (3, 0, 3, 3), (2, 0, 5, 4)),
    ((0, 3, 0, 5), "MatMul", (5, 2), (0, 3, 0, 2)),
    ((3, 0), "MatMul", (0, 4), (3, 4)),
]


@pytest.mark.parametrize(("shape", "kind", "weights", "output"), EMPTY)
def test_tensors_of_nothing(
    shape: tuple[int, ...], kind: str, weights: tuple[int, ...], output: tuple[int, ...]
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    words = {} if kind == "MatMul" else {**ONES, "auto_pad": "same_upper"}
    if kind == "ConvolutionBackpropData":
        words = ONES
    y = net.add(kind, "opset1", [x, net.constant(numbers(*weights))], **words)
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    model, given = net.model(), numbers(*shape)
    for found in (ir.run(model, [given])["y"], ir.compile(model)([given])["y"]):
        assert np.array_equal(found, np.zeros(output, "f4"))


def test_what_is_run_by_definitions_belongs_to_the_caller() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2,3")
    flat = net.add("Reshape", "opset1", [x, net.constant([6])], special_zero=False)
    for y in (x, x, flat):
        net.result(y)
    given = numbers(2, 3)
    outputs = ir.compile(net.model(), exact=True)([given]).values()
    taken = [given]
    for array in outputs:
        assert not any(np.may_share_memory(array, other) for other in taken)
        taken.append(array)


ONE_PASS = {
    "sum": lambda net, x: [net.add("Add", "opset1", [x, x])],
    "broadcast": lambda net, x: [
        net.add("Multiply", "opset1", [x, net.constant(numbers(1, 8, 1, 1))])
    ],
    "cast to nothing": lambda net, x: [net.add("Convert", "opset1", [x], destination_type="f32")],
    "twice": lambda net, x: [net.add("Concat", "opset1", [x, x], axis=1)],
    "turned": lambda net, x: [net.add("Transpose", "opset1", [x, net.constant([0, 2, 3, 1])])],
    "flat": lambda net, x: [
        net.add("Reshape", "opset1", [x, net.constant([-1])], special_zero=False)
    ],
    "cut": lambda net, x: [
        net.add("Slice", "opset8", [x, *(net.constant([n]) for n in (2, 6, 1, 1))])
    ],
    "split": lambda net, x: [*net.add("Split", "opset1", [x, net.constant(1)], num_splits=2)],
    "flat and a sum": lambda net, x: [
        net.add("Reshape", "opset1", [x, net.constant([-1])], special_zero=False),
        net.add("Add", "opset1", [x, x]),
    ],
    "sums": lambda net, x: [net.add(kind, "opset1", [x, x]) for kind in ("Add", "Multiply")],
    "itself": lambda net, x: [x],
    "and itself": lambda net, x: [x, net.add("Add", "opset1", [x, x])],
}


@pytest.mark.parametrize("name", ONE_PASS)
@pytest.mark.parametrize("threads", [1, 2])
def test_one_pass_over_much_memory(name: str, threads: int) -> None:
    net = ir.Builder()
    shape = (1, 8, 120, 90)
    for number, y in enumerate(ONE_PASS[name](net, net.parameter("x", "f32", shape))):
        net.result(y, name=str(number))
    model = net.model()
    program = ir.compile(model, threads=threads)
    taken: list[np.ndarray] = []
    for given in (
        numbers(*shape),
        numbers(1, 8, 90, 120).swapaxes(2, 3),
        numbers(*shape)[:, ::-1],
    ):
        before = given.copy()
        found, wanted = program([given]), ir.run(model, [given])
        assert np.array_equal(given, before)
        taken.append(given)
        for key, array in found.items():
            assert np.array_equal(array, wanted[key])
            assert array.flags.c_contiguous
            assert not any(np.may_share_memory(array, other) for other in taken)
            taken.append(array)


@pytest.mark.parametrize(("name", "ends"), [("sum", 2), ("twice", 2), ("sums", 3), ("itself", 0)])
def test_much_memory_is_not_copied_to_pass_over_it(name: str, ends: int) -> None:
    for shape, unshared_copy in (((1, 8, 120, 90), ends), ((1, 8, 12, 9), 0)):
        net = ir.Builder()
        for y in ONE_PASS[name](net, net.parameter("x", "f32", shape)):
            net.result(y)
        (planned,) = ir.compile(net.model())._plans.values()
        assert planned is not None
        assert len(planned._direct) == unshared_copy


def test_what_an_operation_gives_twice_or_was_given_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = ir.Builder()
    x, h, c = (net.parameter(name, "f32", (1, 3)) for name in "xhc")
    weights = (net.constant(numbers(12, 3)), net.constant(numbers(12, 3)))
    bias = net.constant(numbers(12))
    for y in net.add("LSTMCell", "opset1", [x, h, c, *weights, bias], hidden_size=3):
        net.result(y)
    monkeypatch.setattr(LSTMCellV1, "run", lambda self, x, *others: [x, x])
    program = ir.compile(net.model(), threads=1)
    given = [numbers(1, 3), numbers(1, 3), numbers(1, 3)]
    for _ in range(2):
        first, second = program(given).values()
        assert np.array_equal(first, given[0])
        assert np.array_equal(second, given[0])
        assert not np.may_share_memory(first, given[0])
        assert not np.may_share_memory(first, second)
    made = numbers(1, 3)
    monkeypatch.setattr(LSTMCellV1, "run", lambda self, *inputs: [made, made])
    first, second = program(given).values()
    assert np.array_equal(second, made)
    assert not np.may_share_memory(first, second)


@pytest.mark.parametrize("fork", [True, False])
def test_the_settings_of_numpy_are_left_alone(fork: bool) -> None:
    model, _, image = shared_work()
    program = ir.compile(model, threads=2, fork=fork)
    with np.errstate(over="raise"):
        np.setbufsize(4096)
        for _ in range(2):
            program([image])
        assert np.getbufsize() == 4096
        assert np.geterr()["over"] == "raise"
        with pytest.raises(IRError):
            program([image[:, :1]])
        assert np.getbufsize() == 4096


def test_a_program_is_copied_and_pickled() -> None:
    model, program, image = shared_work()
    wanted = ir.run(model, [image])
    for other in (copy.copy(program), copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert other.threads == 2
        assert_close(other([image]), wanted)


def test_threads_do_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    _, program, image = shared_work()
    monkeypatch.setattr("vinoir.ir.engine.planned.can_fork", lambda: False)
    threaded = ir.compile(program.model, threads=2)
    for _ in range(3):
        threaded([np.full_like(image, np.inf)])


@forking
def test_a_copy_made_while_another_thread_computes() -> None:
    _, program, image = shared_work()
    (wanted,) = program([image]).values()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            program([image])

    other = threading.Thread(target=work)
    other.start()
    try:
        for _ in range(5):
            time.sleep(0.01)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(20)  # locks of others would be waited for without an end
                    (found,) = program([image]).values()
                    code = 0 if np.array_equal(found, wanted) else 2
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        done.set()
        other.join()


@pytest.mark.skipif(core_count() < 2, reason="there is but one core")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are not told here")
def test_workers_are_kept_off_the_core_of_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        apart = cores.KeepOffCore()
        for core in sorted(allowed):
            monkeypatch.setattr(cores, "where", lambda core=core: core)
            apart.keep([worker.pid])
            assert os.sched_getaffinity(worker.pid) == allowed - {core}
        # Who has stayed where it was has nothing to tell.
        os.sched_setaffinity(worker.pid, allowed)
        apart.keep([worker.pid])
        assert os.sched_getaffinity(worker.pid) == allowed
        worker.communicate(b"go\n")
    cores.KeepOffCore().keep([worker.pid])  # which is gone
    assert os.sched_getaffinity(0) == allowed


CLOSED_INPUT = "os.close(0)"
MANY_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]"""


@forking
@pytest.mark.parametrize("circumstances", [CLOSED_INPUT, MANY_FILES])
def test_helpers_stay_whatever_files_are_open(circumstances: str) -> None:
    code = f"""
import os
import test_program
{circumstances}
_, program, image = test_program.shared_work()
helpers = test_program.helpers_of(program)
for _ in range(3):
    program([image])
assert helpers and helpers == test_program.helpers_of(program)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, timeout=60)


@forking
def test_files_of_a_copy_are_not_closed(tmp_path: Path) -> None:
    _, program, image = shared_work()
    assert helpers_of(program)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.closerange(3, 256)
            files = [os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR) for _ in range(50)]
            program([image])
            code = 0 if all(os.write(file, b"x") for file in files) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("kind", ["Convolution", "ConvolutionBackpropData"])
def test_what_needs_more_memory_than_there_is_is_refused_with_its_place(kind: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 2, 8, 8))
    wide, backwards = (10**6, 10**6), kind == "ConvolutionBackpropData"
    words = {
        "strides": (1, 1) if backwards else wide,
        "dilations": wide if backwards else (1, 1),
        "pads_begin": (0, 0) if backwards else wide,
        "pads_end": (0, 0) if backwards else wide,
    }
    weights = net.constant(np.ones((2, 2, 3, 3), "f4"))
    net.result(net.add(kind, "opset1", [x, weights], name="wide", **words))
    model, given = net.model(), [np.ones((1, 2, 8, 8), "f4")]
    for way in (lambda: ir.run(model, given), lambda: ir.compile(model)(given)):
        with pytest.raises(ir.IRError, match="not enough memory"):
            way()


def test_axes_that_numpy_has_not_are_an_error_of_the_layer() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1,))
    pattern = net.constant(np.array([1]))
    net.result(net.add("Reshape", "opset1", [x, pattern], name="many", special_zero=False))
    model, given = net.model(), [np.ones(1, "f4")]
    model.layer(pattern.layer.name).set_value(np.ones(100, np.int64))
    for way in (lambda: ir.run(model, given), lambda: ir.compile(model)(given)):
        with pytest.raises(ir.IRError, match='"many"'):
            way()


def mvn(net: ir.Builder, x: ir.Output, *axes: int) -> ir.Output:
    """MVN of IR v10's first opset: without axes those behind the channels."""
    words = {"eps": 0.1, "across_channels": False, "normalize_variance": True}
    made: ir.Output = net.add("MVN", "opset2", [x], name="normal", reduction_axes=axes, **words)
    return made


@pytest.mark.parametrize(
    ("shape", "axes"), [((), (2,)), ((1, 1, 2, 2), (7,)), ((4, 3), (1 << 60,))]
)
def test_axes_that_are_not_there_are_refused_by_programs_too(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    net = ir.Builder()
    net.result(mvn(net, net.parameter("x", "f32", shape), *axes))
    model, given = net.model(), [np.ones(shape, "f4")]
    for way in (lambda: ir.run(model, given), lambda: ir.compile(model)(given)):
        with pytest.raises(ir.IRError, match='"normal"'):
            way()


def test_indices_may_be_real_numbers() -> None:
    net = ir.Builder()
    x, places = net.parameter("x", "f32", "?,2"), net.parameter("places", "f16", (3,))
    net.result(net.add("Gather", "opset1", [x, places, net.constant(np.int64(0))]))
    given = [numbers(4, 2), np.array([3, 0, 1], "f2")]
    for way in (lambda: ir.run(net.model(), given), lambda: ir.compile(net.model())(given)):
        (found,) = way().values()
        np.testing.assert_array_equal(found, given[0][[3, 0, 1]])


@pytest.mark.parametrize(
    ("shape", "slopes"), [((2, 1), (5,)), ((2, 3), (4, 3)), ((2, 3, 1), (3, 4))]
)
def test_more_slopes_than_data_are_refused(
    shape: tuple[int, ...], slopes: tuple[int, ...]
) -> None:
    net = ir.Builder()
    given = [net.parameter("x", "f32", shape), net.parameter("slopes", "f32", slopes)]
    net.result(net.add("PReLU", "opset1", given, name="bent"))
    model, arrays = net.model(), [numbers(*shape), numbers(*slopes)]
    for way in (lambda: ir.run(model, arrays), lambda: ir.compile(model)(arrays)):
        with pytest.raises(ir.IRError, match='"bent"'):
            way()


@pytest.mark.parametrize("slope", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("count", [1, 3])
def test_slopes_that_are_no_numbers_count_only_below_zero(slope: float, count: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,3,4")
    slopes = np.full(count, slope, "f4")
    slopes[1:] = 0.5
    alone = net.add("PReLU", "opset1", [x, net.constant(slopes)])
    after = net.add("PReLU", "opset1", [net.add("Exp", "opset1", [x]), net.constant(slopes)])
    net.result(alone, name="alone")
    net.result(after, name="after")
    data = np.tile(np.array([-1, 0, 2, np.inf], "f4"), (1, 3, 1))
    factor = slopes[:, None]
    with np.errstate(invalid="ignore"):
        wanted = np.where(data < 0, data * factor, data)
    programs = (ir.compile(net.model(), shapes=shapes) for shapes in ([data.shape], None))
    for way in (lambda given: ir.run(net.model(), given), *programs):
        found = way([data])
        np.testing.assert_array_equal(found["alone"], wanted)
        np.testing.assert_allclose(found["after"], np.exp(data), rtol=1e-6)


def test_a_number_is_as_large_resized() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", ())
    sizes, scales = (net.constant(np.zeros(0, kind)) for kind in ("i8", "f4"))
    words = {"mode": "linear", "shape_calculation_mode": "scales", "antialias": True}
    net.result(net.add("Interpolate", "opset4", [x, sizes, scales], **words))
    for way in (ir.run, lambda model, given: ir.compile(model)(given)):
        (found,) = way(net.model(), [np.float32(3)]).values()
        assert (found.shape, found.item()) == ((), 3)
