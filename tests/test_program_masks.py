"""Decoders whose mask is made of the places of words: what depends on no length is in the plan."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from test_program import assert_close
from vinoir import ir
from vinoir.ir.engine.planned import Planned
from vinoir.schemas import Array

HEADS, DEEP, WIDE = 4, 2, 8


def numbers(*shape: int, seed: int = 7) -> Array:
    # So small that scores stay about one: of large ones SoftMax makes much of the last bits.
    return np.random.default_rng(seed).standard_normal(shape).astype("f4") / 3


def decoder(*, written_out: bool, step: int = 1) -> ir.Model:
    """Two layers of attention to earlier words, masked by ranges that begin where those end.

    Args:
        written_out: Whether attention is written as products and a SoftMax.
        step: How far apart the places of words are.
    """
    net = ir.Builder("decoder")
    x = net.parameter("x", "f32", "?,?,8")
    beam = net.parameter("beam", "i32", "?")
    zero, one = net.constant(np.int64(0)), net.constant(np.int64(1))

    def size(value: ir.Output, axis: int) -> ir.Output:
        shape = net.add("ShapeOf", "opset3", [value], output_type="i64")
        return net.add("Gather", "opset8", [shape, net.constant(np.int64(axis)), zero])

    def times(value: ir.Output) -> ir.Output:
        return net.add("Multiply", "opset1", [value, net.constant(np.int64(step))])

    batch = net.add("Unsqueeze", "opset1", [size(x, 0), zero])
    sizes = [batch, *(net.constant(np.int64([n])) for n in (HEADS, 0, DEEP))]
    shape = net.add("Concat", "opset1", sizes, axis=0)
    nothing = net.add("Broadcast", "opset3", [net.constant(np.float32(0)), shape])
    turned = net.constant(np.int64([0, 2, 1, 3]))

    def split(value: ir.Output, seed: int) -> ir.Output:
        made = net.add("MatMul", "opset1", [value, net.constant(numbers(WIDE, WIDE, seed=seed))])
        apart = net.constant(np.int64([0, 0, HEADS, DEEP]))
        made = net.add("Reshape", "opset1", [made, apart], special_zero=True)
        return net.add("Transpose", "opset1", [made, turned])

    def remembered(value: ir.Output, seed: int, name: str) -> tuple[ir.Output, ir.Output]:
        kept = net.add("ReadValue", "opset6", [nothing], variable_id=name, variable_type="f32",
                       variable_shape=f"?,{HEADS},?,{DEEP}")  # fmt: skip
        past = net.add("Gather", "opset8", [kept, beam, zero])
        grown = net.add("Concat", "opset1", [past, split(value, seed)], axis=-2)
        net.add("Assign", "opset6", [grown], variable_id=name)
        return past, grown

    mask = None
    for layer in range(2):
        past, keys = remembered(x, 10 * layer + 1, f"key{layer}")
        _, values = remembered(x, 10 * layer + 2, f"value{layer}")
        if mask is None:
            begin, new = size(past, 2), size(x, 1)
            end = net.add("Add", "opset1", [begin, new])
            rows = net.add("Range", "opset4", [times(begin), times(end), net.constant(step)],
                           output_type="i64")  # fmt: skip
            columns = net.add("Range", "opset4", [zero, times(end), net.constant(step)],
                              output_type="i64")  # fmt: skip
            later = net.add("Greater", "opset1", [
                columns, net.add("Unsqueeze", "opset1", [rows, one]),
            ])  # fmt: skip
            hidden = net.constant(np.float32(-1e9)), net.constant(np.float32(0))
            mask = net.add("Select", "opset1", [later, *hidden])
            mask = net.add("Unsqueeze", "opset1", [mask, net.constant(np.int64([0, 1]))])
        queries = split(x, 10 * layer + 3)
        if written_out:
            scores = net.add("MatMul", "opset1", [queries, keys], transpose_b=True)
            scores = net.add("Add", "opset1", [scores, mask])
            weights = net.add("SoftMax", "opset8", [scores], axis=-1)
            found = net.add("MatMul", "opset1", [weights, values])
        else:
            given = [queries, keys, values, mask]
            found = net.add("ScaledDotProductAttention", "opset13", given, causal=False)
        joined = net.add("Transpose", "opset1", [found, turned])
        flat = net.constant(np.int64([0, 0, WIDE]))
        joined = net.add("Reshape", "opset1", [joined, flat], special_zero=True)
        mixed = net.constant(numbers(WIDE, WIDE, seed=10 * layer + 4))
        x = net.add("Add", "opset1", [x, net.add("MatMul", "opset1", [joined, mixed])])
    net.result(net.add("MatMul", "opset1", [x, net.constant(numbers(WIDE, 5))]), name="y")
    return net.model()


def words(batch: int, length: int, seed: int) -> list[Array]:
    return [numbers(batch, length, WIDE, seed=seed), np.arange(batch, dtype="i4")]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("written_out", [True, False])
def test_products_of_words_are_in_the_plan(
    batch: int, length: int, step: int, written_out: bool
) -> None:
    model = decoder(written_out=written_out, step=step)
    program = ir.compile(model)
    state: dict[str, Array] = {}
    for turn in range(9):
        given = words(batch, 4 if not turn else length, turn)
        if turn:
            given[1] = given[1][::-1].copy()
        assert_close(program(given), ir.run(model, given, state=state))
    assert len(program._plans) == 2
    plan = next(reversed(program._plans.values()))
    assert isinstance(plan, Planned)
    outside = Counter(node.layer.type for node in plan.plan.nodes if node.is_outside)
    # Scores and what they weigh depend on how much there was; all other products do not.
    assert outside["MatMul"] == (4 if written_out else 0)
    assert not outside["Reshape"]
