"""Simplification: rules that leave fewer layers, each in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .certificate import Certificate as Certificate
    from .rules import RULES as RULES
    from .simplifier import Simplified as Simplified
    from .simplifier import rewrite as rewrite
    from .simplifier import simplify as simplify

face(
    __name__,
    {
        "certificate": "Certificate",
        "rules": "RULES",
        "simplifier": "Simplified rewrite simplify",
    },
)
