"""Which tensor of a model each name means, for references that tell tensors by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from ..document import Layer, Model, output_names, tensor_keys
from .extraction import Spot


class Names:
    """The tensors of a whole model by name: no name means two of them.

    A name means what a run hands out under it, else the tensor of that name, else the one output
    of the layer of that name, else what the output of that name is fed by.
    """

    def __init__(self, model: Model) -> None:
        self.spots: dict[str, Spot] = {
            name: (layer.id, index) for name, (layer, index) in tensor_keys(model).items()
        }
        layers = [layer for layer in model.order() if layer.type != "Result"]
        for layer in layers:
            for index, names in enumerate(layer.tensor_names()):
                for name in names:
                    self.spots.setdefault(name, (layer.id, index))
        for layer in layers:
            if len(layer.outputs) == 1:
                self.spots.setdefault(layer.name, (layer.id, 0))
        #: The names of each output of the model, by the id of its Result.
        self.outputs: dict[int, list[str]] = {}
        for result in model.results:
            source = model.producer(result, 0)
            if source is None:
                continue
            spot = (source[0].id, source[1])
            every = output_names(model, result)
            own = [name for name in every if self.spots.setdefault(name, spot) == spot]
            # Its own name first: that of its tensor may be an input's.
            self.outputs[result.id] = sorted(own, key=lambda name: name != result.name)
        self._names: dict[Spot, list[str]] = {}
        for name, spot in self.spots.items():
            self._names.setdefault(spot, []).append(name)
        told = {layer.id for layer in layers} - {layer.id for layer in model.parameters}
        told -= {layer.id for layer in model.constants}
        #: Names under which something can be told that is to be judged.
        self.known = {name for name, spot in self.spots.items() if spot[0] in told}
        self.known |= {name for names in self.outputs.values() for name in names}

    def told(
        self, layers: Sequence[Layer], held: AbstractSet[str]
    ) -> Iterator[tuple[Spot, list[str]]]:
        """The tensors of layers, and outputs of the model, of which some name is held."""
        for layer in layers:
            if layer.is_constant or layer.type == "Parameter":
                continue
            if layer.type == "Result":
                rows = [((layer.id, 0), self.outputs.get(layer.id, []))]
            else:
                spots = [(layer.id, index) for index in range(len(layer.outputs))]
                rows = [(spot, self._names.get(spot, [])) for spot in spots]
            for spot, names in rows:
                some = [name for name in names if name in held]
                if some:
                    # What is called as the tensor behind an output may be what an input was.
                    yield spot, some[:1] if layer.type == "Result" else some
