"""``vinoir run --out``: one model over many files of inputs."""

from __future__ import annotations

import time
from typing import Any

import click

from ...schemas import UsageError
from ...schemas.printing import counted
from ..files import read
from ..fleet import Predictor, run_over
from .options import FileName, pairs
from .output import note


def over_inputs(command: click.Command) -> click.Command:
    """The verb that runs a model, as one that runs it over files of inputs: ``--out``."""
    before: Any = command.callback
    out = click.Option(
        ["--out"],
        type=FileName(),
        metavar="FILE",
        help="Run over all files that --input NAME='data/*.npy' describes, images too, and write "
        "a .npz, .zarr or .jsonl.",
    )

    def callback(**values: Any) -> Any:
        path = values.pop("out")
        return before(**values) if path is None else _run_over(path, **values)

    callback.one, callback.several = before.one, before.several  # type: ignore[attr-defined]
    command.callback = callback
    command.params.append(out)
    return command


#: What a run over files of inputs takes.
_OVER_INPUTS = frozenset(
    ["inputs", "weights", "jobs", "dask", "max_memory", "max_seconds", "format_", "force"]
)
#: What it does instead of what it does not take.
_INSTEAD = {
    "compiled": "it runs the compiled program in any case",
    "batch": "each file is a call of its own, cut into the batches that the model takes",
    "save": "it writes the outputs itself, into a .npz, .zarr or .jsonl",
}


def _run_over(out: str, *, model: tuple[str, ...], **values: Any) -> None:
    """Run one model over many files of inputs."""
    context = click.get_current_context()
    for name in set(values) - _OVER_INPUTS:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            said = f"--{name.replace('_', '-')} does not go with --out"
            raise UsageError(said, hint=_INSTEAD.get(name))
    if len(model) != 1:
        raise UsageError(f"--out is for one model, these are {len(model)}")
    weights = values["weights"]
    predictor = Predictor(model[0] if weights is None else read(model[0], weights))
    results = run_over(
        predictor, pairs(values["inputs"]), out,
        jobs=values["jobs"], dask=values["dask"], force=values["force"],
        max_seconds=values["max_seconds"], max_memory=values["max_memory"],
    )  # fmt: skip
    began, worst, count = time.monotonic(), 0, 0
    for outcome in results:
        count += 1
        worst = max(worst, outcome.code)
        if outcome.state != "done":
            note(f"{outcome.state}: {outcome.error}")
    seconds = time.monotonic() - began
    rate = count / max(seconds, 1e-9)
    note(f"{counted(count, 'call')}, {seconds:.1f} s, {rate:.0f} a second: {out}")
    raise SystemExit(worst)
