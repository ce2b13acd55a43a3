"""The edit that lets a model take a batch of another size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

from pydantic import Field

from ...schemas import ANY, Dim, IRError, LimitError, Shape, UsageError
from ...schemas.shapes import limits
from ..document import Layer, keep_symbols
from ..inference import infer
from .batches import Batch
from .orders import Desk, Edit, Key
from .orders_ends import layout_of, read_shape
from .side_by_side import Trial
from .workbench import Source


class SetBatch(Edit):
    """Let inputs take so many samples at once, and layers that say the old number go by it."""

    reshapes: ClassVar[bool] = True
    op: Literal["set-batch"]
    batch: Key = Field("?", description="the size: 8, 1..8, ? for any, or a name")
    inputs: list[str] | None = Field(
        None, description="the inputs that take samples; not given: all that take as many"
    )
    prove: bool = Field(
        True, description="run it on random samples, to see that none depends on another"
    )

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("batch")
        wanted = read_shape(str(self.batch))
        least, most = limits(wanted[0]) if wanted.rank == 1 else (0, 0)
        if not least and most is not None:
            raise UsageError(f'"batch" is {self.batch!r:.60}, one size above 0 is wanted')
        axes, old = self._axes(desk)
        before = infer(desk.model, {
            place: desk.bench.known(Source(layer, 0)).shape.with_size(axes[layer], old)
            for place, layer in enumerate(desk.model.parameters) if layer in axes
        })  # fmt: skip
        trial, why = None, "" if self.prove else "it was not asked for"
        if self.prove:
            try:
                trial = Trial(desk.model, axes, old)
            except IRError as error:
                why = error.message
        batch = Batch(desk, before.tensors, axes, old)
        but = batch.follow() | {x for x in desk.model.results if desk.bench.is_gone(x)}
        shapes = {layer: before.of(layer)[0].shape for layer in axes}
        declared = {layer: layer.data.get("shape", "") for layer in axes}
        for layer, axis in axes.items():
            desk.keep(layer, "data", "rt_info")
            _declare(layer, shapes[layer].with_size(axis, ANY))
        if trial is not None:
            try:
                with _about_batches():
                    apart = trial.difference(but)
                if isinstance(apart, str):
                    why = apart
                else:
                    told = f"two samples at once and alone differ by {apart:.2g}"
                    desk.report.note("tried", told)
            except LimitError as error:
                why = error.message
        if why:
            desk.report.note("untried", why)
        batch.finish()
        for layer, axis in axes.items():
            shape = shapes[layer].with_size(axis, wanted[0])
            _declare(layer, shape)
            keep_symbols(layer, shape)
            desk.report.note("batch", f"takes {shape}, took {declared[layer]}", layer)

    def _axes(self, desk: Desk) -> tuple[dict[Layer, int], int]:
        """The inputs that take samples, with the axis along which these lie, and how many."""
        layers = desk.model.parameters
        named = [desk.bench.input(name) for name in self.inputs or ()]
        sizes: dict[Layer, tuple[int, int]] = {}
        for layer in named or [x for x in layers if not desk.bench.is_gone(x)]:
            shape = desk.bench.known(Source(layer, 0)).shape
            axis = (layout_of(layer.outputs[0], shape.rank) or "N").find("N")
            # A list of one number is one for all, unless it is asked for.
            if shape.rank is None or axis < 0 or shape.rank <= max(axis, 0 if named else 1):
                if named:
                    raise UsageError(f"{shape} has no axis for samples", layer.where)
                continue
            size = shape[axis]
            sizes[layer] = axis, 1 if isinstance(size, Dim) else size
        if not sizes:
            raise UsageError("no input has an axis for samples", hint='name some in "inputs"')
        old = next(iter(sizes.values()))[1]
        others = [layer for layer, (_, size) in sizes.items() if size != old]
        if named and others:
            what = f"it takes {sizes[others[0]][1]} samples, the first input {old}"
            raise UsageError(what, others[0].where)
        return {layer: axis for layer, (axis, size) in sizes.items() if size == old}, old


@contextmanager
def _about_batches() -> Iterator[None]:
    """Say of what goes wrong with several samples that it is about them."""
    try:
        yield
    except (UsageError, LimitError):
        raise
    except IRError as error:
        what = f"two samples at once do not go through: {error.message}"
        raise UsageError(what, error.where, error.hint) from None


def _declare(layer: Layer, shape: Shape) -> None:
    """Let an input say a shape."""
    layer.data = {**layer.data, "shape": shape.spelling}


BATCH_EDITS = (SetBatch,)
