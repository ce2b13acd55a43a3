"""Running models: inputs checked, intermediates at hand, real networks against OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle import ask
from vinoir import ir
from vinoir.layers.activation import SoftSignV9
from vinoir.schemas import Array, Shape

DIGITS = Path(__file__).parents[1] / "samples" / "digits.xml"


@pytest.fixture(scope="module")
def digits() -> ir.Model:
    return ir.read(DIGITS)


IMAGE = np.random.default_rng(0).standard_normal((2, 1, 16, 16)).astype("f4")


def test_outputs_go_by_every_name_and_by_index(digits: ir.Model) -> None:
    outputs = ir.run(digits, {"image": IMAGE})
    assert list(outputs) == ["digit"]
    assert outputs[0] is outputs["digit"]
    with pytest.raises(ir.UsageError, match=r'no output is named "dgit"'):
        outputs["dgit"]


def test_openvino_gives_the_same(digits: ir.Model) -> None:
    xml, weights = ir.dumps(digits)
    (wanted,) = ask("values", xml.decode(), weights, [IMAGE])
    np.testing.assert_allclose(ir.run(digits, [IMAGE])[0], wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ir.compile(digits)([IMAGE])[0], wanted, rtol=1e-4, atol=1e-6)


def test_every_intermediate_can_be_had(digits: ir.Model) -> None:
    every = ir.run(digits, {"image": IMAGE}, outputs="all")
    assert every["found1"].min() == 0
    some = ir.run(digits, {0: IMAGE}, outputs=["pool2", "digit"])
    assert list(some) == ["pool2", "digit"]
    np.testing.assert_array_equal(some["pool2"], every["pool2:0"])


def two_ends(*, shared: bool) -> ir.Model:
    """A model with the outputs a and b, of one tensor or of two."""
    net = ir.Builder("two")
    x = net.parameter("x", "f32", "1,4")
    last = ir.ops.ReLU(x, name="r")
    net.result(last, name="a")
    net.result(last if shared else ir.ops.Sigmoid(last, name="s"), name="b")
    return net.model()


def test_an_output_that_was_not_asked_for_is_refused() -> None:
    model, given = two_ends(shared=False), [np.ones((1, 4), "f4")]
    for found in (
        ir.run(model, given, outputs=["a"]),
        ir.compile(model, outputs=["a"])(given),
    ):
        for name in ("b", "s"):
            with pytest.raises(ir.UsageError, match=f'no output is named "{name}"; there are'):
                found[name]
        np.testing.assert_array_equal(found["a"], given[0])


def test_all_hands_out_every_output_by_its_name() -> None:
    given = [np.float32([[-1, 0, 1, 2]])]
    for shared in (True, False):
        model = two_ends(shared=shared)
        alone = ir.run(model, given)
        every = ir.run(model, given, outputs="all")
        assert list(ir.compile(model, outputs="all")(given)) == list(every)
        for name in ("a", "b"):
            np.testing.assert_array_equal(every[name], alone[name])
            assert name in every


def test_the_trace_sees_each_layer_once(digits: ir.Model) -> None:
    seen: list[str] = []
    ir.run(digits, [IMAGE], trace=lambda step: seen.append(step.layer.name))
    assert sorted(seen) == sorted(layer.name for layer in digits.layers)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({}, 'no value is given for 1 of the inputs: "image"'),
        ({"image": IMAGE.astype("f8")}, 'input "image" is f32, the array is float64'),
        ({"image": IMAGE[:, :, :3]}, "has the shape 1..64,1,16,16, the array (2, 1, 3, 16)"),
        ({"image": IMAGE, 0: IMAGE}, 'input "image" is given twice'),
        ({3: IMAGE}, "input 3 is asked for, the model has 1"),
        ({"images": IMAGE}, 'did you mean "image"?'),
    ],
)
def test_inputs_are_checked(digits: ir.Model, inputs: object, says: str) -> None:
    with pytest.raises(ir.UsageError) as caught:
        ir.run(digits, inputs)
    assert says in str(caught.value)


@pytest.mark.parametrize("shape", ["4", "1,4", "2,4", "?,?", "..."])
def test_one_array_is_that_of_a_single_input(shape: str) -> None:
    """As OpenVINO takes it; with several inputs an array is still none of them."""
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    net.result(net.add("ReLU", "opset1", [x]), name="y")
    sizes = {"?,?": (1, 4), "...": (1, 4)}.get(shape) or tuple(map(int, shape.split(",")))
    given = np.float32(np.arange(-2, np.prod(sizes) - 2)).reshape(sizes)
    for found in (ir.run(net.model(), given), ir.compile(net.model())(given)):
        np.testing.assert_array_equal(found["y"], given.clip(0))
    net.result(net.add("ReLU", "opset1", [net.parameter("more", "f32", shape)]), name="z")
    with pytest.raises(ir.UsageError):
        ir.run(net.model(), given)


@pytest.mark.parametrize("kind", ["bf16", "i4", "f8e5m2", "u2", "string", "f16", "boolean"])
def test_the_hint_converts_an_array(kind: str) -> None:
    net = ir.Builder()
    net.result(net.parameter("x", kind, "2"), name="y")
    model, array = net.model(), np.array([1, 0], "c8")
    with pytest.raises(ir.UsageError) as caught:
        ir.run(model, [array])
    hint = str(caught.value.hint).removeprefix("convert it: ")
    ir.run(model, [eval(hint, {"array": np.array([1, 0], "f4"), "ml_dtypes": ml_dtypes})])


def test_a_long_chain_runs_without_recursion() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1")
    for _ in range(3000):
        x = net.add("ReLU", "opset1", [x])
    net.result(x, name="y")
    model = net.model()
    assert ir.run(model, [np.array([2], "f4")])["y"] == 2
    assert ir.compile(model)([np.array([-2], "f4")])["y"] == 0


def test_two_outputs_of_one_tensor_have_two_names() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2")
    net.result(x, name="a")
    net.result(x, name="b", names=())
    model = net.model()
    for way in (ir.run, lambda m, i: ir.compile(m)(i)):
        outputs = way(model, [np.array([1, 2], "f4")])
        assert len(outputs) == 2


def test_an_operation_may_ask_what_its_inputs_are() -> None:
    # An array of u1 looks like one of u8; the tensor knows.
    net = ir.Builder()
    x, like = net.parameter("x", "f32", "3"), net.parameter("like", "u1", "3")
    net.result(net.add("ConvertLike", "opset1", [x, like]), name="y")
    given = [np.array([0, 2, 5], "f4"), np.array([0, 1, 1], "u1")]
    # One bit of 2 is 0; as u8 it would stay 2.
    np.testing.assert_array_equal(ir.run(net.model(), given)["y"], [0, 0, 1])


HUGE = 10**12


@pytest.mark.parametrize(
    ("kind", "version", "inputs", "attributes"),
    [
        ("Broadcast", "opset3", [np.float32(1), np.array([HUGE, 5])], {"mode": "numpy"}),
        ("Tile", "opset1", [np.zeros(3, "f4"), np.array([HUGE])], {}),
        ("Range", "opset4", [np.int64(0), np.int64(HUGE), np.int64(1)], {"output_type": "i64"}),
        ("RandomUniform", "opset8", [np.array([HUGE, 9]), np.float32(0), np.float32(1)],
         {"output_type": "f32", "global_seed": 1, "op_seed": 1, "alignment": "pytorch"}),
        ("OneHot", "opset1", [np.zeros(2, "i8"), np.int64(HUGE * 9), np.int8(1), np.int8(0)],
         {"axis": -1}),
        ("Eye", "opset9", [np.int64(HUGE), np.int64(9), np.int64(0)], {"output_type": "f32"}),
        ("Pad", "opset1", [np.zeros(2, "f4"), np.array([0]), np.array([HUGE])],
         {"pad_mode": "edge"}),
        ("AvgPool", "opset1", [np.zeros((1, 1, 9), "f4")],
         {"kernel": [1], "strides": [HUGE], "pads_begin": [HUGE * 9], "pads_end": [0],
          "exclude-pad": False, "rounding_type": "floor", "auto_pad": "explicit"}),
    ],
)  # fmt: skip
def test_outputs_larger_than_the_machine_are_refused(
    kind: str, version: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    net = ir.Builder()
    given = [net.constant(value) for value in inputs]
    net.result(net.add(kind, version, given, name="odd", data=attributes))
    model = net.model()
    ir.infer(model)
    with pytest.raises(ir.IRError, match=r'"odd".*not enough memory: [0-9]+ bytes are needed'):
        ir.run(model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, r"of the type int, not arrays .*put a single array into a list"),
        (np.zeros((1, 2, 3), "f4"), r"has the shape 2,3, the array \(1, 2, 3\)"),
        ([[["a", "b", "c"]] * 2], r'input "x" is f32, what is given is not: could not convert'),
        ([[[1, 2], [3]]], r'input "x" is no array: '),
        ([None], r'input "x" is f32, the array is object'),
    ],
)
def test_inputs_that_are_none(given: Any, message: str) -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "2,3")]), name="y")
    model = net.model()
    for call in (partial(ir.run, model), ir.compile(model)):
        with pytest.raises(ir.UsageError, match=message):
            call(given)


@pytest.mark.parametrize("way", [ir.run, lambda model, given: ir.compile(model)(given)])
@pytest.mark.parametrize(
    ("target", "message"),
    [((3, 2, 5), "size 4 does not broadcast to 5 of 3,2,5"), ((-3, 2, 4), "a size is -3")],
)
def test_what_numpy_refuses_is_said_by_the_rule(
    way: Any, target: tuple[int, ...], message: str
) -> None:
    net = ir.Builder()
    inputs = [net.parameter("x", "f32", (1, 4)), net.parameter("s", "i64", (3,))]
    net.result(net.add("Broadcast", "opset3", inputs, mode="numpy"), name="y")
    with pytest.raises(ir.IRError, match=f'layer 2 "Broadcast".*{message}'):
        way(net.model(), [np.zeros((1, 4), "f4"), np.int64(target)])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4"])
def test_an_input_of_no_declared_type_is_computed_alike_however_it_is_run(kind: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "dynamic", "3")
    net.result(net.add("Add", "opset1", [x, x]), name="y")
    model, given = net.model(), [np.array([1, 2, 3], kind)]
    found, wanted = ir.compile(model)(given)["y"], ir.run(model, given)["y"]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_what_a_run_hands_out_lies_in_its_order() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 3, 4))
    net.result(net.add("Transpose", "opset1", [net.add("ReLU", "opset1", [x]), [2, 1, 0]]))
    given = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for run in (lambda: ir.run(net.model(), [given]), lambda: ir.compile(net.model())([given])):
        (found,) = run().values()
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, given.transpose(2, 1, 0))


WAYS_TO_LOOK: dict[str, Callable[[Array], Array]] = {
    "view": lambda x: x[...],
    "bytes": lambda x: x.view(np.int32).view(np.float32),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 1).reshape(x.shape),
    "strides": lambda x: np.lib.stride_tricks.as_strided(x, x.shape, x.strides),
    "memoryview": lambda x: np.asarray(memoryview(x)),
    "buffer": lambda x: np.frombuffer(x, np.float32),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("look", WAYS_TO_LOOK.values(), ids=WAYS_TO_LOOK)
def test_what_is_handed_out_and_kept_has_memory_of_its_own(
    look: Callable[[Array], Array], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (4,))
    held: dict[str, Any] = {"variable_id": "v", "variable_type": "f32"}
    held["variable_shape"] = Shape((4,))
    made = net.add("SoftSign", "opset9", [x])
    net.add("Assign", "opset6", [made], variable_id="v")
    net.result(made, name="one")
    net.result(net.add("ReadValue", "opset6", [x], **held), name="two")
    net.result(made, name="three")
    model, array = net.model(), np.arange(4, dtype=np.float32)
    state: dict[str, Array] = {}
    monkeypatch.setattr(SoftSignV9, "run", lambda self, x: (look(x),))
    if compiled:
        program = ir.compile(model)
        found, state = program([array]), program.state
    else:
        found = ir.run(model, [array], state=state)
    arrays = [array, *found.values(), *state.values()]
    assert len(arrays) == 5
    for one, other in combinations(arrays, 2):
        assert not np.may_share_memory(one, other)
