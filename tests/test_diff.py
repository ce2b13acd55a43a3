"""Models compared: single edits are found where they are, rearrangements are none."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Written
from model_edits import Edit, Pair, edits, ends_exchanged, turns_exchanged
from model_moves import rearrange
from networks import Drawer
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.schemas import Tensor

#: Files of which each gets every kind of edit.
FILES = 40
#: Edits that the .xml does not show.
IN_THE_BIN = ("weight", "no_number", "less_than_nothing")


def chosen(written: Written, seed: int) -> list[Path]:
    files = written.all()
    return random.Random(seed).sample(files, min(FILES, len(files)))


def misses(found: ir.Differences, wanted: Edit) -> str | None:
    """Why differences are not those of one edit."""
    own = [one for one in found if not one.follows]
    places = {
        (place.body, place.id) for one in own for place in (one.one, one.two) if place is not None
    }
    if not any(one.kind in wanted.kinds for one in own):
        return f"no {wanted}"
    wrong = places - {(wanted.body, number) for number in wanted.layers}
    return f"{wanted}: also at {wrong}" if wrong else None


def test_single_edits_are_found(written: Written, tmp_path: Path) -> None:
    rng = random.Random(5)
    wrong, count = [], 0
    for path in chosen(written, 1):
        for name, pair, wanted in edits(path, rng):
            found = ir.diff(path, pair.save(tmp_path / "edited.xml"))
            missed = misses(found, wanted)
            count += 1
            if missed:
                wrong.append(f"{name} of {path.name}: {missed}\n{found}")
    assert count > 100
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:8])


def test_rearrangements_are_no_difference(written: Written, tmp_path: Path) -> None:
    rng = random.Random(6)
    for path in chosen(written, 2):
        pair = Pair.of(path)
        rearrange(pair, rng)
        found = ir.diff(path, pair.save(tmp_path / "moved.xml"))
        assert not found, f"{path.name}: {found}"
        assert any(note.kind == "name" for note in found.notes)


@pytest.mark.parametrize("seed", range(20))
def test_edits_are_found_in_rearranged_networks(seed: int, tmp_path: Path) -> None:
    model = Drawer(seed).model()
    ir.write(model, tmp_path / "one.xml")
    rng = random.Random(seed)
    for _, pair, wanted in edits(tmp_path / "one.xml", rng):
        moved = rearrange(pair, rng)
        found = ir.diff(tmp_path / "one.xml", pair.save(tmp_path / "two.xml"))
        own = [one for one in found if not one.follows]
        assert any(one.kind in wanted.kinds for one in own), f"{wanted}: {found}"
        new = {
            moved[wanted.body, number]
            for number in wanted.layers
            if (wanted.body, number) in moved
        }
        for one in own:
            at_one = one.one is not None and one.one.id in wanted.layers
            at_two = one.two is not None and one.two.id in new
            assert at_one or at_two, f"{wanted}: {found}"


def network(
    half: bool = False, *, strides: tuple[int, int] = (1, 1), scale: float = 1.0
) -> ir.Model:
    """A convolution and what follows, its weights in f32, or in f16 behind a Convert."""
    net = ir.Builder("net")
    rng = np.random.default_rng(0)
    x = net.parameter("x", "f32", "1,3,8,8")
    for number in range(3):
        weights = (scale * rng.standard_normal((3, 3, 1, 1))).astype("f4")
        w = net.constant(weights.astype("f2") if half else weights, name=f"w{number}")
        if half:
            w = net.add("Convert", "opset1", [w], destination_type="f32", name=f"w{number}/f32")
        x = net.add(
            "Convolution", "opset1", [x, w], name=f"conv{number}", strides=strides,
            pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1), auto_pad="explicit",
        )  # fmt: skip
        x = net.add("ReLU", "opset1", [x], name=f"relu{number}")
    net.result(x, name="y")
    return net.model()


def test_halves_are_paired_with_floats() -> None:
    found = ir.diff(network(), network(half=True))
    kinds = [one.kind for one in found if not one.follows]
    assert sorted(kinds) == ["constant"] * 3 + ["storage"] * 3
    assert {one.one.name for one in found if one.kind == "constant" and one.one} == {
        "w0",
        "w1",
        "w2",
    }
    apart = [one.distance for one in found if one.distance is not None]
    assert len(apart) == 3
    assert all(0 < one.relative < 1e-3 and one.bits is None for one in apart)


def test_a_parameter_that_is_fed_is_compared() -> None:
    sound = network()
    xml, weights = ir.dumps(sound)
    broken = ir.loads(re.sub(rb'(name="relu1" type=)"ReLU"', rb'\1"Parameter"', xml), weights)
    for found in (ir.diff(sound, broken), ir.diff(broken, sound)):
        assert "operation" in {one.kind for one in found} | {one.what for one in found}


def test_what_follows_from_a_difference_is_only_counted() -> None:
    found = ir.diff(network(), network(strides=(2, 2)))
    own = [one for one in found if not one.follows]
    assert [(one.kind, one.what, one.before, one.after) for one in own] == [
        ("attribute", "strides", "1, 1", "2, 2")
    ] * 3
    assert {one.kind for one in found if one.follows} == {"shape"}
    assert "more follow from these" in str(found)


def test_how_far_constants_are_apart_is_measured() -> None:
    one, two = network(), network()
    value = two.layer("w1").value.copy()
    value[2, 1] += 0.5
    two.layer("w1").set_value(value)
    (found,) = ir.diff(one, two)
    assert found.distance is not None
    assert (found.distance.differing, found.distance.elements) == (1, 9)
    assert found.distance.absolute == pytest.approx(0.5)
    wanted = float(
        np.square(value - one.layer("w1").value).sum() / np.square(one.layer("w1").value).sum()
    )
    assert found.distance.nmse == pytest.approx(wanted, rel=1e-4)
    assert found.distance.bits is not None


def test_versions_of_the_format_are_compared(tmp_path: Path) -> None:
    one, two = network(), network()
    two.version = 10
    (found,) = ir.diff(one, two)
    assert (found.what, found.before, found.after) == ("IR version", "11", "10")


def command(*words: Any) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_the_command_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(network(), tmp_path / "a.xml")
    ir.write(network(strides=(2, 2)), tmp_path / "b.xml")
    assert command("diff", tmp_path / "a.xml", tmp_path / "a.xml") == 0
    assert "no difference" in capsys.readouterr().out
    assert command("diff", tmp_path / "a.xml", tmp_path / "b.xml", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema_version"] == 1
    assert told["differences"][0]["what"] == "strides"
    assert command("diff", tmp_path / "a.xml", tmp_path / "b.xml", "-q") == 1
    assert capsys.readouterr().out == ""
    assert command("diff", tmp_path / "a.xml") == 2
    assert command("diff", tmp_path / "a.xml", tmp_path / "none.xml") == 3


def test_text_for_git_is_the_same_with_and_without_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(network(), tmp_path / "a.xml")
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    whole = capsys.readouterr().out
    (tmp_path / "a.bin").unlink()
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    assert capsys.readouterr().out == whole
    assert "conv0 = Convolution" in whole


def test_text_for_git_spells_types_and_shapes_as_every_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = ir.Builder("kinds")
    for number, (kind, shape) in enumerate([
        ("f32", "2,?"), ("bf16", "?"), ("boolean", ""), ("i64", "3"), ("u4", "2,2"),
    ]):  # fmt: skip
        x = net.parameter(f"x{number}", kind, shape)
        net.result(net.add("Convert", "opset1", [x], destination_type="f32"), name=f"y{number}")
    ir.write(net.model(), tmp_path / "a.xml")
    assert command("infer", tmp_path / "a.xml", "--json") == 0
    ports = json.loads(capsys.readouterr().out)["ports"]
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " = " in line]
    assert len(lines) == 15
    made = dict(line.rsplit(" -> ", 1) for line in lines if " -> " in line)
    assert [name.split(" = ")[0] for name in made] == [port["name"] for port in ports]
    assert list(made.values()) == [port["declared"] for port in ports]
    for line in lines:
        assert ("->" in line) is ("= Result" not in line)


@pytest.mark.parametrize(
    "text",
    [
        b"<project>\r\n  <module>a</module>\r\n</project>\n",
        b"version https://git-lfs.github.com/spec/v1\nsize 3",
        b'<net name="cut" version="11"><layers><layer id="0"',
        b'<net name="new" version="99"/>',
        b"\xff\x00",
        b"",
    ],
)
def test_git_is_given_what_is_no_ir_as_it_is(
    text: bytes, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "pom.xml").write_bytes(text)
    assert command("diff", "--textconv", tmp_path / "pom.xml") == 0
    assert capfdbinary.readouterr().out == text
    assert command("diff", "--textconv", tmp_path / "none.xml") == 3


def test_text_for_git_needs_no_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(network(), tmp_path / "a.xml")
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    whole = capsys.readouterr().out
    (tmp_path / "a.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    assert capsys.readouterr().out == whole
    (tmp_path / "a.bin").unlink()
    (tmp_path / "a.bin").mkdir()
    assert command("diff", "--textconv", tmp_path / "a.xml") == 0
    assert capsys.readouterr().out == whole


def test_text_for_git_tells_every_edit(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def text(path: Path) -> str:
        assert command("diff", "--textconv", path) == 0
        return capsys.readouterr().out

    rng = random.Random(9)
    for path in [
        *chosen(written, 3)[:8],
        written.first("Loop.5*"),
        written.first("TensorIterator.*"),
    ]:
        before = text(path)
        for name, pair, wanted in edits(path, rng):
            if name not in IN_THE_BIN:
                assert text(pair.save(tmp_path / "edited.xml")) != before, f"{name}: {wanted}"


def test_what_ends_of_a_body_are_is_said_at_the_loop(written: Written, tmp_path: Path) -> None:
    said = []
    for path in written.all():
        if b"<back_edges>" not in path.read_bytes():
            continue
        pair = Pair.of(path)
        wanted = ends_exchanged(pair, pair.graphs()[0], random.Random(0))
        if wanted is not None:
            found = ir.diff(path, pair.save(tmp_path / "edited.xml"))
            assert misses(found, wanted) is None, found
            said += [one.what for one in found]
    assert set(said) == {"body: port map"}


def loop() -> ir.Model:
    """A loop that hands two values from turn to turn."""
    net = ir.Builder("loop")
    ends = [net.parameter(name, "f32", "3") for name in "xy"]
    inner = ir.Builder("body", into=ir.Graph())
    one, two = (inner.parameter(name, "f32", "3") for name in ("one", "two"))
    for kind, name in (("Subtract", "less"), ("Add", "more")):
        inner.result(inner.add(kind, "opset1", [one, two]), name=name)
    body, wiring = inner.graph, ir.PortMap()
    for number, layer in enumerate((*body.parameters, *body.results)):
        kind = "input" if number < 2 else "output"
        wiring.add(kind, external_port_id=number, internal_layer_id=layer.id)
    made = net.add(
        "TensorIterator", "opset1", ends, outputs=[Tensor("f32", (3,))] * 2, name="loop"
    )
    (layer,) = {one.layer for one in made}
    layer.add_body("body", body, wiring)
    layer.back_edges = [
        ir.BackEdge(a.id, b.id) for a, b in zip(body.results, body.parameters, strict=True)
    ]
    net.result(made[0], name="left")
    return net.model()


@pytest.mark.parametrize("change", [ends_exchanged, turns_exchanged])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_exchanged_around_a_body_is_one_difference(
    tmp_path: Path, change: Callable[[Pair, Any, random.Random], Edit | None], seed: int
) -> None:
    ir.write(loop(), tmp_path / "one.xml")
    pair = Pair.of(tmp_path / "one.xml")
    wanted = change(pair, pair.graphs()[0], random.Random(seed))
    (found,) = ir.diff(tmp_path / "one.xml", pair.save(tmp_path / "two.xml"))
    assert wanted is not None
    assert (found.kind, found.one and found.one.name) == ("wiring", "loop")
    assert '"one"' in str(found)
    assert '"two"' in str(found)


def test_texts_of_a_constant_are_compared() -> None:
    def texts(*words: str) -> ir.Model:
        net = ir.Builder("texts")
        x = net.parameter("x", "i32", "1")
        held = net.constant(np.array(words, np.dtypes.StringDType()))
        net.result(net.add("Gather", "opset8", [held, x, net.constant(np.int64(0))]), name="y")
        return net.model()

    assert not ir.diff(texts("one", "two"), texts("one", "two"))
    (found,) = ir.diff(texts("one", "two"), texts("one", "tvo"))
    assert found.kind == "constant"
    assert found.distance is not None
    assert found.distance.differing == 1


def two_weights(path: Path) -> str:
    """A product with one weight, less another."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    rng = np.random.default_rng(0)
    one, two = (net.constant(rng.standard_normal((2, 3), "f4"), name=name) for name in "ab")
    y = net.add("Multiply", "opset1", [x, one], name="product")
    net.result(net.add("Subtract", "opset1", [y, two], name="less"), name="y")
    ir.write(net.model(), path)
    return path.read_text()


