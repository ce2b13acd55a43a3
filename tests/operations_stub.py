"""Makes what tells type checkers and editors which operations there are.

That is ``ir/operations.pyi`` for ``ir.ops``, and the imports of ``layers/__init__.py``. Run it as
``python tests/operations_stub.py`` after changing an operation.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

from vinoir.ir import ops
from vinoir.layers.base import Attribute, Op
from vinoir.layers.registry import FILES

STUB = Path(__file__).parents[1] / "ir" / "operations.pyi"
CLASSES = Path(__file__).parents[1] / "layers" / "__init__.py"

HEAD = '''\
"""What ``ir.ops`` has, for type checkers and editors; made by ``tests/operations_stub.py``."""

import inspect
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..layers.base import Op
from ..schemas.shapes import ShapeLike
from ..schemas.types import TypeLike
from .document import Builder, Output, Value

Input: TypeAlias = Output | Value

NOT_CALLED: frozenset[str]

def signature(op: type[Op]) -> inspect.Signature: ...

class Operations:
    def __dir__(self) -> list[str]: ...
'''

#: The type that a caller may give, by the kind of an attribute.
TYPES = {
    "bool": "bool",
    "element_type": "TypeLike",
    "float": "float",
    "float[]": "Sequence[float]",
    "int": "int",
    "int[]": "Sequence[int]",
    "partial_shape": "ShapeLike",
    "string": "str",
    "string[]": "Sequence[str]",
}
KIND = inspect.Parameter


def stub() -> str:
    """The text of the stub."""
    parts = [HEAD, *(_method(name) for name in dir(ops)), "ops: Operations\n"]
    return "".join(parts)


def classes() -> str:
    """The text of ``layers/__init__.py``, with the classes as they are now."""
    before, imports, rest = CLASSES.read_text("utf-8").partition("if TYPE_CHECKING:\n")
    files = "".join(f"        {file},\n" for file in sorted(FILES))
    found = {(op.__module__, op.__name__) for op in Op.registry.values() if op.is_standard}
    rows = sorted(found, key=lambda row: (row[0], _in_order(row[1])))
    lines = [_import(module.rpartition(".")[2], name) for module, name in rows]
    after = rest[rest.index("\n__all__") :]
    return f"{before}{imports}    from . import (\n{files}    )\n{''.join(lines)}{after}"


def _in_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """What names are sorted by, as ruff does: capitals alone first, numbers by their size."""
    parts = re.split(r"(\d+)", name.lower())
    numbered = [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
    return not name.isupper(), numbered


def _import(file: str, name: str) -> str:
    """One class, as ruff writes it."""
    line = f"    from .{file} import {name} as {name}\n"
    if len(line) <= 100:
        return line
    inner = f"        {name} as {name},"
    if len(inner) > 99:
        inner += "  # noqa: E501  # its name"
    return f"    from .{file} import (\n{inner}\n    )\n"


def _method(kind: str) -> str:
    """One operation, as a method."""
    op = Op.newest(kind)
    assert op is not None
    rows = {row.name.replace("-", "_"): row for row in op.describe()}
    names = op.names()
    rows = {names[row.name]: row for row in rows.values()}
    lines = ["        self,\n"]
    for name, one in list(inspect.signature(op.infer).parameters.items())[1:]:
        if one.kind is KIND.VAR_KEYWORD:
            continue
        if one.kind is KIND.VAR_POSITIONAL:
            lines.append(f"        *{name}: Input | Sequence[Input],\n")
            continue
        optional = one.default is not KIND.empty
        lines.append(f"        {name}: Input{' | None = None' if optional else ''},\n")
    if not any(line.lstrip().startswith("*") for line in lines):
        lines.append("        *,\n")
    for required in (True, False):
        lines += [_attribute(n, row) for n, row in rows.items() if row.required is required]
    lines += ["        name: str | None = None,\n", "        net: Builder | None = None,\n"]
    return f"    def {kind}(\n{''.join(lines)}    ) -> Output:\n{_document(op, rows)}\n"


def _attribute(name: str, row: Attribute) -> str:
    """One attribute among the parameters."""
    kind = TYPES.get(row.kind, "")
    if row.choices:
        words = [f'"{word}"' for word in row.choices]
        kind = f"Literal[{', '.join(words)}]"
        if len(name) + len(kind) + 20 > 99:
            inner = "".join(f"            {word},\n" for word in words)
            kind = f"Literal[\n{inner}        ]"
    return f"        {name}: {kind}{'' if row.required else ' = ...'},\n"


def _document(op: type[Op], rows: dict[str, Attribute]) -> str:
    """What an editor shows: what it computes, and its attributes."""
    first = (op.__doc__ or "").strip().splitlines()[0]
    if not rows:
        return _wrapped(f'"""{first}"""', "        ")
    args = "".join(
        _wrapped(f"{name}: {row.description}.", "            ", "                ")
        for name, row in rows.items()
    )
    head = _wrapped(f'"""{first}', "        ")
    return f'{head}\n        Args:\n{args}        """\n'


def _wrapped(text: str, first: str, following: str | None = None) -> str:
    lines = textwrap.wrap(
        text, 99, initial_indent=first, subsequent_indent=following or first,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    STUB.write_text(stub(), "utf-8")
    CLASSES.write_text(classes(), "utf-8")
