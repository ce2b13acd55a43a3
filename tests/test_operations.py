"""``ir.ops`` and the builder: layers added by calls, values among inputs, errors with a place."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import calls
import numpy as np
import operations_stub
import pytest
from oracle import Call
from vinoir import ir, layers
from vinoir.ir.operations import NOT_CALLED
from vinoir.layers import Op
from vinoir.schemas import Tensor


def network(**options: Any) -> tuple[ir.Builder, ir.Output]:
    net = ir.Builder(**options)
    return net, net.parameter("x", "f32", "1,3,H,W")


MAX_POOL = Op.newest("MaxPool")
assert MAX_POOL is not None
#: The newest MaxPool, as messages name it.
POOL = f"MaxPool {MAX_POOL.version()}"
NEWEST = {op.__name__ for kind in dir(ir.ops) if (op := Op.newest(kind)) is not None}
CALLS = [call for call in calls.samples() if call.op in NEWEST]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_call_is_the_layer_that_the_builder_adds(call: Call) -> None:
    net, names = ir.Builder(), call.kind.arity()[0]
    inputs = [
        net.parameter(f"x{index}", tensor.type, tensor.shape)
        if tensor.value is None
        else net.constant(tensor.value, tensor.type)
        for index, tensor in enumerate(call.tensors())
    ]
    texts = {call.kind.names()[name]: text for name, text in call.data.items()}
    made = getattr(ir.ops, call.kind.xml_type)(*inputs, **texts, name="a", net=net)
    if len(inputs) <= len(names) and call.kind.arity()[2] is not None:
        feeds = dict(zip(names, inputs, strict=False))
        made = getattr(ir.ops, call.kind.xml_type)(**feeds, **texts, name="b", net=net)
    wanted = net.add(call.kind.xml_type, call.kind.version(), inputs, data=call.data)
    assert made.layer.data == wanted.layer.data
    assert (made.layer.type, made.layer.version) == (wanted.layer.type, wanted.layer.version)
    assert [one.tensor for one in made] == [one.tensor for one in wanted]


def test_every_operation_is_offered() -> None:
    assert set(dir(ir.ops)) == {op.xml_type for op in Op.registry.values()} - NOT_CALLED
    assert {call.kind.xml_type for call in CALLS} >= set(dir(ir.ops)) - {"Assign", "ReadValue"}


@pytest.mark.parametrize("kind", dir(ir.ops))
def test_the_signature_names_inputs_and_attributes(kind: str) -> None:
    op = Op.newest(kind)
    assert op is not None
    function = getattr(ir.ops, kind)
    assert (function.__name__, function.__doc__) == (kind, op.__doc__)
    names = list(inspect.signature(function).parameters)
    assert names == [*op.arity()[0], *inspect.signature(op).parameters, "name", "net"]


def test_the_stub_is_current() -> None:
    shipped = operations_stub.STUB.read_text("utf-8")
    assert operations_stub.stub() == shipped, "make it anew: python tests/operations_stub.py"


def test_the_list_of_classes_is_current() -> None:
    shipped = operations_stub.CLASSES.read_text("utf-8")
    assert operations_stub.classes() == shipped, "make it anew: python tests/operations_stub.py"


def test_the_same_choices_have_one_order() -> None:
    """Typing takes two such lists for equal: whichever came first would be printed for both."""
    orders: dict[frozenset[str], set[tuple[str, ...]]] = {}
    for path in Path(layers.__file__).parent.glob("*.py"):
        for words in re.findall(r"Literal\[([^\]]*)\]", path.read_text("utf-8")):
            order = tuple(re.findall(r'"([^"]*)"', words))
            orders.setdefault(frozenset(order), set()).add(order)
    assert len(orders) > 20
    assert [found for found in orders.values() if len(found) > 1] == []


def test_several_outputs() -> None:
    _, x = network()
    values, places = ir.ops.MaxPool(x, kernel=(2, 2), strides=(2, 2), index_element_type="i32")
    assert (values.tensor.type, places.tensor.type) == ("f32", "i32")
    first, second, third = ir.ops.Split(x, 1, num_splits=3)
    assert third.index == 2
    assert str(ir.ops.Concat([first, second], axis=1).tensor) == "f32[1,2,H,W]"
    assert (
        ir.ops.Concat(first, second, axis=1).tensor
        == ir.ops.Concat([first, second], axis=1).tensor
    )


@pytest.mark.parametrize(
    ("opset", "version"),
    [(None, MAX_POOL.version()), (13, "opset8"), (8, "opset8"), (7, "opset1")],
)
def test_the_newest_version_that_the_opset_has(opset: int | None, version: str) -> None:
    _, x = network(opset=opset)
    assert ir.ops.MaxPool(x, kernel=(2, 2), strides=(2, 2)).layer.version == version


def test_what_an_opset_does_not_have() -> None:
    _, x = network(opset=3)
    with pytest.raises(ir.UsageError, match=r"\(Mish\): Mish is not in opset3 or before"):
        ir.ops.Mish(x)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "bf16", "i32", "u8", "i64"])
def test_numbers_take_the_type_that_the_rule_takes(kind: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", kind, "2,3")
    assert ir.ops.Add(x, 1).tensor.type == kind
    assert ir.ops.Multiply([[2], [3]], x).tensor.type == kind
    assert ir.ops.Reshape(x, [3, -1], special_zero=False).tensor == Tensor(kind, "3,2")
    assert ir.ops.Gather(x, [0, 2], 1).tensor == Tensor(kind, "2,2")
    assert ir.ops.Pad(x, [0, 0], [1, 1], 0, pad_mode="constant").tensor == Tensor(kind, "3,4")
    if x.tensor.type.is_real:
        assert ir.ops.Add(x, 0.5).tensor.type == kind
        assert ir.ops.Clamp(x, min=0, max=6).tensor.type == kind


def test_what_no_type_fits_is_refused() -> None:
    net = ir.Builder()
    x = net.parameter("x", "u8", "2")
    with pytest.raises(ir.IRError, match=r'layer "more" \(Add opset1\).*u8.*i64'):
        ir.ops.Add(x, 300, name="more")
    with pytest.raises(ir.IRError, match=r"u8.*f32"):
        ir.ops.Add(x, 0.5)
    with pytest.raises(ir.IRError, match=r"u8.*f64"):
        ir.ops.Add(x, np.array([0.5]))


def test_values_become_constants_that_are_named() -> None:
    net, x = network()
    y = ir.ops.Reshape(x, [0, -1], special_zero=True, name="flat")
    z = net.add("Add", "opset1", [y, np.float32(2)], name="more")
    assert [layer.name for layer in net.graph.layers] == [
        "x", "flat/shape", "flat", "more/b", "more",
    ]  # fmt: skip
    net.result(z, name="out")
    given = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    np.testing.assert_array_equal(ir.run(net.model(), [given])["out"], given.reshape(1, 12) + 2)


def test_without_an_output_among_the_inputs_the_builder_is_named() -> None:
    net, _ = network()
    assert ir.ops.Range(0, 5, 1, output_type="i32", net=net).tensor == Tensor("i32", "5")
    with pytest.raises(ir.UsageError, match=r"no input is an output of a layer .say net="):
        ir.ops.Range(0, 5, 1, output_type="i32")


def test_an_output_of_a_model_that_was_read() -> None:
    model = ir.read(Path(__file__).parents[1] / "samples" / "digits.xml")
    layer = model.layer("found1")
    tensors = ir.infer(model).of(layer)
    made = ir.ops.Sigmoid(ir.Output(layer, 0, tensors), name="found1")
    assert (made.layer.graph, made.layer.name) == (model, "found1_1")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ir.ops.MaxPool(x, kernl=(2, 2), strides=(1, 1), name="pool2"),
         rf'layer "pool2" \({POOL}\): kernl is not an attribute of {MAX_POOL.spec()}, did you'),
        (lambda x: ir.ops.MaxPool(x, kernel=2, strides=(1, 1)),
         rf'layer "MaxPool" \({POOL}\): kernel: 2 is one number'),
        (lambda x: ir.ops.Add(x), r'layer "Add" \(Add opset1\): 1 inputs, Add-1 takes 2 \(a, b\)'),
        (lambda x: ir.ops.Add(x, x, x), r"\(Add\): 3 inputs, Add-1 takes a, b"),
        (lambda x: ir.ops.Add(x, {}), r"input 1 is {}, neither an output of a layer nor a value"),
        (lambda x: ir.ops.Add(x, b=x, a=x), "input a is given twice"),
        (lambda x: ir.ops.Add(b=x), "input b is given, a before it is not"),
        (lambda x: ir.ops.Add(x, network()[1]), 'input 1 is <layer 0 "x".*is in another graph'),
        (lambda x: x.builder.add("MaxPol", "opset1", [x]), "not known, did you mean MaxPool?"),
        (lambda x: x.builder.add("MaxPool", "opset99", [x]),
         f"{MAX_POOL.spec()} is {MAX_POOL.version()}"),
        (lambda x: x.builder.add("MaxPool", None, [x], name="p"),
         r'layer "p" \(MaxPool\): MaxPool needs a version'),
        (lambda x: x.builder.add("MaxPool", "opset1", [x], kernel=(2, 2), strides=(1, 1), axis=1),
         r"\(MaxPool opset1\): axis is not an attribute of MaxPool-1, MaxPool-8 and later have"),
    ],
)  # fmt: skip
def test_errors_say_which_layer_and_what(call: Any, message: str) -> None:
    _, x = network()
    count = len(x.builder.graph.layers)
    with pytest.raises(ir.IRError, match=message):
        call(x)
    assert len(x.builder.graph.layers) == count, "something was left behind"


def test_operations_that_are_not() -> None:
    with pytest.raises(AttributeError, match=r"no operation MaxPol, did you mean MaxPool?"):
        ir.ops.MaxPol  # type: ignore[attr-defined]  # noqa: B018


def test_optional_attributes_may_be_left_out() -> None:
    net, x = network()
    y = net.add("MaxPool", "opset8", [x], kernel=(2, 2), strides=(1, 1))
    assert (y.layer.data["pads_begin"], y.layer.data["dilations"]) == ("0, 0", "1, 1")


def test_an_operation_with_attributes_beside_it_is_checked() -> None:
    net, x = network()
    op = Op.registry["MaxPool", 8](kernel=(2, 2), strides=(1, 1))  # type: ignore[call-arg]
    assert net.add(op, None, [x], kernel=(3, 3)).layer.data["kernel"] == "3, 3"
    with pytest.raises(ir.IRError, match=r'"p" \(MaxPool opset8\): kernl is not an attribute'):
        net.add(op, None, [x], kernl=(3, 3), name="p")


USER = """
import numpy as np
from vinoir import ir, layers
from vinoir.layers.pooling import AvgPoolV1, MaxPoolV14
from vinoir.schemas import Tensor

