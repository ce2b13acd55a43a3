"""Hostile models: an answer in seconds, in bounded memory, and an error that says what to do."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import calls
import numpy as np
import pytest
from click.testing import CliRunner
from hostile.harness import broken
from hostile.mutants import nested
from oracle import Call
from pydantic import ValidationError
from vinoir import ir
from vinoir.ir.cli import cli
from vinoir.ir.cli.archive import save_arrays, saved_names
from vinoir.ir.engine.plan import unrolling
from vinoir.layers import budget as budgets
from vinoir.layers.budget import Budget, budget, within
from vinoir.layers.resources import available
from vinoir.schemas import Dim, IRError, LimitError, Shape, Tensor
from vinoir.schemas.shapes import LARGEST, MOST_AXES

HUGE = 2_000_000_000
#: What inference of one layer may take.
LITTLE = 50_000_000


# Shapes.


def test_ranks_and_sizes_beyond_arrays_are_refused() -> None:
    assert Shape([1] * MOST_AXES).rank == np.zeros([1] * MOST_AXES).ndim
    for made in (
        lambda: Shape([1] * (MOST_AXES + 1)),
        lambda: Shape(iter(range(HUGE))),
        lambda: Shape.of_rank(HUGE),
        lambda: Shape.parse(",".join("1" * 65)),
    ):
        with pytest.raises(IRError, match="axes, the most are 64"):
            made()
    with pytest.raises(IRError, match="size of 64 bits"):
        Shape([LARGEST + 1])


def test_named_sizes_do_not_grow_without_end() -> None:
    size: Any = Dim(0, None, "N") + 1
    for _ in range(60):
        size = size * size
    assert size.symbol is None
    size = Dim(0, None, "N") + 1
    for _ in range(60):
        size = size * size // 3
    assert size.symbol is None


def peak_of_inferring(op: Any, tensors: list[Tensor]) -> int:
    """Bytes that inference takes at its highest; refusing counts as an answer."""
    tracemalloc.start()
    try:
        op.infer_outputs(tensors)
    except (ValueError, ArithmeticError, LookupError):  # as errors with places take them
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_inputs_of_any_size_and_value_are_inferred_in_little_memory(call: Call) -> None:
    op = call.make()
    for known in (False, True):
        tensors = call.tensors(known=known)
        for index, tensor in enumerate(tensors):
            rank = tensor.rank or 1
            others = [Tensor(tensor.type, s) for s in ([HUGE], [HUGE] * rank, [1] * MOST_AXES)]
            if tensor.value is not None and tensor.value.dtype.kind == "i" and tensor.value.size:
                for number in (HUGE, LARGEST):
                    value = tensor.value.copy()
                    value.flat[0] = min(number, np.iinfo(value.dtype).max)
                    others.append(Tensor.of(value, tensor.type))
            for other in others:
                changed = [*tensors[:index], other, *tensors[index + 1 :]]
                assert peak_of_inferring(op, changed) < LITTLE, (index, str(other))


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_attributes_of_any_size_are_inferred_in_little_memory(call: Call) -> None:
    op, tensors = call.make(), call.tensors(known=True)
    for name, text in op.attributes().items():
        for number in (HUGE, 100_000_000):
            for other in (str(number), ", ".join([str(number), *text.split(",")[1:]])):
                try:
                    changed = type(op).read(op.attributes() | {name: other})
                except (ValidationError, ValueError):
                    continue
                assert peak_of_inferring(changed, tensors) < LITTLE, (name, other)


# Memory.


def machine(root: Path, files: dict[str, str]) -> Path:
    """A file system that tells of another machine."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


FREE = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n"}
INSIDE = FREE | {"proc/self/cgroup": "0::/a/b\n"}
OLDER = FREE | {"proc/self/cgroup": "3:cpu:/x\n2:memory,hugetlb:/a\n"}


