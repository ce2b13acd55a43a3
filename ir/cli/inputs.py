"""Inputs of a model from the words of a command line: files, folders of them, images, random."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...layers.budget import budget
from ...schemas import Array, UnreadableError, UsageError
from ...schemas.numbers import random_of
from ...schemas.printing import printable
from ..document import Layer, Model, by_input, named_inputs
from ..execution import fill, is_filling, sized
from ..fleet import array_of_names, as_input, files_of, is_image, load_image
from .archive import load_arrays
from .options import STDIN
from .output import note


def make_inputs(model: Model, given: Mapping[str, str], seed: int) -> dict[int, Array]:
    """An array for every input, from what the command line says."""
    return arrays_of(model, sized_words(model, given), seed)


def sized_words(model: Model, given: Mapping[str, str]) -> dict[int, str]:
    """What is given for each input, by its layer's id, with sizes that fit where nobody gave any.

    They are told where they are not the least, as they decide what is seen.
    """
    words = words_of(model, given)
    found = sized(model, words)
    chosen = [
        f"-i {shlex.quote(printable(f'{names[0]}={found[parameter.id]}'))}"
        for parameter, names in named_inputs(model.parameters)
        if found.get(parameter.id) != words.get(parameter.id)
    ]
    if chosen:
        note(f"note: nobody gave all sizes, these are usual ones that fit: {' '.join(chosen)}")
    return found


def arrays_of(model: Model, words: Mapping[int, str], seed: int) -> dict[int, Array]:
    """An array for every input, by its place among the inputs."""
    rng = random_of(seed)
    allowed, made = budget(), dict[int, Array]()
    for index, (parameter, names) in enumerate(named_inputs(model.parameters)):
        with parameter.at():
            made[index] = make_input(parameter, names, words.get(parameter.id, "random"), rng)
            allowed.hold([made[index]])
    return made


def words_of(model: Model, given: Mapping[str, str]) -> dict[int, str]:
    """What is given for each input, by its layer's id; nothing is no file, and no folder."""
    for name, word in given.items():
        if not word:
            raise UsageError(
                f'nothing is given for input "{name}"',
                hint="give a .npy or .npz file, an image, random, zeros or ones",
            )
    return by_input(model, given)


def make_input(
    parameter: Layer, names: Sequence[str], word: str, rng: np.random.Generator
) -> Array:
    """One input: read from a file, or filled as a word says."""
    return fill(parameter, word, rng) if is_filling(word) else load(word, parameter, names)


def load(path: str, parameter: Layer, names: Sequence[str]) -> Array:
    """An array from a .npy, from a .npz the one of an input's name, or from an image."""
    try:
        if is_image(path):
            return _image(path, parameter)
        content = load_arrays(path)
    except FileNotFoundError:
        raise UnreadableError(
            f'{path} is not there (input "{names[0]}")',
            hint="give a .npy or .npz file, an image, random, zeros or ones, or random:1,3,64,64",
        ) from None
    except OSError as error:
        raise UnreadableError(
            f'{path} cannot be read (input "{names[0]}"): {error.strerror}'
        ) from None
    array = array_of_names(content, names)
    if array is None:
        raise UsageError(
            f'{path} has no array "{names[0]}"; it has {", ".join(content) or "none"}'
        )
    return _as_wanted(array, parameter, path, names)


def _as_wanted(array: Array, parameter: Layer, path: str, names: Sequence[str]) -> Array:
    """An array of a file in the type of its input."""
    if parameter.op is None:
        return array
    return as_input(array, parameter.op.infer()[0].type, f'{path} (input "{names[0]}")')


def _image(path: str, parameter: Layer) -> Array:
    """An image, as an input takes it."""
    assert parameter.op is not None
    (wanted,) = parameter.op.infer()
    kind = np.dtype("f4") if wanted.type.is_dynamic else wanted.type.dtype
    shape = None if wanted.shape.rank is None else wanted.shape.sizes
    return load_image(path, parameter.name, shape, kind)


# Many samples.


@dataclass(frozen=True)
class Sample:
    """One or several samples that are run together: the arrays, and what each is called."""

    names: list[str]
    arrays: dict[int, Array]


