"""Who feeds whom, in which order, and what happens when it is changed."""

from __future__ import annotations

import contextlib
import copy
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Written
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.document import FreeNames
from vinoir.ir.document.graph import Layer
from vinoir.ir.document.layer_parts import PARTS
from vinoir.ir.files import patch
from vinoir.ir.files import printer as spelling
from vinoir.schemas import IRError, Tensor, UsageError

ANY = Tensor("f32", (1,))


def diamond() -> ir.Model:
    net = ir.Builder("diamond")
    x = net.parameter("x", "f32", "1")
    two = net.add("Two", "extension", [x], name="two", outputs=[ANY, ANY])
    left = net.add("Left", "extension", [two[1]], name="left", outputs=[ANY])
    both = net.add("Both", "extension", [left, two[0], two[0]], name="both", outputs=[ANY])
    net.result(both, name="out")
    return net.model()


def test_sources_and_consumers() -> None:
    model = diamond()
    x, two, left, both, out = model.layers
    assert model.sources(both) == [(left, 0), (two, 0), (two, 0)]
    assert model.producer(left, 0) == (two, 1)
    assert model.consumers(two, 0) == [(both, 1), (both, 2)]
    assert model.consumers(two) == [(left, 0), (both, 1), (both, 2)]
    assert model.consumers(out) == []
    assert (model.parameters, model.results) == ([x], [out])
    assert model.order() == [x, two, left, both, out]


def test_changes_keep_the_lists_right() -> None:
    model = diamond()
    x, two, left, both, _ = model.layers
    model.connect(x, both, 1)
    assert model.sources(both) == [(left, 0), (x, 0), (two, 0)]
    assert model.consumers(x) == [(two, 0), (both, 1)]
    model.disconnect(both, 2)
    assert model.producer(both, 2) is None
    model.replace_output((left, 0), (x, 0))
    assert model.consumers(left) == []
    assert left not in model.order()
    assert left in model.order(reachable_only=False)
    model.remove(two)
    assert model.sources(left) == [None]
    with pytest.raises(UsageError, match="not in this graph"):
        model.remove(two)


def test_an_input_more_keeps_the_ports_in_order() -> None:
    model = diamond()
    x, two, left, both, out = model.layers
    model.connect(x, left)
    assert [port.id for port in left.inputs + left.outputs] == [0, 1, 2]
    assert model.sources(left) == [(two, 1), (x, 0)]
    assert model.sources(both) == [(left, 0), (two, 0), (two, 0)]
    assert model.order()[-1] is out


@pytest.mark.parametrize(
    ("key", "name"), [("both", "both"), (2, "left"), ("2", "left"), ("out", "out"), ("x", "x")]
)
def test_look_up(key: str | int, name: str) -> None:
    assert diamond().layer(key).name == name


def test_look_up_by_tensor_name() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1", names=["tensor:0", "a,b"])
    net.result(x, name="out")
    model = ir.loads(*ir.dumps(net.model()))
    assert model.layer("tensor:0").name == "x"
    assert model.output("a,b") == (model.layer("x"), 0)


def test_look_up_in_vain() -> None:
    with pytest.raises(UsageError, match="did you mean both"):
        diamond().layer("bothh")
    with pytest.raises(UsageError, match="no layer has the id 77"):
        diamond().layer(77)
    with pytest.raises(UsageError, match="no tensor"):
        diamond().output("zzz")


def test_a_cycle_is_named() -> None:
    model = diamond()
    _, two, left, _both, _ = model.layers
    model.connect(left, two, 0)
    with pytest.raises(IRError, match=r'cycle: 2 "left" -> 1 "two"|cycle: 1 "two" -> 2 "left"'):
        model.order()


def test_ports_by_declaration_not_by_number() -> None:
    model = ir.loads(*ir.dumps(diamond()))
    both = model.layer("both")
    first, second, third = both.inputs
    both.inputs = [second, first, third]
    again = ir.loads(*ir.dumps(model))
    assert [port.id for port in again.layer("both").inputs] == [1, 0, 2]
    assert again.sources(again.layer("both"))[1] == (again.layer("left"), 0)


