"""Models compared: single edits are found where they are, rearrangements are none."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from conftest import Written
from model_edits import Edit, Pair, edits, rearrange
from vinoir import ir
from vinoir.ir.cli import main

#: Files of which each gets every kind of edit.
FILES = 60


def chosen(written: Written, seed: int) -> list[Path]:
    files = written.all()
    return random.Random(seed).sample(files, min(FILES, len(files)))


def misses(found: ir.Differences, wanted: Edit) -> str | None:
    """Why differences are not those of one edit."""
    own = [one for one in found if not one.follows]
    places = {
        (place.body, place.id) for one in own for place in (one.one, one.two) if place is not None
    }
    if not any(one.kind in wanted.kinds for one in own):
        return f"no {wanted}"
    wrong = places - {(wanted.body, number) for number in wanted.layers}
    return f"{wanted}: also at {wrong}" if wrong else None


def test_single_edits_are_found(written: Written, tmp_path: Path) -> None:
    rng = random.Random(5)
    wrong, count = [], 0
    for path in chosen(written, 1):
        for name, pair, wanted in edits(path, rng):
            found = ir.diff(path, pair.save(tmp_path / "edited.xml"))
            missed = misses(found, wanted)
            count += 1
            if missed:
                wrong.append(f"{name} of {path.name}: {missed}\n{found}")
    assert count > 100
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:8])


def test_rearrangements_are_no_difference(written: Written, tmp_path: Path) -> None:
    rng = random.Random(6)
    for path in chosen(written, 2):
        pair = Pair.of(path)
        rearrange(pair, rng)
        found = ir.diff(path, pair.save(tmp_path / "moved.xml"))
        assert not found, f"{path.name}: {found}"