class Samples:
    """What ``--input`` means: one sample, or as many as there are files."""

    def __init__(self, model: Model, given: Mapping[str, str], seed: int, batch: int | None):
        self.model, self.given, self.seed = model, given, seed
        self.words = sized_words(model, given)
        self.files = {
            parameter.id: found
            for parameter in model.parameters
            if (word := self.words.get(parameter.id, "random")) != STDIN
            and not is_filling(word)
            and (found := files_of(word)) is not None
        }
        counts = {len(found) for found in self.files.values()}
        if len(counts) > 1:
            listed = ", ".join(
                f'"{layer.name}" {len(self.files[layer.id])}'
                for layer in model.parameters
                if layer.id in self.files
            )
            raise UsageError(f"the inputs have different numbers of files: {listed}")
        #: None where no input is a folder or a pattern: a single sample, as it is.
        self.count = counts.pop() if counts else None
        if batch is not None and self.count is None:
            raise UsageError(
                "--batch is for a folder of inputs", hint="--input NAME=folder, NAME='*.npy'"
            )
        #: What each sample is called.
        self.names = _stems(next(iter(self.files.values()))) if self.files else ["0"]
        self.batch = self._batch(batch)

    @property
    def is_random(self) -> bool:
        """Whether some input is filled at random."""
        words = (self.words.get(x.id, "random") for x in self.model.parameters)
        return any(is_filling(word) and word.startswith("random") for word in words)

    def _batch(self, asked: int | None) -> int:
        """How many samples run together: what the model's first sizes say, or what is asked."""
        for layer in self.model.parameters if self.count else ():
            if layer.id in self.files and layer.op is not None:
                shape = layer.op.infer()[0].shape
                first = next(iter(shape), None) if shape.rank else None
                if isinstance(first, int):
                    if asked not in (None, first):
                        raise UsageError(
                            f'--batch {asked}, input "{layer.name}" has the shape {shape}',
                            hint="infer --input NAME=SHAPE -o FILE writes it with another shape",
                        )
                    return max(first, 1)
        return asked or 1

    def __len__(self) -> int:
        return 1 if self.count is None else -(-self.count // self.batch)

    def __iter__(self) -> Iterator[Sample]:
        if self.count is None:
            yield Sample(self.names, arrays_of(self.model, self.words, self.seed))
            return
        rng = random_of(self.seed)
        for start in range(0, self.count, self.batch):
            numbers = range(start, min(start + self.batch, self.count))
            arrays: dict[int, Array] = {}
            for index, (parameter, names) in enumerate(named_inputs(self.model.parameters)):
                with parameter.at():
                    if parameter.id in self.files:
                        arrays[index] = self._together(parameter, names, numbers)
                    else:
                        word = self.words.get(parameter.id, "random")
                        arrays[index] = make_input(parameter, names, word, rng)
            yield Sample([self.names[number] for number in numbers], arrays)

    def _together(self, parameter: Layer, names: Sequence[str], numbers: range) -> Array:
        """The arrays of some files, one after another along the first axis."""
        assert parameter.op is not None
        rank = parameter.op.infer()[0].shape.rank
        rows = []
        for number in numbers:
            array = load(self.files[parameter.id][number], parameter, names)
            single = rank is not None and array.ndim == rank - 1
            rows.append(array[None] if single else array)
        if self.batch == 1:
            return rows[0]
        # The last samples are repeated where a model takes a settled number of them.
        rows += rows[-1:] * (self.batch - len(rows) if self._settled(parameter) else 0)
        shapes = {row.shape for row in rows}
        if len(shapes) > 1 or rows[0].ndim == 0 or rows[0].shape[0] != 1:
            listed = ", ".join(map(str, sorted(shapes)))
            raise UsageError(
                f'samples of input "{names[0]}" have the shapes {listed}; run together, '
                "each is one row of the same sizes",
                hint="--batch 1",
            )
        return np.concatenate(rows)

    def _settled(self, parameter: Layer) -> bool:
        assert parameter.op is not None
        shape = parameter.op.infer()[0].shape
        return bool(shape.rank) and isinstance(next(iter(shape)), int)


def _stems(files: Sequence[str]) -> list[str]:
    """A name for each file: its own without the ending, with what tells it from its like."""
    stems = [Path(path).stem for path in files]
    if len(set(stems)) == len(stems):
        return stems
    return [f"{number}_{stem}" for number, stem in enumerate(stems)]
