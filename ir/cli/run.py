"""``vinoir run``: a model run in NumPy, once or for each file of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ...layers.budget import within
from ...schemas import Array, IRError, MismatchError, UsageError
from ...schemas.printing import counted, printable_name
from ..display import operation_name, shape_text
from ..document import Model
from ..execution import Traced, run, tell_made_up, wanted_names
from .archive import save_arrays
from .expectations import compared, expected_arrays, told
from .fleet import over_many
from .inputs import Sample, Samples, make_inputs, words_of
from .options import (
    AtLeastZero,
    FileName,
    Source,
    force_option,
    format_option,
    limit_options,
    model_options,
    pairs,
    refuse_present,
    seed_option,
    values_option,
    verb,
)
from .output import bytes_text, note, print_json, print_table, say, shape_of
from .over_inputs import over_inputs
from .progress import Progress
from .show import value_facts

if TYPE_CHECKING:
    from ..engine import Memory

#: What runs a model: inputs by index to outputs by name.
Call = Callable[[Mapping[int, Array]], Mapping[str, Array]]


@over_inputs
@over_many
@verb(
    "run",
    "run model.xml --input image=image.npy --top 3",
    "run model.xml --save out.npz",
    "run model.xml --input image=image.npy --expect ref.npz --tolerance 1e-4",
    "run model.xml --input 'image=inputs/*.npy' --compiled --save results/",
    "run model.xml --compiled --trace",
)
@model_options
@values_option
@click.option(
    "--batch",
    type=click.IntRange(1),
    help="Of a folder or pattern (NAME='inputs/*.npy'): how many files run together.",
)
@seed_option
@click.option("--all", "everything", is_flag=True, help="Every tensor, not only the outputs.")
@click.option(
    "--compiled", is_flag=True, help="Run the program that ir.compile makes, not the definitions."
)
@click.option(
    "--memory", type=click.Choice(["small", "fast"]),
    help="With --compiled: keep weights of few bits so, or make numbers of them once.",
)  # fmt: skip
@click.option(
    "--save",
    type=FileName(),
    help="Write the tensors to this .npz; to a folder: an .npz for each file of inputs.",
)
@force_option
@click.option(
    "--expect",
    multiple=True,
    metavar="FILE",
    help="Compare with an .npz, a .npy or NAME=FILE.npy; exit 5 if they differ.",
)
@click.option(
    "--tolerance", type=AtLeastZero(), default=1e-4, show_default=True,
    help="For --expect.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(1), metavar="K", help="The K largest values of each "
              "output, with their places.")  # fmt: skip
@click.option("--trace", is_flag=True, help="Time and memory of each layer: as its definition "
              "takes them, with --compiled as the program does.")  # fmt: skip
@limit_options
@format_option()
def run_command(
    source: Source,
    inputs: tuple[str, ...],
    batch: int | None,
    seed: int,
    everything: bool,
    compiled: bool,
    memory: Memory | None,
    save: str | None,
    force: bool,
    expect: tuple[str, ...],
    tolerance: float,
    top: int | None,
    trace: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Run MODEL and describe its outputs.

    An input is a .npy, an .npz or an image (RGB, 0 to 255, in the input's size); a folder or a
    pattern of them runs the model for each. Exit code 5: the outputs are not as --expect has them.
    """
    if compiled and everything:
        raise UsageError("--all hands out what a program does not keep", hint="without --compiled")
    if memory and not compiled:
        raise UsageError("--memory is of programs", hint="with --compiled")
    found = source.read()
    with within(max_memory, max_seconds):
        samples = Samples(found, pairs(inputs), seed, batch)
    names = list(wanted_names(found, "all" if everything else None))
    wanted = expected_arrays(expect, names)
    several = None if samples.count is None else samples.names
    place = None if save is None else Place(save, force, several)
    if trace and samples.count is not None:
        raise UsageError("--trace is for one sample", hint="--input NAME=FILE.npy")
    traced: list[dict[str, Any]] = []
    keep = bool(wanted) or (place is not None and place.path is not None)
    rows: list[dict[str, Any]] = []
    kept: list[Mapping[str, Array]] = []
    with within(max_memory, max_seconds):
        call = (
            program_of(found, traced if trace else None, max_memory, max_seconds, memory)
            if compiled
            else definitions_of(
                found, everything, traced if trace else None, len(samples) == 1,
                (max_memory, max_seconds),
            )
        )  # fmt: skip
        with Progress(len(samples) if len(samples) > 1 else None, "running") as progress:
            for sample in samples:
                try:
                    computed = call(sample.arrays)
                except IRError as error:
                    tell_made_up(error, found, words_of(found, pairs(inputs)))
                    raise
                for name, outputs in separate(sample, computed, samples.batch):
                    rows += output_rows(name, outputs, top)
                    if place is not None:
                        place.save(name, outputs)
                    if keep:
                        kept.append(outputs)
                if len(samples) > 1:
                    progress.advance(sample.names[-1])
    together = joined(kept) if keep else {}
    if place is not None:
        place.finish(together)
    comparison = compared(together, wanted, tolerance) if wanted else None
    if format_ == "json":
        print_json(
            "run",
            {
                "model": source.path,
                "samples": samples.count or 1,
                "outputs": rows,
                "timed": ("program" if compiled else "definitions") if trace else None,
                "trace": traced,
                "comparison": comparison,
            },
        )
    else:
        if trace:
            print_trace(traced, compiled)
        print_outputs(rows, several=several is not None)
    if place is not None:
        note(place.said)
    if comparison is not None:
        if not comparison["ok"]:
            raise MismatchError(told(comparison))
        are = "is" if len(wanted) == 1 else "are"
        note(f"{counted(len(wanted), 'output')} {are} as expected (tolerance {tolerance:g})")


