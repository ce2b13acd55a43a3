"""``vinoir bench``: how fast a model runs, in turn with other runtimes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...schemas import IRError, MismatchError, UsageError
from ...schemas.printing import counted
from ..display import plot_run, shape_text, write_text
from ..execution import tell_made_up
from ..measuring import LAYER_RUNS, LayerRow, Report, Row, measure
from .fleet import over_many
from .inputs import make_inputs, words_of
from .options import (
    AtLeastZero,
    FileName,
    Source,
    force_option,
    format_option,
    model_options,
    onnx_option,
    pairs,
    refuse_present,
    seed_option,
    values_option,
    verb,
)
from .output import bytes_text, note, print_json, print_pairs, print_table
from .progress import Progress


@over_many
@verb(
    "bench",
    "bench model.xml",
    "bench model.xml --threads 2 --runs 5 --layers",
    "bench model.xml --against openvino,onnxruntime --onnx model.onnx",
    "bench model.xml --plot run.svg",
)
@model_options
@click.option(
    "--against", default="", metavar="NAMES", help="openvino, onnxruntime, or both with a comma."
)
@onnx_option
@click.option("--threads", type=click.IntRange(1), help="For each runtime; else all cores.")
@click.option("--runs", type=click.IntRange(1), default=15, show_default=True)
@click.option("--layers", is_flag=True, help="Time of each layer, its GFLOP/s and GB/s.")
@click.option("--plot", type=FileName(), help="An .svg: time by layer, and memory over the run.")
@force_option
@values_option
@seed_option
@click.option("--tolerance", type=AtLeastZero(), default=1e-4, show_default=True)
@format_option()
def bench_command(
    source: Source,
    against: str,
    onnx: str | None,
    threads: int | None,
    runs: int,
    layers: bool,
    plot: str | None,
    force: bool,
    inputs: tuple[str, ...],
    seed: int,
    tolerance: float,
    format_: str,
) -> None:
    """Measure how fast MODEL runs, also against other runtimes; compare their outputs."""
    if plot is not None:
        if Path(plot).suffix.lower() != ".svg":
            raise UsageError(f'"{Path(plot).name}" does not end in .svg')
        refuse_present(force, plot)
    found = source.read()
    given = pairs(inputs)
    arrays = make_inputs(found, given, seed)
    names = [name.strip() for name in against.split(",") if name.strip()]
    with Progress(runs * (1 + len(names)), "preparing") as progress:
        try:
            report = measure(
                found,
                [arrays[index] for index in range(len(found.parameters))],
                against=names,
                threads=threads,
                runs=runs,
                layers=layers or plot is not None,
                onnx=onnx,
                progress=progress.advance,
            )
        except IRError as error:
            tell_made_up(error, found, words_of(found, given))
            raise
    if plot is not None:
        write_text(Path(plot), plot_run(report.layers, f"a run of {found.name}"), force)
        note(f"drew the run into {plot}")
    if format_ == "json":
        print_json("bench", facts(report, source.path, tolerance))
    else:
        print_report(report, layers)
    if report.difference > tolerance:
        worst = max(report.rows, key=lambda row: row.difference)
        raise MismatchError(
            f"outputs differ from {worst.name}'s by {worst.difference:.2g} of their largest "
            f"value, the tolerance is {tolerance:g}"
        )


def facts(report: Report, model: str, tolerance: float) -> dict[str, Any]:
    """The report as plain values."""

    def runtime(row: Row) -> dict[str, Any]:
        return {**asdict(row), "least": row.least, "median": row.median}

    def layer(row: LayerRow) -> dict[str, Any]:
        return {
            **asdict(row),
            "shape": shape_text(row.shape),
            "gigaflops": row.gigaflops,
            "gigabytes": row.gigabytes,
        }

    return {
        "model": model,
        "threads": report.threads,
        "blas": report.blas,
        "runtimes": [runtime(row) for row in report.rows],
        "ratios": {row.name: row.ratio for row in report.rows[1:]},
        "correct": report.difference <= tolerance,
        "peak_memory": report.peak,
        "layers": [layer(row) for row in report.layers],
        "between_layers": report.between,
    }


def print_report(report: Report, layers: bool) -> None:
    """The report for a person."""
    print_table(
        f"{counted(len(report.rows[0].seconds), 'run')} of each in turn, "
        f"{counted(report.threads, 'thread')}",
        ["runtime", "version", "min", "median", "ours / its", "differs", "ready in", "memory"],
        [
            [
                row.name, row.version, milliseconds(row.least), milliseconds(row.median),
                f"{row.ratio:.2f}" if row is not report.rows[0] else "",
                f"{row.difference:.1e}" if row is not report.rows[0] else "",
                milliseconds(row.prepared), bytes_text(max(row.memory, 0)),
            ]
            for row in report.rows
        ],
        right=range(2, 8),
    )  # fmt: skip
    if layers:
        print_layers(report)
    pairs = [("BLAS of NumPy", report.blas)]
    if report.peak:
        pairs.append(("peak memory of the process", bytes_text(report.peak)))
    print_pairs(pairs)


def print_layers(report: Report) -> None:
    """What of the quickest run each layer took, and what none did."""
    taken = sum(row.seconds for row in report.layers)
    whole = taken + report.between
    rows = [
        [
            row.name, row.operation, shape_text(row.shape),
            milliseconds(row.seconds), f"{row.seconds / whole:.1%}",
            f"{row.gigaflops:.1f}", f"{row.gigabytes:.1f}",
        ]
        for row in report.layers
    ]  # fmt: skip
    if report.between:
        share = f"{report.between / whole:.1%}"
        rows.append(["(between layers)", "", "", milliseconds(report.between), share, "", ""])
    print_table(
        "layers, each with those computed together with it: the least of "
        f"{counted(LAYER_RUNS, 'run')} each, together {milliseconds(taken)} of the "
        f"{milliseconds(report.rows[0].least)} of the quickest run",
        ["layer", "operations", "output", "time", "share", "GFLOP/s", "GB/s"],
        rows,
        right=range(3, 7),
    )
    if any(row.by_definition for row in report.layers):
        note("nothing is planned for this model: these are the times of the definitions")


def milliseconds(seconds: float) -> str:
    """A time as a person reads it."""
    time = 1000 * seconds
    return f"{time:.2f} ms" if time >= 1 else f"{time:#.3g} ms"
