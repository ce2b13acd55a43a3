"""Damages that look right at first, each against what OpenVINO does with the same file."""

from __future__ import annotations

import struct

import numpy as np
import oracle
import pytest
from test_check import ADD, BIN
from vinoir import ir
from vinoir.layers import Op
from vinoir.schemas import IRError, Tensor

PORT = 'names="x"><dim>1</dim><dim>2</dim>'


def found(xml: str, weights: bytes = b"") -> dict[str, str]:
    """Code and severity of what is told of a file."""
    return {finding.code: finding.severity for finding in ir.check(xml.encode(), weights=weights)}


def reads(xml: str, weights: bytes) -> bool:
    """Whether OpenVINO reads a file."""
    try:
        oracle.ask("shapes", xml, weights)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("layout", [
    "NC", "[N,C]", "[n, c]", "N?", "N...", "...C", "", "0N", "N_", "[_a,b_]", "[_]", "...",
    "[...]", "[batch,chan]", "[?,C]", "N,", "[N,,C]", "N C", "N...C...", "[N,C", "NN", "[N,N]",
    "[n,N]", "SCALAR", "N-C", "[?N]", "[,]", "N[C]", "[Ü,C]", "N,C", "NC]", "[N,C]]",
    "....", "[N,....]", "[N,Batch]", "[channel,C]", "[**SCALAR**]", "**scalar**", "**SCALAR**",
])  # fmt: skip
def test_a_layout_is_refused_where_openvino_refuses_it(layout: str) -> None:
    info = f'<rt_info><attribute name="layout" version="0" layout="{layout}"/></rt_info>'
    xml = ADD.replace(PORT, PORT + info)
    assert ("IR241" in found(xml, BIN)) != reads(xml, BIN)


def test_a_layout_of_another_rank_is_a_warning() -> None:
    info = '<rt_info><attribute name="layout" version="0" layout="NCHW"/></rt_info>'
    assert found(ADD.replace(PORT, PORT + info), BIN) == {"IR242": "warning"}


@pytest.mark.parametrize(("name", "value"), [
    *[("old_api_map_order", v) for v in (
        "", "0,1", "0, 1", "0 1", "+1,0", "1,0,", "1.5", "x", "0,x", "-1,0", ",", "0,,1", " ",
        "0, ", str(2**64 - 1), str(2**64), "0" * 30 + "1", "9" * 5000,
    )],
    *[("old_api_map_element_type", v) for v in (
        "f16", "F16", "FP16", "half", "undefined", "dynamic", "", " f16", "f16 ", "boolean",
    )],
    *[(name, v) for name in ("fused_names", "primitives_priority", "decompression", "precise",
                             "memory_type", "preprocessing") for v in ("", "x")],
])  # fmt: skip
@pytest.mark.parametrize("place", ["port", "layer"])
def test_values_of_metadata_are_refused_where_openvino_refuses_them(
    name: str, value: str, place: str
) -> None:
    info = f'<rt_info><attribute name="{name}" version="0" value="{value}"/></rt_info>'
    if place == "port":
        xml = ADD.replace(PORT, PORT + info)
    else:
        xml = ADD.replace("</output>", "</output>" + info, 1)
    assert ("IR243" in found(xml, BIN)) != reads(xml, BIN)


@pytest.mark.parametrize("kind", ["f32", "F32", "FP32", "fp32", "float"])
@pytest.mark.parametrize("layer", ["Parameter", "Const"])
def test_spellings_of_types_are_refused_where_openvino_refuses_them(kind: str, layer: str) -> None:
    before, after = ADD.split(f'type="{layer}"')
    xml = before + f'type="{layer}"' + after.replace('"f32"', f'"{kind}"', 1)
    assert xml.count(f'"{kind}"') >= 1
    assert ("IR404" in found(xml, BIN)) != reads(xml, BIN)


@pytest.mark.parametrize("size", [
    "1..2", "1 ..2", "1.. 2", "1 .. 2", " 1..2", "1..2 ", "..2", ".. 2", "1..", "? ", " -1",
])  # fmt: skip
def test_intervals_are_refused_where_openvino_refuses_them(size: str) -> None:
    xml = ADD.replace('shape="1,2"', f'shape="{size},2"', 1)
    assert xml != ADD
    assert ("IR404" in found(xml, BIN)) != reads(xml, BIN)


