"""Programs: a model planned once, rewritten by passes, run by kernels on several workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .means import Memory as Memory
    from .memory import shared_weights as shared_weights
    from .plan import Node as Node
    from .plan import products as products
    from .program import Program as Program
    from .program import compile as compile
    from .workers import core_count as core_count
    from .workers import describe as describe

face(
    __name__,
    {
        "memory": "shared_weights",
        "plan": "Node products",
        "means": "Memory",
        "program": "Program compile",
        "workers": "core_count describe",
    },
)
