"""The table of old layer types: one entry each, written beside the function that upgrades it.

An entry lists the attributes as ``name`` (must be there), ``name=default`` or ``name?`` (may be
missing, and means what the function says then). ``becomes`` names the operations that it makes;
those that any layer may need (Const, Convert, Reshape of a blob) are left out.

Example::

    @converts("Clamp", "min max", becomes="Clamp-1")
    def clamp(old: Old) -> Made: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ...document import Output

#: What a layer becomes: its output, or its outputs in order.
Made: TypeAlias = "Output | Sequence[Output]"
Convert: TypeAlias = "Callable[[Any], Made]"

#: The families, each a file of entries.
FAMILIES = (
    "activation",
    "convolution",
    "detection",
    "elementwise",
    "image",
    "infrastructure",
    "loops",
    "movement",
    "normalization",
    "pooling",
    "products",
    "recurrent",
    "reduction",
    "shape",
)

#: Attributes that the Model Optimizer left on layers of any type, and no reader looks at.
LEFTOVERS = frozenset({
    "PrimitivesPriority", "execution_order", "originalLayersNames", "quantization_level",
    "originalName", "fused", "type", "alt_width", "framework",
})  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One layer type of IR v2 to v7."""

    type: str
    #: By name: the default as text, None where there is none.
    attributes: dict[str, str | None]
    required: frozenset[str]
    becomes: tuple[str, ...]
    convert: Convert
    #: Attributes that are legal and say nothing about the result.
    idle: frozenset[str]

    @property
    def summary(self) -> str:
        """The first sentence about it."""
        return (self.convert.__doc__ or "").partition("\n")[0]

    def spelled(self) -> list[str]:
        """The attributes as the table spells them."""
        return [
            name + ("" if name in self.required else "?" if default is None else f"={default}")
            for name, default in self.attributes.items()
        ]


_ENTRIES: dict[str, Entry] = {}


def converts(
    types: str, attributes: str = "", *, becomes: str = "", idle: str = ""
) -> Callable[[Convert], Convert]:
    """Register a function that upgrades the layers of these types."""
    known: dict[str, str | None] = {}
    required = set()
    for word in attributes.split():
        name, found, default = word.partition("=")
        if found:
            known[name] = default
        elif name.endswith("?"):
            known[name[:-1]] = None
        else:
            known[name] = None
            required.add(name)

    def enter(function: Convert) -> Convert:
        for kind in types.split():
            _ENTRIES[kind.lower()] = Entry(
                kind, known, frozenset(required), tuple(becomes.split()), function,
                frozenset(idle.split()),
            )  # fmt: skip
        return function

    return enter


@cache
def entries() -> dict[str, Entry]:
    """Every entry, by its type in lower case: types are compared without case."""
    for family in FAMILIES:
        import_module(f".{family}", __package__)
    return _ENTRIES


def find(kind: str) -> Entry | None:
    """The entry of a layer type."""
    return entries().get(kind.lower())


def known_types() -> Iterator[str]:
    """The types in the spelling of the files."""
    return (entry.type for entry in entries().values())
