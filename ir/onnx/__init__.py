"""ONNX models as IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .importing.entry import SPARE as SPARE
    from .importing.entry import Operator as Operator
    from .importing.entry import examine as examine
    from .importing.entry import from_onnx as from_onnx
    from .importing.entry import operators as operators
    from .importing.entry import simplified as simplified
    from .importing.importer import Importer as Importer
    from .importing.importer import Row as Row
    from .importing.semantics import Semantics as Semantics

face(
    __name__,
    {
        "importing.entry": "SPARE Operator examine from_onnx operators simplified",
        "importing.importer": "Importer Row",
        "importing.semantics": "Semantics",
    },
)
