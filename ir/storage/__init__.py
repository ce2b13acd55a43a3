"""Bytes on disk, mapped read-only, or behind a URL; a pair of files replaced at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .atomic import replace_document as replace_document
    from .atomic import replace_pair as replace_pair
    from .one_file import refuse_special as refuse_special
    from .one_file import unwritable as unwritable
    from .one_file import whole as whole
    from .opening import fetch_pair as fetch_pair
    from .opening import open_weights as open_weights
    from .places import beside as beside
    from .places import is_url as is_url
    from .remote import fetch as fetch
    from .remote import list_urls as list_urls
    from .remote import url_mark as url_mark
    from .remote import urls_in as urls_in
    from .weights import LFS_HINT as LFS_HINT
    from .weights import LFS_POINTER as LFS_POINTER
    from .weights import WHOLE as WHOLE
    from .weights import Path as Path
    from .weights import Weights as Weights
    from .weights import blocks as blocks
    from .weights import digest_of as digest_of
    from .weights import identity as identity
    from .weights import let_go as let_go
    from .weights import map_of as map_of
    from .weights import open_regular as open_regular
    from .weights import parts as parts
    from .weights import same_bytes as same_bytes
    from .weights import sample_of as sample_of

face(
    __name__,
    {
        "atomic": "replace_document replace_pair",
        "opening": "fetch_pair open_weights",
        "places": "beside is_url",
        "remote": "fetch list_urls url_mark urls_in",
        "weights": (
            "LFS_HINT LFS_POINTER WHOLE Path Weights blocks digest_of identity let_go map_of "
            "open_regular parts same_bytes sample_of"
        ),
        "one_file": "refuse_special unwritable whole",
    },
)
