"""Models whose results are other tensors: what a program is asked for that its model keeps."""

from __future__ import annotations

from copy import deepcopy

from ...schemas import IRError
from ..document import Layer, Model
from ..execution import Wanted, wanted_names


def handing_out(model: Model, outputs: Wanted) -> tuple[Model, list[str]]:
    """A copy of a model that hands other tensors out, and the names they are asked for by."""
    wanted = wanted_names(model, outputs)
    work = deepcopy(model)
    places = []
    for layer, index in wanted.values():
        place = (work.layer(layer.id), index)
        if layer.type == "Result":
            feeder = work.producer(place[0], 0)
            if feeder is None:
                raise IRError("input 0 is fed by nothing", layer.where)
            place = feeder
        places.append(place)
    work.remove(*work.results)
    for name, (layer, index) in zip(wanted, places, strict=True):
        work.connect((layer, index), work.add(Layer("Result", "opset1", name)))
    work.prune()
    return work, list(wanted)
