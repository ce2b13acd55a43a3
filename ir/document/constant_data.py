"""What the data of a constant says: its type, its sizes, and where its bytes are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from ...schemas import ElementType, IRError, UnreadableError
from ...schemas.packing import needed
from .parts import whole

#: The layer that is a constant, and its model; this file knows them by what they offer.
Layer: TypeAlias = Any
Model: TypeAlias = Any


def no_bin(offset: int, size: int, sought: str | None) -> UnreadableError:
    """The error of a constant in a model without weights, which were sought somewhere or not."""
    return UnreadableError(
        f"bytes {offset} to {offset + size} are needed, but there is no .bin",
        hint=f"looked for {sought}" if sought else bin_hint(sought),
    )


def bin_hint(sought: str | None) -> str:
    """What to do about a .bin that is not where it was sought, or was sought nowhere."""
    if sought:
        return "put the .bin beside the .xml under the same name"
    return "name it: --weights FILE, in Python weights="


def needed_text(data: Mapping[str, str], name: str) -> str:
    """An attribute that must be there."""
    text = data.get(name)
    if text is None:
        raise IRError(f"attribute {name} is missing")
    return text


def read_sizes(data: Mapping[str, str]) -> tuple[int, ...]:
    """The shape of a constant: plain numbers."""
    return _sizes_of(needed_text(data, "shape"))


@lru_cache(1024)
def _sizes_of(text: str) -> tuple[int, ...]:
    """Sizes from their text, of which a network has few."""
    text = text.strip()
    if not text:
        return ()
    fields = text.split(",")
    if not fields[-1].strip():
        fields.pop()  # one trailing comma is free
    if len(text) < 100 and text.isascii() and text.replace(",", "").replace(" ", "").isdigit():
        try:
            return tuple(map(int, fields))
        except ValueError:
            pass  # two numbers with a blank between: said properly below
    return tuple(whole(field.strip(), "a size in shape") for field in fields)


def check_constant(layer: Layer, model: Model, *, absent: bool = False) -> None:
    """Refuse a constant whose bytes are not all there; ``absent``: there need be no .bin."""
    try:
        _check(layer.data, model, absent)
    except ValueError:
        # Wrong: once more, where an error gets its place (which costs more than the check).
        with layer.at("data"):
            _check(layer.data, model, absent)


def _check(data: Mapping[str, str], model: Model, absent: bool) -> None:
    kind = ElementType.parse(needed_text(data, "element_type"))
    if "value" in data:
        return
    offset, size = (whole(needed_text(data, name), name) for name in ("offset", "size"))
    shape = () if kind is ElementType.STRING and "shape" not in data else read_sizes(data)
    least = None if kind.is_dynamic else needed(kind, shape)
    if least is not None and size < least:
        raise IRError(f"{kind}{list(shape)} takes {least} bytes, size says {size}")
    if model.weights is not None:
        model.weights.check(offset, size)
    elif not absent:
        raise no_bin(offset, size, model.bin_place)
