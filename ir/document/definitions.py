"""The machine-readable definitions of the format: an XML Schema and a JSON Schema.

Both are shipped under ``schemas/``. To make them anew:
``python -m vinoir.ir.document.definitions FOLDER``.
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
    from ...layers import Op

    standard = [op for op in Op.registry.values() if op.is_standard]
    return json_schema((op.spec(), op.opsets(), op, op.describe()) for op in standard)


def write_schemas(folder: Path) -> None:
    """Put both into a folder."""
    (folder / "ir.xsd").write_text(document_schema(), "utf-8")
    (folder / "operations.json").write_text(operations_schema(), "utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