@pytest.mark.skipif(os.name != "posix", reason="it is about files of Linux")
@pytest.mark.parametrize(
    ("files", "left"),
    [
        (FREE, 4000 << 10),
        (INSIDE, 4000 << 10),
        (INSIDE | {"sys/fs/cgroup/a/b/memory.max": "max\n"}, 4000 << 10),
        (INSIDE | {"sys/fs/cgroup/a/b/memory.max": "3000\n"}, 3000),
        # The group around it counts, and pages of files are given back.
        (
            INSIDE
            | {
                "sys/fs/cgroup/a/memory.max": "3000",
                "sys/fs/cgroup/a/memory.current": "2500",
                "sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 500\n",
            },
            1000,
        ),
        # In a container the path may be the host's.
        (INSIDE | {"sys/fs/cgroup/memory.max": "1000"}, 1000),
        (INSIDE | {"sys/fs/cgroup/memory.max": "9", "sys/fs/cgroup/memory.current": "99"}, 0),
        (
            OLDER
            | {
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000",
                "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "500",
            },
            1500,
        ),
    ],
)
def test_the_least_of_machine_and_control_groups_is_available(
    files: dict[str, str], left: int, tmp_path: Path
) -> None:
    assert available(machine(tmp_path, files)) == left


def test_a_limit_of_the_process_counts() -> None:
    resource = pytest.importorskip("resource")
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (5 << 40, limit[1]))
        assert available() <= 5 << 40
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limit)
    assert available() > 0


def test_arrays_that_are_alive_are_added_up() -> None:
    allowed = Budget(max_memory=1000)
    one = np.zeros(400, np.uint8)
    allowed.hold([one, one[:10]])
    assert allowed.held == 400
    allowed.require(600)
    with pytest.raises(
        LimitError, match=r"601 bytes are needed beside the 400.* 1000 are allowed"
    ):
        allowed.require(601)
    allowed.let_go([one])
    assert allowed.held == 400, "a view keeps it"
    allowed.let_go([one[:10]])
    assert allowed.held == 0


def chain(count: int, *, kept: bool) -> ir.Model:
    """Copies of a megabyte, each made of the one before; all handed out, or the last."""
    net = ir.Builder()
    one = net.parameter("x", "f32", [250_000])
    for number in range(count):
        one = net.add("Reverse", "opset1", [one, net.constant(np.array([0]))], mode="index")
        one = net.add("Abs", "opset1", [one])
        if kept or number == count - 1:
            net.result(one, name=f"y{number}")
    return net.model()


def test_a_run_holds_what_it_needs_later_alone() -> None:
    x = [np.ones(250_000, np.float32)]
    ir.run(chain(20, kept=False), x, max_memory=5_000_000)
    with pytest.raises(LimitError, match=r'layer \d+ ".*bytes are needed beside') as found:
        ir.run(chain(20, kept=True), x, max_memory=5_000_000)
    assert "--max-memory" in str(found.value)
    program = ir.compile(chain(20, kept=True), exact=True, max_memory=5_000_000)
    with pytest.raises(LimitError):
        program(x)
    with pytest.raises(LimitError):
        ir.compile(chain(20, kept=True), max_memory=5_000_000)


BRANCHES = {
    "convolutions": lambda o, x, one: o.ReLU(
        o.Convolution(
            x,
            np.full((4, 4, 1, 1), one, np.float32),
            strides=(1, 1),
            dilations=(1, 1),
            pads_begin=(0, 0),
            pads_end=(0, 0),
        )
    ),
    "products": lambda o, x, one: o.MatMul(x, np.full((64, 64), one / 64, np.float32)),
    "curves": lambda o, x, one: o.Sin(o.Multiply(x, np.float32(one))),
    "soft": lambda o, x, one: o.SoftMax(o.Multiply(x, np.float32(one)), axis=3),
}


