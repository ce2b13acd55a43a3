"""Arrays for inputs of which nothing but type and shape is known."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from ...layers.budget import PIECE, pieces, require
from ...schemas import Array, IRError, Shape, UnsupportedError, UsageError
from ...schemas.printing import printable
from ...schemas.shapes import limits
from ..document import Layer, Model, named_inputs
from .suiting import least, suited

#: What an input may be filled with.
FILLINGS = ("random", "zeros", "ones")
#: Inputs whose sizes are told of many, and the size that is proposed for one that may be any.
_TOLD, _PROPOSED = 3, 64


def is_filling(word: str) -> bool:
    """Whether a word says how to fill an input: ``zeros``, or with sizes ``random:1,3,64,64``."""
    return word.partition(":")[0] in FILLINGS


def fill(parameter: Layer, text: str, rng: np.random.Generator) -> Array:
    """An array for an input, filled as a word says, in the sizes that follow it."""
    if parameter.op is None:
        raise UnsupportedError(f"{parameter.type} {parameter.version} is not known")
    (tensor,) = parameter.op.infer()
    word, colon, sizes = text.partition(":")
    asked = _asked(sizes) if colon else Shape.UNKNOWN
    told = f"asked are {sizes or 'no sizes'}"
    shape = filled(fitted(tensor.shape, asked, parameter.name, told), parameter)
    if tensor.type.is_dynamic:
        raise UsageError(
            f'input "{parameter.name}" has no element type, an array is needed',
            hint=f"--input {parameter.name}=FILE.npy",
        )
    count = prod(shape)
    # Random numbers are made with 8 bytes each, a piece at a time.
    beside = min(8 * count, PIECE) if word == "random" else 0
    require(count * tensor.type.dtype.itemsize + beside)
    if word == "zeros":
        return np.zeros(shape, tensor.type.dtype)
    if word == "ones":
        return np.ones(shape, tensor.type.dtype)
    made = np.empty(shape, tensor.type.dtype)
    flat, end = made.reshape(-1), 2 if tensor.type == "boolean" else 10
    for some in pieces(flat.size, 8):
        count = some.stop - some.start
        flat[some] = (
            rng.standard_normal(count) if tensor.type.is_real else rng.integers(0, end, count)
        )
    return made


def _asked(sizes: str) -> Shape:
    try:
        return Shape.parse(sizes)
    except ValueError as error:
        raise UsageError(str(error)) from None


def fitted(shape: Shape, given: Shape, name: str, told: str) -> Shape:
    """What is known of an input's shape, and of the one given for it; told where these differ."""
    try:
        return shape.merge(given)
    except IRError:
        raise UsageError(
            f'input "{name}" has the shape {shape}, {told}',
            hint="ir.infer(model, shapes) tells whether the model takes another",
        ) from None


def filled(shape: Shape, parameter: Layer) -> tuple[int, ...]:
    """Numbers for a shape: the least that an unknown size may be, but no less than 1."""
    if shape.rank is None:
        raise UsageError(
            f'input "{parameter.name}" has no rank, an array is needed',
            hint=f"--input {parameter.name}=FILE.npy",
        )
    return tuple(map(least, shape))


def sized(model: Model, words: Mapping[int, str]) -> dict[int, str]:
    """Words that fill inputs, by id, with sizes where nobody gave any and the least do not do.

    Those are usual ones that all layers take; a word is left as it is where none are found.
    """
    return {**words, **(_chosen(model, words) or {})}


def _chosen(model: Model, words: Mapping[int, str]) -> dict[int, str] | None:
    """The words with sizes that were chosen; none where the least do, None where nothing fits."""
    known = dict[int, Shape]()
    wanted = dict[int, str]()
    for parameter in model.parameters:
        word, shape = _said(parameter, words)
        if shape is None or shape.rank is None:
            continue
        known[parameter.id] = shape
        if word in FILLINGS and not shape.is_static:
            wanted[parameter.id] = word
    if not wanted:
        return {}
    found = suited(model, known, wanted)
    if found is None:
        return None
    return {
        name: f"{wanted[name]}:{_joined(sizes)}"
        for name, sizes in found.items()
        if sizes != filled(known[name], model.layer(name))
    }


def _said(parameter: Layer, words: Mapping[int, str]) -> tuple[str, Shape | None]:
    """How an input is filled, or its file, and what is known of its shape."""
    word, _, sizes = words.get(parameter.id, "random").partition(":")
    if parameter.op is None:
        return word, None
    shape = parameter.op.infer()[0].shape
    if word in FILLINGS and sizes:
        shape = fitted(shape, _asked(sizes), parameter.name, f"asked are {sizes}")
    return word, shape


def tell_made_up(error: IRError, model: Model, words: Mapping[int, str] | None = None) -> None:
    """Add to what a layer refuses which sizes nobody gave, and how they are given.

    Args:
        error: What was raised when the inputs were run.
        model: Whose inputs they are.
        words: What was said of some of them, by id: how to fill them, or a file.
    """
    if type(error) is not IRError:
        return  # of files, runtimes or limits, not of a layer and what it was fed
    said = words or {}
    chosen = _chosen(model, said)
    made, proposed = [], []
    for parameter, names in named_inputs(model.parameters):
        word, shape = _said(parameter, said)
        if word not in FILLINGS or shape is None or shape.rank is None or shape.is_static:
            continue
        taken = _said(parameter, {**said, **(chosen or {})})[1] or shape
        made.append(f'"{printable(names[0])}" {list(filled(taken, parameter))}')
        sizes = shape.spelling if chosen is None else _joined(_larger(shape, parameter))
        better = f"{word}:{sizes}" if not chosen else "FILE.npy"
        proposed.append(f"-i {shlex.quote(printable(f'{names[0]}={better}'))}")
    if not made:
        return
    why = (
        "as small as may be, as no usual ones fit; give all, with numbers for each ?:"
        if chosen is None
        else "usual ones whose shapes fit; give inputs that do, such as" if chosen
        else "as small as may be; give inputs that fit, such as"
    )  # fmt: skip
    told = f"nobody gave all sizes of {', '.join(made[:_TOLD])}: they are {why} "
    told += " ".join(proposed[:_TOLD])
    error.hint = f"{error.hint}; {told}" if error.hint else told


def _joined(sizes: Iterable[int]) -> str:
    return ",".join(map(str, sizes))


def _larger(shape: Shape, parameter: Layer) -> list[int]:
    """Sizes that may suit better than the least: of single samples, where they are all open."""
    least = filled(shape, parameter)
    larger = []
    for size, low in zip(shape, least, strict=True):
        most = limits(size)[1]
        larger.append(max(low, _PROPOSED if most is None else min(_PROPOSED, most)))
    return [least[0], *larger[1:]] if least[1:] != tuple(larger[1:]) else larger
