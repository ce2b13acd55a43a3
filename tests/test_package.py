"""What is said about the project is true: where bugs are reported, what is installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import vinoir
from vinoir.ir.cli import report
from vinoir.schemas.version import REPORTS, VERSION

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_a_bug_of_ours_is_told_where_it_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(LookupError("ours")) == 70
    told = capsys.readouterr().err
    assert "LookupError: ours" in told
    assert REPORTS in told


def test_there_is_one_place_for_reports() -> None:
    page = " ".join((ROOT / ".github" / "SECURITY.md").read_text("utf-8").split())
    assert REPORTS in page
    # Once the project has an address, it is the same everywhere.
    assert PROJECT.get("urls", {}).get("Issues", REPORTS) == REPORTS


def test_python_of_the_metadata_is_python_of_the_readme() -> None:
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {least} or later" in (ROOT / "README.md").read_text("utf-8")
    assert f"Programming Language :: Python :: {least}" in PROJECT["classifiers"]


def test_every_file_is_installed() -> None:
    """A data file that pyproject.toml forgets would be missing from the wheel alone."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = (name.removeprefix("vinoir.").replace(".", "/") for name in tool["packages"])
    named = {ROOT / ("ir/package" if name == "vinoir" else name) for name in folders}
    held = {path for folder in named for path in folder.glob("*.py")}
    for folder in named:
        held.update(path for row in tool["package-data"]["*"] for path in folder.glob(row))
    there = {
        path
        for top in ("ir", "layers", "schemas")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there <= held


def test_the_package_itself_tells_its_version_and_has_its_folders() -> None:
    assert vinoir.__version__ == VERSION
    assert dir(vinoir) == ["__version__", "ir", "layers", "schemas"]
    assert all(getattr(vinoir, name) is not None for name in dir(vinoir))
    with pytest.raises(AttributeError, match="no attribute 'irr'"):
        _ = vinoir.irr


@pytest.mark.parametrize("module", ["vinoir", "vinoir.ir"])
def test_the_package_is_the_command_line(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"vinoir, version {VERSION}\n"