@pytest.mark.parametrize("kind", BRANCHES)
def test_a_sum_of_branches_needs_no_more_for_more_of_them(kind: str) -> None:
    def model(count: int) -> ir.Model:
        net = ir.Builder()
        x = net.parameter("x", "f32", "1,4,64,64")
        branches = [BRANCHES[kind](ir.ops, x, number + 1) for number in range(count)]
        total = branches[0]
        for one in branches[1:]:
            total = ir.ops.Add(total, one)
        net.result(total, name="y")
        return net.model()

    x = np.random.default_rng(0).standard_normal((1, 4, 64, 64)).astype("f4")
    tensor = x.nbytes
    weights, rooms = 24 * 64 * 64 * 4, 100_000
    enough = 8 * tensor + weights + rooms
    found = ir.compile(model(24), max_memory=enough)({"x": x})["y"]
    np.testing.assert_allclose(found, ir.run(model(24), {"x": x})["y"], rtol=2e-5, atol=1e-4)


def model_of(kind: str, version: str, inputs: list[Any], attributes: dict[str, Any]) -> ir.Model:
    net = ir.Builder()
    given = [net.constant(value) for value in inputs]
    net.result(net.add(kind, version, given, name="odd", data=attributes))
    return net.model()


IMAGE = np.ones((1, 1, 4, 4), np.float32)
BOX = np.array([[0, 0, 3, 3]], np.float32)
#: A grid whose boxes with their variances have room, what is made on the way to them has not.
LINE = [np.array([1, 600_000]), np.array([10, 10])]
ROI = {
    "pooled_h": 2, "pooled_w": 2, "sampling_ratio": 20_000, "spatial_scale": 1.0, "mode": "max",
    "aligned_mode": "half_pixel",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "version", "inputs", "attributes"),
    [
        ("ROIAlign", "opset9", [IMAGE, BOX, np.array([0])], ROI),
        ("Inverse", "opset14", [np.eye(2000, dtype=np.float32)], {"adjoint": False}),
        (
            "SpaceToBatch",
            "opset2",
            [IMAGE, np.array([1, 1, 2, 2]), np.array([0, 0, 30_000, 30_000]), np.array([0] * 4)],
            {},
        ),
        ("PriorBox", "opset8", LINE, {"min_size": "2.0", "offset": 0.5}),
        ("PriorBoxClustered", "opset1", LINE, {"width": "4", "height": "2", "offset": 0.5}),
    ],
)  # fmt: skip
def test_large_arrays_that_lie_between_are_refused(
    kind: str, version: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    model = model_of(kind, version, inputs, attributes)
    with pytest.raises(LimitError, match=r'"odd".*not enough memory: \d+ bytes are needed'):
        ir.run(model, max_memory=40_000_000)


def test_what_gives_nothing_takes_nothing() -> None:
    sizes = [np.array([0, 400_000_000]), np.array([10, 10])]
    model = model_of("PriorBox", "opset8", sizes, {"min_size": "2.0", "offset": 0.5})
    tracemalloc.start()
    try:
        (found,) = ir.run(model).values()
        assert found.shape == (2, 0)
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


# Time.


def loops(depth: int, turns: int) -> ir.Model:
    xml, weights = nested(depth, turns)
    return ir.loads(xml, weights)


def test_loops_in_loops_give_what_they_should() -> None:
    assert ir.run(loops(3, 3), [0.0])["y"] == 27
    assert ir.compile(loops(2, 3))([0.0])["y"] == 9


def test_all_loops_of_a_run_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_STEPS", 40_000)
    monkeypatch.setattr(unrolling, "MOST", 0)  # known turns would take the place of the inner ones
    assert ir.run(loops(2, 20), [0.0])["y"] == 400
    for call in (lambda: ir.run(loops(3, 20), [0.0]), lambda: ir.compile(loops(3, 20))([0.0])):
        with pytest.raises(LimitError, match=r"more than 40000 steps.*--max-seconds"):
            call()
    # Who says how long it may take is not stopped by their number.
    assert ir.run(loops(3, 20), [0.0], max_seconds=60)["y"] == 8000


def test_bodies_are_inferred_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_STEPS", 100)
    with pytest.raises(LimitError):
        ir.infer(loops(3, 2))
    with pytest.raises(LimitError):
        ir.check(loops(3, 2))


def test_time_ends_a_loop_a_sequence_and_a_choice_among_boxes() -> None:
    with pytest.raises(LimitError, match=r"more than 0\.2 seconds"):
        ir.run(loops(3, 1000), [0.0], max_seconds=0.2)
    net = ir.Builder()
    steps = 3_000_000
    given = [
        net.parameter("x", "f32", [1, steps, 1]),
        net.constant(np.zeros((1, 1, 1), "f4")),
        net.constant(np.array([steps])),
        *(net.constant(np.zeros(shape, "f4")) for shape in ((1, 3, 1), (1, 3, 1), (1, 3))),
    ]
    gru = net.add("GRUSequence", "opset5", given, hidden_size=1, direction="forward")
    net.result(gru[0])
    with pytest.raises(LimitError, match="seconds"):
        ir.run(net.model(), [np.zeros((1, steps, 1), "f4")], max_seconds=0.2)
    boxes = np.zeros((1, 200_000, 4), "f4")
    boxes[..., :2] = np.random.default_rng(0).random((200_000, 2)) * 450
    boxes[..., 2:] = boxes[..., :2] + 1.3
    few = [np.array(n) for n in (200_000,)], [np.array(n, "f4") for n in (0.9, 0.0)]
    net = ir.Builder()
    inputs = [boxes, np.ones((1, 1, 200_000), "f4"), *few[0], *few[1]]
    net.result(net.add("NonMaxSuppression", "opset9", [net.constant(x) for x in inputs])[0])
    with pytest.raises(LimitError, match="seconds"):
        ir.run(net.model(), max_seconds=0.2)


def test_a_budget_within_another_is_that_one_where_nothing_new_is_allowed() -> None:
    with within(max_memory=10) as outer:
        with within():
            assert budget() is outer
        with within(max_memory=5):
            assert budget() is not outer
    with pytest.raises(ir.UsageError, match="max_seconds is -1"), within(max_seconds=-1):
        pass


# The command line.


def written(folder: Path, xml: str, weights: bytes = b"") -> str:
    path = folder / "m.xml"
    path.write_text(xml)
    path.with_suffix(".bin").write_bytes(weights)
    return str(path)


def with_input(shape: str, kind: str = "f32") -> str:
    return (
        '<net name="m" version="11"><layers><layer id="0" name="x" type="Parameter" '
        f'version="opset1"><data shape="{shape}" element_type="{kind}" /><output><port id="0" '
        'precision="FP32" /></output></layer><layer id="1" name="y" type="Result" '
        'version="opset1"><input><port id="0" precision="FP32" /></input></layer></layers><edges>'
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0" /></edges></net>'
    )


@pytest.mark.parametrize("word", ["random", "zeros", "ones"])
@pytest.mark.parametrize(
    ("xml", "says"),
    [
        (with_input("1000000000,1000000000"), "not enough memory"),
        (with_input(",".join("1" * 70)), "axes, the most are 64"),
        (with_input("2", "dynamic"), "no element type"),
        (with_input("..."), "no rank"),
    ],
)
def test_inputs_are_made_of_bounded_size(xml: str, says: str, word: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["run", written(tmp_path, xml), "--input", f"x={word}"])
    assert isinstance(result.exception, IRError)
    assert says in str(result.exception)


@pytest.mark.parametrize("verb", ["run", "infer", "check"])
def test_verbs_take_limits(verb: str, tmp_path: Path) -> None:
    path = written(tmp_path, *nested(1, 3))
    enough = ["--max-memory", "1.5G", "--max-seconds", "60"]
    assert CliRunner().invoke(cli, [verb, path, *enough]).exit_code == 0
    odd = CliRunner().invoke(cli, [verb, path, "--max-memory", "much"])
    assert odd.exit_code == 2
    assert "500M" in odd.output


def test_run_refuses_more_memory_than_it_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, with_input("1000,1000"))
    result = CliRunner().invoke(cli, ["run", path, "--max-memory", "2MB"])
    assert isinstance(result.exception, LimitError)
    assert "2000000 are allowed" in str(result.exception)
    assert result.exception.exit_code == 4


