"""Bytes that nobody asked to touch stay; edited models do not grow; readers get one pair."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import documents
from vinoir import ir
from vinoir.ir.cli import cli
from vinoir.ir.storage.atomic import locked
from vinoir.schemas import IRError, UnsupportedError, UsageError


def chain(*values: float, size: int = 500) -> ir.Model:
    """x + w0 + w1 ..., the constants of different sizes."""
    net = ir.Builder("chain")
    y = net.parameter("x", "f32", "1")
    for index, value in enumerate(values):
        w = net.constant(np.full((2 + index, 1), value, np.float32), name=f"w{index}")
        big = net.constant(np.full(size, value, np.float32), name=f"b{index}")
        net.result(net.add("Add", "opset1", [y, w], name=f"y{index}"), name=f"r{index}")
        net.result(net.add("Add", "opset1", [y, big], name=f"z{index}"), name=f"q{index}")
    return net.model()


def vinoir(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    ir.write(chain(1, 2, 3), tmp_path / "m.xml")
    return tmp_path / "m.xml"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# A .bin that is not there.


def nobin(pair: Path) -> Path:
    path = pair.with_name("nobin.xml")
    path.write_bytes(pair.read_bytes())
    return path


WRITERS: dict[str, Callable[[Path], Any]] = {
    "write": lambda path: ir.write(ir.read(path), path),
    "write elsewhere": lambda path: ir.write(ir.read(path), path.with_name("new.xml")),
    "write renamed": lambda path: ir.write(renamed(ir.read(path)), path),
    "copy": lambda path: vinoir("copy", path, path.with_name("new.xml")),
    "fix": lambda path: vinoir("check", "--fix", "--in-place", path),
    "infer": lambda path: vinoir("infer", path, "-i", "x=1", "--in-place"),
    "infer to": lambda path: vinoir("infer", path, "-i", "x=1", "-o", path.with_name("new.xml")),
}


def renamed(model: ir.Model) -> ir.Model:
    model.name = "renamed"
    return model


@pytest.mark.parametrize("what", WRITERS)
def test_a_missing_bin_stays_missing(what: str, pair: Path) -> None:
    before = files(pair.parent)
    WRITERS[what](nobin(pair))
    after = files(pair.parent)
    assert {name for name in after if name.endswith(".bin")} == {"m.bin"}
    assert {name: after[name] for name in before} == before
    (pair.parent / "nobin.bin").write_bytes(before["m.bin"])
    assert ir.read(pair.parent / "nobin.xml").layer("w1").value[0] == 2


@pytest.mark.parametrize("options", [[], ["--repack"]])
def test_a_copy_without_its_bin_leaves_that_of_another(options: list[str], pair: Path) -> None:
    path = nobin(pair)
    before = files(pair.parent)
    done = vinoir("copy", path, pair, "--force", *options)
    assert done.exit_code == 1
    assert isinstance(done.exception, IRError) or "no .bin" in done.output
    assert files(pair.parent) == before
    with pytest.raises(IRError, match=r"beside m\.bin: the model was read without its \.bin"):
        ir.write(ir.read(path), pair)
    assert files(pair.parent) == before


def test_a_bin_of_another_model_is_not_overwritten_unasked(pair: Path) -> None:
    pair.with_name("other.bin").write_bytes(b"precious")
    assert vinoir("copy", pair, pair.with_name("other.xml")).exit_code != 0
    assert pair.with_name("other.bin").read_bytes() == b"precious"
    assert not pair.with_name("other.xml").exists()


def test_in_place_the_weights_stay_where_they_were(pair: Path) -> None:
    pair.with_suffix(".bin").rename(pair.with_name("elsewhere.bin"))
    pair.with_suffix(".bin").write_bytes(b"precious")
    weights = pair.with_name("elsewhere.bin")
    before = weights.read_bytes()
    assert vinoir("infer", pair, "--weights", weights, "-i", "x=?", "--in-place").exit_code == 0
    assert vinoir("check", "--fix", pair, "--weights", weights, "--in-place").exit_code == 0
    assert pair.with_suffix(".bin").read_bytes() == b"precious"
    assert weights.read_bytes() == before
    assert ir.read(pair, weights).layer("w1").value[0] == 2


def test_new_values_beside_missing_ones_are_refused(pair: Path) -> None:
    model = ir.read(nobin(pair))
    model.layer("w0").value = np.zeros((2, 1), np.float32)
    with pytest.raises(IRError, match=r'"\w+".*bytes \d+ to \d+ are needed.*would lack them'):
        ir.write(model, pair.with_name("new.xml"))
    with pytest.raises(IRError, match="would lack them"):
        ir.dumps(model)
    assert ir.check(model)  # tells what is missing, and does not fail
    for layer in model.constants:
        layer.value = np.zeros(layer.sizes, np.float32)
    ir.write(model, pair.with_name("new.xml"))
    assert ir.read(pair.with_name("new.xml")).layer("b2").value[0] == 0


def test_a_bin_that_is_too_short_is_kept_as_it_is(pair: Path) -> None:
    weights = pair.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:-100])
    before = weights.read_bytes()
    model = ir.read(pair, need_weights=False)
    model.name = "other"
    ir.write(model, pair)
    assert weights.read_bytes() == before
    model.layer("w0").value = np.zeros((2, 1), np.float32)
    for keep in (False, True):
        with pytest.raises(IRError, match=r"are missing; a \.bin with the new values"):
            ir.write(model, pair, keep_unused=keep)
    assert weights.read_bytes() == before


def test_a_model_without_constants_needs_no_bin(tmp_path: Path) -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "2")]), name="y")
    xml, _ = ir.dumps(net.model())
    (tmp_path / "m.xml").write_bytes(xml)
    ir.write(renamed(ir.read(tmp_path / "m.xml")), tmp_path / "m.xml")
    assert [path.name for path in tmp_path.iterdir()] == ["m.xml"]
    # Beside a .bin it is written too: it points at none of its bytes.
    (tmp_path / "m.bin").write_bytes(b"precious")
    ir.write(ir.loads(xml), tmp_path / "m.xml")
    assert files(tmp_path) == {"m.xml": xml, "m.bin": b"precious"}
    ov = pytest.importorskip("openvino")
    (tmp_path / "m.bin").unlink()
    assert len(ov.Core().read_model(tmp_path / "m.xml").outputs) == 1


# Two names of one file, two pairs with one file.


@pytest.mark.parametrize("way", ["dot", "link", "hard", "folder", "new", "case"])
def test_the_document_by_another_name_is_not_its_weights(way: str, pair: Path) -> None:
    folder = pair.parent
    target, other = pair, folder / "other"
    if way == "dot":
        other = folder / "sub" / ".." / "m.xml"
        (folder / "sub").mkdir()
    elif way == "link":
        other.symlink_to("m.xml")
    elif way == "hard":
        os.link(pair, other)
    elif way == "folder":
        (folder / "alias").symlink_to(folder)
        other = folder / "alias" / "m.xml"
    elif way == "new":
        target, other = folder / "new.xml", Path(os.path.relpath(folder / "new.xml"))
    else:
        target, other = folder / "new.xml", folder / "NEW.XML"
    before = files(folder)
    with pytest.raises(UsageError, match="both the document and its weights"):
        ir.write(chain(4), target, other)
    assert files(folder) == before
    if way not in ("new", "case"):
        with pytest.raises(UsageError, match="both the document and its weights"):
            ir.read(target, other)


def _write_often(xml: Path, weights: Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ir.write(chain(1), xml, weights)


def test_two_documents_with_one_bin_in_three_folders(tmp_path: Path) -> None:
    weights = tmp_path / "shared" / "w.bin"
    spawn = multiprocessing.get_context("fork")
    others = [
        spawn.Process(target=_write_often, args=(tmp_path / name / "m.xml", weights, 2.0))
        for name in ("one", "two", "shared")
    ]
    for process in others:
        process.start()
    for process in others:
        process.join()
    assert [process.exitcode for process in others] == [0, 0, 0]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["m.xml"] * 3 + ["w.bin"]
    for name in ("one", "two", "shared"):
        assert ir.read(tmp_path / name / "m.xml", weights).layer("w0").value[0] == 1


def test_folders_are_locked_once_however_they_are_spelt(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path)
    with locked(tmp_path, tmp_path / "alias", tmp_path / ".", patience=1):
        taken = []

        def wait() -> None:
            try:
                with locked(tmp_path, patience=0.2):
                    taken.append("taken")
            except IRError as error:
                taken.append(error.message)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert taken == ["another writer is at work here"]
    with locked(tmp_path, patience=0.2):
        pass


@pytest.mark.parametrize("letter", ["n", "ä"])
@pytest.mark.parametrize("length", [230, 248, 251])
def test_names_as_long_as_can_be(length: int, letter: str, tmp_path: Path) -> None:
    stem = letter * (length // len(letter.encode()))
    path = tmp_path / f"{stem}.xml"
    for value in (1, 2):
        ir.write(chain(value), path)
        assert ir.read(path).layer("w0").value[0] == value
    assert len(files(tmp_path)) == 2
    with pytest.raises(IRError, match="cannot be written: File name too long"):
        ir.write(chain(1), tmp_path / ("n" * 252 + ".xml"))


# A reader beside a writer.


def _replace_often(path: Path, stop: Any) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        ir.write(chain(*[1 + number % 5] * (1 + number % 3), size=700 * (1 + number % 4)), path)


def test_a_reader_beside_a_writer_gets_one_pair(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    ir.write(chain(1), path)
    fork = multiprocessing.get_context("fork")
    stop = fork.Event()
    writer = fork.Process(target=_replace_often, args=(path, stop))
    writer.start()
    seen = set()
    try:
        for _ in range(3000):
            model = ir.read(path)
            values = {float(c.value.min()) for c in model.constants}
            values |= {float(c.value.max()) for c in model.constants}
            assert len(values) == 1
            seen |= values
    finally:
        stop.set()
        writer.join(60)
    assert len(seen) > 1


def test_a_pair_replaced_while_it_is_read_is_read_again(
    pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left, busy = ir.Weights.map, 3, False

    def map_(path: Any) -> ir.Weights:
        nonlocal left, busy
        if left and not busy:
            left, busy = left - 1, True
            ir.write(chain(*[10 + left] * (1 + left % 2)), pair)
            busy = False
        return real(path)

    monkeypatch.setattr(ir.Weights, "map", map_)
    assert ir.read(pair).layer("b0").value.tolist() == [10] * 500
    assert left == 0
    left = 1000
    monkeypatch.setattr("vinoir.ir.files.reader._ATTEMPTS", 5)
    with pytest.raises(IRError, match="was replaced 5 times while it was read"):
        ir.read(pair)


def test_a_document_rewritten_in_place_within_one_tick(
    pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Device, inode, size and time are the same; only the bytes differ."""
    real, done = ir.Weights.map, []

    def map_(path: Any) -> ir.Weights:
        if not done:
            done.append(os.stat(pair))
            pair.write_bytes(pair.read_bytes().replace(b'name="chain"', b'name="other"'))
            os.utime(pair, ns=(done[0].st_atime_ns, done[0].st_mtime_ns))
        return real(path)

    monkeypatch.setattr(ir.Weights, "map", map_)
    assert ir.read(pair).name == "other"


