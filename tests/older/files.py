"""Old documents made by hand: layers put down one by one, in the spelling of IR v2 to v7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

#: The precision of a blob by its NumPy type.
PRECISIONS = {
    "float32": "FP32", "float16": "FP16", "int64": "I64", "int32": "I32", "uint8": "U8",
    "int8": "I8", "int16": "I16", "bool": "BOOL",
}  # fmt: skip


class Spot(NamedTuple):
    """An output port: of which layer, its id, its sizes."""

    layer: int
    port: int
    dims: tuple[int, ...]


class OldFile:
    """An old document that grows."""

    def __init__(self, version: int = 6, precision: str = "FP32", name: str = "old") -> None:
        self.version, self.precision, self.name = version, precision, name
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.more = ""
        self.bin = b""
        self.count = 0

    def input(self, dims: Sequence[int], name: str | None = None, precision: str = "") -> Spot:
        """An Input layer."""
        return self.add("Input", [], [dims], name=name or f"in{self.count}", precision=precision)

    def const(
        self, value: Any, name: str | None = None, dims: Sequence[int] | None = None
    ) -> Spot:
        """A Const layer."""
        array = np.asarray(value)
        precision = PRECISIONS[str(array.dtype)]
        return self.add(
            "Const", [], [array.shape if dims is None else dims], blobs={"custom": array},
            name=name, precision=precision,
        )  # fmt: skip

    def add(self, *given: Any, **more: Any) -> Spot:
        """A layer with one output."""
        return self.many(*given, **more)[0]

    def many(
        self,
        type: str,
        inputs: Sequence[Spot | Sequence[int]],
        outputs: Sequence[Sequence[int]],
        data: Mapping[str, Any] | None = None,
        blobs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        precision: str = "",
        inside: str = "",
        tag: str = "data",
        children: str = "",
    ) -> list[Spot]:
        """A layer; an input that is a list of sizes is fed by nothing."""
        number = self.count
        self.count += 1
        name = name or f"{type.lower()}{number}"
        head = f' precision="{precision or self.precision}"'
        text = [f'<layer id="{number}" name="{name}" type="{type}"{head}>']
        if data is not None or children:
            words = "".join(f' {key}="{value}"' for key, value in (data or {}).items())
            text.append(f"<{tag}{words}>{children}</{tag}>")
        if inputs:
            ports = []
            for index, one in enumerate(inputs):
                dims = one.dims if isinstance(one, Spot) else tuple(one)
                ports.append(port(index, dims))
                if isinstance(one, Spot):
                    self.edges.append(
                        f'<edge from-layer="{one.layer}" from-port="{one.port}" '
                        f'to-layer="{number}" to-port="{index}"/>'
                    )
            text.append(f"<input>{''.join(ports)}</input>")
        spots = [
            Spot(number, len(inputs) + index, tuple(dims)) for index, dims in enumerate(outputs)
        ]
        if spots:
            text.append(f"<output>{''.join(port(s.port, s.dims) for s in spots)}</output>")
        rows = "".join(self._blob(key, value, head) for key, value in (blobs or {}).items())
        if rows:
            text.append(rows if self.version == 2 else f"<blobs>{rows}</blobs>")
        text.append(f"{inside}</layer>")
        self.layers.append("\n".join(text))
        return spots

    def _blob(self, name: str, value: Any, head: str) -> str:
        array = np.asarray(value)
        blob = array if isinstance(value, bytes) else array.tobytes()
        data = value if isinstance(value, bytes) else blob
        offset = len(self.bin)
        self.bin += data
        precision = "" if isinstance(value, bytes) else PRECISIONS[str(array.dtype)]
        said = f' precision="{precision}"' if precision and f'"{precision}"' not in head else ""
        return f'<{name} offset="{offset}" size="{len(data)}"{said}/>'

    @property
    def xml(self) -> bytes:
        """The document."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return (
            f'<?xml version="1.0"?>\n<net name="{self.name}" version="{self.version}" batch="1">\n'
            f"<layers>\n{layers}\n</layers>\n<edges>\n{edges}\n</edges>\n{self.more}</net>\n"
        ).encode()


def port(number: int, dims: Sequence[int]) -> str:
    """A port with its sizes."""
    return f'<port id="{number}">{"".join(f"<dim>{n}</dim>" for n in dims)}</port>'
