"""What TensorIterator and Loop slice, each against what OpenVINO's CPU compiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from vinoir import ir

ov = pytest.importorskip("openvino")
op = pytest.importorskip("openvino.opset13")

#: Axis, start, end, stride and size of parts.
Cut = tuple[int, int, int, int, int]
WHOLE: Cut = (0, 0, -1, 1, 1)
PLACES = ("axis", "start", "end", "stride", "part_size")


def sums(folder: Path, kind: str, rows: int, given: Cut, made: Cut, handed: Any = None) -> str:
    """A document of sums: each turn adds a part of x [6,4] to a state of so many rows."""
    x, first = op.parameter([6, 4], np.float32, name="x"), op.parameter([rows, 4], np.float32)
    part, state = op.parameter([rows, 4], np.float32), op.parameter([rows, 4], np.float32)
    total = op.add(part, state)
    results = [op.result(total), op.result(total if handed is None else handed(total))]
    if kind == "Loop":
        results.append(op.result(op.constant(np.array(True))))
        node = op.loop(op.constant(np.int64(6 // rows)), op.constant(np.array(True)))
        node.set_function(ov.Model(results, [part, state], "body"))
        node.set_special_body_ports([-1, 2])
    else:
        node = op.tensor_iterator()
        node.set_body(ov.Model(results, [part, state], "body"))
    node.set_sliced_input(part, x.output(0), 0, rows, rows, -1, 0)
    node.set_merged_input(state, first.output(0), results[0].output(0))
    last = node.get_iter_value(results[1].output(0), -1)
    every = node.get_concatenated_slices(results[0].output(0), 0, rows, rows, -1, 0)
    ends = [op.result(last), op.result(every)]
    ov.save_model(ov.Model(ends, [x, first], "m"), folder / "m.xml", compress_to_fp16=False)
    xml = (folder / "m.xml").read_text()
    for tag, cut in (("input", given), ("output", made)):
        for name, number in zip(PLACES, cut, strict=True):
            line = re.compile(rf'(<{tag} axis=[^>]*?\b{name}=")[^"]*')
            xml = line.sub(rf"\g<1>{number}", xml) if name != "axis" else re.sub(
                rf'(<{tag} axis=")[^"]*', rf"\g<1>{number}", xml
            )  # fmt: skip
    if handed is not None:  # the back edge begins at the other Result
        body = xml[xml.index("<body>") : xml.index("</body>")]
        (edge,) = re.findall(r'<back_edges>\s*<edge from-layer="(\d+)"', xml)
        ids = re.findall(r'<layer id="(\d+)"[^>]*type="Result"', body)
        start = xml.index("<back_edges>")
        other = ids[ids.index(edge) + 1]
        xml = xml[:start] + xml[start:].replace(f'from-layer="{edge}"', f'from-layer="{other}"', 1)
    return xml


def refusal(xml: str, folder: Path) -> str:
    """What OpenVINO says against a document; nothing where it compiles it."""
    try:
        oracle.ask("compiled", xml, (folder / "m.bin").read_bytes())
    except RuntimeError as error:
        return str(error)
    return ""


def errors(xml: str, folder: Path) -> set[str]:
    """The codes of what is wrong."""
    weights = (folder / "m.bin").read_bytes()
    report = ir.check(xml.encode(), weights=weights)
    return {finding.code for finding in report if finding.severity == "error"}


@pytest.mark.parametrize(("rows", "given", "made", "code"), [
    (1, WHOLE, WHOLE, ""),
    (1, WHOLE, (0, -1, 0, -1, 1), ""),
    (1, WHOLE, (0, 0, 6, 1, 1), ""),
    (1, WHOLE, (0, 1, -1, 1, 1), "IR733"),
    (1, WHOLE, (0, 0, -2, 1, 1), "IR733"),
    (1, WHOLE, (0, 0, 7, 1, 1), "IR733"),
    (1, WHOLE, (0, 99, -1, 1, 1), "IR733"),
    (1, WHOLE, (0, -2, 0, -1, 1), "IR733"),
    (1, WHOLE, (0, 0, -1, 2, 1), "IR733"),
    (1, WHOLE, (0, 0, -1, 1, 2), "IR733"),
    (1, WHOLE, (1, 0, -1, 1, 1), "IR733"),
    (1, WHOLE, (1, 0, -1, 4, 4), ""),
    (1, WHOLE, (-1, 0, -1, 4, 4), "IR709"),
    (1, WHOLE, (-2, 0, -1, 1, 1), "IR709"),
    (1, (-1, 0, -1, 1, 1), WHOLE, "IR709"),
    (1, (-2, 0, -1, 1, 1), WHOLE, "IR709"),
    (1, (0, 1, -1, 1, 1), WHOLE, ""),
    (1, (0, 1, -1, 1, 1), (0, 1, -1, 1, 1), "IR733"),
    (1, (0, 0, 5, 1, 1), WHOLE, "IR733"),
    (1, (0, 0, -2, 1, 1), WHOLE, ""),
    (1, (0, 5, 0, -1, 1), WHOLE, "IR733"),
    (1, (0, -1, 0, -1, 1), WHOLE, ""),
    (2, (0, 0, -1, 2, 2), (0, 0, -1, 2, 2), ""),
    (2, (0, 1, -1, 2, 2), (0, 0, -1, 2, 2), "IR733"),
    (2, (0, 0, -1, 2, 2), (0, 0, -1, 1, 1), "IR733"),
    (4, (0, 0, -1, 4, 4), (0, 0, -1, 4, 4), "IR733"),
])  # fmt: skip
def test_slices_are_counted_as_openvino_counts_them(
    rows: int, given: Cut, made: Cut, code: str, tmp_path: Path
) -> None:
    xml = sums(tmp_path, "TensorIterator", rows, given, made)
    assert bool(refusal(xml, tmp_path)) == bool(code) or made[0] == -1  # refused when it runs
    assert errors(xml, tmp_path) == ({code} if code else set())


@pytest.mark.parametrize(("made", "code"), [
    (WHOLE, ""),
    ((0, -1, 0, -1, 1), ""),
    ((0, 1, -1, 1, 1), ""),  # the number of turns is said elsewhere
    ((0, 0, -1, 1, 2), ""),
    ((0, 0, -1, 2, 2), "IR733"),
    ((0, 0, -1, 2, 1), "IR733"),
    ((1, 0, -1, 1, 1), "IR733"),
    ((1, 0, -1, 4, 4), ""),
    ((-2, 0, -1, 1, 1), "IR709"),
])  # fmt: skip
def test_a_loop_puts_down_what_a_turn_gives(made: Cut, code: str, tmp_path: Path) -> None:
    xml = sums(tmp_path, "Loop", 1, WHOLE, made)
    assert bool(refusal(xml, tmp_path)) == bool(code)
    assert errors(xml, tmp_path) == ({code} if code else set())


def test_a_loop_takes_no_axis_from_the_end(tmp_path: Path) -> None:
    xml = sums(tmp_path, "Loop", 1, (-2, 0, -1, 1, 1), WHOLE)
    assert "not an unsigned" in refusal(xml, tmp_path)
    assert errors(xml, tmp_path) == {"IR709"}


HANDED = {
    "boolean": lambda total: op.greater(total, op.constant(np.float32(0))),
    "i32": lambda total: op.convert(total, "i32"),
    "rank": lambda total: op.squeeze(total, op.constant(np.int64([0]))),
    "rows": lambda total: op.concat([total, total], 0),
    "same": lambda total: op.relu(total),
}


@pytest.mark.parametrize("kind", ["TensorIterator", "Loop"])
@pytest.mark.parametrize("handed", HANDED)
def test_a_back_edge_gives_what_the_parameter_was_made_for(
    kind: str, handed: str, tmp_path: Path
) -> None:
    xml = sums(tmp_path, kind, 1, WHOLE, WHOLE, HANDED[handed])
    # OpenVINO casts other types, and in a Loop makes the body anew for other sizes.
    fine = handed == "same" or (handed, kind) == ("rows", "Loop")
    assert errors(xml, tmp_path) == (set() if fine else {"IR728"})


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("splits", [1, 2, 3])
def test_split_has_as_many_outputs_as_it_says(splits: int, version: int, tmp_path: Path) -> None:
    x = op.parameter([6, 4], np.float32, name="x")
    both = op.split(x, op.constant(np.int64(0)), 2)
    ends = [op.result(both.output(0)), op.result(both.output(1))]
    ov.save_model(ov.Model(ends, [x], "m"), tmp_path / "m.xml", compress_to_fp16=False)
    xml = (tmp_path / "m.xml").read_text().replace('num_splits="2"', f'num_splits="{splits}"')
    xml = xml.replace('version="11"', f'version="{version}"', 1)
    told = ir.check(xml.encode(), weights=(tmp_path / "m.bin").read_bytes())
    codes = {finding.code for finding in told} & {"IR603", "IR608"}
    assert codes == ({"IR603" if version == 11 else "IR608"} if splits == 1 else set())
    assert bool(refusal(xml, tmp_path)) == (splits == 1)
