"""Where files are: paths of this machine, and URLs."""

from __future__ import annotations

import os
import re

from .weights import Path

#: ``s3://...``, and chains such as ``zip://model.xml::https://...``; no drive of Windows.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(://|::)")


def is_url(path: object) -> bool:
    """Whether a path is a URL, which fsspec opens."""
    return isinstance(path, str) and _URL.match(path) is not None


def beside(path: Path, suffix: str = ".bin") -> str:
    """The file of the same name with another suffix."""
    name = os.fspath(path)
    if not is_url(name):
        return os.path.splitext(name)[0] + suffix
    first, chain, rest = name.partition("::")
    address, sign, query = first.partition("?" if first.startswith(("http:", "https:")) else "\0")
    return os.path.splitext(address)[0] + suffix + sign + query + chain + rest