@pytest.mark.parametrize("zero", [0xFF10, 0x0660, 0x0966], ids=["wide", "arabic", "devanagari"])
@pytest.mark.parametrize(("kind", "version", "name", "value", "shapes"), [
    ("Clamp", "opset1", "max", "6", [(2,)]),
    ("Clamp", "opset1", "max", "6.5e1", [(2,)]),
    ("Elu", "opset1", "alpha", "1", [(2,)]),
    ("SoftMax", "opset8", "axis", "0", [(2,)]),
    ("Concat", "opset1", "axis", "0", [(2,), (2,)]),
    ("MaxPool", "opset1", "kernel", "2, 2", [(1, 1, 4, 4)]),
])  # fmt: skip
def test_numbers_have_digits_of_ascii(
    zero: int, kind: str, version: str, name: str, value: str, shapes: list[tuple[int, ...]]
) -> None:
    attributes = {
        "Clamp": {"min": "0", "max": "6"}, "Elu": {"alpha": "1"}, "SoftMax": {"axis": "0"},
        "Concat": {"axis": "0"}, "MaxPool": {"kernel": "2, 2", "strides": "1, 1",
        "pads_begin": "0, 0", "pads_end": "0, 0"},
    }[kind]  # fmt: skip
    for text in (value, value.translate({48 + n: zero + n for n in range(10)})):
        spelt = "".join(f' {k}="{v}"' for k, v in (attributes | {name: text}).items())
        inputs = [Tensor.of(np.zeros(shape, np.float32)) for shape in shapes]
        xml, weights = oracle.write(kind, version, spelt, inputs, 1)
        good = text == value
        assert reads(xml, weights) == good
        assert ("error" not in found(xml, weights).values()) == good
        if not good:
            with pytest.raises(ir.IRError):
                ir.infer(ir.loads(xml, weights))


GATES = {"RNN": (1, "tanh"), "GRU": (3, "sigmoid, tanh"), "LSTM": (4, "sigmoid, tanh, tanh")}


def recurrent(kind: str, activations: str | None, hidden: int) -> tuple[str, bytes]:
    """A cell or sequence whose weights have a hidden size of 4."""
    gates, _ = GATES[kind[:-4] if kind.endswith("Cell") else kind[:-8]]
    lead = () if kind.endswith("Cell") else (1,)
    states = 2 if kind.startswith("LSTM") else 1
    shapes = [(2, 5, 3), *[(2, 1, 4)] * states] if lead else [(2, 3), *[(2, 4)] * states]
    inputs = [Tensor.of(np.zeros(shape, np.float32)) for shape in shapes]
    if lead:
        inputs.append(Tensor.of(np.full(2, 5, np.int32)))
    inputs += [
        Tensor.of(np.zeros((*lead, *shape), np.float32))
        for shape in ((gates * 4, 3), (gates * 4, 4), (gates * 4,))
    ]
    data = {"hidden_size": str(hidden)} | ({"direction": "forward"} if lead else {})
    if activations is not None:
        data["activations"] = activations
    version = "opset4" if kind == "LSTMCell" else ("opset5" if lead else "opset3")
    spelt = "".join(f' {k}="{v}"' for k, v in data.items())
    outputs = states + (1 if lead else 0)
    return oracle.write(kind, version, spelt, inputs, outputs)


@pytest.mark.parametrize("kind", [a + b for a in GATES for b in ("Cell", "Sequence")])
@pytest.mark.parametrize("activations", [
    None, "usual", "USUAL", "usual, relu", "", "tanh", "sigmoid", "tahn, tanh, tanh",
    "softmax, tanh, tanh", "sigmoid, tanh, sinh",
])  # fmt: skip
def test_activations_are_known_and_enough(kind: str, activations: str | None) -> None:
    _, usual = GATES[kind[:-4] if kind.endswith("Cell") else kind[:-8]]
    text = activations
    if text is not None:
        text = text.replace("usual", usual).replace("USUAL", usual.upper())
    xml, weights = recurrent(kind, text, 4)
    told = found(xml, weights).get("IR414") == "error"
    if kind.endswith("Cell"):
        known = text is None or "sinh" not in text or len(usual.split(",")) == 3
        if known:
            assert told != reads(xml, weights)
    words = [] if not text else [word.strip().lower() for word in text.split(",")]
    wrong = set(words) - {"sigmoid", "tanh", "relu", "hardsigmoid"}
    few = text is not None and len(words) < len(usual.split(","))
    unsaid = text == "" and kind.endswith("Sequence")
    assert told == (bool(wrong) or (few and not unsaid))


@pytest.mark.parametrize("kind", [a + b for a in GATES for b in ("Cell", "Sequence")])
@pytest.mark.parametrize("hidden", [4, 1, 3, 8])
def test_the_hidden_size_is_that_of_the_weights(kind: str, hidden: int) -> None:
    assert ("IR611" in found(*recurrent(kind, None, hidden))) == (hidden != 4)


@pytest.mark.parametrize(("shape", "error"), [("2", False), ("100001", True), ("3000000", True)])
def test_strings_are_as_many_as_the_shape_says(shape: str, error: bool) -> None:
    blob = struct.pack("<iiii", 2, 0, 1, 2) + b"ab"
    data = f'element_type="string" shape="{shape}" offset="0" size="{len(blob)}"'
    port = '<port id="0" precision="STRING"/>'
    xml = (
        '<net name="m" version="11"><layers><layer id="0" name="s" type="Const" version="opset1">'
        f"<data {data}/><output>{port}</output></layer>"
        '<layer id="1" name="r" type="Result" version="opset1">'
        f"<input>{port}</input></layer></layers><edges>"
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
    )
    assert (found(xml, blob).get("IR509") == "error") == error


