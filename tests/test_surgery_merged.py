"""Models joined: one output that feeds several, and what of their names is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import ask
from vinoir import ir
from vinoir.ir.cli import main

X = np.float32([[-1, 0.5, 2]])


def single(name: str, kind: str, input_: str, output: str) -> ir.Model:
    """One layer between an input and an output, whose tensors have these names."""
    net = ir.Builder(name)
    y = net.add(kind, "opset1", [net.parameter(input_, "f32", "1,3")], name=f"{name}/{kind}")
    net.result(y, name=f"{name}/out", names=[output])
    return ir.loads(*ir.dumps(net.model()))


def found(model: ir.Model, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name, of a model whose names OpenVINO takes as they are."""
    text, weights = ir.dumps(model)
    assert not list(ir.check(text, weights=weights))
    ask("shapes", text.decode(), weights)
    return dict(ir.run(model, feeds))


BACKBONE = single("backbone", "ReLU", "x", "h")
#: What a backbone and two heads give.
WANTED = {"b.y": np.exp(np.maximum(X, 0)), "c.z": -np.maximum(X, 0)}


@pytest.mark.parametrize(
    "connect",
    [
        {"h": ["b.h", "c.g"]},
        [("h", "b.h"), ("h", "c.g")],
        (["h", "b.h"], ["h", "c.g"], ["h", "c.g"]),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_one_output_feeds_several_inputs(connect: Any, keep: bool) -> None:
    models = [BACKBONE, single("b", "Exp", "h", "y"), single("c", "Negative", "g", "z")]
    done = ir.merge(models, connect, prefixes=["", "b.", "c."], keep_outputs=keep)
    made = found(done.model, {"x": X})
    wanted = WANTED | ({"h": np.maximum(X, 0)} if keep else {})
    assert made.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-6)
    joined = [x for x in map(str, done.report.changes) if x.startswith("joined")]
    assert joined == [
        'joined: "b.h": is fed by output "h"',
        'joined: "c.g": is fed by output "h"',
    ]


@pytest.mark.parametrize("connect", ["names", {"h": "h"}])
def test_heads_whose_inputs_have_one_name(connect: Any) -> None:
    models = [BACKBONE, single("b", "Exp", "h", "b.y"), single("c", "Negative", "h", "c.z")]
    made = found(ir.merge(models, connect).model, {"x": X})
    assert made.keys() == WANTED.keys()
    for name, array in WANTED.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-6)


def test_a_name_means_the_last_output_that_has_it() -> None:
    models = [BACKBONE, single("b", "Exp", "h", "h"), single("c", "Negative", "h", "z")]
    for connect in ("names", {"h": "h"}):
        made = found(ir.merge(models, connect).model, {"x": X})
        assert made.keys() == {"z"}
        np.testing.assert_allclose(made["z"], -np.exp(np.maximum(X, 0)), rtol=1e-6)


def test_an_input_that_is_not_there_beside_one_that_is() -> None:
    models = [BACKBONE, single("b", "Exp", "h", "y")]
    with pytest.raises(ir.UsageError, match=r'"c.h" of the map .* are now "x", "y"\)'):
        ir.merge(models, {"h": ["h", "c.h"]})
    with pytest.raises(ir.UsageError, match=r'are now "x", "h", "h", "y"\)'):
        ir.merge(models, {"zz": "h"})
    with pytest.raises(ir.UsageError, match="fed twice"):
        ir.merge([BACKBONE, single("a", "Exp", "w", "g"), models[1]], [("h", "h"), ("g", "h")])


def test_an_output_feeds_several_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ir.write(BACKBONE, "a.xml")
    ir.write(single("b", "Exp", "h", "y"), "b.xml")
    ir.write(single("c", "Negative", "g", "z"), "c.xml")
    words = [word for prefix in ("", "b.", "c.") for word in ("--prefix", prefix)]
    words += ["--map", "h=b.h", "--map", "h=c.g"]
    with pytest.raises(SystemExit) as left:
        main(["merge", "a.xml", "b.xml", "c.xml", *words, "-o", "abc.xml"])
    assert left.value.code == 0, capsys.readouterr().err
    assert found(ir.read("abc.xml"), {"x": X}).keys() == WANTED.keys()


def test_every_name_that_is_another_is_told() -> None:
    done = ir.merge([BACKBONE, single("b", "Exp", "h", "y")])
    assert [layer.outputs[0].names for layer in done.model.parameters] == [
        ("x",), ("h_1",)
    ]  # fmt: skip
    assert 'renamed: "h": tensor "h" is now "h_1"' in str(done.report)
    # What is inside of the one is an output of the other.
    net = ir.Builder("inner")
    y = net.add("ReLU", "opset1", [net.parameter("x", "f32", "1,3")], name="r").named("h")
    net.result(net.add("Exp", "opset1", [y], name="e"), name="y")
    done = ir.merge([net.model(), single("b", "Tanh", "z", "h")])
    made = found(done.model, {"x": X, "z": X})
    assert list(made) == ["y", "h_1"]
    np.testing.assert_allclose(made["h_1"], np.tanh(X), rtol=1e-6)
    assert 'tensor "h" is now "h_1"' in str(done.report)
