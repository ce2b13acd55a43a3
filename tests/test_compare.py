"""Runs compared: the layer that is wrong is named, the healthy ones are not."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import Drawer
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.comparing import references
from vinoir.ir.comparing.runtimes import RuntimeProcess
from vinoir.layers import Op
from vinoir.schemas import UnsupportedError, UsageError

RELU = Op.find("ReLU", "opset1")
assert RELU is not None


def chain(layers: int = 6, *, size: int = 8, kind: str = "f32") -> ir.Model:
    """Convolutions and activations in a row."""
    net, rng = ir.Builder("chain"), np.random.default_rng(1)
    x = net.parameter("x", "f32", f"1,4,{size},{size}")
    for number in range(layers):
        w = net.constant(rng.standard_normal((4, 4, 1, 1)).astype("f4") / 2, name=f"w{number}")
        x = net.add(
            "Convolution", "opset1", [x, w], name=f"conv{number}", strides=(1, 1),
            pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1), auto_pad="explicit",
        )  # fmt: skip
        x = net.add("Elu", "opset1", [x], name=f"elu{number}", alpha=1.0).named(f"t{number}")
    net.result(x, name="y")
    return net.model()


def weights_of(model: ir.Model) -> list[ir.Layer]:
    return [x for x in model.order() if x.is_constant and x.value.dtype == np.float32]


@pytest.mark.parametrize("seed", range(12))
def test_a_changed_weight_is_found_at_the_layer_that_takes_it(seed: int) -> None:
    rng, drawn = random.Random(seed), seed
    while not (used := weights_of(Drawer(drawn).model())):
        drawn += 100
    model, other = Drawer(drawn).model(), used[0].model
    assert other is not None
    changed = rng.choice(used)
    value = changed.value.copy()
    value.reshape(-1)[rng.randrange(value.size)] += 0.25
    changed.set_value(value)
    takers = {user.name for user, _ in other.consumers(changed)}
    found = ir.compare(model, other, samples=3, seed=seed)
    if found.first is None:
        # Nothing that comes in meets the weight, as where an activation gives zeros.
        outputs = [ir.run(m, [np.ones(p.outputs[0].dims, "f4") for p in m.parameters])
                   for m in (model, other)]  # fmt: skip
        assert all(np.allclose(outputs[0][k], outputs[1][k]) for k in outputs[0])
        return
    assert found.first.place.name in takers
    assert changed.name in found.first.constants
    assert {step.place.name for step in found.wrong} <= takers


def test_an_attribute_is_found_and_what_follows_is_inherited() -> None:
    other = chain()
    layer = other.layer("elu2")
    layer.data = {**layer.data, "alpha": "0.9"}
    found = ir.compare(chain(), other)
    assert [step.place.name for step in found.wrong] == ["elu2"]
    later = {s.place.name: s.verdict for s in found.steps}
    assert later["conv1"] == "equal"
    assert later["conv3"] == later["elu5"] == "inherited"
    assert found.parts == found.first


def test_other_shapes_are_told() -> None:
    other = chain()
    layer = other.layer("conv2")
    layer.data = {**layer.data, "strides": "2, 2"}
    found = ir.compare(chain(), other)
    assert found.first is not None
    assert (found.first.place.name, found.first.verdict) == ("conv2", "shape")
    assert "8, 8" in found.first.reason
    assert len(found.wrong) == 1


def test_equal_models_are_equal_to_the_last_bit() -> None:
    found = ir.compare(chain(), chain(), samples=2)
    assert not found
    assert {step.verdict for step in found.steps} == {"equal"}
    assert len(found.steps) == 12


@pytest.mark.parametrize("seed", range(4))
def test_healthy_networks_agree_with_openvino(seed: int) -> None:
    pytest.importorskip("openvino")
    found = ir.compare(Drawer(seed).model(), "openvino", seed=seed)
    assert not found, str(found)
    assert not found.refused
    assert found.steps


def test_a_wrong_kernel_is_found_against_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "2,5")
    y = net.add("Sigmoid", "opset1", [x], name="before")
    y = net.add("Sinh", "opset1", [y], name="wrong")
    net.result(net.add("Tanh", "opset1", [y], name="after"), name="y")
    kind = Op.find("Sinh", "opset1")
    assert kind is not None
    monkeypatch.setattr(kind, "run", lambda self, data: (np.sinh(data) * np.float32(1.001),))
    found = ir.compare(net.model(), "openvino")
    assert found.first is not None
    assert found.first.place.name == "wrong"
    assert found.first.own == pytest.approx(1e-3, rel=0.7)
    after = next(step for step in found.steps if step.place.name == "after")
    assert after.verdict in ("inherited", "rounding")
    assert after.own < after.tolerance


def test_nan_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ir.Builder("one"), ir.Builder("two")
    for net, kind in ((one, "Log"), (two, "Abs")):
        x = net.parameter("x", "f32", "4")
        net.result(net.add(kind, "opset1", [x], name="layer"), name="y")
    found = ir.compare(one.model(), two.model(), [np.array([-1, 1, 2, 3], "f4")])
    assert found.first is not None
    assert found.first.verdict == "NaN"


def test_ties_are_no_fault(tmp_path: Path) -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "1,6")
    net.result(net.add("Convert", "opset1", [net.add("Round", "opset5", [x], name="round",
               mode="half_to_even")], name="whole", destination_type="i32"), name="y")  # fmt: skip
    given = np.array([[0.5, 1.5, 2.5, 0.1, 0.2, 0.3]], "f4")
    wanted = np.round(given)
    wanted[0, 0] = 1  # just above the edge
    np.savez(tmp_path / "told.npz", x=given, round=wanted)
    found = ir.compare(net.model(), tmp_path / "told.npz")
    (step,) = found.steps
    assert step.verdict in ("ties", "rounding")
    assert not found
    wanted[0, 3] = 1  # far from any edge
    np.savez(tmp_path / "told.npz", x=given, round=wanted)
    assert ir.compare(net.model(), tmp_path / "told.npz").first is not None


def test_a_tie_of_quantization_is_no_fault_beside_what_rounds_near_zero(tmp_path: Path) -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "1,4")
    ends = [net.constant(np.array([end], "f4")) for end in (-1, 1, -1, 1)]
    y = net.add("FakeQuantize", "opset1", [x, *ends], name="levels", levels=255,
                auto_broadcast="numpy")  # fmt: skip
    net.result(y, name="y")
    step = np.float32(2 / 254)
    given = np.array([[(200.5) * step - 1, 0.0, 0.3, -0.7]], "f4")
    told = ir.run(net.model(), [given])["y"].copy()
    told[0, 0] += step * (1 if told[0, 0] < given[0, 0] else -1)  # rounded to the other side
    told[0, 1] += np.float32(1e-8)  # where the sum of the offset cancels
    np.savez(tmp_path / "told.npz", x=given, levels=told)
    found = ir.compare(net.model(), tmp_path / "told.npz")
    assert not found, str(found)
    assert found.steps[0].verdict == "rounding"
    told[0, 2] += step  # far from any edge
    np.savez(tmp_path / "told.npz", x=given, levels=told)
    assert ir.compare(net.model(), tmp_path / "told.npz").first is not None


def test_a_weight_behind_a_conversion_is_told_however_little_it_changes() -> None:
    def made(last: float) -> ir.Model:
        net = ir.Builder("net")
        x = net.parameter("x", "f32", "1,1000")
        held = np.ones((1000, 4), "f2")
        held[-1, -1] = last
        w = net.add("Convert", "opset1", [net.constant(held, name="w")], destination_type="f32",
                    name="widened")  # fmt: skip
        y = net.add("MatMul", "opset1", [x, w], name="product", transpose_a=False,
                    transpose_b=False)  # fmt: skip
        net.result(y, name="y")
        return net.model()

    found = ir.compare(made(1.0), made(1.001), [np.ones((1, 1000), "f4")])
    assert found.first is not None
    assert (found.first.place.name, found.first.constants) == ("widened", ("w",))
    assert [step.place.name for step in found.wrong] == ["widened"]
    assert not ir.compare(made(1.0), made(1.0), [np.ones((1, 1000), "f4")])


def test_recorded_tensors_are_compared_from_the_nearest_that_is_recorded(tmp_path: Path) -> None:
    model = chain()
    x = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("f4")
    tensors = ir.run(model, [x], outputs=["t1", "t3", "t5"])
    told = {name: array.copy() for name, array in tensors.items()}
    np.savez(tmp_path / "well.npz", x=x, **told)
    assert not ir.compare(model, tmp_path / "well.npz")
    told["t3"] += np.float32(0.1)
    np.savez(tmp_path / "off.npz", x=x, **told)
    found = ir.compare(model, tmp_path / "off.npz")
    assert found.first is not None
    # What follows from the recorded values is off as well: t5 was recorded from others.
    assert [s.place.name for s in found.wrong] == ["elu3", "elu5"]


def test_half_precision_tells_what_has_to_stay() -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "1,4")
    y = net.add("Multiply", "opset1", [x, net.constant(np.float32(1e5))], name="large")
    y = net.add("Multiply", "opset1", [y, net.constant(np.float32(1e-5))], name="small")
    net.result(net.add("Tanh", "opset1", [y], name="tanh"), name="y")
    given = [np.array([[1, 2, -3, 0.5]], "f4")]
    found = ir.compare(net.model(), "f16", given)
    assert [step.place.name for step in found.wrong] == ["large"]
    assert not ir.compare(net.model(), "bf16", given)


def test_onnxruntime_is_asked_by_names(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(np.ones((3, 2), "f4"), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Tanh", ["m"], ["t"]),
        helper.make_node("Exp", ["t"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, 1, size) for name, size in
             (("x", [4, 3]), ("y", [4, 2]))]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    model = ir.from_onnx(tmp_path / "m.onnx")
    found = ir.compare(model, tmp_path / "m.onnx")
    assert not found
    assert len(found.steps) == 3
    constant = next(x for x in model.constants if x.value.size == 6)
    constant.set_value(constant.value * np.float32(1.1))
    found = ir.compare(model, "onnxruntime", onnx=str(tmp_path / "m.onnx"))
    assert found.first is not None
    assert found.first.place.type == "MatMul"


def test_no_all_clear_where_nothing_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models that have nothing in common are refused, with the inputs of both."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    nodes = [helper.make_node("Tanh", ["x"], ["y"])]
    ports = [helper.make_tensor_value_info(name, 1, [4, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    net = ir.Builder("other")
    x = net.parameter("image", "f32", (4, 3))
    y = net.add("Abs", "opset1", [x], name="abs")
    net.result(y, name="out")
    # One output on either side is paired, whatever its name; with another there is no telling.
    assert ir.compare(net.model(), tmp_path / "m.onnx").uncompared == ["abs"]
    net.result(y, name="again")
    ir.write(net.model(), tmp_path / "other.xml")
    with pytest.raises(SystemExit) as left:
        main(["compare", str(tmp_path / "other.xml"), "--against", str(tmp_path / "m.onnx")])
    out, err = capsys.readouterr()
    assert left.value.code == 2
    assert "nothing was compared: of 1 layers none has a counterpart in ONNX Runtime" in err
    assert "the model's inputs are image, its x" in err
    assert "none is wrong" not in out
    net.parameter("second", "f32", (4, 3))
    ir.write(net.model(), tmp_path / "other.xml")
    with pytest.raises(UsageError, match=r"has 2 inputs, .*m.onnx has 1") as refused:
        ir.compare(tmp_path / "other.xml", tmp_path / "m.onnx")
    assert refused.value.hint == "give the ONNX of the same model by --onnx FILE"
    # Where there is nothing to compare, nothing is wrong.
    net = ir.Builder("empty")
    net.result(net.parameter("image", "f32", (4, 3)), name="same")
    assert not ir.compare(net.model(), "f16")


def test_tensors_are_let_go(tmp_path: Path) -> None:
    size = 128  # 256 KB for each of 80 tensors of either run
    one, two = chain(40, size=size), chain(40, size=size)
    ir.compare(chain(2), chain(2))  # what is imported and kept does not count
    tracemalloc.start()
    try:
        ir.compare(one, two)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * 2 * 80 * 4 * size * size * 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"against": "nothing"}, "is nothing to compare with"),
        ({"against": "onnxruntime"}, "not read from a file"),
        ({"against": "none.npz"}, "is not there"),
        ({"against": "f16", "inputs": {}}, "no value is given"),
        ({"against": "f16", "inputs": [np.ones((1, 3), "f4")]}, "has the shape"),
        ({"against": "f16", "samples": 0}, "the least is 1"),
        ({"against": "f16", "tolerance": -1.0}, "the least is 0"),
    ],
)
def test_bad_use_is_answered(words: dict[str, Any], sentence: str) -> None:
    if words["against"] == "onnxruntime":
        pytest.importorskip("onnxruntime")
    with pytest.raises(ir.UsageError, match=sentence):
        ir.compare(chain(), **words)


def test_a_runtime_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.comparing.runtimes.find_spec", lambda name: None)
    with pytest.raises(ir.UsageError, match="openvino is not installed"):
        ir.compare(chain(), "openvino")


def test_the_command_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(chain(), tmp_path / "a.xml")
    other = chain()
    other.layer("elu2").data = {"alpha": "0.9"}
    ir.write(other, tmp_path / "b.xml")
    for against, code in (("a.xml", 0), ("b.xml", 5)):
        with pytest.raises(SystemExit) as left:
            main(
                [
                    "compare",
                    str(tmp_path / "a.xml"),
                    "--against",
                    str(tmp_path / against),
                    "--json",
                ]
            )
        assert (left.value.code or 0) == code
        told = json.loads(capsys.readouterr().out)
        assert (told["first"] is None) == (code == 0)
    assert told["first"]["place"]["name"] == "elu2"


LARGE = """
import sys
import numpy as np
from vinoir import ir

