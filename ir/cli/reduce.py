"""``vinoir reduce``: a failing model made small."""

from __future__ import annotations

import click

from ...schemas import UsageError
from ..comparing import reduce
from .compare import sample_inputs
from .options import (
    Source,
    format_option,
    model_options,
    output_option,
    samples_option,
    seconds_option,
    seed_option,
    values_option,
    verb,
)
from .output import note, print_json, say


@verb(
    "reduce",
    "reduce failing.xml --fails run -o failing/",
    'reduce model.xml --check "python try.py {}" -o failing/ --max-seconds 600',
)
@model_options
@click.option(
    "--fails",
    type=click.Choice(["infer", "run", "compile", "compare"]),
    help="What fails: run also where it gives NaN, compare against OpenVINO.",
)
@click.option(
    "--check",
    metavar="COMMAND",
    help="What fails, as a command: it ends with another exit code than 0; {} is the .xml, the "
    "inputs lie beside it in inputs.npz.",
)
@output_option(
    "The folder for the result; a reduction that is there is gone on with", required=True
)
@values_option
@samples_option
@seed_option
@seconds_option
@format_option()
def reduce_command(
    source: Source,
    fails: str | None,
    check: str | None,
    output: str,
    inputs: tuple[str, ...],
    samples: int,
    seed: int,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Make MODEL as small as it can be and still fail in the same way.

    Writes reduced.xml, reduced.bin, inputs.npz, NOTE.md and test_reduced.py.
    """
    asked = fails if check is None else check
    if asked is None or None not in (fails, check):
        raise UsageError("what fails is said either by --fails or by --check COMMAND")
    found = source.read()
    reduced = reduce(
        found,
        asked,
        samples=sample_inputs(found, inputs, samples, seed, ""),
        seed=seed,
        output=output,
        max_seconds=max_seconds,
        progress=note,
    )
    if reduced.doubt:
        note(reduced.doubt)
    if format_ == "json":
        print_json(
            "reduce",
            {
                "failure": reduced.failure,
                "failing_samples": reduced.failing,
                "layers_before": reduced.before,
                "layers": reduced.after,
                "checks": reduced.checks,
                "finished": reduced.finished,
                "seeds": reduced.seeds,
                "opened": reduced.opened,
                "doubt": reduced.doubt,
                "output": output,
            },
        )
    else:
        say(str(reduced))
        note(f"wrote {output}: reduced.xml, reduced.bin, inputs.npz, NOTE.md, test_reduced.py")