net = ir.Builder("m", opset=14)
x = net.parameter("x", "f32", "1,3,H,W")
y, places = ir.ops.MaxPool(x, kernel=(2, 2), strides=[2, 2], index_element_type="i32", name="p")
z = ir.ops.Concat(ir.ops.Add(y, 1.5), np.ones((1, 3, 1, 1), np.float32), axis=1)
op = MaxPoolV14(kernel=(2, 2), strides=(1, 1)).with_(kernel=(3, 3))
net.result(net.add(op, None, [z, 2]), name="out")
sizes: tuple[int, ...] = op.kernel
AvgPoolV1(kernel=(2, 2), strides=(1, 1), exclude_pad=True)
Tensor("f32", "1,3,H,W"), Tensor("f32", [1, 3, -1, -1])
"""
WRONG = {
    "ir.ops.MaxPool(x, kernel=(2, 2), strides=(1, 1), rounding_typ='ceil')": "rounding_type",
    "ir.ops.MaxPool(x, kernel=(2, 2), strides=(1, 1), rounding_type='up')": "Literal['up']",
    "ir.ops.MaxPol(x)": "MaxPool",
    "MaxPoolV14(kernel=(2, 2), strides=(1, 1), rounding_typ='ceil')": "rounding_type",
    "MaxPoolV14(strides=(1, 1))": "kernel",
}


def test_type_checkers_see_names_and_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER + "".join(f"{line}\n" for line in WRONG), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == len(WRONG), done.stdout + done.stderr
    for number, (line, words) in enumerate(WRONG.items(), USER.count("\n") + 1):
        assert any(row.startswith(f"user.py:{number}: ") and words in row for row in errors), line


def test_importing_the_face_imports_no_operation() -> None:
    program = (
        "import sys; from vinoir import ir; dir(ir); found = [m for m in sys.modules "
        "if m.startswith(('vinoir.layers', 'vinoir.ir.operations'))]; "
        "sys.exit(str(found) if found else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
