"""Models as callers give them: every verb that takes a model takes its path, too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from ..schemas import UsageError
from .faces import door

if TYPE_CHECKING:
    from .document import Model

#: A model, or where it is to be read from: its .xml, its .bin, or a folder that holds one.
ModelLike: TypeAlias = "Model | str | os.PathLike[str]"

_read = door("files", "read")


def opened(model: ModelLike) -> Model:
    """The model; read, where a path is given. Refused, if its .bin is not what was read."""
    if isinstance(model, (str, os.PathLike)):
        found: Model = _read(model)
        return found
    if not getattr(model, "is_graph", False):
        raise UsageError(f"a model or the path of one is wanted, not {type(model).__name__}")
    held = getattr(model, "weights", None)  # a body has none
    if held is not None:
        held.refuse_changed()
    return model


__all__ = ["ModelLike", "opened"]
