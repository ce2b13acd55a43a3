"""Reductions begin where the fault seems to be, and record no more than they cut."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Written
from model_faults import wrong_kernel
from networks import Drawer
from test_compare import chain
from test_reduce import operations
from vinoir import ir
from vinoir.ir.comparing import walking
from vinoir.ir.comparing.divergence import refused_layer, wrong_layer
from vinoir.ir.comparing.extraction import cut_off, extract, operations_of
from vinoir.ir.comparing.failures import Failure, failure
from vinoir.ir.comparing.recording import Recording
from vinoir.ir.comparing.references import Compiled, InPieces
from vinoir.ir.execution import check_inputs, infer_for
from vinoir.layers import Op
from vinoir.schemas import Array, InternalError, UnsupportedError
from vinoir.schemas.errors import Where

LONG = 40
SAMPLE = [np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("f4")]


def steps_of(*words: Any, **more: Any) -> tuple[ir.Reduction, list[str]]:
    lines: list[str] = []
    return ir.reduce(*words, progress=lines.append, **more), lines


def test_the_layer_that_an_error_names_is_tried_first() -> None:
    model = chain(LONG)
    model.layer("conv33").data |= {"strides": "0, 0"}
    found, lines = steps_of(model, "infer")
    assert operations(found.model) == ["Convolution"]
    assert lines[0] == "layers: 1 of 80 layers"


def test_the_first_layer_that_is_no_number_is_tried_first() -> None:
    model = chain(LONG)
    w = model.layer("w21")
    w.set_value(np.full(w.value.shape, np.nan, "f4"))
    found, lines = steps_of(model, "run", SAMPLE)
    assert [x.name for x in operations_of(found.model)] == ["conv21"]
    assert lines[0] == "layers: 1 of 80 layers"


@pytest.mark.parametrize("against", ["compile", "compare"])
def test_the_layer_that_a_comparison_names_is_tried_first(against: str) -> None:
    if against == "compare":
        pytest.importorskip("openvino")
    model = chain(LONG)
    net = model.layer("elu17")
    net.type, net.data = "Tanh", {}
    kind = Op.find("Tanh", "opset1")
    assert kind is not None
    with wrong_kernel(kind, lambda array: array * np.float32(1.01)):
        found, lines = steps_of(model, against, SAMPLE)
    assert operations(found.model) == ["Tanh"]
    assert lines[0] == "layers: 1 of 80 layers"


def test_a_layer_that_a_runtime_refuses_is_tried_first() -> None:
    def compute(part: ir.Model, given: Sequence[Array]) -> Sequence[Array]:
        if any(x.name == "elu2" for x in part.layers if x.type == "Elu"):
            raise UnsupportedError("refused")
        return [*ir.run(part, list(given)).values()]

    model = chain()
    reference = InPieces(model, "picky", compute)
    assert refused_layer(model, reference, SAMPLE) == model.layer("elu2").id
    well = InPieces(chain(2), "picky", compute)
    assert refused_layer(well.model, well, SAMPLE) is None
    inferred = infer_for(model, check_inputs(model, SAMPLE))
    reference.begin({}, inferred)
    told = reference.told(operations_of(model), {model.parameters[0].id: SAMPLE})
    named = {model.layer(number).name for number, _ in told}
    assert named == {"conv0", "elu0", "conv1", "elu1", "conv2"}  # the rest follows from elu2


def test_of_wrong_layers_one_is_named_that_is_wrong_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walking, "_LAYERS", 1)
    model = chain()
    model.layer("elu1").type = "Sinh"
    model.layer("elu4").type = "Sinh"
    for name in ("elu1", "elu4"):
        model.layer(name).data = {}

    def compute(part: ir.Model, given: Sequence[Array]) -> Sequence[Array]:
        held = Recording(part, [given])
        rows = [(x, i) for x in operations_of(part) for i in range(len(x.outputs))]
        held.record((x.id, i) for x, i in rows)
        factors = {"elu1": 1.00013, "elu4": 1.01 if worse else 1.0}
        return [held.value(0, (x.id, i)) * np.float32(factors.get(x.name, 1)) for x, i in rows]

    for worse in (True, False):
        named = wrong_layer(model, InPieces(model, "off", compute), SAMPLE)
        assert named == model.layer("elu4" if worse else "elu1").id
    assert wrong_layer(model, Compiled(model), SAMPLE) is None


def test_layers_that_fail_together_grow_around_the_one_that_is_named() -> None:
    """A fault of three layers in a row that only their middle shows."""

    class Together:
        word, test = "together", ("",)

        def __call__(self, model: ir.Model, samples: Any, until: Any) -> list[Failure | None]:
            names = {x.name for x in operations_of(model)}
            layer = next((x.id for x in model.layers if x.name == "conv20"), None)
            asked.append(len(names))
            return [Failure("bad", layer) if {"elu19", "conv20", "elu20"} <= names else None]

    from vinoir.ir.comparing.reduction import _Reducer

    asked: list[int] = []
    found = _Reducer(chain(LONG), [SAMPLE], Together(), None, None, None).run()
    assert [x.name for x in operations_of(found.model)] == ["elu19", "conv20", "elu20"]
    assert asked[:3] == [80, 1, 3]


def test_an_error_inside_a_body_is_that_of_the_layer_around(written: Written) -> None:
    model = ir.read(written.first("Loop.5*"))
    outer = next(x for x in model.layers if x.bodies)
    inner = next(iter(outer.bodies.values())).layers[-1]
    for error in (ir.IRError, InternalError):
        assert failure(model, error("wrong", inner.where)).layer == outer.id
        assert failure(model, error("wrong", outer.where)).layer == outer.id
        assert failure(model, error("wrong", Where())).layer is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("room", [0, 400, 1 << 20])
def test_what_is_recorded_is_what_a_run_computes(seed: int, room: int) -> None:
    """Whatever is kept of what lies on the way, and is begun with the next time."""
    model = Drawer(seed).model(layers=12)
    rng = np.random.default_rng(seed)
    samples = [
        [rng.standard_normal(x.outputs[0].dims).astype("f4") for x in model.parameters]
        for _ in range(2)
    ]
    layers = operations_of(model)
    recorded = Recording(model, samples)
    recorded.room, recorded.large = room, 1 << 20
    inputs = {(x.id, 0) for x in model.parameters}
    asked: set[tuple[int, int]] = set()
    for part in (3, 2, 1):
        more = {(layers[len(layers) // part - 1].id, 0), (layers[len(layers) // part - 2].id, 0)}
        asked |= more
        assert recorded.record(more)
        for number, sample in enumerate(samples):
            seen: dict[tuple[int, int], Array] = {}
            ir.run(model, sample, trace=lambda step, seen=seen: seen.update(  # type: ignore[misc]
                {(step.layer.id, i): a for i, a in enumerate(step.outputs)}))  # fmt: skip
            held = recorded.values[number]
            assert held.keys() >= inputs | asked
            assert room or held.keys() == inputs | asked
            for spot, array in held.items():
                np.testing.assert_array_equal(array, seen[spot])


def test_what_is_kept_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, names = chain(LONG), []
    recorded = Recording(model, [SAMPLE])
    run = type(model.layer("elu1").op).run
    kind = type(model.layer("elu1").op)
    monkeypatch.setattr(kind, "run", lambda self, x: names.append(1) or run(self, x))
    recorded.record([(model.layer("elu30").id, 0)])
    first = len(names)
    recorded.record([(model.layer("elu35").id, 0)])
    assert first >= 30
    assert len(names) - first == 5


def test_what_comes_before_a_layer_that_fails_is_recorded() -> None:
    model = chain()
    model.layer("conv3").data |= {"strides": "0, 0"}
    spots = [(model.layer(name).id, 0) for name in ("elu2", "elu4")]
    recorded = Recording(model, [SAMPLE])
    recorded.record(spots)
    (held,) = recorded.values
    assert spots[0] in held
    assert spots[1] not in held
    assert recorded.value(0, spots[1]).shape == tuple(model.layer("elu4").outputs[0].dims)


def test_time_is_over_where_values_are_recorded() -> None:
    recorded = Recording(chain(), [SAMPLE])
    with pytest.raises(ir.LimitError):
        recorded.record([(recorded.model.layer("elu5").id, 0)], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_layers_keep_their_ids_where_they_are_cut_out(seed: int) -> None:
    model = Drawer(seed).model(layers=12)
    kept = operations_of(model)[2:9]
    recorded = Recording(model, [])
    part = extract(model, kept, recorded.tensor)
    assert {*part.inputs} == {*cut_off(model, kept)}
    named = {x.id: x.name for x in operations_of(part.model)}
    assert named == {x.id: x.name for x in kept}
    new = {x.id for x in (*part.model.parameters, *part.model.results)}
    assert not new & {x.id for x in model.layers}


def test_a_command_that_fails_whatever_it_gets_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = f"{sys.executable} {tmp_path / 'none.py'} {{}}"
    found = ir.reduce(chain(2), missing, output=tmp_path / "out")
    assert found.failure == "exit 2"
    assert found.doubt is not None
    assert "also for a model of one input" in found.doubt
    note = (tmp_path / "out" / "NOTE.md").read_text()
    assert found.doubt in note
    assert missing in note
    text = "import sys; from vinoir import ir; sys.exit(len(ir.read(sys.argv[1]).layers) > 3)"
    well = ir.reduce(chain(2), f"{sys.executable} -c {text!r}", max_seconds=300)
    assert well.doubt is None


def test_another_command_does_not_go_on_with_a_reduction(tmp_path: Path) -> None:
    for code in (1, 2):
        command = f"{sys.executable} -c 'import sys; sys.exit({code})'"
        if code == 1:
            ir.reduce(chain(1), command, output=tmp_path / "out", max_seconds=0)
            continue
        with pytest.raises(ir.UsageError, match="another model, failure"):
            ir.reduce(chain(1), command, output=tmp_path / "out")


def test_a_command_that_cannot_be_read_is_told() -> None:
    with pytest.raises(ir.UsageError, match="cannot be read: No closing quotation"):
        ir.reduce(chain(1), "python 'unfinished {}")
