"""Weights brought into the order that their kernels want, before a program first runs."""

from __future__ import annotations

import threading
from contextlib import suppress

from ..memory import is_wished, shelved
from ..plan import CONVOLUTIONS, Node, Plan
from ..workers import single_blas
from .convolution import LaidOut, choose_tilings, is_prepared, lay_out, layout_key


def lay_out_weights(plan: Plan, threads: int, allowance: int) -> None:
    """Bring weights into the order their kernels want, on several threads, the largest first.

    What they take beyond what they take as they lie is kept within an allowance of bytes.
    """
    alike: dict[tuple[object, ...], list[Node]] = {}
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS and is_prepared(node):
            alike.setdefault(layout_key(node), []).append(node)
    groups = sorted(alike.values(), key=lambda nodes: -nodes[0].inputs[1].nbytes)
    tilings = choose_tilings([first for first, *_ in groups], allowance)
    waiting = zip(groups, tilings, strict=True)
    errors: list[BaseException] = []
    keep = shelved if is_wished() else None

    def take_some() -> None:
        try:
            single_blas.stay()
            for (first, *more), tiling in waiting:
                first.laid_out = laid_out = lay_out(first, tiling)
                if keep is not None:
                    first.laid_out = LaidOut(laid_out.tiling, list(map(keep, laid_out.matrices)))
                for node in more:
                    node.laid_out = first.laid_out
        except BaseException as error:  # raised again below, when all rest
            errors.append(error)

    others: list[threading.Thread] = []
    with suppress(RuntimeError):  # there may be no more threads to be had
        for _ in range(min(threads, len(groups)) - 1):
            other = threading.Thread(target=take_some)
            other.start()
            others.append(other)
    take_some()
    for other in others:
        other.join()
    if errors:
        raise errors[0]
