"""What a model takes and gives: its inputs and outputs as objects that can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias, overload

from ...schemas import ElementType, Shape, Tensor, UsageError
from ...schemas.printing import meant, printable_name
from ..faces import door
from .graph import Graph
from .layer import Layer
from .names import named_inputs, output_keys, output_names
from .symbols import with_symbols

_TO_I32 = frozenset({ElementType.I64, ElementType.U64, ElementType.U32, ElementType.I32})
_KEPT = frozenset({ElementType.STRING, ElementType.DYNAMIC})

#: The layer that gives an output, and which of its outputs it is.
Place: TypeAlias = tuple[Layer, int]


@dataclass(frozen=True)
class End:
    """An input or an output of a model, with the type and shape that the file declares."""

    #: The name it is called by, and all names that it may be asked for by.
    name: str
    names: tuple[str, ...]
    tensor: Tensor
    #: Its Parameter or Result.
    layer: Layer

    @property
    def type(self) -> ElementType:
        """The element type."""
        return self.tensor.type

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.tensor.shape

    def __str__(self) -> str:
        return f"{printable_name(self.name)}: {self.tensor}"

    def __repr__(self) -> str:
        what = "input" if self.layer.type == "Parameter" else "output"
        return f"<{what} {self}>"


class Ends(tuple[End, ...]):
    """The inputs or the outputs of a model in order, by index or by any of their names."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> End: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[End, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> End | tuple[End, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((end for end in self if key == end.name), None)
        found = found or next((end for end in self if key in end.names), None)
        if found is None:
            listed = ", ".join(printable_name(end.name) for end in self[:8]) or "none"
            raise UsageError(
                f'nothing is named "{key}"; there are {listed}',
                hint=meant(key, [name for end in self for name in end.names]),
            )
        return found

    @property
    def names(self) -> list[str]:
        """The name of each."""
        return [end.name for end in self]

    def __repr__(self) -> str:
        more = f", and {len(self) - 8} more" if len(self) > 8 else ""
        return f"[{', '.join(map(str, self[:8]))}{more}]"

    _repr_html_ = door("display", "html")


def input_ends(graph: Graph) -> Ends:
    """The inputs, in the order OpenVINO gives them."""
    return Ends(
        End(names[0], tuple(names), declared(layer, 0), layer)
        for layer, names in named_inputs(graph.parameters)
    )


def output_ends(graph: Graph) -> Ends:
    """The outputs, in the order OpenVINO gives them."""
    return Ends(_outputs(graph))


def _outputs(graph: Graph) -> Iterable[End]:
    for key, layer in zip(output_keys(graph), graph.results, strict=True):
        place = graph.producer(layer, 0)
        tensor = Tensor("dynamic", None) if place is None else declared(*place)
        tensor = Tensor(output_type(graph, tensor.type), tensor.shape)
        yield End(key, tuple(dict.fromkeys([key, *output_names(graph, layer)])), tensor, layer)


def declared(layer: Layer, index: int) -> Tensor:
    """An output of a layer as the file declares it; of a Parameter as its attributes do."""
    if layer.type == "Parameter" and layer.op is not None:
        return with_symbols(layer, layer.op.infer()[0])
    return layer.outputs[index].tensor


def output_type(graph: Graph, kind: ElementType) -> ElementType:
    """The type an output of the model has, where the graph gives ``kind``.

    IR version 10 was made for an interface that knew f32 and i32 only.
    """
    if getattr(graph, "version", 11) != 10 or kind in _KEPT:
        return kind
    return ElementType.I32 if kind in _TO_I32 else ElementType.F32


__all__ = ["End", "Ends", "declared", "input_ends", "output_ends", "output_type"]
