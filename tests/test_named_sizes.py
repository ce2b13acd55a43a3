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
from vinoir.schemas.shapes import interval, same

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


#: Operations that tell of values, with attributes, and constants for the inputs behind the first.
TELLING: list[tuple[str, dict[str, str], list[Any]]] = [
    *((name, {}, [None]) for name in (
        "AddV1", "SubtractV1", "MultiplyV1", "DivideV1", "MinimumV1", "MaximumV1", "ModV1",
        "FloorModV1", "SquaredDifferenceV1", "PowerV1", "EqualV1",
    )),
    ("DivideV1", {"m_pythondiv": "false"}, [None]),
    ("AbsV1", {}, []),
    *(("ClampV1", {"min": str(low), "max": str(low + 5)}, []) for low in (-10, -5, 0, 2)),
    *(("ConvertV1", {"destination_type": kind}, []) for kind in (
        "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "u4", "f32", "f16", "boolean",
    )),
    *((name, {"keep_dims": "true"}, [np.int64([0])]) for name in (
        "ReduceProdV1", "ReduceMinV1", "ReduceMaxV1",
    )),
    *(("ScatterElementsUpdateV12", {"reduction": rule, "use_init_val": init},
       [np.int64([0, 0]), None, np.int64(0)])
      for rule in ("none", "sum", "prod", "min", "max", "mean") for init in ("true", "false")),
    *(("ScatterNDUpdateV15", {"reduction": rule}, [np.int64([[0], [0]]), None])
      for rule in ("none", "sum", "sub", "prod", "min", "max")),
]  # fmt: skip


@st.composite
def told(draw: st.DrawFn, kind: str) -> tuple[Tensor, Array]:
    """Two numbers, known, within limits or calculated from a size that has a name; and theirs."""
    parts, numbers = np.empty(2, object), np.empty(2, np.int64)
    signed = not kind.startswith("u")
    for place in range(2):
        number = draw(st.integers(-6 if signed else 0, 12))
        size: Size = number
        how = draw(st.sampled_from(["known", "limits", "open", "name"]))
        if how == "name":
            less = draw(st.integers(-6, number if signed else 0))
            size = Dim(0, None, "B") + less if number >= less else number
            number = 7 + less  # B is 7
        elif how != "known":
            room = draw(st.integers(0, 5))
            low = number - draw(st.integers(0, 5))
            low = low if signed else max(low, 0)
            size = interval(low, None if how == "open" else number + room)
        if not signed and number < 0:
            number, size = 0, 0
        parts[place], numbers[place] = size, number
    return Tensor(kind, (2,), parts=parts), numbers


@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("row", TELLING, ids=str)
@given(st.data())
def test_what_is_told_of_values_holds(
    row: tuple[str, dict[str, str], list[Any]], data: st.DataObject
) -> None:
    name, attributes, others = row
    kind, _, number = name.rpartition("V")
    op = Op.registry[kind, int(number)].read(attributes)
    dtype = data.draw(st.sampled_from(["i64", "i32", "u64", "u8", "i8"]))
    inputs, arrays = [], []
    for known in [None, *others]:
        tensor, array = data.draw(told(dtype)) if known is None else (Tensor.of(known), known)
        inputs.append(tensor)
        arrays.append(array.astype(tensor.type.dtype))
    (out,) = op.infer_outputs(inputs)
    with np.errstate(all="ignore"):
        (wanted,) = op.run(*arrays)
    if out.bounds is not None:
        assert (out.bounds[0] <= wanted).all()
        assert (wanted <= out.bounds[1]).all()
    if out.has_symbols:
        for part, value in zip(out.sizes() or [], wanted.tolist(), strict=True):
            if isinstance(part, Dim) and part.symbol is not None:
                assert eval(str(part.symbol), {}, {"B": 7}) == value


def listed(*sizes: Size) -> Tensor:
    """A list of sizes, some with a name."""
    parts = np.empty(len(sizes), object)
    parts[:] = sizes
    return Tensor("i64", (len(sizes),), parts=parts)


