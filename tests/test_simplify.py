"""Simplification: every rule where it applies and where it must not, and what holds for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplify_movements
import simplify_patterns
from networks import Drawer
from simplify_patterns import Net, network, row_of_patterns, sizes_on_two_ways
from vinoir import ir
from vinoir.ir.surgery.simplifying import RULES
from vinoir.ir.surgery.simplifying.certificate import Judge, measured
from vinoir.schemas import ElementType, MismatchError, UsageError

APPLIES = [*simplify_patterns.APPLIES, *simplify_movements.APPLIES]
STAYS = [*simplify_patterns.STAYS, *simplify_movements.STAYS]
EXACT = {rule.name for rule in RULES if rule.exact}


def kinds(model: ir.Graph) -> list[str]:
    """The types of the layers that compute."""
    ends = ("Const", "Parameter", "Result")
    return sorted(layer.type for layer in model.everywhere() if layer.type not in ends)


def feeds(model: ir.Model, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {p.name: [s if isinstance(s, int) else 3 for s in ir.infer(model).of(p)[0].shape]
              for p in model.parameters}  # fmt: skip
    return {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}


def by_openvino(model: ir.Model, fed: dict[str, Any]) -> dict[str, Any]:
    """What OpenVINO gives for a model, by the sorted names of each output."""
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    xml, weights = ir.dumps(model)
    held = openvino.Tensor(np.frombuffer(weights or b"\0", np.uint8).copy())
    found = core.compile_model(core.read_model(xml, held), "CPU")(fed)
    return {" ".join(sorted(port.get_names())): array for port, array in found.items()}


def alike(model: ir.Model, new: ir.Model, *, exact: bool = False, asked: bool = True) -> None:
    """Refuse what gives other numbers under other names, by our own run and by OpenVINO's."""
    fed = feeds(model)
    pairs = [(dict(ir.run(one, fed)) for one in (model, new))]
    if asked:
        pairs.append(by_openvino(one, fed) for one in (model, new))
    for before, after in pairs:
        assert list(before) == list(after)
        for name, array in before.items():
            if exact:
                np.testing.assert_array_equal(array, after[name])
            else:
                largest = max(1.0, float(np.abs(array).max(initial=0.0)))
                np.testing.assert_allclose(array, after[name], rtol=1e-5, atol=1e-5 * largest)


def size(model: ir.Model) -> int:
    return sum(map(len, ir.dumps(model)))


@pytest.mark.parametrize(
    "row", APPLIES, ids=[f"{row[0]}-{number}" for number, row in enumerate(APPLIES)]
)
def test_rule_applies(row: Any) -> None:
    rule, shape, build, left = row
    model = network(shape, build)
    new, done = ir.simplify(model, certify=1)
    assert done.rules.get(rule), done.rules
    assert kinds(new) == left.split()
    assert ir.check(new).ok, list(ir.check(new))
    assert size(new) <= size(model)
    alike(model, new, exact=set(done.rules) <= EXACT)
    assert done.certificate is not None
    assert done.certificate.runs == 1


@pytest.mark.parametrize("row", STAYS, ids=[f"{row[0]}-{n}" for n, row in enumerate(STAYS)])
def test_rule_stays_away(row: Any) -> None:
    rule, shape, build = row
    model = network(shape, build)
    new, done = ir.simplify(model)
    assert rule not in done.rules
    alike(model, new)


@pytest.mark.parametrize(
    "row", APPLIES, ids=[f"{row[0]}-{number}" for number, row in enumerate(APPLIES)]
)
def test_patterns_of_known_values_and_of_fewer(row: Any) -> None:
    """Each axis of size one in turn, so that constants widen it; the input's values are known."""
    _, shape, build, _ = row
    sizes = [3 if size == "?" else int(size) for size in shape.split(",")]
    tried = 0
    for short in (None, *range(len(sizes))):
        narrow = [1 if axis == short else size for axis, size in enumerate(sizes)]
        net = ir.Builder("known")
        n = simplify_patterns.Net(net)
        given = net.parameter("x", "f32", "1..4")
        nothing = n("Multiply", n("ShapeOf", given, opset=3, output_type="i64"), [0])
        x = n("Add", n.numbers(*narrow), n("Convert", nothing, destination_type="f32"))
        try:
            net.result(build(n, x).named("inner"), name="y")
            model = net.model()
            ir.run(model, {"x": np.zeros(2, np.float32)})
        except ir.IRError:
            continue  # the pattern is of other sizes
        new, _ = ir.simplify(model)
        alike(model, new, asked=False)
        tried += 1
    assert tried


