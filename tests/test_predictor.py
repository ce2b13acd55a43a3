"""A predictor: sent by what it is, loaded once a process, called by arrays of any batch."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.fleet import predictor as predictors

SAMPLES = Path(__file__).parents[1] / "samples"
SEVEN = np.load(SAMPLES / "seven.npy")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    for name in ("digits.xml", "digits.bin"):
        shutil.copy(SAMPLES / name, tmp_path)
    return tmp_path / "digits.xml"


def rows(count: int) -> np.ndarray:
    noise = np.random.default_rng(count).standard_normal((count, 1, 16, 16), np.float32)
    return SEVEN + 0.1 * noise


def wanted(path: Path, x: np.ndarray) -> np.ndarray:
    model = ir.read(path)
    return np.concatenate([ir.run(model, [row[None]])[0] for row in x])


def fixed(path: Path, batch: int) -> ir.Model:
    model = ir.read(path)
    ir.reshape(model, {"image": f"{batch},1,16,16"})
    return model


def test_what_is_sent_is_small_and_loaded_once(digits: Path) -> None:
    predictor = ir.Predictor(digits)
    data = pickle.dumps(predictor)
    assert len(data) < 1000
    x = rows(5)
    one, two = pickle.loads(data), copy.deepcopy(predictor)
    np.testing.assert_allclose(one(x), wanted(digits, x), rtol=1e-5, atol=1e-6)
    assert one.program is two.program is predictor.program
    assert pickle.loads(pickle.dumps(one)).program is one.program


def test_another_process_answers_the_same(digits: Path) -> None:
    predictor, x = ir.Predictor(digits), rows(3)
    np.save(digits.with_suffix(".npy"), x)
    digits.with_suffix(".pickle").write_bytes(pickle.dumps(predictor))
    program = (
        "import pickle, sys, numpy as np\n"
        f"p = pickle.load(open({str(digits.with_suffix('.pickle'))!r}, 'rb'))\n"
        f"np.save({str(digits.with_suffix('.out.npy'))!r}, "
        f"p(np.load({str(digits.with_suffix('.npy'))!r})))"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
    )
    np.testing.assert_array_equal(np.load(digits.with_suffix(".out.npy")), predictor(x))


@pytest.mark.parametrize("count", [1, 3, 64, 65, 200])
def test_any_number_of_rows_is_cut_into_batches(digits: Path, count: int) -> None:
    x = rows(count)
    expected = wanted(digits, x[-3:])
    for predictor in (ir.Predictor(digits), ir.Predictor(fixed(digits, 4))):
        found = predictor(x)
        assert found.shape == (count, 10)
        np.testing.assert_allclose(found[-3:], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ir.UsageError, match="has the shape 4,1,16,16"):
        ir.Predictor(fixed(digits, 4), batch_axis=None)(rows(3))
    none = ir.Predictor(fixed(digits, 0))
    assert none(rows(0)).shape == (0, 10)
    with pytest.raises(ir.UsageError, match='"image" takes 0 rows along axis 0, 3 are given'):
        none(rows(3))


def test_batches_along_another_axis_and_several_inputs() -> None:
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", "2,3")
    y = builder.parameter("y", "f32", "2,1")
    total = builder.add("Add", "opset1", [x, y], name="total")
    double = builder.add("Add", "opset1", [total, total], name="double")
    builder.result(total, name="a")
    builder.result(double, name="b")
    model = builder.model()
    left, right = np.arange(14, dtype=np.float32).reshape(2, 7), np.ones((2, 1), np.float32)
    predictor = ir.Predictor(model, batch_axis=1)
    with pytest.raises(ir.UsageError, match="2 rows, another 7"):
        predictor(left, np.ones((2, 2), np.float32))
    found = predictor(left, right)
    np.testing.assert_array_equal(found[predictor.outputs[0]], left + 1)
    np.testing.assert_array_equal(found[predictor.outputs[1]], 2 * left + 2)
    one = ir.Predictor(model, outputs=predictor.outputs[1], batch_axis=1)
    np.testing.assert_array_equal(one(left, right), 2 * left + 2)
    np.testing.assert_array_equal(
        one({"x": left, "y": right, "label": 3})[one.outputs[0]], 2 * left + 2
    )
    with pytest.raises(ir.UsageError, match='no value is given for the input "y"'):
        one({"x": left})
    with pytest.raises(ir.UsageError, match="1 arrays are given for 2 inputs"):
        one(left)
    with pytest.raises(ir.UsageError, match='no output is named "c"'):
        ir.Predictor(model, outputs="c")


def test_what_is_joined_must_have_rows() -> None:
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", "2,3")
    axes = builder.constant(np.array([0, 1]))
    builder.result(builder.add("ReduceSum", "opset1", [x, axes], keep_dims=False))
    with pytest.raises(ir.UsageError, match="no 2 rows along axis 0"):
        ir.Predictor(builder.model())(np.ones((4, 3), np.float32))


def joined(first: str, second: str) -> ir.Model:
    builder = ir.Builder("m")
    ends = [builder.parameter("x", "f32", first), builder.parameter("y", "f32", second)]
    builder.result(builder.add("Concat", "opset1", ends, axis=0), name="joined")
    return builder.model()


@pytest.mark.parametrize("axis", [0, None])
def test_no_rows_are_computed_as_any_others(axis: int | None) -> None:
    none, two = np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32)
    predictor = ir.Predictor(joined("?,3", "?,3"), batch_axis=axis)
    np.testing.assert_array_equal(predictor(two, none), two)
    assert predictor(none, none).shape == (0, 3)
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", "?,3")
    axes = builder.constant(np.array([0]))
    builder.result(builder.add("ReduceSum", "opset1", [x, axes], keep_dims=True))
    np.testing.assert_array_equal(
        ir.Predictor(builder.model(), batch_axis=axis)(none), np.zeros((1, 3), np.float32)
    )


def test_no_rows_of_a_fixed_batch_have_the_shape_of_others(digits: Path) -> None:
    predictor = ir.Predictor(fixed(digits, 4))
    assert predictor(rows(3)[:0]).shape == (0, 10)
    with pytest.raises(ir.UsageError, match="has the shape"):
        predictor(np.zeros((4, 1, 0, 16), np.float32))
    with pytest.raises(ir.UsageError, match="no 2 rows along axis 0"):
        ir.Predictor(joined("2,3", "2,3"))(*[np.zeros((0, 3), np.float32)] * 2)


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_an_input_that_is_as_long_as_the_rows_are_many_is_whole(count: int) -> None:
    builder = ir.Builder("m")
    x, w = builder.parameter("x", "f32", "2,3"), builder.parameter("w", "f32", "4,3")
    builder.result(
        builder.add("MatMul", "opset1", [x, w], transpose_a=False, transpose_b=True), name="y"
    )
    rng = np.random.default_rng(count)
    rows_, weights = (rng.standard_normal((n, 3)).astype(np.float32) for n in (count, 4))
    found = ir.Predictor(builder.model())(rows_, weights)
    np.testing.assert_allclose(found, rows_ @ weights.T, rtol=1e-5, atol=1e-6)
    # One that may be of any length goes with the rows.
    added = ir.Builder("m")
    x, y = added.parameter("x", "f32", "2,3"), added.parameter("y", "f32", "?,3")
    added.result(added.add("Add", "opset1", [x, y]))
    found = ir.Predictor(added.model())(rows_, rows_)
    np.testing.assert_array_equal(found, 2 * rows_)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"batch_axis": -1}, "batch_axis is -1, it is a whole number from 0 on or None"),
        ({"batch_axis": "0"}, "batch_axis is '0', it is a whole number"),
        ({"batch_axis": 1.0}, "batch_axis is 1.0, it is a whole number"),
        ({"threads": None}, "threads is None, it is a whole number from 1 on"),
        ({"threads": 0}, "threads is 0, it is"),
        ({"threads": -1}, "threads is -1, it is"),
        ({"threads": 1.5}, "threads is 1.5, it is"),
    ],
)
def test_what_counts_is_looked_at_when_it_is_made(
    digits: Path, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ir.UsageError, match=re.escape(says)):
        ir.Predictor(digits, **given)


def test_whole_numbers_of_any_kind_count(digits: Path) -> None:
    predictor = ir.Predictor(fixed(digits, 4), batch_axis=np.int64(0), threads=np.int32(1))  # type: ignore[arg-type]
    assert predictor(rows(6)).shape == (6, 10)


def test_threads_do_not_see_each_others_variables() -> None:
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", "1,2")
    variable = {"variable_id": "v"}
    before = builder.add(
        "ReadValue", "opset6", [builder.constant(np.zeros((1, 2), np.float32))],
        variable_type="f32", variable_shape="1,2", **variable,
    )  # fmt: skip
    total = builder.add("Add", "opset1", [x, before])
    builder.add("Assign", "opset6", [total], **variable)
    builder.result(total)
    predictor, one = ir.Predictor(builder.model()), np.ones((1, 2), np.float32)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: float(predictor(one)[0, 0]), range(5000)))
    assert set(found) == {1.0}


def test_an_edited_model_is_sent_with_its_edits(digits: Path) -> None:
    model = ir.read(digits)
    (bias,) = [layer for layer in model.layers if layer.name == "bias"] or [None]
    constant = bias or next(layer for layer in model.constants if layer.value.dtype == np.float32)
    constant.value = constant.value * 2
    data = pickle.dumps(ir.Predictor(model))
    x = rows(2)
    np.testing.assert_allclose(
        pickle.loads(data)(x), np.concatenate([ir.run(model, [row[None]])[0] for row in x]),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_files_that_have_changed_are_refused(digits: Path) -> None:
    predictor = ir.Predictor(digits)
    data = pickle.dumps(predictor)
    bin_ = digits.with_suffix(".bin")
    weights = bytearray(bin_.read_bytes())
    weights[100] ^= 1
    bin_.unlink()
    bin_.write_bytes(weights)
    for attempt in (lambda: predictor(SEVEN), lambda: pickle.dumps(predictor)):
        with pytest.raises(ir.UnreadableError, match="is not what it was"):
            attempt()
    with pytest.raises(ir.UnreadableError, match="not what it was"):
        pickle.loads(data)
    bin_.unlink()
    with pytest.raises(ir.UnreadableError):
        pickle.loads(data)
    with pytest.raises(ir.UnreadableError, match="it is gone"):
        predictor(SEVEN)
    shutil.copy(SAMPLES / "digits.bin", bin_)
    predictor = ir.Predictor(digits)
    data = pickle.dumps(predictor)
    predictors._programs.clear()
    digits.write_bytes(digits.read_bytes().replace(b"digits", b"figits"))
    with pytest.raises(ir.UnreadableError, match="is not what it was"):
        pickle.loads(data)(SEVEN)
    # The same bytes elsewhere, or written again, are the same model.
    shutil.copy(SAMPLES / "digits.xml", digits)
    assert pickle.loads(data)(SEVEN).shape == (1, 10)


def test_no_helpers_are_forked_unless_asked(digits: Path) -> None:
    program = ir.Predictor(digits).program
    assert (program.threads, program.fork) == (1, False)
    assert ir.Predictor(digits, threads=2).program.threads == 2


def test_a_function_as_spark_wants_it(digits: Path) -> None:
    predictor, x = ir.Predictor(digits), rows(7)
    # As its documentation says: made by a function without arguments, and looked at.
    predict = predictor.make_predict_fn()
    assert len(inspect.signature(predict).parameters) == 1
    np.testing.assert_array_equal(predict(x.reshape(7, -1)), predictor(x))
    assert predict() is predict
    assert pickle.loads(pickle.dumps(predictor.make_predict_fn))()(x).shape == (7, 10)


def test_rows_of_tables_are_given_as_the_model_takes_them() -> None:
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", "2,3,2")
    i = builder.parameter("i", "i32", "2")
    total = builder.add("ReduceSum", "opset1", [x, builder.constant(np.array([1, 2]))])
    as_float = builder.add("Convert", "opset1", [i], destination_type="f32")
    builder.result(builder.add("Multiply", "opset1", [total, as_float]), name="y")
    builder.result(builder.add("ReLU", "opset1", [x]), name="z")
    predict = ir.Predictor(builder.model()).make_predict_fn()
    rows = np.arange(30, dtype=np.float64).reshape(5, 6)
    factors = np.arange(5)
    found = predict(rows, factors)
    np.testing.assert_array_equal(found["y"], rows.sum(1) * factors)
    np.testing.assert_array_equal(found["z"], rows)
    with pytest.raises(ir.UsageError, match="convert it"):
        predict(rows, factors + 2**40)
    with pytest.raises(ir.UsageError, match="convert it"):
        predict(rows, factors + 0.5)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    sql: Any = importlib.import_module("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else the first of the path
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.filterwarnings("default")  # those of Spark are not ours
def test_spark_itself(digits: Path, spark: Any) -> None:
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

    x = rows(10).reshape(10, -1)
    expected = ir.Predictor(digits)(x.reshape(-1, 1, 16, 16))
    for kind in (FloatType(), DoubleType()):
        schema = StructType([StructField("image", ArrayType(kind))])
        table = spark.createDataFrame([(row.tolist(),) for row in x], schema)
        udf = predict_batch_udf(
            ir.Predictor(digits).make_predict_fn, return_type=ArrayType(FloatType()),
            batch_size=4, input_tensor_shapes=[[256]],
        )  # fmt: skip
        found = np.array([row[0] for row in table.select(udf("image")).collect()])
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.filterwarnings("default")  # those of Ray are not ours
def test_ray_itself(digits: Path) -> None:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    x = rows(10)
    path = os.pathsep.join(filter(None, sys.path))
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )  # fmt: skip
    try:
        found = (
            ray.data.from_numpy(x)
            .rename_columns({"data": "image"})
            .map_batches(ir.Predictor(digits), batch_format="numpy", batch_size=4)
            .take_all()
        )
    finally:
        ray.shutdown()
    got = np.array([row["digit"] for row in found])
    np.testing.assert_allclose(got, ir.Predictor(digits)(x), rtol=1e-5)


def test_dask_arrays(digits: Path) -> None:
    array = pytest.importorskip("dask.array")
    x, predictor = rows(20), ir.Predictor(digits)
    lazy = array.from_array(x, chunks=(6, 1, 16, 16))
    found = array.map_blocks(predictor, lazy, drop_axis=[2, 3], chunks=(lazy.chunks[0], 10))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(
        found.compute(scheduler="threads"),
        np.concatenate([predictor(part) for part in (x[:6], x[6:12], x[12:18], x[18:])]),
    )


# A model over files of inputs.


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(9):
        np.save(folder / f"{number}.npy", rows(5) * number)
    return folder


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def over(digits: Path, inputs: Path, out: Path, *words: object) -> int:
    given = f"image={inputs}/*.npy"
    return call("run", digits, "--input", given, "--out", out, "--jobs", 2, *words)


def test_a_model_over_files_of_inputs(digits: Path, inputs: Path, tmp_path: Path) -> None:
    predictor = ir.Predictor(digits)
    expected = np.concatenate([predictor(rows(5) * n) for n in range(9)])
    assert over(digits, inputs, tmp_path / "out.npz") == 0
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["digit"], expected)
    assert over(digits, inputs, tmp_path / "out.npz") == 2
    assert over(digits, inputs, tmp_path / "out.npz", "--force") == 0
    assert over(digits, inputs, tmp_path / "out.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [Path(line["inputs"]["image"]).stem for line in lines] == list("012345678")
    got = np.concatenate([np.array(line["result"]["digit"], np.float32) for line in lines])
    np.testing.assert_array_equal(got, expected)
    assert over(digits, inputs, tmp_path / "out.txt") == 2
    assert over(digits, inputs, tmp_path / "other.npz", "--save", "x.npz") == 2
    for name in ("none/out.npz", "none/out.jsonl"):
        assert over(digits, inputs, tmp_path / name) == 2


def test_outputs_as_zarr(
    digits: Path, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("zarr") is None:
        assert over(digits, inputs, tmp_path / "out.zarr") == 2
        assert "pip install zarr" in capsys.readouterr().err
        return
    zarr: Any = importlib.import_module("zarr")
    assert over(digits, inputs, tmp_path / "out.zarr") == 0
    predictor = ir.Predictor(digits)
    expected = np.concatenate([predictor(rows(5) * n) for n in range(9)])
    np.testing.assert_array_equal(zarr.open(tmp_path / "out.zarr")["digit"][:], expected)


def test_a_file_that_is_wrong_ends_it_and_nothing_is_written(
    digits: Path, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(inputs / "5.npy", np.ones((1, 2, 16, 16), np.float32))
    before = sorted(tmp_path.iterdir())
    assert over(digits, inputs, tmp_path / "out.npz") == 1
    assert "5.npy: error: refused" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert over(digits, inputs, tmp_path / "out.jsonl") == 2
    lines: list[Any] = [json.loads(x) for x in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["state"] == "done" for line in lines] == [n != 5 for n in range(9)]