#: Operations whose output is as large as an input, less something or half of it, but no less than
#: nothing; and inputs whose size is B. A list stands for the shape of one.
HELD: list[tuple[str, dict[str, str], Callable[[Any], list[Any]]]] = [
    ("TileV1", {}, lambda b: [[1], listed(b - 5)]),
    ("TileV1", {}, lambda b: [[1], listed(b)]),
    ("ExtractImagePatchesV3",
     {"sizes": "5,1", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"},
     lambda b: [[1, 1, b, 8]]),
    ("RDFTV9", {}, lambda b: [[2, b], np.int64([1])]),
    ("IRDFTV9", {}, lambda b: [[2, b, 2], np.int64([1])]),
    ("MaxPoolV1",
     {"kernel": "4", "strides": "1", "pads_begin": "0", "pads_end": "0"}, lambda b: [[1, 1, b]]),
    ("BatchToSpaceV2", {},
     lambda b: [[2, b], np.int64([2, 1]), np.int64([0, 3]), np.int64([0, 0])]),
    ("STFTV15", {"transpose_frames": "false"},
     lambda b: [[b], np.ones(4, "f4"), np.int64(4), np.int64(1)]),
]  # fmt: skip


@pytest.mark.parametrize("row", HELD, ids=lambda row: row[0])
def test_a_size_that_is_held_at_nothing_has_no_name(
    row: tuple[str, dict[str, str], Callable[[Any], list[Any]]],
) -> None:
    name, attributes, inputs = row
    kind, _, number = name.rpartition("V")
    op = Op.registry[kind, int(number)].read(attributes)

    def tensors(size: Size) -> list[Tensor]:
        return [
            Tensor("f32", tuple(given)) if isinstance(given, list)
            else given if isinstance(given, Tensor) else Tensor.of(given)
            for given in inputs(size)
        ]  # fmt: skip

    (told,) = op.infer_outputs(tensors(Dim(0, None, "B")))
    for size in range(10):
        arrays = [
            np.ones(t.shape.static, "f4") if t.value is None else t.value for t in tensors(size)
        ]
        try:
            op.infer_outputs(tensors(size))
            (found,) = op.run(*arrays)
        except IRError:  # too small for it
            continue
        for one, other in zip(told.shape, found.shape, strict=True):
            if isinstance(one, Dim) and one.symbol is not None:
                assert eval(str(one.symbol), {}, {"B": size}) == other
    # Where it is large enough, it keeps its name.
    (told,) = op.infer_outputs(tensors(Dim(9, None, "B")))
    assert any(isinstance(size, Dim) and size.symbol is not None for size in told.shape)


#: The largest number of 64 bits.
MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("name", "attributes", "kind", "size", "number", "others"),
    [
        ("AddV1", {}, "i64", Dim(0, None, "B"), MOST, [np.int64([1, 1])]),
        ("AddV1", {}, "i32", Dim(0, 9, "B"), 2**31 - 1, [np.int32([1, 1])]),
        ("SubtractV1", {}, "u64", Dim(0, None, "B"), 3, [np.uint64([9, 5])]),
        ("SubtractV1", {}, "u32", Dim(0, 9), 3, [np.uint32([9, 5])]),
        ("MultiplyV1", {}, "i64", Dim(0, 2**40), 7, [np.int64([2**40, 1])]),
        ("ConvertV1", {"destination_type": "u64"}, "i64", Dim(0, None, "B"), -1, []),
        ("ConvertV1", {"destination_type": "i32"}, "i64", Dim(0, None, "B"), MOST, []),
        ("ReduceProdV1", {"keep_dims": "true"}, "i64", Dim(0, 2**32), 2**32, [np.int64([0])]),
    ],
)  # fmt: skip
def test_nothing_is_told_of_what_may_wrap_around(
    name: str, attributes: dict[str, str], kind: str, size: Dim, number: int, others: list[Array]
) -> None:
    stem, _, version = name.rpartition("V")
    op = Op.registry[stem, int(version)].read(attributes)
    dtype = Tensor(kind, ()).type.dtype
    parts = np.array([size], object)
    pair = [Tensor(kind, (1,), parts=parts), Tensor.of(np.array([number], dtype))]
    given = Op.registry["Concat", 1].read({"axis": "0"}).infer_outputs(pair)
    (told,) = op.infer_outputs([*given, *map(Tensor.of, others)])
    assert told.bounds is not None
    for one in (0, 7, 2**32):
        with np.errstate(all="ignore"):
            (found,) = op.run(np.array([min(one, size.high or one), number], dtype), *others)
        # The largest number stands for one without limit: what it becomes is not asked.
        asked = slice(1 if number in (MOST, 2**31 - 1) else None)
        assert (told.bounds[0] <= found)[asked].all()
        assert (found <= told.bounds[1])[asked].all()


def lengths(tmp_path: Any, *, simplify: bool, named: tuple[str, str] = ("N", "N")) -> ir.Model:
    """A model of two inputs, to one of which the difference of their lengths is added."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Shape", ["x"], ["sx"], end=1),
        helper.make_node("Shape", ["z"], ["sz"], end=1),
        helper.make_node("Sub", ["sx", "sz"], ["less"]),
        helper.make_node("Cast", ["less"], ["added"], to=kind),
        helper.make_node("Add", ["x", "added"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, kind, [size, 4])
        for name, size in zip("xz", named, strict=True)
    ]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "lengths", ends, outputs)
    path = tmp_path / "lengths.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return ir.from_onnx(path, simplify=simplify)


def added(x: Array, z: Array) -> Array:
    """What the model of `lengths` computes."""
    return x + np.float32(len(x) - len(z))


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_sizes_of_two_inputs_may_differ_whatever_they_are_called(
    tmp_path: Any, simplify: bool, again: bool
) -> None:
    model = lengths(tmp_path, simplify=simplify)
    if again:
        model, _ = ir.simplify(model)
    given = [np.ones((5, 4), "f4"), np.ones((2, 4), "f4")]
    program = ir.compile(model, threads=1)
    for call in (lambda arrays: ir.run(model, arrays), program, program):
        np.testing.assert_array_equal(call(given)["y"], added(*given))
        np.testing.assert_array_equal(call([given[0]] * 2)["y"], given[0])
    ir.reshape(model, {"x": "5,4"})
    np.testing.assert_array_equal(ir.run(model, given)["y"], added(*given))


def test_a_program_that_leaves_sizes_open_takes_unlike_ones(tmp_path: Any) -> None:
    program = ir.compile(lengths(tmp_path, simplify=True), threads=1)
    for count in range(2, 9):
        program([np.ones((count, 4), "f4")] * 2)
    given = [np.ones((5, 4), "f4"), np.ones((3, 4), "f4")]
    np.testing.assert_array_equal(program(given)["y"], added(*given))


def test_what_is_imported_does_not_rely_on_names_of_two_inputs(tmp_path: Any) -> None:
    model = lengths(tmp_path, simplify=False)
    model, _ = ir.edit(model, [{"op": "set-shape", "input": "z", "shape": "M,4"}])
    given = [np.ones((5, 4), "f4"), np.ones((2, 4), "f4")]
    for outputs in (ir.run(model, given), ir.compile(model, threads=1)(given)):
        np.testing.assert_array_equal(outputs["y"], given[0] + 3)
    other = lengths(tmp_path, simplify=True, named=("N", "M"))
    np.testing.assert_array_equal(ir.run(other, given)["y"], given[0] + 3)
