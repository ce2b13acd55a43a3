"""Attention of language models, with what former calls left: answers are ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from vinoir import ir
from vinoir.schemas import IRError, UnsupportedError

runtime = pytest.importorskip("onnxruntime")
Arrays = Mapping[str, np.ndarray | None]
#: Sums that a mask of -10000 is added to keep three digits less.
NEAR, MASKED = 1e-4, 5e-3


def proto(
    kind: str, inputs: Arrays, outputs: list[str], held: tuple[str, ...] = (),
    open_axes: Mapping[str, tuple[int, ...]] | None = None, **words: Any,
) -> Any:  # fmt: skip
    """A node of ONNX Runtime's; what is not given is left out, and axes may be open."""
    names = [name if array is not None else "" for name, array in inputs.items()]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(kind, names, outputs, domain="com.microsoft", name="node", **words)
    there = {name: array for name, array in inputs.items() if array is not None}
    values = []
    for name, array in there.items():
        if name not in held:
            axes = (open_axes or {}).get(name, ())
            shape = [f"{name}{i}" if i in axes else size for i, size in enumerate(array.shape)]
            number = helper.np_dtype_to_tensor_dtype(array.dtype)
            values.append(helper.make_tensor_value_info(name, number, shape))
    constants = [numpy_helper.from_array(there[name], name) for name in held if name in there]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", values, results, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def normal(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def answers(made: Any, fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(made.SerializeToString(), options)
    return list(session.run(None, dict(fed)))


def ours(made: Any, fed: Mapping[str, np.ndarray]) -> list[list[np.ndarray]]:
    """By definition, and by a program."""
    model = ir.from_onnx(made)
    assert not ir.check(model).errors
    program = ir.compile(model, threads=1, fork=False)
    return [list(ir.run(model, fed).values()), list(program(fed).values())]


def fed_of(inputs: Arrays, held: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    return {
        name: array for name, array in inputs.items() if array is not None and name not in held
    }


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_groups_of_queries(data: Any) -> None:
    """A first call, later ones of one or some places; memory as long as needed, or longer."""
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 999)))

    numbers = partial(normal, random)
    groups, shared, each = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4])), 16
    heads = groups * shared
    call = draw(st.sampled_from(["first", "one", "some"]))
    batch = 1 if call == "some" else draw(st.integers(1, 3))
    count = {"first": draw(st.integers(1, 6)), "one": 1, "some": 3}[call]
    before = 0 if call == "first" else draw(st.sampled_from([1, 4, 9]))
    total = before + count
    ends = np.full(batch, total)
    window = draw(st.sampled_from([-1, -1, 1, 2, 50]))
    if call != "some" and window < 0 and draw(st.booleans()):
        ends = random.integers(count if call == "one" else 1, total + 1, batch)
        ends[0] = total
    former = draw(st.sampled_from([before, before, total, total + 3]))
    words: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups}
    words |= {"local_window_size": window}
    words |= {"causal": int(window >= 0 or draw(st.booleans()))}
    capped = draw(st.booleans())
    words |= {"softcap": 5.0} if capped else {"smooth_softmax": int(draw(st.booleans()))}
    words |= {"scale": 0.3} if draw(st.booleans()) else {}
    turned = draw(st.booleans())
    words |= {"do_rotary": int(turned), "rotary_interleaved": int(draw(st.booleans()))}
    packed, kept = draw(st.booleans()), call != "first" or draw(st.booleans())
    hidden = (heads + 2 * groups) * each if packed else heads * each
    some = each // 2  # angles: ONNX Runtime wants eight at least
    sink = not capped and not words["smooth_softmax"] and draw(st.booleans())
    places = np.arange(count) + (ends[:, None] - count if call != "first" else 0) + 2
    inputs: dict[str, np.ndarray | None] = {
        "q": numbers(batch, count, hidden),
        "k": None if packed else numbers(batch, count, groups * each),
        "v": None if packed else numbers(batch, count, groups * each),
        "past_k": numbers(batch, groups, former, each) if kept else None,
        "past_v": numbers(batch, groups, former, each) if kept else None,
        "last": (ends - 1).astype(np.int32),
        "total": np.array(total, np.int32),
        "cos": np.cos(numbers(40, some)) if turned else None,
        "sin": np.sin(numbers(40, some)) if turned else None,
        "places": np.broadcast_to(places, (batch, count)).astype(np.int64)
        if turned and draw(st.booleans()) else None,
        "bias": numbers(1, heads, count, total) if draw(st.booleans()) else None,
        "sink": numbers(heads) if sink else None,
    }  # fmt: skip
    held = ("cos", "sin")
    axes = {"q": (0, 1), "k": (0, 1), "v": (0, 1), "past_k": (0, 2), "past_v": (0, 2),
            "last": (0,), "places": (0, 1), "bias": (2, 3)}  # fmt: skip
    made = proto(
        "GroupQueryAttention", inputs, ["y", "keys", "values"], held,
        axes if draw(st.booleans()) else None, **words,
    )  # fmt: skip
    fed = fed_of(inputs, held)
    wanted = answers(made, fed)
    for found in ours(made, fed):
        np.testing.assert_allclose(found[0], wanted[0], NEAR, NEAR)
        for one, other in zip(found[1:], wanted[1:], strict=True):
            assert one.shape == other.shape
            for image, end in enumerate(ends):
                # What is behind the last key may be anything.
                stop = count if call == "first" else end
                np.testing.assert_allclose(
                    one[image, :, :stop], other[image, :, :stop], NEAR, NEAR
                )


