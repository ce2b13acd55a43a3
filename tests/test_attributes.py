"""Operations made by a user: attributes that no layer may have are refused at once."""

from __future__ import annotations

import inspect
import json
import os
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import calls
import numpy as np
import pytest
from oracle import Call, ask, write
from pydantic import ValidationError
from vinoir import ir
from vinoir.ir.document.definitions import operations_schema
from vinoir.layers import Op
from vinoir.layers.base import spell
from vinoir.layers.pooling import AvgPoolV1, MaxPoolV1, MaxPoolV8
from vinoir.schemas import ElementType, IRError, Tensor

#: Values of each attribute that OpenVINO is asked about; more of them by hand.
CASES = int(os.environ.get("VINOIR_CASES", "1"))

OPS = sorted(Op.registry.values(), key=lambda op: op.__name__)
POOL = {"kernel": (2, 2), "strides": (1, 1)}

VALUES: dict[str, tuple[str, ...]] = {
    "int": ("-2", "-1", "0", "1", "2", "7"),
    "float": ("-1", "0", "0.5", "1", "nan", "inf"),
    "element_type": tuple(kind for kind in ElementType),
}
#: What OpenVINO says where the inputs, and not the attributes, are to blame.
OF_INPUTS = ("Rank must be static", "out of range", "After normalization batch_dims")


@cache
def call_of(kind: type[Op], name: str = "") -> Call | None:
    """A sample call of an operation, if there is one with this attribute."""
    own = [call for call in calls.samples() if call.op == kind.__name__]
    return next((call for call in own if name in call.data), own[0] if own else None)


def changed(kind: type[Op]) -> Iterator[tuple[Call, dict[str, str]]]:
    """Sample calls, and attributes of which one has another value."""
    for row in kind.describe():
        call = call_of(kind, row.name)
        if call is None:
            continue
        usual = call.data.get(row.name, row.default or "")
        values = VALUES.get(row.kind, row.choices)
        if row.kind in ("int[]", "float[]"):
            items = [item.strip() for item in usual.split(",") if item.strip()]
            first = items[:1] or ["1"]
            lists = [items + first, items[1:], *([text, *items[1:]] for text in ("-1", "0", "2"))]
            values = tuple(", ".join(row) for row in lists)
        for value in values:
            yield call, call.data | {row.name: value}


def refusal(kind: type[Op], data: dict[str, Any]) -> str | None:
    try:
        kind(**data)
    except ValidationError as error:
        return str(error)
    return None


def read(kind: type[Op], data: dict[str, str]) -> Op | None:
    try:
        op: Op = kind.read(data)
    except ValidationError:
        return None
    return op


def takes(op: Op | None, tensors: list[Tensor]) -> bool:
    """Whether the shape rule takes inputs."""
    try:
        return op is not None and bool(op.infer_outputs(tensors))
    except IRError:
        return False


def of_any_rank(tensors: list[Tensor]) -> list[Tensor]:
    return [t if t.value is not None else Tensor(t.type) for t in tensors]


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_what_is_refused_when_made_no_inputs_go_with(kind: type[Op]) -> None:
    for call, data in changed(kind):
        op = read(kind, data)
        if refusal(kind, data) is not None:
            # Of MaxPool, OpenVINO reads other types of indices and computes i32.
            inputs = call.tensors()
            taken = takes(op, inputs) and takes(op, of_any_rank(inputs))
            assert not taken or "index_element_type" in data, data
        else:
            assert op is not None, data
            assert repr(kind(**data)) == repr(op)  # which are equal where there is a NaN, too


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_what_openvino_refuses_whatever_the_inputs_is_refused_when_made(kind: type[Op]) -> None:
    pytest.importorskip("openvino")
    rows = list(changed(kind))
    for call, data in random.Random(kind.__name__).sample(rows, min(CASES, len(rows))):
        tensors = of_any_rank(call.tensors())
        op = read(kind, data)
        if op is None or refusal(kind, data) is not None or not takes(op, tensors):
            continue
        texts = "".join(f' {name}="{text}"' for name, text in op.attributes().items())
        count, theirs = len(op.infer_outputs(tensors)), ""
        try:
            ask("shapes", *write(kind.xml_type, kind.version(), texts, tensors, count))
        except RuntimeError as error:
            theirs = str(error)
        assert not theirs or any(words in theirs for words in OF_INPUTS), f"{data}: {theirs}"


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_unknown_names_are_refused_with_what_is_meant(kind: type[Op]) -> None:
    told = {f"{name}z": name for name in kind.model_fields}
    for wrong, right in told.items():
        with pytest.raises(ValidationError) as caught:
            kind(**{wrong: "1"})
        first = caught.value.errors()[0]
        assert (first["type"], first["loc"]) == ("extra_forbidden", (wrong,))
        assert first["msg"].startswith(f"{wrong} is not an attribute of {kind.spec()}, did you")
        assert first["msg"].endswith(f"mean {right}?")


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_names_of_other_versions_are_refused_with_the_version(kind: type[Op]) -> None:
    others = [op for op in OPS if op.xml_type == kind.xml_type]
    for name in {name for op in others for name in op.model_fields} - set(kind.model_fields):
        with pytest.raises(ValidationError) as caught:
            kind(**{name: "1"})
        message = caught.value.errors()[0]["msg"]
        assert any(op.spec() in message for op in others if name in op.model_fields), message


