"""The walls of the house: imports go one way, files stay short, the top level is the card's."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What each folder may import from.
BELOW = {"schemas": set(), "layers": {"schemas"}, "ir": {"layers", "schemas"}}
SOURCES = [path for folder in BELOW for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            assert not any(name.split(".")[0] in {"vinoir", *BELOW} for name in names), names
        if isinstance(node, ast.ImportFrom):
            if node.level == 0:
                assert (node.module or "").split(".")[0] not in {"vinoir", *BELOW}
                continue
            # Where the relative import leads, seen from the root.
            place = [*own[: len(own) - node.level], *(node.module or "").split(".")]
            heads = [place[0]] if place[0] else [alias.name for alias in node.names]
            for head in heads:
                assert head == own[0] or head in BELOW[own[0]], f"line {node.lineno}: {head}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 600


def test_top_level_is_the_cards() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    folders = {line.split("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    assert {f for f in folders if not f.startswith(".")} == {*BELOW, "tests", "samples"}


def test_reading_imports_nothing_heavy() -> None:
    program = (
        "import sys, vinoir.ir; late = {'onnx', 'rich', 'click'}; "
        "sys.exit(str(sorted(late & set(sys.modules))) if late & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