def test_an_edge_to_nowhere() -> None:
    text = ir.dumps(diamond())[0].decode()
    model = ir.loads(text.replace('from-layer="2"', 'from-layer="50"'))
    with pytest.raises(IRError, match="layer 50, which is not there"):
        model.order()
    model = ir.loads(text.replace('to-port="2"', 'to-port="9"'))
    with pytest.raises(IRError, match="an edge enters port 9"):
        model.sources(model.layer("both"))
    model = ir.loads(text.replace('to-layer="3" to-port="2"', 'to-layer="50" to-port="2"'))
    assert model.producer(model.layer("both"), 2) is None  # dropped, as OpenVINO does


def test_operations_are_known_where_layers_has_them() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,3,8,8")
    pool = net.add(
        "MaxPool", "opset8", [x], kernel=(2, 2), strides=(2, 2), pads_begin=(0, 0),
        pads_end=(0, 0),
    )  # fmt: skip
    model = ir.loads(*ir.dumps(_with_result(net, pool[1])))
    layer = model.layer("MaxPool")
    assert layer.op is not None
    assert layer.op.spec() == "MaxPool-8"
    assert layer.op is layer.op
    assert [port.tensor for port in layer.outputs] == [
        Tensor("f32", (1, 3, 4, 4)), Tensor("i64", (1, 3, 4, 4))
    ]  # fmt: skip
    layer.data["kernel"] = "2, x"
    with pytest.raises(IRError, match=r':\d+:4: layer 1 "MaxPool" \(MaxPool opset8\): .*x'):
        _ = layer.op
    assert diamond().layer("two").op is None


def _with_result(net: ir.Builder, output: ir.Output) -> ir.Model:
    net.result(output)
    return net.model()


def test_bodies(written: Written) -> None:
    model = ir.read(written.first("Loop.5.0"))
    loop = next(layer for layer in model.layers if layer.type == "Loop")
    body, wiring = loop.bodies["body"], loop.port_maps["body"]
    assert body.owner is loop
    assert [entry.purpose for entry in wiring.entries[-2:]] == [
        "current_iteration", "execution_condition"
    ]  # fmt: skip
    assert wiring.inputs[0].axis == 1
    assert wiring.inputs[1].axis is None
    assert {body.layer(edge.from_layer).type for edge in loop.back_edges} == {"Result"}
    assert {body.layer(edge.to_layer).type for edge in loop.back_edges} == {"Parameter"}
    assert len(list(model.everywhere())) == len(model) + len(body)
    body.layers[0].name = "inner"
    again = ir.loads(*ir.dumps(model))
    assert again.layer(loop.name).bodies["body"].layers[0].name == "inner"


def test_constants_in_memory() -> None:
    layer = Layer("Const", "opset1", "w")
    layer.set_value(np.array([-1.0, 1.0]), "nf4")
    assert layer.data == {"element_type": "nf4", "shape": "2"}
    layer.value = np.array([1.0, 0.0], np.float32)
    assert layer.data["element_type"] == "nf4"  # what holds it is float32 all the same
    layer.value = np.array([[1.0]])
    assert (layer.data["element_type"], layer.data["shape"]) == ("f64", "1, 1")
    with pytest.raises(UsageError, match="only Const"):
        Layer("Add", "opset1").value = np.zeros(1)


def test_a_hundred_thousand_layers_in_a_row() -> None:
    count = 100_000
    kinds = ["Parameter", *["ReLU"] * (count - 2), "Result"]
    layers = "".join(
        f'<layer id="{i}" name="l{i}" type="{kinds[i]}"'
        ' version="opset1"><input><port id="0"/></input><output><port id="1" precision="FP32"/>'
        "</output></layer>"
        for i in range(count)
    )
    edges = "".join(
        f'<edge from-layer="{i}" from-port="1" to-layer="{i + 1}" to-port="0"/>'
        for i in range(count - 1)
    )
    source = f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    start = time.perf_counter()
    model = ir.loads(source)
    order = model.order()
    assert time.perf_counter() - start < 20
    assert [layer.id for layer in order] == [0, *range(1, count - 1), count - 1]
    assert model.sources(order[-1]) == [(order[-2], 0)]


def test_names_are_found_after_every_change() -> None:
    model = diamond()
    two = model.layer("two")
    two.outputs[0].names = ("t",)
    assert (model.output("t"), model.layer("t")) == ((two, 0), two)
    two.name, two.outputs[0].names, two.outputs[1].names = "zwei", (), ("t",)
    assert (model.output("t"), model.layer("zwei")) == ((two, 1), two)
    with pytest.raises(UsageError, match='named "two"'):
        model.layer("two")
    # As in a file, the first of two layers of one name is meant.
    twin = Layer("Twin", "extension", "zwei")
    model.add(twin)
    assert model.layer("zwei") is two
    model.remove(two)
    assert model.layer("zwei") is twin
    with pytest.raises(UsageError, match='named "t"'):
        model.output("t")
    first = model.add(Layer("First", "extension", "zwei"), 0)
    assert model.layer("zwei") is first
    assert len({layer.id for layer in model}) == len(model)


