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
    before, link, after = parted(name)
    address, sign, query = link.partition("?" if link.startswith(("http:", "https:")) else "\0")
    return before + os.path.splitext(address)[0] + suffix + sign + query + after


def parted(url: str) -> tuple[str, str, str]:
    """The part of a URL that names the file, and what stands before and after it.

    In ``simplecache::zip://model.xml::s3://bucket/zoo.zip`` it is the second: a cache has no path.
    """
    links = url.split("::")
    rank = next((rank for rank, link in enumerate(links) if "://" in link), len(links) - 1)
    before, after = links[:rank], links[rank + 1 :]
    return "".join(f"{link}::" for link in before), links[rank], "".join(f"::{x}" for x in after)
