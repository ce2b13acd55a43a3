"""Memory that networks take once they have run: ``python -m tests.benchmarks held FOLDER``.

The folder is that of ``networks``. Each engine prepares and runs each network in a process of its
own. What it and its helpers hold then, shared pages by their share, is told beside what the
process held before, both engines imported. Linux tells; others do not.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vinoir.ir.measuring import AT_F32

from .families import steps_of


def held() -> float:
    """Megabytes of this process and its children."""
    own = Path("/proc/self")
    children = (own / "task" / own.resolve().name / "children").read_text().split()
    total = 0
    for process in (own, *(Path("/proc") / number for number in children)):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def prepared(engine: str, path: Path) -> Callable[[list[Any]], Any]:
    """What runs a network."""
    if engine == "openvino":
        import openvino as ov

        words = AT_F32 | {"INFERENCE_NUM_THREADS": 2}
        request = ov.Core().compile_model(path, "CPU", words).create_infer_request()
        return request.infer
    from vinoir import ir

    memory: Any = {"small": "small", "fast": "fast"}.get(engine)
    return ir.compile(ir.read(path), threads=2, memory=memory)


def tell(engine: str, path: Path) -> None:
    """Run all steps, and print megabytes."""
    steps = steps_of(path.with_suffix(".npz"))
    before = held()
    run = prepared(engine, path)
    for inputs in steps:
        run(inputs)
    gc.collect()
    print(held() - before)


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks held")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="which networks, with wildcards")
    given = parser.parse_args(words)
    for path in sorted(given.folder.glob(f"{given.only}.xml")):
        found = {
            engine: float(
                subprocess.run(
                    [sys.executable, "-m", "tests.benchmarks", "held-by", engine, str(path)],
                    check=True, capture_output=True, text=True,
                ).stdout
            )
            for engine in ("openvino", "vinoir", "small")
        }  # fmt: skip
        theirs = found["openvino"]
        cells = (f"{name} {mb:.0f} MB ({mb / theirs:.2f})" for name, mb in found.items())
        print(path.stem, *cells, sep="  ", flush=True)


__all__ = ["main", "tell"]
