"""A plan bound to memory: what is called.

Those that are made in a hurry, for shapes that may come but once, have their memory in turn, and
learn of each other which steps are worth sharing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import finalize

import numpy as np

from ...layers.budget import budget, require
from ...layers.memory import without_collection
from ...schemas import Array
from ..execution import State, keep
from .kernels import Scratch, lay_out_weights, steps_of
from .memory import Direct, InTurn, direct_values, lay_out, private, straight_copy, together
from .outside import Outside, Took, take_in
from .passes import optimize
from .plan import POOLINGS, Node, Plan, Value, work
from .short import Short
from .trials import FEWER, Trials
from .workers import HelpersLostError, Part, Team, Threads, can_fork, hire, shared

#: So many products take longer than it takes to fork a helper, and to end one; and so many
#: longer than it takes to wake it.
LARGE, SMALL = 1_000_000_000, 10_000_000
#: About so many bytes are taken by the objects that a part of a step consists of.
OBJECTS = 1 << 13
#: Passes take so many bytes for a place of an axis; shorter axes are not worth a look.
OF_A_PLACE, LONG = 16, 1 << 24
#: Bytes that laid out weights may take beyond their own, and a third of the arena.
ALLOWANCE = 32 << 20


@dataclass
class Hurry:
    """What the plans of a program share that are made in a hurry."""

    memory: InTurn = field(default_factory=InTurn)
    #: By how many pairs of bits it takes to say how many products there are.
    trials: dict[int, Trials] = field(default_factory=dict)

    def tried(self, amount: int) -> Trials:
        """The trials of plans of about so many products: none is called often enough alone."""
        return self.trials.setdefault(amount.bit_length() // 2, Trials(FEWER))


class Planned:
    """A plan for inputs of known shapes: its steps, bound to their memory.

    The first calls try which steps threads do sooner than one. Forked helpers wake in no time.
    """

    @without_collection()
    def __init__(
        self, plan: Plan, threads: int, *, fork: bool, hurry: Hurry | None = None
    ) -> None:
        self.plan, self.is_hasty = plan, hurry is not None
        finalize(self, plan.forget).atexit = False
        self.outside = Outside(plan, lambda body: ready(body, threads, fork=fork), threads)
        # Poolings alone are done by threads, on the caller's own arrays: for forked helpers these
        # would have to be copied first.
        pooling_alone = all(
            node.kind in POOLINGS and len(node.inputs[0].shape) == 4 for node in plan.nodes
        )
        forked = fork and threads > 1 and can_fork() and not pooling_alone and hurry is None
        memory = shared if forked else private
        if hurry is not None:
            hurry.memory.begin()
            memory = hurry.memory.take
        self.arena_bytes = lay_out(plan, memory)
        #: The sizes of weights that were laid out, which plans may share, by where they begin.
        self.weights: Mapping[int, int] = lay_out_weights(
            plan, threads, ALLOWANCE + self.arena_bytes // 3
        )
        by_threads = threads > 1 and not forked
        each = private if hurry is None else memory
        scratch = Scratch(threads, memory, each, by_threads=by_threads)
        #: Of each node, the steps from which to which are its own.
        self.spans: list[tuple[Node, int, int]] = []
        steps: list[list[Part]] = []
        for node in plan.nodes:
            begin = len(steps)
            with node.layer.at():  # of what there is not the memory for
                budget().check_time()
                steps += (
                    self.outside.prepare(node) if node.is_outside
                    else steps_of(node, threads, scratch)
                )  # fmt: skip
            self.spans.append((node, begin, len(steps)))
            plan.let_go(node)
        for node in plan.nodes:
            if node.laid_out is not None:
                # Nobody needs these weights as they lay; scaled ones are a copy of their own.
                node.replace_input(1, Value(node.inputs[1].shape, node.inputs[1].type))
        #: What it takes for itself, and of rooms that others have, too, by where these begin.
        self.nbytes = OBJECTS * sum(map(len, steps))
        self.rooms: Mapping[int, int] = {}
        if hurry is None:
            self.nbytes += self.arena_bytes
        else:
            self.rooms = hurry.memory.taken
        self.team = Team(steps, threads, scratch.told(hire) if forked else Threads)
        layers = [node.layer for node, begin, end in self.spans for _ in range(begin, end)]
        self.team.at = lambda number: layers[number].at()
        self.team.on_runs = pooling_alone and all(node.looks_up for node in plan.nodes)
        places = {node: range(begin, end) for node, begin, end in self.spans}
        stays = self.team.alone if forked else [True] * len(steps)
        self._direct = direct_values(plan, places, stays)
        # Each call hands out copies beside all that is kept by now. Of values that lie in arrays
        # of the call instead, nobody touches the place in the arena, but for helpers to come.
        require(
            sum(
                value.nbytes for value in plan.outputs
                if not value.is_outside and (forked or value not in self._direct)
            )
        )  # fmt: skip
        self._amount = amount = sum(map(work, plan.nodes))
        nobody = [True] * len(steps)
        self._alone = self.team.alone if amount > SMALL else nobody
        # The first call wakes everything up, and counts for nothing. Who calls but once does not
        # want to wait for helpers to come and go, if that takes longer than what there is to do.
        self._warm = self.is_hasty
        if amount < (LARGE if forked else SMALL):
            self.team.alone = nobody
        #: What is tried, until that is over.
        self._trials: Trials | None = None
        if not forked and not all(self._alone):
            self._trials = Trials() if hurry is None else hurry.tried(amount)

    def __call__(self, arrays: Mapping[int, Array], state: State | None = None) -> list[Array]:
        """The outputs, as new arrays; the variables are written when all is done."""
        try:
            found = self._run(arrays, state or {})
        except HelpersLostError:
            # Killed, or never born: without them it takes longer, that is all.
            self.team.alone = [True] * len(self.team.alone)
            self._trials = None
            found = self._run(arrays, state or {})
        if state is not None:
            self.outside.settle()
            keep(state, self.outside.state, arrays.values())
        self.outside.state = {}
        return found

    def rest(self) -> None:
        """Let the helpers go, until it is called again."""
        self.team.dismiss()
        self.outside.rest()

    def short(self) -> Short | None:
        """The shortest way through later calls, where there is one by now."""
        inputs, outputs = self.plan.inputs, self.plan.outputs
        if not self.team.on_runs or self._trials or not (self._warm and all(self.team.alone)):
            return None
        if not all(value in self._direct for value in (*inputs.values(), *outputs)):
            return None
        return Short(inputs, outputs, [part for step in self.team.steps for part in step])

    def _run(self, arrays: Mapping[int, Array], state: State) -> list[Array]:
        # Helpers that are yet to be forked must find the arena in its place.
        direct = self._direct if self.team.is_complete else {}

        def begin() -> None:
            self._take_in(arrays, state, direct)
            for value in self.plan.outputs:
                if value in direct:
                    direct[value].open()

        try:
            if self._trials is not None and self._trials.are_over:
                self._settle(self._trials)
            if self._trials is not None and self._warm:
                begin()
                self._try(self._trials)
            else:
                self.team.run(before=begin)
            outputs = [
                direct[value].collect() if value in direct
                # Between turns nobody writes to what lies outside.
                else value.array if self.plan.turns and value.is_outside
                else straight_copy(value.array)
                for value in self.plan.outputs
            ]  # fmt: skip
            if not self._warm:
                self.team.alone, self._warm = self._alone, True
            return outputs
        finally:
            for one in direct.values():
                one.close()
            self.outside.end()

    def _take_in(
        self, arrays: Mapping[int, Array], state: State, direct: Mapping[Value, Direct]
    ) -> None:
        """Put the caller's arrays into their places."""
        self.outside.begin(state)
        for layer_id, value in self.plan.inputs.items():
            if value.is_outside:
                take_in(value, arrays[layer_id])
            elif value in direct:
                direct[value].put(arrays[layer_id])
            else:
                np.copyto(value.array, arrays[layer_id])

    def _try(self, trials: Trials) -> None:
        """Run all steps with helpers or without, and note how long each takes of what it does."""
        seconds: list[float] = []
        shared_steps, together = self.team.alone, trials.begin()
        if not together:
            self.team.alone = [True] * len(shared_steps)
        self.team.run(seconds=seconds)
        self.team.alone = shared_steps
        each = [took / max(self._amount, 1) for took in seconds]
        trials.note(self._names(), each, together=together)
        if trials.are_over:
            self._settle(trials)

    def _settle(self, trials: Trials) -> None:
        """Share what was found to be worth it."""
        self.team.alone = [
            alone or trials.is_alone(name)
            for alone, name in zip(self.team.alone, self._names(), strict=True)
        ]
        self._trials = None

    def _names(self) -> list[tuple[int, int]]:
        """By which steps are known to plans for other shapes: layers, and numbers."""
        counted: Counter[int] = Counter()
        found = []
        for node, begin, end in self.spans:
            number, place = node.layer.id, counted[node.layer.id]
            found += [(number, place + step) for step in range(end - begin)]
            counted[number] += end - begin
        return found

    def times(self, arrays: Mapping[int, Array], runs: int, state: State) -> list[Took]:
        """What the steps of each node take, in whole runs as later calls make them."""
        while not self._warm or self._trials is not None:
            self(arrays, dict(state))
        least = [float("inf")] * len(self.team.steps)
        for one in self.outside.regions.values():
            one.is_watched = True
        inside = [body for bodies in self.outside.bodies.values() for body in bodies]
        for turn in range(runs + bool(inside)):
            for body in inside if turn == runs else ():
                body.is_watched = True  # what they are given is copied, in a run of its own
            self._take_in(arrays, state, {})
            seconds: list[float] = []
            try:
                self.team.run(seconds=seconds)
            finally:
                self.outside.end()
            least = list(map(min, least, seconds))
        found: list[Took] = []
        for node, begin, end in self.spans:
            region = self.outside.regions.get(node)
            if region is not None:
                found += region.times(runs)
                continue
            inner = [x for body in self.outside.bodies.get(node, ()) for x in body.times(runs)]
            # What a loop takes beside its body.
            rest = sum(least[begin:end]) - sum(x.seconds for x in inner)
            found += [Took(node, max(rest, 0.0)), *inner]
        return found


def _check_axes(plan: Plan) -> None:
    """Refuse axes that are longer than there is memory for what passes know of each place."""
    for node in plan.nodes:
        values = (*node.inputs, *node.outputs)
        inside = (value.shape for value in values if not value.is_outside)
        longest = max((size for shape in inside for size in shape), default=0)
        if longest > LONG:
            with node.layer.at():
                require(max(value.nbytes for value in values if not value.is_outside))
                require(OF_A_PLACE * longest)


def ready(plan: Plan, threads: int, *, fork: bool, hurry: Hurry | None = None) -> Planned:
    """A plan that can be called, be it made in a hurry."""
    _check_axes(plan)
    with together():
        optimize(plan)
        return Planned(plan, threads, fork=fork, hurry=hurry)
