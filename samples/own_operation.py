"""An operation of your own: a class that says what comes out, in shape and in value.

The class's name is the registration; from here on it is read, inferred and run like any other.
An installed package offers its operations by an entry point of the group "vinoir.operations".
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from vinoir import ir
from vinoir.layers import Op
from vinoir.schemas import Array, Tensor
from vinoir.schemas.attributes import Float


class LeakyV1(Op):
    """``x`` where it is positive, else ``slope * x``."""

    also: ClassVar[frozenset[str]] = frozenset({"extension"})
    slope: Float = 0.1

    def infer(self, x: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(x.type, x.shape),)

    def run(self, x: Array) -> tuple[Array, ...]:
        return (np.where(x > 0, x, np.asarray(self.slope, x.dtype) * x),)


def main() -> None:
    net = ir.Builder("own")
    x = net.parameter("x", "f32", "?,4")
    net.result(net.add("Leaky", "extension", [x], name="leaky", slope=0.5), name="y")
    model = net.model()
    print(ir.dumps(model)[0].decode())
    print(ir.run(model, {"x": np.array([[-2, -1, 0, 3]], np.float32)})["y"])


if __name__ == "__main__":
    main()
