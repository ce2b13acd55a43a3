"""Whatever stands between two convolutions, whose values have their channels last in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import calls
import numpy as np
import pytest
import test_program_convolutions
import test_program_families
import test_program_kernels
import test_program_sounds
from oracle import Call
from test_program_kernels import Draw, windows
from vinoir import ir
from vinoir.schemas import ElementType, Tensor

KERNELS = [
    kernel
    for file in (
        test_program_kernels, test_program_families, test_program_convolutions,
        test_program_sounds,
    )
    for kernel in file.KERNELS
]  # fmt: skip


def is_image(tensor: Tensor) -> bool:
    """Whether a convolution may take it."""
    shape = tensor.shape
    if tensor.type is not ElementType.F32 or not shape.is_static:
        return False
    return len(shape.static) in (3, 4, 5) and 0 not in shape.static


def convolved(net: ir.Builder, x: ir.builder.Output, rng: np.random.Generator) -> Any:
    """What a convolution of single places makes of it."""
    shape = x.tensor.shape.static
    filters = rng.standard_normal((3, shape[1], *[1] * (len(shape) - 2))).astype("f4")
    words = windows(len(shape) - 2)
    return net.add("Convolution", "opset1", [x, net.constant(filters)], **words)


class Followed(Draw):
    """A network of which convolutions take what it gives."""

    def check(self, *results: ir.builder.Output) -> None:
        super().check(
            *(convolved(self.net, y, self.rng) if is_image(y.tensor) else y for y in results)
        )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(200, 206))
def test_a_convolution_takes_what_a_kernel_gives(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    kernel(Followed(seed))


def plain(call: Call) -> bool:
    """Whether an operation gives the same each time, and numbers that a convolution takes."""
    if call.kind.is_random or call.kind.rows_vary:
        return False
    return any(map(is_image, (*call.tensors(), *call.make().infer_outputs(call.tensors()))))


@pytest.mark.parametrize("call", [c for c in calls.samples() if plain(c)], ids=str)
def test_an_operation_between_convolutions_gives_what_its_definition_gives(call: Call) -> None:
    net, rng = ir.Builder(), np.random.default_rng(0)
    given, feeds = [], []
    for tensor, array in zip(call.tensors(), call.arrays(), strict=True):
        if tensor.value is not None:
            given.append(net.constant(array, tensor.type))
            continue
        x = net.parameter(f"x{len(feeds)}", tensor.type, array.shape)
        feeds.append(array)
        if is_image(tensor):
            # Each channel as it is.
            size = array.shape[1]
            same = np.eye(size, dtype="f4").reshape(size, size, *[1] * (array.ndim - 2))
            x = net.add("Convolution", "opset1", [x, net.constant(same)],
                        **windows(array.ndim - 2))  # fmt: skip
        given.append(x)
    op = call.make()
    found = net.add(op.xml_type, op.version(), given, **op.attributes())
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    for number, y in enumerate(results):
        net.result(convolved(net, y, rng) if is_image(y.tensor) else y, name=f"y{number}")
    model = net.model()
    wanted = ir.run(model, feeds)
    for threads in (1, 2):
        made = ir.compile(model, threads=threads)(feeds)
        for name, right in wanted.items():
            numbers = right.dtype.kind == "f"
            scale = np.abs(np.nan_to_num(right)).max(initial=1e-6) if numbers else 1
            np.testing.assert_allclose(made[name], right, rtol=1e-4, atol=1e-5 * scale)