def test_every_rule_has_a_pattern() -> None:
    assert {row[0] for row in APPLIES} == {rule.name for rule in RULES}


def test_every_rule_is_off_where_it_is_skipped() -> None:
    for rule, shape, build, _ in APPLIES:
        model = network(shape, build)
        _, done = ir.simplify(model, skip=[rule])
        assert rule not in done.rules
        _, done = ir.simplify(model, only=[rule])
        assert set(done.rules) <= {rule}


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    model = Drawer(seed).model(layers=10)
    new, done = ir.simplify(model, certify=1, seed=seed)
    assert done.layers_after == len(new) <= len(model) == done.layers_before
    assert size(new) <= size(model)
    alike(model, new, asked=seed % 3 == 0)
    again, more = ir.simplify(new)
    assert more.rules == {}
    assert ir.dumps(again) == ir.dumps(new)


@pytest.mark.parametrize("seed", range(12))
def test_random_rows_of_patterns(seed: int) -> None:
    model = row_of_patterns(seed)
    new, done = ir.simplify(model)
    assert sum(done.rules.values()) > 0
    assert ir.check(new).ok
    assert size(new) <= size(model)
    alike(model, new, asked=seed % 2 == 0)


def test_nothing_to_do_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    model = network("2,4", lambda n, x: n("Exp", x))
    ir.write(model, tmp_path / "m.xml")
    read = ir.read(tmp_path / "m.xml")
    new, done = ir.simplify(read)
    assert done.rules == {}
    assert done.layers_before == done.layers_after
    assert ir.dumps(new) == ir.dumps(read)


def test_the_model_given_is_not_changed(tmp_path: Path) -> None:
    model = network(*APPLIES[-1][1:3])
    before = ir.dumps(model)
    ir.simplify(model, certify=1)
    assert ir.dumps(model) == before


def test_shapes_given_are_folded() -> None:
    model = network("?,4", sizes_on_two_ways)
    assert "ShapeOf" in kinds(ir.simplify(model)[0])
    new, _ = ir.simplify(model, {"x": "3,4"})
    assert "ShapeOf" not in kinds(new)
    assert ir.infer(new)["y"].shape.static == (9, 4)


def test_names_of_inputs_and_outputs_stay() -> None:
    net = ir.Builder("ends")
    n = Net(net)
    x = net.parameter("x", "f32", "2,3")
    net.result(n("Transpose", x, [0, 1]).named("through"), name="a")
    y = n("Exp", x).named("made")
    net.result(y, name="b")
    net.result(n("Add", y, 0.0).named("same"), name="c")
    net.result(n("Exp", x).named("twin"), name="d")
    net.result(n("Sin", n("Add", n("Cos", x).named("kept"), 0.0).named("lives on")), name="e")
    model = net.model()
    new, _ = ir.simplify(model)
    assert list(ir.run(new, feeds(new))) == list(ir.run(model, feeds(model)))
    for one, other in zip(model.results, new.results, strict=True):
        assert one.output_names == other.output_names
        ports = [g.producer(r, 0)[0].outputs[0].names for g, r in ((model, one), (new, other))]
        assert ports[0] == ports[1]
    assert new.output("lives on") == new.output("kept")
    alike(model, new)


def test_an_output_without_names_gets_none() -> None:
    net = ir.Builder("ends")
    n = Net(net)
    inside = n("Tan", net.parameter("x", "f32", "2,3")).named("inside")
    net.result(n("Add", inside, 0.0), name="y", names=())
    model = net.model()
    new, done = ir.simplify(model, certify=1)
    assert done.rules == {"neutral-elements": 1}
    assert list(ir.run(new, feeds(new))) == list(ir.run(model, feeds(model)))