def test_which_version_has_an_attribute() -> None:
    with pytest.raises(ValidationError) as caught:
        MaxPoolV1(**POOL, axis=2, dilations=(2, 2))  # type: ignore[call-arg]
    assert [row["msg"] for row in caught.value.errors()] == [
        "axis is not an attribute of MaxPool-1, MaxPool-8 and later have it",
        "dilations is not an attribute of MaxPool-1, MaxPool-8 and later have it",
    ]


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        ({"kernel": 2}, "kernel", r"2 is one number, a list is expected, such as \(2, 2\)"),
        ({"kernel": (2, 2, 2)}, "strides", "strides has 2 axes, kernel has 3"),
        ({"kernel": (0, 2)}, "kernel", "kernel has 0, the least is 1"),
        ({"strides": (1, 0)}, "strides", "strides has 0, the least is 1"),
        ({"dilations": (1,)}, "dilations", "dilations has 1 axes, kernel has 2"),
        ({"pads_end": (0, -1)}, "pads_end", "pads_end has -1, the least is 0"),
        ({"index_element_type": "f32"}, "index_element_type", "f32, it is i32 or i64"),
        ({"rounding_type": "round"}, None, 'rounding_type="round" is not one of floor, ceil'),
        ({"rounding_type": "ceil_torch"}, None, "needs MaxPool-14, this is MaxPool-8"),
        ({"axis": "x"}, "axis", '"x" is not a whole number'),
    ],
)
def test_errors_say_which_attribute_and_what(
    data: dict[str, Any], place: str | None, message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        MaxPoolV8(**POOL | data)
    assert caught.value.errors()[0]["loc"] == (() if place is None else (place,))


def test_values_of_numpy_and_lists_are_taken() -> None:
    op = MaxPoolV8(kernel=[np.int64(2), 2], strides=np.array([1, 1]), axis=np.int32(1))  # type: ignore[arg-type]
    assert op == MaxPoolV8(kernel=(2, 2), strides=(1, 1), axis=1)


def test_a_copy_with_other_attributes_is_checked() -> None:
    op = MaxPoolV8(kernel=(2, 2), strides=(1, 1))
    other = op.with_(kernel=(3, 3), rounding_type="ceil")
    assert (other.kernel, other.strides, other.rounding_type) == ((3, 3), (1, 1), "ceil")
    assert op.kernel == (2, 2)
    with pytest.raises(ValidationError, match="did you mean kernel"):
        op.with_(kernl=(3, 3))
    with pytest.raises(ValidationError, match="strides has 0"):
        op.with_(strides=(0, 1))
    mean = AvgPoolV1(kernel=(2, 2), strides=(1, 1), exclude_pad=True)
    assert mean.with_(**{"exclude-pad": False}) == mean.with_(exclude_pad=False) != mean


def test_what_is_given_is_left_as_it_is() -> None:
    given = {"kernel": (2, 2), "strides": (1, 1), "rounding_type": "CEIL"}
    MaxPoolV8.model_validate(given)
    assert given == {"kernel": (2, 2), "strides": (1, 1), "rounding_type": "CEIL"}


def test_files_may_hold_more() -> None:
    op = MaxPoolV8.read({"kernel": "2, 2", "strides": "0, 1", "rounding_typ": "ceil"})
    assert (op.rounding_type, op.strides) == ("floor", (0, 1))
    with pytest.raises(IRError, match="strides has 0, the least is 1"):
        op.infer_outputs([Tensor("f32", "1,1,4,4")])


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_the_signature_names_each_attribute(kind: type[Op]) -> None:
    rows = {kind.names()[row.name]: row for row in kind.describe()}
    found = inspect.signature(kind).parameters
    assert set(found) == set(rows)
    for name, parameter in found.items():
        assert (parameter.default is parameter.empty) == rows[name].required
        if get_origin(parameter.annotation) is Literal:
            assert get_args(parameter.annotation) == rows[name].choices


SCHEMA = json.loads(operations_schema())["$defs"]


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_pydantics_schema_says_what_the_schema_of_texts_says(kind: type[Op]) -> None:
    texts, made = SCHEMA[kind.spec()], kind.model_json_schema()
    assert made["x-opsets"] == texts["x-opsets"]
    assert made["additionalProperties"] is False
    assert sorted(made.get("required", [])) == sorted(texts.get("required", []))
    assert list(made["properties"]) == list(texts["properties"])
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    for name, text in texts["properties"].items():
        value = made["properties"][name]
        assert text["description"].strip(), f"{kind.spec()} {name} is not described"
        for key in ("x-kind", "description", "enum"):
            assert value.get(key) == text.get(key), f"{name} {key}"
        default = value.get("default")
        if default is None:
            assert "default" not in text
        else:
            plain = tuple(default) if isinstance(default, list) else default
            assert spell(fields[name], plain) == text["default"]
        assert fields[name].description == text["description"]


def is_read(source: bytes) -> bool:
    """Whether OpenVINO reads a model that has no weights."""
    openvino = pytest.importorskip("openvino")
    weights = openvino.Tensor(openvino.Type.u8, openvino.Shape([0]))
    try:
        openvino.Core().read_model(source, weights)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    ["nan", "inf", "-inf", "NaN", "Inf", "INF", "+inf", "+nan", "-nan", "infinity", "+1", "1E+5"],
)
def test_numbers_that_are_not_finite_are_spelt_as_openvino_spells_them(text: str) -> None:
    port = 'precision="FP32"><dim>1</dim></port>'
    source = (
        '<net name="m" version="11"><layers>'
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        f'<data shape="1" element_type="f32"/><output><port id="0" {port}</output></layer>'
        f'<layer id="1" name="y" type="Elu" version="opset1"><data alpha="{text}"/>'
        f'<input><port id="0" {port}</input><output><port id="1" {port}</output></layer>'
        '<layer id="2" name="r" type="Result" version="opset1">'
        f'<input><port id="0" {port}</input></layer></layers><edges>'
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    ).encode()
    reads = is_read(source)
    found = [finding.code for finding in ir.check(source).errors]
    assert found == ([] if reads else ["IR404"])


@pytest.mark.parametrize(
    "text", ["1,1", "1, 1,", " 1,1 ", "1,1, ", "1,1,\n", " ", "1, ,1", "1,1,,"]
)
def test_lists_end_as_openvino_reads_them(text: str) -> None:
    net = ir.Builder("m")
    x, w = net.parameter("x", "f32", (1, 1, 4, 4)), net.parameter("w", "f32", (1, 1, 1, 1))
    pads = {"pads_begin": (0, 0), "pads_end": (0, 0)}
    kept = {"strides": (1, 1), "dilations": (7, 7), **pads}
    net.result(net.add("Convolution", "opset1", [x, w], **kept), name="y")
    made = net.model()
    source = ir.dumps(made)[0].replace(b'dilations="7, 7"', f'dilations="{text}"'.encode())
    reads = is_read(source)
    found = [finding.code for finding in ir.check(source).findings]
    assert found == ([] if reads else ["IR404"])
