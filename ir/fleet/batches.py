"""A model over many inputs: files of arrays in, one file of outputs out, in the order given."""

from __future__ import annotations

import base64
import io
import json
import os
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import IO, Any, Protocol, Self

import numpy as np

from ...schemas import Array, IRError, UnreadableError, UsageError, Where
from ...schemas.printing import json_value
from ..engine import core_count
from ..optional import optional
from ..storage import refuse_special, unwritable
from .archiving import array_of_names, read_arrays, savable, saved_names
from .outcomes import Outcome
from .predictor import Predictor
from .samples import files_of, is_image
from .supervision import packed_setup
from .sweeping import outcomes

#: What results are written as, by the ending of the name.
ENDINGS = (".npz", ".zarr", ".jsonl")


class Batch:
    """A predictor done to files: the arrays of one call are read from them."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    def __call__(self, files: Mapping[str, str]) -> dict[str, Any]:
        """The outputs for the files of one call."""
        arrays = {
            name: self.predictor.image(path, name)
            if is_image(path)
            else self.predictor.fitted(load(path, name), path, name)
            for name, path in files.items()
        }
        found = self.predictor(arrays)
        return {name: packed(array) for name, array in found.items()}


def load(path: str, name: str) -> Array:
    """An array from a .npy, or from a .npz the one of a name."""
    try:
        content = read_arrays(path, f"{path} is no image, and", name)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}", Where(path)) from None
    array = array_of_names(content, [name])
    if array is None:
        raise UsageError(
            f'it has no array "{name}", but {", ".join(content) or "none"}', Where(path)
        )
    return array


def packed(array: Array) -> str:
    """An array as text."""
    file = io.BytesIO()
    np.save(file, np.asarray(savable(array)), allow_pickle=False)
    return base64.b64encode(file.getbuffer()).decode("ascii")


def unpacked(text: str) -> Array:
    """The array of a text."""
    array: Array = np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
    return array


def match(inputs: Mapping[str, str]) -> list[dict[str, str]]:
    """The files of each call, of patterns by input; a single file goes with every call."""
    found: dict[str, list[str]] = {}
    for name, pattern in inputs.items():
        files = files_of(pattern)
        if files is None and (os.path.isdir(pattern) or not os.path.exists(pattern)):
            raise UsageError(f'no file is like {pattern} (input "{name}")')
        found[name] = [pattern] if files is None else files
    count = max(map(len, found.values()), default=0)
    for name, files in found.items():
        if len(files) not in (1, count):
            raise UsageError(f'input "{name}" has {len(files)} files, another {count}')
    return [
        {name: files[number if len(files) > 1 else 0] for name, files in found.items()}
        for number in range(count)
    ]


def run_over(
    predictor: Predictor,
    inputs: Mapping[str, str],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    max_seconds: float | None = None,
    max_memory: int | None = None,
) -> Iterator[Outcome]:
    """Run a model over many inputs, and write what it gives in their order.

    A call that fails ends it, and nothing is written: the rows of the others would be taken for
    its own. Only a .jsonl has a line for each call, also for those that failed.

    Args:
        predictor: The model.
        inputs: Folders or patterns of .npy, .npz or image files, by input.
        out: A .npz or .zarr: the outputs joined along their first axis; a .jsonl: a line a call.
        jobs: How many processes; None for as many as there are cores.
        dask: The address of a Dask scheduler, or ``local``.
        force: Write over what is there.
        max_seconds: For each call.
        max_memory: For each call, on Linux.
    """
    calls = match(inputs)
    if not calls:
        raise UsageError(
            "no files of inputs are given, over which to run",
            hint="--input NAME='data/*.npy', or run without --out",
        )
    setup = packed_setup(Batch(predictor), max_memory)
    with ExitStack() as stack:
        with unwritable(out):
            writer = stack.enter_context(writer_of(os.fspath(out), force))
        results = outcomes(setup, calls, jobs or core_count(), dask, max_seconds)
        stack.enter_context(closing(results))
        early: dict[int, Outcome] = {}
        following = 0
        for number, outcome in results:
            early[number] = outcome
            while following in early:
                done = early.pop(following)
                with unwritable(out):
                    writer.add(calls[following], done)
                following += 1
                yield done
        with unwritable(out):
            writer.finish()


class Writer(Protocol):
    """What outputs are handed to in order; left without ``finish`` it leaves nothing behind."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def add(self, files: Mapping[str, str], outcome: Outcome) -> None:
        """Take the outputs of one call."""

    def finish(self) -> None:
        """Put all in its place."""


