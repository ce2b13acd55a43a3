"""What was read comes back; what was changed is changed, and nothing else."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import Written
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from strategies import documents
from vinoir import ir
from vinoir.ir.document.layer import Layer
from vinoir.ir.files.patch import Patch
from vinoir.ir.files.printer import Printer
from vinoir.ir.files.unchanged import is_unchanged
from vinoir.schemas import ElementType, IRError, Tensor


def everything(model: ir.Model) -> None:
    """Have every part of a model read."""
    for layer in model.everywhere():
        _ = layer.data, layer.inputs, layer.outputs, layer.rt_info, layer.port_maps
        _ = layer.back_edges, layer.bodies
        if layer.is_constant and model.weights is not None:
            _ = layer.value


def plain(xml: bytes, places: bool = True) -> str:
    """A document's canonical form, insignificant white space (and places in the .bin) aside."""
    parser = etree.XMLParser(remove_blank_text=True)
    root = etree.fromstring(xml, parser)
    for node in root.iter("*"):
        node.text = (node.text or "").strip()
        if not places:
            node.attrib.pop("offset", None)
    return etree.tostring(root, method="c14n").decode()


def changes(before: bytes, after: bytes) -> list[str]:
    """The lines that are gone and come."""
    lines = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
    return [line[0] + line[2:].strip() for line in lines if line[0] in "+-"]


def test_every_file_of_openvino_comes_back(written: Written, tmp_path: Path) -> None:
    for path in written.all():
        model = ir.read(path)
        everything(model)
        ir.write(model, tmp_path / "copy.xml")
        assert (tmp_path / "copy.xml").read_bytes() == path.read_bytes(), path.name
        assert (tmp_path / "copy.bin").read_bytes() == path.with_suffix(".bin").read_bytes()


def test_printing_anew_is_what_openvino_prints(written: Written) -> None:
    """The printer alone, on the records of a file with its own numbers."""
    for path in written.all():
        model = ir.read(path)
        printer = Printer({})
        printer.model(model)
        assert printer.text.encode() == path.read_bytes(), path.name


def test_numbering_and_packing_anew_is_what_openvino_does(written: Written) -> None:
    for path in written.all():
        if path.name.startswith(("LSTMCell.0", "LSTMCell.1", "network")):
            # Written with an input that it does not count; with edges in the order of connecting.
            continue
        model = ir.read(path)
        model.source = None
        xml, weights = ir.dumps(model)
        assert xml == path.read_bytes(), path.name
        assert weights == path.with_suffix(".bin").read_bytes(), path.name


@settings(max_examples=150, deadline=None)
@given(documents())
def test_any_document_comes_back(document: tuple[str, bytes]) -> None:
    xml, weights = document[0].encode(), document[1]
    model = ir.loads(xml, weights)
    everything(model)
    assert ir.dumps(model) == (xml, weights)
    # The same with every element printed anew.
    patch = Patch(model, {}, model.pre_process)
    assert not patch.changed
    patch.touched = {patch.root, *patch.pieces}
    assert plain(patch.text()) == plain(xml)


@settings(max_examples=150, deadline=None)
@given(documents(), st.data())
def test_an_edit_changes_what_was_edited(document: tuple[str, bytes], data: st.DataObject) -> None:
    xml, weights = document[0].encode(), document[1]
    model = ir.loads(xml, weights)
    layers = list(model.everywhere())
    if not layers:
        return
    layer = data.draw(st.sampled_from(layers))
    what = data.draw(st.sampled_from(["name", "data", "value", "remove", "add", "dims", "info"]))
    expected = etree.fromstring(xml)
    twin = list(expected.iter("layer"))[layers.index(layer)]
    if what == "name":
        layer.name = "new name"
        twin.set("name", "new name")
    elif what == "data" and layer.data:
        layer.data["further"] = "<new>"
        twin.find("data").set("further", "<new>")
    elif what == "value" and layer.is_constant:
        layer.value = np.arange(3, dtype=np.int64) + 1_000_000
        again = ir.loads(*ir.dumps(model))
        found = list(again.everywhere())[layers.index(layer)]
        assert found.value.tolist() == [1_000_000, 1_000_001, 1_000_002]
        assert ir.dumps(model, keep_unused=True)[1].startswith(weights)
        return
    elif what == "remove" and layer.graph is not None:
        layer.graph.remove(layer)
        graph = twin.getparent().getparent()
        twin.getparent().remove(twin)
        for edge in list(graph.find("edges")):
            if twin.get("id") in (edge.get("from-layer"), edge.get("to-layer")):
                edge.getparent().remove(edge)
    elif what == "add" and layer.graph is not None:
        new = layer.graph.add(ir.Layer("New", "opset1", "n", data={"a": "1"}))
        made = etree.SubElement(
            twin.getparent(), "layer", id=str(new.id), name="n", type="New", version="opset1"
        )
        etree.SubElement(made, "data", a="1")
    elif what == "dims" and layer.outputs:
        layer.outputs[0].describe(Tensor("i8", (4, 5)))
        port = twin.find("output").find("port")
        port.set("precision", "I8")
        for part in port.findall("dim"):
            port.remove(part)
        for index, size in enumerate("45"):
            part = etree.Element("dim")
            part.text = size
            port.insert(index, part)
    elif what == "info" and layer.rt_info is not None:
        layer.rt_info = None
        twin.remove(twin.find("rt_info"))
    kept = ir.dumps(model, keep_unused=True)
    assert kept == (kept[0], weights)
    assert plain(kept[0]) == plain(etree.tostring(expected)), what
    # Without the bytes that nothing uses any more: constants may have moved, and hold the same.
    xml, packed = ir.dumps(model)
    assert len(packed) <= len(weights)
    assert values(ir.loads(xml, packed)) == values(model)
    assert plain(xml, places=False) == plain(kept[0], places=False)


