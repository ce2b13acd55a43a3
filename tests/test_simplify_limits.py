"""Models in which a pattern is all but there: the rule stays away, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simplify_patterns import Net
from vinoir import ir

Build = Callable[[ir.Builder, Net], None]


def modelled(build: Build) -> ir.Model:
    net = ir.Builder("limits")
    build(net, Net(net))
    return net.model()


def unchanged(model: ir.Model, rule: str, *fed: np.ndarray) -> None:
    """A rule stays away from a model, and what is left of it computes the same."""
    new, done = ir.simplify(model)
    assert rule not in done.rules
    before, after = ir.run(model, list(fed)), ir.run(new, list(fed))
    assert list(before) == list(after)
    for name, array in before.items():
        assert array.shape == after[name].shape
        np.testing.assert_allclose(array, after[name], rtol=1e-6)


def widened_rows(shape: str) -> Build:
    def build(net: ir.Builder, n: Net) -> None:
        x = net.parameter("x", "f32", shape)
        net.result(n.matmul(n("Multiply", x, n.numbers(4)), n.numbers(4, 5)), name="y")

    return build


def widened_image(net: ir.Builder, n: Net) -> None:
    x = net.parameter("x", "f32", "2,1,6,6")
    net.result(n.convolution(n("Multiply", x, n.numbers(1, 4, 1, 1))), name="y")


@pytest.mark.parametrize(
    ("build", "given"),
    [
        (widened_rows("3,1"), (3, 1)),
        (widened_rows("3,?"), (3, 1)),
        (widened_rows("3,?"), (3, 4)),
        (widened_image, (2, 1, 6, 6)),
    ],
)
def test_a_scale_that_makes_more_channels_stays(build: Build, given: tuple[int, ...]) -> None:
    fed = np.random.default_rng(3).random(given, np.float32)
    unchanged(modelled(build), "scale-into-weights", fed)


@pytest.mark.parametrize(
    ("shape", "sizes", "gathered"),
    [
        ("2,?,?", [-1, 0], False),
        ("2,?,5", [5, -1], False),
        ("2,?,?", [0, -1], False),
        ("2,?,5", [-1, 5], True),
    ],
)
def test_parts_that_get_another_shape_stay(shape: str, sizes: list[int], gathered: bool) -> None:
    def build(net: ir.Builder, n: Net) -> None:
        parts = n("Split", net.parameter("x", "f32", shape), 0, num_splits=2)
        for part, name in zip(parts, "yz", strict=True):
            net.result(n("Exp", n("Reshape", part, sizes, special_zero=True)), name=name)

    model, fed = modelled(build), np.random.default_rng(3).random((2, 3, 5), np.float32)
    if not gathered:
        unchanged(model, "parts-into-gathers", fed)
        return
    new, done = ir.simplify(model)
    assert done.rules["parts-into-gathers"] == 1
    np.testing.assert_array_equal(ir.run(new, [fed])["z"], np.exp(fed[1]))
