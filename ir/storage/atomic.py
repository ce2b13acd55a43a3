"""Atomic replacement of a pair of files: at every moment the old pair or the new one can be read.

Two files cannot be renamed in one step, and an .xml cannot name its .bin. What helps is that
no reader minds bytes in a .bin that no constant points at. So everything is first written to
files of other names and forced to the disk; then come renames, each of which turns a readable
pair into a readable pair:

    the .xml stays the same                                          .bin
    no old .xml, or the new .bin begins with all of the old one      .bin, .xml
    the old .bin begins with all of the new one                      .xml, .bin
    else, with P beyond the ends of both:
        .bin = old bytes, and from P on the new bytes                old .xml reads the old bytes
        .xml = the new one, its offsets moved by P                   reads the new bytes at P
        .bin = new bytes, and from P on the new bytes once more      reads them still
        .xml = the new one                                           reads them at the start
        .bin = the new one

A reader needs to know nothing of this, OpenVINO's as little as ours. Where the process or the
machine dies, files with ``.vinoir-`` in their names may stay; the next write removes them.
A .bin that only grows, under its own name and in one place, is lengthened where it is: the old
.xml does not look there. A name that is a link is replaced by a file; what it led to stays.
A file that others have mapped is never shortened or changed in what it holds. Writers lock the
folders of both files, so that those of pairs that share one of the two wait for each other.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...schemas import IRError, UnreadableError, UsageError, Where
from .one_file import refuse_special, unwritable
from .weights import Weights, blocks, identity, note_longer, open_regular

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_MARK = ".vinoir-"
#: Where folders cannot be locked, files of other names that are younger may be at work.
_ABANDONED = 3600


class Content(Protocol):
    """The bytes of a .bin, piece by piece."""

    pieces: list[NDArray[np.uint8]]
    size: int


#: The document, with every offset into the .bin moved by some bytes.
Shift: TypeAlias = "Callable[[bytes, int], bytes]"


def replace_pair(
    xml_path: Path,
    bin_path: Path,
    xml: bytes,
    content: Content,
    weights: Weights | None,
    shifted: Shift,
    *,
    only_grows: bool = False,
) -> None:
    """Put a document and its weights in the place of what is there.

    Where the .bin ``only_grows``, one that does not begin with all that is there is refused.
    """
    with _replacing(xml_path, bin_path) as files:
        _replace(files, xml_path, bin_path, xml, content, weights, shifted, only_grows)


def replace_document(xml_path: Path, xml: bytes, stranger: Path | None = None) -> None:
    """Put a document that has no .bin in the place of what is there.

    A ``stranger`` is a .bin that would be taken for the document's; where it is there, the
    document is refused.
    """
    with _replacing(xml_path) as files:
        if stranger is not None and os.path.lexists(stranger):
            raise IRError(
                f"cannot be written beside {stranger.name}: the model was read without its .bin, "
                "and its constants would get other bytes",
                Where(str(xml_path)),
                "read the model with its .bin (weights=, --weights), or write to another name",
            )
        if not xml_path.exists() or xml_path.read_bytes() != xml:
            files.rename([(files.write([xml], xml_path), xml_path)])


@contextmanager
def _replacing(*paths: Path) -> Iterator[Files]:
    """Lock the folders of some files, and give errors of the system the file's name."""
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            refuse_special(path)
        with locked(*(path.parent for path in paths)) as alone, Files() as files:
            files.sweep(*paths, age=0 if alone else _ABANDONED)
            yield files
    except OSError as error:
        # The files that are written first have names of their own, which mean nothing to anybody.
        meant = [path for path in paths if str(path) == str(error.filename)]
        with unwritable((meant or paths)[0]):
            raise