def test_arrays_are_saved_under_any_names(tmp_path: Path) -> None:
    arrays = {name: np.array(index) for index, name in enumerate(
        ["file", "../../up", "up", "/etc/x", "C:\\y", "a/b:0", "", "..", "self", "n\x00\x1b"]
    )}  # fmt: skip
    save_arrays(arrays, str(tmp_path / "a.npz"))
    with np.load(tmp_path / "a.npz") as content:
        assert sorted(int(content[name]) for name in content.files) == list(range(len(arrays)))
        for name, own in saved_names(arrays).items():
            assert content[name] == arrays[own]
            assert not name.startswith("/")
            assert ".." not in name.split("/")
    assert {"file", "up", "up#1", "a/b:0"} <= set(saved_names(arrays))


def test_outputs_of_one_layer_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 300
    net = ir.Builder()
    x = net.parameter("x", "f32", [count])
    pieces = net.add("Split", "opset1", [x, net.constant(np.array(0))], num_splits=count)
    for index in range(count):
        net.result(pieces[index].named("same", f"n{index}"), name=f"r{index}")
    model = ir.loads(*ir.dumps(net.model()))
    seen: list[str] = []
    read = ir.Layer.port_ids

    def port_ids(layer: ir.Layer, tag: str) -> list[int]:
        if layer.type == "Split" and tag == "output":
            seen.append(layer.name)
        return read(layer, tag)

    monkeypatch.setattr(ir.Layer, "port_ids", port_ids)
    ir.infer(model)
    outputs = ir.run(model, [np.arange(count, dtype=np.float32)])
    assert [float(array[0]) for array in outputs.values()] == list(range(count))
    assert len(seen) < 10


