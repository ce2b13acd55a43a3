"""``vinoir reduce``: a failing model made small."""

from __future__ import annotations

import click

from ...schemas import UsageError
from ..comparing import reduce
from ..files import read
from .compare import sample_inputs
from .output import format_option, model_argument, note, print_json, say, weights_option


@click.command(
    "reduce",
    epilog="Examples: vinoir reduce model.xml --fails compare -o failing/; "
    'vinoir reduce model.xml --check "python try.py {}" -o failing/ --max-seconds 600',
)
@model_argument
@weights_option
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
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    help="The folder for the result; a reduction that is there is gone on with.",
)
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An input: FILE.npy, FILE.npz, random, zeros or ones; else random.",
)
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True,
              help="How many samples; each candidate is checked with all.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
@click.option("--max-seconds", type=click.FloatRange(min=0), metavar="SECONDS",
              help="Stop with what has been reached.")  # fmt: skip
@format_option()
def reduce_command(
    model: str,
    weights: str | None,
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
    found = read(model, weights)
    reduced = reduce(
        found,
        asked,
        samples=sample_inputs(found, inputs, samples, seed, ""),
        seed=seed,
        output=output,
        max_seconds=max_seconds,
        progress=note,
    )
    if format_ == "json":
        print_json(
            {
                "failure": reduced.failure,
                "failing_samples": reduced.failing,
                "layers_before": reduced.before,
                "layers": reduced.after,
                "checks": reduced.checks,
                "finished": reduced.finished,
                "seeds": reduced.seeds,
                "output": output,
            }
        )
    else:
        say(str(reduced))
        note(f"wrote {output}: reduced.xml, reduced.bin, inputs.npz, NOTE.md, test_reduced.py")
