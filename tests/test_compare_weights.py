"""What comparisons make of constants: quantized weights, states, scalars; in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compare import FILE
from vinoir import ir
from vinoir.ir.comparing import references, rounding, walking, weights
from vinoir.ir.comparing.references import from_constants
from vinoir.ir.execution import Interpreter
from vinoir.ir.inference import infer


def dequantized(
    net: ir.Builder, rng: np.random.Generator, shape: tuple[int, ...], kind: str = "f16"
) -> ir.Output:
    """Weights in 8 bits less a zero point and times a scale of each row, as NNCF writes them."""
    each = (shape[0], *[1] * (len(shape) - 1))
    held = net.constant(rng.integers(0, 256, shape, np.uint8))
    less = net.constant(rng.integers(100, 156, each, np.uint8))
    scale = net.constant(
        (rng.uniform(0.5, 1.5, each) / 256).astype("f2" if kind == "f16" else "f4")
    )
    whole, zero = (net.add("Convert", "opset1", [x], destination_type=kind) for x in (held, less))
    found = net.add("Multiply", "opset1", [net.add("Subtract", "opset1", [whole, zero]), scale])
    if kind == "f32":
        return found
    return net.add("Convert", "opset1", [found], destination_type="f32")


def products(count: int, size: int, kind: str = "f16") -> ir.Model:
    """Products by dequantized weights in a row."""
    net, rng = ir.Builder("products"), np.random.default_rng(3)
    x = net.parameter("x", "f32", f"4,{size}")
    for number in range(count):
        w = dequantized(net, rng, (size, size), kind)
        x = net.add("MatMul", "opset1", [x, w], name=f"product{number}", transpose_a=False,
                    transpose_b=True)  # fmt: skip
        x = net.add("Tanh", "opset1", [x], name=f"tanh{number}")
    net.result(x, name="y")
    return net.model()


@pytest.mark.parametrize("against", ["openvino", "compiled"])
@pytest.mark.parametrize("pieces", [1, 2, 3, 32])
def test_weights_in_f16_are_not_rounded_where_a_piece_ends(
    monkeypatch: pytest.MonkeyPatch, against: str, pieces: int
) -> None:
    """What is declared as f16 is computed in f32; handed over as an input it would be rounded."""
    if against == "openvino":
        pytest.importorskip("openvino")
    monkeypatch.setattr(walking, "_LAYERS", pieces)
    given = [np.random.default_rng(0).standard_normal((4, 24)).astype("f4")]
    found = ir.compare(products(3, 24), against, given)
    assert not found, str(found)
    assert not found.refused
    assert [step.place.type for step in found.steps] == ["MatMul", "Tanh"] * 3
    assert max(step.own for step in found.steps) < 2e-5


def test_the_reference_gets_weights_as_they_are_in_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs: list[list[str]] = []
    run = references._compiled

    def compiled(part: ir.Model, given: Any) -> Any:
        inputs.append([x.name for x in part.parameters])
        assert {x.element_type for x in part.constants} <= {"u8", "f16"}
        return run(part, given)

    monkeypatch.setattr(references, "_compiled", compiled)
    monkeypatch.setattr(walking, "_LAYERS", 2)
    assert not ir.compare(products(3, 16), "compiled")
    assert [len(names) for names in inputs] == [1] * len(inputs)


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(SHAPES, st.sampled_from(["f16", "f32"]), st.integers(0, 9), st.booleans())
@settings(deadline=None)
def test_weights_made_by_rows_are_those_made_whole(
    shape: tuple[int, ...], kind: str, seed: int, turned: bool
) -> None:
    """Whatever the shapes, and on either side of what does not go element by element."""
    net = ir.Builder("net")
    found = dequantized(net, np.random.default_rng(seed), shape, kind)
    if turned:
        order = net.constant(np.arange(len(shape))[::-1].astype("i8"))
        found = net.add("Transpose", "opset1", [found, order])
    other = net.add("Abs", "opset1", [found])
    found = net.add("Add", "opset1", [net.add("Exp", "opset1", [found]), other])
    x = net.parameter("x", "f32", "1")
    net.result(net.add("Multiply", "opset1", [found, x], name="taken"), name="y")
    model = net.model()
    known, eager = {}, {}
    fixed, inferred = from_constants(model), infer(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "_LARGE", -1)
        patch.setattr(weights, "_PIECE", 4)
        for step in Interpreter(model).steps:
            if step.layer.id not in fixed:
                continue
            tensors = inferred.of(step.layer)
            known[step.layer.id] = weights.made_of_constants(step, known, tensors)
            assert step.kernel is not None
            eager[step.layer.id] = step.kernel(*(eager[i][k] for i, k in step.sources))
        for number, wanted in eager.items():
            np.testing.assert_array_equal(known[number][0], wanted[0], strict=True)
        made = [one for one in known.values() if isinstance(one, weights.Weights)]
        assert sum(one.by_rows for one in made) >= 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no VmHWM")
@pytest.mark.parametrize("against", ["openvino", "compiled", "other"])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_quantized_weights_take_less_than_twice_the_file(
    tmp_path: Path, against: str, kind: str
) -> None:
    """Weights of 2 MB in the file, 8 MB each in f32: one is there at a time, once."""
    if against == "openvino":
        pytest.importorskip("openvino")
    ir.write(products(12, 1448, kind), tmp_path / "deep.xml")
    program = FILE.replace("(1, 256, 16, 16)", "(4, 1448)")
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "deep.xml"), against],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert float(done.stdout) < 2, done.stdout


def counter(step: float) -> ir.Model:
    """A state that grows by what comes in, twice over."""
    net = ir.Builder("count")
    x = net.parameter("x", "f32", "4")
    y = net.add("Multiply", "opset1", [x, net.constant(np.full(4, step, "f4"))], name="scaled")
    for name in ("a", "b"):
        told = {"variable_id": name, "variable_type": "f32", "variable_shape": "4"}
        before = net.add("ReadValue", "opset6", [net.constant(np.zeros(4, "f4"))], **told)
        y = net.add("Add", "opset1", [before, y], name=f"sum_{name}")
        net.add("Assign", "opset6", [y], name=f"assign_{name}", variable_id=name)
    net.result(y, name="y")
    return net.model()


def test_what_is_assigned_is_not_at_fault_for_what_it_takes() -> None:
    found = ir.compare(counter(1), counter(1.5), [np.arange(4, dtype="f4")])
    assert [step.place.name for step in found.wrong] == ["scaled"]
    verdicts = {step.place.name: step.verdict for step in found.steps}
    assert verdicts["sum_b"] == "inherited"
    assert verdicts.get("assign_b", "inherited") == "inherited"


def test_places_of_equal_values_are_ties_others_are_wrong(tmp_path: Path) -> None:
    net = ir.Builder("ranks")
    x = net.parameter("x", "f32", "1,6")
    found = net.add("TopK", "opset11", [x, net.constant(np.int64(4))], axis=1, mode="max",
                    sort="value", index_element_type="i64", name="top")  # fmt: skip
    net.result(found, name="values")
    model = net.model()
    given = np.float32([[1, 3, 3, 3, 2, 0]])
    layer = model.layer("top")

    def judged(places: list[int], values: np.ndarray = given) -> str:
        def compute(part: ir.Model, arrays: Any) -> list[np.ndarray]:
            right = [*ir.run(part, list(arrays)).values()]
            return [right[0], np.array([places], right[1].dtype)]

        reference = references.InPieces(model, "told", compute)
        rows = walking.walk(model, reference, {model.parameters[0].id: values}, None, None)
        return {spot: step.verdict for spot, step in rows}[layer.id, 1]

    assert judged([1, 2, 3, 4]) == "equal"
    assert judged([3, 1, 2, 4]) == "ties"
    assert judged([3, 1, 2, 5]) == "wrong"
    assert judged([4, 1, 2, 3]) == "wrong"
    assert judged([1, 2, 3, 6]) == "wrong"
    assert judged([1, 2, 3, -1]) == "wrong"
    layer.data |= {"sort": "index"}
    assert judged([1, 2, 3, 4]) == "equal"
    assert judged([4, 3, 2, 1]) == "ties"


def test_whole_numbers_beyond_32_bits_are_as_openvino_holds_them() -> None:
    pytest.importorskip("openvino")
    net = ir.Builder("whole")
    x = net.parameter("x", "f32", "4")
    y = net.add("Convert", "opset1", [x], destination_type="i64", name="whole")
    net.result(net.add("Add", "opset1", [y, net.constant(np.int64(1))], name="more"), name="y")
    found = ir.compare(net.model(), "openvino", [np.float32([-np.inf, -1e12, 7, 9.4])])
    assert not found, str(found)
    (told,) = (step for step in found.steps if step.place.name == "whole")
    assert told.verdict == "equal"


def test_what_follows_from_a_number_that_a_reference_cannot_hold_is_right() -> None:
    """It may have computed both in floats, or gone on from the end of 32 bits."""
    net = ir.Builder("whole")
    x = net.parameter("x", "f32", "3")
    y = net.add("Convert", "opset1", [x], destination_type="i64", name="whole")
    net.result(net.add("Add", "opset1", [y, net.constant(np.int64(8))], name="more"), name="y")
    model, given = net.model(), np.float32([-np.inf, 3e9, 5])

    def compute(part: ir.Model, arrays: Any) -> list[np.ndarray]:
        assert all(np.abs(array).max() <= 2**31 for array in arrays if array.dtype == np.int64)
        named = {"whole": [-(2**31), 2**31 - 1, 5], "more": [*ends, last]}
        makers = [part.producer(x, 0) for x in part.results]
        return [np.array(named[one[0].name], "i8") for one in makers if one is not None]

    here = [-(2**31), 2**31 - 1]
    cases: list[tuple[list[int], int, list[str]]] = [
        (here, 13, []), ([8 - 2**31, 7 - 2**31], 13, []), (here, 14, ["more"])
    ]  # fmt: skip
    for ends, last, wrong in cases:  # noqa: B007  # compute takes them
        reference = references.InPieces(model, "narrow", compute)
        reference.narrows = True
        rows = walking.walk(model, reference, {model.parameters[0].id: given}, None, None)
        assert [step.place.name for _, step in rows if step.is_wrong] == wrong


def test_a_scalar_that_is_wrong_is_named(tmp_path: Path) -> None:
    net = ir.Builder("scalar")
    x = net.parameter("x", "f32", "")
    net.result(net.add("Exp", "opset1", [x], name="exp"), name="y")
    np.savez(tmp_path / "told.npz", x=np.float32(1), exp=np.float32(3))
    found = ir.compare(net.model(), tmp_path / "told.npz")
    assert found.first is not None
    assert found.first.place.name == "exp"
    assert found.first.reason.startswith("[] is 2.71828")


@given(st.integers(0, 300), st.sampled_from([0, 2, 6]), st.integers(0, 99))
@settings(deadline=None)
def test_what_is_too_far_is_found_piece_by_piece(count: int, endless: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = rng.standard_normal(count).astype("f4")
    two = one + np.where(rng.random(count) < 0.3, rng.standard_normal(count) / 50, 0).astype("f4")
    for array in (one, two):
        places = rng.integers(0, max(count, 1), endless if count else 0)
        array[places] = rng.choice(np.float32([np.nan, np.inf, -np.inf]), len(places))
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "_PIECE", 32)
        x, y = one.astype("f8"), two.astype("f8")
        both = np.isfinite(x) & np.isfinite(y)
        level = np.sqrt(np.mean(np.square(y[both]))) if both.any() else 0.0
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        near = both & (np.abs(x - y) <= 1e-2 * (np.abs(y) + level))
        far = np.flatnonzero(~(same | near))
        assert rounding.too_far(one, two, 1e-2).tolist() == far.tolist()
        assert rounding.endless(one) == np.count_nonzero(~np.isfinite(x))
        if count:
            off = np.where(same, 0, np.where(np.isnan(x - y), np.inf, np.abs(x - y)))
            assert rounding.farthest(one, two) == off.argmax()
        assert (rounding.error(one, two) > 1e-2) == bool(len(far))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "is not there"),
        (b"PK\x03\x04 no archive", "is no .npz"),
        (b"text", "is no .npz"),
        ({"other": np.zeros(1)}, 'has the name of a tensor or layer: it has "other"'),
    ],
)
def test_a_file_of_tensors_that_is_none_is_told_how_to_make(
    tmp_path: Path, content: Any, sentence: str
) -> None:
    path = tmp_path / "told.npz"
    if isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ir.UsageError, match=sentence) as told:
        ir.compare(products(1, 4), path)
    assert "np.savez" in str(told.value.hint)


def test_a_model_of_other_inputs_is_told() -> None:
    with pytest.raises(ir.UsageError, match=r"products does not take these inputs: .*4,8") as told:
        ir.compare(products(1, 4), products(1, 8))
    assert told.value.hint


def test_inputs_made_at_random_are_told_where_they_do_not_fit() -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "1,?")
    ends = net.add("TopK", "opset11", [x, net.constant(np.int64(4))], axis=1, mode="max",
                   sort="value", index_element_type="i32")  # fmt: skip
    net.result(ends, name="y")
    for task in (ir.compare, ir.reduce):
        with pytest.raises(ir.IRError, match="k is 4") as told:
            task(net.model(), "compiled" if task is ir.compare else "compile")
        assert 'nobody gave all sizes of "x"' in str(told.value.hint)


def taken(shape: tuple[int, int], kind: str, count: int) -> ir.Model:
    """Rows that are chosen from weights, and a product by the same ones."""
    net, rng = ir.Builder("taken"), np.random.default_rng(1)
    x = net.parameter("x", "i64", f"{count}")
    each = 2 if shape[1] < 64 else 64
    groups = (shape[0], shape[1] // each, each)
    if kind == "u8":
        held = dequantized(net, rng, shape)
    else:
        held = net.constant(rng.integers(0, 15, groups, np.uint8), kind)
        held = net.add("Convert", "opset1", [held], destination_type="f16")
        scale = net.constant(rng.uniform(0.5, 1.5, (*groups[:2], 1)).astype("f2"))
        held = net.add("Multiply", "opset1", [held, scale])
        flat = net.constant(np.array(shape, "i8"))
        held = net.add("Reshape", "opset1", [held, flat], special_zero=False)
        held = net.add("Convert", "opset1", [held], destination_type="f32")
    rows = net.add("Gather", "opset8", [held, x, net.constant(np.int64(0))], name="chosen")
    net.result(net.add("MatMul", "opset1", [rows, held], name="product", transpose_a=False,
                       transpose_b=True), name="y")  # fmt: skip
    return net.model()


@pytest.mark.parametrize("kind", ["u8", "u4"])
@pytest.mark.parametrize(
    "places", [[3, -1, 3, 0], [99, 2, -99, -6], [1, 1, 1, 1], [0, 1, 2, 3], [-200, 200, 50, 70]]
)
@pytest.mark.parametrize("huge", [-1, 16, 100, 1 << 24])
def test_rows_of_weights_are_taken_as_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, places: list[int], huge: int
) -> None:
    """Whichever rows are chosen, beyond the ends as well, and however many go at a time."""
    ir.write(taken((40, 6), kind, 4), tmp_path / "taken.xml")
    model, given = ir.read(tmp_path / "taken.xml"), np.array(places)
    seen: dict[str, np.ndarray] = {}
    ir.run(model, [given], trace=lambda step: seen.update({step.layer.name: step.outputs[0]}))
    monkeypatch.setattr(weights, "_LARGE", -1)
    monkeypatch.setattr(weights, "_PIECE", 16)
    monkeypatch.setattr(weights, "_HUGE", huge)
    known: dict[int, Any] = {model.parameters[0].id: (given,)}
    fixed, inferred, thin = from_constants(model), infer(model), 0
    for step in Interpreter(model).steps:
        if step.kernel is None or step.layer.type == "Result":
            continue
        if step.layer.id in fixed:
            made = weights.made_of_constants(step, known, inferred.of(step.layer))
            known[step.layer.id] = made
            continue
        lean, inputs = weights.lean(step, known)
        assert lean.kernel is not None
        thin += lean.kernel is not step.kernel
        known[step.layer.id] = lean.kernel(*inputs)
        wanted = seen[step.layer.name]
        np.testing.assert_allclose(known[step.layer.id][0], wanted, rtol=1e-6, atol=1e-6)
    assert thin == (0 if huge > 1000 else 2)


def test_a_product_of_ones_own_gets_the_weights_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = taken((40, 6), "u8", 4)
    monkeypatch.setattr(weights, "_LARGE", -1)
    monkeypatch.setattr(weights, "_HUGE", 16)
    product = model.layer("product")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(product.op), "run", lambda self, a, b: (np.float32([[b.sum()]]),))
        found = ir.compare(model, taken((40, 6), "u8", 4), [np.arange(4)])
    assert not found  # both are run by the operation as it is


def test_what_is_wrong_only_in_company_is_asked_for_alone() -> None:
    """A runtime makes one of several layers, and what it tells of those inside is not theirs."""
    net = ir.Builder("company")
    x = net.parameter("x", "f32", "4")
    for kind in ("Sigmoid", "Tanh", "Exp"):
        x = net.add(kind, "opset1", [x], name=kind)
    net.result(x, name="y")
    model, given = net.model(), np.float32([0.1, 0.2, 0.3, 0.4])
    key, tanh = model.parameters[0].id, model.layer("Tanh").id

    def steps(amiss: int, whole: bool) -> list[str]:
        """What is wrong where so many layers together go amiss, and the whole model or not."""

        def compute(part: ir.Model, arrays: Any) -> list[np.ndarray]:
            told = [*ir.run(part, list(arrays)).values()]
            kinds = [layer.type for layer in part.order()]
            inside = [part.producer(one, 0) for one in part.results]
            if part is model:
                return [told[0] + 1] if whole else told
            return [
                one + 1 if len(kinds) - len(inside) > amiss and source and source[0].id == tanh
                else one
                for one, source in zip(told, inside, strict=True)
            ]  # fmt: skip

        reference = references.InPieces(model, "company", compute)
        rows = walking.walk(model, reference, {key: given}, None, None)
        return [step.place.name for _, step in rows if step.is_wrong]

    assert steps(2, False) == []
    assert steps(2, True) == ["Tanh"]
    assert steps(0, False) == ["Tanh"]


@pytest.mark.parametrize("kind", ["DFT", "RDFT", "IDFT"])
@pytest.mark.parametrize("size", [64, 384, 1000])
def test_transforms_of_any_length_are_right_in_openvino(kind: str, size: int) -> None:
    pytest.importorskip("openvino")
    net = ir.Builder("transform")
    x = net.parameter("x", "f32", f"3,{size}" if kind == "RDFT" else f"3,{size},2")
    version = "opset9" if kind == "RDFT" else "opset7"
    net.result(net.add(kind, version, [x, net.constant(np.array([1]))], name="turned"), name="y")
    model = net.model()
    given = [np.random.default_rng(0).standard_normal(model.parameters[0].outputs[0].dims)]
    given = [given[0].astype("f4")]
    found = ir.compare(model, "openvino", given)
    assert not found, str(found)
    layer = model.layer("turned")
    with pytest.MonkeyPatch.context() as patch:
        run = type(layer.op).run
        patch.setattr(
            type(layer.op), "run", lambda self, *a: tuple(y * 1.02 for y in run(self, *a))
        )
        found = ir.compare(model, "openvino", given)
    assert found.first is not None


def test_large_arrays_are_identical_piece_by_piece() -> None:
    one, two = (np.float32([[1, np.nan]] * 100_000) for _ in range(2))
    assert rounding.identical(one, two)
    assert rounding.identical(one.T, two.T)
    two[-1, 0] = 2
    assert not rounding.identical(one, two)
    assert not rounding.identical(one.T, two.T)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no VmHWM")
@pytest.mark.parametrize("against", ["openvino", "other"])
@pytest.mark.parametrize("kind", ["u8", "u4"])
def test_tables_of_weights_are_never_whole(tmp_path: Path, against: str, kind: str) -> None:
    """A table of some 24 MB in the file is 96 MB or 192 MB in f32."""
    if against == "openvino":
        pytest.importorskip("openvino")
    shape = (32_000, 768) if kind == "u8" else (64_000, 768)
    ir.write(taken(shape, kind, 4), tmp_path / "large.xml")
    program = FILE.replace(
        'standard_normal((1, 256, 16, 16)).astype("f4")', "integers(0, 16_000, 4)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "large.xml"), against],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert float(done.stdout) < 1.5, done.stdout