@pytest.mark.parametrize(
    ("room", "left"),
    [
        (0, "Add Add Concat Cos Multiply Multiply Sin"),
        (160_000, "Add Add Concat Multiply Multiply Sin"),
        (300_000, "Add Add Multiply Multiply"),
    ],
)
def test_what_room_is_left_is_taken_by_what_constants_come_to(room: int, left: str) -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        half = n.numbers(64, 300)
        both = n("Concat", half, half, axis=1)
        turned = n("Add", n("Multiply", x, n("Cos", both)), n("Multiply", x, n("Sin", both)))
        # A constant that goes makes the room.
        kept = n("Gather", n.numbers(1 + room // 2400, 600), [0], 0, opset=8)
        return n("Add", turned, kept)

    model = network("64,600", build)
    new, _ = ir.simplify(model, certify=1)
    assert kinds(new) == left.split()
    assert size(new) <= size(model)
    alike(model, new)


def test_bodies_are_simplified() -> None:
    net = ir.Builder("loop")
    x = net.parameter("x", "f32", "5,2,4")
    body = ir.Graph()
    inner = ir.Builder(into=body)
    n = Net(inner)
    part = inner.parameter("part", "f32", "1,2,4")
    out = inner.result(n("Multiply", part, n("Sigmoid", n("Add", part, 0.0))), name="out")
    layer = ir.Layer("TensorIterator", "opset1", "loop")
    wiring = ir.PortMap()
    numbers = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
    wiring.add("input", external_port_id=0, internal_layer_id=part.layer.id, **numbers)
    wiring.add("output", external_port_id=1, internal_layer_id=out.id, **numbers)
    layer.add_body("body", body, wiring)
    layer.inputs = [ir.Port.of(0, x.tensor)]
    layer.outputs = [ir.Port.of(1, x.tensor)]
    net.graph.add(layer)
    net.graph.connect(x.layer, layer, 0)
    net.result(ir.Output(layer, 0, [x.tensor]), name="y")
    model = net.model()
    new, done = ir.simplify(model)
    assert kinds(new) == ["Swish", "TensorIterator"]
    assert done.rules["swish"] == 1
    alike(model, new)


def test_random_layers_are_not_shared_or_folded() -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        draws = [n("RandomUniform", [2, 3], 0.0, 1.0, opset=8, output_type="f32", global_seed=0,
                   op_seed=0) for _ in range(2)]  # fmt: skip
        return n("Add", x, n("Add", *draws))

    new, _ = ir.simplify(network("2,3", build))
    assert kinds(new).count("RandomUniform") == 2


def test_compressed_weights_stay_compressed() -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        weights = n.net.constant(np.ones((16, 16), np.float16))
        return n.matmul(x, n("Convert", weights, destination_type="f32"))

    model = network("2,16", build)
    new, _ = ir.simplify(model)
    assert kinds(new) == ["Convert", "MatMul"]

    def eights(n: Net, x: ir.Output) -> ir.Output:
        weights = n("Convert", n.net.constant(np.ones(4, np.int8)), destination_type="f32")
        return n("Add", x, n("Multiply", weights, 0.5))

    assert kinds(ir.simplify(network("2,4", eights))[0]) == ["Add", "Convert", "Multiply"]


def test_a_table_of_levels_stays_one_though_others_leave_room() -> None:
    rng = np.random.default_rng(0)

    def build(n: Net, x: ir.Output) -> ir.Output:
        for _ in range(4):
            x = n.matmul(x, n("Add", *(n.numbers(64, 64) for _ in range(2))))
        table = n.net.constant(rng.standard_normal(8).astype("f2"))
        places = n.net.constant(rng.integers(0, 8, (64, 64)), "u4")
        levels = n("Gather", table, n("Convert", places, destination_type="u8"), 0, opset=8)
        scaled = n("Multiply", levels, n.net.constant(rng.standard_normal((64, 1)).astype("f2")))
        return n.matmul(x, n("Convert", scaled, destination_type="f32"))

    model = network("2,64", build)
    new, _ = ir.simplify(model)
    assert {"Gather", "Multiply"} <= set(kinds(new))
    given = rng.standard_normal((2, 64)).astype("f4")
    np.testing.assert_array_equal(*(next(iter(ir.run(m, [given]).values())) for m in (model, new)))


@pytest.mark.parametrize("number", [0.1, 0.5])
def test_half_precision_is_folded_where_it_holds_what_comes_out(number: float) -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        one, other = (n.net.constant(np.full(4, number, "f2") + np.arange(4, dtype="f2"))
                      for _ in range(2))  # fmt: skip
        return n("Add", x, n("Convert", n("Multiply", one, other), destination_type="f32"))

    model = network("4", build)
    new, _ = ir.simplify(model)
    assert ("Multiply" in kinds(new)) is (number == 0.1)
    given = np.zeros(4, "f4")
    np.testing.assert_array_equal(*(next(iter(ir.run(m, [given]).values())) for m in (model, new)))


def test_repeated_constants_of_a_file_are_kept_once(tmp_path: Path) -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        same = np.arange(1000, dtype="f4")
        return n("Add", n("Multiply", x, same), n("Power", x, same))

    model = network("1000", build)
    new, done = ir.simplify(model)
    assert done.rules == {"share-constants": 1}
    assert len(new.constants) == 1


def test_a_model_without_its_bin_is_refused() -> None:
    model = network("2,4", lambda n, x: n("Add", x, n.numbers(4)))
    xml, _ = ir.dumps(model)
    with pytest.raises(ir.IRError, match=r"there is no \.bin"):
        ir.simplify(ir.loads(xml))


def test_an_id_given_twice_is_refused() -> None:
    model = network("2,4", lambda n, x: n("ReLU", n("Exp", x)))
    xml, weights = ir.dumps(model)
    start = xml.index(b"<layer", xml.index(b'type="Exp"') - 60)
    layer = xml[start : xml.index(b"</layer>", start) + 8]
    twice = ir.loads(xml.replace(layer, layer + layer), weights)
    with pytest.raises(ir.IRError, match="is also that of"):
        ir.simplify(twice)


def test_what_constants_alone_say_is_certified_too() -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        # As large as it is, it is not folded, but the two become one.
        masks = [n("Cos", n("Broadcast", n.numbers(1), n.value([80, 90]), opset=3, mode="numpy"))
                 for _ in range(2)]  # fmt: skip
        masks = [n("Add", mask, n("Broadcast", 1.0, n.value([80, 90]), opset=3, mode="numpy"))
                 for mask in (masks[0], masks[0])]  # fmt: skip
        return n("Multiply", n("Add", x, masks[0]), n("Sin", masks[1]))

    _, done = ir.simplify(network("80,90", build), certify=1)
    assert done.rules["share-expressions"] >= 1
    assert done.certificate is not None


def test_a_wrong_rule_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from vinoir.ir.surgery.simplifying import simplifier
    from vinoir.ir.surgery.simplifying.rewriter import Rule

    def wrong(net: Any, layer: ir.Layer) -> bool:
        new = net.add("Cos", "opset1", net.inputs(layer), like=layer)
        return bool(net.replace((layer, 0), new))

    monkeypatch.setattr(simplifier, "RULES", (Rule("wrong", ("Sin",), wrong),))
    model = network("2,3", lambda n, x: n("Exp", n("Sin", x)))
    with pytest.raises(MismatchError, match="differs by"):
        ir.simplify(model, certify=1)


def quantized(n: Net, x: ir.Output) -> ir.Output:
    """Numbers of which many stand between two levels, as well as 32 bits can tell."""
    far = n("Multiply", n("Sin", x), 98765.4)
    return n("FakeQuantize", far, -1e5, 1e5, -1e5, 1e5, levels=100001)


@pytest.mark.parametrize(("factor", "is_rounding"), [(1.0, True), (1.001, False)])
def test_ties_of_rounding_are_told_from_wrong_rules(
    factor: float, is_rounding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vinoir.ir.surgery.simplifying import simplifier
    from vinoir.ir.surgery.simplifying.rewriter import Rule

    def divided(net: Any, layer: ir.Layer) -> bool:
        value, other = net.inputs(layer)
        fixed = net.constant(factor / net.known(other), net.kind(other), layer)
        new = net.add("Divide", "opset1", [value, fixed], like=layer)
        return bool(net.replace((layer, 0), new))

    model = network("300,200", quantized)
    monkeypatch.setattr(simplifier, "RULES", (Rule("divided", ("Multiply",), divided),))
    monkeypatch.setattr(Judge, "__call__", lambda *_: None)
    if not is_rounding:
        with pytest.raises(MismatchError, match="differs by") as caught:
            ir.simplify(model, certify=1)
        assert caught.value.hint is not None
        assert "more than rounding" in caught.value.hint
        return
    _, done = ir.simplify(model, certify=1)
    assert done.certificate is not None
    assert 1e-5 < done.certificate.ties < 1e-4
    assert done.certificate.difference == 0.0


def test_a_rule_that_gives_up_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from vinoir.ir.surgery.simplifying import simplifier
    from vinoir.ir.surgery.simplifying.rewriter import Rule

    def half(net: Any, layer: ir.Layer) -> bool:
        net.add("Cos", "opset1", net.inputs(layer), like=layer)
        return False

    def endless(net: Any, layer: ir.Layer) -> bool:
        return bool(net.replace((layer, 0), net.copy(layer, net.inputs(layer))))

    model = network("2,3", lambda n, x: n("Exp", n("Sin", x)))
    monkeypatch.setattr(simplifier, "RULES", (Rule("half", ("Sin",), half),))
    assert ir.dumps(ir.simplify(model)[0]) == ir.dumps(model)
    monkeypatch.setattr(simplifier, "RULES", (Rule("endless", ("Sin",), endless),))
    with pytest.raises(AssertionError, match="finds no end"):
        ir.simplify(model)


def test_a_rule_that_is_not_there_is_named() -> None:
    model = network("2,3", lambda n, x: n("Exp", x))
    with pytest.raises(UsageError, match='no rule is named "gelo"') as caught:
        ir.simplify(model, only=["gelo"])
    assert caught.value.hint == "did you mean gelu?"


def test_verb(tmp_path: Path) -> None:
    from click.testing import CliRunner
    from vinoir.ir.cli import cli

    model = network(*APPLIES[2][1:3])
    source, target = str(tmp_path / "m.xml"), tmp_path / "new.xml"
    ir.write(model, source)
    run = CliRunner().invoke
    found = run(cli, ["simplify", source, "--dry-run", "--json"], catch_exceptions=False)
    said = json.loads(found.stdout)
    assert said["layers"]["before"] == len(model)
    assert said["rules"]["fold-constants"] >= 1
    assert not target.exists()
    words = ["simplify", source, "-o", str(target), "--certify", "2", "--input", "x=3,4,6,6"]
    found = run(cli, words, catch_exceptions=False)
    assert found.exit_code == 0
    assert "certified: 2 runs" in found.stderr
    new = ir.read(target)
    assert kinds(new) == ["Exp", "Reshape"]
    assert ir.infer(new)["y"].shape.static == (3, 144)
    with pytest.raises(UsageError, match="is already there"):
        run(cli, ["simplify", source, "-o", str(target)], catch_exceptions=False)
    with pytest.raises(UsageError, match="nothing to write to"):
        run(cli, ["simplify", source], catch_exceptions=False)


def test_files_that_openvino_wrote(written: Any) -> None:
    """Each operation of each version, before and after: the same numbers, and no larger."""
    for path in written.all()[::7]:
        model = ir.read(path)
        new, done = ir.simplify(model)
        if done.rules:
            assert size(new) <= size(model), path
        assert [r.output_names for r in new.results] == [r.output_names for r in model.results]
        assert [p.name for p in new.parameters] == [p.name for p in model.parameters]


def test_import_simplifies(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from click.testing import CliRunner
    from vinoir.ir.cli import cli

    nodes = [
        onnx.helper.make_node("Shape", ["x"], ["sizes"]),
        onnx.helper.make_node("Gather", ["sizes", "zero"], ["first"]),
        onnx.helper.make_node("Concat", ["first", "rest"], ["pattern"], axis=0),
        onnx.helper.make_node("Reshape", ["x", "pattern"], ["flat"]),
        onnx.helper.make_node("Sigmoid", ["flat"], ["gate"]),
        onnx.helper.make_node("Mul", ["flat", "gate"], ["y"]),
    ]
    held = [
        onnx.numpy_helper.from_array(np.array(numbers), name)
        for name, numbers in (("zero", [0]), ("rest", [12]))
    ]
    info = onnx.helper.make_tensor_value_info
    ends = [info("x", 1, ["n", 3, 4])], [info("y", 1, ["n", 12])]
    graph = onnx.helper.make_graph(nodes, "g", *ends, held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    assert kinds(ir.from_onnx(model)) == ["Reshape", "Swish"]
    whole = ir.from_onnx(model, simplify=False)
    assert len(kinds(whole)) == 6
    alike(whole, ir.from_onnx(model), asked=False)
    onnx.save(model, tmp_path / "m.onnx")
    for words, count in (([], 2), (["--no-simplify"], 6)):
        target = str(tmp_path / f"{count}.xml")
        CliRunner().invoke(
            cli, ["import", str(tmp_path / "m.onnx"), "-o", target, *words], catch_exceptions=False
        )
        assert len(kinds(ir.read(target))) == count


def test_bytes_that_are_alike_in_samples_are_told_apart() -> None:
    rows = np.zeros((4, 5000), np.float32)
    rows[1, 777] = rows[3, 777] = 1.0

    def build(n: Net, x: ir.Output) -> ir.Output:
        for row in rows:
            x = n("Sin", n("Add", x, n.net.constant(row)))
        return x

    model = network("5000", build)
    assert len(ir.dumps(model)[1]) == 2 * rows[0].nbytes
    new, done = ir.simplify(model, only=["share-constants"])
    assert done.rules == {"share-constants": 2}
    assert len(new.constants) == 2
    alike(model, new, exact=True)
    assert len(ir.dumps(new)[1]) == 2 * rows[0].nbytes


def activation(kind: str, number: float, n: Net, x: ir.Output, by: str = "Multiply") -> ir.Output:
    """An activation with a number that makes it this one, if it is near enough."""
    if kind == "HSwish":
        six = n("Clamp", n("Add", x, 3.0), min=0.0, max=6.0)
        return n(by, n("Multiply", x, six), number)
    erf = n("Erf", n(by, x, number))
    return n("Multiply", n("Multiply", x, n("Add", erf, 1.0)), 0.5)


@pytest.mark.parametrize("held", ["f4", "f2", "bf16"])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("kind", "number"), [("HSwish", 1 / 6), ("Gelu", np.sqrt(0.5))])
@pytest.mark.parametrize("by", ["Multiply", "Divide"])
def test_numbers_of_activations_may_be_rounded(
    kind: str, number: float, held: str, given: bool, by: str
) -> None:
    dtype = ElementType.BF16.dtype if held == "bf16" else np.dtype(held)
    rounded = np.array(number if by == "Multiply" else 1 / number).astype(dtype)

    def build(n: Net, x: ir.Output) -> Any:
        if not given:
            return activation(kind, float(rounded), n, x, by)
        kept = n.net.constant(rounded)
        kept = n("Convert", kept, destination_type="f32") if held != "f4" else kept
        return activation(kind, kept, n, x, by)  # type: ignore[arg-type]  # a tensor of it

    assert kinds(ir.simplify(network("2,4,6,6", build))[0]) == [kind]


@pytest.mark.parametrize(
    ("kind", "number"), [("HSwish", 0.1669), ("Gelu", 1 / 1.412), ("Gelu", 0.708)]
)
def test_other_numbers_than_those_of_activations_stay(kind: str, number: float) -> None:
    model = network("2,4,6,6", lambda n, x: activation(kind, number, n, x))
    new, _ = ir.simplify(model)
    assert kind not in kinds(new)
    alike(model, new)


def test_what_is_infinite_or_far_apart_is_measured_without_warnings() -> None:
    one, other = np.array([np.inf, np.nan, 1, 1e308]), np.array([np.inf, np.nan, 2, -1e308])
    with np.errstate(all="raise"):
        assert measured(one[:3], other[:3]) == (1, 1, True)
        assert measured(one, other) == (np.inf, 1e308, True)
        assert measured(one[:1], -one[:1]) == (0, 0, False)