def test_without_weights_constants_are_told_by_their_places(tmp_path: Path) -> None:
    one, two = tmp_path / "one.xml", tmp_path / "two.xml"
    text = two_weights(one)
    turned = text.replace('offset="0"', 'offset=""').replace('offset="24"', 'offset="0"')
    two.write_text(turned.replace('offset=""', 'offset="24"'))
    two.with_suffix(".bin").write_bytes(one.with_suffix(".bin").read_bytes())
    assert ir.diff(one, two)
    for path in (one, two):
        path.with_suffix(".bin").unlink()
    assert ir.diff(one, two)
    assert not ir.diff(one, one)


def test_without_weights_a_constant_more_is_the_only_difference(tmp_path: Path) -> None:
    """It moves all those behind it, whose places are no difference then."""

    def made(*, more: bool) -> Path:
        net = ir.Builder("n")
        y = net.parameter("x", "f32", (2, 3))
        if more:
            y = net.add("Multiply", "opset1", [y, np.full((2, 3), 3, "f4")], name="more")
        for number in range(5):
            y = net.add("Add", "opset1", [y, np.full((2, 3), number, "f4")], name=f"a{number}")
        net.result(y, name="y")
        path = tmp_path / f"{more}.xml"
        ir.write(net.model(), path)
        path.with_suffix(".bin").unlink()
        return path

    found = ir.diff(made(more=False), made(more=True)).found
    assert [one.kind for one in found if not one.follows] == ["added", "added"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('type="Multiply"', 'type="Multiply" foo="bar"', "foo"),
        ("<edges>", '<stuff a="1"> <more/></stuff><edges>', "<stuff>"),
        ("<net ", '<net foo="1" ', "foo"),
        ("</input>", '</input><stuff a="1"/>', "<stuff>"),
    ],
)
def test_what_no_rule_knows_is_told(tmp_path: Path, old: str, new: str, key: str) -> None:
    path, other = tmp_path / "m.xml", tmp_path / "other.xml"
    text = two_weights(path)
    (tmp_path / "other.bin").write_bytes((tmp_path / "m.bin").read_bytes())
    assert old in text
    other.write_text(text.replace(old, new, 1))
    (found,) = ir.diff(path, other)
    assert (found.kind, found.what, found.before) == ("attribute", key, None)
    (found,) = ir.diff(other, path)
    assert (found.what, found.after) == (key, None)
    assert not ir.diff(other, other)


