"""The models that a command line means, where it may mean many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..fleet import select
from ..storage import is_url


def model_paths(models: Iterable[str]) -> list[str]:
    """Every model that is meant, once: a pattern, or a folder with all .xml files at any depth."""
    return list(dict.fromkeys(path for name in models for path in _meant(name)))


def _meant(name: str) -> Sequence[str]:
    found = select([name])
    return found if found == [name] or is_url(name) else [str(Path(path)) for path in found]