def values(model: ir.Model) -> list[bytes]:
    """What the constants hold."""
    return [bytes(layer.blob) for layer in model.everywhere() if layer.is_constant]


SMALL = """<?xml version="1.0"?>
<net name="m" version="11">
	<layers>
		<!-- the input -->
		<layer id="3" name="x" type="Parameter" version="opset1" extra="kept">
			<data shape="1, 4" element_type='f32'/>
			<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>4</dim></port>
			</output>
		</layer>
		<layer id="7" name="y" type="ReLU" version="opset1">
			<input>
				<port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port>
			</input>
			<output>
				<port id="1" precision="FP32" names="y"><dim>1</dim><dim>4</dim></port>
			</output>
		</layer>
		<layer id="9" name="r" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="3" from-port="0" to-layer="7" to-port="0" />
		<edge from-layer="7" from-port="1" to-layer="9" to-port="0" />
	</edges>
	<rt_info />
</net>
"""


def test_edits_line_by_line() -> None:
    model = ir.loads(SMALL)
    model.layer("y").name = "z"
    assert changes(SMALL.encode(), ir.dumps(model)[0]) == [
        '-<layer id="7" name="y" type="ReLU" version="opset1">',
        '+<layer id="7" name="z" type="ReLU" version="opset1">',
    ]
    model = ir.loads(SMALL)
    model.layer("y").rt_info = ir.Info("rt_info", {}, [ir.Info("user_data", {"name": "a"})])
    assert changes(SMALL.encode(), ir.dumps(model)[0]) == [
        "+<rt_info>", '+<user_data name="a" />', "+</rt_info>",
    ]  # fmt: skip
    model = ir.loads(SMALL)
    model.disconnect(model.layer("y"), 0)
    assert changes(SMALL.encode(), ir.dumps(model)[0]) == [
        '-<edge from-layer="3" from-port="0" to-layer="7" to-port="0" />'
    ]
    model = ir.loads(SMALL)
    model.rt_info.set("framework", "demo")  # type: ignore[union-attr]  # it is there
    assert changes(SMALL.encode(), ir.dumps(model)[0]) == [
        "-<rt_info />", "+<rt_info>", '+<framework value="demo" />', "+</rt_info>",
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_an_edited_document_keeps_its_kind_of_lines(encoding: str) -> None:
    text = SMALL.replace('<?xml version="1.0"?>', f'<?xml version="1.0" encoding="{encoding}"?>')

    def edited(source: str) -> str:
        model = ir.loads(source.encode(encoding))
        model.layer("y").name = "z\na\r\nb"
        model.rt_info.set("framework", "demo")  # type: ignore[union-attr]  # it is there
        model.add(ir.Layer("ReLU", "opset1", "new", outputs=[ir.Port(0, "FP32", (1, 4))]))
        return ir.dumps(model)[0].decode(encoding)

    plain = edited(text)
    assert plain.count("\n") > text.count("\n")
    windows = edited(text.replace("\n", "\r\n"))
    assert windows == plain.replace("\n", "\r\n")
    assert ir.loads(windows.encode(encoding)).layer("z\na\r\nb").id == 7


def test_insert_a_layer_and_a_constant() -> None:
    model = ir.loads(SMALL)
    relu = model.layer("y")
    weight = ir.Layer("Const", "opset1", "w")
    weight.set_value(np.array([1, 2, 3, 4], np.float32))
    model.add(weight, 1)
    add = ir.Layer(
        "Add", "opset1", "sum", data={"auto_broadcast": "numpy"},
        outputs=[ir.Port(0, "FP32", (1, 4), ["sum"])],
    )  # fmt: skip
    model.add(add, 3)
    model.connect(relu, add)
    model.connect(weight, add)
    model.replace_output((relu, 0), (add, 0))
    xml, weights = ir.dumps(model)
    assert weights == np.array([1, 2, 3, 4], np.float32).tobytes()
    again = ir.loads(xml, weights)
    assert [layer.name for layer in again.order()] == ["x", "y", "w", "sum", "r"]
    assert again.sources(again.layer("sum")) == [
        (again.layer("y"), 0), (again.layer("w"), 0)
    ]  # fmt: skip
    assert [edge.from_layer for edge in again.edges] == sorted(e.from_layer for e in again.edges)
    kept = [line for line in SMALL.splitlines() if "edge " not in line]
    assert [line for line in kept if line not in xml.decode().splitlines()] == []


def test_constants_stay_append_and_share() -> None:
    net = ir.Builder("m")
    a = net.constant(np.arange(4, dtype=np.float32), name="a")
    b = net.constant(np.arange(4, dtype=np.float32), name="b")
    c = net.constant(np.array([9], np.int8), name="c")
    for one in (a, b, c):
        net.result(one)
    xml, weights = ir.dumps(net.model())
    assert len(weights) == 17  # equal bytes once
    model = ir.loads(xml, weights)
    model.layer("a").value = np.array([9], np.int8)  # bytes that are there already
    model.layer("b").value = np.array([5], np.int64)
    five = np.array([5], np.int64).tobytes()
    new_xml, new_weights = ir.dumps(model)
    assert sorted(new_weights) == sorted(five + b"\x09")  # what is c is still used, once
    assert ir.loads(new_xml, new_weights).layer("a").value.tolist() == [9]
    new_xml, new_weights = ir.dumps(model, keep_unused=True)
    assert new_weights == weights + five
    again = ir.loads(new_xml, new_weights)
    assert again.layer("a").data == {
        "element_type": "i8", "shape": "1", "offset": "0", "size": "1"
    }  # fmt: skip
    assert [again.layer(name).value.tolist() for name in "abc"] == [[9], [5], [9]]
    assert again.layer("a").outputs[0].tensor == Tensor("i8", (1,))
    assert len(ir.dumps(model, repack=True)[1]) == 9


def test_a_layer_from_another_model_brings_its_weights() -> None:
    net = ir.Builder("one")
    net.result(net.constant(np.array([1, 2, 3], np.int16), name="w"))
    one = ir.loads(*ir.dumps(net.model()))
    net = ir.Builder("two")
    net.result(net.constant(np.array([7, 7, 7], np.int16), name="v"))
    two = ir.loads(*ir.dumps(net.model()))
    layer = one.layer("w")
    one.remove(layer)
    two.add(layer)
    assert ir.loads(*ir.dumps(two)).layer("w").value.tolist() == [1, 2, 3]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings(encoding: str) -> None:
    text = SMALL.replace('<?xml version="1.0"?>', f'<?xml version="1.0" encoding="{encoding}"?>')
    source = text.replace('name="y"', 'name="é"').encode(encoding)
    model = ir.loads(source)
    assert model.layer("é").id == 7
    assert ir.dumps(model)[0] == source
    model.layer("é").name = "ê€"
    assert ir.loads(ir.dumps(model)[0]).layer("ê€").id == 7


def test_openvino_loads_what_was_written_and_computes_the_same(written: Written) -> None:
    ov = pytest.importorskip("openvino")
    names = ("Convolution.1", "MatMul", "Loop", "If", "TensorIterator", "TopK.11", "Gather.8")
    paths = [path for name in names for path in written.all(f"{name}.*")]
    core, random = ov.Core(), np.random.default_rng(0)
    for path in paths:
        model = ir.read(path)
        model.name = "renamed"
        outputs = []
        feeds: list[np.ndarray] | None = None
        for xml, weights in ((path.read_bytes(), bytes(model.weights.data)), ir.dumps(model)):  # type: ignore[union-attr]  # every witness has a .bin
            data = ov.Tensor(np.frombuffer(weights, np.uint8)) if weights else ov.Tensor(
                ov.Type.u8, ov.Shape([0])
            )  # fmt: skip
            read = core.read_model(xml, data)
            feeds = feeds or [
                random.integers(
                    0, 2, [max(d.get_min_length(), 1) for d in p.partial_shape]
                ).astype(p.element_type.to_dtype())
                for p in read.inputs
            ]
            run = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            outputs.append(list(run(feeds).values()))
        for one, two in zip(*outputs, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", [kind for kind in ElementType if not kind.is_dynamic])
def test_openvino_reads_constants_of_every_type(kind: ElementType) -> None:
    ov = pytest.importorskip("openvino")
    net = ir.Builder("m")
    values = np.array([0, 1, 1, 0, 1]).astype(kind.dtype)
    if kind is ElementType.STRING:
        values = np.array(["", "a", "é", "b,c", "d"])
    net.result(net.constant(values, kind, name="w"), name="out")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.xml"
        ir.write(net.model(), path)
        read = ov.Core().read_model(path)
        again = Path(folder) / "again.xml"
        ov.serialize(read, again)
        del read
        # OpenVINO may give the port further names, all else is the same.
        assert again.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()
        assert again.read_text() == path.read_text()


def test_names_are_in_the_order_of_openvino(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    net.result(net.add("ReLU", "opset1", [x], name="relu").named("z", "é", "B"), name="b")
    net.result(x, name="a,c")
    ir.write(net.model(), tmp_path / "m.xml")
    ov.serialize(ov.Core().read_model(tmp_path / "m.xml"), tmp_path / "again.xml")
    assert (tmp_path / "again.xml").read_text() == (tmp_path / "m.xml").read_text()


def test_bodies_made_in_memory() -> None:
    ov = pytest.importorskip("openvino")
    net = ir.Builder("m")
    chosen = net.parameter("chosen", "boolean", "")
    x = net.parameter("x", "f32", "2")
    either = net.add("If", "opset8", [chosen, x], name="if", outputs=[Tensor("f32", (2,))])
    for tag, factor in (("then_body", 2.0), ("else_body", 3.0)):
        body = ir.Builder(into=ir.Graph())
        inner = body.parameter("inner", "f32", "2")
        weight = body.constant(np.array([factor, factor], np.float32))
        product = body.add("Multiply", "opset1", [inner, weight], outputs=[inner.tensor])
        body.result(product)
        wiring = ir.PortMap()
        wiring.add("input", external_port_id=1, internal_layer_id=inner.layer.id)
        wiring.add("output", external_port_id=0, internal_layer_id=body.graph.results[0].id)
        either.layer.add_body(tag, body.graph, wiring)
    net.result(either, name="y")
    xml, weights = ir.dumps(net.model())
    read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8)))
    run = ov.Core().compile_model(read, "CPU")
    feed = np.array([1, 10], np.float32)
    assert run([np.array(True), feed])[0].tolist() == [2, 20]
    assert run([np.array(False), feed])[0].tolist() == [3, 30]
    again = ir.loads(xml, weights)
    again.layer("if").bodies["else_body"].constants[0].value = np.array([5, 5], np.float32)
    xml, weights = ir.dumps(again)
    read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8)))
    assert ov.Core().compile_model(read, "CPU")([np.array(False), feed])[0].tolist() == [5, 50]


