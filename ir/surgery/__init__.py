"""What changes a model: repairs of findings, new shapes, fewer layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .fixing import Fix as Fix
    from .fixing import fix as fix
    from .reshaping import reshape as reshape
    from .reshaping import same_declaration as same_declaration
    from .simplifying import Certificate as Certificate
    from .simplifying import Simplified as Simplified
    from .simplifying import rewrite as rewrite
    from .simplifying import simplify as simplify

__getattr__, __dir__ = face(
    __name__,
    {
        "fixing": "Fix fix",
        "reshaping": "reshape same_declaration",
        "simplifying": "Certificate Simplified rewrite simplify",
    },
)
