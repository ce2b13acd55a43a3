"""What somebody guesses who has not read the manual: it works, or is refused with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import vinoir.layers
from vinoir import ir

POOL = {"kernel": (2, 2), "strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}


def network() -> ir.Model:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "?,3,8,8")
    y = net.add("ReLU", "opset1", [x], name="relu")
    y = net.add("MaxPool", "opset14", [y], name="pool", **POOL)
    net.result(y, name="out")
    return ir.loads(*ir.dumps(net.model()))


@pytest.mark.parametrize(
    ("layer", "name", "value", "text"),
    [
        ("relu", "slope", 1, "ReLU has no attribute slope (it has none)"),
        ("pool", "kernal", "2,2", "MaxPool has no attribute kernal (did you mean kernel?)"),
        ("pool", "index_element_type", "f32", "index_element_type is f32, it is i32 or i64"),
    ],
)
def test_an_edit_refuses_what_its_operation_does_not_take(
    layer: str, name: str, value: Any, text: str
) -> None:
    entry = {"op": "set-attribute", "layer": layer, "name": name, "value": value}
    with pytest.raises(ir.IRError) as error:
        ir.edit(network(), [entry])
    assert text in str(error.value)
    assert f'"{layer}"' in str(error.value)


def test_an_operation_that_nobody_knows_takes_any_attribute() -> None:
    model = network()
    model["relu"].type = "Mine"
    entry = {"op": "set-attribute", "layer": "relu", "name": "slope", "value": 1}
    assert ir.edit(model, [entry]).model["relu"].data["slope"] == "1"


def test_attributes_that_fit_only_together_are_set_one_by_one() -> None:
    model = network()
    edits = [
        {"op": "set-attribute", "layer": "pool", "name": name, "value": value}
        for name, value in (("auto_pad", "valid"), ("strides", "1,1"), ("kernel", "3,3"))
    ]
    assert ir.edit(model, edits).model["pool"].kernel == (3, 3)


def test_one_name_is_no_list_of_letters() -> None:
    model = network()
    assert ir.extract(model, outputs="relu").model.outputs[0].shape == model.inputs[0].shape
    assert ir.simplify(model, only="fold-constants")[1].layers_after == len(model)
    assert not ir.check(model, select="IR4").findings
    with pytest.raises(ir.UsageError, match='no rule is named "foo"'):
        ir.simplify(model, skip="foo")
    with pytest.raises(ir.UsageError, match="no finding has the code XX"):
        ir.check(model, ignore="XX")


def test_one_edit_is_a_list_of_one() -> None:
    entry = {"op": "rename", "layer": "relu", "to": "bent"}
    assert "bent" in [layer.name for layer in ir.edit(network(), entry).model]


Guess = Callable[[ir.Model], Any]
GUESSES: list[tuple[Guess, str]] = [
    (lambda m: ir.merge(m), "one model is given, two or more are merged .give them as a list"),
    (lambda m: ir.simplify(m, certify=-1), "certify is -1, the least is 0"),
    (lambda m: setattr(m["relu"], "name", 5), "a name is text, not int"),
    (lambda m: setattr(m["relu"], "op", "ReLU"), "an operation is wanted, not str"),
    (lambda m: m[None], "a layer has a name or an id, not NoneType"),  # type: ignore[index]
    (lambda m: ir.read(5), "a path or an open file is wanted, not int"),  # type: ignore[arg-type]
    (lambda m: ir.read(b"<net>"), "ir.loads"),  # type: ignore[arg-type]
    (lambda m: ir.loads(5), "a document is text or bytes, not int"),  # type: ignore[arg-type]
    (lambda m: ir.write(m, None), "a path is wanted, not NoneType"),  # type: ignore[arg-type]
    (lambda m: setattr(m["pool"], "index_element_type", "f32"), "it is i32 or i64"),
    (lambda m: setattr(m["pool"], "strides", (0, 1)), "strides has 0, the least is 1"),
    (lambda m: setattr(m["pool"], "strides", (1,)), "strides has 1 axes, kernel has 2 .*together"),
]


@pytest.mark.parametrize(("guess", "text"), GUESSES)
def test_a_wrong_guess_is_told_what_is_right(guess: Guess, text: str) -> None:
    model = network()
    before = ir.dumps(model)
    with pytest.raises(ir.UsageError, match=text):
        guess(model)
    assert ir.dumps(model) == before


def test_attributes_that_fit_only_together_are_set_in_any_order() -> None:
    model = network()
    model.edit.set("pool", auto_pad="valid", strides=(1, 1), kernel=(3, 3))
    assert model["pool"].kernel == (3, 3)


def test_a_message_tells_the_choices_once() -> None:
    with pytest.raises(ir.UsageError) as error:
        network()["pool"].rounding_type = "cel"
    assert str(error.value).count("ceil_torch") == 1


def test_names_of_the_faces_are_guessed() -> None:
    with pytest.raises(AttributeError, match=r"did you mean check\?"):
        _ = ir.chek  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean MaxPoolV14\?"):
        _ = vinoir.layers.MaxPool
    with pytest.raises(AttributeError, match=r"did you mean MaxPoolV14\?"):
        _ = vinoir.layers.MaxPoolV15
