"""What is no IR at all is said to be what it is, by every verb, with what helps."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main

SAMPLES = Path(__file__).parents[1] / "samples"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 35000\n"


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    said = capsys.readouterr()
    return int(str(ended.value.code)), " ".join((said.out + said.err).split())


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        (POINTER, "a Git LFS pointer", "git lfs pull"),
        (b"hello\n", 'text that begins "hello', "a model is an .xml"),
        (b"hello <b>you</b>\n", 'text that begins "hello', "a model is an .xml"),
        (b"\x3c\xfc\x80\x3f"[1:] * 50, "bytes that are no text", "a model is an .xml"),
        (b"\x80\x3f" * (3 << 20), "nothing in its first 4194304 bytes", "a model is an .xml"),
        (b"<!doctype html>\n<html><p>404<br></html>", "HTML", "download the file itself"),
    ],
)
@pytest.mark.parametrize("verb", ["check", "show", "run"])
def test_a_file_without_an_ir_is_told_by_one_finding(
    content: bytes, what: str, hint: str, verb: str,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "m.xml").write_bytes(content)
    code, told = said_by(capsys, verb, str(tmp_path / "m.xml"))
    assert code == (1 if verb == "check" else 3)
    assert what in told
    assert hint in told
    assert "remove" not in told
    assert [finding.code for finding in ir.check(content)] == ["IR101"]


@pytest.mark.parametrize("begin", ["oops", "name='m' version='11'>", "\ufeff oops"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_damaged_ir_is_still_looked_at(begin: str, encoding: str) -> None:
    rest = '<layers><layer id="0" name="a" type="Parameter" version="opset1"/></layers></net>'
    report = ir.check((begin + rest).encode(encoding))
    assert not any("not XML but" in finding.message for finding in report)


@pytest.mark.parametrize("verb", ["check", "run", "show"])
def test_weights_that_git_did_not_fetch_are_told(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLES / "digits.xml", tmp_path)
    (tmp_path / "digits.bin").write_bytes(POINTER)
    code, told = said_by(capsys, verb, str(tmp_path / "digits.xml"))
    assert code == (1 if verb == "check" else 3)
    assert f".bin is a Git LFS pointer of {len(POINTER)} bytes" in told
    assert "git lfs pull" in told
    assert "another model" not in told


def test_bytes_of_a_pointer_are_no_weights_though_they_suffice(tmp_path: Path) -> None:
    net = ir.Builder("small")
    net.result(net.add("ReLU", "opset1", net.constant(np.ones(2, np.float32))))
    ir.write(net.model(), tmp_path / "m.xml")
    (tmp_path / "m.bin").write_bytes(POINTER)
    assert [finding.code for finding in ir.check(tmp_path / "m.xml")] == ["IR507"]
    with pytest.raises(ir.IRError, match="a Git LFS pointer"):
        ir.run(ir.read(tmp_path / "m.xml"))
