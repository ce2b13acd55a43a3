"""ONNX models as IR.

Example::

    model = ir.from_onnx("model.onnx")
    ir.write(model, "model.xml")

Every ONNX operator has one converter, in the file of its family; an operator without one is
taken for the function by which the standard defines it, where there is such.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from ....layers.memory import without_collection
from ....schemas import UnsupportedError, UsageError, Where
from .semantics import Semantics

if TYPE_CHECKING:
    from ...document import Model
    from .importer import Importer


#: Bytes by which constants may grow that an ONNX model has computed from smaller ones.
SPARE = 1 << 28


@without_collection()
def from_onnx(
    source: Any, *, semantics: Semantics = "onnxruntime", simplify: bool = True
) -> Model:
    """Turn an ONNX model into IR.

    Args:
        source: A path, the bytes of a file, or an ``onnx.ModelProto``.
        semantics: Whose answers are wanted where runtimes differ about pooling, and about bytes
            that overflow: those of ONNX Runtime where it keeps to the definition
            (``onnxruntime``), those of the text of each operator's version (``onnx``), or those
            of OpenVINO's own importer (``openvino``).
        simplify: Leave fewer layers that give the same outputs (see ``ir.simplify``).

    Raises:
        UnsupportedError: Nodes have no counterpart in IR; all of them are listed.
        UnreadableError: It is no ONNX model, or not a whole one.
        IRError: The model contradicts itself or the standard.
        UsageError: The package ``onnx`` is not installed.
    """
    room = SPARE if simplify else 0
    importer = examine(source, semantics=semantics, tolerant=False, room=room)
    failed = [row for row in importer.rows if row.problem is not None]
    # What is wrong with what comes of another's problem is seen when that is solved.
    first = [
        row for row in failed if not row.waits_for or isinstance(row.problem, UnsupportedError)
    ]
    failed = first or failed
    if failed:
        lines = [f"{row.name} ({row.operation}): {row.problem.message}"
                 for row in failed if row.problem is not None]  # fmt: skip
        shown = lines if len(lines) <= 20 else [*lines[:20], f"and {len(lines) - 20} more"]
        raise UnsupportedError(
            f"{len(failed)} of {len(importer.rows)} nodes have no counterpart in IR: "
            + "; ".join(shown),
            Where(importer.place),
        )
    return simplified(importer) if simplify else importer.model


def simplified(importer: Importer) -> Model:
    """An imported model with fewer layers; weights that were said by a rule become constants."""
    from ...surgery import rewrite

    rewrite(importer.model, spare=importer.room, known=importer.tensors)
    return importer.model


def examine(
    source: Any,
    *,
    semantics: Semantics = "onnxruntime",
    tolerant: bool = True,
    room: int = 0,
) -> Importer:
    """Import as far as it goes: ``rows`` says what becomes of each node, or why nothing does.

    Args:
        source: As of ``from_onnx``.
        semantics: As of ``from_onnx``.
        tolerant: Go on after nodes that contradict the standard, too.
        room: Bytes that constants may take which the model says by a rule.
    """
    if semantics not in get_args(Semantics):
        raise UsageError(f'semantics "{semantics}" is not one of {", ".join(get_args(Semantics))}')
    with needed():
        from .importer import Importer
        from .proto import load
    proto, path = load(source)
    importer = Importer(proto, path, semantics, tolerant, room)
    importer.run()
    return importer


@contextmanager
def needed() -> Iterator[None]:
    """Say what to install where the package onnx is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("onnx", "google"):
            raise
        raise UsageError(
            "reading ONNX models needs the package onnx", hint='pip install "vinoir[onnx]"'
        ) from None


class Operator(NamedTuple):
    """An ONNX operator that imports, in some of its versions."""

    family: str
    operator: str
    versions: tuple[int, ...]
    becomes: str


def operators() -> list[Operator]:
    """All ONNX operators with a converter, or which the standard defines by others that have."""
    with needed():
        from . import importer  # noqa: F401  # declares the converters
        from .functions import by_function
        from .node import TABLE
        from .versions import versions
    rows = []
    for (domain, operator), converters in TABLE.items():
        known = versions(operator, domain)
        for one in converters:
            mine = tuple(
                v for v in known if v >= one.since and (one.until is None or v <= one.until)
            )
            family = one.function.__module__.rpartition(".")[2]
            rows.append(Operator(family, operator, mine, one.becomes))
    rows += [Operator("functions", name, known, text) for name, known, text in by_function()]
    return sorted(rows)


__all__ = ["SPARE", "Operator", "Semantics", "examine", "from_onnx", "operators", "simplified"]
