"""A model to a file pair, or to bytes.

A model that was read and not changed is written as the bytes that were read. One that was
changed is the document that was read with the changes patched into it, and its .bin the one
that was read with new bytes at its end. A model made in memory is written as OpenVINO would.
"""

from __future__ import annotations

from pathlib import Path

from ...schemas import UsageError
from ..document.graph import Model
from ..storage.atomic import replace_pair
from ..storage.weights import Path as PathLike
from .layout import Layout, kept, moved_images, packed
from .patch import Patch
from .printer import Printer, numbered
from .unchanged import is_unchanged


def dumps(model: Model, *, repack: bool = False) -> tuple[bytes, bytes]:
    """The bytes of the .xml and of the .bin (see ``write``)."""
    xml, layout = compose(model, repack)
    return xml, layout.bytes


def write(
    model: Model,
    path: PathLike,
    weights_path: PathLike | None = None,
    *,
    repack: bool = False,
) -> None:
    """Write a model so that at every moment the old pair or the new pair can be read.

    Args:
        model: What to write.
        path: The .xml; its folder is made where it is missing.
        weights_path: The .bin, where it is not to stand beside the .xml under the same name.
        repack: Lay the constants out anew, each once and in order, dropping unused bytes.
    """
    xml, layout = compose(model, repack)
    target = Path(path)
    beside = Path(weights_path) if weights_path is not None else target.with_suffix(".bin")
    if beside == target:
        raise UsageError(f"{target} would be both the document and its weights")
    replace_pair(target, beside, xml, layout, model.weights)


def compose(model: Model, repack: bool = False) -> tuple[bytes, Layout]:
    """The document, and the pieces of its .bin."""
    if model.source is None:
        layout = packed(model)
        printer = Printer(layout.places, numbered(model))
        printer.model(model)
        return printer.text.encode(), layout
    if not repack and is_unchanged(model):
        layout = Layout()
        if model.weights is not None and model.weights.size:
            layout.append(model.weights.data)
        return model.source, layout
    layout = packed(model) if repack else kept(model)
    images = moved_images(model, layout) if repack else model.pre_process
    patch = Patch(model, layout.places, images)
    return patch.text() if patch.changed else model.source, layout
