"""The bodies of a layer as models that may fail by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from ...schemas import Array, InternalError, IRError, Tensor
from ..document import Graph, Layer, Model
from ..inference import infer_bodies, infer_graph, inputs_of
from .extraction import extract_body
from .recording import Recording
from .turns import models_of_turns


class Opened(NamedTuple):
    """A body as a model of its own, the one sample if there are any, and where both come from."""

    model: Model
    samples: list[list[Array]]
    origin: str


def opened_bodies(
    recorded: Recording, layer: Layer, sample: int, max_seconds: float | None
) -> Iterator[Opened]:
    """The bodies of a layer, with what a sample gives them in the turns that may be at fault.

    Without samples there are types and shapes alone.
    """
    if not recorded.values:
        for tag, known in given_tensors(recorded, layer).items():
            yield Opened(extract_body(layer, tag, known), [], _origin(layer, tag))
        return
    sources = [(source[0].id, source[1]) for source in recorded.model.sources(layer) if source]
    recorded.record(sources, max_seconds)
    held = recorded.values[sample]
    if not all(spot in held for spot in sources):
        return  # the run ends before it
    inputs = [held[spot] for spot in sources]
    for turn, model, arrays in models_of_turns(layer, inputs, recorded.room, max_seconds):
        at = "" if layer.type == "If" else f"turn {turn.number}, "
        yield Opened(model, [arrays], f"{_origin(layer, turn.tag)} ({at}sample {sample})")


def given_tensors(recorded: Recording, layer: Layer) -> dict[str, Mapping[int, Tensor]]:
    """By body, what its Parameters are inferred to be, the last time that it was looked at."""
    found: dict[str, Mapping[int, Tensor]] = {}
    tags = {id(body): tag for tag, body in layer.bodies.items()}

    def note(body: Graph, given: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, ...]]:
        found[tags[id(body)]] = dict(given)
        return infer_graph(body, given)

    with suppress(IRError, InternalError):
        infer_bodies(layer, inputs_of(recorded.model, layer, recorded.tensors), note)
    return found


def _origin(layer: Layer, tag: str) -> str:
    return f'{"body" if tag == "body" else tag} of {layer.type} "{layer.name}"'