@pytest.mark.parametrize(
    ("old", "new", "kind", "what"),
    [
        ("<body>", '<body foo="1">', "attribute", "body: foo"),
        ("</body>", "<stuff/></body>", "attribute", "body: <stuff>"),
        ("<body>", '<body><rt_info><a value="1"/></rt_info>', "rt_info", "body: rt_info a"),
        ("<edges>", '<stuff a="1"/><edges>', "attribute", "body: <stuff>"),
    ],
)
def test_what_no_rule_knows_is_told_of_bodies_too(
    tmp_path: Path, written: Written, old: str, new: str, kind: str, what: str
) -> None:
    path, other = written.first("TensorIterator.*"), tmp_path / "other.xml"
    text = path.read_text("utf-8")
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    assert old in text
    other.write_text(text.replace(old, new, 1), "utf-8")
    (found,) = ir.diff(path, other)
    assert (found.kind, found.what, found.before) == (kind, what, None)
    assert found.one is not None
    assert (found.one.type, found.one.body) == ("TensorIterator", ())
    differences = ir.diff(other, path)
    assert [(one.what, one.after) for one in differences] == [(what, None)]
    (ends,) = differences.ends
    assert [layer and layer.type for layer in ends] == ["TensorIterator"] * 2
    assert not ir.diff(other, other)