# What edited models weigh.


def used(model: ir.Model) -> int:
    """Number of bytes of a .bin that constants use."""
    taken: set[int] = set()
    for layer in model.everywhere():
        if layer.is_constant and "value" not in layer.data:
            offset, size = layer.byte_range
            taken.update(range(offset, offset + size))
    return len(taken)


def test_constants_changed_again_and_again_do_not_grow_the_file(pair: Path) -> None:
    weights = pair.with_suffix(".bin")
    before, text = weights.stat().st_size, pair.read_bytes()
    held = ir.read(pair)
    for value in range(5, 10):
        held.layer("b1").value = np.full(500, value, np.float32)
        ir.write(held, pair)
        assert weights.stat().st_size == before
        assert pair.read_bytes() == text  # the new value stands in the place of the old one
        again = ir.read(pair)
        assert [float(again.layer(f"b{n}").value[0]) for n in range(3)] == [1, value, 3]
        again.layer("w2").value = np.full((4, 1), value, np.float32)
        ir.write(again, pair)
        assert weights.stat().st_size == before
        ir.write(held, pair)
    assert ir.read(pair).layer("w2").value[0] == 3


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.int8])
def test_smaller_types_make_the_file_smaller(kind: Any, pair: Path) -> None:
    weights = pair.with_suffix(".bin")
    before = weights.stat().st_size
    model = ir.read(pair)
    for layer in model.constants:
        layer.value = layer.value.astype(kind)
    ir.write(model, pair)
    assert weights.stat().st_size == before * np.dtype(kind).itemsize // 4
    assert ir.read(pair).layer("b2").value.tolist() == [3] * 500


