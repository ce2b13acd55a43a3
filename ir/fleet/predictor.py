"""A model to be sent to workers: what it is, not what it weighs.

Example::

    predictor = ir.Predictor("model.xml")
    y = dask.array.map_blocks(predictor, x, dtype="float32")
    rows = dataset.map_batches(predictor, batch_format="numpy")
    udf = predict_batch_udf(predictor.make_predict_fn, return_type=..., batch_size=64)
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np

from ...schemas import Array, Dim, ElementType, Shape, UnreadableError, UsageError, Where
from ...schemas.printing import counted
from ..document import Model, named_inputs, output_keys, output_names
from ..engine import Program, shared_weights
from ..files import find_pair, read
from ..inference import infer
from ..storage import Path, Weights, identity, is_url
from .samples import as_input, load_image

#: Programs that a process keeps, by what they were made of.
KEPT = 4

#: The least and the greatest that each size of a shape may be; None: nothing is known.
Bounds: TypeAlias = "list[tuple[int, int | None]] | None"

_programs: OrderedDict[str, Program] = OrderedDict()
_lock = threading.Lock()


def _whole(name: str, number: object, least: int, other: str = "", hint: str | None = None) -> int:
    """An argument that counts, whatever kind of whole number it is."""
    try:
        found = index(number)  # type: ignore[arg-type]  # which is what is asked here
    except TypeError:
        found = None
    if found is None or found < least:
        said = f"{name} is {number!r:.60}, it is a whole number from {least} on {other}".rstrip()
        raise UsageError(said, hint=None if found is None else hint)
    return found


class _Stored:
    """A model in files: where they are, and what tells them from any others."""

    def __init__(self, path: Path) -> None:
        xml, _ = find_pair(path)
        self.path = xml if isinstance(xml, str) else os.path.abspath(xml)
        model = read(self.path)
        source = model.source or b""
        self.size, self.digest = len(source), _digest(source)
        self.weights = model.weights
        self.status = self._status()

    def _status(self) -> tuple[Any, ...] | None:
        """What the system says of the document, where it is a file of this machine."""
        try:
            return None if is_url(self.path) else identity(os.stat(self.path))
        except OSError:
            return None

    def check(self) -> None:
        """Refuse files of this machine that are not what they were."""
        if self.weights is not None:
            refuse_changed(self.weights)
        if self.status is not None and self._status() != self.status:
            self._compare(_source(self.path))
            self.status = self._status()

    def _compare(self, source: bytes) -> None:
        """Refuse a document that is not the one that was looked at."""
        digest = _digest(source)
        if (len(source), digest) != (self.size, self.digest):
            now = f"{len(source)} with {digest[:12]}"
            raise _changed(self.path, f"{self.size} bytes with the digest {self.digest[:12]}", now)

    def load(self) -> Model:
        """The model, if its document is what it was; its weights were looked at before."""
        model = read(self.path)
        self._compare(model.source or b"")
        model.weights = self.weights
        self.status = self._status()
        return model

    def __getstate__(self) -> dict[str, Any]:
        self.check()  # else the weights would be sent as they were, all of them
        return self.__dict__ | {"status": None}


class _Edited:
    """A model in memory: its document with its edits, and its weights by reference."""

    def __init__(self, model: Model) -> None:
        self.data = pickle.dumps(model, 5)

    def check(self) -> None:
        """Nothing: what it refers to is looked at when it is loaded, and when it is called."""

    def load(self) -> Model:
        """The model."""
        model: Model = pickle.loads(self.data)
        return model


class Predictor:
    """A model as a function of arrays that can be sent to other processes and machines.

    Sent are its path with sizes and hashes (of a model in memory its document and edits), not the
    weights. Each process makes one program of it, and maps its files once, however many predictors
    it is sent. Files that are not what they were are refused.

    Called with a dictionary it answers with one, called with arrays (in the order of the inputs)
    with the array of its output, or a dictionary where it has several.
    """

    def __init__(
        self,
        path_or_model: Path | Model,
        outputs: str | Iterable[str] | None = None,
        *,
        batch_axis: int | None = 0,
        threads: int = 1,
    ) -> None:
        """Look at the model, and note what it is.

        Args:
            path_or_model: The .xml, or a URL, or a model.
            outputs: The output or outputs that are wanted; None for all.
            batch_axis: The axis along which inputs are cut into batches of the size that the model
                takes, and outputs joined again; the last batch is filled up with its last row.
                None: arrays are handed to the model as they are.
            threads: How many workers share a call, the caller among them; with one no helpers
                are forked.

        Raises:
            UsageError: An axis or a number of workers that is none.
        """
        if batch_axis is not None:
            hint = "inputs and outputs may differ in rank: count from the first axis"
            batch_axis = _whole("batch_axis", batch_axis, 0, "or None", hint)
        threads = _whole("threads", threads, 1)
        self._recipe: _Stored | _Edited
        if isinstance(path_or_model, Model):
            model = path_or_model
            self._recipe = _Edited(model)
            made_of = self._recipe.data
        else:
            self._recipe = _Stored(path_or_model)
            model = self._recipe.load()
            weights = model.weights
            mark = () if weights is None else (weights.path, weights.size, weights.identity)
            made_of = repr((self._recipe.path, self._recipe.digest, mark)).encode()
        self.batch_axis, self.threads = batch_axis, threads
        self._key = f"{_digest(made_of)} {threads}"
        #: The names of each input, and the shapes that the model takes.
        self.inputs = [names for _, names in named_inputs(model.parameters)]
        inferred = infer(model)
        self._shapes = [bounds_of(inferred.of(layer)[0].shape) for layer in model.parameters]
        self._kinds = [inferred.of(layer)[0].type.dtype for layer in model.parameters]
        self._empty = {
            name: (inferred.of(layer)[0].type.dtype, bounds_of(inferred.of(layer)[0].shape))
            for name, layer in zip(output_keys(model), model.results, strict=True)
        }
        names = list(self._empty) if outputs is None else outputs
        wanted = [names] if isinstance(names, str) else list(names)
        #: The outputs that are handed out.
        self.outputs = [self._output(model, name) for name in wanted]

    def _output(self, model: Model, name: str) -> str:
        for key, layer in zip(self._empty, model.results, strict=True):
            if name == key or name in output_names(model, layer):
                return key
        raise UsageError(f'no output is named "{name}"; there are {", ".join(self._empty)}')

    def __repr__(self) -> str:
        place = getattr(self._recipe, "path", "a model in memory")
        takes = counted(len(self.inputs), "input")
        return f"<predictor of {place}, {takes}, outputs {self.outputs}>"

    def __call__(self, *arrays: Any) -> Any:
        """The outputs for a batch of any size."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            return self._predict(self._by_place(arrays[0]))
        if len(arrays) != len(self.inputs):
            names = ", ".join(names[0] for names in self.inputs)
            raise UsageError(
                f"{len(arrays)} arrays are given for {len(self.inputs)} inputs: {names}"
            )
        if sys._getframe(1).f_code.co_name in ("apply_infer_dtype", "compute_meta"):
            # Dask asks for the type of the answer by arrays of nothing, or of a single one, which
            # no model takes.
            found = self._nothing()
        else:
            found = self._predict([np.asarray(array) for array in arrays])
        return found[self.outputs[0]] if len(found) == 1 else found

    def image(self, path: str, name: str) -> Array:
        """An image as the input of a name takes it."""
        place = self._place(name)
        bounds = self._shapes[place]
        shape = None if bounds is None else [
            least if least == most else Dim(least, most) for least, most in bounds
        ]  # fmt: skip
        return load_image(path, name, shape, self._kinds[place])

    def fitted(self, array: Array, path: str, name: str) -> Array:
        """An array of a file as the input of a name takes it."""
        kind = ElementType.of(self._kinds[self._place(name)])
        return as_input(array, kind, f'{path} (input "{name}")')

    def _place(self, name: str) -> int:
        """Which of the inputs has a name."""
        for place, names in enumerate(self.inputs):
            if name in names:
                return place
        known = ", ".join(names[0] for names in self.inputs)
        raise UsageError(f'no input is named "{name}"; there are {known}')

    def _by_place(self, given: Mapping[str, Any]) -> list[Array]:
        """The arrays in the order of the inputs; a table may have columns beside them."""
        found: list[Array] = []
        for names in self.inputs:
            name = next((name for name in names if name in given), None)
            if name is None:
                raise UsageError(
                    f'no value is given for the input "{names[0]}"; there are '
                    f"{', '.join(map(repr, given)) or 'none'}"
                )
            found.append(np.asarray(given[name]))
        return found

    def _predict(self, arrays: list[Array]) -> dict[str, Array]:
        program = self.program
        batch = self._batch(arrays)
        if batch is None:
            return self._run(program, arrays)
        rows, size = batch
        parts = [
            self._run_part(program, arrays, rows, begin, size)
            for begin in range(0, max(rows, 1), size)
        ]
        axis = self.batch_axis or 0
        return {
            name: np.concatenate([part[name] for part in parts], axis) for name in self.outputs
        }

    def _run(self, program: Program, arrays: list[Array]) -> dict[str, Array]:
        with shared_weights():
            found = program.anew(arrays)
        return {name: found[name] for name in self.outputs}

    def _batch(self, arrays: list[Array]) -> tuple[int, int] | None:
        """Rows that are given, and how many are taken at once; None where they fit as they are."""
        axis = self.batch_axis
        if axis is None:
            return None
        rows = size = None
        for names, shape, array in zip(self.inputs, self._shapes, arrays, strict=True):
            if shape is None or not len(shape) == array.ndim > axis:
                continue
            given, (least, most) = array.shape[axis], shape[axis]
            if _is_within(given, shape[axis]):
                continue
            size = least if most is None or given < least else most
            if not size:
                raise UsageError(
                    f'input "{names[0]}" takes 0 rows along axis {axis}, {given} are given',
                    hint="infer --input NAME=SHAPE -o FILE writes it with another shape",
                )
            if rows is not None and rows != given:
                raise UsageError(f'input "{names[0]}" has {given} rows, another {rows}')
            rows = given
        return None if rows is None or size is None else (rows, size)

    def _run_part(
        self, program: Program, arrays: list[Array], rows: int, begin: int, size: int
    ) -> dict[str, Array]:
        """The outputs for some rows, with the last repeated where there are too few.

        Of no rows at all a model of a fixed batch tells only the shapes, by rows of zeros.
        """
        axis = self.batch_axis or 0
        wanted = min(size, rows - begin)
        parts = []
        for shape, array in zip(self._shapes, arrays, strict=True):
            if (
                shape is not None
                and len(shape) == array.ndim > axis
                and array.shape[axis] == rows
                and _is_within(size, shape[axis])  # else it is of another axis that is as long
            ):
                if not rows:
                    sizes = [*array.shape[:axis], size, *array.shape[axis + 1 :]]
                    array = np.zeros(sizes, array.dtype)
                elif wanted == size:
                    array = array[(slice(None),) * axis + (slice(begin, begin + size),)]
                else:
                    places = np.minimum(np.arange(begin, begin + size), rows - 1)
                    array = np.take(array, places, axis)
            parts.append(array)
        found = self._run(program, parts)
        for name, array in found.items():
            if array.ndim <= axis or array.shape[axis] != size:
                raise UsageError(
                    f'output "{name}" of the shape {array.shape} has no {size} rows along axis '
                    f"{axis}: what is computed of {rows} rows cannot be put together",
                    hint=f"give {size} rows at once, or another batch_axis",
                )
            found[name] = array.take(np.arange(wanted), axis) if wanted < size else array
        return found

    def _nothing(self) -> dict[str, Array]:
        """Arrays by which libraries learn the types of the outputs; nothing is computed."""
        found = {}
        for name in self.outputs:
            kind, shape = self._empty[name]
            sizes = [least if least == most else 0 for least, most in shape or ()]
            if self.batch_axis is not None and len(sizes) > self.batch_axis:
                sizes[self.batch_axis] = 0
            found[name] = np.zeros(sizes, kind)
        return found

    @property
    def program(self) -> Program:
        """This process's program of the model."""
        with _lock:
            self._recipe.check()
            program = _programs.get(self._key)
            if program is None:
                with shared_weights():
                    program = _programs[self._key] = Program(
                        self._recipe.load(), threads=self.threads, fork=self.threads > 1
                    )
                while len(_programs) > KEPT:
                    _programs.popitem(last=False)
            _programs.move_to_end(self._key)
            return program

    def make_predict_fn(self) -> PredictFunction:
        """Load the model, and give a function of arrays: what Spark's predict_batch_udf wants."""
        _ = self.program
        return PredictFunction(self)


