"""A writer is stopped at every step it takes; the old pair or the new one must load."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError

#: What the writer asks of the system.
STEPS = ("open", "write", "fsync", "replace", "unlink", "chmod", "ftruncate", "lseek", "close")


def model(*values: float, name: str = "m") -> ir.Model:
    net = ir.Builder(name)
    x = net.parameter("x", "f32", "1")
    for index, value in enumerate(values):
        w = net.constant(np.full(3000 + index, value, np.float32), name=f"w{index}")
        total = net.add("Add", "opset1", [x, w], name=f"y{index}", outputs=[w.tensor])
        net.result(total, name=f"r{index}")
    return net.model()


def content(pair: Path) -> dict[str, list[float]]:
    """The layers of the pair that is there, and the values of its constants."""
    found = ir.read(pair)
    return {
        x.name: sorted(set(x.value.ravel().tolist())) if x.is_constant else []
        for x in found.layers
    }


def weights(pair: Path) -> dict[str, list[float]]:
    return {name: values for name, values in content(pair).items() if values}


def grown(pair: Path) -> ir.Model:
    changed = ir.read(pair)
    changed.layer("w0").value = np.full(3000, 7, np.float32)
    return changed


def smaller(pair: Path) -> ir.Model:
    """The .bin of this one begins the old one's."""
    return model(1.0)


def same_weights(pair: Path) -> ir.Model:
    changed = ir.read(pair)
    changed.layer("y0").name = "sum"
    return changed


def other(pair: Path) -> ir.Model:
    return model(5.0, 6.0, 9.0, name="other")


def other_and_shorter(pair: Path) -> ir.Model:
    return model(5.0)


CHANGES = [grown, smaller, same_weights, other, other_and_shorter]


def counted(monkeypatch: pytest.MonkeyPatch, at: int | None, act: Callable[[], Any]) -> list[str]:
    """Let the system's calls pass, and act instead of (or, for a kill, before) one of them."""
    seen: list[str] = []
    for name in STEPS:
        real = getattr(os, name)

        def call(*args: Any, _name: str = name, _real: Any = real, **kwargs: Any) -> Any:
            seen.append(_name)
            if at is not None and len(seen) - 1 == at:
                if _name == "close":  # a file is closed even where that fails
                    _real(*args)
                act()
            return _real(*args, **kwargs)

        monkeypatch.setattr(os, name, call)
    return seen


def put(pair: Path, what: ir.Model) -> None:
    """A pair in new files, without the writer under test."""
    xml, weights = ir.dumps(what)
    for path, data in ((pair, xml), (pair.with_suffix(".bin"), weights)):
        path.unlink(missing_ok=True)
        path.write_bytes(data)


def steps_of(change: Callable[[Path], ir.Model], tmp_path: Path) -> int:
    pair = tmp_path / "count" / "m.xml"
    ir.write(model(1.0, 2.0), pair)
    new = change(pair)
    with pytest.MonkeyPatch.context() as patch:
        seen = counted(patch, None, lambda: None)
        ir.write(new, pair)
    return len(seen)


@pytest.mark.parametrize("change", CHANGES)
def test_killed_at_every_step(change: Callable[[Path], ir.Model], tmp_path: Path) -> None:
    count = steps_of(change, tmp_path)
    assert count > 5
    new_content = content(tmp_path / "count" / "m.xml")
    pair = tmp_path / "m.xml"
    states = set()
    for step in range(count):
        put(pair, model(1.0, 2.0))
        old_content = content(pair)
        new = change(pair)
        child = os.fork()
        if child == 0:
            try:
                with pytest.MonkeyPatch.context() as patch:
                    counted(patch, step, lambda: os._exit(9))
                    ir.write(new, pair)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        found = content(pair)
        assert found in (old_content, new_content), f"step {step}"
        states.add(found == new_content)
        # What died leaves nothing behind that the next write does not remove.
        ir.write(new, pair)
        assert content(pair) == new_content
        assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["m.bin", "m.xml"]
        assert (pair.read_bytes(), pair.with_suffix(".bin").read_bytes()) == ir.dumps(new)
    assert False in states


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("code", [errno.ENOSPC])
def test_error_at_every_step(
    change: Callable[[Path], ir.Model], code: int, tmp_path: Path
) -> None:
    count = steps_of(change, tmp_path)
    new_content = content(tmp_path / "count" / "m.xml")
    pair = tmp_path / "m.xml"
    for step in range(count):
        put(pair, model(1.0, 2.0))
        old, old_content = ir.read(pair), content(pair)
        new = change(pair)

        def fail() -> None:
            raise OSError(code, os.strerror(code))

        said = None
        with pytest.MonkeyPatch.context() as patch:
            counted(patch, step, fail)
            try:
                ir.write(new, pair)
            except IRError as error:
                said = str(error)
        failed = said is not None
        assert said is None or os.strerror(code) in said
        found = content(pair)
        assert found in ((old_content, new_content) if failed else (new_content,)), f"step {step}"
        assert old.layer("w0").value[0] == 1  # what was mapped is as it was


