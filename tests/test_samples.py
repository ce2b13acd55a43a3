"""The samples do what they say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLES))


def sample(name: str) -> object:
    sys.modules.pop(name, None)
    return importlib.import_module(name)


@pytest.mark.parametrize("digit", range(10))
def test_every_digit_is_recognised(digit: int, capsys: pytest.CaptureFixture[str]) -> None:
    sample("recognise").main(digit)
    assert capsys.readouterr().out.rstrip().endswith(f"it is a {digit}")


def test_a_language_model_goes_on_from_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    sample("language_model").main()
    told = dict(line.split("|") for line in capsys.readouterr().out.splitlines() if "|" in line)
    assert told["goes on:      a"] == told["loads, again: a"] != told["begins anew:  a"]


def test_shapes_tells_of_symbols_and_of_what_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sample("shapes").main()
    out = capsys.readouterr().out
    assert "f32[N,12,8,8]" in out
    assert "layer" in out.rsplit("\n\n", 1)[1]


def test_an_operation_of_ones_own_is_read_inferred_and_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = sample("own_operation")
    try:
        own.main()
    finally:
        ir_ops = importlib.import_module("vinoir.layers").Op
        del ir_ops.registry["Leaky", 1]
        importlib.import_module("vinoir.layers.base")._versions.cache_clear()
    out = capsys.readouterr().out
    assert 'type="Leaky" version="extension"' in out
    assert "[[-1.  -0.5  0.   3. ]]" in out


def test_the_shipped_model_reads_noisy_digits() -> None:
    images, digits = sample("make_digits").drawn(200, np.random.default_rng(5))
    model = ir.read(SAMPLES / "digits.xml")
    program = ir.compile(model)
    found = np.concatenate([program([batch])[0] for batch in np.split(images, 4)]).argmax(1)
    assert (found == digits).mean() > 0.95


def test_a_rebuilt_model_is_as_good(tmp_path: Path) -> None:
    maker = sample("make_digits")
    maker.main(tmp_path)
    again = ir.read(tmp_path / "digits.xml")
    for digit in range(10):
        assert ir.run(again, [maker.draw(digit)])[0].argmax() == digit


def test_a_zoo_is_checked_into_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("digits.xml", "digits.bin"):
        (tmp_path / name).write_bytes((SAMPLES / name).read_bytes())
    (tmp_path / "half.xml").write_bytes((SAMPLES / "digits.xml").read_bytes()[:3000])
    journal = str(tmp_path / "journal.jsonl")
    for _ in range(2):
        sample("fleet").main([str(tmp_path)], jobs=1, journal=journal)
        out = capsys.readouterr().out.splitlines()
        assert len(out) == 4
        assert "half.xml" in out[1]
        assert out[-1] == "2 models, 1 of them wrong"


def test_an_array_goes_through_a_model_in_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dask.array")
    sample("batch").main(200)
    out = capsys.readouterr().out
    assert out.startswith("200 pictures in 4 blocks")
    assert float(out.split(": ")[1].partition("%")[0]) > 95


def test_the_readme_lists_the_operations_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vinoir.ir.cli import main

    with pytest.raises(SystemExit):
        main(["ops", "--format", "markdown"])
    readme = (SAMPLES.parent / "README.md").read_text("utf-8")
    assert capsys.readouterr().out.strip() in readme, "run: vinoir ops --format markdown"
