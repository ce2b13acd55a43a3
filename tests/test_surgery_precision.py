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


QUANTIZED = [("u8", "const", True), ("i8", "const", True), ("u8", "input", False),
             ("i32", "const", False), ("fake", "const", True)]  # fmt: skip


@pytest.mark.parametrize(("kind", "factor", "whole"), QUANTIZED)
def test_quantized_models_stay_whole(kind: str, factor: str, whole: bool, tmp_path: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "2")
    one = net.constant(np.full(2, 2, "f4"), name="one")
    if kind == "fake":
        y = net.add("FakeQuantize", "opset1", [x, *[one] * 4], levels=256)
    else:
        numbers = net.constant(np.array([1, 2]), kind)
        wide = net.add("Convert", "opset1", [numbers], destination_type="f32")
        y = net.add("Multiply", "opset1", [wide, one if factor == "const" else x])
    net.result(net.add("Add", "opset1", [y, net.constant(np.ones(2, "f4"), name="other")]))
    net.result(x)
    ir.write(net.model(), tmp_path / "m.xml")
    small = ir.compress(ir.read(tmp_path / "m.xml")).model
    assert ("other" in held(small)) is whole
    assert held(small) == held(saved_by_openvino([tmp_path / "m.xml"])[0])


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
