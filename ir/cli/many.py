"""The models that a command line means, where it may mean many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..fleet import folder_files
from ..storage import is_url
from .options import STDIN


def model_paths(models: Iterable[str]) -> list[str]:
    """Every model that is meant, once: a folder stands for all .xml files in it, at any depth."""
    return list(dict.fromkeys(path for name in models for path in _meant(name)))


def _meant(name: str) -> Sequence[str]:
    found = None if name == STDIN else folder_files(name)
    if found is None:
        return [name]
    return found if is_url(name) else [str(Path(path)) for path in found]
