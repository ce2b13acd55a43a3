"""Files behind a URL: read by ranges as they are asked for, and never taken for other files.

Every answer is held against what was known of the file from the start: its size and its mark (the
server's ETag, or a time of change). One that is too short, or a connection that breaks, is asked
for again; one of a file that has changed is refused.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...layers.budget import require
from ...schemas import IRError, UnreadableError, UsageError, Where
from ..optional import optional
from .places import parted
from .weights import Weights

#: Ranges are fetched in blocks of so many bytes, of which so many are kept.
BLOCK, KEPT_BLOCKS = 1 << 16, 1024
#: A longer range is fetched as it is, and not kept.
LONG = 4 << 20
#: A file of a server without ranges is fetched whole, up to so many bytes.
WHOLE = 256 << 20
#: A range is asked for so often; the seconds in between double.
ATTEMPTS, PAUSE = 5, 0.1
#: Seconds without a byte after which a connection counts as broken.
SILENCE = 30
#: What of a file's description changes with the file.
_MARKS = (
    "ETag", "etag", "md5Hash", "content_md5", "CRC", "checksum", "generation", "sha", "hex",
    "LastModified", "last_modified", "mtime", "modified", "created",
)  # fmt: skip
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

T = TypeVar("T")


class _BrokenError(Exception):
    """An answer that is not whole: worth asking again."""


class _Answer(NamedTuple):
    """Bytes of a file from an offset, with the size of the whole and what marks it."""

    begin: int
    data: bytes
    size: int
    mark: str


class RemoteFile:
    """A file behind a URL, as it was when it was first asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._path = _opened(url)
        self._whole: bytes | None = None
        first = self._ask_often(0, BLOCK)
        self.size, self.mark = first.size, first.mark
        self._head = first.data
        if len(first.data) == first.size:
            self._whole = first.data

    @property
    def where(self) -> Where:
        """Its place in messages."""
        return Where(self.url)

    def read(self, begin: int, end: int) -> bytes:
        """A range of its bytes, all of them."""
        if begin >= end:
            return b""
        if end <= len(self._head):
            return self._head[begin:end]
        if self._whole is None:
            answer = self._ask_often(begin, end)
            if answer.begin != 0 or len(answer.data) != self.size:
                return answer.data
            self._whole = answer.data
        return self._whole[begin:end]

    def _ask_often(self, begin: int, end: int) -> _Answer:
        """Ask for a range until the answer is whole; it must be of the file that is known."""
        reason: Exception = _BrokenError("no answer")
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                answer = self._ask(begin, end)
                self._compare(answer)
                wanted = min(end, answer.size) - begin
                if answer.begin == begin and len(answer.data) == wanted:
                    return answer
                if answer.begin == 0 and len(answer.data) == answer.size:
                    return answer
                reason = _BrokenError(
                    f"{wanted} bytes from {begin} were asked for, {len(answer.data)} came"
                )
            except FileNotFoundError:
                raise UnreadableError("no such file", self.where) from None
            except PermissionError as error:
                raise UnreadableError(
                    f"may not be read: {error}", self.where, "look at the credentials"
                ) from None
            except IRError:
                raise
            except Exception as error:  # of as many kinds as there are kinds of file systems
                reason = error
                if "credential" in type(error).__name__.lower():
                    raise UnreadableError(
                        f"may not be read: {error}", self.where, "look at the credentials"
                    ) from None
        name = "" if isinstance(reason, _BrokenError) else f"{type(reason).__name__}: "
        raise UnreadableError(
            f"cannot be fetched, {ATTEMPTS} times: {name}{reason}", self.where
        ) from None

    def _compare(self, answer: _Answer) -> None:
        """Refuse an answer of another file than the one that is known."""
        if not hasattr(self, "mark"):
            return
        if (answer.size, answer.mark) != (self.size, self.mark):
            raise UnreadableError(
                f"changed while it was read: it had {self.size} bytes and the mark {self.mark}, "
                f"now {answer.size} and {answer.mark}",
                self.where,
                "read the model again when whoever writes it has finished",
            )

    def _ask(self, begin: int, end: int) -> _Answer:
        if "http" in np.atleast_1d(self._files.protocol):
            return _ask_http(self._files, self._path, begin, end)
        return _ask_others(self._files, self._path, begin, end)


