"""Work is cut such that all workers have about as much of it, and nothing is left out."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels.matrices import even_pieces
from vinoir.ir.engine.kernels.products import shared_width
from vinoir.ir.engine.plan import Node
from vinoir.ir.engine.workers import hands, shares, spans
from vinoir.schemas import Array


@given(
    shape=st.lists(st.integers(1, 14), min_size=1, max_size=4).map(tuple),
    at_once=st.integers(1, 600),
    lanes=st.sampled_from([1, 2, 3, 4, 8]),
)
def test_pieces_are_all_rows_once(shape: tuple[int, ...], at_once: int, lanes: int) -> None:
    seen = np.zeros(shape, np.int32)
    for index in even_pieces(shape, at_once, lanes):
        seen[index] += 1
        assert seen[index].size <= max(at_once * 5 // 4, 1)
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("shape", "at_once", "lanes"),
    [
        ((1, 1500), 341, 4),
        ((9, 14, 14), 300, 4),
        ((1, 3, 197), 320, 2),
        ((5, 64), 64, 2),
        ((14, 32), 112, 4),
        ((64, 49), 300, 8),
        ((3, 5, 40), 150, 4),
    ],
)
def test_each_lane_has_about_as_many_rows(
    shape: tuple[int, ...], at_once: int, lanes: int
) -> None:
    found = even_pieces(shape, at_once, lanes)
    rows = [np.empty(shape)[index].size for index in found]
    shares = [sum(rows[begin:end]) for begin, end in spans(len(rows), lanes)]
    assert max(shares) * lanes <= 1.06 * prod(shape)


@given(images=st.integers(0, 12), rows=st.integers(1, 70), pieces=st.sampled_from([1, 2, 4, 8]))
def test_images_are_shared_out_whole_as_far_as_they_go_round(
    images: int, rows: int, pieces: int
) -> None:
    found = shares(images, rows, pieces)
    seen = np.zeros((images, rows), np.int32)
    for image, (begin, end) in found:
        seen[image, begin:end] += 1
    assert (seen == 1).all()
    whole = [image for image, run in found if run == (0, rows)]
    assert sorted(whole) == list(range(images - images % pieces if rows > 1 else images))
    if rows % pieces:
        return
    sizes = [end - begin for _, (begin, end) in found]
    for workers in (1, 2, 4, 8):
        if workers <= pieces:
            loads = [sum(sizes[begin:end]) for begin, end in spans(len(sizes), workers)]
            assert set(loads) == {images * rows // workers} or not images


def test_images_are_cut_more_where_their_cutter_wants_that() -> None:
    found = hands(3, 2, lambda each: [f"{part} of {2 * each}" for part in range(2 * each)])
    assert found == [
        (0, "0 of 2"), (0, "1 of 2"), (2, "0 of 4"), (2, "1 of 4"),
        (1, "0 of 2"), (1, "1 of 2"), (2, "2 of 4"), (2, "3 of 4"),
    ]  # fmt: skip


@pytest.mark.parametrize(("shape", "lanes", "most"), [((14, 32), 4, 8), ((30, 24), 4, 8)])
def test_where_images_do_not_share_out_pieces_are_few(
    shape: tuple[int, ...], lanes: int, most: int
) -> None:
    # Of whole images some lane would have one more than others; halves would be many.
    assert len(even_pieces(shape, prod(shape) // lanes, lanes)) <= most


@given(
    outer=st.integers(1, 130).map(lambda n: 8 * n),
    taken=st.sampled_from([16, 64, 129, 384, 768, 3072]),
    rows=st.sampled_from([None, 1, 24, 49, 100, 400]),
    lanes=st.sampled_from([2, 4, 8]),
    equal=st.booleans(),
)
def test_blocks_of_columns(
    outer: int, taken: int, rows: int | None, lanes: int, equal: bool
) -> None:
    wide = shared_width(outer, taken, rows, lanes, equal=equal)
    assert 0 < wide <= outer
    if equal:
        assert outer % wide == 0


@pytest.mark.parametrize("outer", [64, 80, 176, 256, 640])
def test_two_who_share_columns_have_about_as_many(outer: int) -> None:
    wide = shared_width(outer, 256, 49, 2)
    blocks = [wide] * (outer // wide) + [outer % wide]
    blocks = [each for each in blocks if each]
    shares = [sum(blocks[begin:end]) for begin, end in spans(len(blocks), 2)]
    assert len(shares) == 2
    assert max(shares) <= 0.61 * outer


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def shared_steps(program: ir.Program, kind: str) -> list[int]:
    """Into how many parts each step of the nodes of a kind is cut."""
    (planned,) = program._plans.values()
    assert planned is not None
    return [
        len(step)
        for node, begin, end in planned.spans
        if _is(node, kind)
        for step in planned.team.steps[begin:end]
    ]


def _is(node: Node, kind: str) -> bool:
    return node.layer.type == kind and not node.is_outside


def compared(net: ir.Builder, *arrays: Array) -> ir.Program:
    """A program that gives what the definitions give, for any number of threads the same."""
    model = net.model()
    wanted = ir.run(model, list(arrays))
    programs = [ir.compile(model, threads=threads) for threads in (1, 2, 3)]
    first = programs[0](list(arrays))
    for program in programs:
        found = program(list(arrays))
        for name, right in wanted.items():
            scale = float(np.abs(right).max())
            np.testing.assert_allclose(found[name], right, rtol=0, atol=1e-5 * scale)
            np.testing.assert_array_equal(found[name], first[name])
    return programs[1]


def every_pixel(net: ir.Builder, x: ir.builder.Output, made: int, read: int) -> ir.builder.Output:
    """A 1x1 convolution."""
    filters = net.constant(numbers(made, read, 1, 1))
    return net.add(
        "Convolution", "opset1", [x, filters],
        strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,0",
    )  # fmt: skip


def test_few_rows_of_many_passes_are_shared() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 24, 768))
    axes = net.constant(np.array([2]))
    made = net.add(
        "MVN", "opset6", [x, axes], normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt"
    )
    net.result(made)
    assert shared_steps(compared(net, numbers(1, 24, 768)), "MVN") == [2]


def test_one_row_by_many_weights_is_shared() -> None:
    """A squeeze-excitation: to fetch the weights is the work."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 960, 1, 1))
    made = every_pixel(net, x, 240, 960)
    net.result(net.add("ReLU", "opset1", [made]))
    assert max(shared_steps(compared(net, numbers(1, 960, 1, 1)), "Convolution")) >= 2


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("groups", [0, 2, 64])
def test_an_image_of_one_row_is_shared_along_it(stride: int, dilation: int, groups: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 64, 300))
    each = 64 // max(groups, 1)
    lead = (groups,) if groups else ()
    filters = net.constant(numbers(*lead, each, 1 if groups == 64 else 24, 7))
    kind = "GroupConvolutionBackpropData" if groups else "ConvolutionBackpropData"
    made = net.add(
        kind, "opset1", [x, filters], strides=f"{stride}", dilations=f"{dilation}",
        pads_begin="2", pads_end="1", output_padding="0",
    )  # fmt: skip
    bias = net.constant(numbers(1, max(groups, 1) * (1 if groups == 64 else 24), 1))
    net.result(net.add("Add", "opset1", [made, bias]))
    program = compared(net, numbers(2, 64, 300))
    assert max(shared_steps(program, kind)) >= 2


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceSum", "ReduceMean", "ReduceL2"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axis", [2, 3])
def test_what_is_joined_in_another_order_is_turned_after(kind: str, keep: bool, axis: int) -> None:
    """Largest numbers of neighbours, after a convolution whose channels are last."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 32, 40, 16))
    made = every_pixel(net, x, 64, 32)
    version = "opset4" if kind == "ReduceL2" else "opset1"
    axes = net.constant(np.array([axis]))
    net.result(net.add(kind, version, [made, axes], keep_dims=keep))
    compared(net, numbers(2, 32, 40, 16))


@pytest.mark.parametrize("turned", [True, False])
def test_scores_whose_heads_are_mixed_by_a_convolution(turned: bool) -> None:
    """Talking heads: what is multiplied is wanted with its channels last."""
    net = ir.Builder()
    q = net.parameter("q", "f32", (1, 8, 49, 16))
    k = net.parameter("k", "f32", (1, 8, 49, 16) if turned else (1, 8, 16, 49))
    scores = net.add("MatMul", "opset1", [q, k], transpose_b=turned)
    mixed = every_pixel(net, scores, 8, 8)
    net.result(net.add("SoftMax", "opset8", [mixed], axis=3))
    arrays = numbers(1, 8, 49, 16), numbers(*((1, 8, 49, 16) if turned else (1, 8, 16, 49)))
    program = compared(net, *arrays)
    assert shared_steps(program, "MatMul")[0] == 2


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("heads", [1, 3, 5])
def test_heads_that_two_cannot_share_are_cut(heads: int, causal: bool) -> None:
    net = ir.Builder()
    given = [net.parameter(name, "f32", (1, heads, 197, 64)) for name in "qkv"]
    net.result(net.add("ScaledDotProductAttention", "opset13", given, causal=causal))
    arrays = [numbers(1, heads, 197, 64) * np.float32(n) for n in (1, 0.5, 2)]
    program = compared(net, *arrays)
    (parts,) = shared_steps(program, "ScaledDotProductAttention")
    assert parts >= 2
