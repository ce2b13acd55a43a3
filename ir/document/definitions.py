"""The machine-readable definitions of the format: an XML Schema and a JSON Schema.

Both are shipped under ``schemas/``; ``python -m vinoir.ir.definitions FOLDER`` makes them anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ...schemas.export import json_schema, xsd


def document_schema() -> str:
    """The XML Schema of a document."""
    return xsd()


def operations_schema() -> str:
    """The JSON Schema of the attributes of every operation of OpenVINO's."""
    from ... import layers
    from ...layers.base import Op

    # Others may have declared operations of their own.
    own = [op for op in Op.registry.values() if op.__module__.startswith(f"{layers.__name__}.")]
    return json_schema((op.spec(), op.opsets(), op, op.describe()) for op in own)


def write_schemas(folder: Path) -> None:
    """Put both into a folder."""
    (folder / "ir.xsd").write_text(document_schema(), "utf-8")
    (folder / "operations.json").write_text(operations_schema(), "utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
