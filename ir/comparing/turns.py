"""What the bodies of a layer are given, turn by turn: each is a model that may fail by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ...layers.budget import within
from ...schemas import Array, ElementType, InternalError, IRError, LimitError, Tensor
from ..document import Graph, Layer, Model
from ..execution import Interpreter, State, run_bodies
from ..inference import infer_bodies, infer_graph, inputs_of, parameter_type
from .extraction import extract_body
from .failures import has_nan
from .recording import Recording

#: So many turns are kept from the first on; of those after them the powers of two, and the last.
_KEPT = 8


class Opened(NamedTuple):
    """A body as a model of its own, the one sample if there are any, and where both come from."""

    model: Model
    samples: list[list[Array]]
    origin: str


class Turn(NamedTuple):
    """A body's name, the number of the turn, and what its Parameters are given, by layer id."""

    tag: str
    number: int
    arrays: dict[int, Array]


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
    for turn in turns_of(layer, [held[spot] for spot in sources], max_seconds):
        parameters = layer.bodies[turn.tag].parameters
        if not all(one.id in turn.arrays for one in parameters):
            continue  # the port map does not fill them
        arrays = [_as_declared(one, turn.arrays[one.id]) for one in parameters]
        known = {
            one.id: Tensor(ElementType.of(array.dtype), array.shape)
            for one, array in zip(parameters, arrays, strict=True)
        }
        at = "" if layer.type == "If" else f"turn {turn.number}, "
        origin = f"{_origin(layer, turn.tag)} ({at}sample {sample})"
        yield Opened(extract_body(layer, turn.tag, known), [arrays], origin)


def turns_of(layer: Layer, inputs: Sequence[Array], max_seconds: float | None) -> list[Turn]:
    """The turns of a layer, first those that end in an error or make NaN; of many only some."""
    recorder = _Recorder(layer)
    # What was met before it ended is what is looked for.
    with suppress(IRError, InternalError), within(None, max_seconds):
        try:
            run_bodies(layer, inputs, recorder)
        except LimitError:
            recorder.running = None
    return recorder.turns()


class _Recorder:
    """Runs bodies, and keeps what they are given."""

    def __init__(self, layer: Layer) -> None:
        self.tags = {id(body): tag for tag, body in layer.bodies.items()}
        self.walks: dict[int, Interpreter] = {}
        self.state: State = {}
        self.count = 0
        self.kept: list[Turn] = []
        self.poisoned: Turn | None = None
        #: The turn that has begun: where it ends in an error, it stays.
        self.running: Turn | None = None
        self.last: Turn | None = None

    def __call__(self, body: Graph, arrays: Mapping[int, Array]) -> dict[int, Array]:
        turn = self.running = Turn(self.tags[id(body)], self.count, dict(arrays))
        walk = self.walks.get(id(body))
        if walk is None:
            walk = self.walks[id(body)] = Interpreter(body)
            walk.fold()
        found = {key: outputs[0] for key, outputs in walk(arrays, self.state).items()}
        self.running, self.last = None, turn
        if turn.number < _KEPT or turn.number.bit_count() == 1:
            self.kept.append(turn)
        if self.poisoned is None and any(map(has_nan, found.values())):
            self.poisoned = turn
        self.count += 1
        return found

    def turns(self) -> list[Turn]:
        """What was kept, the likeliest first."""
        likely = [turn for turn in (self.running, self.poisoned) if turn is not None]
        rest = [*self.kept, *([] if self.last is None else [self.last])]
        return list({turn.number: turn for turn in (*likely, *rest)}.values())


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


def _as_declared(parameter: Layer, array: Array) -> Array:
    """An array as a Parameter says it takes it; within a run f16 is computed in f32."""
    kind = parameter_type(parameter)
    if kind.is_dynamic:
        return array
    with np.errstate(all="ignore"):  # beyond f16 is infinite
        return array.astype(kind.dtype, copy=False)


def _origin(layer: Layer, tag: str) -> str:
    return f'{"body" if tag == "body" else tag} of {layer.type} "{layer.name}"'
