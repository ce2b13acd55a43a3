"""A model prepared once and called often.

Example::

    program = ir.compile(model)
    outputs = program({"x": image})

A program plans for the shapes it sees, and keeps the last plans. Layers whose shapes depend on
values, on variables or on bodies are computed between the steps of a plan; the rest is planned as
ever. Sizes that go on growing from call to call are left open, so that one plan does for all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...layers.budget import is_limited, within
from ...layers.leftovers import tidy
from ...layers.memory import without_collection
from ...layers.turns import quick_turns
from ...schemas import Array, ElementType, IRError, LimitError, UsageError
from ...schemas.printing import Table, counted, printable_name
from ..document import Ends, LookUps, Model, named_inputs, output_keys, stamp_of
from ..execution import (
    Inputs,
    Interpreter,
    Outputs,
    Sizes,
    State,
    Variables,
    Wanted,
    aliases,
    check_inputs,
    own_copies,
    refuse_unknown,
)
from ..faces import Shown
from ..inference import Inferred, Shapes, infer, output_array
from ..opening import ModelLike, opened
from .handing_out import handing_out
from .hopes import LoosenedError
from .kept_plans import KeptPlans
from .means import Memory, kept_weights, means
from .outside import Took
from .patterns import Pattern, Patterns, openness, takes_texts
from .plan import Constants, build, cut_regions
from .planned import Hurry, Planned, ready
from .short import Short
from .workers import (
    MANY,
    all_as_floats,
    blas,
    floats_of,
    halves_of,
    side_by_side,
    single_blas,
    thread_share,
)


@contextmanager
def enough_memory() -> Iterator[None]:
    """Say what a program is short of, where the machine has not what preparing it takes."""
    try:
        yield
    except MemoryError as error:
        hint = "run it where there is more memory, or give smaller inputs"
        raise LimitError(f"not enough memory to prepare it: {error}", hint=hint) from error


class Program(Shown):
    """A model that is ready to be called; it stays what the model was when it was compiled.

    Where the model is edited afterwards, it answers as before for the shapes that it has met, and
    refuses others, copies and pickling: nothing more can be prepared of what the model was.
    """

    @tidy
    def __init__(
        self,
        model: Model,
        *,
        threads: int | None = None,
        shapes: Shapes | None = None,
        exact: bool = False,
        fork: bool = True,
        max_memory: int | None = None,
        max_seconds: float | None = None,
        memory: Memory | None = None,
        keys: list[str] | None = None,
    ) -> None:
        asked: object = threads
        if asked is not None and not isinstance(asked, int):
            raise UsageError(f"threads is {asked!r:.60}, it is a whole number")
        self.model, self.exact, self.fork = model, exact, fork
        self.max_memory, self.max_seconds = max_memory, max_seconds
        if memory not in (None, "small", "fast"):
            raise UsageError(f"memory is {memory!r:.60}, it is small or fast")
        self.memory = memory
        self.threads = min(thread_share(), MANY) if threads is None else max(1, threads)
        if blas() is None:
            # Its threads, which nobody can hold back, would fight with ours.
            self.threads = 1
        self._process = os.getpid()
        self._patterns = Patterns(model, keeps_levels=memory != "fast")
        self._plans: KeptPlans[Planned] = KeptPlans()
        #: By this it is seen that the model was edited afterwards.
        self._stamp = stamp_of(model)
        #: What those share that are made in a hurry.
        self._hurry = Hurry()
        #: What each plan asks of the model, which nobody changes.
        self._look_ups = LookUps()
        #: What plans share of what is computed of constants, where there may be several.
        ports = [port for layer in model.parameters for port in layer.outputs]
        several = self._patterns.variables or not all(x.tensor.shape.is_static for x in ports)
        self._constants = Constants() if several else None
        #: The way through the plan that was used last, if it is a short one.
        self._short: Short | None = None
        self._lock = threading.RLock()
        self._walk: Interpreter | None = None
        #: The types as which the outputs are handed out.
        self._kinds: list[ElementType] = []
        self._dtypes: list[np.dtype | None] = []
        #: How weights are kept, by the last plan.
        self._weights = ""
        #: The values of the model's variables, kept from call to call.
        self.state = Variables(model)
        self._keys = output_keys(model) if keys is None else keys
        self._aliases = aliases(model) if keys is None else {}
        #: The inputs by layer id, with the types that were last seen; their ids by name and place.
        self._types: dict[int, np.dtype | None] = {layer.id: None for layer in model.parameters}
        self._names: dict[str | int, int] = {}
        #: What is said of sizes that a plan may leave open.
        self._sizes = Sizes(model)
        for place, (parameter, names) in enumerate(named_inputs(model.parameters)):
            self._names |= dict.fromkeys([place, *names], parameter.id)
        with model.looked_up(self._look_ups), quick_turns, within(max_memory, max_seconds):
            refuse_unknown(model.order())
            inferred = infer(model, shapes)
            shown = [inferred.of(parameter)[0].shape for parameter in model.parameters]
            if all(shape.is_static for shape in shown):
                unset = (None,) * len(self._patterns.variables)
                sizes = tuple(shape.static for shape in shown)
                self._planned((*sizes, *unset), None if unset else inferred)

    @property
    def inputs(self) -> Ends:
        """What its model takes: name, type and shape of each input, by index or name."""
        return self.model.inputs

    @property
    def outputs(self) -> Ends:
        """What its model gives: name, type and shape of each output, by index or name."""
        return self.model.outputs

    @tidy
    def __call__(self, inputs: Inputs | None = None) -> Outputs:
        """Run the model once."""
        arrays = self._known(inputs)
        if arrays is not None and self._short is not None and not is_limited():
            handed = self._shortly(arrays)
            if handed is not None:
                return Outputs(dict(zip(self._keys, handed, strict=True)), self._aliases)
        return self._called(inputs, arrays)

    @tidy
    def anew(self, inputs: Inputs | None = None) -> Outputs:
        """Run the model once, its variables begun anew; no other thread comes in between."""
        return self._called(inputs, None, is_anew=True) if self.state.declared else self(inputs)

    def _called(
        self, inputs: Inputs | None, arrays: dict[int, Array] | None, *, is_anew: bool = False
    ) -> Outputs:
        """The outputs of one call; arrays are those inputs that need no second look."""
        with self._exclusive(), quick_turns, within(self.max_memory, self.max_seconds):
            self._refuse_changed()
            if is_anew:
                self.state.clear()
            # What variables hold tells which plan is taken: nobody may reset them in between.
            shapes = () if arrays is None else self._shapes(arrays)
            pattern = None if arrays is None else self._plans.find(shapes)
            if arrays is None or pattern is None or not self._sizes.take(arrays):
                arrays = check_inputs(self.model, inputs)
                self._types = {place: arrays[place].dtype for place in self._types}
                shapes = self._shapes(arrays)
            self._short = None  # it may be the way through a plan that is let go of
            found = self._found_by_plan(arrays, shapes, pattern)
            if found is None:
                found = self._walked(arrays)
        return Outputs(dict(zip(self._keys, found, strict=True)), self._aliases)

    def _found_by_plan(
        self, arrays: Mapping[int, Array], shapes: Pattern, pattern: Pattern | None
    ) -> list[Array] | None:
        """The outputs by a plan for these shapes; None where none can be made."""
        planned = self._planned(shapes, pattern=pattern)
        if planned is None:
            return None
        try:
            found = self._handed_out(planned(all_as_floats(arrays), self.state))
        except LoosenedError:
            pattern = self._plans.find(shapes) or shapes
            if planned.plan.hoped:
                self._patterns.hopes.are_over = True
                del self._plans[pattern]
                return self._found_by_plan(arrays, shapes, None)
            # What inference says of this model is not so: nothing is planned by it again.
            self._plans[pattern] = None
            return None
        self._short = self._short_way(planned)
        return found

    def _shortly(self, arrays: Mapping[int, Array]) -> list[Array] | None:
        """The outputs by the short way, if it is still there and takes these arrays."""
        with self._exclusive(), quick_turns:
            self._refuse_changed()
            return None if self._short is None else self._short(arrays)

    def _short_way(self, planned: Planned) -> Short | None:
        """The short way through a plan, if it gives what is handed out and nobody sets limits."""
        limits = self.max_memory, self.max_seconds
        if limits != (None, None) or self._patterns.variables:
            return None
        kinds = [value.type for value in planned.plan.outputs]
        return planned.short() if kinds == self._dtypes else None

    def _known(self, inputs: Inputs | None) -> dict[int, Array] | None:
        """The arrays by layer id, if they are of types seen before: checked once is enough."""
        if isinstance(inputs, (list, tuple)):
            given: Iterable[tuple[str | int, Any]] = enumerate(inputs)
        elif isinstance(inputs, dict):
            given = inputs.items()
        else:
            return None
        found: dict[int, Array] = {}
        for key, value in given:
            place = self._names.get(key)
            if place is None or type(value) is not np.ndarray:
                return None
            # NumPy takes None for float64.
            if self._types[place] is None or value.dtype != self._types[place]:
                return None
            found[place] = value
        return found if len(found) == len(inputs) == len(self._types) else None

    def _shapes(self, arrays: Mapping[int, Array]) -> Pattern:
        """The shapes of inputs and variables, by which plans are kept."""
        return self._patterns.of(arrays, self._types, self.state)

    def _exclusive(self) -> AbstractContextManager[object]:
        """What keeps other threads out."""
        if self._process != os.getpid():
            # A copy of the process that planned: two may not work in one arena. Another thread
            # may have held the lock in the moment of the fork, and will never let go of it here.
            self._plans, self._process = self._plans.emptied(), os.getpid()
            self._short = None
            self._lock = threading.RLock()
        if self._lock._is_owned():  # type: ignore[attr-defined]  # conditions ask it, too
            raise UsageError(
                "the program runs in this thread already, a signal's handler came in between",
                hint="let the handler call a program of its own, of ir.compile or copy.copy",
            )
        return self._lock

    def __reduce__(self) -> tuple[Any, ...]:
        """As a copy or in another process: planned anew there."""
        self._refuse_edited()
        limits = self.max_memory, self.max_seconds, self.memory
        how = self.model, self.threads, self.exact, self.fork, self._keys, self._aliases
        return _again, (*how, self.state, *limits)

    def as_table(self) -> Table:
        """What it takes and gives, and what it keeps."""
        takes = ", ".join(map(str, self.model.inputs[:4]))
        gives = ", ".join(map(printable_name, self._keys[:4]))
        kept = f", {counted(len(self.state.declared), 'variable')}" if self.state.declared else ""
        return Table(
            f"program of {printable_name(self.model.name)!r}: {takes or 'nothing'} -> {gives}; "
            f"{counted(self.threads, 'thread')}, {counted(len(self._plans), 'shape')} planned"
            f"{kept}{self._weights}",
            ("", "name", "tensor"),
            [
                *(("input", end.name, end.tensor) for end in self.model.inputs),
                *(("output", name, "") for name in self._keys),
                *(("variable", name, one) for name, one in self.state.declared.items()),
            ],
            hint="program({name: array})" + (", program.state" if kept else ""),
        )

    @tidy
    def times(self, inputs: Inputs | None, runs: int = 5) -> list[Took] | None:
        """What each step takes for these inputs; None where nothing is planned."""
        arrays = check_inputs(self.model, inputs)
        with self._exclusive(), quick_turns:
            self._refuse_changed()
            planned = self._planned(self._shapes(arrays))
            return None if planned is None else planned.times(arrays, runs, self.state)

    def reset(self) -> None:
        """Let the model's variables begin anew."""
        with self._exclusive():
            self.state.clear()

    def _walked(self, arrays: Mapping[int, Array]) -> list[Array]:
        """The outputs, computed layer by layer by the operations' definitions."""
        results = self.model.results
        if self._walk is None:
            self._refuse_edited()
            self._walk = Interpreter(self.model, [(layer, 0) for layer in results])
            with single_blas:
                self._walk.fold()
        # Threads of BLAS would take sums in another order, and bear no fork; in another order it
        # takes them where matrices lie the other way, too.
        arrays = {place: np.asarray(array, order="C") for place, array in arrays.items()}
        with single_blas:
            found = self._walk(arrays, self.state)
        made = self._handed_out([found[layer.id][0] for layer in results])
        return own_copies(made, [*arrays.values(), *self.state.values()])

    def _refuse_changed(self) -> None:
        """Refuse weights that are no longer what was read.

        Plans have laid out some of them anew; others lie in the file at each call.
        """
        if self.model.weights is not None:
            self.model.weights.refuse_changed()

    def _refuse_edited(self) -> None:
        """Refuse to prepare more of a model that is another than it was."""
        if self._stamp.number != stamp_of(self.model).number:
            raise UsageError(
                f"model {printable_name(self.model.name)!r} was edited after it was compiled: the "
                "program goes on with what it has prepared, for the shapes that it has met",
                hint="compile the model anew",
            )

    def _handed_out(self, arrays: Iterable[Array]) -> list[Array]:
        """Outputs as arrays of the element types that were inferred."""
        pairs = zip(arrays, self._kinds, self._dtypes, strict=True)
        return [
            array if array.dtype is dtype
            else halves_of(array) if kind is ElementType.F16 and array.dtype == np.float32
            else output_array(self.model, array, kind)
            for array, kind, dtype in pairs
        ]  # fmt: skip

    def _planned(
        self, shapes: Pattern, inferred: Inferred | None = None, pattern: Pattern | None = None
    ) -> Planned | None:
        """The plan for these shapes, made where there is none yet, or that for their pattern."""
        if pattern not in self._plans:  # or somebody else has let go of it
            pattern = self._plans.find(shapes)
        if pattern is None:
            pattern = self._patterns.choose(shapes)
        else:
            steady = self._patterns.steady(shapes, pattern) if takes_texts(pattern) else None
            self._patterns.seen(shapes)
            if steady is None and self._plans.use(pattern):
                return self._plans[pattern]
            pattern = steady or pattern
        if inferred is None:
            self._refuse_edited()
        with self.model.looked_up(self._look_ups), without_collection(), enough_memory():
            try:
                planned = self._made(pattern, inferred)
            except IRError:
                if pattern == shapes:
                    raise
                # What is known of all sizes may be too little to see that this one fits.
                self._patterns.refused.add(pattern)
                pattern, planned = shapes, self._made(shapes, None)
        self._plans.put(pattern, planned)
        return planned

    def _made(self, pattern: Pattern, inferred: Inferred | None) -> Planned | None:
        """A plan for a pattern, if there can be one."""
        if inferred is None:
            inferred = self._patterns.infer(pattern)
        self._kinds = [inferred.of(layer)[0].type for layer in self.model.results]
        self._dtypes = [None if kind.is_dynamic else kind.dtype for kind in self._kinds]
        planned = None
        if not self.exact:
            with single_blas:
                assigned = self._patterns.assigned(pattern)
                make_all = partial(side_by_side, threads=self.threads)
                hasty = self._plans.is_hasty(pattern)
                plan = build(
                    self.model, inferred, assigned, self._constants, make_all,
                    widen=floats_of, unrolls=self._plans.is_first(pattern),
                )  # fmt: skip
                if not openness(pattern):
                    cut_regions(plan)  # where sizes grow with each call, none would come again
                self._patterns.hopes.note(plan)
                plan.means = means(plan, self.memory)
                if self.model.weights is not None:
                    plan.release = self.model.weights.release
                # Nearly all of a text is outside, where other processes see nothing.
                forks = self.fork and not hasty and not takes_texts(pattern)
                planned = ready(
                    plan, self.threads, fork=forks, hurry=self._hurry if hasty else None
                )
                self._weights = kept_weights(plan)
        if planned is not None and self.model.weights is not None:
            # Kernels have laid out their own; a second copy need not stay in memory.
            self.model.weights.release()
        return planned