# ONNX.


def test_onnx_splits_and_functions_that_come_to_too_much() -> None:
    helper = pytest.importorskip("onnx").helper
    x, y = (helper.make_tensor_value_info(name, 1, [None]) for name in "xy")

    def document(node: Any, functions: list[Any]) -> bytes:
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
        graph = helper.make_graph([node], "g", [x], [y])
        made = helper.make_model(graph, opset_imports=opsets, functions=functions)
        found: bytes = made.SerializeToString()
        return found

    for room in (4, None, 2**40):
        x = helper.make_tensor_value_info("x", 1, [room])
        node = helper.make_node("Split", ["x"], ["y"], num_outputs=2**40)
        with pytest.raises(IRError, match="pieces are asked for"):
            ir.from_onnx(document(node, []))
    functions = []
    for number in range(31):
        inner = [("Neg", "")] * 2 if not number else [(f"f{number - 1}", "d")] * 2
        nodes = [
            helper.make_node(kind, [one], [other], domain=domain)
            for (kind, domain), (one, other) in zip(inner, (("x", "a"), ("a", "y")), strict=True)
        ]
        own = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
        functions.append(helper.make_function("d", f"f{number}", ["x"], ["y"], nodes, own))
    node = helper.make_node("f30", ["x"], ["y"], domain="d")
    with pytest.raises(IRError, match="functions come to more than"):
        ir.from_onnx(document(node, functions))


# Everything.


def test_mutants_end_in_an_answer_or_an_error() -> None:
    cases = 40 * int(os.environ.get("VINOIR_CASES", "3"))
    complaints = list(broken(1_000_000, 1_000_000 + cases))
    assert not complaints, "\n".join(complaints)


