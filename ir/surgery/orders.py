"""What every edit is: a record that can be kept in a file, checked, and carried out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from ...layers.base import Op
from ...schemas import Array, ElementType, IRError, UsageError
from ..document import Graph, Layer, Model, array_of
from .outcome import Surgery
from .transplanting import body_at, graph_of
from .workbench import Source, Workbench

#: A layer by its name, or by its id.
Key: TypeAlias = str | Annotated[int, Strict()]
#: A name or a version, where one is given.
Word: TypeAlias = Annotated[str, Field(min_length=1)]
#: Numbers as JSON has them: one, or lists of lists.
Numbers: TypeAlias = float | int | bool | str | list[Any]


@dataclass
class Desk:
    """What an edit works on: the graph, the report, and the folder of its files."""

    model: Model
    bench: Workbench
    report: Surgery
    folder: Path
    #: The layer that the last edit has made.
    made: Layer | None = None
    #: The layers that edits gave attributes, to be looked at when all are done.
    given: list[Layer] = field(default_factory=list)
    #: What takes back what the edit has done so far, the last first.
    undoing: list[Callable[[], object]] = field(default_factory=list)

    def keep(self, layer: Layer, *parts: str) -> None:
        """Remember what a layer is, should the edit be refused."""
        for part in parts:
            self.undoing.append(partial(setattr, layer, part, deepcopy(getattr(layer, part))))

    @property
    def graph(self) -> Graph:
        """The graph that is edited: the model's, or that of a body."""
        return self.bench.graph

    def outermost(self, what: str) -> None:
        """Refuse what only a whole model has."""
        if self.graph is not self.model:
            raise UsageError(
                f"a body has no {what} of its own: its ends are wired by its port map",
                hint='leave "in" out, or extract the body first',
            )

    def input(self, name: str) -> Layer:
        """An input of the model."""
        self.outermost("inputs")
        return self.bench.input(name)


class Edit(BaseModel):
    """One edit; ``op`` says which."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    #: Whether types or shapes may be others afterwards, without an input being fed another way.
    reshapes: ClassVar[bool] = False
    #: The fields, of which a path may lead into a body: ``loop/body/add``.
    named_by_paths: ClassVar[tuple[str, ...]] = ()

    body: Word | None = Field(
        None,
        alias="in",
        description="the layer whose body is edited, such as loop or if/then_body",
    )

    def apply(self, desk: Desk) -> None:
        """Carry it out, or leave the model as it was where it is refused on the way."""
        count = desk.bench.count
        try:
            self._carry_out(desk)
        except IRError:
            for undo in reversed(desk.undoing):
                undo()
            desk.bench.undo(count)
            desk.bench.forget_tensors()
            raise
        if self.reshapes:
            desk.bench.forget_tensors()

    def placed(self, model: Model) -> tuple[Graph | None, Self]:
        """The body that the path of a layer or tensor leads to, and the same edit in there."""
        for key in self.named_by_paths:
            path = getattr(self, key)
            if isinstance(path, str):
                graph, name = graph_of(model, path)
                if graph is not model:
                    return graph, self.model_copy(update={key: name})
        return None, self

    def _carry_out(self, desk: Desk) -> None:
        raise NotImplementedError


class Chosen(Edit):
    """An edit of some layers."""

    named_by_paths: ClassVar[tuple[str, ...]] = ("layer",)

    layer: Key | None = Field(
        None, description="a layer by its name or id; in a body by its path, such as loop/add"
    )
    layers: str | None = Field(None, description="a regular expression for whole layer names")
    type: str | None = Field(None, description="the type of the layers, such as ReLU")

    def chosen(self, desk: Desk) -> list[Layer]:
        """The layers that are meant; there is at least one."""
        given = self.model_dump(include={"layer", "layers", "type"}, exclude_none=True)
        return desk.bench.select(given)


class Valued(Edit):
    """An edit that brings a value: numbers, or a file of NumPy's."""

    value: Numbers | None = Field(None, description="the value, as numbers")
    file: str | None = Field(None, description="a .npy with the value, beside the patch file")

    @model_validator(mode="after")
    def _one_value(self) -> Any:
        if (self.value is None) == (self.file is None):
            raise ValueError('give one of "value" and "file"')
        return self

    def array(self, desk: Desk, held: ElementType | None) -> Array:
        """The value, of the type that is wanted."""
        if self.file is None:
            return array_of(self.value, held, "the value")
        return array_of(load(desk.folder / self.file), held, self.file)


def load(path: Path) -> Array:
    """The array of a .npy file; nothing of it is executed."""
    try:
        with open(path, "rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise UsageError(f"{path} is no .npy file", hint="write it with numpy.save")
        found: Array = np.load(os.fspath(path), mmap_mode="r", allow_pickle=False)
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    return found


def input_place(desk: Desk, text: str) -> tuple[Layer, int]:
    """An input of a layer, written ``LAYER:INDEX``; the index is 0 where there is none."""
    layer, index = desk.bench.placed(text) or (desk.bench.layer(text), 0)
    if index >= len(layer.inputs):
        raise UsageError(
            f'layer "{layer.name}" has {len(layer.inputs)} inputs, {index} is asked for',
            layer.where,
            "inputs are counted from 0",
        )
    return layer, index


def sources_of(
    desk: Desk, given: Sequence[Any], type: str, name: str, own: Source | None
) -> list[Source]:
    """Inputs of a layer as an edit names them: tensors, ``@`` for that at hand, or constants."""
    found = []
    kind_of_layer = Op.newest(type)
    alike = kind_of_layer is not None and "auto_broadcast" in kind_of_layer.model_fields
    for index, one in enumerate(given):
        if isinstance(one, dict):
            unknown = one.keys() - {"constant", "type"}
            if unknown or "constant" not in one:
                raise UsageError(
                    f"input {index} is {one}",
                    hint='a constant is written {"constant": 2.0, "type": "f32"}',
                )
            kind = ElementType.named(one["type"]) if "type" in one else None
            array = array_of(one["constant"], None, f"input {index}")
            if kind is None and array.dtype.kind in "fi":
                # Numbers of JSON have no type: they take that of the tensor they meet.
                known = None if own is None else desk.bench.known(own).type
                plain = not isinstance(one["constant"], np.ndarray)
                if array.dtype.kind == "f":
                    kind = known if known is not None and known.is_real else ElementType.F32
                elif plain and alike and known is not None and known.is_numeric:
                    kind = known
            value = array if kind is None else array_of(array, kind, f"input {index}")
            found.append(desk.bench.constant(value, kind, name=f"{name}/constant_{index}"))
        elif one == "@":
            if own is None:
                raise UsageError('"@" stands for the tensor at hand, and there is none')
            found.append(own)
        else:
            try:
                found.append(desk.bench.tensor(str(one)))
            except UsageError as error:
                if isinstance(one, (int, float)):
                    error.hint = f'a constant is written {{"constant": {one}}}'
                raise
    return found


def bench_of(
    model: Model, benches: dict[str | Graph | None, Workbench], body: str | Graph | None
) -> Workbench:
    """The bench of a graph, made when it is first asked for; a body goes by paths or itself."""
    if body not in benches:
        graph = body_at(model, body) if isinstance(body, str) else body or model
        made = next((bench for bench in benches.values() if bench.graph is graph), None)
        benches[body] = made or Workbench(graph)
    return benches[body]


__all__ = [
    "Chosen", "Desk", "Edit", "Key", "Numbers", "Valued", "Word", "bench_of", "input_place",
    "load", "sources_of",
]  # fmt: skip
