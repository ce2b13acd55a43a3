"""``vinoir compare``: where a run parts from another."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from ...schemas import Array, IRError, UsageError
from ...schemas.printing import counted
from ..comparing import Comparison, compare
from ..display import operation_name
from ..document import Model
from ..execution import tell_made_up
from .inputs import Samples, arrays_of, sized_words, words_of
from .options import (
    AtLeastZero,
    Source,
    format_option,
    limit_options,
    model_options,
    onnx_option,
    pairs,
    samples_option,
    seed_option,
    values_option,
    verb,
)
from .output import note, print_json, print_table, say, screen_width, wrapped
from .progress import Progress

#: Exit code where numbers differ.
DIFFER = 5


@verb(
    "compare",
    "compare model.xml --against f16",
    "compare model.xml --against small.xml --samples 4",
    "compare model.xml --against onnxruntime --onnx model.onnx -i image=image.npy",
)
@model_options
@click.option(
    "--against",
    default="openvino",
    show_default=True,
    metavar="WHAT",
    help="openvino, onnxruntime, compiled, f16, bf16, an .xml, an .onnx, or recorded tensors in "
    "an .npz.",
)
@onnx_option
@values_option
@samples_option
@seed_option
@click.option("--sequence", is_flag=True, help="Samples are calls one after another: variables "
              "keep what is assigned, else each begins anew.")  # fmt: skip
@click.option("--tolerance", type=AtLeastZero(), help="In place of each type's own.")
@click.option("--worst", type=click.IntRange(min=0), default=10, show_default=True,
              help="How many layers the table has.")  # fmt: skip
@limit_options
@format_option()
def compare_command(
    source: Source,
    against: str,
    onnx: str | None,
    inputs: tuple[str, ...],
    samples: int,
    seed: int,
    sequence: bool,
    tolerance: float | None,
    worst: int,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Run MODEL and another side by side; exit 5 where a layer is wrong or an output differs.

    Of each layer the error with exact inputs is told from the error that came with the inputs.
    """
    found = source.read()
    rows = sample_inputs(found, inputs, samples, seed, against)
    count = rows if isinstance(rows, int) else len(rows)
    with Progress(count * len(found.order())) as progress:
        try:
            comparison = compare(
                found,
                against,
                samples=rows,
                seed=seed,
                sequence=sequence,
                tolerance=tolerance,
                onnx=onnx,
                max_memory=max_memory,
                max_seconds=max_seconds,
                progress=lambda layer: progress.advance(operation_name(layer)),
            )
        except IRError as error:
            if not isinstance(rows, int):
                tell_made_up(error, found, words_of(found, pairs(inputs)))
            raise
    if format_ == "json":
        print_json("compare", comparison.as_json())
    else:
        show(comparison, worst)
    if comparison:
        sys.exit(DIFFER)


def sample_inputs(
    model: Model, inputs: tuple[str, ...], samples: int, seed: int, against: str
) -> list[Mapping[int, Array]] | int:
    """The samples that the command line says; a number of random ones where it says nothing.

    A folder or a pattern is as many samples as files.
    """
    given = pairs(inputs)
    if not given:
        if against.endswith(".npz") and samples > 1:
            raise UsageError("one sample is recorded, several are asked for")
        words = {} if against.endswith(".npz") else sized_words(model, given)
        if not words:
            return samples
        return [arrays_of(model, words, seed + number) for number in range(samples)]
    found = Samples(model, given, seed, None)
    if found.count is not None:
        if samples not in (1, len(found)):
            told = counted(len(found), "sample")
            raise UsageError(
                f"--samples {samples}, but the files of the inputs are {told}",
                hint="without --samples each is one",
            )
        return [sample.arrays for sample in found]
    if samples > 1 and not found.is_random:
        raise UsageError(
            f"--samples {samples}, but no input is random: all would be the same",
            hint="give a folder or a pattern of files, as -i NAME='data/*.npy'",
        )
    return [arrays_of(model, found.words, seed + number) for number in range(samples)]


def show(found: Comparison, worst: int) -> None:
    """Print what was found, and a table of the worst layers."""
    for text in found.lines(0):
        for line in wrapped(text, screen_width(), indent="  "):
            say(line)
    rows = found.worst(worst)
    if rows:
        print_table(
            "the worst layers by their own error",
            ["id", "name", "operation", "own", "accumulated", "tolerance", "verdict"],
            [
                [s.place.id, s.place.name, s.operation, f"{s.own:.3g}",
                 f"{s.accumulated:.3g}", f"{s.tolerance:.3g}",
                 f"{s.verdict}, not read" if s.is_unread else s.verdict]
                for s in rows
            ],
            right=(0, 3, 4, 5),
        )  # fmt: skip
    if found.against.endswith("throughout"):
        names = [step.place.name for step in found.wrong]
        note(f"layers that would have to stay in f32: {', '.join(names) or 'none'}")