def test_bytes_of_removed_constants_go_unless_they_are_kept(pair: Path) -> None:
    weights = pair.with_suffix(".bin")
    before = weights.read_bytes()
    model = ir.read(pair)
    model.remove(*[model.layer(name) for name in ("b1", "z1", "q1")])
    ir.write(model, pair, keep_unused=True)
    assert weights.read_bytes() == before
    ir.write(model, pair)
    assert len(weights.read_bytes()) == len(before) - 2000 == used(ir.read(pair))
    assert ir.read(pair).layer("b2").value.tolist() == [3] * 500
    with pytest.raises(UsageError, match="choose one"):
        ir.dumps(model, repack=True, keep_unused=True)


def test_unused_bytes_stay_where_no_constant_changed(pair: Path) -> None:
    xml, weights = pair.read_bytes(), pair.with_suffix(".bin").read_bytes() + b"further bytes"
    model = renamed(ir.loads(xml, weights))
    model.layer("y1").name = "z"
    assert ir.dumps(model)[1] == weights
    assert len(ir.dumps(model, repack=True)[1]) == len(weights) - 13
    model.layer("w0").value = np.zeros((2, 1), np.float32)
    assert len(ir.dumps(model)[1]) == len(weights) - 13


def test_repack_on_the_command_line(pair: Path) -> None:
    ov = pytest.importorskip("openvino")
    weights = pair.with_suffix(".bin")
    before = weights.read_bytes()
    # Two constants point at equal bytes in two places, and further bytes are nobody's.
    text = pair.read_text().replace('offset="0"', f'offset="{len(before) + 7}"')
    pair.write_text(text)
    weights.write_bytes(before + b"unused!" + before)
    small = pair.with_name("small.xml")
    done = vinoir("copy", pair, small, "--repack")
    assert done.exit_code == 0, done.output
    assert len(files(pair.parent)["small.bin"]) == len(before)
    one, two = ir.read(pair), ir.read(small)
    for layer, twin in zip(one.constants, two.constants, strict=True):
        np.testing.assert_array_equal(layer.value, twin.value)
    read = [ov.Core().read_model(path) for path in (pair, small)]
    values = [
        {
            op.friendly_name: op.data.tolist()
            for op in model.get_ops()
            if op.get_type_name() == "Constant"
        }
        for model in read
    ]
    assert values[0] == values[1]
    # Over itself, too.
    assert vinoir("copy", pair, pair, "--repack", "--force").exit_code == 0
    assert len(weights.read_bytes()) == len(before)
    assert vinoir("copy", pair, pair, "--repack", "--force").exit_code == 0
    assert weights.read_bytes() == files(pair.parent)["small.bin"]