def _replace(
    files: Files,
    xml_path: Path,
    bin_path: Path,
    xml: bytes,
    content: Content,
    weights: Weights | None,
    shifted: Shift,
    only_grows: bool,
) -> None:
    """Write all files under other names, then rename them in the order that is safe."""
    new = content.pieces
    old_size, common = _compare(bin_path, content, weights)
    fresh = old_size is None
    if only_grows and old_size is not None and common < old_size:
        raise UsageError(
            f"would not stay what it is for other models: of its {old_size} bytes the first "
            f"{common} would be kept",
            Where(str(bin_path)),
            f"it is not named after {xml_path.name}, so that others may use it, too: write to "
            "another place (-o), or give --force if none does",
        )
    old_xml = xml_path.read_bytes() if xml_path.exists() else None
    xml_steps = [] if old_xml == xml else [(files.write([xml], xml_path), xml_path)]
    if not fresh and old_size == common == content.size:
        files.rename(xml_steps)
    elif old_xml is None or fresh or old_size == common:
        if not fresh and common and _may_grow(bin_path):
            _grow(bin_path, content, common)
        else:
            xml_steps.insert(0, (files.write(new, bin_path), bin_path))
        files.rename(xml_steps)
    elif common == content.size or old_xml == xml:
        files.rename([*xml_steps, (files.write(new, bin_path), bin_path)])
    else:
        beyond = -(-max(old_size or 0, content.size) // 4096) * 4096
        old = Weights.map(bin_path).data
        moved = shifted(xml, beyond)
        files.rename(
            [
                (files.write([old], bin_path, new, beyond), bin_path),
                (files.write([moved], xml_path), xml_path),
                (files.write(new, bin_path, new, beyond), bin_path),
                (files.write([xml], xml_path), xml_path),
                (files.write(new, bin_path), bin_path),
            ]
        )


def _compare(path: Path, content: Content, weights: Weights | None) -> tuple[int | None, int]:
    """Size of the .bin that is there (None: none), and how many first bytes are the new ones."""
    try:
        descriptor = open_regular(path)
    except UnreadableError:
        if path.is_symlink() or not path.exists():
            return None, 0
        raise
    try:
        status = os.fstat(descriptor)
        size, common = status.st_size, 0
        for piece in content.pieces:
            if (
                common == 0
                and weights is not None
                and piece is content.pieces[0]
                and weights.identity == identity(status)
                and weights.begins_with(piece)
            ):
                common = len(piece)  # of the file that is mapped: nothing to compare
                os.lseek(descriptor, common, os.SEEK_SET)
                continue
            for part in blocks(piece):
                there = os.read(descriptor, len(part)) if common < size else b""
                if there != part.tobytes():
                    return size, common + _agreeing(there, part)
                common += len(part)
                os.lseek(descriptor, common, os.SEEK_SET)
        return size, common
    finally:
        os.close(descriptor)


def _agreeing(there: bytes, part: NDArray[np.uint8]) -> int:
    """Number of first bytes that are the same."""
    one, two = np.frombuffer(there, np.uint8), part[: len(there)]
    different = np.flatnonzero(one[: len(two)] != two)
    return int(different[0]) if len(different) else min(len(one), len(two))


def _may_grow(path: Path) -> bool:
    """Whether the file is here under this name alone."""
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and os.access(path, os.W_OK)


def _grow(path: Path, content: Content, start: int) -> None:
    """Write what follows the first bytes; taken back where it fails."""
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    before = os.fstat(descriptor)
    try:
        try:
            os.lseek(descriptor, start, os.SEEK_SET)
            position = 0
            for piece in content.pieces:
                skipped = min(max(start - position, 0), len(piece))
                _put(descriptor, piece[skipped:])
                position += len(piece)
            os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, start)
            raise
    finally:
        note_longer(before, os.fstat(descriptor))
        os.close(descriptor)


def _put(descriptor: int, piece: NDArray[np.uint8]) -> None:
    """Write all of some bytes."""
    for part in blocks(piece):
        view = memoryview(part)  # type: ignore[arg-type]  # NumPy does not say so, but it is one
        while len(view):
            view = view[os.write(descriptor, view) :]


class Files:
    """Temporary files beside their targets; those left at the end are removed."""

    def __init__(self) -> None:
        self.left: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in self.left:
            with suppress(OSError):
                os.unlink(path)

    def sweep(self, *targets: Path, age: float) -> None:
        """Remove temporary files of these targets that are at least ``age`` seconds old."""
        for target in targets:
            for path in target.parent.glob(f"{_start(target)}*"):
                with suppress(OSError):
                    if time.time() - os.lstat(path).st_mtime >= age:
                        os.unlink(path)

    def write(
        self,
        pieces: Sequence[bytes | NDArray[np.uint8]],
        target: Path,
        further: Sequence[NDArray[np.uint8]] = (),
        start: int = 0,
    ) -> Path:
        """Write a file beside its target; ``further`` pieces begin at ``start``."""
        path = target.with_name(f"{_start(target)}{secrets.token_hex(6)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self.left.append(path)
        descriptor = os.open(path, flags, 0o666)
        try:
            with suppress(FileNotFoundError):
                os.chmod(path, stat.S_IMODE(os.stat(target).st_mode))
            for piece in pieces:
                _put(descriptor, np.frombuffer(piece, np.uint8))
            if further:
                os.lseek(descriptor, start, os.SEEK_SET)
                for piece in further:
                    _put(descriptor, piece)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return path

    def rename(self, steps: Sequence[tuple[Path, Path]]) -> None:
        """Rename files to their targets in order, each synced to disk before the next."""
        for path, target in steps:
            os.replace(path, target)
            self.left.remove(path)
            _sync(target.parent)


def _start(target: Path) -> str:
    """The prefix of a file's temporary names; of fixed length, as names have a longest one."""
    name = os.fsencode(target.name)
    return f"{_MARK}{hashlib.blake2b(name, digest_size=8).hexdigest()}-"


def _sync(folder: Path) -> None:
    """Sync a folder's entries to disk, where the system can."""
    with suppress(OSError), _folder(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def _folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def locked(*folders: Path, patience: float = 30) -> Iterator[bool]:
    """Lock folders against other writers, once those are done; False where it cannot be."""
    if fcntl is None:
        yield False
        return
    end = time.monotonic() + patience
    with ExitStack() as stack:
        # Each folder once, however it is spelt, and everybody in the same order.
        opened: dict[tuple[int, int], tuple[int, Path]] = {}
        alone = []
        for folder in folders:
            try:
                descriptor = stack.enter_context(_folder(folder))
            except PermissionError:  # a folder to write into, not to look into
                alone.append(False)
                continue
            status = os.fstat(descriptor)
            opened.setdefault((status.st_dev, status.st_ino), (descriptor, folder))
        alone += [_lock(*opened[key], end=end) for key in sorted(opened)]
        try:
            yield all(alone)
        finally:
            for descriptor, _ in opened.values():
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _lock(descriptor: int, folder: Path, *, end: float) -> bool:
    """Wait for the lock of an open folder; False where its file system has none."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                raise IRError("another writer is at work here", Where(str(folder))) from None
            time.sleep(0.05)
        except OSError:
            return False
