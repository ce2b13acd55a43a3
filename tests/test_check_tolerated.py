"""What OpenVINO reads and runs is no error, and is inferred and run as OpenVINO does."""

from __future__ import annotations

import re

import calls
import numpy as np
import oracle
import pytest
from test_check import ADD, BIN
from vinoir import ir
from vinoir.layers import Op
from vinoir.layers.windows import Windowed
from vinoir.schemas import Tensor

#: Calls of operations with windows: class, attributes, shapes of the inputs.
WINDOWED = [
    ("ConvolutionV1", {}, [(1, 3, 8, 8), (4, 3, 3, 3)]),
    ("GroupConvolutionV1", {}, [(1, 4, 8, 8), (2, 3, 2, 3, 3)]),
    ("ConvolutionBackpropDataV1", {}, [(1, 3, 8, 8), (3, 4, 3, 3)]),
    ("GroupConvolutionBackpropDataV1", {}, [(1, 4, 8, 8), (2, 2, 3, 3, 3)]),
    ("MaxPoolV1", {"kernel": "3, 3"}, [(1, 3, 8, 8)]),
    ("MaxPoolV14", {"kernel": "3, 3", "dilations": "1, 1"}, [(1, 3, 8, 8)]),
    ("AvgPoolV1", {"kernel": "3, 3", "exclude-pad": "false"}, [(1, 3, 8, 8)]),
    ("AvgPoolV14", {"kernel": "3, 3", "exclude-pad": "true"}, [(1, 3, 8, 8)]),
]
LISTS = {"strides": "2, 2", "dilations": "1, 1", "pads_begin": "1, 1", "pads_end": "1, 1"}
PADS = ("pads_begin", "pads_end")


def cases() -> list[tuple[str, dict[str, str], list[tuple[int, ...]]]]:
    """Each call with each way of padding, without one or several of its lists."""
    found = []
    for name, data, shapes in WINDOWED:
        kind = Op.registry[name.rpartition("V")[0], int(name.rpartition("V")[2])]
        assert issubclass(kind, Windowed)
        taken = tuple(kind.neutral)
        lists = {key: text for key, text in LISTS.items() if key in taken or key == "strides"}
        for pad in ("explicit", "same_upper", "same_lower", "valid"):
            for gone in [(key,) for key in taken] + [PADS, ("dilations", *PADS)]:
                kept = {key: text for key, text in lists.items() if key not in gone}
                found.append((name, {**data, **kept, "auto_pad": pad}, shapes))
    return found


@pytest.mark.parametrize(("name", "data", "shapes"), cases(), ids=str)
def test_lists_that_openvino_does_without(
    name: str, data: dict[str, str], shapes: list[tuple[int, ...]]
) -> None:
    as_openvino(name, data, shapes)


@pytest.mark.parametrize(
    ("gone", "size"), [(("pads_begin",), 4), (("pads_end",), 4), (PADS, 3), (("strides",), 8)]
)
@pytest.mark.parametrize("version", ["V1", "V8"])
def test_lists_that_a_deformable_convolution_does_without(
    version: str, gone: tuple[str, ...], size: int
) -> None:
    kept = {key: text for key, text in LISTS.items() if key not in gone}
    shapes = [(1, 3, 8, 8), (1, 18, size, size), (4, 3, 3, 3)]
    groups = {"group": "1", "deformable_group": "1"}
    as_openvino(f"DeformableConvolution{version}", kept | groups, shapes)


