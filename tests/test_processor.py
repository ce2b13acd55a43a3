"""Which processor this is, by what systems tell of it, and how powers are made on each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.kernels import attention, processor

LINUX = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: 2\nmodel name\t: family 7\n"
WINDOWS = "AMD64 Family {1} Model 68 Stepping 0, {0}"


@pytest.mark.parametrize("system", [LINUX, WINDOWS])
@pytest.mark.parametrize(
    ("maker", "family", "found"),
    [("AuthenticAMD", 26, 26), ("AuthenticAMD", 25, 25), ("GenuineIntel", 26, 0)],
)
def test_families_of_processors(system: str, maker: str, family: int, found: int) -> None:
    assert processor.family_of_amd(system.format(maker, family)) == found


@pytest.mark.parametrize("told", ["", "CPU architecture: 8\n", "AuthenticAMD", "cpu family: 26"])
def test_processors_that_tell_nothing_of_it(told: str) -> None:
    assert processor.family_of_amd(told) == 0


def test_what_is_told_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(LINUX.format("AuthenticAMD", 26) * 100)
    monkeypatch.setattr(processor, "TOLD", file)
    assert processor.is_zen_5.__wrapped__()
    file.unlink()
    monkeypatch.setenv("PROCESSOR_IDENTIFIER", WINDOWS.format("AuthenticAMD", 25))
    assert not processor.is_zen_5.__wrapped__()
    monkeypatch.delenv("PROCESSOR_IDENTIFIER")
    assert not processor.is_zen_5.__wrapped__()


@pytest.mark.parametrize("quick", [True, False])
def test_attention_by_powers_of_two_or_of_e(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "QUICK_POWERS", quick)
    net = ir.Builder()
    ends = [net.parameter(name, "f32", (2, 3, 70, 16)) for name in "qkv"]
    net.result(net.add("ScaledDotProductAttention", "opset13", ends, causal=False), name="y")
    model, rng = net.model(), np.random.default_rng(5)
    given = [rng.standard_normal((2, 3, 70, 16)).astype("f4") for _ in ends]
    wanted = ir.run(model, given)["y"]
    np.testing.assert_allclose(ir.compile(model)(given)["y"], wanted, atol=2e-6, strict=True)
