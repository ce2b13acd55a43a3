"""Other runtimes, asked in a process of their own; a crash there is an answer like others."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...schemas import Array, ElementType, LimitError, UnsupportedError, UsageError
from ...schemas.packing import pack, unpack
from ..document import Model
from ..files import write

#: Seconds after which it is looked whether a process is still there that answers nothing.
_LOOK = 1.0


class RuntimeProcess:
    """A process that answers what a runtime computes; started anew after a crash."""

    #: The program that answers.
    program = Path(__file__).with_name("runtime_worker.py")

    def __init__(self, runtime: str) -> None:
        for name in {runtime, *(["onnx"] if runtime == "onnxruntime" else [])}:
            if find_spec(name) is None:
                raise UsageError(f"{name} is not installed", hint=f"pip install {name}")
        self.runtime = runtime
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._count = 0
        self.version: str = self.ask(f"{runtime}_version")

    def ask(self, question: str, *words: Any, max_seconds: float | None = None) -> Any:
        """An answer of the process.

        Raises:
            UnsupportedError: The runtime refuses what it is given, or crashed on it.
            LimitError: It took more than ``max_seconds``.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((question, words), process.stdin, protocol=5)
            process.stdin.flush()
            if max_seconds is not None and not wait([process.stdout.fileno()], max_seconds):
                self._stop(kill=True)
                raise LimitError(f"{self.runtime} took more than {max_seconds:g} seconds")
            well, answer = pickle.load(io.BufferedReader(_Answers(process)))
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            code = process.wait()
            self._stop(kill=True)
            raise UnsupportedError(f"{self.runtime} crashed (exit {code})") from None
        if not well:
            text = " ".join(str(answer).split())
            raise UnsupportedError(f"{self.runtime} refuses it: {text[-400:]}")
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(self.program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._process

    def path(self) -> Path:
        """A new name for a model that is handed over as files, which are then mapped."""
        self._count += 1
        return Path(self._folder.name) / f"{self._count}.xml"

    def close(self) -> None:
        """End the process, and remove what was handed over."""
        self._stop()
        self._folder.cleanup()

    def _stop(self, *, kill: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            end_with_children(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Answers(io.RawIOBase):
    """What a process answers; at an end when it is, though others may hold its pipe open.

    Runtimes start processes of their own, which outlive a crash.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert isinstance(process.stdout, io.BufferedReader)
        self._process, self._pipe = process, process.stdout.raw

    def readable(self) -> bool:
        """Whether it can be read from: that is what it is for."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a part of the buffer; 0 where nothing will come any more."""
        # Elsewhere than on POSIX nobody inherits a pipe, nor can it be waited for.
        while os.name == "posix" and not wait([self._pipe.fileno()], _LOOK):
            if self._process.poll() is not None and not wait([self._pipe.fileno()], 0):
                return 0
        return self._pipe.readinto(buffer) or 0


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and what it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def run_openvino(
    process: RuntimeProcess,
    model: Model,
    arrays: Sequence[Array],
    max_seconds: float | None = None,
) -> list[Array]:
    """What OpenVINO gives for a model, in the order of its Results."""
    given = []
    for parameter, array in zip(model.parameters, arrays, strict=True):
        kind = parameter.outputs[0].type
        kind = ElementType.of(array.dtype) if kind.is_dynamic else kind
        given.append((str(kind), array.shape, _content(array, kind)))
    path = process.path()
    try:
        write(model, path)
        found = process.ask("openvino_run", str(path), given, max_seconds=max_seconds)
    finally:
        for file in (path, path.with_suffix(".bin")):
            with suppress(OSError):  # elsewhere than on POSIX it may still be mapped
                file.unlink()
    return [_array(*one) for one in found]


def _content(array: Array, kind: ElementType) -> Any:
    """What a process is given for an array: its own bytes, where they are what is sent."""
    if kind is ElementType.STRING:
        return array.tolist()
    array = array.astype(kind.dtype, copy=False)
    if kind.bits < 8 or kind is ElementType.BOOLEAN:
        return bytes(pack(array, kind))
    return pickle.PickleBuffer(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _array(kind: str, shape: tuple[int, ...], content: Any) -> Array:
    parsed = ElementType.parse(kind)
    if parsed is ElementType.STRING:
        return np.array(content, dtype=parsed.dtype).reshape(shape)
    return unpack(content, parsed, shape)
