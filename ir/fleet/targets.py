"""Where what is made of many models is written: each to its place in another folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ...schemas import UsageError, Where
from ..storage import beside, is_url
from .selection import common_root


@dataclass(frozen=True)
class Targets:
    """A folder, in which each model has the place that it has in the folder that all are in."""

    folder: str
    root: str
    #: The folder in which names begin: a cluster's workers are elsewhere.
    start: str

    def __call__(self, model: str) -> str:
        """The .xml that is made of a model."""
        inner = os.path.normpath(_whole(model, self.start)[len(self.root) :].lstrip("/\\"))
        target = beside(os.path.join(self.folder, inner), ".xml")
        if not PurePath(os.path.abspath(target)).is_relative_to(os.path.abspath(self.folder)):
            raise UsageError(
                f"{target} is not in {self.folder}, where what is made of it is to be written",
                Where(model),
                "give models of one folder",
            )
        return target


def targets_of(models: Sequence[str], folder: str) -> Targets:
    """The places of these models; none is another's, nor that of a model which is read."""
    if os.pardir in PurePath(folder).parts:
        # What leads out of a folder that is not there yet would be looked for in vain.
        folder = os.path.realpath(folder)
    start = os.getcwd()
    sources = {_whole(model, start): model for model in models}
    targets = Targets(folder, common_root(list(sources)), start)
    taken: dict[str, str] = {}
    for model in models:
        target = targets(model)
        other = taken.setdefault(target, model)
        if other != model:
            raise UsageError(
                f"{other} and {model} would both be written to {target}",
                hint="give each model once, or each its own -o",
            )
        source = sources.get(_whole(target, start), model)
        if source != model:
            raise UsageError(
                f"what is made of {model} would be written over {source}, which is read too",
                hint="give another folder",
            )
    return targets


def _whole(model: str, start: str) -> str:
    """The path of a model, the same for every way to say it."""
    if is_url(model):
        return model
    return os.path.normpath(os.path.join(start, model)).replace(os.sep, "/")
