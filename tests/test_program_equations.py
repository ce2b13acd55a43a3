"""Sums by equation, slices and elements by index, and scaled heads give what definitions give."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from test_program_attention import agree
from vinoir import ir
from vinoir.ir.engine.kernels import gathering
from vinoir.ir.engine.workers.denormals import flushes
from vinoir.schemas import Array

EQUATIONS = [
    ("ibh,hnd->ibnd", (20, 2, 24), (24, 3, 8)),  # queries of XLNet
    ("ibnd,hnd->ibh", (20, 2, 3, 8), (24, 3, 8)),
    ("ibnd,jbnd->bnij", (16, 2, 3, 8), (18, 2, 3, 8)),
    ("bnij,jbnd->ibnd", (2, 3, 16, 18), (18, 2, 3, 8)),
    ("bmhcd,bmhdk->bmhck", (2, 3, 2, 16, 8), (2, 3, 2, 8, 12)),
    ("bqd,bkd->bqk", (3, 16, 8), (3, 20, 8)),
    ("bqd,bkd->bkq", (3, 16, 8), (3, 20, 8)),
    ("...id,...jd->...ij", (2, 3, 16, 8), (2, 3, 18, 8)),
    ("...id,jd->...ij", (2, 3, 16, 8), (18, 8)),
    ("abcd,cde->abe", (2, 9, 4, 5), (4, 5, 33)),
    ("abcd,dce->eab", (2, 9, 4, 5), (5, 4, 33)),
    ("ij,jk", (30, 40), (40, 50)),
    ("ij,j->i", (30, 40), (40,)),
    ("i,i->", (300,), (300,)),
    ("i,j->ij", (30,), (40,)),
    ("bi,bi->b", (30, 40), (30, 40)),
    ("ij,ij->ij", (30, 40), (30, 40)),
    ("bij,bjk->bk", (3, 16, 20), (3, 20, 8)),
    ("iij,jk->ik", (16, 16, 20), (20, 8)),
    ("...i,...i->...", (1, 4, 300), (3, 1, 300)),
    ("ijbn->bnij", (4, 5, 2, 3), None),
    ("ij->i", (4, 5), None),
    ("ii->i", (5, 5), None),
]


def equated(
    equation: str, one: tuple[int, ...], other: tuple[int, ...] | None, fixed: int | None
) -> tuple[ir.Model, list[Array]]:
    """A model of an equation, one of whose operands may be constant, between Adds."""
    rng, net = np.random.default_rng(len(equation)), ir.Builder()
    given, inputs = [], []
    for place, shape in enumerate((one, other)):
        if shape is None:
            continue
        numbers = rng.standard_normal(shape).astype("f4")
        if place == fixed:
            given.append(net.constant(numbers))
            continue
        inputs.append(numbers)
        x = net.parameter("xy"[place], "f32", shape)
        given.append(net.add("Add", "opset1", [x, net.constant(np.float32(0.5))]))
    made = net.add("Einsum", "opset7", given, equation=equation)
    net.result(net.add("Multiply", "opset1", [made, net.constant(np.float32(2))]))
    return net.model(), inputs


@pytest.mark.parametrize("fixed", [None, 0, 1])
@pytest.mark.parametrize(("equation", "one", "other"), EQUATIONS)
def test_equations(
    equation: str, one: tuple[int, ...], other: tuple[int, ...] | None, fixed: int | None
) -> None:
    agree(*equated(equation, one, other, None if other is None else fixed))


@pytest.mark.parametrize("seed", range(40))
def test_equations_drawn(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {label: rng.choice([1, 2, 5, 16, 17]) for label in "abcdef"}
    terms = [rng.sample("abcdef", rng.randint(1, 4)) for _ in range(2)]
    every = sorted({*terms[0], *terms[1]})
    output = rng.sample(every, rng.randint(0, min(4, len(every))))
    equation = ",".join(map("".join, terms)) + "->" + "".join(output)
    shapes = [tuple(sizes[label] for label in term) for term in terms]
    agree(*equated(equation, *shapes, rng.choice([None, 0, 1])))


def test_products_take_the_place_of_equations() -> None:
    for equation, one, other in EQUATIONS[:12]:
        model, inputs = equated(equation, one, other, None)
        program = ir.compile(model)
        (rows,) = [[node.kind for node, *_ in program.times(inputs, 1) or []]]
        assert "MatMul" in rows, equation
        assert "" not in rows, equation


INDICES = {
    "windows": np.arange(6)[:, None] * 3 + np.arange(4),
    "backwards": np.arange(20)[::-1],
    "again": np.zeros((3, 2), int) + 5,
    "one": np.array(7),
    "none": np.zeros((0, 3), int),
    "mixed": np.array([[3, 1, 4], [1, 5, 9]]),
    "negative": np.array([-1, -2, -3]),
    "nearly": np.array([0, 1, 2, 4]),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("name", INDICES)
def test_slices_by_known_indices(name: str, kind: str, axis: int) -> None:
    net, shape = ir.Builder(), [3, 4, 5]
    shape[axis] = 21
    x = net.parameter("x", "f32", shape)
    turned = net.add("Transpose", "opset1", [x, net.constant([0, 1, 2])])
    indices = net.constant(INDICES[name].astype(kind))
    made = net.add("Gather", "opset8", [turned, indices, net.constant(axis)])
    net.result(made)
    inputs = [np.random.default_rng(0).standard_normal(shape).astype("f4")]
    model = net.model()
    (wanted,), (found,) = ir.run(model, inputs).values(), ir.compile(model)(inputs).values()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("pattern", ["diagonal", "drawn", "negative", "even", "beyond"])
def test_elements_by_index(pattern: str, axis: int, known: bool, order: list[int]) -> None:
    rng, net = np.random.default_rng(0), ir.Builder()
    shape, wide = [6, 7, 8], [6, 7, 8]
    shape[axis], wide[axis] = 12, 5
    along, across, _ = np.indices(wide)[[axis, (axis + 1) % 3, (axis + 2) % 3]]
    places = {
        "even": along + across,
        "diagonal": (along + 3 * across) % 12,
        "drawn": rng.integers(0, 12, wide),
        "negative": rng.integers(-12, 0, wide),
        "beyond": along + across + 3,
    }[pattern]
    data = rng.standard_normal([shape[place] for place in np.argsort(order)]).astype("f4")
    x = net.parameter("x", "f32", data.shape)
    turned = net.add("Transpose", "opset1", [x, net.constant(order)])
    inputs = [data]
    if known:
        indices = net.constant(places)
    else:
        indices = net.parameter("i", "i64", places.shape)
        inputs.append(places)
    net.result(net.add("GatherElements", "opset6", [turned, indices], axis=axis))
    model = net.model()
    if pattern == "beyond":
        with pytest.raises(ir.IRError, match="beyond an axis"):
            ir.compile(model)(inputs)
        return
    (wanted,), (found,) = ir.run(model, inputs).values(), ir.compile(model)(inputs).values()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("inner", [0, 1, 2, 3])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_elements_that_make_up_runs(turned: bool, axis: int, inner: int, broken: bool) -> None:
    """Indices that are the same along some of the last axes."""
    shape, rng, net = (7, 9, 4, 5), np.random.default_rng(axis), ir.Builder()
    counts = [*shape[:axis], 30, *shape[axis + 1 :]]
    alone = [*counts[: 4 - inner], *[1] * inner]
    alone[axis] = 30
    indices = np.broadcast_to(rng.integers(-shape[axis], shape[axis], alone), counts).copy()
    if broken:
        indices[-1, -1, -1, -1] = (indices[-1, -1, -1, -1] + 1) % shape[axis]
    given_shape = (7, 4, 5, 9) if turned else shape
    x = net.parameter("x", "f32", given_shape)
    order = [0, 3, 1, 2] if turned else [0, 1, 2, 3]
    moved = net.add("Transpose", "opset1", [x, net.constant(order)])
    inputs = [moved, net.constant(indices)]
    net.result(net.add("GatherElements", "opset6", inputs, axis=axis))
    model, given = net.model(), [rng.standard_normal(given_shape).astype("f4")]
    (wanted,) = ir.run(model, given).values()
    for threads in (1, 2):
        (found,) = ir.compile(model, threads=threads)(given).values()
        np.testing.assert_array_equal(found, wanted)
    places, steps = list(np.indices(tuple(counts))), [180, 20, 5, 1]
    places[axis] = indices % shape[axis]
    flat = sum(one * step for one, step in zip(places, steps, strict=True))
    found_run = gathering._run_of(flat, shape[axis + 1 :])
    after = [prod(shape[begin:]) for begin in range(axis + 1, 5)]
    least = prod(shape[max(axis + 1, 4 - inner) :])
    assert found_run == 1 if broken else found_run in after and found_run >= least


def test_grids() -> None:
    even = np.arange(3)[:, None] * 5 - np.arange(4) + 9
    assert gathering.grid(even) == (9, (3, 4), (5, -1))
    assert gathering.grid(np.array(3)) == (3, (), ())
    assert gathering.grid(np.array([[7]])) == (7, (), ())
    nested = np.arange(2)[:, None, None] * 40 + np.arange(3)[:, None] * 9 + np.arange(4)
    assert gathering.grid(nested.reshape(-1)) == (0, (2, 3, 4), (40, 9, 1))
    assert gathering.grid(np.arange(24).reshape(2, 3, 4)) == (0, (24,), (1,))
    even[2, 3] += 1
    assert gathering.grid(even) is None
    assert gathering.grid(even[:0]) is None


PLACES = {
    "all": np.indices((6, 5)).reshape(2, -1).T,
    "turned": np.indices((5, 6)).reshape(2, -1)[::-1].T,
    "some": np.indices((3, 2)).reshape(2, -1).T * [2, 1] + [0, 3],
    "drawn": np.array([[3, 1], [0, 4], [5, 2], [1, 1]]),
    "twice": np.array([[3, 1], [0, 4], [3, 1]]),
    "still": np.array([[3, 1], [3, 1], [3, 1]]),
    "rows": np.array([[1], [3], [5]]),
    "back": np.array([[5], [3], [1]]),
    "negative": np.array([[-1], [0], [2]]),
    "one": np.array([2, 3]),
}


@pytest.mark.parametrize("version", ["opset4", "opset15"])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("name", PLACES)
def test_slices_replaced_at_known_places(name: str, order: list[int], version: str) -> None:
    rng, net = np.random.default_rng(0), ir.Builder()
    data = rng.standard_normal([(6, 5, 7)[place] for place in np.argsort(order)]).astype("f4")
    x = net.parameter("x", "f32", data.shape)
    turned = net.add("Transpose", "opset1", [x, net.constant(order)])
    places = PLACES[name]
    shape = (*places.shape[:-1], *(6, 5, 7)[places.shape[-1] :])
    inputs = [data, rng.standard_normal(shape).astype("f4")]
    new = net.add("Abs", "opset1", [net.parameter("new", "f32", shape)])
    net.result(net.add("ScatterNDUpdate", version, [turned, net.constant(places), new]))
    net.result(turned)
    model = net.model()
    wanted = ir.run(model, inputs)
    for threads in (1, 2):
        for key, array in ir.compile(model, threads=threads)(inputs).items():
            np.testing.assert_array_equal(array, wanted[key])


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 1, 0, 2]])
@pytest.mark.parametrize("axes", [[-1], [3, 2], [1], [0, 1, 2, 3]])
@pytest.mark.parametrize("keep", [True, False])
def test_lengths(keep: bool, axes: list[int], order: list[int]) -> None:
    rng, net = np.random.default_rng(1), ir.Builder()
    data = rng.standard_normal((2, 33, 40, 24)).astype("f4")
    x = net.parameter("x", "f32", data.shape)
    turned = net.add("Transpose", "opset1", [x, net.constant(order)])
    made = net.add("ReduceL2", "opset4", [turned, net.constant(axes)], keep_dims=keep)
    net.result(net.add("Add", "opset1", [made, net.constant(np.float32(1))]))
    agree(net.model(), [data])


@pytest.mark.parametrize("masked", ["", "after", "before"])
@pytest.mark.parametrize("kind", ["heads", "one", "zero", "rows"])
def test_attention_with_scaled_heads(kind: str, masked: str) -> None:
    rng, net = np.random.default_rng(2), ir.Builder()
    shape = (2, 3, 40, 16)
    q, k, v = (net.parameter(name, "f32", shape) for name in "qkv")
    scale = rng.random({"rows": (40, 1)}.get(kind, (3, 1, 1))).astype("f4") + 0.1
    scale = {"one": scale[:1], "zero": scale * [[[0]], [[1]], [[1]]]}.get(kind, scale)
    scores = net.add("MatMul", "opset1", [q, k], transpose_b=True)
    mask = net.constant((rng.random((1, 40, 40)) < 0.2).astype("f4") * -100)
    if masked == "before":
        scores = net.add("Add", "opset1", [scores, mask])
    scores = net.add("Multiply", "opset1", [scores, net.constant(scale.astype("f4"))])
    if masked == "after":
        scores = net.add("Add", "opset1", [scores, mask])
    soft = net.add("SoftMax", "opset8", [scores], axis=-1)
    net.result(net.add("MatMul", "opset1", [soft, v]))
    inputs = [rng.standard_normal(shape).astype("f4") for _ in range(3)]
    model = net.model()
    agree(model, inputs, within=1e-5)
    kinds = [node.kind for node, *_ in ir.compile(model).times(inputs, 1) or []]
    joined = kind == "one" or (kind == "heads" and masked != "before")
    assert ("ScaledDotProductAttention" in kinds) == joined


def test_powers_that_are_nearly_nothing_are_nothing() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (4, 50))
    net.result(net.add("SoftMax", "opset8", [x], axis=-1))
    data = np.zeros((4, 50), np.float32)
    data[:, 10:20] = -95
    ((found,),) = (ir.compile(net.model(), threads=1)([data]).values(),)
    np.testing.assert_allclose(found[:, 0], 1 / 40, rtol=1e-6)
    # Where it is not known how to round them to zero, they stay as small as they are.
    assert (found[:, 10:20] == (0 if flushes() else found[:, 10:20])).all()
    assert (found[:, 10:20] < np.finfo(np.float32).tiny).all()
