"""Programs: a model planned once, rewritten by passes, run by kernels on several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .plan import Node as Node
    from .program import Program as Program
    from .program import compile as compile
    from .workers import describe as describe

__getattr__, __dir__ = face(
    __name__,
    {
        "plan.nodes": "Node",
        "program": "Program compile",
        "workers.blas_threads": "describe",
    },
)
