"""Documents of IR v2 to v7: read, refused with a place, checked, shown, converted."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import SHARED
from lxml import etree
from older.case import draw
from older.files import OldFile
from older.network import small
from oracle import ask
from vinoir import ir
from vinoir.ir.cli import cli
from vinoir.ir.files.older.table import entries, known_types
from vinoir.schemas import IRError, UnreadableError, UnsupportedError, UsageError


@pytest.mark.parametrize("version", range(2, 8))
def test_each_version_is_read_and_says_where_it_comes_from(version: int) -> None:
    file = small(version)
    model = ir.loads(file.xml, file.bin)
    assert (model.version, model.name) == (11, "old")
    assert model.origin is not None
    assert model.origin.version == version
    assert [remark.where.name for remark in model.origin.remarks] == ["pool"]
    assert model.rt_info is not None
    assert {one.key: one.value for one in model.rt_info}["upgraded_from"] == f"IR v{version}"
    assert list(ir.run(model, [draw(1, 3, 8, 8)])) == ["prob"]
    assert {"conv", "pool", "fc", "prob", "image"} <= {layer.name for layer in model.layers}


def test_a_new_model_has_no_origin() -> None:
    xml, weights = ir.dumps(ir.loads(*_parts(small())))
    assert ir.loads(xml, weights).origin is None


def _parts(file: OldFile) -> tuple[bytes, bytes]:
    return file.xml, file.bin


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [("8", UnsupportedError, "version 8 never existed"), ("9", UnsupportedError, "never existed"),
     ("1", UnsupportedError, "before 2018"), ("0", UnreadableError, 'version "0"'),
     ("2.0", UnreadableError, 'version "2.0"'), ("-2", UnreadableError, 'version "-2"')],
)  # fmt: skip
def test_versions_that_are_not(version: str, kind: type[IRError], words: str) -> None:
    xml = small().xml.replace(b'version="6"', f'version="{version}"'.encode())
    with pytest.raises(kind, match=words) as caught:
        ir.loads(xml, small().bin)
    assert caught.value.where.line == 2
    assert any(f.severity == "error" for f in ir.check(xml))


#: A text of the document and its replacement; what the error says. The line is that of the layer.
WRONG = [
    ('kernel="3,3" pads', 'kernel="3" pads', r'conv.*pads_begin has 2 numbers, kernel has 1'),
    ('kernel="3,3" pads', 'kernel="3,x" pads', r'conv.*kernel is "x", not a whole number'),
    ('kernel="3,3" pads', 'kernal="3,3" pads', r"conv.*kernel-y is missing"),
    ('output="4"', 'output="5"', r"conv.*weights has 432 bytes, f32\[5, 3, 3, 3\] takes 540"),
    ('output="4"', "", r"conv.*attribute output is missing"),
    ('output="4"', 'output="4" group="2"', r"group 2 does not divide the 3 input"),
    ('pool-method="max"', 'pool-method="mux"', r'pool.*pool-method is "mux"; known are max, avg'),
    ('strides="2,2"', 'strides="0,2"', r"pool.*strides is 0, at least 1"),
    ('out-size="5"', 'out-size="9999999999"', r"fc.*at most"),
    ("<dim>64</dim>", "<dim>64</dim>", ""),
    ('axis="1"', 'axis="7"', r"prob.*as SoftMax of opset8"),
    ('<edge from-layer="1"', '<edge from-layer="9"', r"edge leaves layer 9, which is not there"),
    ('to-layer="2" to-port="0"', 'to-layer="2" to-port="8"', r"enters input port 8 of layer 2"),
    ('to-layer="2" to-port="0"', 'to-layer="2"', r"an edge has no to-port"),
    ('from-layer="3"', 'from-layer="2"', r"gives \[1, 4, 4, 4\].* declares \[1, 5\]"),
    ('id="3"', 'id="2"', r'layer "pool" has the id 2, too'),
    ('id="3"', 'id="three"', r'layer id is "three"'),
    ('name="pool"', 'name="conv"', r'layer 1 has the name "conv", too'),
    (' type="Pooling"', "", r"<layer> has no type"),
    ("<dim>8</dim>", "<dim>0</dim>", r"a dim is 0"),
    ("<dim>8</dim>", "<dim>eight</dim>", r'a dim is "eight"'),
    ("<dim>8</dim>", "<dim>99999999999</dim>", r"a dim is 99999999999, allowed are 1 to"),
    ('precision="FP32"', 'precision="FP33"', r'"FP33" is not a precision'),
    ('precision="FP32"', 'precision="Q78"', r"Q78"),
    ('precision="FP32"', 'precision="MIXED"', r"MIXED"),
    ('size="432"', 'size="999999"', r"conv.*"),
    ('offset="0"', 'offset="-1"', r"offset of <weights> is -1"),
    ("<layers>", "<lagers>", "not well-formed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_what_is_wrong_is_told_with_its_place(old: str, new: str, words: str) -> None:
    file = small()
    text = file.xml.decode()
    assert old in text or old == "<dim>64</dim>"
    xml = text.replace(old, new, 1).encode()
    if old == new or 'size="999999"' in new:
        ir.check(xml, weights=file.bin)
        return
    with pytest.raises(IRError, match=words) as caught:
        ir.loads(xml, file.bin)
    assert caught.value.where.line is not None
    report = ir.check(xml, weights=file.bin)
    assert not report.ok
    told = "\n".join(map(str, report))
    assert re.search(words, told) or "not well" in words


def test_an_error_names_layer_line_and_column() -> None:
    file = small()
    xml = file.xml.replace(b'output="4"', b'output="5"')
    with pytest.raises(IRError) as caught:
        ir.loads(xml, file.bin)
    where = caught.value.where
    line = next(i for i, row in enumerate(xml.splitlines(), 1) if b'name="conv"' in row)
    assert (where.layer, where.name, where.type, where.version) == (1, "conv", "Convolution", "v6")
    assert (where.line, where.column) == (line, 1)


def test_every_fault_is_found_at_once() -> None:
    file = small()
    text = file.xml.decode().replace('output="4"', 'output="5"')
    text = text.replace('pool-method="max"', 'pool-method="mux"').replace("axis=", "axes=")
    report = ir.check(text.encode(), weights=file.bin)
    names = [(finding.code, finding.name) for finding in report]
    assert ("IR954", "conv") in names
    assert ("IR954", "pool") in names
    assert ("IR955", "prob") in names


def test_weights_that_are_missing() -> None:
    file = small()
    with pytest.raises(IRError, match=r"conv.*bytes .* are needed, .* are missing"):
        ir.loads(file.xml, file.bin[:100])
    model = ir.loads(file.xml)
    (absent,) = [finding for finding in ir.check(file.xml) if finding.code == "IR956"]
    assert (absent.name, absent.severity) == ("conv", "warning")
    assert "3 blobs need 1728 bytes" in absent.message
    assert ir.infer(model)["prob"].shape.static == (1, 5)
    with pytest.raises(IRError, match=r"no \.bin"):
        ir.run(model, [draw(1, 3, 8, 8)])
    with pytest.raises(IRError, match=r"no \.bin"):
        ir.loads(file.xml, need_weights=True)
    assert len(ir.loads(file.xml, file.bin[:100], need_weights=False)) == len(model)


def test_sizes_that_no_form_of_the_operation_gives_are_told_with_both_numbers() -> None:
    file = OldFile(6)
    data = {"kernel": "3,3", "output": 2}
    file.add(
        "Convolution", [file.input((1, 1, 6, 6), "x")], [(1, 2, 6, 6)], data,
        {"weights": draw(2, 1, 3, 3)}, name="conv",
    )  # fmt: skip
    model = ir.loads(file.xml, file.bin)
    (finding,) = [f for f in ir.check(file.xml, weights=file.bin) if f.code == "IR953"]
    assert "[1, 2, 6, 6]" in finding.message
    assert "[1,2,4,4]" in finding.message
    assert model.origin is not None
    assert [remark.kind for remark in model.origin.remarks] == ["unlike"]


def test_what_has_no_counterpart_is_read_shown_and_not_run() -> None:
    file = OldFile(4)
    x = file.input((1, 3, 4, 4), "x")
    y = file.add("Correlation", [x], [(1, 9, 4, 4)], {"pad": 4}, name="odd")
    file.add("ReLU", [y], [(1, 9, 4, 4)], name="out")
    model = ir.loads(file.xml, file.bin)
    assert ir.infer(model)["out"].shape.static == (1, 9, 4, 4)
    assert [f.code for f in ir.check(file.xml) if f.severity == "error"] == ["IR952"]
    for act in (ir.run, lambda m, x: ir.compile(m)(x)):
        with pytest.raises(UnsupportedError, match=r'"odd" \(Correlation v4\)'):
            act(model, [draw(1, 3, 4, 4)])


def test_ports_that_nothing_feeds_are_inputs_and_what_nobody_reads_are_outputs() -> None:
    file = OldFile(3)
    file.many("Split", [(1, 4, 2)], [(1, 2, 2)] * 2, {"axis": 1}, name="cut")
    file.add("Eltwise", [(1, 2), (1, 2)], [(1, 2)], {"operation": "sum"}, name="both")
    model = ir.loads(file.xml, file.bin)
    given = {"cut": draw(1, 4, 2), "both.0": draw(1, 2), "both.1": draw(1, 2)}
    found = ir.run(model, given)
    assert list(found) == ["cut.0", "cut.1", "both"]
    np.testing.assert_array_equal(found["cut.1"], given["cut"][:, 2:])
    np.testing.assert_array_equal(found["both"], given["both.0"] + given["both.1"])


def test_an_input_is_told_of_by_the_name_that_it_has() -> None:
    file = OldFile(6)
    x = file.input((1, 2), "e.1")
    file.add("Eltwise", [x, (1, 2)], [(1, 2)], {"operation": "sum"}, name="e")
    model = ir.loads(file.xml, b"")
    assert model.origin is not None
    (remark,) = model.origin.remarks
    fed, unfed = (layer.name for layer in model.parameters)
    assert unfed.startswith("e.1_")
    assert f'it is the input "{unfed}" of the network' in remark.message
    ir.run(model, {fed: draw(1, 2), unfed: draw(1, 2)})


@pytest.mark.parametrize("kind", ["input", "const"])
def test_what_nobody_reads_and_computes_nothing_is_told_of(kind: str) -> None:
    file = small()
    if kind == "input":
        file.input((1, 2), "alone")
    else:
        file.const(draw(1, 2), "alone")
    model = ir.loads(file.xml, file.bin)
    assert list(model.outputs.names) == ["prob"]
    assert model.origin is not None
    told = [one.message for one in model.origin.remarks if one.where.name == "alone"]
    assert told == ["nobody reads what it gives, and it computes nothing: it is no output"]


@pytest.mark.parametrize(
    ("dims", "told"),
    [
        ((None, None), ["says no sizes: the declared ones [1, 3, 4, 5] are taken"]),
        ((4, 5), []),
        ((4, None), []),
        ((3, 5), ["<crop> says dim 3 on axis 2, the output declares 4, which is taken"]),
    ],
)
def test_sizes_that_a_crop_says_are_held_against_the_declared(
    dims: tuple[int | None, ...], told: list[str]
) -> None:
    file = OldFile(2)
    said = ["" if size is None else f' dim="{size}"' for size in dims]
    rows = "".join(
        f'<crop axis="{axis}" offset="1"{text}/>' for axis, text in zip((2, 3), said, strict=True)
    )
    file.add("Crop", [file.input((1, 3, 8, 8), "x")], [(1, 3, 4, 5)], children=rows, tag="crop")
    model = ir.loads(file.xml, b"")
    assert model.origin is not None
    assert [one.message for one in model.origin.remarks] == told
    x = draw(1, 3, 8, 8)
    np.testing.assert_array_equal(ir.run(model, [x])[0], x[:, :, 1:5, 1:6])


@pytest.mark.parametrize(
    ("data", "words"),
    [({"offset": -1, "dim": 2}, "offset is -1, at least 0"),
     ({"crop_begin": -3, "crop_end": 0}, "crop_begin is -3, at least 0"),
     ({"crop_begin": 10, "crop_end": 0}, "begins at 10 and ends at 8, the input has 8 places"),
     ({"crop_begin": 5, "crop_end": 3}, "begins at 5 and ends at 5, the input has 8 places"),
     ({"offset": 7, "dim": 2}, "begins at 7 and ends at 9, the input has 8 places"),
     ({"offset": 7}, "begins at 7 and ends at 9, the input has 8 places"),
     ({"offset": 7, "another": 1}, "begins at 7 and ends at 9, the input has 8 places")],
)  # fmt: skip
def test_a_crop_lies_within_its_input(data: dict[str, Any], words: str) -> None:
    file = OldFile(6)
    another = [file.input((1, 1, 2, 8))] * data.pop("another", 0)
    file.add("Crop", [file.input((1, 1, 8, 8)), *another], [(1, 1, 2, 8)], {"axis": 2} | data)
    with pytest.raises(IRError, match=words):
        ir.loads(file.xml, b"")


#: What Python takes for a number, or fails at in its own words.
NO_NUMBERS = ["--5", "²", "1_0", "٣", "", "x"]


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("name", ["axis", "offset"])
def test_numbers_of_a_crop_are_spelt_as_others(name: str, text: str) -> None:
    file, words = OldFile(2), {"axis": 2, "offset": 0, name: text}
    row = "".join(f' {key}="{value}"' for key, value in words.items())
    x = file.input((1, 3, 8, 8))
    file.add("Crop", [x], [(1, 3, 4, 8)], children=f"<crop{row}/>", tag="crop")
    with pytest.raises(IRError, match=f'{name} of <crop> is "{text}", not a whole number'):
        ir.loads(file.xml, b"")


def test_ports_count_by_the_rank_of_their_ids() -> None:
    file = OldFile(5)
    a, b = file.input((1, 2), "a"), file.input((1, 2), "b")
    file.add("Eltwise", [a, b], [(1, 2)], {"operation": "sub"}, name="less")
    text = file.xml.decode()
    rows = re.search(r'(<port id="0">.*?</port>)(<port id="1">.*?</port>)', text)
    assert rows is not None
    swapped = text.replace(rows[0], rows[2] + rows[1])
    x, y = draw(1, 2), draw(1, 2)
    found = ir.run(ir.loads(swapped.encode(), b""), {"a": x, "b": y})["less"]
    np.testing.assert_array_equal(found, x - y)


def test_a_comment_before_a_size_is_no_size() -> None:
    file, same = small(), small()
    text = same.xml.decode().replace("<dim>8</dim>", "<dim><!-- features -->8</dim>")
    assert text != file.xml.decode()
    found = ir.loads(text.encode(), same.bin)
    assert found.inputs[0].shape == ir.loads(file.xml, file.bin).inputs[0].shape


def test_a_cycle_is_named() -> None:
    file = OldFile(6)
    a = file.add("ReLU", [(1, 2)], [(1, 2)], name="a")
    b = file.add("ReLU", [a], [(1, 2)], name="b")
    file.edges.append(
        f'<edge from-layer="{b.layer}" from-port="{b.port}" to-layer="0" to-port="0"/>'
    )
    with pytest.raises(IRError, match=r'in a cycle: "[ab]" <- "[ab]"'):
        ir.loads(file.xml, b"")


# Pre-processing.


def with_means(channels: str, more: str = "") -> OldFile:
    file = OldFile(2)
    file.add("ReLU", [file.input((1, 2, 2, 3), "data")], [(1, 2, 2, 3)], name="out")
    file.more = f"<pre-process{more}>{channels}</pre-process>\n"
    return file


VALUES = (
    '<channel id="0"><mean value="1.5"/></channel><channel id="1"><mean value="-2"/></channel>'
)


@pytest.mark.parametrize("more", ["", ' reference-layer-name="data"'])
def test_mean_values_are_taken_off_the_input(more: str) -> None:
    file = with_means(VALUES.replace("/></channel>", '/><scale value="2"/></channel>', 1), more)
    x = draw(1, 2, 2, 3)
    model = ir.loads(file.xml, file.bin)
    want = np.maximum(x - np.float32([1.5, -2]).reshape(1, 2, 1, 1), 0)
    np.testing.assert_allclose(ir.run(model, {"data": x})["out"], want, rtol=1e-6)
    assert model.origin is not None
    assert any("scale" in remark.message for remark in model.origin.remarks)


@pytest.mark.parametrize("precision", ["FP32", "FP16", "U8"])
def test_the_input_that_means_are_taken_off_keeps_its_name(precision: str) -> None:
    file = OldFile(6)
    x = file.input((1, 2, 2, 3), "data", precision=precision)
    file.add("ReLU", [x], [(1, 2, 2, 3)], name="out")
    file.more = f"<pre-process>{VALUES}</pre-process>\n"
    model = ir.loads(file.xml, file.bin)
    xml, weights = ir.dumps(model)
    assert [str(finding) for finding in ir.check(xml, weights=weights)] == []
    assert [layer.name for layer in model.parameters] == ["data"]
    named = [layer.name for layer in model.layers for row in layer.tensor_names() if "data" in row]
    assert named == ["data"]
    given = draw(1, 2, 2, 3).astype(model.inputs["data"].type.dtype)
    theirs = ask("values", xml.decode(), weights, [given])[0]
    np.testing.assert_allclose(ir.run(model, {"data": given})["out"], theirs, rtol=1e-6)


def test_a_mean_image_is_taken_off_the_input() -> None:
    rows = '<channel id="0"><mean offset="0" size="24"/></channel>'
    rows += '<channel id="1"><mean offset="24" size="24"/></channel>'
    file = with_means(rows, ' mean-precision="FP32"')
    image = draw(2, 2, 3)
    model = ir.loads(file.xml, image.tobytes())
    x = draw(1, 2, 2, 3)
    found = ir.run(model, [x])["out"]
    np.testing.assert_allclose(found, np.maximum(x - image, 0), rtol=1e-6)
    with pytest.raises(UsageError, match="mean image"):
        ir.loads(file.xml, image.tobytes(), keep_preprocess=True)


def test_means_may_be_left_to_the_caller() -> None:
    file = with_means(VALUES)
    model = ir.loads(file.xml, b"", keep_preprocess=True)
    x = draw(1, 2, 2, 3)
    np.testing.assert_array_equal(ir.run(model, [x])["out"], np.maximum(x, 0))
    assert model.rt_info is not None
    kept = next(one for one in model.rt_info if one.key == "pre_process")
    assert {one.key: one.value for one in kept} == {"input": "data", "mean": "1.5,-2"}


@pytest.mark.parametrize(
    ("channels", "more", "words"),
    [('<channel id="0"><mean value="1"/></channel>', "", "1 of 2 channels have a mean value"),
     ('<channel id="2"><mean value="1"/></channel>', "", "id 2, the input has 2 channels"),
     ('<channel id="0"><mean/></channel>', "", "neither value nor size"),
     ('<channel id="0"><mean value="one"/></channel>', "", 'is "one", not a number'),
     ('<channel id="1"><scale value="x"/></channel>', "", 'scale of channel 1 is "x", not a num'),
     ('<channel id="0"><mean offset="0" size="8"/></channel>', "", "8 bytes, 2x3 of f32 takes 24"),
     (VALUES + '<channel id="0"/>', "", "two channels have the id 0"),
     (VALUES, ' reference-layer-name="nobody"', 'of input "nobody", the inputs are "data"')],
)  # fmt: skip
def test_means_that_are_wrong(channels: str, more: str, words: str) -> None:
    with pytest.raises(IRError, match=words):
        ir.loads(with_means(channels, more).xml, bytes(64))


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("kind", ["mean", "scale"])
def test_numbers_of_means_are_spelt_as_others(kind: str, text: str) -> None:
    row = f'<channel id="1"><{kind} value="{text}"/></channel>'
    with pytest.raises(IRError, match=f'{kind} of channel 1 is "{text}", not a number'):
        ir.loads(with_means(row).xml, b"")


def test_statistics_of_no_layer_are_not_told_of() -> None:
    file = small(6)
    file.more = "<statistics/>"
    origin = ir.loads(file.xml, file.bin).origin
    assert origin is not None
    assert not [one for one in origin.remarks if "ranges" in one.message]


def test_statistics_of_calibrated_files_are_told_of() -> None:
    file = small(4)
    file.more = "<statistics><layer><name>conv</name><min>0</min><max>1</max></layer></statistics>"
    model = ir.loads(file.xml, file.bin)
    assert model.origin is not None
    assert any("1 layers for calibrated" in remark.message for remark in model.origin.remarks)


def test_a_layer_without_a_precision_has_that_of_its_output() -> None:
    file = OldFile(7)
    w = draw(2, 3).astype(np.float16)
    x = file.input((1, 3), "x")
    data = {"out-size": 2}
    file.add("FullyConnected", [x], [(1, 2)], data, {"weights": w}, precision="FP16", name="fc")
    text = re.sub(r'(name="fc" type="FullyConnected") precision="FP16"', r"\1", file.xml.decode())
    text = text.replace('<output><port id="1">', '<output><port id="1" precision="FP16">')
    given = draw(1, 3)
    found = ir.run(ir.loads(text, file.bin), [given])["fc"]
    np.testing.assert_allclose(found, given @ w.T.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_weights_of_eight_bits_are_numbers_without_a_scale() -> None:
    file = OldFile(6)
    w = np.random.default_rng(5).integers(-9, 9, (2, 3)).astype(np.int8)
    x = file.input((1, 3), "x")
    file.add("FullyConnected", [x], [(1, 2)], {"out-size": 2}, {"weights": w}, name="fc")
    model, given = ir.loads(file.xml, file.bin), draw(1, 3)
    np.testing.assert_allclose(ir.run(model, [given])["fc"], given @ w.T, rtol=1e-5, atol=1e-5)
    assert model.origin is not None
    assert "without a scale" in str(model.origin.remarks)


# What can be done with an upgraded model.


def test_reshape_and_write(tmp_path: Path) -> None:
    file = OldFile(3)
    x = file.input((1, 3, 8, 8), "x")
    data = {"kernel": "3,3", "output": 2}
    c = file.add(
        "Convolution", [x], [(1, 2, 6, 6)], data, {"weights": draw(2, 3, 3, 3)}, name="conv"
    )
    file.add("Pooling", [c], [(1, 2, 3, 3)], {"kernel": "2,2", "strides": "2,2"}, name="pool")
    model = ir.loads(file.xml, file.bin)
    ir.reshape(model, {"x": "2,3,10,12"})
    assert ir.infer(model)["pool"].shape.static == (2, 2, 4, 5)
    ir.write(model, tmp_path / "new.xml")
    given = draw(2, 3, 10, 12)
    mine = ir.run(ir.read(tmp_path / "new.xml"), [given])["pool"]
    xml = (tmp_path / "new.xml").read_text()
    theirs = ask("values", xml, (tmp_path / "new.bin").read_bytes(), [given])[0]
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_what_can_be_of_another_size_is() -> None:
    file = OldFile(6)
    data = {"type": "caffe.ResampleParameter.NEAREST", "factor": 2, "antialias": 0}
    y = file.add("Resample", [file.input((1, 2, 3, 4), "x")], [(1, 2, 6, 8)], data)
    z = file.add("Flatten", [y], [(1, 96)], {"axis": 1, "end_axis": -1})
    file.add("SoftMax", [z], [(1, 96)], {"axis": 1}, name="out")
    model = ir.loads(file.xml, file.bin)
    ir.reshape(model, {"x": "3,2,5,5"})
    assert ir.infer(model)["out"].shape.static == (3, 200)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = small(2)
    (tmp_path / "old.bin").write_bytes(file.bin)
    (tmp_path / "old.xml").write_bytes(file.xml)
    return tmp_path / "old.xml"


def verb(*words: object) -> Any:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_convert_writes_what_openvino_reads(old: Path) -> None:
    new = old.with_name("new.xml")
    done = verb("convert", old, "-o", new)
    assert done.exit_code == 0, done.output
    assert "rounds up (ceil_torch)" in done.output
    assert ir.check(new).ok
    x = draw(1, 3, 8, 8)
    mine = ir.run(ir.read(old), [x])["prob"]
    theirs = ask("values", new.read_text(), new.with_suffix(".bin").read_bytes(), [x])[0]
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    assert isinstance(verb("convert", old, "-o", new).exception, UsageError)
    assert isinstance(verb("convert", new, "-o", old, "--force").exception, UsageError)
    told = verb("convert", old, "-o", new, "--force", "--json")
    assert json.loads(told.stdout)["origin"]["ir_version"] == 2


def test_convert_refuses_what_has_no_counterpart(tmp_path: Path) -> None:
    file = OldFile(4)
    file.add("SimplerNMS", [file.input((1, 3), "x")], [(1, 5)], name="nms")
    (tmp_path / "old.xml").write_bytes(file.xml)
    (tmp_path / "old.bin").write_bytes(b"")
    done = verb("convert", tmp_path / "old.xml", "-o", tmp_path / "new.xml")
    assert isinstance(done.exception, UnsupportedError)
    assert "nms" in str(done.exception)
    assert not (tmp_path / "new.xml").exists()


def test_the_other_verbs(old: Path) -> None:
    shown = verb("show", old)
    assert "11, upgraded from 2" in shown.output
    assert "ceil_torch" in shown.output
    assert json.loads(verb("show", old, "--json").stdout)["origin"]["remarks"][0]["name"] == "pool"
    assert verb("check", old).exit_code == 0
    assert "IR204" in verb("check", old, "--target", "2024.6").output
    assert verb("check", old, "--target", "2024.6").exit_code == 1
    assert verb("infer", old).exit_code == 0
    assert verb("run", old, "--input", "image=random").exit_code == 0
    assert isinstance(verb("copy", old, old.with_name("copy.xml")).exception, UsageError)


@pytest.mark.parametrize("version", [2, 3, 6, 7])
def test_what_somebody_adds_to_a_layer_is_kept(version: int) -> None:
    file = small(version)
    before = ir.loads(file.xml, file.bin)
    root = etree.fromstring(file.xml)
    owners = [root, *root.iter("layer")]
    owners += [port for layer in root.iter("layer") for port in layer.findall("output/port")]
    for owner in owners:
        said = etree.SubElement(owner, "rt_info")
        etree.SubElement(said, "mark", value="7")
        model = ir.loads(etree.tostring(root), file.bin)
        found = [(one.kind, one.after) for one in ir.diff(before, model)]
        assert found == [("rt_info", "7")], (owner.tag, owner.attrib)
        owner.remove(said)


def test_open_files_are_read() -> None:
    file = small()
    model = ir.read(io.BytesIO(file.xml), io.BytesIO(file.bin))
    assert model.origin is not None


# The table.


def test_every_entry_says_what_it_becomes() -> None:
    unsaid = [kind for kind, entry in entries().items() if not entry.becomes]
    assert sorted(unsaid) == [
        "copy",
        "dropout",
        "identity",
        "simplernms",
        "stopgradient",
        "unique",
    ]
    assert len(list(known_types())) > 100


def test_the_table_is_printed() -> None:
    assert "exclude-pad=false" in verb("ops", "--older", "pooling").output
    assert "| Crop |" in verb("ops", "--older", "--format", "markdown").output
    rows = json.loads(verb("ops", "--older", "--json").stdout)["layers"]
    assert len(rows) == len(entries())
    assert isinstance(verb("ops", "--older", "Poling").exception, UsageError)


# The shared corpus.


def corpus() -> list[Path]:
    index = SHARED / "corpus" / "INDEX.json"
    rows = json.loads(index.read_text()) if index.is_file() else []
    return [index.parent / row["path"] for row in rows if row["ir_version"] in range(2, 8)]


@pytest.mark.shared
@pytest.mark.skipif(not corpus(), reason="the folder of shared data is not beside the checkout")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.stem)
def test_old_files_of_other_people(path: Path) -> None:
    model = ir.read(path)
    assert model.origin is not None
    assert [str(r) for r in model.origin.remarks if r.kind in ("unlike", "missing")] == []
    assert [str(f) for f in ir.check(path) if f.severity == "error"] == []
    for layer, index, tensor in ir.infer(model).ports():
        assert tensor.shape.static == layer.outputs[index].dims
    if path.with_suffix(".bin").exists():
        given = [draw(*layer.outputs[0].dims) for layer in model.parameters]
        mine = ir.run(model, given)
        xml, weights = ir.dumps(model)
        theirs = ask("values", xml.decode(), weights, given)
        for found, want in zip(mine.values(), theirs, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
