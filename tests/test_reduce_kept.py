"""Reductions that are broken off, gone on with, and the tests that they write."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_compare import chain
from test_reduce import tried
from vinoir import ir
from vinoir.ir.comparing import keeping
from vinoir.schemas import LimitError, UsageError

#: What becomes of the bytes of a file; None where it is taken away.
Damage = Callable[[bytes], bytes | None]


class Killed(BaseException):
    """The end of a process."""


def logarithm(layers: int = 6) -> ir.Model:
    """Sums in a row, of which at last a logarithm is taken."""
    net = ir.Builder("net")
    x, y = (net.parameter(name, "f32", (2, 8)) for name in "xy")
    for number in range(layers):
        x = net.add("Add", "opset1", [x, y], name=f"add{number}")
    net.result(net.add("Log", "opset1", [x], name="log"), name="z")
    return net.model()


@pytest.mark.parametrize("count", range(1, 16))
def test_killed_at_any_step_it_goes_on(
    count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = [np.full((2, 8), -20, "f4"), np.ones((2, 8), "f4")]
    done = 0

    def ends(right: Any) -> Any:
        def step(*words: Any) -> Any:
            nonlocal done
            done += 1
            if done == count:
                raise Killed
            return right(*words)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "save_samples", ends(keeping.save_samples))
        patch.setattr(os, "replace", ends(os.replace))
        with pytest.raises(Killed):
            ir.reduce(logarithm(), "run", given, output=tmp_path / "out")
    found = ir.reduce(logarithm(), "run", given, output=tmp_path / "out")
    assert found.failure == "NaN"
    assert found.after == 1
    names = ["NOTE.md", "inputs.npz", "reduce.json", "reduced.bin", "reduced.xml",
             "test_reduced.py"]  # fmt: skip
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == names


def test_the_failure_that_was_held_is_insisted_on(tmp_path: Path) -> None:
    given, out = [np.full((2, 8), -20, "f4"), np.ones((2, 8), "f4")], tmp_path / "out"
    ir.reduce(logarithm(), "run", given, output=out)
    state = json.loads((out / "reduce.json").read_text())
    state["failure"] = "IRError Log: another"
    (out / "reduce.json").write_text(json.dumps(state))
    with pytest.raises(UsageError, match=r"another.*now it fails by 'NaN'"):
        ir.reduce(logarithm(), "run", given, output=out)


def deflated(data: bytes) -> bytes:
    """The same arrays, but compressed, and damaged behind the names of the first."""
    packed = io.BytesIO()
    with np.load(io.BytesIO(data)) as held:
        np.savez_compressed(packed, **held)
    damaged = bytearray(packed.getvalue())
    damaged[57:61] = b"\xff" * 4
    return bytes(damaged)


def cut(data: bytes, part: int) -> bytes:
    return data[: len(data) * part // 6]


def overwritten(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xa5" + data[at + 1 :]


def bare(data: bytes) -> bytes:
    """An array that is no archive."""
    file = io.BytesIO()
    np.save(file, np.ones((2, 8), "f4"))
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: None, lambda data: b"", lambda data: b"abc", bare, deflated,
        *(partial(cut, part=part) for part in range(1, 6)),
        *(partial(overwritten, at=at) for at in range(0, 130, 13)),
    ],
)  # fmt: skip
def test_inputs_that_are_damaged_are_told(damage: Damage, tmp_path: Path) -> None:
    given, out = [np.full((2, 8), -20, "f4"), np.ones((2, 8), "f4")], tmp_path / "out"
    ir.reduce(logarithm(1), "run", given, output=out)
    file = out / "inputs.npz"
    left = damage(file.read_bytes())
    file.unlink()
    if left is not None:
        file.write_bytes(left)
    try:
        assert ir.reduce(logarithm(1), "run", given, output=out).after == 1
    except UsageError as error:
        assert "inputs.npz does not hold the inputs of reduced.xml" in str(error)  # noqa: PT017


def test_a_result_that_does_not_fail_any_more_is_named(tmp_path: Path) -> None:
    check, out = tmp_path / "check.py", tmp_path / "out"
    command = f"{sys.executable} {check} {{}}"
    check.write_text("import sys\nsys.exit(1)\n")  # that which fails without a look at the model
    ir.reduce(chain(2), command, output=out)
    check.write_text("")
    with pytest.raises(
        UsageError, match=r"reduced\.xml, which is gone on with, .* any more"
    ) as told:
        ir.reduce(chain(2), command, output=out)
    assert "give another folder, or empty it" in (told.value.hint or "")
    with pytest.raises(UsageError, match="the model does not fail"):
        ir.reduce(chain(2), command, output=tmp_path / "fresh")


def test_the_test_of_a_command_fails_with_whichever_sample_does(tmp_path: Path) -> None:
    check = tmp_path / "check.py"
    check.write_text(
        "import os, sys\nimport numpy as np\n"
        "sys.exit(bool((np.load(os.environ['VINOIR_INPUTS'])['0.0'] > 0).any()))\n"
    )
    shape, out = (1, 4, 8, 8), tmp_path / "out"
    samples = [[np.full(shape, -1, "f4")], [np.ones(shape, "f4")]]
    found = ir.reduce(chain(2), f"{sys.executable} {check} {{}}", samples=samples, output=out)
    assert found.failing == [1]
    assert tried(out).returncode == 1
    check.write_text("")
    assert tried(out).returncode == 0


TEXTS = np.dtypes.StringDType()


@pytest.mark.parametrize(
    ("kind", "wanted", "near", "far"),
    [
        ("f4", [1e-6], [1e-6 * (1 + 1e-5)], [1.1e-6]),
        ("f8", [1e300], [1e300], [-1e300]),
        ("f4", [np.inf, np.nan, 3e38], [np.inf, np.nan, 3e38], [-np.inf, np.nan, 3e38]),
        ("f2", [1, 2], [1 + 2**-10, 2 - 2**-9], [1.1, 2]),
        (ml_dtypes.bfloat16, [1, 2], [1 + 2**-7, 2 - 2**-6], [1.5, 2]),
        ("i8", [2**60], [2**60], [2**60 + 1]),
        ("?", [True, False], [True, False], [True, True]),
        (TEXTS, ["a", "b"], ["a", "b"], ["a", "c"]),
    ],
)
def test_the_test_of_a_program_fails_where_outputs_differ_by_more_than_rounding(
    kind: Any, wanted: list[Any], near: list[Any], far: list[Any]
) -> None:
    from vinoir.ir.comparing.failures import FailsToCompile

    class Stub:
        """Programs that give what they are to."""

        def __init__(self, given: list[Any]) -> None:
            self.given = given

        def run(self, model: ir.Model, sample: Any) -> dict[str, Any]:
            return {"y": np.array(wanted, kind)}

        def compile(self, model: ir.Model) -> Any:
            return lambda sample: {"y": np.array(self.given, kind)}

    lines = "\n".join(FailsToCompile.test)
    exec(lines, {"ir": Stub(near), "np": np, "model": None, "samples": [[]]})
    with pytest.raises(AssertionError, match=r"^y\b"):
        exec(lines, {"ir": Stub(far), "np": np, "model": None, "samples": [[]]})


def test_nan_in_a_type_that_numpy_has_not_is_seen() -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "bf16", (2, 2))
    net.result(net.add("Log", "opset1", [x], name="log"), name="y")
    given = [np.array([[1, 0], [-1, 2]], ml_dtypes.bfloat16)]
    assert ir.reduce(net.model(), "run", given).failure == "NaN"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes")
def test_what_a_command_started_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from vinoir.ir.comparing import reduction

    monkeypatch.setattr(reduction, "_FIRST", 1.0)
    told = tmp_path / "child"
    command = f"sh -c 'sleep 60 & echo $! > {told}; wait'"
    with pytest.raises(LimitError, match="took more than"):
        ir.reduce(chain(1), command, max_seconds=1)
    child = int(told.read_text())
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {child} goes on")