def test_whether_a_name_is_there_costs_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    model = diamond()
    model["two"].outputs[0].names = ("t",)
    for again in (model, ir.loads(*ir.dumps(model))):  # whose ports nobody has read
        assert "t" in again
        index = again._tensor_names
        with monkeypatch.context() as patch:
            patch.setattr("vinoir.ir.document.lookup.meant", pytest.fail)  # no error is made
            for key in ("nothing", "two:7", "two#7", "77", 77, "two:t", 1.5, None):
                assert key not in again
            for key in ("two", "two:1", f"two#{again['two'].id}", "0", 0, again["two"]):
                assert key in again
        assert again._tensor_names is index
        again["left"].outputs[0].names = ("new",)
        assert again["new"] is again["left"]
        assert again._tensor_names is index
        # What was renamed is looked for anew: another may have that name, too.
        again["left"].outputs[0].names = ("t",)
        again["two"].outputs[0].names = ()
        assert again["t"] is again["left"]
        assert "new" not in again


def test_use_lists_stay_what_the_edges_say() -> None:
    model = diamond()
    x, two, left, both, out = model.layers
    for source, target, index in (
        (x, both, 0), ((two, 1), both, 1), (both, left, 0), (left, both, None), (x, out, 0),
    ):  # fmt: skip
        model.connect(source, target, index)
        kept = model._use_lists()
        model._uses = None
        anew = model._use_lists()
        assert (kept.entering, kept.leaving) == (
            anew.entering, {key: anew.leaving.get(key, []) for key in kept.leaving}
        )  # fmt: skip


def test_a_long_model_is_built_and_asked_in_linear_time() -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        net = ir.Builder()
        y = net.parameter("x", "f32", "1,4")
        for _ in range(length):
            y = net.add("ReLU", "opset1", [y])
        net.result(y, name="out")
        model = net.model()
        for layer in model:
            assert model.layer(layer.name) is layer
            model.consumers(layer)
        return time.process_time() - began

    least = {length: min(seconds(length) for _ in range(3)) for length in (800, 6400)}
    assert least[6400] < 24 * least[800]


def test_prune_leaves_what_the_checker_asks_for() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1")
    spare = net.add("ReLU", "opset1", [x], name="spare")
    further = net.add("Add", "opset1", [spare, net.constant(np.ones(1, np.float32))], name="more")
    net.add("ReLU", "opset1", [further], name="end")
    net.result(net.add("ReLU", "opset1", [x], name="y"), name="out")
    model = ir.loads(*ir.dumps(net.model()))
    assert {f.code for f in ir.check(model)} >= {"IR307"}
    assert {layer.name for layer in model.prune()} == {"spare", "more", "end", "Constant"}
    again = ir.loads(*ir.dumps(model))
    assert [layer.name for layer in again] == ["x", "y", "out"]
    assert len(again.edges) == 2
    for one in (model, again):
        assert not {"IR301", "IR302", "IR307"} & {f.code for f in ir.check(one)}
        assert one.prune() == []
    with pytest.raises(UsageError):
        model.layer("spare")


def test_prune_goes_into_bodies_and_spares_graphs_without_outputs(written: Written) -> None:
    paths = written.all("Loop.5.*")
    model = ir.read(paths[0])
    body = next(layer for layer in model if layer.bodies).bodies["body"]
    dead = body.add(Layer("ReLU", "opset1", "dead", outputs=[ir.Port(0, "FP32", (1,))]))
    model = ir.loads(*ir.dumps(model))
    assert [layer.name for layer in model.prune()] == [dead.name]
    assert not {f.code for f in ir.check(model)} & {"IR301", "IR307"}
    net = ir.Builder()
    net.parameter("x", "f32", "1")
    net.constant(np.ones(1))
    assert net.graph.prune() == []


def test_many_layers_go_at_once() -> None:
    net, count = ir.Builder(), 30_000
    x = net.parameter("x", "f32", "1")
    for _ in range(count):
        net.add("Spare", "extension", [x], outputs=[ANY])
    net.result(x)
    model = net.model()
    start = time.perf_counter()
    assert len(model.prune()) == count  # one by one it would take minutes
    assert time.perf_counter() - start < 20
    assert len(model.edges) == 1