def test_bodies_in_the_place_of_others(written: Written) -> None:
    """A body is written where it now is, and not mixed with the one that was read there."""
    ov = pytest.importorskip("openvino")
    op = pytest.importorskip("openvino.opset13")
    x, chosen = op.parameter([2], np.float32, name="x"), op.parameter([], np.bool_, name="c")
    bodies = []
    for low, high, build, numbers in ((0, 5, op.add, [1, 2]), (-1, 1, op.multiply, [5, 6])):
        inner = op.parameter([2], np.float32)
        end = op.clamp(build(inner, op.constant(np.float32(numbers))), low, high)
        bodies.append((ov.Model([op.result(end)], [inner], "body"), inner))
    (then, one), (other, two) = bodies
    either = op.if_op(chosen)
    either.set_then_body(then)
    either.set_else_body(other)
    either.set_input(x.output(0), one, two)
    made = either.set_output(then.results[0], other.results[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.xml"
        ov.save_model(ov.Model([op.result(made)], [x, chosen], "m"), path, compress_to_fp16=False)
        model, again = ir.read(path), ir.read(path)
    feed = np.float32([-3, 2])

    def found(model: ir.Model) -> list[list[float]]:
        xml, weights = ir.dumps(model)
        read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8)))
        run = ov.Core().compile_model(read, "CPU")
        return [run({"x": feed, "c": np.array(take)})[0].tolist() for take in (True, False)]

    def holder(model: ir.Model) -> Layer:
        return next(layer for layer in model if layer.type == "If")

    assert found(model) == [[0, 4], [-1, 1]]
    both = holder(model)
    tags = "then_body", "else_body"
    held = [(both.bodies[tag], both.port_maps[tag]) for tag in tags]
    for tag, (body, wiring) in zip(tags, reversed(held), strict=True):
        both.add_body(tag, body, wiring)
    assert found(model) == [[-1, 1], [0, 4]]
    assert found(model.copy()) == [[-1, 1], [0, 4]]
    # One of another model takes its weights along, which stand elsewhere in its .bin.
    stranger = ir.loads(*ir.dumps(model))
    holder(stranger).bodies["else_body"].constants[0].value = np.float32([30, 40])
    stranger = ir.loads(*ir.dumps(stranger, repack=True))
    body, wiring = (getattr(holder(stranger), part) for part in ("bodies", "port_maps"))
    holder(again).add_body("then_body", body["else_body"], wiring["else_body"])
    assert found(again) == [[5, 5], [-1, 1]]


