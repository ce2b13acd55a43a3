"""Where the tests find things: the package from a bare checkout, and the shared data beside it."""

from __future__ import annotations

import importlib.util
import sys
import types
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"

if importlib.util.find_spec("vinoir") is None:
    namespace = types.ModuleType("vinoir")
    namespace.__path__ = [str(ROOT)]
    sys.modules["vinoir"] = namespace


def shared(name: str) -> Path:
    """A folder of the shared test data; skips the test where it is not there."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"the shared test data {name}/ is not beside the checkout")
    return folder


def witness(name: str = "*") -> list[Path]:
    """The IR files that OpenVINO wrote, by operation version; empty where they are not there."""
    return sorted((SHARED / "witness").glob(f"{name}.xml"))


@pytest.fixture(autouse=True)
def programs_in_earnest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the tests of programs work is shared, however little, and each pass is verified."""
    if request.path.name.startswith("test_program"):
        from vinoir.ir.engine.passes import optimize
        from vinoir.ir.engine.plan.nodes import Plan

        monkeypatch.setattr("vinoir.ir.engine.program.SMALL", 0)
        verified = partial(optimize, after_each=Plan.verify)
        monkeypatch.setattr("vinoir.ir.engine.program.optimize", verified)