def as_openvino(name: str, data: dict[str, str], shapes: list[tuple[int, ...]]) -> None:
    """Shapes and values are OpenVINO's, and nothing is wrong with the file."""
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    call = oracle.Call(name, arrays, data)
    inputs = call.tensors()
    spelt = "".join(f' {key}="{text}"' for key, text in data.items())
    outputs = len(call.make().infer_outputs(inputs))
    version = call.kind.version()
    xml, weights = oracle.write(call.kind.xml_type, version, spelt, inputs, outputs)
    theirs = oracle.ask("shapes", xml, weights)
    model = ir.loads(xml, weights)
    assert [f"{t.type}[{t.shape.spelling}]" for t in ir.infer(model).values()] == theirs
    assert ir.check(xml.encode(), weights=weights).errors == []
    wanted = oracle.ask("values", xml, weights, arrays)
    given = {f"in{index}": array for index, array in enumerate(arrays)}
    for way in (ir.run(model, given), ir.compile(model)(given)):
        for ours, right in zip(way.values(), wanted, strict=True):
            assert np.allclose(ours, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pad", ["same_upper", "same_lower", "valid"])
def test_pads_that_are_not_used_need_not_be_there(pad: str) -> None:
    data = {"strides": "2, 2", "dilations": "1, 1", "auto_pad": pad}
    inputs = [Tensor.of(np.zeros(shape, np.float32)) for shape in [(1, 3, 8, 8), (3, 4, 3, 3)]]
    inputs = [Tensor(tensor.type, tensor.shape) for tensor in inputs]
    spelt = "".join(f' {key}="{text}"' for key, text in data.items())
    xml, _ = oracle.write("ConvolutionBackpropData", "opset1", spelt, inputs, 1)
    assert [f.code for f in ir.check(xml.encode()) if f.attribute] == []


def test_a_list_that_the_declared_sizes_miss_is_an_error() -> None:
    inputs = [Tensor.of(np.zeros(shape, np.float32)) for shape in [(1, 3, 8, 8), (4, 3, 3, 3)]]
    inputs = [Tensor(tensor.type, tensor.shape) for tensor in inputs]
    xml, _ = oracle.write("Convolution", "opset1", ' strides="1, 1"', inputs, 1)
    sizes = "".join(f"<dim>{size}</dim>" for size in (1, 4, 8, 8))
    xml = re.sub(
        r'(type="Convolution".*?<output><port id="2" precision="FP32")/>',
        rf"\1>{sizes}</port>", xml,
    )  # fmt: skip
    assert "IR610" in {f.code for f in ir.check(xml.encode()).errors}
    assert ir.check(xml.replace("<dim>8</dim><dim>8</dim></port></output></layer><layer id=\"2000",
                                "<dim>6</dim><dim>6</dim></port></output></layer><layer id=\"2000")
                    .encode()).ok  # fmt: skip


STATE = """\
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="r" type="ReadValue" version="opset6"><data variable_id="v"/>
<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input>
<output><port id="1" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="a" type="Assign" version="opset6"><data variable_id="v"/>
<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input></layer>
<layer id="3" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>
</edges></net>"""


def test_a_variable_has_the_type_and_shape_of_its_initial_value() -> None:
    assert oracle.ask("shapes", STATE, b"")
    report = ir.check(STATE.encode())
    assert report.ok
    assert {finding.code for finding in report} == {"IR412"}


@pytest.mark.parametrize("length", [100, 600_000, 5_000_000, 12_000_000])
@pytest.mark.parametrize("filling", ["words ", 'a="b" > ', "<layers> ", "<!-- "])
def test_a_comment_may_be_long(length: int, filling: str) -> None:
    comment = f"<!-- {filling * (length // len(filling))} -->".replace("<!-- <!", "<!-- !")
    comment = "<!--" + comment[4:-3].replace("--", "") + "-->"
    text = ADD.replace("<layers>", f"<layers>{comment}")
    assert [str(finding) for finding in ir.check(text.encode(), weights=BIN)] == []


def test_a_long_value_is_told_with_its_length() -> None:
    text = ADD.replace('name="add"', f'name="{"a" * 11_000_000}"')
    assert [f.code for f in ir.check(text.encode(), weights=BIN)] == ["IR115"]


def test_what_model_optimizer_left_over_is_a_note() -> None:
    inputs = [Tensor.of(np.zeros(shape, np.float32)) for shape in [(1, 3, 8, 8), (4, 3, 3, 3)]]
    inputs = [Tensor(tensor.type, tensor.shape) for tensor in inputs]
    lists = "".join(f' {key}="{text}"' for key, text in LISTS.items())
    xml, _ = oracle.write("Convolution", "opset1", lists + ' output_padding="0, 0"', inputs, 1)
    found = [(f.code, f.severity) for f in ir.check(xml.encode()) if f.attribute]
    assert found == [("IR413", "info")]


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("ROIPoolingV1", "method"), ("PSROIPoolingV1", "mode"), ("DetectionOutputV1", "code_type"),
        ("DetectionOutputV8", "code_type"), ("InterpolateV1", "mode"),
        ("DeformablePSROIPoolingV1", "mode"), ("SpaceToDepthV1", "mode"),
    ],
)  # fmt: skip
def test_letters_of_words_matter_where_they_do_for_openvino(name: str, attribute: str) -> None:
    call = next(call for call in calls.samples() if call.op == name)
    data = call.make().attributes()
    inputs = call.tensors()
    arrays = [a for t, a in zip(inputs, call.arrays(), strict=True) if t.value is None]
    for text in (data[attribute], data[attribute].upper()):
        spelt = "".join(f' {k}="{v}"' for k, v in {**data, attribute: text}.items())
        xml, weights = oracle.write(call.kind.xml_type, call.kind.version(), spelt, inputs, 1)
        try:
            oracle.ask("values", xml, weights, arrays)
        except RuntimeError:
            refused = True
        else:
            refused = False
        report = ir.check(xml.encode(), weights=weights)
        assert [f.code for f in report.errors] == (["IR405"] if refused else [])
