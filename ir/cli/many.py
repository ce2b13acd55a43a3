"""The models that a command line means, where it may mean many."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..fleet import files_in
from .options import STDIN


def model_paths(models: Iterable[str]) -> list[str]:
    """Every model that is meant, once: a folder stands for all .xml files in it, at any depth."""
    return list(dict.fromkeys(path for name in models for path in _meant(name)))


def _meant(name: str) -> Sequence[str]:
    if name == STDIN or not os.path.isdir(name):
        return [name]
    return [str(Path(path)) for path in files_in(name)]
