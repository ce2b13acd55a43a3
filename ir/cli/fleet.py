"""Verbs over many models: ``--jobs``, ``--dask``, ``--journal``, ``--shard``.

A verb that is decorated takes any number of models, folders and patterns. With one model and none
of these options it is what it was, also within limits; else it is carried out for each model by
other processes, as with ``--format json``, and a line of JSON is printed for each.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from ...schemas import IRError, LimitError, UsageError, Where
from ...schemas.printing import counted
from ..document import by_input
from ..execution import is_filling
from ..files import read
from ..fleet import (
    Journal,
    Outcome,
    Sweep,
    Targets,
    files_of,
    is_many,
    read_shard,
    select,
    targets_of,
)
from ..storage import beside
from .options import STDIN, limit_options, pairs
from .output import heading, note, say_json
from .refused import Refusal, report

#: What names one file for one model cannot be given for many.
FOR_ONE = ("weights", "save", "expect", "in_place", "onnx", "plot")
#: So many models are looked into for inputs that are given for all.
LOOKED_INTO = 100
#: So many models that failed are named in the end.
NAMED = 10
#: Seconds between two looks at how far it is.
LOOK = 0.2


def fleet_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a verb that is carried out for many models."""
    for option in (
        click.option("--shard", metavar="K/N", help="The Kth of N shares of the models."),
        click.option(
            "--journal",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="Add the lines to FILE; models it has are not done again, and what it tells was "
            "begun may be written over.",
        ),
        click.option(
            "--dask", metavar="ADDRESS", help="By a Dask cluster; local: one made for this."
        ),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            metavar="N",
            help="Many MODELs by so many processes, a line of JSON for each.",
        ),
    ):
        function = option(function)
    return function


def over_many(command: click.Command, suffix: str = ".xml") -> click.Command:
    """A verb that takes one model (or several), as one that takes any number."""
    one = command.callback
    assert one is not None
    [argument] = [part for part in command.params if isinstance(part, click.Argument)]
    several = argument.nargs == -1
    assert argument.name is not None
    models = argument.name
    if not several:
        place = command.params.index(argument)
        command.params[place] = click.Argument(
            [models],
            nargs=-1,
            required=True,
            type=argument.type,
            metavar=f"{argument.metavar}...",
        )
    has = {part.name for part in command.params}
    own_limits = {"max_memory", "max_seconds"} & has

    def callback(**values: Any) -> Any:
        fleet = {name: values.pop(name) for name in ("jobs", "dask", "journal", "shard")}
        limits = {
            name: values[name] if name in own_limits else values.pop(name)
            for name in ("max_memory", "max_seconds")
        }
        given: tuple[str, ...] = values.pop(models)
        asked = [*fleet.values(), *(limits[name] for name in limits if name not in own_limits)]
        is_one = several or (len(given) == 1 and not is_many(given[0], suffix))
        if is_one and all(each is None for each in asked):
            return one(**values, **{models: given if several else given[0]})
        if is_one and not several and all(each is None for each in fleet.values()):
            values[models] = given[0]
            return _within_limits(str(command.name), models, values, **limits)
        return _over_many(str(command.name), models, suffix, given, values, **fleet, **limits)

    callback.one, callback.several = one, several  # type: ignore[attr-defined]
    command.callback = callback

    @fleet_options
    @limit_options
    def bearer() -> None:
        """Bear the options."""

    options: list[click.Parameter] = bearer.__click_params__  # type: ignore[attr-defined]
    command.params += [option for option in reversed(options) if option.name not in has]
    return command


def _within_limits(
    verb: str,
    argument: str,
    values: dict[str, Any],
    *,
    max_memory: int | None,
    max_seconds: float | None,
) -> None:
    """Carry a verb out for one model as ever, but in a process that is ended at its limits."""
    model = values[argument]
    if model == STDIN:
        raise UsageError("a model from standard input cannot be limited", hint="give its file")
    sweep = Sweep(
        Verb(verb, argument, values, is_alone=True), [model], jobs=1,
        max_memory=max_memory, max_seconds=max_seconds,
    )  # fmt: skip
    (line,) = sweep
    said = line["result"]
    if said is None:
        refusal = Refusal(line["code"], line["error"], Where(model))
        refusal.say()
        if values["format_"] == "json":
            refusal.say_json(verb)
    else:
        click.echo(said["out"], nl=False)
        click.echo(said["err"], nl=False, err=True)
    raise SystemExit(line["code"])