def _ask_http(files: Any, url: str, begin: int, end: int) -> _Answer:
    """A range from a server of HTTP, with what its headers say of it."""
    import aiohttp
    from fsspec.asyn import sync

    async def ask() -> _Answer:
        session = await files.set_session()
        options = {"timeout": aiohttp.ClientTimeout(total=None, sock_read=SILENCE), **files.kwargs}
        options["headers"] = {
            **options.get("headers", {}),
            "Range": f"bytes={begin}-{end - 1}",
            "Accept-Encoding": "identity",
        }
        async with session.get(files.encode_url(url), **options) as response:
            return await _taken(response, begin, end)

    answer: _Answer = sync(files.loop, ask)
    return answer


async def _taken(response: Any, begin: int, end: int) -> _Answer:
    """The answer of a server, as far as it is what was asked for."""
    headers: Mapping[str, str] = response.headers
    mark = headers.get("ETag") or headers.get("Last-Modified") or ""
    if response.status in (404, 410):
        raise FileNotFoundError
    if response.status in (401, 403):
        raise PermissionError(f"the server says {response.status}")
    if response.status == 416:
        told = headers.get("Content-Range", "").rpartition("/")[2]
        return _Answer(begin, b"", int(told) if told.isdigit() else 0, mark)
    if response.status == 206:
        found = _RANGE.fullmatch(headers.get("Content-Range", "").strip())
        if found is None:
            raise _BrokenError("the server does not say which range it sends")
        start, size = int(found[1]), int(found[3])
        return _Answer(start, await _body(response, end - begin), size, mark)
    if response.status != 200:
        raise _BrokenError(f"the server says {response.status}")
    # Without ranges: all of it, or nothing.
    length = headers.get("Content-Length")
    if length is None or int(length) > WHOLE:
        raise UnreadableError(
            f"its server sends no ranges, only all of its {length or 'unknown number of'} bytes",
            Where(str(response.url)), "fetch the file, and read it from the disk",
        )  # fmt: skip
    return _Answer(0, await _body(response, int(length)), int(length), mark)


async def _body(response: Any, most: int) -> bytes:
    """The body, of which no more is taken than was asked for."""
    parts, held = list[bytes](), 0
    async for part in response.content.iter_any():
        parts.append(part)
        held += len(part)
        if held > most:
            raise _BrokenError(f"{most} bytes were asked for, more came")
    return b"".join(parts)


def _ask_others(files: Any, path: str, begin: int, end: int) -> _Answer:
    """A range from any other file system, whose description must be the same before and after."""
    before = files.info(path)
    if before.get("type") == "directory":
        raise UnreadableError("a folder, no file", Where(path), "name one of the files in it")
    size = before.get("size")
    if size is None:
        raise UnreadableError("its file system does not tell its size", Where(path))
    data = files.cat_file(path, start=begin, end=min(end, size)) if begin < size else b""
    files.invalidate_cache()
    after = files.info(path)
    if (_mark(before), size) != (_mark(after), after.get("size")):
        raise _BrokenError("it was replaced while it was read")
    return _Answer(begin, bytes(data), int(size), _mark(after))


def _mark(info: Mapping[str, Any]) -> str:
    return " ".join(str(info[key]) for key in _MARKS if info.get(key) is not None)


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    core = optional(
        "fsspec.core",
        "a URL is read with the package fsspec",
        'pip install "vinoir[fleet]"',
        Where(url),
    )
    try:
        found: tuple[Any, str] = core.url_to_fs(url)
    except ImportError as error:
        raise UsageError(
            f"no file system for this URL: {error}", Where(url), "install the package it names"
        ) from None
    except FileNotFoundError:
        raise UnreadableError("no such file", Where(url)) from None
    except (ValueError, OSError, RuntimeError) as error:
        raise UnreadableError(f"cannot be opened: {error}", Where(url)) from None
    return found


def list_urls(pattern: str) -> list[str]:
    """The URLs of the files that a pattern describes."""
    files, path = _opened(pattern)
    return _listed(pattern, files, lambda: [
        name for name, row in files.glob(path, detail=True).items() if row["type"] != "directory"
    ])  # fmt: skip


def urls_in(url: str, suffix: str) -> list[str] | None:
    """The URLs of the files of a kind in a folder, at any depth; None if it is no folder.

    What has the suffix is a file, of which nothing is asked; so is what a web server has, unless
    its address ends as those of folders do.
    """
    _, link, _ = parted(url)
    is_web = link.startswith(("http:", "https:"))
    address = link.partition("?")[0] if is_web else link
    if address.lower().endswith(suffix) or (is_web and not address.endswith("/")):
        return None
    try:
        files, path = _opened(url)
        is_folder = files.isdir(path)
    except Exception:  # of as many kinds as there are kinds of file systems
        return None  # whoever reads it is told why it cannot be
    if not is_folder:
        return None
    found = _listed(url, files, lambda: files.find(path))
    return [name for name in found if parted(name)[1].lower().endswith(suffix)]


