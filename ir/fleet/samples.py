"""Files of samples: those of a folder, and images as the inputs of a model take them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...schemas import Array, ElementType, Size, UnreadableError, UsageError
from ..document import array_of
from ..optional import optional
from .folders import files_like
from .selection import by_number

#: What Pillow is asked to read.
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"})
_ARRAYS = frozenset({".npy", ".npz"})


def is_image(path: str) -> bool:
    """Whether a file is taken for an image, by its ending."""
    return Path(path).suffix.lower() in _IMAGES


def as_input(array: Array, kind: ElementType, where: str) -> Array:
    """An array of a file in the type of its input, if that holds it: files know few types."""
    if kind.is_dynamic or array.dtype == kind.dtype or array.dtype.kind in "SUT":
        return array
    if kind is ElementType.BF16 and array.dtype == np.dtype("V2"):
        array = array.view(kind.dtype)  # as NumPy writes what it has no name for
    try:
        return array_of(array, kind, where)
    except UsageError as error:
        hint = f"the input is {kind}; write the file with values of that type"
        raise UsageError(error.message, hint=hint) from None


def samples_in(folder: str) -> list[str]:
    """The arrays and images that lie in a folder, in no order."""
    return [
        str(path)
        for path in Path(folder).iterdir()
        if path.suffix.lower() in _ARRAYS | _IMAGES and path.is_file()
    ]


def files_of(word: str) -> list[str] | None:
    """The files that a folder or a pattern means, 10 after 9; None for any other word."""
    if os.path.isfile(word):
        return None
    if os.path.isdir(word):
        found = samples_in(word)
        what = "is a folder without arrays (.npy, .npz) and images"
    elif re.search(r"[*?\[]", word):
        found = [path for path in files_like(word) if os.path.isfile(path)]
        what = "is a pattern that no file fits"
    else:
        return None
    if not found:
        raise UsageError(f"{word} {what}")
    return sorted(found, key=by_number)


def load_image(path: str, name: str, shape: Sequence[Size] | None, kind: np.dtype) -> Array:
    """An image as an input takes it: RGB or grey by its channels, 0 to 255, in its size."""
    said = f"{path} is an image, which needs the package Pillow"
    image_file = optional("PIL.Image", said, 'pip install "vinoir[images]"')
    sizes = [None] * 4 if shape is None else [x if isinstance(x, int) else None for x in shape]
    if len(sizes) not in (3, 4):
        listed = ",".join(map(str, shape or ()))
        raise UsageError(
            f'input "{name}" has the shape [{listed}], which is none of an image',
            hint="give an array: FILE.npy",
        )
    last = sizes[-1] in (1, 3) and sizes[-3] not in (1, 3)
    channels, height, width = (sizes[-1], *sizes[-3:-1]) if last else sizes[-3:]
    if channels not in (None, 1, 3):
        raise UsageError(
            f'input "{name}" has {channels} channels, an image has 1 or 3',
            hint="give an array: FILE.npy",
        )
    try:
        with image_file.open(path) as file:
            image = file.convert("L" if channels == 1 else "RGB")
    except (ValueError, SyntaxError, image_file.DecompressionBombError) as error:
        raise UnreadableError(f"{path} cannot be read as an image: {error}") from None
    except OSError as error:  # that of Pillow for what is none has no number
        if error.errno is not None:
            raise
        raise UnreadableError(f"{path} cannot be read as an image: {error}") from None
    size = (width or image.width, height or image.height)
    if image.size != size:
        image = image.resize(size, image_file.Resampling.BILINEAR)
    pixels = np.asarray(image).reshape(size[1], size[0], -1)
    if not last:
        pixels = pixels.transpose(2, 0, 1)
    array = np.ascontiguousarray(pixels.astype(kind))
    return array if len(sizes) == 3 else array[None]
