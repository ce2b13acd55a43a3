"""What outputs are expected, looked at before a model runs, and how far they are from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...schemas import Array, UnreadableError, UsageError
from ...schemas.packing import plain_texts
from .archive import load_arrays, savable, saved_names


def expected_arrays(texts: Sequence[str], names: Sequence[str]) -> dict[str, Array]:
    """The arrays that ``--expect`` names, by the outputs that they are of.

    Args:
        texts: A .npz, a .npy where the model has one output, or NAME=FILE.npy.
        names: What the run hands out.
    """
    found: dict[str, Array] = {}
    archived = saved_names(names)
    for text in texts:
        name, path = _named(text, names)
        try:
            content = load_arrays(path)
        except OSError as error:
            raise UnreadableError(f"--expect {path}: {error.strerror}") from None
        if isinstance(content, dict):
            if name is not None:
                if archived_name := next((k for k in content if archived.get(k) == name), None):
                    content = {archived_name: content[archived_name]}
                elif len(content) == 1:
                    content = dict.fromkeys([name], next(iter(content.values())))
                else:
                    raise UsageError(f'{path} has no array "{name}": {", ".join(content)}')
            for key, array in content.items():
                if key not in archived and key not in names:
                    raise UsageError(f'{path} has "{key}", the model gives {_listed(names)}')
                found[archived.get(key, key)] = array
        elif name is not None:
            found[name] = content
        elif len(names) == 1:
            found[names[0]] = content
        else:
            raise UsageError(
                f"{path} is one array, the model gives {_listed(names)}",
                hint=f"--expect NAME={path} says of which output, an .npz has several",
            )
    if texts and not found:
        raise UsageError(f"{', '.join(texts)}: there is nothing in it to compare with")
    for name, array in found.items():
        if array.dtype.kind not in "biufcUST":
            raise UsageError(f'what is expected of "{name}" has the type {array.dtype}')
    return found


def _named(text: str, names: Sequence[str]) -> tuple[str | None, str]:
    """The output that an expectation is of, where it says so, and the file."""
    name, sign, path = text.rpartition("=")
    if not sign or os.path.exists(text):
        return None, text
    if name not in names:
        raise UsageError(f'no output is named "{name}"; the model gives {_listed(names)}')
    return name, path


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def compared(
    outputs: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: float
) -> dict[str, Any]:
    """How far outputs are from what is expected: a row of facts for each."""
    rows = [
        {"name": name, **_compared(savable(outputs[name]), array, tolerance)}
        for name, array in wanted.items()
    ]
    return {"tolerance": tolerance, "ok": all(row["ok"] for row in rows), "outputs": rows}


def _compared(got: Array, wanted: Array, tolerance: float) -> dict[str, Any]:
    if got.shape != wanted.shape:
        return _wrong(f"has the shape {got.shape}, expected {wanted.shape}")
    texts = [array.dtype.kind in "UST" for array in (got, wanted)]
    if any(texts):
        if not all(texts):
            return _wrong(f"has the type {got.dtype}, expected {wanted.dtype}")
        off = plain_texts(got) != plain_texts(wanted)
        if not off.any():
            return {"ok": True}
        place = _place(off, int(np.argmax(off)))
        return _wrong(f"differs in {int(off.sum())} of {off.size} texts", place)
    whole = all(array.dtype.kind in "biu" for array in (got, wanted))
    if whole and (np.array_equal(got, wanted)):
        return {"ok": True, "difference": 0.0}
    left, right = (array.astype("c16" if "c" in (got.dtype.kind, wanted.dtype.kind) else "f8")
                   for array in (got, wanted))  # fmt: skip
    with np.errstate(all="ignore"):
        near = np.isclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)
        off = np.abs(left - right)
    finite = np.isfinite(off)
    largest = float(off[finite].max(initial=0.0))
    if near.all():
        return {"ok": True, "difference": largest}
    # A NaN or an infinity that only one of the two has is worse than any number.
    odd = ~near & ~finite
    worst = int(np.argmax(odd if odd.any() else np.where(near, -1.0, off)))
    place = _place(off, worst)
    values = [_number(array.ravel()[worst]) for array in (left, right)]
    text = f"is {values[0]:.6g}, expected {values[1]:.6g} (tolerance {tolerance:g})"
    row = _wrong(text, place)
    return row | {"difference": float("inf") if odd.any() else largest,
                  "wrong": int((~near).sum()), "of": int(near.size)}  # fmt: skip


def _number(value: Any) -> Any:
    return complex(value) if np.iscomplexobj(value) else float(value)


def _place(array: Array, number: int) -> list[int]:
    return [int(i) for i in np.unravel_index(number, array.shape)]


def _wrong(message: str, place: list[int] | None = None) -> dict[str, Any]:
    return {"ok": False, "place": place, "message": message}


def told(comparison: Mapping[str, Any]) -> str:
    """What is wrong, in a sentence."""
    return "; ".join(
        row["name"]
        + ("" if not row["place"] else f"[{','.join(map(str, row['place']))}]")
        + f" {row['message']}"
        for row in comparison["outputs"]
        if not row["ok"]
    )