def test_layers_are_removed_all_or_none() -> None:
    model = diamond()
    x, two, *_ = model.layers
    with pytest.raises(UsageError, match=r'"stranger".*is not in this graph'):
        model.remove(two, Layer("ReLU", "opset1", "stranger"))
    assert two in model.layers  # all or none
    model.remove(x, two)
    assert [layer.name for layer in model] == ["left", "both", "out"]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_indices_are_what_layers_and_edges_say_after_any_changes(data: st.DataObject) -> None:
    model = ir.loads(*ir.dumps(diamond())) if data.draw(st.booleans()) else diamond()
    for number in range(data.draw(st.integers(1, 8))):
        layers = list(model.layers)
        layer = data.draw(st.sampled_from(layers)) if layers else None
        kind = data.draw(st.sampled_from(["add", "remove", "prune", "connect", "cut", "name"]))
        _ask(model)
        if kind == "add" or layer is None:
            ports = [ir.Port(0, "FP32", (1,), [data.draw(st.sampled_from(["t", f"t{number}"]))])]
            place = data.draw(st.none() | st.integers(0, len(layers)))
            model.add(Layer("ReLU", "opset1", f"n{number % 3}", outputs=ports), place)
        elif kind == "remove":
            model.remove(*data.draw(st.lists(st.sampled_from(layers), unique_by=id, max_size=3)))
        elif kind == "prune":
            with contextlib.suppress(IRError):  # a cycle
                model.prune()
        elif kind == "connect":
            target = data.draw(st.sampled_from(layers))
            if layer.outputs:
                index = data.draw(st.none() | st.integers(0, len(target.inputs)))
                model.connect(layer, target, index)
        elif kind == "cut" and layer.inputs:
            model.disconnect(layer, data.draw(st.integers(0, len(layer.inputs) - 1)))
        else:
            layer.name = f"renamed{number}"
        assert _ask(model) == _ask(copy.deepcopy(model))


def _ask(model: ir.Model) -> list[object]:
    """Everything that a graph finds by an index."""
    rows: list[object] = []
    names = {layer.name for layer in model} | {"t", "t0", "t1"}
    for name in sorted(names):
        try:
            rows.append((name, model.layer(name).id))
        except UsageError:
            rows.append((name, None))
    for layer in model:
        sources = [one and (one[0].id, one[1]) for one in model.sources(layer)]
        users = sorted((user.id, index) for user, index in model.consumers(layer))
        rows.append((layer.id, model.layer(layer.id) is layer, sources, users))
    return rows


def test_reading_printing_and_patching_go_by_one_table() -> None:
    assert list(spelling._PRINTING) == list(patch._PATCHING) == list(PARTS)
    assert all(isinstance(getattr(Layer, name), property) for name in PARTS)


def test_a_constant_made_in_memory_has_its_operation() -> None:
    made = ir.Builder().constant(np.ones((2, 3), np.float32)).layer
    assert made.op is not None
    assert made.op.infer()[0] == Tensor("f32", (2, 3))
    assert made.op.attributes() == {"element_type": "f32", "shape": "2, 3"}


@given(st.lists(st.sampled_from(["a", "a_1", "a_1_1", "b"])))
def test_free_names_are_free(wanted: list[str]) -> None:
    taken: set[str] = set()
    free = FreeNames(taken.__contains__)
    for name in wanted:
        found = free(name)
        assert found not in taken
        assert name not in taken or found != name
        assert found == name or found.rpartition("_")[0] == name
        taken.add(found)


def test_very_many_layers_of_one_name_get_others() -> None:
    net = ir.Builder()
    value = net.parameter("x", "f32", (1,))
    for _ in range(8000):
        value = net.add("ReLU", "opset1", [value])
    net.result(value)
    model = net.model()
    for layer in model.layers:
        layer.name = "same"
    ir.fix(model, select=["IR216"])
    assert len({layer.name for layer in model.layers}) == len(model)


