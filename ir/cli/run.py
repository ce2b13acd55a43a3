"""``vinoir run``: a model run in NumPy."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Self

import click
import numpy as np

from ...layers.budget import budget, within
from ...schemas import Array, IRError, MismatchError, UsageError
from ...schemas.printing import printable_name
from ..display import operation_name
from ..document import Layer, Model, by_input
from ..execution import FILLINGS, Traced, fill, run
from ..files import read
from .archive import savable, save_arrays, saved_names
from .fleet import over_many
from .infer import split
from .inputs import over_inputs
from .output import (
    bytes_text,
    format_option,
    limit_options,
    model_argument,
    note,
    print_json,
    print_table,
    say,
    weights_option,
)
from .show import value_facts


@over_inputs
@over_many
@click.command(
    "run",
    epilog="Examples: vinoir run model.xml --input x=image.npy --save out.npz; "
    "vinoir run model.xml --trace; vinoir run model.xml --expect ref.npz --tolerance 1e-4",
)
@model_argument
@weights_option
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An input: FILE.npy, FILE.npz (its array of that name), random, zeros or ones; "
    "inputs that are not named are random.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
@click.option("--all", "everything", is_flag=True, help="Every tensor, not only the outputs.")
@click.option("--save", type=click.Path(), help="Write the tensors to this .npz.")
@click.option("--expect", type=click.Path(), help="Compare with this .npz; exit 5 if they differ.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="For --expect.")
@click.option("--trace", is_flag=True, help="Time and memory of each layer.")
@limit_options
@format_option()
def run_command(
    model: str,
    weights: str | None,
    inputs: tuple[str, ...],
    seed: int,
    everything: bool,
    save: str | None,
    expect: str | None,
    tolerance: float,
    trace: bool,
    max_memory: int | None,
    max_seconds: float | None,
    format_: str,
) -> None:
    """Run MODEL once and describe its outputs."""
    found = read(model, weights)
    with within(max_memory, max_seconds):
        arrays = make_inputs(found, dict(split(text) for text in inputs), seed)
    traced: list[dict[str, Any]] = []
    with Progress(len(found.order())) as progress:

        def watch(step: Traced) -> None:
            progress.advance(operation_name(step.layer))
            if trace:
                traced.append(trace_row(step))

        outputs = run(
            found,
            arrays,
            outputs="all" if everything else None,
            trace=watch,
            max_memory=max_memory,
            max_seconds=max_seconds,
        )
    rows = [{"name": name, **array_facts(array)} for name, array in outputs.items()]
    if format_ == "json":
        print_json({"outputs": rows} | ({"trace": traced} if trace else {}))
    else:
        if trace:
            print_trace(traced)
        print_outputs(rows)
    if save is not None:
        save_arrays(outputs, save)
        note(f"wrote {len(outputs)} arrays to {save}")
    if expect is not None:
        compare(outputs, expect, tolerance)


class Progress:
    """A progress bar on a terminal, for what takes over a second."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.began = time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def advance(self, text: str) -> None:
        """One more step is done."""
        self.done += 1
        if self.bar is None and sys.stderr.isatty() and time.monotonic() - self.began > 1:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("", total=self.total)
        if self.bar is not None:
            from rich.markup import escape

            shown = escape(printable_name(text))
            self.bar.update(self.task, completed=self.done, description=shown)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def make_inputs(model: Model, given: Mapping[str, str], seed: int) -> dict[int, Array]:
    """An array for every input, from what the command line says."""
    words = by_input(model, given)
    rng = np.random.default_rng(seed)
    allowed, made = budget(), dict[int, Array]()
    for index, parameter in enumerate(model.parameters):
        with parameter.at():
            made[index] = make_input(parameter, words.get(parameter.id, "random"), rng)
            allowed.hold([made[index]])
    return made