@pytest.mark.parametrize("name", ["a\x01", "\0", "\ud800", "\uffff"])
def test_names_that_xml_cannot_say(name: str) -> None:
    net = ir.Builder()
    net.parameter(name, "f32", "1")
    with pytest.raises(IRError, match="XML has no such"):
        ir.dumps(net.model())
    model = ir.loads(SMALL)
    model.layer("y").name = name
    with pytest.raises(IRError, match="XML has no such"):
        ir.dumps(model)


def test_text_is_read_as_its_declaration_says() -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?><net name="é" version="11"/>'
    assert ir.loads(text).name == "é"
    assert ir.dumps(ir.loads(text))[0] == text.encode("latin-1")
    with pytest.raises(IRError):
        ir.loads('<net name="\ud800" version="11"/>')


@pytest.fixture
def untouched(written: Written) -> ir.Model:
    """A model with everything in it that can be changed, as it was read."""
    return ir.read(written.first("Loop.*"))


CHANGES: dict[str, Callable[[ir.Model], object]] = {
    "name": lambda m: setattr(m, "name", "other"),
    "layer": lambda m: setattr(m.layers[0], "name", "other"),
    "type": lambda m: setattr(m.layers[0], "version", "opset2"),
    "id": lambda m: setattr(m.layers[0], "id", 77),
    "data": lambda m: m.parameters[0].data.update(shape="1"),
    "all data": lambda m: setattr(m.parameters[0], "data", {}),
    "names": lambda m: setattr(m.parameters[0].outputs[0], "names", ("n",)),
    "dims": lambda m: setattr(m.results[0].inputs[0], "dims", (7, 7)),
    "ports": lambda m: m.results[0].inputs.pop(),
    "output names": lambda m: setattr(m.results[0], "output_names", "n"),
    "layer's info": lambda m: setattr(m.layers[0], "rt_info", ir.Info("rt_info", {"a": "b"})),
    "info": lambda m: m.rt_info and m.rt_info.set("k", "v"),
    "edge": lambda m: m.disconnect(m.results[0], 0),
    "layer gone": lambda m: m.remove(m.results[0]),
    "layer come": lambda m: m.add(Layer("Odd", "extension", "odd")),
    "inside": lambda m: setattr(next(body(m)).layers[0], "name", "other"),
    "edge inside": lambda m: next(body(m)).disconnect(next(body(m)).results[0], 0),
    "back edge": lambda m: holder(m).back_edges.clear(),
    "port map": lambda m: holder(m).port_maps["body"].entries.pop(),
    "weights": lambda m: m.constants[0].set_value(np.int64(99)),
}


def holder(model: ir.Model) -> Layer:
    return next(layer for layer in model if layer.bodies)


def body(model: ir.Model) -> Iterator[ir.Graph]:
    return iter(holder(model).bodies.values())


def test_what_was_not_changed_is_known_to_be(untouched: ir.Model) -> None:
    model = untouched
    assert is_unchanged(model)
    everything(model)
    ir.infer(model)
    assert is_unchanged(model)


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(untouched: ir.Model, change: str) -> None:
    model = untouched
    before = ir.dumps(model)
    CHANGES[change](model)
    assert not is_unchanged(model)
    assert ir.dumps(model) != before
