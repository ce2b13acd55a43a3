"""What is said about the project is true: where bugs are reported, what is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from vinoir.ir.cli import report
from vinoir.schemas.version import REPORTS

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_a_bug_of_ours_is_told_where_it_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(LookupError("ours")) == 70
    told = capsys.readouterr().err
    assert "LookupError: ours" in told
    assert REPORTS in told


def test_there_is_one_place_for_reports() -> None:
    page = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    assert REPORTS in page
    # Once the project has an address, it is the same everywhere.
    assert PROJECT.get("urls", {}).get("Issues", REPORTS) == REPORTS


def test_python_of_the_metadata_is_python_of_the_readme() -> None:
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {least} or later" in (ROOT / "README.md").read_text("utf-8")
    assert f"Programming Language :: Python :: {least}" in PROJECT["classifiers"]


def test_every_package_is_installed() -> None:
    """A folder that pyproject.toml forgets would be missing from the wheel, and nowhere else."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for top in ("ir", "layers", "schemas")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert set(packages["package-dir"].values()) == folders
    assert set(packages["packages"]) == {f"vinoir.{name.replace('/', '.')}" for name in folders}