def test_full_disk_leaves_the_old_pair_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = tmp_path / "m.xml"
    ir.write(model(1.0, 2.0), pair)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    real, room = os.write, 20_000

    def write(descriptor: int, data: Any) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = real(descriptor, bytes(data)[: min(room, 1000)])
        room -= done
        return done

    for change in CHANGES:
        new = change(pair)
        new.layer(0).name = "a" * 60_000
        room = 20_000
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            with pytest.raises(IRError, match="No space left"):
                ir.write(new, pair)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_over_itself_while_mapped(tmp_path: Path) -> None:
    pair = tmp_path / "m.xml"
    ir.write(model(1.0, 2.0), pair)
    read = ir.read(pair)
    view = read.layer("w1").value
    for value in (3, 4, 5):
        read.layer("w0").value = np.full(3000, value, np.float32)
        ir.write(read, pair)
        assert weights(pair) == {"w0": [value], "w1": [2]}
        assert view[0] == 2
    ir.write(read, pair, repack=True)
    assert pair.with_suffix(".bin").stat().st_size == 4 * 6001
    assert view[0] == 2


def test_a_constant_nobody_reads_with_an_offset_nobody_understands(tmp_path: Path) -> None:
    """OpenVINO reads such a file; over another pair the offsets of the others are moved."""
    xml, data = ir.dumps(model(1.0))
    dead = (
        b'<layer id="99" name="dead" type="Const" version="opset1"><data element_type="f32" '
        b'shape="1" offset="x" size="4"/><output><port id="0" precision="FP32"><dim>1</dim>'
        b"</port></output></layer></layers>"
    )
    read = ir.loads(xml.replace(b"</layers>", dead), data)
    pair = tmp_path / "m.xml"
    ir.write(model(2.0, 3.0), pair)
    ir.write(read, pair)
    assert ir.read(pair).layer("w0").value[0] == 1
    assert ir.read(pair).layer("dead").data["offset"] == "x"


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    stored = tmp_path / "store" / "m.xml"
    ir.write(model(1.0), stored)
    kept = stored.with_suffix(".bin").read_bytes()
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").symlink_to(stored.with_suffix(suffix))
    ir.write(grown(tmp_path / "m.xml"), tmp_path / "m.xml")
    assert stored.with_suffix(".bin").read_bytes() == kept
    assert weights(tmp_path / "m.xml") == {"w0": [7]}


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder.xml").mkdir()
    with pytest.raises(IRError, match="not an ordinary file"):
        ir.write(model(1.0), tmp_path / "folder.xml")
    with pytest.raises(IRError, match="both the document and its weights"):
        ir.write(model(1.0), tmp_path / "m.bin")
    (tmp_path / "plain").write_text("x")
    with pytest.raises(IRError, match="cannot be written"):
        ir.write(model(1.0), tmp_path / "plain" / "m.xml")


def test_stages_of_an_exchange_load_in_openvino(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ov = pytest.importorskip("openvino")
    pair = tmp_path / "m.xml"
    ir.write(model(1.0, 2.0), pair)
    seen, real = [], os.replace

    def replace(one: Any, two: Any) -> None:
        real(one, two)
        read = ov.Core().read_model(pair.read_bytes(), ov.Tensor(
            np.frombuffer(pair.with_suffix(".bin").read_bytes(), np.uint8)
        ))  # fmt: skip
        seen.append(
            sorted(
                float(op.data.ravel()[0])
                for op in read.get_ops()
                if op.type_info.name == "Constant"
            )
        )

    monkeypatch.setattr(os, "replace", replace)
    ir.write(other(pair), pair)
    assert seen == [[1, 2], *[[5, 6, 9]] * 4]