def test_a_layer_that_may_point_into_the_bin_keeps_it_from_moving(pair: Path) -> None:
    text = pair.read_text().replace(
        'name="y0" type="Add" version="opset1">\n\t\t\t<data',
        'name="y0" type="Mine" version="extension">\n\t\t\t<data offset="8" size="16"',
    )
    assert 'type="Mine"' in text
    model = ir.loads(text, pair.with_suffix(".bin").read_bytes())
    model.layer("w0").value = np.zeros((2, 1), np.float32)
    assert ir.dumps(model)[1].startswith(pair.with_suffix(".bin").read_bytes())
    with pytest.raises(UnsupportedError, match='its offset="8" and size="16" may point'):
        ir.dumps(model, repack=True)


# Any edits, one after the other.


@settings(max_examples=60, deadline=None)
@given(documents(), st.data())
def test_any_edits_come_back(document: tuple[str, bytes], data: st.DataObject) -> None:
    model = ir.loads(*document)
    for _ in range(data.draw(st.integers(1, 6))):
        layers = list(model.everywhere())
        layer = data.draw(st.sampled_from(layers)) if layers else None
        edit(model, layer, data)
        if data.draw(st.booleans()):
            before = said(model)
            model = ir.loads(*ir.dumps(model))
            assert said(model) == before
    expected = said(model)
    for options in ({}, {"repack": True}, {"keep_unused": True}):
        xml, weights = ir.dumps(model, **options)
        again = ir.loads(xml, weights)
        assert said(again) == expected, options
        assert ir.dumps(again) == (xml, weights)
        if options.get("repack"):
            assert len(weights) == used(again)


def edit(model: ir.Model, layer: ir.Layer | None, data: st.DataObject) -> None:
    """One edit, of any kind."""
    kind = data.draw(st.sampled_from(["add", "add constant", "remove", "value", "name", "prune"]))
    if kind == "add" or layer is None or layer.graph is None:
        model.add(ir.Layer("Odd", "extension", "odd"), data.draw(st.integers(0, len(model))))
    elif kind == "add constant":
        added = ir.Layer("Const", "opset1", "c")
        added.set_value(np.arange(data.draw(st.integers(0, 3)), dtype=np.int16))
        layer.graph.add(added)
    elif kind == "remove":
        layer.graph.remove(layer)
    elif kind == "value" and layer.is_constant:
        layer.value = np.full(data.draw(st.integers(0, 4)), 7, data.draw(st.sampled_from("bhi")))
    elif kind == "prune":
        model.prune()
    else:
        layer.name = data.draw(st.text("abc", max_size=3))


