"""The pages that tell contributors where things are: they name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from vinoir.ir.cli import VERBS
from vinoir.ir.engine.kernels import KERNELS
from vinoir.ir.engine.passes import PASSES
from vinoir.ir.engine.plan.operations import ROWS
from vinoir.layers import Op

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:ir|layers|tests)/[\w/.]+)`", PAGE))))
def test_every_place_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).exists(), name


def test_the_table_of_rooms_is_that_of_the_walls() -> None:
    from test_house import ROOMS

    told = re.findall(r"^\| `(\w+)/` \|.*\| ([a-z, ]*)\|$", PAGE, re.MULTILINE)
    rows = {room: set(re.findall(r"\w+", below)) for room, below in told if room in ROOMS}
    assert list(rows) == list(ROOMS)
    for room, below in rows.items():
        assert below == ({"all"} if room == "cli" else ROOMS[room]), room


def test_kernels_are_bound_to_rows_and_rows_to_versions() -> None:
    assert set(KERNELS) <= set(ROWS)
    for kind, row in ROWS.items():
        versions = {number for name, number in Op.registry if name == kind}
        assert row.versions <= versions, kind


def test_a_pass_is_a_file_that_begins_with_its_formula() -> None:
    folder = ROOT / "ir/engine/passes"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {one.__module__.rpartition(".")[2] for one in PASSES}
    for name in files:
        first = (folder / f"{name}.py").read_text("utf-8").splitlines()[0]
        assert first.startswith(('"""Replace `', '"""Keep ')), name


def test_a_verb_is_a_row_and_a_file() -> None:
    for verb, (module, _) in VERBS.items():
        assert (ROOT / "ir/cli" / f"{module}.py").is_file(), verb
