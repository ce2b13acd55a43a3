"""One process that puts mutants through everything; what it says is a line of JSON for each."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Address space of the process: what a mutant wants beyond has to be refused.
ROOM = 2_500_000_000
SECONDS = 5.0


def put_through(path: Path) -> tuple[dict[str, str], float]:
    """What each verb says of a model: "ok", an error, or a traceback; the longest's seconds."""
    from vinoir import ir
    from vinoir.ir.cli.run import make_inputs
    from vinoir.layers.budget import within

    said: dict[str, str] = {}
    longest = 0.0

    def attempt(verb: str, action: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return timed(verb, action)
        finally:
            nonlocal longest
            longest = max(longest, time.monotonic() - began)

    def timed(verb: str, action: Callable[[], Any]) -> Any:
        try:
            made = action()
        except ir.IRError as error:
            said[verb] = type(error).__name__
            return None
        except Exception:
            said[verb] = traceback.format_exc(limit=-4)
            return None
        said[verb] = "ok"
        return made

    attempt("check", lambda: ir.check(path, max_seconds=SECONDS))
    model = attempt("read", lambda: ir.read(path))
    if model is None:
        return said, longest
    attempt("infer", lambda: ir.infer(model, max_seconds=SECONDS))

    def inputs() -> Any:
        with within():
            return make_inputs(model, {}, 0)

    given = attempt("inputs", inputs)
    if given is not None:
        attempt("run", lambda: ir.run(model, given, max_seconds=SECONDS))
    program = attempt(
        "compile", lambda: ir.compile(model, threads=1, fork=False, max_seconds=SECONDS)
    )
    if program is not None and given is not None:
        attempt("call", lambda: program(given))
    return said, longest


def peak() -> int:
    """The most bytes that this process has held; where it can be told apart, not its parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    lines = status.read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10


def main(seeds: list[int]) -> None:
    """Tell of each seed's mutant: what was said, the seconds, the peak of memory so far."""
    from hostile.mutants import mutant

    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.xml"
        for seed in seeds:
            xml, weights = mutant(seed)
            path.write_text(xml)
            path.with_suffix(".bin").write_bytes(weights)
            print(json.dumps({"begins": seed}), flush=True)
            said, seconds = put_through(path)
            row = {
                "seed": seed,
                "said": said,
                "seconds": seconds,
                "peak": peak(),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    main(list(range(first, last)))
