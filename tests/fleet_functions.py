"""What the tests of fleets have done to models, in processes that import it from here."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np


def size(path: str) -> int:
    return os.path.getsize(path)


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("says nothing")


def misbehave(path: str) -> Any:
    """Do what the name of the file says."""
    name = Path(path).stem
    if name.startswith("abort"):
        os.abort()
    if name.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("exit"):
        os._exit(3)
    if name.startswith("once"):
        mark = Path(path).with_suffix(".met")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("spin"):
        while True:
            pass
    if name.startswith("memory"):
        return float(np.ones(1 << 29).sum())
    if name.startswith("raise"):
        raise KeyError(name)
    if name.startswith("leave"):
        sys.exit(3)
    if name.startswith("interrupt"):
        raise KeyboardInterrupt
    if name.startswith("mute"):
        raise MuteError(name)
    if name.startswith("end"):
        raise GeneratorExit
    if name.startswith("fork") and not os.fork():
        sys.exit(3)
    if name.startswith("lock"):
        return threading.Lock()
    if name.startswith("odd"):
        return {1, 2}
    if name.startswith("print"):
        print("in between", flush=True)
        os.write(1, b'{"done": 1}\n')
    return name


def paced(path: str) -> str:
    """Take the tenths of a second that the name of the file ends with."""
    name = Path(path).stem
    time.sleep(int(name.rpartition("_")[2]) / 10)
    return name


def scaled(factor: float, path: str) -> float:
    return factor * len(Path(path).stem)


def nothing(path: str) -> list[float]:
    return [float("nan"), -float("inf")]


def leave_behind(path: str) -> str:
    """Begin a process that outlives this one, where the name of the file says so."""
    name = Path(path).stem
    if name.startswith("left"):
        process = os.fork()
        if not process:
            time.sleep(100)
            os._exit(0)
        Path(path).with_suffix(".pid").write_text(str(process))
        if name == "left_hanging":
            time.sleep(100)
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def slowly(path: str) -> str:
    time.sleep(0.02)
    return Path(path).name


def pid(path: str) -> int:
    return os.getpid()


def surroundings(path: str) -> dict[str, str | None]:
    return {word: os.environ.get(word) for word in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