@pytest.mark.parametrize("information", [
    '<author value="a"/><author value="b"/>',
    "<conversion><framework value='a'/><framework value='a'/></conversion>",
    '<info name="author" value="a"/><info name="author" value="b"/>',
])  # fmt: skip
def test_keys_of_rt_info_stand_once(information: str) -> None:
    xml = ADD.replace("<rt_info />", f"<rt_info>{information}</rt_info>")
    assert found(xml, BIN) == {"IR239": "warning"}
    other = information.replace("author", "licence", 1).replace("framework", "version", 1)
    assert found(ADD.replace("<rt_info />", f"<rt_info>{other}</rt_info>"), BIN) == {}


RESULT = """
	<layer id="4" name="z" type="Result" version="opset1"{}>
		<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input>
	</layer>
</layers>"""


@pytest.mark.parametrize(("first", "second", "feeder", "told"), [
    ("", "", 0, False), ("a", "b", 0, False), ("a", "a", 0, True), ("y", "", 0, False),
    ("x", "", 0, True), ("a", "a", 2, False), ("y", "x", 0, False), ("", "y", 0, True),
])  # fmt: skip
def test_output_names_are_those_of_one_tensor(
    first: str, second: str, feeder: int, told: bool
) -> None:
    one, two = (f' output_names="{name}"' if name else "" for name in (first, second))
    xml = ADD.replace('name="y" type="Result" version="opset1"',
                      f'name="y" type="Result" version="opset1"{one}')  # fmt: skip
    xml = xml.replace("\n</layers>", RESULT.format(two))
    xml = xml.replace("</edges>", f'<edge from-layer="{feeder}" from-port="{feeder}" '
                      'to-layer="4" to-port="0" /></edges>')  # fmt: skip
    assert (found(xml, BIN) == {"IR217": "warning"}) == told


@pytest.mark.parametrize(("begin", "end", "code"), [
    (0, 0, None), (-1, -1, None), (-4, 0, "IR612"), (-2, -2, "IR612"), (0, -5, "IR601"),
    (-3, -3, "IR601"), (3, -7, "IR601"),
])  # fmt: skip
def test_a_pad_leaves_something(begin: int, end: int, code: str | None) -> None:
    inputs = [
        Tensor(Tensor.of(np.zeros((4, 2), np.float32)).type, Tensor.of(np.zeros((4, 2))).shape),
        Tensor.of(np.array([begin, 0])), Tensor.of(np.array([end, 0])),
    ]  # fmt: skip
    told = found(*oracle.write("Pad", "opset12", ' pad_mode="constant"', inputs, 1))
    assert {"IR601", "IR612"} & set(told) == ({code} if code else set())
    op = Op.registry["Pad", 12]
    assert op is not None


@pytest.mark.parametrize(("kind", "port", "told"), [
    ("boolean", "BOOL", False), ("f32", "FP32", True), ("i32", "I32", True), ("u8", "U8", True),
    ("dynamic", "dynamic", False),
])  # fmt: skip
def test_the_condition_of_an_if_is_boolean(kind: str, port: str, told: bool) -> None:
    body = (
        '<layers><layer id="0" name="c{0}" type="Const" version="opset1">'
        '<data element_type="f32" shape="" offset="0" size="4"/>'
        '<output><port id="0" precision="FP32"/></output></layer>'
        '<layer id="1" name="r{0}" type="Result" version="opset1">'
        '<input><port id="0" precision="FP32"/></input></layer></layers>'
        '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>'
    )
    given = '<output external_port_id="0" internal_layer_id="1"/>'
    xml = (
        '<net name="m" version="11"><layers>'
        '<layer id="0" name="c" type="Parameter" version="opset1">'
        f'<data shape="" element_type="{kind}"/><output><port id="0" precision="{port}"/></output>'
        '</layer><layer id="1" name="i" type="If" version="opset8">'
        f'<input><port id="0" precision="{port}"/></input>'
        '<output><port id="1" precision="FP32"/></output>'
        f"<then_port_map>{given}</then_port_map><else_port_map>{given}</else_port_map>"
        f"<then_body>{body.format('a')}</then_body><else_body>{body.format('b')}</else_body>"
        '</layer><layer id="2" name="o" type="Result" version="opset1">'
        '<input><port id="0" precision="FP32"/></input></layer></layers><edges>'
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    )
    assert found(xml, bytes(4)) == ({"IR731": "error"} if told else {})
    model = ir.loads(xml, bytes(4))
    if told:
        with pytest.raises(IRError, match=f"the condition is {kind}, it must be boolean"):
            ir.infer(model)
    elif kind == "boolean":
        assert ir.infer(model)
