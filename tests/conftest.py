"""Where the tests find things: the package from a bare checkout, and the shared data beside it."""

from __future__ import annotations

import importlib.util
import sys
import types
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
def shared_however_small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of the tests of programs share their work, however little there is."""
    if request.path.name.startswith("test_program"):
        monkeypatch.setattr("vinoir.ir.engine.program.SMALL", 0)
