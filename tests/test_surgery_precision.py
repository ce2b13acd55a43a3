"""Weights in half precision: those that OpenVINO compresses, with its bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from networks import Drawer
from vinoir import ir

#: Values, and whether OpenVINO stores them in f16.
VALUES: list[tuple[list[float], bool]] = [
    ([0.5], True), ([0.1], False), ([1.00001], True), ([65504.0], True), ([65505.0], False),
    ([0.0], True), ([0.1, 0.1], True), ([1e9, 1e9, 1.0, 1.0], True), ([1e9] * 3 + [1.0], False),
    ([65504.5] * 4, False), ([1e-9] * 3 + [1.0], False), ([1e-9] * 3 + [1.0, 1.0], True),
    ([float("nan")] * 2, False), ([float("inf"), 1.0, 1.0, 1.0, 1.0], True),
    ([4485.4140625] * 2, False),
]  # fmt: skip

SAVE = """
import sys, openvino
for path in sys.argv[1:]:
    model = openvino.Core().read_model(path)
    openvino.save_model(model, path[:-4] + ".half.xml", compress_to_fp16=True)
"""


def saved_by_openvino(paths: list[Path]) -> list[ir.Model]:
    pytest.importorskip("openvino")
    subprocess.run([sys.executable, "-c", SAVE, *map(str, paths)], check=True)
    return [ir.read(path.with_suffix(".half.xml")) for path in paths]


def held(model: ir.Model) -> dict[str, tuple[str, bytes]]:
    """Type and bytes of every constant that is used."""
    used = {layer.id for layer in model.order()}
    return {
        layer.name: (str(layer.element_type), bytes(np.frombuffer(layer.blob, np.uint8)))
        for layer in model.constants
        if layer.id in used
    }


def test_values_as_openvino(tmp_path: Path) -> None:
    net = ir.Builder("m")
    for number, (value, _) in enumerate(VALUES):
        x = net.parameter(f"x{number}", "f32", (len(value),))
        constant = net.constant(np.array(value, "f4"), name=f"c{number}")
        net.result(net.add("Add", "opset1", [x, constant]))
    ir.write(net.model(), tmp_path / "m.xml")
    done = ir.compress(ir.read(tmp_path / "m.xml"))
    for number, (_, small) in enumerate(VALUES):
        assert (f"c{number}_compressed" in held(done.model)) is small, VALUES[number]
    assert held(done.model) == held(saved_by_openvino([tmp_path / "m.xml"])[0])


def test_networks_as_openvino_and_back(tmp_path: Path) -> None:
    paths = [tmp_path / f"n{seed}.xml" for seed in range(8)]
    for seed, path in enumerate(paths):
        ir.write(Drawer(seed).model(), path)
    for path, theirs in zip(paths, saved_by_openvino(paths), strict=True):
        model = ir.read(path)
        small = ir.compress(model).model
        assert held(small) == held(theirs)
        assert not ir.check(ir.loads(*ir.dumps(small))).errors
        again = ir.decompress(ir.loads(*ir.dumps(small))).model
        assert [(x.name, x.type) for x in again] == [(x.name, x.type) for x in model]
        twice = ir.compress(again).model
        assert held(twice) == held(small), "what was rounded once stays"


#: Levels, zero point and scale: ``x`` is the input, else the type of a constant, with ``>`` of
#: one that is converted; and whether OpenVINO takes the model for quantized: all constants stay.
QUANTIZED = [
    *((kind, "", "f32", True) for kind in ("u8", "i8", "u4", "i4", "nf4", "f8e4m3", "f8e5m2")),
    *((kind, "", "f32", False) for kind in ("u2", "u3", "f4e2m1", "f8e8m0", "f16", "i32")),
    ("u8", "f32", "f32", True), ("u8", ">u8", "f32", True), ("u8", "x", "f32", False),
    ("u8", "", "x", False), ("i4", "f32", "x", False),
    ("u8", "", ">f16", False), ("f8e4m3", "", ">f8e8m0", False), ("i4", ">i4", ">f16", False),
]  # fmt: skip


def test_models_of_quantized_weights_stay_whole_as_in_openvino(tmp_path: Path) -> None:
    def made(said: str) -> ir.Output:
        ones = x if said == "x" else net.constant(np.ones(2), said.removeprefix(">"))
        wide = {"destination_type": "f32"}
        return net.add("Convert", "opset1", [ones], **wide) if said.startswith(">") else ones

    paths = []
    for number, (kind, zero, scale, _) in enumerate(QUANTIZED):
        for side in (1, -1):
            net = ir.Builder("m")
            x = net.parameter("x", "f32", "2")
            y = made(f">{kind}")
            if zero:
                y = net.add("Subtract", "opset1", [y, made(zero)])
            y = net.add("Multiply", "opset1", [y, made(scale)][::side])
            other = net.constant(np.ones(2, "f4"), name="other")
            net.result(net.add("Add", "opset1", [net.add("Add", "opset1", [y, other]), x]))
            paths.append(tmp_path / f"m{number}{side}.xml")
            ir.write(net.model(), paths[-1])
    theirs = saved_by_openvino(paths)
    for index, (path, saved) in enumerate(zip(paths, theirs, strict=True)):
        small = held(ir.compress(ir.read(path)).model)
        assert small == held(saved), QUANTIZED[index // 2]
        assert ("other" in small) is QUANTIZED[index // 2][-1], QUANTIZED[index // 2]


def test_models_that_quantize_values_stay_whole_as_in_openvino(tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "2")
    one = net.constant(np.full(2, 2, "f4"), name="one")
    net.result(net.add("FakeQuantize", "opset1", [x, *[one] * 4], levels=256))
    ir.write(net.model(), tmp_path / "m.xml")
    small = held(ir.compress(ir.read(tmp_path / "m.xml")).model)
    assert set(small) == {"one"}
    assert small == held(saved_by_openvino([tmp_path / "m.xml"])[0])


def test_what_shapes_are_computed_from_stays(tmp_path: Path) -> None:
    def two(name: str, *shape: int) -> ir.Output:
        return net.constant(np.full(shape, 2, "f4"), name=name)

    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,2,?,?")
    wide = net.add("Multiply", "opset1", [x, two("before", 1, 2, 1, 1)])
    sizes = net.add("Convert", "opset1", [net.add("ShapeOf", "opset3", [wide], output_type="i64")],
                    destination_type="f32")  # fmt: skip
    sizes = net.add("Multiply", "opset1", [sizes, two("inside", 4)])
    sizes = net.add("Convert", "opset1", [sizes], destination_type="i64")
    net.result(net.add("Broadcast", "opset3", [two("data"), sizes], mode="numpy"))
    net.result(net.add("Multiply", "opset1", [two("w", 2, 2), two("s", 2, 1)]))
    ir.write(net.model(), tmp_path / "m.xml")
    small = ir.compress(ir.read(tmp_path / "m.xml")).model
    (theirs,) = saved_by_openvino([tmp_path / "m.xml"])
    assert held(small) == held(theirs)
    kept = ir.compress(ir.read(tmp_path / "m.xml"), keep="w|s").report
    assert {"w", "s", "inside"} <= {x.layer for x in kept.changes if x.kind == "kept"}


def test_large_weights_do_not_fill_the_memory(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is told by /proc")
    net = ir.Builder("large")
    x = net.parameter("x", "f32", "1,4096")
    for number in range(6):
        # Different constants of 64 MB each, zero but for one number: quickly made.
        weights = np.zeros((4096, 4096), "f4")
        weights[number] = 1.5
        x = net.add("MatMul", "opset1", [x, net.constant(weights, name=f"w{number}")],
                    transpose_a=False, transpose_b=False)  # fmt: skip
    net.result(x, name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    program = f"""
from vinoir import ir
model = ir.read({str(tmp_path / "m.xml")!r})
ir.write(ir.compress(model).model, {str(tmp_path / "half.xml")!r})
ir.write(ir.merge([model, model], prefixes=["a", "b"]).model, {str(tmp_path / "two.xml")!r})
ir.simplify(ir.read({str(tmp_path / "m.xml")!r}))
assert not ir.diff(model, ir.read({str(tmp_path / "m.xml")!r}))
assert ir.diff(model, ir.read({str(tmp_path / "half.xml")!r}))
# Of this program alone: what getrusage tells begins with its parent's.
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM:")))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           check=True, env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert (tmp_path / "half.bin").stat().st_size == 6 * 32 * 2**20
    assert (tmp_path / "two.bin").stat().st_size == 6 * 64 * 2**20, "equal constants once"
    assert int(found.stdout) < 300_000, "kilobytes at the most"