def writer_of(out: str, force: bool) -> Writer:
    """What writes a file of a kind."""
    ending = os.path.splitext(out)[1].lower()
    if ending not in ENDINGS:
        raise UsageError(f"{out} ends with none of {', '.join(ENDINGS)}")
    if os.path.lexists(out) and not force:
        raise UsageError(f"{out} is already there", hint="--force overwrites it")
    if not (ending == ".zarr" and os.path.isdir(out)):
        refuse_special(out)
    folder = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise UsageError(f"{out} cannot be written: there is no folder {folder}")
    if ending == ".jsonl":
        return Lines(out)
    return Zarr(out) if ending == ".zarr" else Npz(out)


class Lines:
    """A line of JSON for each call: its files, and its outputs as lists."""

    def __init__(self, out: str) -> None:
        self.out = out
        self._part = Path(out).with_name(f".vinoir-{secrets.token_hex(6)}")
        self._file: IO[str] = self._part.open("x", encoding="ascii")  # closed below

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # of what is not written yet, on a full disk
            self._file.close()
        self._part.unlink(missing_ok=True)

    def add(self, files: Mapping[str, str], outcome: Outcome) -> None:
        """Write a line."""
        outputs = {name: unpacked(text).tolist() for name, text in (outcome.result or {}).items()}
        facts = outcome.to_json() | {"result": outputs if outcome.state == "done" else None}
        line = json_value({"inputs": files, **facts})
        self._file.write(json.dumps(line, allow_nan=False) + "\n")

    def finish(self) -> None:
        """Give it its name."""
        self._file.close()
        os.replace(self._part, self.out)


class Joined:
    """Outputs joined along their first axis, kept in files beside until all are there."""

    def __init__(self, out: str) -> None:
        self.out = out
        self._folder = tempfile.TemporaryDirectory(
            prefix=".vinoir-", dir=os.path.dirname(os.path.abspath(out))
        )
        self.heads: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        self.rows: dict[str, int] = {}
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
        self._folder.cleanup()

    def add(self, files: Mapping[str, str], outcome: Outcome) -> None:
        """Take the rows of one call."""
        if outcome.state != "done":
            raise IRError(
                f"{outcome.state}: {outcome.error}", Where(next(iter(files.values()), None)),
                "nothing is written; a .jsonl has a line for each call, also for one that fails",
            )  # fmt: skip
        for name, text in outcome.result.items():
            array = np.atleast_1d(unpacked(text))
            head = array.dtype, array.shape[1:]
            if name not in self._files:
                self.heads[name], self.rows[name] = head, 0
                path = os.path.join(self._folder.name, str(len(self._files)))
                self._files[name] = open(path, "w+b")  # noqa: SIM115  # closed above
            if self.heads[name] != head:
                raise IRError(
                    f'output "{name}" has rows of {head[0]}{list(head[1])}, those before '
                    f"{self.heads[name][0]}{list(self.heads[name][1])}: they cannot be joined",
                    Where(next(iter(files.values()), None)),
                    "write a .jsonl",
                )
            self.rows[name] += len(array)
            self._files[name].write(np.ascontiguousarray(array).tobytes())

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an output, joined."""
        return self.rows[name], *self.heads[name][1]

    def content(self, name: str) -> IO[bytes]:
        """The bytes of an output, from the beginning."""
        self._files[name].seek(0)
        return self._files[name]


class Npz(Joined):
    """A .npz with an array for each output."""

    def finish(self) -> None:
        """Write it whole, and give it its name."""
        part = os.path.join(self._folder.name, "npz")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for member, name in saved_names(self.heads).items():
                head = {
                    "descr": np.lib.format.dtype_to_descr(self.heads[name][0]),
                    "fortran_order": False,
                    "shape": self.shape(name),
                }
                with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array_header_2_0(file, head)
                    shutil.copyfileobj(self.content(name), file, 1 << 20)
        os.replace(part, self.out)


class Zarr(Joined):
    """A group of Zarr with an array for each output."""

    def __init__(self, out: str) -> None:
        # Better missed now than in the end.
        said = "a .zarr is written with the package zarr"
        self._zarr = optional("zarr", said, "pip install zarr, or write .npz")
        super().__init__(out)

    def finish(self) -> None:
        """Write it whole, and give it its name."""
        part = os.path.join(self._folder.name, "zarr")
        group: Any = self._zarr.open_group(part, mode="w")
        for member, name in saved_names(self.heads).items():
            kind, inner = self.heads[name]
            whole = np.memmap(self.content(name), kind, "r", shape=self.shape(name))
            rows = max(1, (8 << 20) // max(kind.itemsize * int(np.prod(inner)), 1))
            array = group.create_array(
                member, shape=whole.shape, dtype=kind, chunks=(rows, *inner)
            )
            for begin in range(0, len(whole), rows):
                array[begin : begin + rows] = whole[begin : begin + rows]
        if os.path.isdir(self.out):
            shutil.rmtree(self.out)
        os.replace(part, self.out)