net = ir.Builder("large")
y = net.parameter("x", "f32", "1,4,512,512")
for number in range(40):
    scale = net.constant(np.full((1, 4, 1, 1), 1 + number / 100, "f4"))
    y = net.add("Sigmoid", "opset1", [net.add("Multiply", "opset1", [y, scale])])
net.result(y, name="y")
model = net.model()
image = np.random.default_rng(0).standard_normal((1, 4, 512, 512)).astype("f4")


def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10


ir.run(model, [image])
before = peak()
assert not ir.compare(model, sys.argv[1], [image])
print((peak() - before) // image.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no VmHWM")
@pytest.mark.parametrize("against", ["openvino", "compiled", "f16"])
def test_memory_is_that_of_a_few_layers(against: str) -> None:
    """80 tensors of 4 MB: neither all are held, nor several copies in 64 bits of one."""
    if against == "openvino":
        pytest.importorskip("openvino")
    done = subprocess.run(
        [sys.executable, "-c", LARGE, against], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < 50, done.stdout


FILE = """
import os
import sys
import numpy as np
from vinoir import ir

path, against = sys.argv[1:]
model = ir.read(path)
image = np.random.default_rng(0).standard_normal((1, 256, 16, 16)).astype("f4")


def now(what):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) << 10


ir.infer(model)
before = now("VmRSS")
assert not ir.compare(model, path if against == "other" else against, [image])
print((now("VmHWM") - before) / os.path.getsize(path[:-3] + "bin"))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no VmHWM")
@pytest.mark.parametrize("against", ["openvino", "compiled", "other"])
def test_memory_is_less_than_twice_the_weights(tmp_path: Path, against: str) -> None:
    """Twenty convolutions of 2.4 MB each; what pages of the file are read is let go of again."""
    if against == "openvino":
        pytest.importorskip("openvino")
    net, rng = ir.Builder("deep"), np.random.default_rng(1)
    x = net.parameter("x", "f32", "1,256,16,16")
    for number in range(20):
        w = net.constant(rng.standard_normal((256, 256, 3, 3)).astype("f4") / 48)
        x = net.add(
            "Convolution", "opset1", [x, w], name=f"conv{number}", strides=(1, 1),
            pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1), auto_pad="explicit",
        )  # fmt: skip
    net.result(x, name="y")
    ir.write(net.model(), tmp_path / "deep.xml")
    done = subprocess.run(
        [sys.executable, "-c", FILE, str(tmp_path / "deep.xml"), against],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert float(done.stdout) < 1.5, done.stdout


def test_each_layer_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants, of which nothing is told, are no reason to ask again for what comes after."""
    asked: list[int] = []
    ask = references.InPieces.told

    def told(self: Any, layers: Any, known: Any) -> Any:
        asked.append(len(layers))
        return ask(self, layers, known)

    monkeypatch.setattr(references.InPieces, "told", told)
    assert not ir.compare(chain(12), "compiled")
    assert len(asked) == 1


def test_a_runtime_that_crashes_is_told_though_what_it_started_lives_on(tmp_path: Path) -> None:
    class Crashing(RuntimeProcess):
        program = tmp_path / "worker.py"

    Crashing.program.write_text(
        "import os, pickle, subprocess, sys\n"
        "while True:\n"
        "    question, _ = pickle.load(sys.stdin.buffer)\n"
        "    if question == 'crash':\n"
        "        words = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "        other = subprocess.Popen(words)\n"
        "        print(other.pid, file=open(sys.argv[0] + '.pid', 'w'), flush=True)\n"
        "        os._exit(7)\n"
        "    pickle.dump((True, 'x' * 5_000_000), sys.stdout.buffer)\n"
        "    sys.stdout.flush()\n"
    )
    with Crashing("numpy") as process:
        assert len(process.version) == 5_000_000
        with pytest.raises(UnsupportedError, match=r"crashed \(exit 7\)"):
            process.ask("crash")
        assert len(process.ask("again")) == 5_000_000
    started = Path("/proc", (tmp_path / "worker.py.pid").read_text().strip(), "stat")
    assert not started.exists() or started.read_text().split()[2] == "Z"


def test_what_comes_after_a_layer_that_is_refused_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of forty layers one is refused and one is wrong: of none of the others nothing is told."""
    compute = references._compiled

    def picky(part: ir.Model, given: Any) -> Any:
        if any(x.name == "elu4" for x in part.layers if x.type != "Parameter"):
            raise UnsupportedError("elu4 is not known")
        found = compute(part, given)
        ends = [part.producer(x, 0) for x in part.results]
        return [
            array * np.float32(1.1) if end is not None and end[0].name == "elu9" else array
            for array, end in zip(found, ends, strict=True)
        ]

    monkeypatch.setattr(references, "_compiled", picky)
    found = ir.compare(chain(20), "compiled")
    assert found.refused == {"elu4": "elu4 is not known"}
    assert found.first is not None
    assert found.first.place.name == "elu9"
    names = {f"{kind}{n}" for kind in ("conv", "elu") for n in range(20)}
    assert {step.place.name for step in found.steps} == names - {"elu4"}


def test_what_takes_an_empty_tensor_is_asked_about() -> None:
    """As a cache is before the first step; told that size, OpenVINO would divide by it."""
    pytest.importorskip("openvino")
    net = ir.Builder("cache")
    past = net.parameter("past", "f32", "1,4,0,8")
    order = net.parameter("order", "i64", "1")
    x = net.parameter("x", "f32", "1,4,3,8")
    kept = net.add("Gather", "opset8", [past, order, net.constant(np.int64(0))], name="kept")
    both = net.add("Concat", "opset1", [kept, x], name="both", axis=2)
    net.result(net.add("Tanh", "opset1", [both], name="tanh"), name="y")
    given = [np.zeros((1, 4, 0, 8), "f4"), np.zeros(1, "i8"), np.ones((1, 4, 3, 8), "f4")]
    found = ir.compare(net.model(), "openvino", given)
    assert not found, str(found)
    assert not found.refused
    assert [step.place.name for step in found.steps] == ["kept", "both", "tanh"]


def test_a_place_where_only_one_is_no_number_is_named(tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "3")
    net.result(net.add("Sqrt", "opset1", [x], name="root"), name="y")
    model = net.model()

    path = tmp_path / "held.npz"

    def both(found: list[float]) -> ir.Comparison:
        np.savez(path, x=np.array([4, -1, 9], "f4"), root=np.array(found, "f4"))
        return ir.compare(model, path)

    assert not both([2, np.nan, 3])
    first = both([np.nan, 1, 3]).first
    assert first is not None
    assert first.verdict == "NaN"
    assert "[0] is 2, there nan" in first.reason


def test_files_of_inputs_are_as_many_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(chain(2), tmp_path / "a.xml")
    (tmp_path / "in").mkdir()
    for number in range(3):
        array = np.full((1, 4, 8, 8), number, "f4")
        np.save(tmp_path / "in" / f"{number}.npy", array)

    def told(*words: str, verb: str = "compare") -> tuple[int, str]:
        more = ["--against", "compiled"] if verb == "compare" else ["--fails", "run", "-o", "out"]
        with pytest.raises(SystemExit) as left:
            main([verb, str(tmp_path / "a.xml"), *more, *words])
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out + said.err

    for word in ("in", "in/*.npy"):
        code, text = told("-i", f"x={tmp_path}/{word}")
        assert code == 0
        assert "3 samples" in text.splitlines()[0]
    code, text = told("-i", f"x={tmp_path}/in", "--samples", "2")
    assert code == 2
    assert "--samples 2, but the files of the inputs are 3 samples" in text
    for verb in ("compare", "reduce"):
        code, text = told("-i", f"x={tmp_path}/in/0.npy", "--samples", "2", verb=verb)
        assert code == 2
        assert "no input is random: all would be the same" in text
    code, text = told("-i", "x=random:1,4,8,8", "--samples", "2")
    assert code == 0
    assert "2 samples" in text.splitlines()[0]
    code, text = told("-i", "y=zeros")
    assert code == 2