def _over_many(
    verb: str,
    argument: str,
    suffix: str,
    given: tuple[str, ...],
    values: dict[str, Any],
    *,
    jobs: int | None,
    dask: str | None,
    journal: str | None,
    shard: str | None,
    max_memory: int | None,
    max_seconds: float | None,
) -> None:
    """Carry a verb out for every model, and print a line of JSON for each."""
    for name in FOR_ONE:
        if values.get(name) not in (None, False, ()):
            word = name.replace("_", "-")
            raise UsageError(f"--{word} is for one model, with many it cannot be given")
    given_format = click.get_current_context().get_parameter_source("format_")
    if given_format is click.core.ParameterSource.COMMANDLINE and values["format_"] != "json":
        raise UsageError(f"--format {values['format_']} is for one process: many print JSON")
    if STDIN in given:
        raise UsageError(
            "standard input is one model, which this process alone can read",
            hint="leave --jobs, --dask, --journal and --shard out, or give files",
        )
    _refuse_one_output(values.get("output"), given)
    values["format_"] = "json"
    models = select(given, suffix)
    refuse_inputs(values.get("inputs") or (), models)
    output = values.get("output")
    if output is None and (values.get("dry_run") is False or values.get("mend")):
        raise UsageError(
            "there is nothing to write to, and there may be many models",
            hint="give -o FOLDER or --dry-run" if "dry_run" in values else "give -o FOLDER",
        )
    if output is not None and values.get("mend") is False:
        raise UsageError(f"-o {output} is where --fix writes to", hint="add --fix")
    work = Verb(
        verb, argument, values, None if output is None else targets_of(models, output)
    )  # fmt: skip
    if shard is not None:
        number, count = read_shard(shard)
        models = models[number - 1 :: count]
    _keep_what_is_there(models, work, journal)
    sweep = Sweep(
        work, models, jobs=jobs, dask=dask, journal=journal,
        max_memory=max_memory, max_seconds=max_seconds, targets=work.targets,
        heading=heading(verb),
    )  # fmt: skip
    watch = Watch(sweep)
    for line in sweep:
        watch.add(line)
    watch.end()
    raise SystemExit(sweep.worst)


def _refuse_one_output(output: str | None, given: tuple[str, ...]) -> None:
    """Refuse a file, where a folder for many is meant."""
    if output is None:
        return
    if output.lower().endswith(".xml") or (os.path.lexists(output) and not os.path.isdir(output)):
        raise UsageError(
            f"-o {output} is one file, but {', '.join(given[:3])} may be many models",
            hint="-o FOLDER; for one model leave --jobs, --dask, --journal and --shard out",
        )


def refuse_inputs(given: tuple[str, ...], models: list[str]) -> None:
    """Refuse inputs that no model has, before any process is started for them."""
    words = pairs(given)
    if not words:
        return
    refused: UsageError | None = None
    for path in models[:LOOKED_INTO]:
        try:
            by_input(read(path, need_weights=False), words)
        except UsageError as error:
            refused = refused or error
        except (IRError, OSError):
            continue  # its line will tell
        else:
            return
    if refused is not None and len(models) <= LOOKED_INTO:
        said = f"of {len(models)} models none takes the inputs: " if len(models) > 1 else ""
        raise UsageError(f"{said}{refused.message}", hint=refused.hint)


def _keep_what_is_there(models: list[str], work: Verb, journal: str | None) -> None:
    """Refuse to write over files, but those that the same verb with this journal began to write.

    It tells of each before it is written, so also of what was being written when all was ended.
    """
    if work.targets is None or work.values.get("force"):
        return
    begun, label = set[tuple[str, str]](), work.label
    if journal and os.path.lexists(journal):
        with Journal(journal) as kept:
            begun = kept.begun
    for target in map(work.targets, models):
        for path in (target, beside(target)):
            if os.path.lexists(path) and (label, target) not in begun:
                raise UsageError(f"{path} is already there", hint="--force overwrites it")


