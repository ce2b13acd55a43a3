"""Models behind URLs: only what is asked for is fetched, and nothing wrong is taken for right."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from older.case import draw
from older.files import OldFile
from range_server import Content, Server, serving
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.fleet import select
from vinoir.ir.storage import beside, is_url

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

SAMPLES = Path(__file__).parents[1] / "samples"
XML, BIN = (SAMPLES / "digits.xml").read_bytes(), (SAMPLES / "digits.bin").read_bytes()
SEVEN = np.load(SAMPLES / "seven.npy")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        server.files["/digits.xml"] = Content(XML)
        server.files["/digits.bin"] = Content(BIN)
        yield server


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.storage.remote.PAUSE", 0.001)


def wanted() -> np.ndarray:
    return ir.run(ir.read(SAMPLES / "digits.xml"), [SEVEN])[0]


def test_what_is_a_url() -> None:
    for url in ("s3://b/m.xml", "https://h/m.xml", "zip://m.xml::s3://b/z.zip", "memory://m.xml"):
        assert is_url(url)
    for path in ("m.xml", "/a/m.xml", "C:\\m.xml", "a:b.xml", "://x", ""):
        assert not is_url(path)
    assert beside("https://h/m.xml?key=a.b") == "https://h/m.bin?key=a.b"
    assert beside("zip://a/m.xml::https://h/z.xml") == "zip://a/m.bin::https://h/z.xml"
    assert beside("a.b/m") == "a.b/m.bin"
    assert beside("simplecache::s3://b/m.xml") == "simplecache::s3://b/m.bin"
    assert beside("filecache::https://h/m.xml?k=a.b") == "filecache::https://h/m.bin?k=a.b"
    chain = "simplecache::zip://a/m.{}::https://h/z.xml"
    assert beside(chain.format("xml")) == chain.format("bin")


def test_a_model_is_read_from_a_server(server: Server) -> None:
    url = server.url("/digits.xml")
    model = ir.read(url)
    assert server.sent["/digits.bin"] <= 1 << 16
    np.testing.assert_array_equal(ir.run(model, [SEVEN])[0], wanted())
    assert ir.check(url).to_json()["findings"] == [
        {**row, "file": url} for row in ir.check(SAMPLES / "digits.xml").to_json()["findings"]
    ]
    assert ir.read(server.url("/digits.bin")).name == model.name
    assert ir.dumps(model) == (XML, BIN)


def test_a_pickled_model_refers_to_its_url(server: Server) -> None:
    model = ir.read(server.url("/digits.xml"))
    data = pickle.dumps(model)
    assert len(data) < 2 * len(XML)
    np.testing.assert_array_equal(ir.run(pickle.loads(data), [SEVEN])[0], wanted())
    server.files["/digits.bin"].etag = '"other"'
    with pytest.raises(ir.UnreadableError, match="not what it was"):
        pickle.loads(data)


def test_missing_files_are_told_as_on_the_disk(server: Server) -> None:
    with pytest.raises(ir.UnreadableError, match="no such file"):
        ir.read(server.url("/nothing.xml"))
    del server.files["/digits.bin"]
    with pytest.raises(ir.IRError, match=r"there is no \.bin"):
        _ = ir.run(ir.read(server.url("/digits.xml")), [SEVEN])
    assert {f.code for f in ir.check(server.url("/digits.xml")).errors} == {"IR508"}
    with pytest.raises(ir.UnreadableError):
        ir.read("http://127.0.0.1:9/m.xml")


def test_ten_gigabytes_are_checked_with_a_hundredth_of_them(server: Server) -> None:
    builder = ir.Builder("large")
    x = builder.parameter("x", "f32", [1, 16])
    small = builder.constant(np.ones((16, 16), np.float32))
    builder.result(builder.add("MatMul", "opset1", [x, small]))
    xml, bin_ = ir.dumps(builder.model())
    # Three hundred further constants of 32 MiB, which nobody holds.
    each, count = 32 << 20, 300
    layers, offset = [], len(bin_)
    for number in range(count):
        layers.append(
            f'<layer id="{1000 + number}" name="w{number}" type="Const" version="opset1">'
            f'<data element_type="f32" shape="{each // 4}" offset="{offset}" size="{each}"/>'
            f'<output><port id="0" precision="FP32"><dim>{each // 4}</dim></port></output></layer>'
        )
        offset += each
    text = xml.replace(b"</layers>", "".join(layers).encode() + b"</layers>")
    server.files["/large.xml"] = Content(text)
    server.files["/large.bin"] = Content(
        size=offset, read=lambda a, b: bin_[a:b] + bytes(b - max(a, len(bin_)))
    )
    assert offset > 10_000_000_000
    report = ir.check(server.url("/large.xml"))
    assert not report.errors, str(report)
    ir.infer(ir.read(server.url("/large.xml")))
    assert sum(server.sent.values()) < offset // 1000
    # What is wrong far behind is found all the same.
    server.files["/large.bin"].size = offset - 1
    assert "IR516" in {finding.code for finding in ir.check(server.url("/large.xml")).findings}


def test_weights_of_old_files_are_not_fetched_to_read_them(server: Server) -> None:
    file = OldFile(5)
    spot = file.input((1, 64, 8, 8), "x")
    for _ in range(20):
        data = {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "output": 64}
        blobs = {"weights": draw(64, 64, 3, 3), "biases": draw(64)}
        spot = file.add("Convolution", [spot], [(1, 64, 8, 8)], data, blobs)
    server.files["/old.xml"], server.files["/old.bin"] = Content(file.xml), Content(file.bin)
    model = ir.read(server.url("/old.xml"))
    assert (server.asked["/old.bin"], server.sent["/old.bin"]) == (1, 1 << 16)
    given = draw(1, 64, 8, 8)
    expected = ir.run(ir.loads(file.xml, file.bin), [given])[0]
    np.testing.assert_array_equal(ir.run(model, [given])[0], expected)


@pytest.mark.parametrize("fault", ["drop", "short", "other", "long", "refuse"])
def test_what_is_not_whole_is_asked_for_again(server: Server, fault: str) -> None:
    model = ir.read(server.url("/digits.xml"))
    server.faults = [fault, "", fault, fault, fault]
    np.testing.assert_array_equal(ir.run(model, [SEVEN])[0], wanted())
    server.faults = [fault] * 1000
    with pytest.raises(ir.UnreadableError, match="cannot be fetched, 5 times"):
        ir.run(ir.read(server.url("/digits.xml")), [SEVEN])


def test_a_file_that_changes_is_refused(server: Server) -> None:
    server.files["/digits.bin"] = Content(BIN + bytes(1 << 20))
    model = ir.read(server.url("/digits.xml"))
    assert model.weights is not None
    server.faults = ["", "change"]
    model.weights.view(100_000, 10)
    with pytest.raises(ir.UnreadableError, match=r'changed while it was read.*"second"'):
        model.weights.view(500_000, 10)
    server.files["/digits.bin"] = Content(BIN + bytes(1 << 19))
    with pytest.raises(ir.UnreadableError, match="changed while it was read"):
        model.weights.view(300_000, 10)


def test_a_server_without_ranges_gives_small_files_whole(server: Server) -> None:
    server.ranges = False
    model = ir.read(server.url("/digits.xml"))
    np.testing.assert_array_equal(ir.run(model, [SEVEN])[0], wanted())
    assert server.asked["/digits.bin"] == 1
    server.files["/digits.bin"] = Content(size=10**10)
    with pytest.raises(ir.UnreadableError, match="no ranges"):
        ir.read(server.url("/digits.xml"))


def test_what_is_kept_of_the_weights_is_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vinoir.ir.storage.remote.KEPT_BLOCKS", 4)
    data = np.random.default_rng(0).integers(0, 256, 3_000_000, np.uint8).tobytes()
    server.files["/digits.bin"] = Content(BIN + data)
    weights = ir.read(server.url("/digits.xml")).weights
    assert weights is not None
    rng = np.random.default_rng(1)
    for _ in range(100):
        begin = int(rng.integers(0, weights.size))
        size = int(rng.integers(0, min(weights.size - begin, 200_000) + 1))
        assert weights.view(begin, size).tobytes() == (BIN + data)[begin : begin + size]
    assert len(weights._blocks) <= 4
    with pytest.raises(ir.IRError, match="missing"):
        weights.view(weights.size - 1, 2)


def test_other_file_systems(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/fleet/digits.xml", XML)
    memory.pipe("/fleet/digits.bin", BIN)
    np.testing.assert_array_equal(
        ir.run(ir.read("memory://fleet/digits.xml"), [SEVEN])[0], wanted()
    )
    with zipfile.ZipFile(tmp_path / "zoo.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/digits.xml", XML)
        archive.writestr("in/digits.bin", BIN)
    url = f"zip://in/digits.xml::file://{tmp_path}/zoo.zip"
    np.testing.assert_array_equal(ir.run(ir.read(url), [SEVEN])[0], wanted())
    with pytest.raises(ir.UnreadableError, match="no such file"):
        ir.read("memory://fleet/none.xml")
    with pytest.raises(ir.IRError):
        ir.read("nowhere://x.xml")
    memory.pipe("/fleet/digits.bin", BIN + bytes(1 << 18))
    weights = ir.read("memory://fleet/digits.xml").weights
    assert weights is not None
    memory.pipe("/fleet/digits.bin", bytes(len(BIN) + (1 << 18)))
    with pytest.raises(ir.UnreadableError, match="changed"):
        weights.view(200_000, 10)


def test_verbs_take_urls(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["show"], ["check"], ["infer"], ["run"], ["check", "--jobs", "1"]):
        with pytest.raises(SystemExit) as left:
            main([*words, server.url("/digits.xml")])
        assert not left.value.code, words
    assert "digits" in capsys.readouterr().out


def test_without_fsspec_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from vinoir import ir\n"
        "try: ir.read('s3://bucket/model.xml')\n"
        "except ir.UsageError as error: print(error)\n"
        f"ir.read({str(SAMPLES / 'digits.xml')!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 'pip install "vinoir[fleet]"' in done.stdout


def test_onnx_models_are_read_and_nothing_is_written_to_urls(server: Server) -> None:
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    server.files["/m.onnx"] = Content(model.SerializeToString())
    found = ir.from_onnx(server.url("/m.onnx"))
    np.testing.assert_array_equal(ir.run(found, [np.array([-1, 1], np.float32)])[0], [0, 1])
    with pytest.raises(ir.UsageError, match="written to files"):
        ir.write(found, server.url("/m.xml"))


def test_patterns_of_urls() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("a/m.xml", "a/b/n.xml", "a/b/n.bin"):
        memory.pipe(f"/zoo/{name}", XML)
    urls = ["memory://zoo/a/b/n.xml", "memory://zoo/a/m.xml"]
    assert [url.replace(":///", "://") for url in select(["memory://zoo/**/*.xml"])] == urls


@pytest.mark.parametrize("cache", ["simplecache", "filecache"])
def test_the_weights_beside_a_cached_model_are_found(cache: str) -> None:
    url = f"{cache}::file://{SAMPLES}/digits.xml"
    assert not ir.check(url).errors
    np.testing.assert_array_equal(ir.run(ir.read(url), [SEVEN])[0], wanted())


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """Models in a folder that is zipped, too."""
    for name in ("a/m.xml", "a/b/n.xml", "a/b/n.bin", "a/.h/o.xml", "c.v2/p.XML", "c.v2/p.bin"):
        path = tmp_path / "zoo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(XML if name.lower().endswith("xml") else BIN)
    with zipfile.ZipFile(tmp_path / "zoo.zip", "w") as archive:
        for path in sorted((tmp_path / "zoo").rglob("*.*")):
            if path.is_file():
                archive.write(path, path.relative_to(tmp_path))
    return tmp_path


def test_folders_of_urls(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for start, end in (
        (f"file://{zoo}/", ""),
        ("zip://", f"::file://{zoo}/zoo.zip"),
        (f"simplecache::file://{zoo}/", ""),
        ("simplecache::zip://", f"::file://{zoo}/zoo.zip"),
    ):
        inner = [f"{start}zoo/a/{name}.xml{end}" for name in (".h/o", "b/n", "m")]
        other = [f"{start}zoo/c.v2/p.XML{end}"]
        assert select([f"{start}zoo/a{end}"]) == inner
        assert select([f"{start}zoo/c.v2{end}"]) == other
        assert select([f"{start}zoo{end}"]) == inner + other
        assert select([f"{start}zoo/**/*.xml{end}"]) == inner
        assert select([f"{start}zoo/a/*{end}"]) == inner[2:]
        assert select(inner[:1] + other) == inner[:1] + other
        with pytest.raises(ir.UsageError, match=r"a folder without \.onnx files"):
            select([f"{start}zoo{end}"], ".onnx")
        with pytest.raises(SystemExit) as left:
            main(["check", f"{start}zoo/c.v2{end}", "--json"])
        assert not left.value.code
        assert f"{start}zoo/c.v2/p.XML{end}" in capsys.readouterr().out


def test_a_folder_behind_a_url_is_no_model(zoo: Path) -> None:
    for url in (f"file://{zoo}/zoo", f"zip://zoo/a::file://{zoo}/zoo.zip", "memory://fleet"):
        fsspec.filesystem("memory").pipe("/fleet/digits.xml", XML)
        with pytest.raises(ir.UnreadableError, match="a folder, no file"):
            ir.read(url)


def test_a_file_behind_a_url_is_not_asked_whether_it_is_a_folder(server: Server) -> None:
    for url in (server.url("/digits.xml"), server.url("/m"), "file:///nowhere/m", "nowhere://x"):
        assert select([url]) == [url]
    assert not server.asked


def test_without_credentials_that_is_said_at_once() -> None:
    class NoCredentialsError(Exception):
        pass

    from vinoir.ir.storage import remote

    asked = 0

    class Closed(remote.RemoteFile):
        def _ask(self, begin: int, end: int) -> Any:
            nonlocal asked
            asked += 1
            raise NoCredentialsError("unable to locate them")

    with pytest.raises(ir.UnreadableError, match="may not be read: unable to locate them"):
        Closed("memory://x.xml")
    assert asked == 1
