"""What is found in bodies, and in the bodies of their layers, against OpenVINO."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir

ov = pytest.importorskip("openvino")
import openvino.opset13 as ops  # noqa: E402  # only where openvino is there

X = np.arange(4, dtype=np.float32).reshape(1, 4) - 1
#: The declared output of the layer that is in a body of another.
SIZES = r'(name="inner".*?<output>.*?)<dim>1</dim>\s*<dim>4</dim>'
TYPE = r'(name="inner".*?<output>\s*<port id="\d+" )precision="FP32"'


def given() -> Any:
    return ops.parameter(ov.PartialShape([1, 4]), ov.Type.f32)


def branch(source: Any) -> Any:
    """An If in which nothing but one operation is."""
    made = ops.if_op(ops.constant(np.array(True)))
    inner = [given(), given()]
    sides = [
        ov.Model([function(x)], [x], function.__name__)
        for function, x in zip((ops.relu, ops.sigmoid), inner, strict=True)
    ]
    made.set_then_body(sides[0])
    made.set_else_body(sides[1])
    made.set_input(source.output(0), *inner)
    made.set_output(sides[0].results[0], sides[1].results[0])
    return made


def loop(source: Any, inner: Any = ops.relu, turns: Any = None, goes_on: Any = None) -> Any:
    """A Loop that hands what it makes of a state to the next of three turns."""
    kept, turn = given(), ops.parameter([], ov.Type.i64)
    made = inner(kept)
    if inner in (branch, loop):
        made.set_friendly_name("inner")
    made = ops.matmul(made, ops.constant(np.eye(4, dtype=np.float32) + 0.5), False, False)
    going = ops.constant(np.array(True) if goes_on is None else goes_on)
    results = [ops.result(made), ops.result(going)]
    outer = ops.loop(
        ops.constant(np.int64(3) if turns is None else turns), ops.constant(np.array(True))
    )
    outer.set_function(ov.Model(results, [kept, turn], "body"))
    outer.set_special_body_ports([1, 1])
    outer.set_merged_input(kept, source.output(0), results[0].output(0))
    outer.get_iter_value(results[0].output(0), -1)
    return outer


def write(made: Any, x: Any, path: Path) -> str:
    """Write a model, and give its text."""
    ov.serialize(ov.Model([made.output(0)], [x], "m"), path)
    return path.read_text()


def nested(kind: Any, path: Path) -> str:
    """A file of a Loop whose body has a layer with bodies."""
    x = given()
    return write(loop(x, kind), x, path)


@pytest.mark.parametrize("kind", [branch, loop])
@pytest.mark.parametrize(("there", "instead", "code"), [
    (SIZES, r"\1<dim>1</dim><dim>5</dim>", "IR606"),
    (TYPE, r'\1precision="FP16"', "IR607"),
], ids=["sizes", "type"])  # fmt: skip
def test_what_is_declared_in_bodies_is_no_error(
    kind: Any, there: str, instead: str, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.xml"
    text, count = re.subn(there, instead, nested(kind, path), count=1, flags=re.DOTALL)
    wanted = ov.Core().compile_model(path, "CPU")([X])[0]
    path.write_text(text)
    assert count
    assert np.array_equal(ov.Core().compile_model(path, "CPU")([X])[0], wanted)
    report = ir.check(path, ignore="IR515")
    assert [(f.code, f.name) for f in report if f.code == code] == [(code, "inner")]
    assert all(str(f.severity) == "warning" for f in report)


@pytest.mark.parametrize("kind", [branch, loop])
def test_what_does_not_fit_is_told_where_it_stands(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    text = nested(kind, path)
    # The weight behind the inner layer gets a fifth row, and all that is declared says so.
    end = text.index("</layer>", text.rindex('type="MatMul"'))
    begin = text.rindex('type="Const"', 0, end)
    constant = text[begin:end].replace('shape="4, 4"', 'shape="5, 4"').replace("64", "80")
    text = text[:begin] + constant.replace("<dim>4</dim>", "<dim>5</dim>", 1) + text[end:]
    path.write_text(text)
    data = path.with_suffix(".bin").read_bytes()
    path.with_suffix(".bin").write_bytes(data + bytes(16))
    with pytest.raises(RuntimeError, match="Incompatible MatMul matrix dimension"):
        ov.Core().read_model(path)
    (found,) = [f for f in ir.check(path) if str(f.severity) == "error"]
    assert (found.code, found.type) == ("IR601", "MatMul")
    assert "4 and 5 differ" in found.message


@pytest.mark.parametrize("kind", [branch, loop])
def test_what_is_declared_in_bodies_is_mended(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    text = nested(kind, path)
    wanted = path.read_bytes()
    begin = text.index("<body>")  # all that layers give and take, Parameters and all
    wrong = re.sub(r'precision="FP32">(\s*)<dim>1</dim>', r'precision="FP16">\1<dim>7</dim>',
                   text[begin:])  # fmt: skip
    wrong = wrong.replace("<dim>4</dim>", "<dim>-1</dim>")
    path.write_text(text[:begin] + wrong)
    codes = {finding.code for finding in ir.check(path, ignore="IR515")}
    assert codes == {"IR604", "IR605", "IR606", "IR607"}
    model = ir.read(path)
    fixes = ir.fix(model)
    assert {row.code for row in fixes} == {"IR604", "IR606"}
    assert ir.dumps(model)[0] == wanted
    assert not ir.check(model, ignore="IR515").findings
    assert not ir.fix(model)


@pytest.mark.parametrize("what", ["turns", "goes_on"])
@pytest.mark.parametrize("kind", [
    "bool", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8",
])  # fmt: skip
def test_what_counts_and_ends_turns_is_refused_where_openvino_refuses_it(
    what: str, kind: str, tmp_path: Path
) -> None:
    path, x = tmp_path / "m.xml", given()
    write(loop(x, **{what: np.array(3 if what == "turns" else 1, kind)}), x, path)
    try:
        ov.Core().compile_model(path, "CPU")([X])
        refused = False
    except RuntimeError:
        refused = True
    codes = [f.code for f in ir.check(path) if str(f.severity) != "info"]
    assert codes == (["IR734" if what == "turns" else "IR731"] if refused else [])
