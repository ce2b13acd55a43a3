"""What a comparison of two runs says of layers, as numbers and notes to paint boxes by."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypedDict, runtime_checkable

from ....schemas import UsageError
from ....schemas.printing import meant, shown
from ...document import Layer
from .sheet import Sheet

#: What can be painted of a comparison, and the field of its steps that has it.
_FIELDS = {"error": "own", "own": "own", "accumulated": "accumulated"}


@runtime_checkable
class ComparedRuns(Protocol):
    """A run that was compared with another, layer by layer."""

    @property
    def steps(self) -> Sequence[Any]:
        """What was found of each output of a layer."""

    def as_json(self) -> dict[str, Any]:
        """The same as plain values, under ``steps``."""


class Errors(TypedDict):
    """The error of each layer, and what is said of it."""

    values: dict[Layer, float]
    notes: dict[Layer, str]


def errors_of(sheet: Sheet, name: str, rows: Iterable[object]) -> Errors:
    """The layers' errors as ``compare`` tells them; of several outputs the largest counts.

    Args:
        sheet: The layers.
        name: ``error`` or ``own`` for what each layer does wrong itself, ``accumulated`` for
            what has come down to it, too.
        rows: The steps of the comparison.

    Raises:
        UsageError: The name is another, or no row is about a layer of the model.
    """
    field = _FIELDS.get(name)
    if field is None:
        raise UsageError(
            f"a comparison does not tell {shown(name)} of layers",
            hint=meant(name, _FIELDS) or f"it tells {', '.join(_FIELDS)}",
        )
    found = _Places(sheet)
    errors: dict[Layer, float] = {}
    notes: dict[Layer, list[str]] = {}
    for row in _with_inner(rows):
        if not isinstance(row, dict) or field not in row:
            continue
        try:
            error, said = float(row[field]), _note(row)
        except (TypeError, ValueError, OverflowError):
            continue
        # A NaN or an infinity on one side: no picture has a number that says so, the note does.
        error = error if abs(error) <= sys.float_info.max else sys.float_info.max
        for layer in found.layers(row.get("place")):
            errors[layer] = max(error, errors.get(layer, error))
            which = f"output {row.get('output')} " if len(layer.outputs) > 1 else ""
            notes.setdefault(layer, []).append(which + said)
    if not errors:
        raise UsageError(
            "the comparison has no layer of this model",
            hint="draw the model that was compared, the first that compare was given",
        )
    return {"values": errors, "notes": {layer: "; ".join(said) for layer, said in notes.items()}}


def _with_inner(rows: Iterable[object]) -> Iterator[object]:
    """The rows, each before that on the layer in its bodies which is wrong."""
    for row in rows:
        while row is not None:
            yield row
            row = row.get("inner") if isinstance(row, dict) else None


def _note(row: Mapping[str, Any]) -> str:
    numbers = [
        f"{word} {float(row[field]):.3g}"
        for field, word in (("own", "own error"), ("accumulated", "accumulated"),
                            ("tolerance", "tolerance"))
        if field in row
    ]  # fmt: skip
    reason = f" ({row['reason']})" if row.get("reason") else ""
    return f"{row.get('verdict', '')}: {', '.join(numbers)}{reason}"


class _Places:
    """The layers of a sheet by their id and name and the names of the layers around them."""

    def __init__(self, sheet: Sheet) -> None:
        self.exact: dict[tuple[object, ...], list[Layer]] = {}
        self.named: dict[tuple[object, ...], list[Layer]] = {}
        for number, layer in enumerate(sheet.layers):
            around = tuple(holder.name for holder, _ in sheet.around_body(number))
            self.exact.setdefault((around, layer.id, layer.name), []).append(layer)
            self.named.setdefault((around, layer.name), []).append(layer)

    def layers(self, place: object) -> Sequence[Layer]:
        """Those at a place as ``compare`` writes it; by name alone where ids are others."""
        if not isinstance(place, dict):
            return ()
        body = place.get("body") or ()
        if not isinstance(body, (list, tuple)):
            return ()
        around = tuple(map(str, body))
        name, number = str(place.get("name")), place.get("id")
        exact = self.exact.get((around, number, name), []) if isinstance(number, int) else []
        return exact or self.named.get((around, name), [])


__all__ = ["ComparedRuns", "errors_of"]
