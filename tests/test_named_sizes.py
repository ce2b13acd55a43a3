"""Named and partly known sizes through every operation that carries them, and whole chains."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Call, ask
from vinoir import ir
from vinoir.layers.base import Op
from vinoir.schemas import Array, Dim, IRError, Shape, Size, Tensor
from vinoir.schemas.shapes import same

CARRYING = [call for call in calls.samples() if call.kind.carries_sizes]
#: A scalar, one element in several shapes, none, and some.
SHAPES = [(), (1,), (1, 1), (0,), (0, 2), (2,), (3,), (2, 2)]


def named(shape: tuple[int, ...], kind: str) -> Tensor:
    """Sizes with names, every third of them known."""
    parts = np.empty(shape, object)
    for number, index in enumerate(np.ndindex(*shape)):
        parts[index] = 3 if number % 3 == 2 else Shape.parse("NCHW"[number % 4], symbols=True)[0]
    return Tensor(kind, shape, parts=parts)


def limited(shape: tuple[int, ...], kind: str) -> Tensor:
    """Values of which only the limits are known."""
    dtype = Tensor(kind, ()).type.dtype
    return Tensor(kind, shape, bounds=(np.zeros(shape, dtype), np.ones(shape, dtype)))


@pytest.mark.parametrize("call", CARRYING, ids=str)
def test_what_is_carried_is_an_answer_or_a_refusal_of_ours(call: Call) -> None:
    op, known = call.make(), call.tensors(known=True)
    for shape, kind in itertools.product(SHAPES, ("i64", "i32", "f32", "u8", "boolean")):
        makers = [named, limited] if kind in ("i64", "i32") else [limited]
        for place, make in itertools.product(range(len(known)), makers):
            odd = make(shape, kind)
            alike = [odd if t.type is known[place].type else t for t in known]
            for inputs in ([*known[:place], odd, *known[place + 1 :]], [odd] * len(known), alike):
                try:
                    outputs = op.infer_outputs(inputs)
                except IRError:  # any other error is a fault of ours
                    continue
                for tensor in outputs:
                    if tensor.bounds is not None:
                        assert tensor.bounds[0].shape == tensor.shape.static
                        assert tensor.parts is None or tensor.parts.shape == tensor.shape.static


def flattened(net: ir.Builder, x: Any, index: Any, *, keeps: bool) -> Any:
    """``x.view(x.size(0), -1)`` as exporters write it, the index a scalar or a list of one."""
    sizes = net.add("ShapeOf", "opset3", [x], output_type="i64")
    axis = net.constant(np.int64(0))
    size = net.add("Gather", "opset8", [sizes, net.constant(index), axis], batch_dims=0)
    if not np.ndim(index):
        size = net.add("Unsqueeze", "opset1", [size, axis])
    if keeps:  # and through what hands sizes on as they are
        size = net.add("Squeeze", "opset1", [net.add("Unsqueeze", "opset1", [size, axis]), axis])
        size = net.add("Reshape", "opset1", [size, net.constant([1])], special_zero=False)
    pattern = net.add("Concat", "opset1", [size, net.constant(np.array([-1]))], axis=0)
    return net.add("Reshape", "opset1", [x, pattern], special_zero=False)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(
    "index", [np.int64(0), np.int64(-4), np.array([0]), np.int32(0)], ids=repr
)
@pytest.mark.parametrize("shape", ["N,3,4,4", "?,3,4,4", "2..5,3,4,4", "2,3,4,4", "N,C,H,W"])
def test_sizes_are_taken_put_together_and_reshaped_by(
    shape: str, index: Array, keeps: bool
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", Shape.parse(re.sub("[A-Z]", "?", shape)))
    net.result(flattened(net, x, index, keeps=keeps), name="y")
    model = net.model()
    inferred = ir.infer(model, {"x": shape})["y"].shape
    assert str(inferred).partition(",")[0] == shape.partition(",")[0]
    if shape == "N,3,4,4":
        assert str(inferred) == "N,48"  # a name tells what limits do not
    given = [np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype("f4")]
    xml, weights = ir.dumps(model)
    if shape != "N,3,4,4":
        assert ask("shapes", xml.decode(), weights) == [f"f32[{inferred.spelling}]"]
    for outputs in (ir.run(model, given), ir.compile(model)(given)):
        np.testing.assert_array_equal(outputs["y"], given[0].reshape(2, -1))


def test_the_same_chain_is_imported(tmp_path: Any) -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Constant", [], ["first"], value_int=0),
        helper.make_node("Gather", ["sizes", "first"], ["size"], axis=0),
        helper.make_node("Constant", [], ["axes"], value_ints=[0]),
        helper.make_node("Unsqueeze", ["size", "axes"], ["one"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Concat", ["one", "rest"], ["pattern"], axis=0),
        helper.make_node("Reshape", ["x", "pattern"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "view",
        [helper.make_tensor_value_info("x", kind, ["N", 3, "H", "W"])],
        [helper.make_tensor_value_info("y", kind, None)],
    )  # fmt: skip
    path = tmp_path / "view.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    model, given = ir.from_onnx(path), np.ones((2, 3, 4, 4), "f4")
    assert ir.run(model, [given])["y"].shape == (2, 48)
    assert str(ir.infer(model)["y"].shape).startswith("N,")


@settings(deadline=None)
@given(
    times=st.integers(1, 3), begin=st.integers(-4, 9), end=st.integers(-4, 9),
    step=st.sampled_from([-3, -1, 1, 2, 5]), kind=st.sampled_from(["i64", "i32"]),
)  # fmt: skip
def test_a_range_from_a_size_to_so_much_more_has_a_known_length(
    times: int, begin: int, end: int, step: int, kind: str
) -> None:
    size = Shape.parse("N", symbols=True)[0] * times

    def one(value: Any) -> Tensor:
        parts = np.empty((), object)
        parts[()] = value
        return Tensor(kind, (), parts=parts)

    op = Op.registry["Range", 4].read({"output_type": "i64"})
    (found,) = op.infer(one(size + begin), one(size + end), Tensor.of(np.int64(step)))
    assert found.shape == (len(range(begin, end, step)),)
    # From another size on, or to one, nothing is known but what it is called.
    (other,) = op.infer(one(size + begin), one(3 * size + end), Tensor.of(np.int64(step)))
    assert not other.shape.is_static
    (none,) = op.infer(one(size + begin), Tensor(kind, ()), Tensor.of(np.int64(step)))
    assert not none.shape.is_static


@st.composite
def calculated(draw: st.DrawFn) -> tuple[Size, str]:
    """A size worked out from named ones, and the same as Python writes it."""
    name = draw(st.sampled_from("BHW"))
    size, text = Dim(0, None, name) * 1, name
    for _ in range(draw(st.integers(0, 5))):
        number = draw(st.integers(-3, 5))
        sign = draw(st.sampled_from(["+", "-", "*", "//"]))
        if sign == "//":
            number = draw(st.integers(2, 5))
        other, said = draw(st.sampled_from([(number, str(number)), (Dim(0, None, "H"), "H")]))
        if sign == "//":
            size, text = size // number, f"({text})//{number}"
        elif sign == "+":
            size, text = size + other, f"({text})+{said}"
        elif sign == "-":
            size, text = size - other, f"({text})-{said}"
        else:
            size, text = size * other, f"({text})*{said}"
    return size, text


@settings(deadline=None, max_examples=300)
@given(calculated(), st.fixed_dictionaries(dict.fromkeys("BHW", st.integers(0, 20))))
def test_a_size_is_written_as_python_reads_it(made: tuple[Size, str], sizes: Any) -> None:
    # Atoms are told apart by their texts: no two sizes may have the same.
    size, text = made
    assert eval(str(size), {}, sizes) == eval(text, {}, sizes)


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        (
            lambda b, h: b // 3 * 4 // 5,
            lambda b, h: b * 4 // 3 // 5,
            ("(4*(B//3))//5", "((4*B)//3)//5"),
        ),
        (
            lambda b, h: h * (b // 2) // 2,
            lambda b, h: h * b // 2 // 2,
            ("((B//2)*H)//2", "((B*H)//2)//2"),
        ),
        (lambda b, h: -(b // 2) // 3, lambda b, h: -b // 2 // 3, ("(-(B//2))//3", "((-B)//2)//3")),
    ],
)
def test_quotients_of_other_sizes_are_others(
    one: Callable[..., Size], other: Callable[..., Size], texts: tuple[str, str]
) -> None:
    b, h = Dim(0, None, "B"), Dim(0, None, "H")
    assert (str(one(b, h)), str(other(b, h))) == texts
    assert not same(one(b, h), other(b, h))
    assert isinstance(one(b, h) - other(b, h), Dim)
