"""Run all benchmarks: ``python -m tests.benchmarks [--only networks,poolings] [--runs N]``.

Writes benchmarks.md, benchmarks.json and benchmarks.svg into the folder given by ``--into``.
Models are made and kept in the temporary folder. ``python -m tests.benchmarks networks FOLDER``
measures the networks of a folder instead, ``held FOLDER`` the memory they take, ``lengths FOLDER``
inputs of ever other sizes: see ``families``, ``holding`` and ``lengths``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import families, holding, lengths, speed
from .report import plot, table

SUITE = {
    "networks": ("Nine networks, batch 1, f32", speed.networks),
    "poolings": ("Poolings", speed.poolings),
    "sequences": ("Recurrent layers", speed.sequences),
    "readings": ("Reading", speed.readings),
    "starts": ("Cold start", speed.cold_starts),
    "memory": ("Memory", speed.memories),
    "scaling": ("Scaling", speed.scaling),
}


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    words.add_argument("--only", default=",".join(SUITE))
    words.add_argument("--runs", type=int, default=15)
    words.add_argument("--threads", type=int)
    words.add_argument("--into", type=Path, default=Path("benchmarks"))
    given = words.parse_args()
    given.into.mkdir(exist_ok=True, parents=True)
    found = {}
    for name in given.only.split(","):
        _, measure = SUITE[name]
        found[name] = []
        for row in measure(given.runs, given.threads):
            found[name].append(row)
            print(name, *(f"{k}={v:.3g}" if isinstance(v, float) else v for k, v in row.items()))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = {"cores": cores, "runs": given.runs, "threads": given.threads, **speed.versions()}
    (given.into / "benchmarks.json").write_text(json.dumps({**facts, **found}, indent=1), "utf-8")
    text = "# Benchmarks\n\n" + ", ".join(f"{k} {v}" for k, v in facts.items()) + "\n\n"
    text += "\n".join(table(SUITE[name][0], rows) for name, rows in found.items() if rows)
    (given.into / "benchmarks.md").write_text(text, "utf-8")
    bars = [
        (f"{next(iter(row.values()))} {key.removeprefix('ratio')}".strip(), value)
        for rows in found.values()
        for row in rows
        for key, value in row.items()
        if key.startswith("ratio")
    ]
    if bars:
        picture = plot("our time over theirs", bars)
        (given.into / "benchmarks.svg").write_text(picture, "utf-8")
    print(f"wrote {given.into}/benchmarks.md, .json, .svg")


if __name__ == "__main__":
    if sys.argv[1:2] == ["networks"]:
        families.main(sys.argv[2:])
    elif sys.argv[1:2] == ["held"]:
        holding.main(sys.argv[2:])
    elif sys.argv[1:2] == ["lengths"]:
        lengths.main(sys.argv[2:])
    elif sys.argv[1:2] == ["held-by"]:
        holding.tell(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