def _listed(url: str, files: Any, names: Callable[[], Iterable[str]]) -> list[str]:
    """The URLs of names in a file system, with the links of the chain that led there."""
    before, _, after = parted(url)
    try:
        return [before + str(files.unstrip_protocol(name)) + after for name in names()]
    except Exception as error:  # of as many kinds as there are kinds of file systems
        said = f"cannot be listed: {type(error).__name__}: {error}"
        raise UnreadableError(said, Where(url)) from None


def url_mark(url: str) -> list[Any] | None:
    """Size and mark of a file behind a URL; None where there is none."""
    try:
        file = RemoteFile(url)
    except UnreadableError:
        return None
    return [file.size, file.mark]


class RemoteWeights(Weights):
    """The bytes of a .bin behind a URL, of which only what is asked for is fetched."""

    __slots__ = ("_blocks", "_file", "_held")

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._held: NDArray[np.uint8] | None = None
        self.path = file.url
        self.identity = self._seen = None
        self._digest = None
        self._map = None

    @property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """All bytes: fetched at once."""
        if self._held is None:
            require(self.size)
            parts = np.empty(self.size, np.uint8)
            for begin in range(0, self.size, LONG):
                piece = self._file.read(begin, min(begin + LONG, self.size))
                parts[begin : begin + len(piece)] = np.frombuffer(piece, np.uint8)
            parts.flags.writeable = False
            self._held = parts
        return self._held

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._file.size

    @property
    def looked_at(self) -> int:
        """Bytes that may be fetched to be looked at: a 400th of all, and a few blocks."""
        return self.size // 400 + 8 * BLOCK

    def release(self) -> None:
        """Forget what was fetched; what is looked at again is fetched again."""
        self._blocks.clear()
        self._held = None

    def begins_with(self, piece: NDArray[np.uint8]) -> bool:
        """Whether bytes are the first of these, in the same memory."""
        return self._held is not None and super().begins_with(piece)

    def view(self, offset: int, size: int) -> NDArray[np.uint8]:
        """A range of the bytes, fetched where it is not there yet."""
        self.check(offset, size)
        if self._held is not None:
            return self._held[offset : offset + size]
        if size > LONG:
            require(size)
            data = b"".join(
                self._file.read(begin, min(begin + LONG, offset + size))
                for begin in range(offset, offset + size, LONG)
            )
        else:
            data = self._collect(offset, offset + size)
        return np.frombuffer(data, np.uint8)

    def _collect(self, begin: int, end: int) -> bytes:
        """A range out of blocks; those that are missing side by side are fetched together."""
        if begin == end:
            return b""
        numbers = range(begin // BLOCK, -(-end // BLOCK))
        missing = [number for number in numbers if number not in self._blocks]
        found = {number: self._blocks[number] for number in numbers if number in self._blocks}
        for number in found:
            self._blocks.move_to_end(number)
        if missing:
            first, last = missing[0], missing[-1]
            piece = self._file.read(first * BLOCK, min((last + 1) * BLOCK, self.size))
            for number in range(first, last + 1):
                at = (number - first) * BLOCK
                found[number] = self._blocks[number] = piece[at : at + BLOCK]
        while len(self._blocks) > KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        joined = b"".join(found[number] for number in numbers)
        shift = numbers[0] * BLOCK
        return joined[begin - shift : end - shift]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return _fetched_again, (self._file.url, self._file.size, self._file.mark)


def _fetched_again(url: str, size: int, mark: str) -> RemoteWeights:
    """The weights of a pickled model, which refers to their URL."""
    file = RemoteFile(url)
    if (file.size, file.mark) != (size, mark):
        raise UnreadableError(
            f"is not what it was when the model that refers to it was pickled: it had {size} "
            f"bytes and the mark {mark}, now {file.size} and {file.mark}",
            Where(url),
            "pickle the model again",
        )
    return RemoteWeights(file)


def fetch(url: str, most: int) -> bytes:
    """All bytes of a file behind a URL, no more than so many."""
    file = RemoteFile(url)
    if file.size > most:
        raise UnreadableError(f"{file.size} bytes are too many, the most are {most}", file.where)
    return file.read(0, file.size)
