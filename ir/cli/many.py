"""The models that a command line means, where it may mean many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...schemas import UsageError
from .options import STDIN


def model_paths(models: Iterable[str]) -> list[str]:
    """Every model that is meant, once: a folder stands for all .xml files in it, at any depth."""
    return list(dict.fromkeys(path for name in models for path in _meant(name)))


def _meant(name: str) -> Iterator[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        yield name
        return
    found = sorted(str(inner) for inner in path.rglob("*.xml"))
    if not found:
        raise UsageError(f"{name} is a folder without .xml files")
    yield from found
