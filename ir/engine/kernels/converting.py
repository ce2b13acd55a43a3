"""Numbers in other types, prepared: real ones lose their fraction, whole ones wrap around.

Real numbers that 32 bits hold without it take two casts; where there are others, or none at all,
a block is done by the definition.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from ....layers.type import converted
from ....schemas import Array, ElementType
from ..memory import in_blocks
from ..plan import Node
from ..workers import Part, sequence, spans
from .blocks import Scratch
from .copies import cut_alike
from .rooms import NEAR

#: Types that arrays hold as they are.
KINDS = {
    kind: kind.dtype
    for kind in (ElementType.F32, ElementType.I8, ElementType.U8, ElementType.I32, ElementType.I64)
}
#: Real numbers from the one on and below the other are whole ones of 32 bits.
LEAST, END = np.float32(-(2.0**31)), np.float32(2.0**31)


def prepare(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a Convert; None where there is no kernel for it."""
    (source,), (output,) = node.inputs, node.outputs
    kind: ElementType = node.op.destination_type  # type: ignore[attr-defined]  # Convert has it
    of = ElementType.of(source.type) if source.element is None else source.element
    if any(one not in KINDS for one in (kind, of)) or output.type != KINDS[kind]:
        return None
    if source.type != KINDS[of] or source.grid is not None:
        return None
    if source.store is None or output.store is None:
        return None
    given, made, count = source.store, output.store, prod(output.shape)
    lanes = threads if count > NEAR else 1
    straight = given.flags.c_contiguous and made.flags.c_contiguous
    if source.last != output.last or not straight:
        if of.is_real and not kind.is_real:
            return None
        return [
            [sequence([partial(_cast, *pair) for pair in in_blocks(*some)])
             for some in cut_alike(source.array, output.array, lanes)]
        ]  # fmt: skip
    given, made = given.reshape(-1), made.reshape(-1)
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(count, lanes)):
        steps: list[Part] = []
        for first, stop in spans(end - begin, -(-(end - begin) // NEAR)):
            scratch.reset()
            index = slice(begin + first, begin + stop)
            if of.is_real and not kind.is_real:
                room = scratch.take(part, stop - first).view(np.int32)
                steps.append(partial(_truncated, given[index], room, made[index], kind))
            else:
                steps.append(partial(_cast, given[index], made[index]))
        parts.append(sequence(steps))
    return [parts]


def _cast(block: Array, target: Array) -> None:
    np.copyto(target, block, casting="unsafe")


def _truncated(block: Array, room: Array, target: Array, kind: ElementType) -> None:
    if block.min() >= LEAST and block.max() < END:
        np.copyto(room, block, casting="unsafe")
        np.copyto(target, room, casting="unsafe")
    else:
        np.copyto(target, converted(block, kind))
