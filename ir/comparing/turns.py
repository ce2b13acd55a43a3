"""What the bodies of a layer are given, turn by turn: each is a model that may fail by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ...layers.budget import within
from ...layers.resources import available
from ...schemas import Array, ElementType, InternalError, IRError, LimitError, Tensor
from ..document import Graph, Layer, Model
from ..execution import Interpreter, State, run_bodies
from ..inference import parameter_type
from .extraction import extract_body
from .rounding import has_nan

#: So many turns are kept from the first on; of those after them the powers of two, and the last.
_KEPT = 8
#: The part of the memory that is left, and bytes, that may be kept at most of what runs meet.
_PART, _MOST = 4, 2 << 30


class Turn(NamedTuple):
    """A body's name, the number of the turn, and what its Parameters are given, by layer id."""

    tag: str
    number: int
    arrays: dict[int, Array]


def recording_room() -> int:
    """How many bytes may be kept of what runs meet on their way."""
    return min(available() // _PART, _MOST)


def models_of_turns(
    layer: Layer, inputs: Sequence[Array], room: int, max_seconds: float | None = None
) -> Iterator[tuple[Turn, Model, list[Array]]]:
    """The turns of a layer, the likeliest to fail first: each as a model, with its inputs.

    Beyond ``room`` bytes these are the first, the last, and those at fault alone.
    """
    for turn in turns_of(layer, inputs, max_seconds, room):
        parameters = layer.bodies[turn.tag].parameters
        if not all(one.id in turn.arrays for one in parameters):
            continue  # the port map does not fill them
        arrays = [_as_declared(one, turn.arrays[one.id]) for one in parameters]
        known = {
            one.id: Tensor(ElementType.of(array.dtype), array.shape)
            for one, array in zip(parameters, arrays, strict=True)
        }
        yield turn, extract_body(layer, turn.tag, known), arrays


def turns_of(
    layer: Layer, inputs: Sequence[Array], max_seconds: float | None, room: int
) -> list[Turn]:
    """The turns of a layer, first those that end in an error or make NaN; of many only some."""
    recorder = _Recorder(layer, room)
    # What was met before it ended is what is looked for.
    with suppress(IRError, InternalError), within(None, max_seconds):
        try:
            run_bodies(layer, inputs, recorder)
        except LimitError:
            recorder.running = None
    return recorder.turns()


class _Recorder:
    """Runs bodies, and keeps what they are given."""

    def __init__(self, layer: Layer, room: int) -> None:
        #: Bytes of turns that may still be kept.
        self.room = room
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
            self._keep(turn)
        if self.poisoned is None and any(map(has_nan, found.values())):
            self.poisoned = turn
        self.count += 1
        return found

    def _keep(self, turn: Turn) -> None:
        """Keep a turn if it is the first, or there is room for what is not kept already."""
        held = {id(array) for kept in self.kept for array in kept.arrays.values()}
        fresh = {id(array): array.nbytes for array in turn.arrays.values()}
        size = sum(fresh[key] for key in fresh.keys() - held)
        if not self.kept or size <= self.room:
            self.kept.append(turn)
            self.room -= size

    def turns(self) -> list[Turn]:
        """What was kept, the likeliest first."""
        likely = [turn for turn in (self.running, self.poisoned) if turn is not None]
        rest = [*self.kept, *([] if self.last is None else [self.last])]
        return list({turn.number: turn for turn in (*likely, *rest)}.values())


def _as_declared(parameter: Layer, array: Array) -> Array:
    """An array as a Parameter says it takes it; within a run f16 is computed in f32."""
    kind = parameter_type(parameter)
    if kind.is_dynamic:
        return array
    with np.errstate(all="ignore"):  # beyond f16 is infinite
        return array.astype(kind.dtype, copy=False)
