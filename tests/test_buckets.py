"""Models in buckets: against servers of S3 and of Google's storage on this machine."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.fleet.selection import select

SAMPLES = Path(__file__).parents[1] / "samples"
XML, BIN = ((SAMPLES / name).read_bytes() for name in ("digits.xml", "digits.bin"))
SEVEN = np.load(SAMPLES / "seven.npy")
#: Far more than a check looks at.
LARGE = 64 << 20

#: What a kind of bucket is tried with: a client, and a server.
NEEDED = {
    "s3": ("fsspec", "s3fs", "moto.server"),
    "gcs": ("fsspec", "gcsfs", "gcp_storage_emulator.server"),
}


def is_there(module: str) -> bool:
    parent = module.rpartition(".")[0]
    return (not parent or is_there(parent)) and importlib.util.find_spec(module) is not None


AT_HAND = [kind for kind, modules in NEEDED.items() if all(map(is_there, modules))]
if not AT_HAND:
    pytest.skip("neither s3fs and moto nor gcsfs and its emulator", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")  # those of the servers are not ours


class Bucket:
    """A bucket of a server, and how many bytes of files it was asked for."""

    def __init__(self, url: str, files: Any) -> None:
        self.url, self.files = url, files
        self.sent = 0

    def put(self, name: str, data: bytes) -> str:
        self.files.pipe_file(f"{self.url}/{name}", data)
        return f"{self.url}/{name}"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    fsspec, s3fs, moto = map(importlib.import_module, NEEDED["s3"])
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "x", "secret": "y"}
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    files.makedirs("s3://zoo", exist_ok=True)  # what it holds outlives the server
    bucket = Bucket("s3://zoo", files)
    asked = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *args: Any, **given: Any) -> Any:
        answer = await asked(self, method, *args, **given)
        if method == "get_object":
            bucket.sent += answer["ContentLength"]
        return answer

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    yield bucket
    server.stop()


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    # Else it asks Google itself of which kind a bucket is.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    fsspec, gcsfs, emulator = map(importlib.import_module, NEEDED["gcs"])
    server = emulator.create_server("127.0.0.1", 0, in_memory=True, default_bucket="zoo")
    server.start()
    address = f"http://127.0.0.1:{server._api._httpd.server_port}"
    for name in ("gs", "gcs"):
        options = {"endpoint_url": address, "token": "anon"}
        monkeypatch.setitem(fsspec.config.conf, name, options)
    bucket = Bucket("gs://zoo", fsspec.filesystem("gcs", skip_instance_cache=True))
    asked = gcsfs.GCSFileSystem._cat_file

    async def counted(self: Any, *args: Any, **given: Any) -> bytes:
        data: bytes = await asked(self, *args, **given)
        bucket.sent += len(data)
        return data

    monkeypatch.setattr(gcsfs.GCSFileSystem, "_cat_file", counted)
    yield bucket
    server.stop()


@pytest.fixture(params=AT_HAND)
def bucket(request: pytest.FixtureRequest) -> Bucket:
    found: Bucket = request.getfixturevalue(request.param)
    return found


def test_a_model_in_a_bucket(bucket: Bucket) -> None:
    url = bucket.put("a/digits.xml", XML)
    bucket.put("a/digits.bin", BIN + bytes(LARGE))
    bucket.sent = 0
    assert not ir.check(url).errors
    assert len(XML) < bucket.sent < LARGE // 100
    expected = ir.run(ir.read(SAMPLES / "digits.xml"), [SEVEN])[0]
    np.testing.assert_array_equal(ir.run(ir.read(url), [SEVEN])[0], expected)
    assert bucket.sent < LARGE // 100
    assert select([f"{bucket.url}/**/*.xml"]) == [url]


def test_what_is_not_there_and_what_has_changed(bucket: Bucket) -> None:
    url = bucket.put("digits.xml", XML)
    bucket.put("digits.bin", BIN + bytes(1 << 20))
    for missing in (f"{bucket.url}/none.xml", f"{bucket.url}-none/digits.xml"):
        with pytest.raises(ir.UnreadableError, match="no such file"):
            ir.read(missing)
    with pytest.raises(ir.UsageError, match="no file is like"):
        select([f"{bucket.url}/none/*.xml"])
    weights = ir.read(url).weights
    assert weights is not None
    bucket.put("digits.bin", bytes(len(BIN) + (1 << 20)))
    with pytest.raises(ir.UnreadableError, match="changed while it was read"):
        weights.view(500_000, 10)


def test_what_is_not_whole_is_asked_for_again(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vinoir.ir.storage.remote.PAUSE", 0.0)
    url = bucket.put("digits.xml", XML)
    bucket.put("digits.bin", BIN + bytes(1 << 20))
    kind = type(bucket.files)
    whole, calls = kind._cat_file, 0

    async def torn(self: Any, *args: Any, **given: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls % 3 == 1:
            raise ConnectionResetError("gone")
        data: bytes = await whole(self, *args, **given)
        return data[:-1] if calls % 3 == 2 else data

    monkeypatch.setattr(kind, "_cat_file", torn)
    expected = ir.run(ir.read(SAMPLES / "digits.xml"), [SEVEN])[0]
    np.testing.assert_array_equal(ir.run(ir.read(url), [SEVEN])[0], expected)
    assert calls >= 6