def test_time_is_looked_at_between_the_steps_of_a_program() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,8")
    for _ in range(4):
        matrix = net.constant(np.eye(8, dtype=np.float32))
        x = net.add("MatMul", "opset1", [x, matrix], transpose_a=False, transpose_b=False)
    net.result(x, name="y")
    program = ir.compile(net.model())
    program.max_seconds = 0.0
    with pytest.raises(LimitError, match="more than 0 seconds"):
        program([np.ones((1, 8), np.float32)])
    program.max_seconds = None
    np.testing.assert_array_equal(program([np.ones((1, 8), np.float32)])["y"], np.ones((1, 8)))


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("numbers", [(1,), (4,)])
def test_programs_for_endless_axes_are_refused_before_they_are_prepared(
    axis: int, numbers: tuple[int, ...]
) -> None:
    """What is known of each place of an axis takes memory, too."""
    shape = [1, 4, 4, 4]
    shape[axis] = 1 << 42
    net = ir.Builder("endless")
    x = net.parameter("x", "f32", shape)
    held = numbers if axis != 3 else (1,)
    for kind in ("Multiply", "Add", "Subtract"):
        x = net.add(kind, "opset1", [x, np.ones(held, np.float32)])
    net.result(net.add("ReLU", "opset1", [x]))
    given = {"x": np.broadcast_to(np.float32(1), shape)}
    with pytest.raises(LimitError, match=r'layer \d+ "Multiply.*not enough memory'):
        ir.compile(net.model(), threads=1, fork=False)(given)


def test_memory_that_is_not_there_for_passes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def grasping(plan: object) -> None:
        raise MemoryError("16 GiB")

    monkeypatch.setattr("vinoir.ir.engine.passes.PASSES", (grasping,))
    net = ir.Builder("small")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", (2,))]))
    with pytest.raises(LimitError, match="not enough memory to prepare it: 16 GiB"):
        ir.compile(net.model(), threads=1)({"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_weights_that_a_program_keeps_are_counted(kind: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,256")
    for _ in range(8):
        weights = net.constant(np.ones((256, 256), "f4" if kind == "f32" else "f2"))
        if kind == "f16":
            weights = net.add("Convert", "opset1", [weights], destination_type="f32")
        x = net.add("MatMul", "opset1", [x, weights])
    net.result(x)
    model, held = net.model(), 8 * 256 * 256 * 4
    with pytest.raises(LimitError, match="not enough memory"):
        ir.compile(model, max_memory=held // 2)([np.ones((1, 256), "f4")])
    most = 2 * held if kind == "f16" else held  # as they are widened, and in their order
    assert ir.compile(model, max_memory=most + 2**20)([np.ones((1, 256), "f4")])


def test_weights_that_are_multiplied_as_they_lie_are_not_counted(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 1024))
    weights = np.ones((1024, 1024), "f4")  # at the start of the file
    net.result(net.add("MatMul", "opset1", [x, weights], transpose_b=True))
    path = tmp_path / "m.xml"
    ir.write(net.model(), path)
    (found,) = ir.compile(path, max_memory=2**20)([np.ones((1, 1024), "f4")]).values()
    assert (found == 1024).all()


def test_what_the_machine_has_not_for_a_program_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("vinoir.ir.engine.program.build", exhausted)
    with pytest.raises(LimitError, match=r"not enough memory to prepare it: Unable .* 9 TiB"):
        ir.compile(chain(3, kept=False))


@pytest.mark.parametrize(("kind", "opset"), [("AdaptiveAvgPool", "opset8"), ("DFT", "opset7")])
def test_sizes_that_values_tell_are_asked_for_in_programs(kind: str, opset: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,2" if kind == "DFT" else "1,1,4")
    size = net.parameter("size", "i64", "1")
    axes = [net.constant(np.array([1]))] if kind == "DFT" else []
    net.result(net.add(kind, opset, [x, *axes, size]))
    shape = (1, 4, 2) if kind == "DFT" else (1, 1, 4)
    program = ir.compile(net.model(), max_memory=50_000_000)
    with pytest.raises(LimitError, match="not enough memory"):
        program([np.zeros(shape, "f4"), np.array([50_000_000])])
