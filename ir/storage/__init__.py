"""Bytes on disk: weights mapped read-only, a pair of files replaced at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .atomic import replace_document as replace_document
    from .atomic import replace_pair as replace_pair
    from .weights import Path as Path
    from .weights import Weights as Weights
    from .weights import blocks as blocks
    from .weights import digest_of as digest_of
    from .weights import identity as identity
    from .weights import open_regular as open_regular

__getattr__, __dir__ = face(
    __name__,
    {
        "atomic": "replace_document replace_pair",
        "weights": "Path Weights blocks digest_of identity open_regular",
    },
)
