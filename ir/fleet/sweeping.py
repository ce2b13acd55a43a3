"""Something done to many models: by processes here, or by a cluster; one line for each.

Example::

    for line in ir.sweep(ir.check, ["models/**/*.xml"], jobs=2, journal="results.jsonl"):
        print(line["model"], line["code"])
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from os import PathLike
from types import ModuleType as Module
from typing import Any

from ...schemas import UsageError
from ..engine import core_count
from ..storage import beside, is_url, url_mark
from .journal import BEGUN, LIMITED, Journal, Key, Known, key_of
from .outcomes import Function, Outcome, Task
from .selection import read_shard, select
from .supervision import Crew, packed_setup, pickled


class Sweep:
    """The lines of a sweep, given as they come; the work begins when the first is asked for."""

    def __init__(
        self,
        function: Function,
        models: list[str],
        *,
        jobs: int | None = None,
        dask: str | None = None,
        journal: str | PathLike[str] | None = None,
        max_seconds: float | None = None,
        max_memory: int | None = None,
        targets: Callable[[str], str] | None = None,
        heading: Mapping[str, Any] | None = None,
    ) -> None:
        self.models, self.targets = models, targets
        #: What each line says besides.
        self.heading = heading or {}
        self.what = name_of(function)
        self.journal = journal
        self.jobs = core_count() if jobs is None else jobs
        if self.jobs < 1:
            raise UsageError(f"jobs is {jobs}, the least is 1")
        self.dask, self.max_seconds, self.max_memory = dask, max_seconds, max_memory
        self._setup = packed_setup(function, max_memory)
        #: How many came to which end, and the highest exit code, those of the journal among them.
        self.states = Counter[str]()
        self.worst = 0
        #: Models that the journal has already.
        self.known = 0

    def __repr__(self) -> str:
        done = sum(self.states.values())
        return f"<sweep of {self.what} over {len(self.models)} models, {done} done>"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with ExitStack() as stack:
            journal = None
            if self.journal is not None:
                journal = stack.enter_context(Journal(self.journal))
            todo = list(self._todo({} if journal is None else journal.known))
            results = outcomes(
                self._setup, self._begin(todo, journal), self.jobs, self.dask, self.max_seconds
            )
            stack.enter_context(closing(results))
            for number, outcome in results:
                model, file = todo[number]
                line = self._line(model, file, outcome)
                if journal is not None:
                    journal.write(line)
                self.states[outcome.state] += 1
                self.worst = max(self.worst, outcome.code)
                yield line

    def _begin(
        self, todo: Iterable[tuple[str, list[Any]]], journal: Journal | None
    ) -> Iterator[str]:
        """The models as they are handed out, after the journal was told what is made of each."""
        for model, file in todo:
            if journal is not None and self.targets is not None:
                facts = {"model": model, "what": self.what, "file": file}
                journal.write(facts | {"state": BEGUN, "target": self.targets(model)})
            yield model

    def _line(self, model: str, file: list[Any], outcome: Outcome) -> dict[str, Any]:
        """The line of one model."""
        facts = {"model": model, **self.heading, "what": self.what, "file": file}
        line = {**facts, **outcome.to_json()}
        if outcome.state in LIMITED:
            timed = outcome.state == "overtime"
            line["limit"] = self.max_seconds if timed else self.max_memory
        return line

    def _todo(self, known: dict[Key, Known]) -> Iterator[tuple[str, list[Any]]]:
        """The models that the journal does not have as they are now, within these limits."""
        for model in self.models:
            file = mark_of(model, remote=self.journal is not None)
            found = known.get((self.what, model, json.dumps(file)))
            if found is None or not found.is_final(self.max_seconds, self.max_memory):
                yield model, file
            else:
                self.known += 1
                self.worst = max(self.worst, found.code)


def sweep(
    function: Function,
    models: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    journal: str | PathLike[str] | None = None,
    shard: str | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
) -> Sweep:
    """Do something to many models; a line (a dictionary) for each, in the order of their ends.

    A line has ``model``, ``what``, ``file`` (sizes and times), ``code`` (an exit code), ``state``
    (done, refused, crashed, overtime, memory), ``seconds``, ``result`` and ``error``, and of what
    wanted more than is allowed the ``limit``.

    Args:
        function: What takes a path and answers with what JSON has, or with a report: ``ir.check``.
        models: Paths, folders (all .xml in them), patterns such as ``models/**/*.xml``, or URLs.
        jobs: How many processes; None for as many as there are cores.
        dask: The address of a Dask scheduler, or ``local`` for a cluster of ``jobs`` processes.
        journal: A file of lines: models it has, unchanged since, are not done again, unless they
            may take more now than they were allowed.
        shard: A part of the models, such as ``3/16``, each of which is in one part.
        max_seconds: A model that takes longer has that as its outcome.
        max_memory: Bytes that one model may take, on Linux; more is its outcome.
    """
    given = [models] if isinstance(models, (str, PathLike)) else models
    chosen = select(given)
    if shard is not None:
        number, count = read_shard(shard)
        chosen = chosen[number - 1 :: count]
    return Sweep(
        function, chosen, jobs=jobs, dask=dask, journal=journal,
        max_seconds=max_seconds, max_memory=max_memory,
    )  # fmt: skip


def outcomes(
    setup: str, tasks: Iterable[Task], jobs: int, dask: str | None, max_seconds: float | None
) -> Generator[tuple[int, Outcome]]:
    """The number of each task with what came of it, in the order in which it came."""
    if dask is None:
        with Crew(setup, jobs, max_seconds=max_seconds) as crew:
            yield from crew.run(tasks)
    else:
        from .clusters import Cluster

        with Cluster(dask, setup, jobs, max_seconds) as cluster:
            yield from cluster.run(tasks)


def name_of(function: Function) -> str:
    """What a function does, in a word, with a digest of what it holds, if it holds anything."""
    label = getattr(function, "label", None)
    if isinstance(label, str):
        return label
    bare = function.func if isinstance(function, partial) else function
    name = str(getattr(bare, "__qualname__", type(bare).__qualname__))
    holder = getattr(function, "__self__", None)
    if hasattr(function, "__qualname__") and (
        holder is None or isinstance(holder, (type, Module))
    ):
        # What a decorator holds is always the same: its function is found by its name.
        place = sys.modules.get(getattr(function, "__module__", None) or "")
        if (
            getattr(function, "__closure__", None) is None
            or getattr(place, name, None) is function
        ):
            return name
    return f"{name} {hashlib.blake2b(pickled(function), digest_size=8).hexdigest()}"


def mark_of(model: str, *, remote: bool) -> list[Any]:
    """Sizes and times of the files of a model; of files elsewhere, what their server says."""
    if is_url(model):
        return [url_mark(model), url_mark(beside(model))] if remote else []
    found: list[Any] = []
    for path in (model, beside(model)):
        try:
            status = os.stat(path)
            found.append([status.st_size, status.st_mtime_ns])
        except (OSError, ValueError):
            found.append(None)
    return found


__all__ = ["Sweep", "key_of", "sweep"]