@pytest.mark.parametrize("number", [7.0, "7", None, b"7"])
def test_an_id_is_a_whole_number(number: Any) -> None:
    net = ir.Builder("m")
    net.result(net.parameter("x", "f32", "2"), name="y")
    model = net.model()
    for change in (
        lambda: setattr(model.layer("x"), "id", number),
        lambda: setattr(ir.Layer("ReLU", "opset1"), "id", number),
        lambda: ir.Layer("ReLU", "opset1", id=number),
        lambda: model.renumber({model.layer("x"): number}),
    ):
        with pytest.raises(ir.UsageError, match="whole number"):
            change()
    assert ir.loads(*ir.dumps(model)).layer("x").id == model.layer("x").id


def test_a_layer_is_in_a_graph_once() -> None:
    net = ir.Builder("m")
    net.result(net.parameter("x", "f32", "2"), name="y")
    model = net.model()
    layer = model.layer("x")
    with pytest.raises(ir.UsageError, match="in this graph already"):
        model.add(layer)
    assert len(model) == 2
    model.remove(layer)
    model.add(layer)
    assert len(model) == 2


def test_inputs_of_one_name_are_told_apart() -> None:
    net = ir.Builder("m")
    one, two = net.parameter("x", "f32", "2"), net.parameter("x", "f32", "2")
    net.result(net.add("Subtract", "opset1", [one, two]), name="y")
    model = ir.loads(*ir.dumps(net.model()))
    assert [end.name for end in model.inputs] == ["x", "x_1"]
    assert [layer.tensor_names() for layer in model.parameters] == [[("x",)], [("x_1",)]]
    feeds = {"x": np.float32([5, 5]), "x_1": np.float32([1, 2])}
    assert ir.run(model, feeds)["y"].tolist() == [4, 3]
    assert ir.Builder(into=model).parameter("x", "f32", "2").layer.tensor_names() == [("x_2",)]


def test_names_of_inputs_are_those_of_one_alone() -> None:
    net = ir.Builder()
    net.parameter("z", "f32", "2", names=["x_1"])
    for names in ((), (), ["x", "x_1", "w"]):
        net.parameter("x", "f32", "2", names=names)
    called = [layer.tensor_names()[0] for layer in net.model().parameters]
    assert called == [("x_1",), ("x",), ("x_2",), ("x_3", "x_1_1", "w")]


def test_a_layer_is_in_one_graph_alone() -> None:
    model, other = diamond(), diamond()
    left = other.layer("left")
    with pytest.raises(ir.UsageError, match="in another graph") as caught:
        model.add(left)
    assert "copy" in str(caught.value)
    assert (left.graph, left.id, len(model)) == (other, 2, 5)
    other.remove(left)
    assert model.add(left).graph is model
    assert (len(model), len(other)) == (6, 4)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("read", [False, True])
def test_a_copy_of_a_layer_can_be_added(copied: Callable[[Layer], Layer], read: bool) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2")
    net.result(net.add("Multiply", "opset1", [x, np.float32([3, 4])], name="sum"), name="y")
    model = ir.loads(*ir.dumps(net.model())) if read else net.model()
    other, count = diamond(), len(model)
    constant = model.constants[0]
    for graph in (other, model):
        made = graph.add(copied(constant))
        assert made is not constant
        assert made.graph is graph
        np.testing.assert_array_equal(made.value, [3, 4])
    assert (len(model), constant.graph) == (count + 1, model)
    with pytest.raises(ir.UsageError, match="in this graph already"):
        model.add(made)
    # What came along with the copy is a model without it.
    alone = copied(constant)
    around = alone.graph
    assert around is not None
    assert len(around) == len(model)
    other.add(alone)
    assert len(around) == len(model) - 1
    # One that was pickled may come with a model that somebody holds: a copy of it is not.
    pickled = pickle.loads(pickle.dumps(constant))
    with pytest.raises(ir.UsageError, match=r"copy\.copy"):
        other.add(pickled)
    assert other.add(copied(pickled)).value.tolist() == [3, 4]


def test_ids_that_numpy_made() -> None:
    model = diamond()
    layer = Layer("ReLU", "opset1", "more", id=np.int64(9))  # type: ignore[arg-type]
    model.add(layer)
    assert (type(layer.id), layer.id) == (int, 9)
    layer.id = np.uint8(12)  # type: ignore[assignment]
    assert (type(layer.id), layer.id, model.layer(12)) == (int, 12, layer)
    model.renumber({layer: np.int32(13)})  # type: ignore[dict-item]
    assert (type(layer.id), layer.id, model.layer(13)) == (int, 13, layer)
    with pytest.raises(ir.UsageError, match=r"an id is a whole number, not 1\.0"):
        layer.id = 1.0  # type: ignore[assignment]