class PredictFunction:
    """A predictor with as many parameters as it has inputs, for rows of tables.

    Such rows come flat and in the few types that tables have; they are given in the model's, and
    those of the outputs are handed back flat. Called without arrays it gives itself, so that it
    does for a maker of functions, too.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        kind = inspect.Parameter.POSITIONAL_ONLY
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(f"input{n}", kind) for n in range(len(predictor.inputs))]
        )

    def __call__(self, *arrays: Any) -> Any:
        if not arrays:
            return self
        shapes, kinds = self._predictor._shapes, self._predictor._kinds
        if len(arrays) != len(shapes):
            return self._predictor(*arrays)
        given = map(_shaped, map(np.asarray, arrays), shapes)
        found = self._predictor(*map(_converted, given, kinds))
        if isinstance(found, Mapping):
            return {name: _flat(array) for name, array in found.items()}
        return _flat(found)


def _converted(array: Array, kind: np.dtype) -> Array:
    """Numbers in a type of the model: in fewer digits, but as integers only what is the same."""
    if array.dtype == kind or array.dtype.kind not in "fiu":
        return array
    if kind.kind in "fV":  # V: those of ml_dtypes
        return array.astype(kind)
    if kind.kind in "iu" and array.dtype.kind in "iu":
        fitting = array.astype(kind)
        return fitting if np.array_equal(fitting, array) else array
    return array


def _flat(array: Array) -> Array:
    """Rows as tables have them: a number, or a list of numbers."""
    return array.reshape(len(array), -1) if array.ndim > 2 and len(array) else array


def _shaped(array: Array, shape: Bounds) -> Array:
    """Rows in the shape that the model takes."""
    if not shape or not array.ndim or array.ndim == len(shape):
        return array
    sizes = [least for least, most in shape[1:] if least == most]
    if len(sizes) < len(shape) - 1 or prod(array.shape[1:]) != prod(sizes):
        return array
    return array.reshape(len(array), *sizes)


def bounds_of(shape: Shape) -> Bounds:
    """The least and the greatest that each size may be."""
    if shape.rank is None:
        return None
    return [
        (size, size) if isinstance(size, int) else (max(size.low or 0, 0), size.high)
        for size in shape.sizes
    ]


def _is_within(size: int, bounds: tuple[int, int | None]) -> bool:
    """Whether an axis may be so long."""
    least, most = bounds
    return least <= size and (most is None or size <= most)


def refuse_changed(weights: Weights) -> None:
    """Refuse weights whose file is no longer what was mapped."""
    if weights.identity is None or weights.path is None:
        return
    path = os.path.abspath(weights.path)
    try:
        now = identity(os.stat(path))
    except OSError:
        raise _changed(path, f"{weights.size} bytes", "it is gone") from None
    if now[:4] != weights.identity[:4]:  # not the time of change: other rights are one
        before = f"{weights.identity[2]} bytes of time {weights.identity[3]}"
        raise _changed(path, before, f"{now[2]} of time {now[3]}")


def _source(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _changed(path: str, before: str, now: str) -> UnreadableError:
    return UnreadableError(
        f"is not what it was when the predictor was made: it had {before}, now {now}",
        Where(path),
        "make the predictor again",
    )


__all__ = ["Predictor"]
