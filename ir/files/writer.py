"""A model to a file pair, or to bytes.

A model that was read and not changed is written as the bytes that were read. One that was
changed is the document that was read with the changes patched into it, and its .bin the one
that was read, as far as constants still use it, with the new values. A model made in memory is
written as OpenVINO would. A model that was read without a .bin is written without one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...schemas import IRError, UsageError
from ..document import Model
from ..opening import ModelLike, opened
from ..storage import Path as PathLike
from ..storage import is_url, replace_document, replace_pair
from ..text import escape_anything
from .layout import Layout, as_read, edited, packed
from .patch import Patch
from .printer import Printer, numbered
from .shift import shifted
from .unchanged import is_unchanged


def dumps(
    model: ModelLike, *, repack: bool = False, keep_unused: bool = False
) -> tuple[bytes, bytes]:
    """The bytes of the .xml and of the .bin (see ``write``)."""
    xml, layout = _complete(opened(model), repack, keep_unused)
    return xml, layout.bytes


def write(
    model: ModelLike,
    path: PathLike,
    weights_path: PathLike | None = None,
    *,
    repack: bool = False,
    keep_unused: bool = False,
    shared: bool = False,
) -> None:
    """Write a model so that at every moment the old pair or the new pair can be read.

    Args:
        model: What to write: a model, or the path of one.
        path: The .xml; its folder is made where it is missing.
        weights_path: The .bin, where it is not to stand beside the .xml under the same name.
        repack: Lay the constants out anew, each once and in order, dropping unused bytes.
        keep_unused: Keep bytes of the .bin that was read when no constant uses them any more:
            new values are appended to it. Where no constant changed it is kept in any case.
        shared: Other models may use the .bin that is there: it only grows. What would change
            any of its bytes is refused.

    Raises:
        UsageError: A ``shared`` .bin would lose or change bytes, or a path is none.
        IRError: It cannot be written, or some constants have new values and the bytes of others
            are missing. A model that was read without its .bin is written as an .xml alone,
            and refused where a .bin stands beside it that would be taken for its own.
    """
    model = opened(model)
    for place in (path,) if weights_path is None else (path, weights_path):
        if not isinstance(place, (str, os.PathLike)):
            raise UsageError(f"a path is wanted, not {type(place).__name__}")
        if is_url(place):
            raise UsageError(
                f"{place} is a URL: models are read from there, and written to files",
                hint="write it here, and send it with the tool of that place",
            )
    xml, layout = _complete(model, repack, keep_unused or (shared and not repack))
    target = Path(path)
    beside = Path(weights_path) if weights_path is not None else target.with_suffix(".bin")
    if _same_file(target, beside):
        raise UsageError(
            f"{beside} would be both the document and its weights",
            hint="the two need different names",
        )
    if layout.absent:
        replace_document(target, xml, None if not layout.missing else beside)
    else:
        replace_pair(target, beside, xml, layout, model.weights, shifted, only_grows=shared)


def ensure_writable(model: Model) -> None:
    """Refuse a model that cannot be written, as writing it would; nothing is written."""
    _complete(model, repack=False, keep_unused=False)


def compose(model: Model, repack: bool = False, keep_unused: bool = False) -> tuple[bytes, Layout]:
    """The document, and the pieces of its .bin."""
    if model.source is None:
        layout = packed(model)
        printer = Printer(layout.places, numbered(model))
        printer.model(model)
        return printer.text.encode(), layout
    if not repack and is_unchanged(model):
        layout = as_read(model)
        if layout.absent:
            layout.missing = edited(model).missing
        return model.source, layout
    layout = packed(model) if repack else edited(model, keep_unused)
    patch = Patch(model, layout.places, layout.pre_process)
    return patch.text() if patch.changed else model.source, layout


def draft(model: Model) -> tuple[bytes, Layout]:
    """A document of any model, also of one that cannot be written: to see what is wrong.

    Layers stand in the order of their graph, which may have a cycle, constants without a value
    are nowhere, and characters that XML does not have are what they are.
    """
    layout = Layout()
    for layer in model.everywhere():
        if layer.is_constant:
            with suppress(IRError):
                layout.places[layer] = layout.share(layer.blob)
    layout.absent = model.weights is None and not layout.places
    printer = Printer(layout.places, spell=escape_anything)
    printer.model(model)
    return printer.text.encode("utf-8", "surrogatepass"), layout


def _complete(model: Model, repack: bool, keep_unused: bool) -> tuple[bytes, Layout]:
    """The document and its .bin; refused where constants would get bytes of others."""
    if repack and keep_unused:
        raise UsageError("repack drops unused bytes, and keep_unused keeps them: choose one")
    xml, layout = compose(model, repack, keep_unused)
    if layout.missing and layout.places:
        error = layout.missing[0]
        raise IRError(
            f"{error.message}; a .bin with the new values of other constants would lack them",
            error.where,
            error.hint or "read the model with its whole .bin, or remove the layer",
        )
    return xml, layout


def _same_file(one: Path, two: Path) -> bool:
    """Whether two paths lead to the same file, or would."""
    try:
        if os.path.samefile(one, two):
            return True
    except OSError:
        pass  # one of them is not there yet
    first, second = (os.path.realpath(path) for path in (one, two))
    return os.path.normcase(first).casefold() == os.path.normcase(second).casefold()