class Watch:
    """The lines as they come, and on a terminal how far it is."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.began = self.looked = time.monotonic()
        self.done = 0
        self.failed: list[str] = []
        #: Exit codes of those that were done, but for 0.
        self.codes = Counter[int]()
        self.is_shown = sys.stderr.isatty()

    def add(self, line: Mapping[str, Any]) -> None:
        """Print a line."""
        self.done += 1
        if line["state"] != "done":
            self.failed.append(f"{line['model']}: {line['state']}: {line['error']}")
        elif line["code"]:
            self.codes[line["code"]] += 1
        if self.is_shown:
            self._wipe()
        say_json(line, indent=None)
        now = time.monotonic()
        if self.is_shown and now - self.looked > LOOK:
            self.looked = now
            click.echo(self._so_far(), err=True, nl=False)

    def _so_far(self) -> str:
        whole = len(self.sweep.models) - self.sweep.known
        rate = self.done / max(time.monotonic() - self.began, 1e-9)
        left = (whole - self.done) / max(rate, 1e-9)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"{self.done} of {whole}, {rate:.0f} a second{failed}, {left:.0f} s to go"

    def _wipe(self) -> None:
        click.echo("\r\x1b[K", err=True, nl=False)

    def end(self) -> None:
        """Tell what came of them, and name those that failed."""
        if self.is_shown:
            self._wipe()
        seconds = time.monotonic() - self.began
        for line in "\n".join(self.failed[:NAMED]).splitlines():
            note(line)
        if len(self.failed) > NAMED:
            note(f"and {len(self.failed) - NAMED} more")
        told = {state: f"{count} {state}" for state, count in self.sweep.states.items()}
        if self.codes:
            listed = (
                f"{count} with exit code {code}" for code, count in sorted(self.codes.items())
            )
            told["done"] += f" ({', '.join(listed)})"
        counts = ", ".join(told.values())
        known = f"; {self.sweep.known} the journal has" if self.sweep.known else ""
        note(
            f"{counted(self.done, 'model')}{': ' + counts if counts else ''}, "
            f"{seconds:.1f} s, {self.done / max(seconds, 1e-9):.0f} a second{known}"
        )


#: What does not change the answers.
_SILENT = ("format_", "force", "max_memory", "max_seconds")
#: Verbs whose --input may name files; that of others gives shapes.
_OF_FILES = ("run", "bench")


def marks(given: Sequence[str]) -> list[tuple[str, int, int]]:
    """Names, sizes and times of the files that inputs are read from."""
    found = []
    for word in pairs(given).values():
        files = [] if is_filling(word) else files_of(word)
        for path in [word] if files is None else files:
            if os.path.isfile(path):
                status = os.stat(path)
                found.append((path, status.st_size, status.st_mtime_ns))
    return found


@dataclass(frozen=True)
class Verb:
    """A verb with its options, done to one model at a time; its answer is what it prints."""

    name: str
    model: str
    values: Mapping[str, Any] = field(hash=False)
    #: Where what is made of each is written, if anything is.
    targets: Targets | None = None
    #: It is the only one: what it prints is handed on as it is.
    is_alone: bool = False

    @property
    def label(self) -> str:
        """The verb with what makes its answers other answers."""
        kept = {
            name: value
            for name, value in sorted(self.values.items())
            if value not in (None, False, (), "") and name not in _SILENT
        }
        read = marks(self.values.get("inputs") or ()) if self.name in _OF_FILES else []
        if read:
            kept["files"] = hashlib.blake2b(repr(read).encode(), digest_size=8).hexdigest()
        return f"{self.name} {json.dumps(kept)}" if kept else self.name

    def prepare(self) -> None:
        """Import what every model needs."""
        from ...layers import registry  # noqa: F401  # all operations, once for all children

        self._command()

    def _command(self) -> click.Command:
        from . import VERBS

        module = import_module(f".{VERBS[self.name][0]}", __package__)
        command: click.Command = getattr(module, f"{self.name}_command")
        return command

    def __call__(self, path: str) -> Outcome:
        """Carry it out for the model of a path."""
        callback: Any = self._command().callback
        values = {**self.values, self.model: (path,) if callback.several else path}
        if self.targets is not None:
            values["output"] = self.targets(path)
            os.makedirs(os.path.dirname(values["output"]), exist_ok=True)
            values["force"] = True  # that nothing is lost was seen to when all began
        out, err = io.StringIO(), io.StringIO()
        outcome = Outcome()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                callback.one(**values)
            except SystemExit as left:
                outcome.code = left.code if isinstance(left.code, int) else 0
            except (MemoryError, LimitError):
                raise
            except Exception as error:
                outcome.code, outcome.state = report(error), "refused"
                if self.is_alone and self.values["format_"] == "json":
                    Refusal.of(error).say_json(self.name)
        text = out.getvalue()
        if self.is_alone:
            outcome.result = {"out": text, "err": err.getvalue()}
        elif text.strip():
            outcome.result = json.loads(text)
        if outcome.state == "refused":
            outcome.error = err.getvalue().strip()
        return outcome
