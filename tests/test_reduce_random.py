"""Failures made at random in networks come down to the few operations that fail."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_faults import WRONG, Feeds, fixed, kernels, trace, wrong_kernel
from test_faults import drawn, feeds_of, first_feeds
from test_faults import network as network
from test_reduce import operations
from vinoir import ir
from vinoir.ir.comparing.references import TOLERANCES
from vinoir.ir.comparing.rounding import Shake
from vinoir.schemas import ElementType, UsageError

#: Failures of each kind in each network of the shared data; 3 make some 100.
CASES = int(os.environ.get("VINOIR_CASES", "1"))
#: How far a failure is to come down.
MOST = 3
Make = Callable[[], ir.Model]


def refused(model: ir.Model, rng: random.Random) -> str | None:
    """Make an attribute say what cannot be: an axis far outside, a stride of nothing."""
    rows = [
        (layer, name, text)
        for layer in model.order()
        for name, text in (("axis", "77"), ("strides", "0"), ("dilations", "0"), ("levels", "0"),
                           ("group_size", "-3"), ("num_splits", "0"), ("mode", "none"))
        if name in layer.data and layer.id not in fixed(model)
    ]  # fmt: skip
    if not rows:
        return None
    layer, name, text = rng.choice(rows)
    said = ",".join(text for _ in layer.data[name].split(","))
    layer.data = {**layer.data, name: said}
    try:
        ir.infer(model)
    except ir.IRError:
        return f'{name} of "{layer.name}" ({layer.type}) is {said}'
    return None


def poisoned(model: ir.Model, rng: random.Random) -> str | None:
    """Make a constant hold what is no number."""
    rows = [x for x in model.constants if x.has_value and x.value.dtype.kind == "f"]
    rows = [x for x in rows if x.value.size > 16]
    if not rows:
        return None
    layer = rng.choice(rows)
    value = layer.value.copy()
    value[...] = np.nan
    layer.set_value(value, layer.element_type)
    return f'"{layer.name}" is no number'


def come_down(make: Make, feeds: Feeds, seed: int, times: int) -> tuple[int, list[str]]:
    """How many failures were made, and those that did not come down."""
    rng, made, missed = random.Random(seed), 0, []

    def judge(text: str, model: ir.Model, fails: str) -> None:
        nonlocal made
        began = time.perf_counter()
        try:
            found = ir.reduce(model, fails, feeds)
        except ir.IRError:
            return  # nothing fails, or shapes are made of values that are wrong now
        made += 1
        count, seconds = len(operations(found.model)), time.perf_counter() - began
        print(f"{fails}: {text}: {found.before} became {count} in {seconds:.1f} s", flush=True)
        if count > MOST or not found.finished:
            missed.append(f"{fails}: {text}: {operations(found.model)}")

    for _ in range(times):
        for fails, change in (("infer", refused), ("run", poisoned)):
            model = make()
            text = change(model, rng)
            if text is not None:
                judge(text, model, fails)
        model = make()
        kinds = kernels(model, trace(model, feeds))
        kind = rng.choice(sorted(kinds, key=lambda one: one.__name__))
        with wrong_kernel(kind, rng.choice(WRONG)):
            judge(f"{kind.__name__} computes something else", model, "compile")
    return made, missed


@pytest.mark.parametrize("seed", range(4))
def test_failures_in_drawn_networks_come_down(seed: int) -> None:
    make = drawn(seed)
    made, missed = come_down(make, feeds_of(make(), seed), seed, 1)
    assert made
    assert not missed, "\n".join(missed)


def quantized() -> ir.Model:
    """Values that lie between two steps of a FakeQuantize, give or take a rounding."""
    rng = np.random.default_rng(0)
    net = ir.Builder("quantized")
    x = net.parameter("x", "f32", "1,256")
    moved = net.add("Add", "opset1", [x, net.constant(np.full((1, 256), 0.5, "f4"))])
    ends = [net.constant(np.array(end, "f4")) for end in (0, 255, 0, 255)]
    steps = net.add("FakeQuantize", "opset1", [moved, *ends], levels=256)
    weights = net.constant(rng.standard_normal((256, 24)).astype("f4"))
    words = {"transpose_a": False, "transpose_b": False}
    made = net.add("MatMul", "opset1", [steps, weights], **words)
    flat = net.add("Reshape", "opset1", [made, net.constant(np.array([4, 6], "i8"))],
                   special_zero=False)  # fmt: skip
    net.result(net.add("Add", "opset1", [flat, net.constant(np.ones((4, 6), "f4"))]), name="y")
    return net.model()


def rounded_otherwise(array: np.ndarray) -> np.ndarray:
    """The last digit of every number moved, up or down, as another order of a sum may."""
    return np.nextafter(array, np.where(np.indices(array.shape).sum(0) % 3, 1e9, -1e9), dtype="f4")


def test_ties_are_no_failure_and_lead_to_none() -> None:
    model = quantized()
    feeds = [np.arange(256, dtype="f4")[None] % 100]
    kinds = {layer.type: type(layer.op) for layer in model.order() if layer.op is not None}
    with wrong_kernel(kinds["Add"], rounded_otherwise):
        apart = np.abs(ir.run(model, feeds)["y"] - ir.compile(model)(feeds)["y"])
        assert apart.max() > 1e-2
        assert not ir.compare(model, "compiled", feeds)
        with pytest.raises(UsageError, match="does not fail"):
            ir.reduce(model, "compile", feeds)
        for wrong in WRONG:
            with wrong_kernel(kinds["Reshape"], wrong):
                found = ir.reduce(model, "compile", feeds)
            assert operations(found.model) == ["Reshape"]


@pytest.mark.shared
def test_failures_in_real_networks_come_down(network: Path) -> None:
    made, missed = come_down(lambda: ir.read(network), first_feeds(network), 1, CASES)
    print(f"{network.stem}: {made} failures, {len(missed)} did not come down")
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ElementType.BF16.dtype])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5, 7), (70_001,)])
def test_what_is_shaken_moves_by_its_part_and_back(kind: Any, shape: tuple[int, ...]) -> None:
    base = np.asarray(np.random.default_rng(0).standard_normal(shape)).astype(kind)
    allowed = TOLERANCES[ElementType.of(base.dtype)]
    there, back = (Shake(turn)(base, allowed) for turn in (0, 1))
    assert there.shape == back.shape == shape
    assert there.dtype == back.dtype == base.dtype
    one, two, wide = (np.asarray(x, "f8") for x in (there, back, base))
    level = np.abs(wide) + np.sqrt(np.mean(np.square(wide)))
    slack = level * float(np.finfo(np.float32).eps if kind == "f4" else allowed / 2)
    for moved, sign in ((one, 1), (two, -1)):
        off = np.abs(moved - wide) - 0.5 * allowed * level
        assert (np.abs(off) <= slack).all()
        assert sign * ((one - wide) * (moved - wide)).sum() >= 0
    if base.size > 1000:
        assert 0.4 < (one > wide).mean() < 0.6
