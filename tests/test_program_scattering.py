"""Updates that meet in places: whole rows in turns, sums at once, slices for elements."""

from __future__ import annotations

import numpy as np
import pytest
from test_program_attention import agree
from vinoir import ir
from vinoir.layers import scattering
from vinoir.schemas import Array

RULES = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("seed", range(60))
def test_updates_meet_as_they_do_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leading = tuple(rng.integers(1, 40, rng.integers(1, 3)))
    inner = tuple(rng.integers(1, 30, rng.integers(0, 3)))
    count = tuple(rng.integers(1, 300 if seed % 3 else 6, rng.integers(1, 3)))
    where = tuple(rng.integers(-size, size, count) for size in leading)
    if seed % 4 == 0:
        where = tuple(np.zeros_like(index) for index in where)  # all in one place
    reduction = list(RULES)[seed % 5]
    kind = rng.choice(["f4", "i4", "i8", "f8"])
    data, updates = (
        (rng.standard_normal((*sizes, *inner)) * 3).astype(kind) for sizes in (leading, count)
    )
    wanted, sizes = data.copy(), np.abs(data)
    with np.errstate(all="ignore"):
        RULES[reduction].at(wanted, where, updates)
        np.add.at(sizes, where, np.abs(updates))  # what rounding errors go by
        found = scattering.brought(reduction, data, where, updates)
    assert found.dtype == data.dtype
    if reduction == "sum" and kind[0] == "f":
        np.testing.assert_array_less(np.abs(found - wanted), 2e-5 * sizes + 1e-30)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("wide", [1, 4, 16, 64])
@pytest.mark.parametrize("one", [False, True])
def test_both_ways_are_taken(wide: int, one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, turns = np.random.default_rng(wide), []
    plain = scattering._in_turns

    def noted(rule: np.ufunc, slots: Array, places: Array, rows: Array) -> bool:
        turns.append(plain(rule, slots, places, rows))
        return turns[-1]

    monkeypatch.setattr(scattering, "_in_turns", noted)
    places = np.zeros(500, int) if one else rng.integers(0, 200, 500)
    updates = rng.standard_normal((500, wide)).astype("f4")
    found = scattering.brought("sum", np.zeros((200, wide), "f4"), (places,), updates)
    wanted = np.zeros((200, wide))
    np.add.at(wanted, places, updates)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert turns == ([] if wide < 16 else [not one])


@pytest.mark.parametrize("wide", [1, 3, 20])
@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("repeated", ["Broadcast", "bidirectional", "Tile", "no"])
@pytest.mark.parametrize(
    "reduction", ["none", "sum", "prod", "min", "max", "mean", "old", "fresh"]
)
def test_slices_for_elements(reduction: str, repeated: str, kind: str, wide: int) -> None:
    rng, net = np.random.default_rng(wide), ir.Builder()
    x = net.parameter("x", "f32", (12, wide))
    rows = net.parameter("rows", "i32" if kind == "i4" else "i64", (30, 1))
    updates = net.parameter("updates", "f32", (30, wide))
    sizes = net.constant(np.array([30, wide]))
    if repeated == "Tile":
        indices = net.add("Tile", "opset1", [rows, net.constant(np.array([1, wide]))])
    elif repeated == "no":
        indices = net.parameter("indices", "i32", (30, wide))
    else:
        mode = "numpy" if repeated == "Broadcast" else repeated
        indices = net.add("Broadcast", "opset3", [rows, sizes], mode=mode)
    if kind == "i8":
        indices = net.add("Convert", "opset1", [indices], destination_type="i32")
    version, words = "opset12", {"reduction": reduction}
    if reduction == "old":
        version, words = "opset3", {}
    elif reduction == "fresh":
        words = {"reduction": "sum", "use_init_val": False}
    inputs = [x, indices, updates, net.constant(np.int64(0))]
    net.result(net.add("ScatterElementsUpdate", version, inputs, **words))
    model = net.model()
    given = [
        rng.standard_normal((12, wide)).astype("f4"),
        rng.integers(0, 12, (30, 1)).astype(kind),
        rng.standard_normal((30, wide)).astype("f4"),
    ]
    given += [rng.integers(0, 12, (30, wide)).astype("i4")] if repeated == "no" else []
    agree(model, given)
    ran = [node.op.xml_type for node, *_ in ir.compile(model).times(given, 1) or []]
    taken = repeated != "no" and reduction not in ("mean", "fresh")
    assert ("ScatterNDUpdate" in ran) == taken
    if taken:
        assert "Broadcast" not in ran
        assert "Tile" not in ran


@pytest.mark.parametrize("index", [12, -13])
def test_a_row_that_is_not_there_is_refused(index: int) -> None:
    net = ir.Builder()
    x, rows = net.parameter("x", "f32", (12, 4)), net.parameter("rows", "i64", (3, 1))
    updates, sizes = net.parameter("updates", "f32", (3, 4)), net.constant(np.array([3, 4]))
    indices = net.add("Broadcast", "opset3", [rows, sizes])
    inputs = [x, indices, updates, net.constant(np.int64(0))]
    net.result(net.add("ScatterElementsUpdate", "opset12", inputs, reduction="sum"))
    given = [np.zeros((12, 4), "f4"), np.array([[0], [index], [1]]), np.ones((3, 4), "f4")]
    with pytest.raises(ir.IRError, match=f"index {index} is beyond an axis of size 12"):
        ir.compile(net.model())(given)