@pytest.mark.parametrize("window", [-1, 2])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("longer", [0, 7])
def test_a_first_call_of_texts_of_other_lengths(
    window: int, causal: int, places: bool, longer: int
) -> None:
    """What is asked behind the end of a text is answered with numbers, whichever."""
    random, count, each, ends = np.random.default_rng(9), 5, 16, np.array([5, 1, 3])
    window = window if causal else -1

    numbers = partial(normal, random)
    angles = numbers(40, each // 2)
    inputs: dict[str, np.ndarray | None] = {
        "q": numbers(3, count, 4 * each),
        "k": numbers(3, count, 2 * each),
        "v": numbers(3, count, 2 * each),
        "past_k": numbers(3, 2, longer, each),
        "past_v": numbers(3, 2, longer, each),
        "last": (ends - 1).astype(np.int32),
        "total": np.array(count, np.int32),
        "cos": np.cos(angles),
        "sin": np.sin(angles),
        "places": np.array([[4, 9, 1, 0, 2]] * 3) if places else None,
    }
    held, names = ("cos", "sin"), ["y", "keys", "values"]
    made = proto(
        "GroupQueryAttention", inputs, names, held, num_heads=4, kv_num_heads=2, do_rotary=1,
        causal=causal, local_window_size=window,
    )  # fmt: skip
    fed = fed_of(inputs, held)
    wanted = answers(made, fed)
    for found in ours(made, fed):
        assert np.isfinite(found[0]).all()
        for image, end in enumerate(ends):
            stop = end if window > 0 else count
            np.testing.assert_allclose(found[0][image, :stop], wanted[0][image, :stop], NEAR, NEAR)
            for one, other in zip(found[1:], wanted[1:], strict=True):
                one, other = (array[image, :, :count] for array in (one, other))
                np.testing.assert_allclose(one, other, NEAR, NEAR)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_heads_with_former_keys_and_masks(data: Any) -> None:
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 999)))

    numbers = partial(normal, random)
    batch, heads, each = draw(st.integers(1, 3)), draw(st.integers(1, 3)), 8
    count = draw(st.integers(1, 5))
    causal = draw(st.booleans())
    more = draw(st.integers(1, 5))
    apart = draw(st.booleans())  # keys and values that were made before
    before = 0 if apart else draw(st.sampled_from([0, 1, 4]))
    total, wide = before + more, heads * each
    shape = (batch, heads, more, each) if apart else (batch, more, wide)
    mask = draw(st.sampled_from(["none", "keys", "each", "lengths", "packed"]))
    inputs: dict[str, np.ndarray | None] = {
        "q": numbers(batch, count, wide),
        "k": numbers(*shape),
        "v": numbers(*shape),
        "b": numbers(3 * wide) if draw(st.booleans()) else None,
        "mask": {
            "none": None,
            "keys": random.integers(0, 2, (batch, total)).astype(np.int32),
            "each": random.integers(0, 2, (batch, count, total)).astype(np.int32),
            "lengths": random.integers(1, total + 1, batch).astype(np.int32),
            "packed": random.integers(1, total + 1, 3 * batch + 2).astype(np.int32),
        }[mask],
        "bias": numbers(1, heads, count, total) if draw(st.booleans()) else None,
        "past_k": numbers(batch, heads, before, each) if before else None,
        "past_v": numbers(batch, heads, before, each) if before else None,
    }
    words = {"num_heads": heads, "unidirectional": int(causal)}
    axes = {"q": (0, 1), "k": (0, 2) if apart else (0, 1), "past_k": (0, 2), "bias": (2, 3),
            "mask": (0,)}  # fmt: skip
    outputs = ["y", "keys", "values"] if before else ["y"]
    made = proto(
        "MultiHeadAttention", inputs, outputs, (), axes if draw(st.booleans()) else None, **words
    )
    fed = fed_of(inputs)
    wanted = answers(made, fed)
    near = NEAR if mask == "none" else MASKED
    for found in ours(made, fed):
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, near, near)


