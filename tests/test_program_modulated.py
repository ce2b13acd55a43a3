"""Convolutions by weights that the network computes give what the definition gives."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_program_convolutions import words
from test_program_families import Same
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.kernels import convolution, depthwise
from vinoir.ir.engine.kernels.convolution_work import Work
from vinoir.ir.engine.workers import Part
from vinoir.schemas import Array


def modulated(draw: Draw) -> None:
    """Weights multiplied by what comes in, of one group and several, over one axis and two."""
    axes, groups = draw.pick(1, 2, 2), draw.pick(1, 1, 2, 3)
    inner, each = draw.pick(1, 3, 8, 40), draw.pick(1, 5, 16, 48, 100)
    x = draw.image(axes, groups * inner)
    kernel = [draw.number(1, 3) for _ in range(axes)]
    lead = (groups, each) if groups > 1 else (each,)
    y = weights(draw, (*lead, inner, *kernel))
    kind = "GroupConvolution" if groups > 1 else "Convolution"
    y = draw.add(kind, "opset1", x, y, **words(draw, kernel))
    if draw.chance():
        y = draw.add("Add", "opset1", y, draw.constant(draw.array(1, groups * each, *[1] * axes)))
    draw.check(draw.surrounded(y))


def each_alone(draw: Draw) -> None:
    """Each channel by a window of its own, as trackers look for one image in another."""
    axes, groups = draw.pick(1, 2, 2), draw.pick(2, 8, 24, 70, 160)
    made, kernel = draw.pick(1, 1, 1, 2, 3, 5), [draw.number(1, 3) for _ in range(axes)]
    x = draw.image(axes, groups)
    shape = groups, made, 1, *kernel
    if draw.chance(0.3):  # a part of a larger tensor
        axis = draw.pick(0, 1)
        whole = weights(draw, tuple(n * 2 if at == axis else n for at, n in enumerate(shape)))
        ends = [draw.constant(np.array([n])) for n in (shape[axis], 2 * shape[axis], 1, axis)]
        y = draw.add("Slice", "opset8", whole, *ends)
    else:
        y = weights(draw, shape)
    y = draw.add("GroupConvolution", "opset1", x, y, **words(draw, kernel))
    if draw.chance():
        y = draw.add("Add", "opset1", y, draw.constant(draw.array(1, groups * made, *[1] * axes)))
    draw.check(draw.surrounded(y))


def weights(draw: Draw, shape: tuple[int, ...]) -> ir.builder.Output:
    """Weights that come in, or are multiplied by what does; their axes may lie another way."""
    if draw.chance(0.2):
        return draw.input(*shape)
    order = draw.rng.permutation(len(shape)) if draw.chance(0.3) else np.arange(len(shape))
    given = draw.constant(draw.array(*(shape[axis] for axis in order)))
    scaled = draw.add("Multiply", "opset1", given, draw.input(1))
    if (order == np.arange(len(shape))).all():
        return scaled
    return draw.add("Transpose", "opset1", scaled, draw.constant(np.argsort(order)))


@pytest.mark.parametrize("seed", range(4 * DRAWS))
def test_computed_weights_give_what_the_definition_gives(seed: int) -> None:
    modulated(Draw(seed))


@pytest.mark.parametrize("seed", range(6 * DRAWS))
def test_computed_windows_of_each_channel(seed: int) -> None:
    each_alone(Draw(seed))


@pytest.mark.parametrize("seed", range(100, 108))
@pytest.mark.parametrize("drawn", [modulated, each_alone])
def test_the_answer_is_one_whoever_works(seed: int, drawn: Callable[[Draw], None]) -> None:
    drawn(Same(seed))


def test_rows_are_summed_by_windows_that_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def told(work: Work, computed: Array | None = None) -> list[list[Part]]:
        asked.append(computed)
        return depthwise.depthwise(work, computed)

    monkeypatch.setattr(convolution, "depthwise", SimpleNamespace(depthwise=told))
    draw = Draw(3)
    x = draw.add("ReLU", "opset1", draw.input(1, 32, 29, 29))
    found = draw.add("ReLU", "opset1", draw.input(32, 1, 1, 5, 5))
    draw.check(draw.add("GroupConvolution", "opset1", x, found, **windows(2)))
    assert asked
    assert all(computed is not None for computed in asked)


def test_each_call_takes_the_weights_of_its_own() -> None:
    draw = Draw(2)
    style = draw.input(1, 8, 1, 1)
    scaled = draw.add("Multiply", "opset1", draw.constant(draw.array(16, 8, 3, 3)), style)
    x = draw.add("ReLU", "opset1", draw.input(1, 8, 20, 20))
    draw.net.result(draw.add("Convolution", "opset1", x, scaled, **windows(2)))
    program = ir.compile(draw.net.model(), threads=1, fork=False)
    image = draw.array(1, 8, 20, 20)
    once, twice = (
        next(iter(program([np.full((1, 8, 1, 1), by, "f4"), image]).values())) for by in (1, 2)
    )
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-5)


def test_windows_are_gathered_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Work] = []

    def told(work: Work, blocks: list[Array]) -> list[list[Part]]:
        asked.append(work)
        return gathered(work, blocks)

    gathered = convolution.gathered
    monkeypatch.setattr(convolution, "gathered", told)
    draw = Draw(2)
    x = draw.add("ReLU", "opset1", draw.input(1, 8, 20, 20))
    filters = draw.add("Multiply", "opset1", draw.constant(draw.array(16, 8, 3, 3)), draw.input(1))
    draw.check(draw.add("Convolution", "opset1", x, filters, **windows(2)))
    assert asked
