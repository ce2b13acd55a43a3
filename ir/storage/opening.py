"""Files opened by path or URL; what URLs need is imported when there is one."""

from __future__ import annotations

import os

from ...schemas import UnreadableError
from .places import is_url
from .weights import Path, Weights


def open_weights(path: Path) -> Weights:
    """The bytes of a .bin: mapped, or, behind a URL, fetched as they are asked for."""
    if not is_url(path):
        return Weights.map(path)
    from .remote import RemoteFile, RemoteWeights  # files of this machine do without

    return RemoteWeights(RemoteFile(os.fspath(path)))


def fetch_pair(
    xml: str, weights: Path | None, needed: bool, most: int
) -> tuple[bytes, Weights | None]:
    """The document of a URL, and its .bin, of which nothing but the beginning is fetched."""
    from .remote import fetch

    source = fetch(xml, most)
    if weights is None:
        return source, None
    try:
        return source, open_weights(weights)
    except UnreadableError as error:
        if needed or error.message != "no such file":
            raise
        return source, None
