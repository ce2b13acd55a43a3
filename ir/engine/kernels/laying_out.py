"""Weights brought into the order that their kernels want, before a program first runs."""

from __future__ import annotations

from functools import partial

from ..memory import is_wished, shelved
from ..plan import CONVOLUTIONS, Node, Plan
from ..workers import side_by_side
from .convolution import LaidOut, choose_tilings, is_prepared, lay_out, layout_key
from .halving import halve_weights
from .scaling import scale_weights
from .winograd import Tiling


def lay_out_weights(plan: Plan, threads: int, allowance: int) -> dict[int, int]:
    """Bring weights into the order their kernels want, on several threads, the largest first.

    What they take beyond what they take as they lie is kept within an allowance of bytes.

    Returns:
        How many bytes those of convolutions take, by where they begin: plans may share them.
    """
    alike: dict[tuple[object, ...], list[Node]] = {}
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS and is_prepared(node):
            alike.setdefault(layout_key(node), []).append(node)
    groups = sorted(alike.values(), key=lambda nodes: -nodes[0].inputs[1].nbytes)
    tilings = choose_tilings([first for first, *_ in groups], allowance)
    keep = shelved if is_wished() else None

    def prepare(first: Node, more: list[Node], tiling: Tiling | None) -> None:
        first.laid_out = laid_out = lay_out(first, tiling)
        if keep is not None:
            first.laid_out = laid_out._replace(matrices=list(map(keep, laid_out.matrices)))
        for node in more:
            node.laid_out = first.laid_out

    side_by_side(
        (
            partial(prepare, first, more, tiling)
            for (first, *more), tiling in zip(groups, tilings, strict=True)
        ),
        threads,
    )
    halve_weights(plan)
    scale_weights(plan)
    made = [first.laid_out for first, *_ in groups if isinstance(first.laid_out, LaidOut)]
    return {matrix.ctypes.data: matrix.nbytes for laid_out in made for matrix in laid_out.matrices}