def said(model: ir.Model) -> list[object]:
    """All that a model says, but for where bytes are."""
    rows: list[object] = [model.name, *model.edges]
    for layer in model.everywhere():
        moving = ("offset", "size", "value") if layer.is_constant else ()
        rows.append((
            layer.id, layer.name, layer.type, layer.version, layer.inputs, layer.outputs,
            layer.rt_info, {k: v for k, v in layer.data.items() if k not in moving},
            np.asarray(layer.value).tolist() if layer.is_constant else None,
            {tag: list(body.edges) for tag, body in layer.bodies.items()},
        ))  # fmt: skip
    return rows


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_openvino_reads_any_edits(data: st.DataObject) -> None:
    ov = pytest.importorskip("openvino")
    model = ir.loads(*ir.dumps(chain(1, 2, 3, size=5)))
    for number in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(["insert", "value", "remove", "rename", "read again"]))
        adds = [layer for layer in model if layer.type == "Add"]
        layer = data.draw(st.sampled_from(adds)) if adds else None
        if layer is None:
            break
        weight = model.producer(layer, 1)
        assert weight is not None
        if kind == "insert":
            port = ir.Port(0, "FP32", layer.outputs[0].dims)
            after = model.add(ir.Layer("ReLU", "opset1", f"relu{number}", outputs=[port]))
            model.connect(layer, after)
            model.replace_output((layer, 0), (after, 0))
        elif kind == "value":
            shape = weight[0].sizes
            weight[0].value = data.draw(st.sampled_from([
                np.zeros(shape, np.float32), np.full(shape, number, np.float32),
            ]))  # fmt: skip
        elif kind == "remove":
            results = [user for user, _ in model.consumers(layer) if user.type == "Result"]
            if results and len(model.results) > 1:
                model.remove(*results)
                model.prune()
        elif kind == "rename":
            layer.name = f"name{number}"
        else:
            model = ir.loads(*ir.dumps(model))
    feed = {"x": np.array([-2], np.float32)}
    expected = [np.asarray(array) for array in ir.run(model, feed).values()]
    for repack in (False, True):
        xml, weights = ir.dumps(model, repack=repack)
        blob = np.frombuffer(weights, np.uint8) if weights else np.zeros(1, np.uint8)
        run = ov.Core().compile_model(ov.Core().read_model(xml, ov.Tensor(blob)), "CPU")
        for found, array in zip(run([feed["x"]]).values(), expected, strict=True):
            np.testing.assert_array_equal(found, array)


def test_what_is_declared_is_not_forgotten_for_want_of_a_bin(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 6))
    wanted = net.constant(np.array([3, 4]), name="wanted")
    net.result(net.add("Reshape", "opset1", [x, wanted], name="turned", special_zero=False))
    ir.write(net.model(), tmp_path / "m.xml")
    (tmp_path / "m.bin").unlink()
    before = (tmp_path / "m.xml").read_bytes()
    with pytest.raises(IRError, match=r"turned.* declares \[3, 4\].* no \.bin"):
        ir.reshape(ir.read(tmp_path / "m.xml"))
    result = vinoir("infer", tmp_path / "m.xml", "--in-place")
    assert result.exit_code == 1
    assert (tmp_path / "m.xml").read_bytes() == before
    assert not (tmp_path / "m.bin").exists()


def test_comments_in_metadata_stay_where_a_key_changes() -> None:
    xml = (
        '<?xml version="1.0"?>\n<net name="m" version="11">\n\t<layers />\n\t<edges />\n'
        "\t<rt_info><!-- first -->\n"
        '\t\t<a value="1" /><!-- of a -->\n'
        "\t\t<b><!-- in b -->\n"
        '\t\t\t<info name="c d"   value="2"/>\n'
        '\t\t\t<e value="3" />\n'
        "\t\t</b>\n"
        "\t\t<f>text<!-- in f --></f>\n"
        "\t</rt_info>\n</net>\n"
    )
    model = ir.loads(xml)
    info = model.rt_info
    assert info is not None
    info.set("a", "10")
    assert ir.dumps(model)[0].decode() == xml.replace('<a value="1" />', '<a value="10" />')
    info.set("a", "1")
    assert ir.dumps(model)[0].decode() == xml
    info.set("new", "4")
    inner = info.find("b")
    assert inner is not None
    inner.remove("e")
    written = ir.dumps(model)[0].decode()
    for comment in ("first", "of a", "in b", "in f"):
        assert f"<!-- {comment} -->" in written
    assert ir.loads(written).rt_info == info
    child = info.find("f")
    assert child is not None
    child.text = "\x01"
    with pytest.raises(ir.IRError, match="XML has no such"):
        ir.dumps(model)
