"""Sizes of inputs that a model takes, found where nobody gave any: by trying what inference says.

An axis that weights settle (channels, features) refuses a prime number while all others are open:
it has what is taken of a few usual sizes or of those that constants have. What is left grows
together, of images and of other inputs, until no layer refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from ...layers.budget import budget
from ...schemas import IRError, LimitError, Shape, Size, Tensor
from ...schemas.shapes import limits
from ..document import Graph, Layer, Model
from ..inference import infer_graph, parameter_type

#: An axis of an input, by the input's id.
Axis: TypeAlias = tuple[int, int]
#: Sizes that are tried, the smallest first, and one that hardly anything is made for.
USUAL = (1, 2, 3, 4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 256, 384, 512, 640)
PRIME = 4099
#: Of more open axes no sizes are looked for, nor among more sizes that constants have, nor after
#: so many layers were asked: that takes some ten seconds.
AXES, SIZES, LAYERS = 24, 64, 400_000


def suited(
    model: Model, shapes: Mapping[int, Shape], wanted: Collection[int]
) -> dict[int, tuple[int, ...]] | None:
    """Sizes that all layers take for some inputs, by id; None where none were found.

    Args:
        model: The model.
        shapes: What is known of its inputs, where their rank is.
        wanted: The inputs that get sizes; others stay open.
    """
    trials = _Trials(model, shapes, wanted)
    smallest = {axis: low for axis, (low, _) in trials.open.items()}
    if trials.pass_with(smallest):
        return trials.filled(smallest)
    if len(smallest) > AXES or not trials.pass_with({}):
        return None
    choices = {axis: trials.choices(axis) for axis in smallest}
    if not all(choices.values()):
        return None
    chosen = {axis: sizes[0] for axis, sizes in choices.items()}
    if trials.pass_with(chosen):
        return trials.filled(chosen)
    # One sample is enough.
    loose = [axis for axis in chosen if len(choices[axis]) > 1 and not trials.is_batch(axis)]
    images = [axis for axis in loose if trials.is_image(axis)]
    others = [axis for axis in loose if axis not in images]
    for some in (images, others, images):
        farthest = -1
        for size in USUAL if some else ():
            grown = {axis: _at_least(size, choices[axis]) for axis in some}
            if trials.pass_with(chosen | grown):
                return trials.filled(chosen | grown)
            if trials.reached > farthest:
                farthest, best = trials.reached, grown
        chosen |= best if some else {}
    return None


def _at_least(size: int, choices: Sequence[int]) -> int:
    """The first of rising choices that is no smaller; the last where there is none."""
    return next((choice for choice in choices if choice >= size), choices[-1])


def least(size: Size) -> int:
    """The size that an axis has where nobody gave any, if it may be so small."""
    return size if isinstance(size, int) else max(size.low or 0, 1)


class _Trials:
    """A model whose inputs have open sizes, and what inference says of some."""

    def __init__(self, model: Model, shapes: Mapping[int, Shape], wanted: Collection[int]) -> None:
        self._model, self._shapes, self._wanted = model, shapes, wanted
        self._types = {name: parameter_type(model.layer(name)) for name in shapes}
        #: The least and the largest size of each open axis.
        self.open: dict[Axis, tuple[int, int | None]] = {
            (name, axis): (least(size), limits(size)[1])
            for name in wanted
            for axis, size in enumerate(shapes[name])
            if not isinstance(size, int)
        }
        #: How many layers took what they were given, the last time, and how many in all.
        self.reached = self.asked = 0
        self._constant_sizes: list[int] | None = None

    def pass_with(self, sizes: Mapping[Axis, int]) -> bool:
        """Whether all layers take these sizes, whatever others are; none if it takes too long."""
        if self.asked > LAYERS:
            return False
        given = {
            name: Tensor(
                self._types[name],
                [sizes.get((name, axis), size) for axis, size in enumerate(shape)],
            )
            for name, shape in self._shapes.items()
        }
        self.reached = 0

        def count(
            graph: Graph,
            layer: Layer,
            known: Mapping[int, tuple[Tensor, ...]],
            outputs: tuple[Tensor, ...],
        ) -> tuple[Tensor, ...]:
            self.reached += 1
            return outputs

        try:
            infer_graph(self._model, given, hope=count)
        except IRError as error:
            if isinstance(error, LimitError):
                budget().check_time()  # what is too large is not taken; if time is over, it is
            return False
        finally:
            self.asked += self.reached
        return True

    def filled(self, sizes: Mapping[Axis, int]) -> dict[int, tuple[int, ...]]:
        """The sizes of each input."""
        return {
            name: tuple(
                size if isinstance(size, int) else sizes[name, axis]
                for axis, size in enumerate(self._shapes[name])
            )
            for name in self._wanted
        }

    def choices(self, axis: Axis) -> list[int]:
        """Sizes of one axis that are taken while all others are open."""
        low, high = self.open[axis]

        def fits(size: int) -> bool:
            return low <= size and (high is None or size <= high)

        usual = sorted({low, *filter(fits, USUAL)})
        if self.pass_with({axis: PRIME if fits(PRIME) else high or low}):
            return usual
        taken = [size for size in usual if self.pass_with({axis: size})]
        if taken:
            return taken
        others = (size for size in self._sizes() if fits(size) and size not in usual)
        return [size for size in others if self.pass_with({axis: size})][:1]

    def _sizes(self) -> list[int]:
        """The smallest sizes that constants of the model have."""
        if self._constant_sizes is None:
            found = {size for x in self._model.layers if x.is_constant for size in x.sizes}
            self._constant_sizes = sorted(found)[:SIZES]
        return self._constant_sizes

    def is_batch(self, axis: Axis) -> bool:
        """Whether samples stand along it, as one may take it."""
        return axis[1] == 0 and len(self._shapes[axis[0]]) > 1

    def is_image(self, axis: Axis) -> bool:
        """Whether its input has rows and columns."""
        return len(self._shapes[axis[0]]) > 3
