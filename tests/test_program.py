"""Programs give what the definitions give, on networks made at random."""

from __future__ import annotations

import os

import numpy as np
import pytest
from networks import Drawer
from vinoir import ir
from vinoir.schemas import Array, UsageError

NETWORKS = int(os.environ.get("VINOIR_NETWORKS", "60"))


def feed(model: ir.Model, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    inferred = ir.infer(model)
    return [
        rng.standard_normal(inferred.of(p)[0].shape.static).astype("f4") for p in model.parameters
    ]


def assert_close(found: ir.Outputs, wanted: ir.Outputs, tolerance: float = 1e-4) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        scale = max(float(np.abs(array).max(initial=0)), 1e-6)
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_a_program_gives_what_the_definitions_give(seed: int) -> None:
    model = Drawer(seed).model(batch=1 + seed % 3)
    inputs = feed(model)
    program = ir.compile(model, threads=1 + seed % 2)
    wanted = ir.run(model, inputs)
    assert_close(program(inputs), wanted)
    # A second call, with other values, must not see what the first left in memory.
    others = feed(model, 1)
    assert_close(program(others), ir.run(model, others))
    assert_close(program(inputs), wanted)


def test_exact_keeps_to_the_definitions() -> None:
    model = Drawer(3).model()
    inputs = feed(model)
    found, wanted = ir.compile(model, exact=True)(inputs), ir.run(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_outputs_belong_to_the_caller() -> None:
    model = Drawer(5).model()
    program = ir.compile(model)
    first = program(feed(model))
    kept = {name: array.copy() for name, array in first.items()}
    program(feed(model, 1))
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])


def test_each_shape_gets_its_plan() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,2,?,?")
    w = net.constant(np.random.default_rng(0).standard_normal((3, 2, 3, 3)).astype("f4"))
    words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    net.result(net.add("Convolution", "opset1", [x, w], **words), name="y")
    model = net.model()
    program = ir.compile(model)
    for sizes in [
        (1, 2, 5, 5),
        (2, 2, 7, 4),
        (1, 2, 5, 5),
        (3, 2, 9, 9),
        (1, 2, 8, 8),
        (1, 2, 6, 6),
    ]:
        image = np.random.default_rng(1).standard_normal(sizes).astype("f4")
        assert_close(program([image]), ir.run(model, [image]))


def test_a_program_refuses_what_run_refuses() -> None:
    model = Drawer(1).model()
    program = ir.compile(model)
    with pytest.raises(UsageError, match=r'no input is named "y"'):
        program({"y": np.zeros(3, "f4")})
    with pytest.raises(UsageError, match="has the shape"):
        program([np.zeros((1, 99, 3, 3), "f4")])