def _again(
    model: Model,
    threads: int,
    exact: bool,
    fork: bool,
    keys: list[str],
    aliases: dict[str, str],
    state: State,
    max_memory: int | None,
    max_seconds: float | None,
    memory: Memory | None,
) -> Program:
    program = Program(
        model,
        threads=threads,
        exact=exact,
        fork=fork,
        max_memory=max_memory,
        max_seconds=max_seconds,
        memory=memory,
    )
    dict.update(program.state, state)
    program._keys, program._aliases = keys, aliases
    return program


def compile(
    model: ModelLike,
    *,
    outputs: Wanted = None,
    threads: int | None = None,
    shapes: Shapes | None = None,
    exact: bool = False,
    fork: bool = True,
    max_memory: int | None = None,
    max_seconds: float | None = None,
    memory: Memory | None = None,
) -> Program:
    """Prepare a model to be called often.

    A program stays what the model was: edits that come later do not reach it. It answers as
    before for shapes that it has met, and refuses others; for the edited model compile anew.

    Args:
        model: The model, or its path.
        outputs: None for the model's outputs; ``"all"`` or names for any tensors, as of ``run``.
        threads: How many workers share each call, the caller among them; None for all cores.
            The answer is the same for any number, bit for bit.
        shapes: Input shapes to plan for at once, where the model leaves them open.
        exact: Keep to the arithmetic of the definitions: nothing folded, nothing reordered.
        fork: Whether the other workers may be forked processes (on Linux, x86-64), which is
            quicker: threads of Python wait for each other. They share the program's memory,
            close all files, sleep between calls, and end with the program.
        max_memory: Bytes that preparing, or a call, may take; None for what the machine has left.
        memory: ``"small"`` keeps weights that the file has in few bits so, and makes numbers of
            them in a core's cache each time; ``"fast"`` makes them once where that is quicker.
            None for numbers where levels would take much longer, if there is memory for these;
            ``repr`` says what was done.
        max_seconds: Limit of preparing and of a call, looked at between layers, turns of loops
            and the parts of a step, and when all is done.

    Raises:
        LimitError: More memory or time is wanted than is there or allowed; so do calls.
    """
    whole, keys = opened(model), None
    if outputs is not None:
        whole, keys = handing_out(whole, outputs)
    return Program(
        whole,
        keys=keys,
        threads=threads,
        shapes=shapes,
        exact=exact,
        fork=fork,
        max_memory=max_memory,
        max_seconds=max_seconds,
        memory=memory,
    )
