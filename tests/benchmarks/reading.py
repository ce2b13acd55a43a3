"""How fast a model is read, against OpenVINO in the same process.

Run by hand: ``python tests/benchmarks/reading.py [MODEL.xml ...]``. Prints for each file the
medians of several readings by each in turn, and their ratio; then the time per layer of chains
of growing length, which is to stay the same: to read, to infer, to write unchanged, to build.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import openvino as ov
from vinoir import ir

PORT = (
    '\t\t\t\t<port id="{}" precision="FP32"{}>\n'
    "\t\t\t\t\t<dim>1</dim>\n\t\t\t\t\t<dim>64</dim>\n\t\t\t\t</port>\n"
)


def chain(length: int) -> str:
    """A row of ReLU layers."""
    lines = ['<?xml version="1.0"?>\n<net name="chain" version="11">\n\t<layers>\n']
    for index in range(length):
        kind = "Result" if index == length - 1 else "ReLU" if index else "Parameter"
        lines.append(f'\t\t<layer id="{index}" name="l{index}" type="{kind}" version="opset1">\n')
        if not index:
            lines.append('\t\t\t<data shape="1,64" element_type="f32" />\n')
        if index:
            lines.append("\t\t\t<input>\n" + PORT.format(0, "") + "\t\t\t</input>\n")
        if kind != "Result":
            names = f' names="t{index}"'
            lines.append("\t\t\t<output>\n" + PORT.format(1, names) + "\t\t\t</output>\n")
        lines.append("\t\t</layer>\n")
    lines.append("\t</layers>\n\t<edges>\n")
    lines += [
        f'\t\t<edge from-layer="{i}" from-port="1" to-layer="{i + 1}" to-port="0" />\n'
        for i in range(length - 1)
    ]
    lines.append("\t</edges>\n\t<rt_info />\n</net>\n")
    return "".join(lines)


def timed(work: Callable[[], object]) -> float:
    """How long it takes, in milliseconds."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def build(length: int) -> ir.Model:
    """A row of ReLU layers made in memory."""
    net = ir.Builder()
    output = net.parameter("x", "f32", "1,64")
    for _ in range(length):
        output = net.add("ReLU", "opset1", [output])
    net.result(output)
    return net.model()


def main() -> None:
    core = ov.Core()
    with tempfile.TemporaryDirectory() as folder:
        synthetic = Path(folder) / "chain8000.xml"
        synthetic.write_text(chain(8000))
        for path in [synthetic, *map(Path, sys.argv[1:])]:
            pairs = [
                (
                    timed(lambda path=path: ir.read(path)),
                    timed(lambda path=path: core.read_model(path)),
                )
                for _ in range(21)
            ]
            ours, theirs = map(median, zip(*pairs, strict=True))
            print(
                f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, vinoir {ours:.1f} ms, "
                f"OpenVINO {theirs:.1f} ms, ratio {ours / theirs:.2f}"
            )
        for length in (1000, 10_000, 100_000):
            text = chain(length).encode()
            model = ir.loads(text)
            works: dict[str, Callable[[], object]] = {
                "read": lambda text=text: ir.loads(text),
                "infer": lambda model=model: ir.infer(model),
                "write": lambda model=model: ir.dumps(model),
                "build": lambda length=length: build(length),
            }
            found = {
                name: 1000 * min(timed(work) for _ in range(3)) / length
                for name, work in works.items()
            }
            print(f"{length} layers, us each:", *(f"{k} {v:.2f}" for k, v in found.items()))


if __name__ == "__main__":
    main()