def definitions_of(
    model: Model,
    everything: bool,
    traced: list[dict[str, Any]] | None,
    alone: bool,
    limits: tuple[int | None, float | None],
) -> Call:
    """A call by the definitions of the operations, with a bar of layers where it is the only."""

    def call(arrays: Mapping[int, Array]) -> Mapping[str, Array]:
        with Progress(len(model.order())) as progress:

            def watch(step: Traced) -> None:
                if alone:
                    progress.advance(operation_name(step.layer))
                if traced is not None:
                    traced.append(trace_row(step))

            return run(
                model, arrays, outputs="all" if everything else None, trace=watch,
                max_memory=limits[0], max_seconds=limits[1],
            )  # fmt: skip

    return call


def program_of(
    model: Model,
    traced: list[dict[str, Any]] | None,
    max_memory: int | None,
    max_seconds: float | None,
    memory: Memory | None,
) -> Call:
    """A call of the program; each begins with fresh variables."""
    from ..engine import Program
    from ..measuring import layer_rows

    program = Program(model, max_memory=max_memory, max_seconds=max_seconds, memory=memory)

    def call(arrays: Mapping[int, Array]) -> Mapping[str, Array]:
        program.reset()
        listed = [arrays[index] for index in range(len(arrays))]
        outputs = program(listed)
        if traced is not None:
            program.reset()
            for row in layer_rows(program, listed):
                traced.append(
                    {
                        "layer": None,
                        "name": row.name,
                        "operation": row.operation,
                        "milliseconds": round(row.seconds * 1000, 4),
                        "bytes": row.bytes,
                        "shapes": [shape_text(row.shape)],
                    }
                )
        return outputs

    return call


def separate(
    sample: Sample, outputs: Mapping[str, Array], batch: int
) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """The outputs of each of the samples that ran together."""
    if batch == 1:
        yield sample.names[0], outputs
        return
    for name, array in outputs.items():
        if array.ndim == 0 or (array.shape[0] != batch and array.shape[0] != len(sample.names)):
            raise UsageError(
                f'output "{name}" has the shape {array.shape}, no row for each of {batch} samples',
                hint="--batch 1, with a model whose first size is 1",
            )
    for number, called in enumerate(sample.names):
        yield called, {name: array[number : number + 1] for name, array in outputs.items()}


def joined(kept: list[Mapping[str, Array]]) -> Mapping[str, Array]:
    """The outputs of all samples, along their first axis."""
    if len(kept) == 1:
        return kept[0]
    made = {}
    for name in kept[0]:
        arrays = [outputs[name] for outputs in kept]
        if len({array.shape[1:] for array in arrays}) > 1 or arrays[0].ndim == 0:
            shapes = ", ".join(sorted({str(array.shape) for array in arrays}))
            raise UsageError(
                f'output "{name}" has the shapes {shapes}, which do not join along the first axis',
                hint="--save FOLDER/ writes an .npz for each sample",
            )
        made[name] = np.concatenate(arrays)
    return made


class Place:
    """Where outputs are saved; looked at before anything runs."""

    def __init__(self, save: str, force: bool, names: Sequence[str] | None) -> None:
        self.force = force
        self.folder: Path | None = None
        self.path: Path | None = None
        self.count = 0
        if save.lower().endswith(".npz"):
            self.path = Path(save)
            refuse_present(force, save)
            if self.path.is_dir():
                raise UsageError(f"{save} is a folder")
        elif names is not None:
            self.folder = Path(save)
            refuse_present(force, *(self.folder / f"{name}.npz" for name in names))
            if self.folder.exists() and not self.folder.is_dir():
                raise UsageError(f"{save} is a file", hint="--save FOLDER/ or --save FILE.npz")
        elif save.endswith(("/", os.sep)) or Path(save).is_dir() or Path(save).suffix:
            raise UsageError(f"--save {save} does not end in .npz")
        else:
            self.path = Path(save)
            refuse_present(force, save)

    def save(self, name: str, outputs: Mapping[str, Array]) -> None:
        """Write one sample's outputs, where each gets a file."""
        if self.folder is not None:
            save_arrays(outputs, self.folder / f"{name}.npz", force=self.force)
            self.count += 1

    def finish(self, outputs: Mapping[str, Array]) -> None:
        """Write all outputs, where they get one file."""
        if self.path is not None:
            save_arrays(outputs, self.path, force=self.force)
            self.count = len(outputs)

    @property
    def said(self) -> str:
        """What was written."""
        if self.folder is not None:
            return f"wrote {counted(self.count, 'file')} to {self.folder}"
        return f"wrote {counted(self.count, 'array')} to {self.path}"


