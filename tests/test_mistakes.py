"""Whose fault it is: a file's is an IRError, a mistake of ours an InternalError."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import calls
import numpy as np
import pytest
from oracle import Call, single
from pydantic import ValidationError
from vinoir import ir
from vinoir.ir.cli import CRASH, main
from vinoir.layers import AvgPoolV1, MaxPoolV14, Op
from vinoir.layers.activation import ReLUV1
from vinoir.schemas import InternalError, IRError, Where, placed

ATTRIBUTE = re.compile(r'([\w\-]+)="([^"]*)"')
VALUES = ("0", "-1", "1", "7", "2147483648", "99999999999999999999", "1e30", "nan", "-inf", "0.5",
          "", "x", "1,2,3", "-1,-1", "string", "i64", "u1", "?,?", "...", "2,0,2")  # fmt: skip


def mutated(xml: str, rng: random.Random) -> str:
    """A document with one attribute or size that says something else."""
    places = [m.span(2) for d in re.finditer(r"<data [^>]*>", xml)
              for m in ATTRIBUTE.finditer(xml, *d.span())]  # fmt: skip
    places += [m.span(1) for m in re.finditer(r"<dim>([^<]*)</dim>", xml)]
    start, stop = rng.choice(places)
    return xml[:start] + rng.choice(VALUES) + xml[stop:]


def treat(xml: str, weights: bytes) -> None:
    """Everything that is done with a model; a bad one is refused."""
    ir.check(xml.encode(), weights=weights)
    try:
        model = ir.loads(xml, weights)
        ir.infer(model)
    except IRError:
        return


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_mutants_of_sample_calls_are_refused_by_rules(call: Call) -> None:
    rng = random.Random(str(call))
    for known in (False, True):
        xml, weights = single(call.make(), call.tensors(known=known))
        for _ in range(5):
            treat(mutated(xml, rng), weights)


#: By operation: inputs whose values point beyond the others.
BEYOND = {
    "GatherElementsV6": [np.zeros((2, 2), "f4"), np.full((2, 2), 9)],
    "GatherNDV8": [np.zeros((2, 2), "f4"), np.full((2, 1), 9)],
    "ScatterUpdateV3": [
        np.zeros((2, 2), "f4"), np.array([9]), np.zeros((1, 2), "f4"), np.int64(0),
    ],
    "ScatterElementsUpdateV3": [
        np.zeros((2, 2), "f4"), np.full((1, 1), 9), np.zeros((1, 1), "f4"), np.int64(0),
    ],
    "ScatterNDUpdateV3": [np.zeros((2, 2), "f4"), np.full((1, 1), 9), np.zeros((1, 2), "f4")],
    "GatherTreeV1": [
        np.zeros((2, 1, 2), "i4"), np.full((2, 1, 2), 9, "i4"), np.array([2], "i4"), np.int32(1),
    ],
    "ReverseSequenceV1": [np.zeros((2, 3), "f4"), np.array([9, 9])],
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_indices_beyond_the_data_are_refused(name: str) -> None:
    kind, _, number = name.rpartition("V")
    op = Op.registry[kind, int(number)].read({"batch_axis": "0", "seq_axis": "1", "axis": "0"})
    with pytest.raises(IRError, match="is beyond an axis of size"):
        op.run(*map(np.asarray, BEYOND[name]))


@pytest.mark.parametrize("error", [KeyError("k"), TypeError("t"), AttributeError("a"),
                                   IndexError("i"), ZeroDivisionError("z")])  # fmt: skip
def test_what_wrong_code_raises_is_ours(error: Exception) -> None:
    outer, inner = Where("m.xml", layer=3), Where(layer=3, name="pool")
    with pytest.raises(InternalError) as raised, placed(outer), placed(inner):
        raise error
    assert raised.value.__cause__ is error
    assert not isinstance(raised.value, IRError)
    assert str(raised.value.where) == 'm.xml: layer 3 "pool"'


@pytest.mark.parametrize("verb", ["run", "infer", "check"])
def test_a_bug_ends_with_its_own_exit_code_and_place(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: object, data: object) -> None:  # the parameters are its inputs
        raise KeyError("lost")

    monkeypatch.setattr(ReLUV1, "run", broken)
    monkeypatch.setattr(ReLUV1, "infer", broken)
    with pytest.raises(SystemExit) as left:
        main([verb, str(Path(__file__).parents[1] / "samples" / "digits.xml")])
    assert left.value.code == CRASH
    said = capsys.readouterr().err
    assert "has a bug: KeyError: 'lost'" in said
    assert "(ReLU opset1)" in said
    assert "please report it" in said


#: By what the error says: what a caller gave a builder in place of what it takes.
WRONG = {
    "outputs are 1": lambda net, x: net.add("Relu", "opset1", [x], outputs=1),
    "1 among outputs is no Tensor": lambda net, x: net.add("Relu", "opset1", [x], outputs=[1]),
    "inputs are 3": lambda net, x: net.add("Relu", "opset1", 3),
    "data is 5": lambda net, x: net.add("Relu", "opset1", [x], data=5),
    "None is no type of a layer": lambda net, x: net.add(None, "opset1", [x]),
    "a name is text, not 7": lambda net, x: net.add("ReLU", "opset1", [x], name=7),
    "a name is text, not 6": lambda net, x: net.parameter(6, "f32", "1"),
    "a name is text, not 5": lambda net, x: ir.Builder(5),
    "a name, or several, is wanted, not 4": lambda net, x: net.parameter("y", "f32", "1", names=4),
    "a name, or several, is wanted, not 8": lambda net, x: x.named(8),
    "a graph to build into is wanted, not 'x'": lambda net, x: ir.Builder(into="x"),
    "bytes or an open file is wanted, not int": lambda net, x: ir.check(3),
    "no finding has the code 2": lambda net, x: ir.explain(2),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_a_caller_cannot_mean_is_said_to_be_theirs(said: str) -> None:
    net = ir.Builder()
    with pytest.raises(ir.UsageError, match=re.escape(said)):
        WRONG[said](net, net.parameter("x", "f32", "1,3"))


def test_one_name_is_no_list_of_letters() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,3", names="image")
    result = net.result(x, name="y", names="label")
    assert x.layer.outputs[0].names == ("image", "label")
    assert result.output_names == "image,label"


@pytest.mark.parametrize("weights", ["m.bin", 3, 1.5, [1]])
def test_weights_that_are_no_bytes(weights: Any) -> None:
    with pytest.raises(ir.UsageError, match="weights are bytes, not"):
        ir.loads(b'<net name="m" version="11"><layers/></net>', weights)
    with pytest.raises(ir.UsageError, match="weights are bytes, not"):
        ir.Weights(weights)


@pytest.mark.parametrize(
    "words",
    [
        {"kernel": np.array([2, 3]), "strides": np.array([1, 1])},
        {"kernel": iter((2, 3)), "strides": (number for number in (1, 1))},
        {"kernel": [2, 3], "strides": "1, 1"},
    ],
    ids=["arrays", "iterators", "lists"],
)
def test_windows_are_said_by_any_list(words: dict[str, Any]) -> None:
    made = MaxPoolV14(**words)
    assert (made.kernel, made.strides, made.pads_begin) == ((2, 3), (1, 1), (0, 0))


@pytest.mark.parametrize("one", [np.array(2), np.int64(2), 2])
def test_an_array_without_axes_is_one_number(one: Any) -> None:
    with pytest.raises(ValidationError, match="2 is one number, a list is expected"):
        MaxPoolV14(kernel=one, strides=(1, 1))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MaxPoolV14(kernel=(), strides=()), "is empty, it has an entry for each"),
        (
            lambda: AvgPoolV1(
                kernel=(2,), strides=(1,), exclude_pad=True, **{"exclude-pad": False}
            ),
            "exclude_pad is given twice, also as exclude-pad",
        ),
    ],
)
def test_lists_of_nothing_and_names_given_twice_are_told(
    make: Callable[[], Op], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        make()