def make_input(parameter: Layer, word: str, rng: np.random.Generator) -> Array:
    """One input: read from a file, or filled as a word says."""
    return fill(parameter, word, rng) if word in FILLINGS else load(word, parameter)


def load(path: str, parameter: Layer) -> Array:
    """An array from a .npy, or from a .npz the one of the input's name."""
    try:
        content = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(
            f'{path} is not there (input "{parameter.name}")',
            hint="give a .npy or .npz file, or random, zeros or ones",
        ) from None
    except (ValueError, EOFError, OSError) as error:
        raise IRError(f"{path} is no .npy or .npz of plain arrays: {error}") from None
    if isinstance(content, np.ndarray):
        return content
    with content:
        if parameter.name not in content.files and len(content.files) != 1:
            raise UsageError(
                f'{path} has no array "{parameter.name}"; it has {", ".join(content.files)}'
            )
        name = parameter.name if parameter.name in content.files else content.files[0]
        array: Array = content[name]
        return array


def array_facts(array: Array) -> dict[str, Any]:
    """Type, shape and numbers of an array."""
    name = "string" if array.dtype.kind == "T" else array.dtype.name
    return {"type": name, "shape": list(array.shape), **value_facts(array)}


def print_outputs(rows: list[dict[str, Any]]) -> None:
    """The outputs for a person."""

    def number(row: Mapping[str, Any], key: str) -> str:
        return f"{row[key]:.6g}" if key in row else ""

    print_table(
        "outputs",
        ["name", "type", "shape", "min", "mean", "max", "NaN", "Inf"],
        [
            [r["name"], r["type"], f"[{','.join(map(str, r['shape']))}]", number(r, "min"),
             number(r, "mean"), number(r, "max"), r.get("nan", ""), r.get("inf", "")]
            for r in rows
        ],
        right=(3, 4, 5, 6, 7),
    )  # fmt: skip
    for row in rows:
        if row["elements"] <= len(row["first"]):
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
        "shapes": [list(array.shape) for array in step.outputs],
    }


def print_trace(rows: list[dict[str, Any]]) -> None:
    """The layers' times for a person."""
    total = sum(row["milliseconds"] for row in rows) or 1
    print_table(
        "layers in the order they ran",
        ["name", "operation", "ms", "share", "output", "size"],
        [
            [r["name"], r["operation"], f"{r['milliseconds']:.3f}",
             f"{r['milliseconds'] / total:.0%}",
             " ".join(f"[{','.join(map(str, s))}]" for s in r["shapes"]), bytes_text(r["bytes"])]
            for r in rows
        ],
        right=(2, 3, 5),
    )  # fmt: skip


def compare(outputs: Mapping[str, Array], path: str, tolerance: float) -> None:
    """Refuse outputs that differ from a file's by more than a tolerance."""
    try:
        content = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise IRError(f"{path} is no .npz of plain arrays: {error}") from None
    wrong = []
    saved = saved_names(outputs)
    for name in content.files:
        if name not in saved:
            raise UsageError(f'{path} has "{name}", the model gives {", ".join(outputs)}')
        got, wanted = savable(outputs[saved[name]]), content[name]
        if got.shape != wanted.shape:
            wrong.append(f"{name} has the shape {got.shape}, expected {wanted.shape}")
        elif got.dtype.kind in "US":
            if not np.array_equal(got, wanted):
                wrong.append(f"{name} differs")
        elif not np.allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            off = np.abs(got.astype("f8") - wanted.astype("f8"))
            worst = np.unravel_index(int(np.nanargmax(off)), off.shape)
            place = ",".join(str(int(i)) for i in worst)
            wrong.append(
                f"{name}[{place}] is {got[worst]:.6g}, expected {wanted[worst]:.6g} "
                f"(tolerance {tolerance:g})"
            )
    if wrong:
        raise MismatchError("; ".join(wrong))
    note(f"{len(content.files)} outputs are as expected (tolerance {tolerance:g})")
