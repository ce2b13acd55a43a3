"""Each old layer type: an old file made here, and a plain NumPy statement of what it computed.

The upgraded model must give the numbers of that statement, infer to the declared sizes, and be
written as a file that OpenVINO reads and that gives the same there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from older.case import Case, draw
from older.elements import ELEMENTS
from older.files import OldFile, Spot
from older.places import PLACES
from older.statements import convolved, old_size, pooled, transposed
from older.weighted import WEIGHTED
from oracle import ask
from vinoir import ir
from vinoir.ir.display import operation_name
from vinoir.ir.files.older.table import entries
from vinoir.schemas import Array

CASES = {**WEIGHTED, **ELEMENTS, **PLACES}


def built(case: Case) -> tuple[OldFile, dict[str, Array], list[Array]]:
    """The old file of a case, what is given for its inputs, and all inputs in order."""
    file = OldFile(case.version)
    spots: list[Spot] = []
    given_: dict[str, Array] = {}
    arrays: list[Array] = []
    for index, one in enumerate(case.inputs):
        if isinstance(one, np.ndarray):
            spots.append(file.const(one))
            arrays.append(one)
        else:
            spots.append(file.input(one, f"x{index}"))
            given_[f"x{index}"] = draw(*one)
            arrays.append(given_[f"x{index}"])
    file.many(
        case.type, spots, case.outputs, case.data, case.blobs, name="op",
        precision=case.precision, **case.more,
    )  # fmt: skip
    return file, given_, arrays


@pytest.mark.parametrize("name", CASES)
def test_an_old_layer_gives_its_old_numbers(name: str) -> None:
    case = CASES[name]
    file, given_, arrays = built(case)
    model = ir.loads(file.xml, file.bin)
    assert model.origin is not None
    assert [str(r) for r in model.origin.remarks if r.kind in ("unlike", "missing", "wrong")] == []
    assert [str(f) for f in ir.check(file.xml, weights=file.bin) if f.severity == "error"] == []
    outputs = list(ir.run(model, given_).values())
    expected = case.expected(*arrays)
    wanted = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    assert [one.shape for one in outputs] == [tuple(dims) for dims in case.outputs]
    inferred = [tensor.shape.static for tensor in ir.infer(model).values()]
    assert inferred == [tuple(dims) for dims in case.outputs]
    for found, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)
    compiled = list(ir.compile(model)(given_).values())
    for found, want in zip(compiled, outputs, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_an_upgraded_layer_is_the_same_in_openvino(name: str) -> None:
    file, given_, _ = built(CASES[name])
    model = ir.loads(file.xml, file.bin)
    xml, weights = ir.dumps(model)
    assert ir.check(xml, weights=weights).ok
    mine = list(ir.run(model, given_).values())
    theirs = ask("values", xml.decode(), weights, list(given_.values()))
    for found, want in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_conversion_is_no_difference(name: str) -> None:
    file, _, _ = built(CASES[name])
    model = ir.loads(file.xml, file.bin)
    written = ir.loads(*ir.dumps(model))
    assert [str(one) for one in ir.diff(model, written)] == []
    assert [str(one) for one in ir.diff(written, model)] == []


def test_what_becomes_of_a_layer_is_what_the_table_says() -> None:
    allowed = {"Parameter-1", "Const-1", "Result-1", "Convert-1", "Reshape-1"}
    for name, case in CASES.items():
        entry = entries()[case.type.lower()]
        if entry.type == "Activation":
            continue
        file, _, _ = built(case)
        made = {operation_name(layer) for layer in ir.loads(file.xml, file.bin).layers}
        assert made <= allowed | set(entry.becomes), name


#: What an Eltwise gives of [3, 6, 5] and [2, 1, 2], cut to whole numbers.
OF_WHOLE = {
    "sum": [5, 7, 7], "mul": [6, 6, 10], "prod": [6, 6, 10], "max": [3, 6, 5], "min": [2, 1, 2],
    "sub": [1, 5, 3], "div": [1, 6, 2], "squared_diff": [1, 25, 9], "floor_mod": [1, 0, 1],
    "pow": [9, 6, 25], "mean": [2, 3, 3], "equal": [0, 0, 0], "not_equal": [1, 1, 1],
    "less": [0, 0, 0], "less_equal": [0, 0, 0], "greater": [1, 1, 1], "greater_equal": [1, 1, 1],
    "logical_and": [1, 1, 1], "logical_or": [1, 1, 1], "logical_xor": [0, 0, 0],
}  # fmt: skip


@pytest.mark.parametrize("precision", ["I64", "I32", "I16", "U8"])
@pytest.mark.parametrize(
    ("operation", "coefficients", "want"),
    [(operation, words, want) for operation, want in OF_WHOLE.items() for words in ("", "1,1")]
    + [("sum", "1,2", [7, 8, 9]), ("sum", "0.5,1", [3, 4, 4])],
)  # fmt: skip
def test_whole_numbers_meet_in_every_operation(
    operation: str, coefficients: str, want: list[int], precision: str
) -> None:
    file, data = OldFile(6), {"operation": operation, "coeff": coefficients}
    spots = [file.input((1, 3), name, precision) for name in "ab"]
    file.add("Eltwise", spots, [(1, 3)], data, precision=precision)
    model = ir.loads(file.xml, b"")
    kind = model.inputs[0].type.dtype
    found = ir.run(model, [np.array([row], kind) for row in ([3, 6, 5], [2, 1, 2])])[0]
    np.testing.assert_array_equal(found, np.array([want], kind), strict=True)


# Poolings at random.


@st.composite
def poolings(draw_: Callable[..., Any]) -> dict[str, Any]:
    kernel = draw_(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = []
    for k in kernel:
        begin, end = draw_(st.integers(0, k - 1)), draw_(st.integers(0, k - 1))
        rows.append((draw_(st.integers(k, 9)), k, draw_(st.integers(1, 4)), begin, end))
    return {
        "rows": rows, "method": draw_(st.sampled_from(["max", "avg"])),
        "exclude": draw_(st.booleans()),
        "rounding": draw_(st.sampled_from([None, "floor", "ceil"])),
        "version": draw_(st.integers(2, 7)),
    }  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(poolings())
def test_poolings_at_random(pool: dict[str, Any]) -> None:
    rows = pool["rows"]
    floor = pool["rounding"] == "floor"
    sizes = [old_size(*row, floor=floor) for row in rows]
    columns = list(zip(*rows, strict=True))
    data = {
        "kernel": ",".join(map(str, columns[1])), "strides": ",".join(map(str, columns[2])),
        "pads_begin": ",".join(map(str, columns[3])), "pads_end": ",".join(map(str, columns[4])),
        "pool-method": pool["method"], "exclude-pad": str(pool["exclude"]).lower(),
    }  # fmt: skip
    if pool["rounding"] is not None:
        data["rounding_type"] = pool["rounding"]
    if pool["version"] == 2 and len(rows) == 2:
        data = {
            "kernel-y": rows[0][1], "kernel-x": rows[1][1], "stride-y": rows[0][2],
            "stride-x": rows[1][2], "pad-y": rows[0][3], "pad-x": rows[1][3],
            "pad-b": rows[0][4], "pad-r": rows[1][4],
        } | {key: data[key] for key in data if key not in (
            "kernel", "strides", "pads_begin", "pads_end")}  # fmt: skip
    file = OldFile(pool["version"])
    dims = (1, 2, *columns[0])
    file.add("Pooling", [file.input(dims, "x")], [(1, 2, *sizes)], data, name="op")
    model = ir.loads(file.xml, b"")
    assert model.origin is not None
    assert not [r for r in model.origin.remarks if r.kind == "unlike"]
    x = draw(*dims)
    want = pooled(
        x, columns[1], columns[2], columns[3], columns[4], sizes, pool["method"], pool["exclude"]
    )
    np.testing.assert_allclose(ir.run(model, [x])["op"], want, rtol=1e-4, atol=1e-5)


# Convolutions at random.


@st.composite
def convolutions(draw_: Callable[..., Any]) -> dict[str, Any]:
    axes = draw_(st.integers(1, 3))

    def each(least: int, most: int) -> list[int]:
        return draw_(st.lists(st.integers(least, most), min_size=axes, max_size=axes))

    return {
        "version": draw_(st.integers(3, 7)), "group": draw_(st.integers(1, 3)),
        "in": draw_(st.integers(1, 2)), "out": draw_(st.integers(1, 2)), "size": each(5, 7),
        "kernel": each(1, 3), "strides": each(1, 3), "begin": each(0, 2), "end": each(0, 2),
        "dilations": each(1, 2), "half": draw_(st.booleans()), "biased": draw_(st.booleans()),
    }  # fmt: skip


def listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def agrees(
    kind: str, row: dict[str, Any], w: Array, out: list[int], want: Callable[..., Any]
) -> None:
    """An old file of one layer with these weights gives what is wanted."""
    file, channels = OldFile(row["version"]), row["out"] * row["group"]
    data = {
        "kernel": listed(row["kernel"]), "strides": listed(row["strides"]), "output": channels,
        "pads_begin": listed(row["begin"]), "pads_end": listed(row["end"]), "group": row["group"],
        "dilations": listed(row["dilations"]),
    }  # fmt: skip
    blobs = {"weights": w}
    if row["biased"]:
        blobs["biases"] = draw(channels).astype(w.dtype)
    dims = (1, row["in"] * row["group"], *row["size"])
    precision = "FP16" if row["half"] else "FP32"
    x = file.input(dims, "x")
    file.add(kind, [x], [(1, channels, *out)], data, blobs, name="op", precision=precision)
    model, array = ir.loads(file.xml, file.bin), draw(*dims)
    assert model.origin is not None
    assert not [r for r in model.origin.remarks if r.kind == "unlike"]
    expected = want(array)
    if row["biased"]:
        bias = blobs["biases"].astype(np.float32)
        expected = expected + bias.reshape(1, -1, *[1] * len(out))
    np.testing.assert_allclose(ir.run(model, [array])["op"], expected, rtol=1e-3, atol=1e-4)


def weights(row: dict[str, Any], *lead: int) -> Array:
    return draw(*lead, *row["kernel"]).astype(np.float16 if row["half"] else np.float32)


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_convolutions_at_random(row: dict[str, Any]) -> None:
    w = weights(row, row["out"] * row["group"], row["in"])
    columns = [row[key] for key in ("size", "kernel", "strides", "begin", "end", "dilations")]
    out = [
        (n + b + e - (k - 1) * d - 1) // s + 1 for n, k, s, b, e, d in zip(*columns, strict=True)
    ]
    ways = [row[key] for key in ("strides", "begin", "end", "dilations")]
    agrees("Convolution", row, w, out, lambda x: convolved(x, w.astype("f4"), *ways, row["group"]))


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.integers(0, 1))
def test_deconvolutions_at_random(row: dict[str, Any], more: int) -> None:
    row["dilations"] = [1] * len(row["size"])
    row["begin"] = [min(b, k - 1) for b, k in zip(row["begin"], row["kernel"], strict=True)]
    row["end"] = [min(e, k - 1) for e, k in zip(row["end"], row["kernel"], strict=True)]
    w = weights(row, row["in"] * row["group"], row["out"])
    columns = [row[key] for key in ("size", "kernel", "strides", "begin", "end")]
    out = [
        (n - 1) * s + k - b - e + min(more, s - 1) for n, k, s, b, e in zip(*columns, strict=True)
    ]
    agrees(
        "Deconvolution", row, w, out,
        lambda x: transposed(x, w.astype("f4"), row["strides"], row["begin"], out, row["group"]),
    )  # fmt: skip