@pytest.mark.parametrize("mask", ["none", "keys", "each", "lengths", "begins", "packed"])
@pytest.mark.parametrize("before", [0, 4])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("far", [-10000.0, -np.inf])
@pytest.mark.parametrize("is_open", [False, True])
def test_attention_with_former_keys(
    mask: str, before: int, causal: int, far: float, is_open: bool
) -> None:
    random = np.random.default_rng(3)
    batch, count, heads, each, taken = 2, 3, 2, 4, 6
    total = before + count
    keys = np.tri(total, dtype=np.int32)[[total - 1, total - 2]]
    inputs: dict[str, np.ndarray | None] = {
        "x": random.standard_normal((batch, count, taken)).astype(np.float32),
        "w": random.standard_normal((taken, 3 * heads * each)).astype(np.float32),
        "b": random.standard_normal(3 * heads * each).astype(np.float32),
        "mask": {
            "none": None,
            "keys": keys,
            "each": np.repeat(keys[:, None], count, 1),
            "lengths": np.array([total, 2], np.int32),
            # A query that sees no key at all has no answer.
            "begins": np.array([total, 2, 1 if before else 0, 0], np.int32),
            "packed": np.array([total, 2, 1, 1, 1, 1, 1, 1], np.int32),
        }[mask],
        "past": random.standard_normal((2, batch, heads, before, each)).astype(np.float32)
        if before else None,
    }  # fmt: skip
    outputs = ["y", "present"]
    axes = {"past": (1, 3), "x": (0, 1) if is_open else (1,), "mask": (0,) if is_open else ()}
    made = proto(
        "Attention", inputs, outputs, ("w", "b"), axes, num_heads=heads,
        unidirectional=causal, mask_filter_value=far,
    )  # fmt: skip
    fed = fed_of(inputs, ("w", "b"))
    wanted = answers(made, fed)
    for found in ours(made, fed):
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, NEAR, NEAR)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("some", [0, 8])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("first", [False, True])
def test_pairs_are_turned(apart: bool, some: int, interleaved: int, first: bool) -> None:
    random = np.random.default_rng(4)
    batch, count, heads, each = 2, 5, 3, 16
    shape = (batch, heads, count, each) if apart else (batch, count, heads * each)
    angles = random.standard_normal((30, (some or each) // 2)).astype(np.float32)
    inputs: Arrays = {
        "x": random.standard_normal(shape).astype(np.float32),
        "places": np.array([7]) if first else random.integers(0, 30, (batch, count)),
        "cos": np.cos(angles),
        "sin": np.sin(angles),
    }
    words = {"rotary_embedding_dim": some, "num_heads": heads} if some else {}
    made = proto(
        "RotaryEmbedding", inputs, ["y"], ("cos", "sin"), {"x": (2,) if apart else (1,)},
        interleaved=interleaved, **words,
    )  # fmt: skip
    fed = fed_of(inputs, ("cos", "sin"))
    (wanted,) = answers(made, fed)
    for (found,) in ours(made, fed):
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_queries_and_keys_that_are_normed(packed: bool) -> None:
    """Which ONNX Runtime's CPU does not have: it is given what was normed before."""
    random, each = np.random.default_rng(6), 16
    q, k, v = (normal(random, 2, 5, heads, each) for heads in (4, 2, 2))
    scales, eps = normal(random, 2, each), 1e-2

    def normed(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * scale

    def given(*parts: np.ndarray) -> dict[str, np.ndarray | None]:
        flat = [part.reshape(2, 5, -1) for part in parts]
        flat = [np.concatenate(flat, -1)] if packed else flat
        return dict(zip(("q", "k", "v"), [*flat, None, None][:3], strict=True)) | {
            "past_k": None, "past_v": None,
            "last": np.array([4, 4], np.int32), "total": np.array(5, np.int32),
            "cos": np.cos(normal(np.random.default_rng(1), 9, 8)),
            "sin": np.sin(normal(np.random.default_rng(1), 9, 8)),
        }  # fmt: skip

    words = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    names, outputs = ("cos", "sin", "norm_q", "norm_k"), ["y", "keys", "values"]
    before = given(normed(q, scales[0]), normed(k, scales[1]), v)
    made = proto("GroupQueryAttention", before, outputs, names, **words)
    wanted = answers(made, fed_of(before, names))
    inputs = given(q, k, v) | dict.fromkeys(["places", "bias", "sink", "x12", "x13"])
    inputs |= {"norm_q": scales[0], "norm_k": scales[1]}
    made = proto("GroupQueryAttention", inputs, outputs, names, qk_norm_epsilon=eps, **words)
    for found in ours(made, fed_of(inputs, names)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, NEAR, NEAR)


@pytest.mark.parametrize("weights", ["u1", "i1"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("mask", ["none", "ends", "keys"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_of_bytes(
    weights: str, columns: bool, kept: bool, mask: str, causal: int
) -> None:
    random = np.random.default_rng(8)
    total = 8 if kept else 5
    keys = random.integers(0, 2, (2, total)).astype(np.int32)
    keys[:, 0] = 1
    size = (48,) if columns else ()
    inputs: dict[str, np.ndarray | None] = {
        "x": random.integers(0, 120, (2, 5, 16)).astype("u1"),
        "w": random.integers(0, 64, (16, 48)).astype(weights),
        "bias": normal(random, 48),
        "step": np.float32(0.03),
        "steps": (random.random(size) / 100 + 0.001).astype(np.float32),
        "mask": {"none": None, "ends": np.array([total, total - 3], np.int32), "keys": keys}[mask],
        "zero": np.array(60, "u1"),
        "zeros": random.integers(0, 5, size).astype(weights),
        "past": normal(random, 2, 2, 4, 3, 4) if kept else None,
    }
    fed = {name: inputs[name] for name in ("x", "past") if inputs[name] is not None}
    held = tuple(name for name in inputs if name not in fed)
    outputs = ["y", "present"] if kept else ["y"]
    made = proto("QAttention", inputs, outputs, held, num_heads=4, unidirectional=causal)
    wanted = answers(made, fed)
    for found in ours(made, fed):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, NEAR, NEAR)


@pytest.mark.parametrize("inputs", [1, 2])
def test_queries_keys_and_values_in_one(inputs: int) -> None:
    """Which ONNX Runtime's CPU does not have: all three of each head side by side, or two."""
    random = np.random.default_rng(5)
    q, k, v = random.standard_normal((3, 2, 4, 3, 8)).astype(np.float32)  # batch, place, head
    given = {"q": np.stack([q, k, v], 3)} if inputs == 1 else {
        "q": q.reshape(2, 4, 24), "kv": np.stack([k, v], 3)
    }  # fmt: skip
    found = ours(proto("MultiHeadAttention", given, ["y"], num_heads=3), given)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    wanted = np.einsum("bhqk,bkhd->bqhd", weights, v).reshape(2, 4, 24)
    for (one,) in found:
        np.testing.assert_allclose(one, wanted, 1e-5, 1e-5)


NUMBERS = np.zeros((1, 2, 32), np.float32)
FORMER = np.zeros((1, 2, 4, 16), np.float32)
LAST, TOTAL = np.array([1], np.int32), np.array(2, np.int32)


@pytest.mark.parametrize(
    ("kind", "arrays", "words", "said"),
    [
        ("GroupQueryAttention", [NUMBERS] * 3 + [None, None, LAST, TOTAL],
         {"num_heads": 3, "kv_num_heads": 2}, "3 heads of queries do not share 2"),
        ("GroupQueryAttention", [NUMBERS, None, None, None, None, LAST, TOTAL],
         {"num_heads": 5, "kv_num_heads": 1}, "7 heads .* do not share 32"),
        ("GroupQueryAttention", [NUMBERS] * 3 + [FORMER, None, LAST, TOTAL],
         {"num_heads": 2, "kv_num_heads": 2}, "inputs 3 and 4"),
        ("GroupQueryAttention", [NUMBERS] * 3 + [None, None, LAST, TOTAL],
         {"num_heads": 2, "kv_num_heads": 2, "kv_cache_bit_width": 8}, "kept as integers"),
        ("GroupQueryAttention", [NUMBERS] * 3 + [None, None, LAST, TOTAL],
         {"num_heads": 2, "kv_num_heads": 2, "sliding_window_cache": 1}, "sliding_window_cache"),
        ("GroupQueryAttention",
         [NUMBERS] * 3 + [None, None, LAST, TOTAL] + [None] * 7 + [NUMBERS[0, 0, :16]],
         {"num_heads": 2, "kv_num_heads": 2}, "inputs 14 and 15"),
        ("MultiHeadAttention", [NUMBERS] * 3 + [None, None, None, FORMER],
         {"num_heads": 2}, "inputs 6 and 7"),
        ("MultiHeadAttention", [NUMBERS] * 3 + [None, np.zeros(4, np.int32)],
         {"num_heads": 2}, "has 4 numbers, of 1 images it has 1 or 5"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(
    kind: str, arrays: list[np.ndarray | None], words: dict[str, Any], said: str
) -> None:
    given = {f"x{place}": array for place, array in enumerate(arrays)}
    with pytest.raises((IRError, UnsupportedError), match=said):
        ir.from_onnx(proto(kind, given, ["y"], **words))