def output_rows(
    sample: str, outputs: Mapping[str, Array], top: int | None
) -> list[dict[str, Any]]:
    """What is told of one sample's outputs."""
    return [
        {"sample": sample, "name": name, **array_facts(array)}
        | ({"top": top_of(array, top)} if top is not None else {})
        for name, array in outputs.items()
    ]


def array_facts(array: Array) -> dict[str, Any]:
    """Type, shape and numbers of an array."""
    name = "string" if array.dtype.kind == "T" else array.dtype.name
    return {"type": name, "shape": shape_of(array.shape), **value_facts(array)}


def top_of(array: Array, count: int) -> list[dict[str, Any]]:
    """The largest values of an array and where they are; of each row, where it has rows."""
    if array.dtype.kind in "TOSUc" or not array.size:
        return []
    rows = array.reshape(array.shape[0], -1) if array.ndim > 1 else array.reshape(1, -1)
    found = []
    for first, row in enumerate(rows):
        values = row.astype(np.float64)
        # The largest first, of equals the first; what is no number comes last.
        order = np.lexsort((-values, np.isnan(values)))[:count]
        inner = array.shape[1:] if array.ndim > 1 else array.shape
        for place in order:
            index = [int(i) for i in np.unravel_index(int(place), inner)]
            found.append(
                {"index": ([first] if array.ndim > 1 else []) + index, "value": row[place].item()}
            )
    return found


def print_outputs(rows: list[dict[str, Any]], *, several: bool) -> None:
    """The outputs for a person."""

    def number(row: Mapping[str, Any], key: str) -> str:
        return f"{row[key]:.6g}" if key in row else ""

    shown = 1 if several else 0
    print_table(
        "outputs",
        ["sample", "name", "type", "shape", "min", "mean", "max", "NaN", "Inf"][1 - shown :],
        [
            [r["sample"], r["name"], r["type"], r["shape"], number(r, "min"), number(r, "mean"),
             number(r, "max"), r.get("nan", ""), r.get("inf", "")][1 - shown :]
            for r in rows
        ],
        right=range(3 + shown, 8 + shown),
    )  # fmt: skip
    best = [(row, one) for row in rows for one in row.get("top", ())]
    if best:
        print_table(
            "the largest values",
            ["sample", "name", "place", "value"][1 - shown :],
            [
                [row["sample"], row["name"], shape_of(one["index"]), f"{one['value']:.6g}"][
                    1 - shown :
                ]
                for row, one in best
            ],
            right=(2 + shown,),
        )
    for row in rows:
        if not several and "top" not in row and row["elements"] <= len(row["first"]):
            print_values(row)


def print_values(row: Mapping[str, Any]) -> None:
    """The values of a small output."""
    shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row["first"])
    say(f"{printable_name(row['name'])} = [{shown}]")


def trace_row(step: Traced) -> dict[str, Any]:
    """Time and memory of one layer."""
    return {
        "layer": step.layer.id,
        "name": step.layer.name,
        "operation": operation_name(step.layer),
        "milliseconds": round(step.seconds * 1000, 4),
        "bytes": sum(array.nbytes for array in step.outputs),
        "shapes": [shape_of(array.shape) for array in step.outputs],
    }


def print_trace(rows: list[dict[str, Any]], compiled: bool) -> None:
    """The layers' times for a person."""
    total = sum(row["milliseconds"] for row in rows) or 1
    print_table(
        "steps of the program, each with the layers computed together with it"
        if compiled
        else "layers in the order they ran",
        ["name", "operation", "ms", "share", "output", "moved" if compiled else "size"],
        [
            [r["name"], r["operation"], f"{r['milliseconds']:.3f}",
             f"{r['milliseconds'] / total:.0%}", " ".join(r["shapes"]), bytes_text(r["bytes"])]
            for r in rows
        ],
        right=(2, 3, 5),
    )  # fmt: skip
    if not compiled:
        note("these are the times of the definitions, which are written to be read; "
             "--compiled --trace tells those of the program")  # fmt: skip


__all__ = ["make_inputs", "run_command"]
