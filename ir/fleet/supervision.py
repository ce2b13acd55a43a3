"""Processes that are supervised one by one: none of them is the end of the others' work.

A task that ends its process is tried once more, alone, since others may have ended it; then that
is its outcome. A process that takes too long over a task is ended.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, Self

from ...schemas import IRError, LimitError, UsageError
from ..engine import core_count
from .outcomes import Function, Outcome, Task

#: Tasks are handed out in chunks of about so many seconds, and no more than so many tasks.
CHUNK_SECONDS, CHUNK_TASKS = 0.25, 64
#: A task that looks at the clock itself has time to say so before its process is ended.
GRACE = 1.0
#: So often a process may fail to begin.
BIRTHS = 3
#: A process that has nothing to do ends by itself within so many seconds.
FAREWELL = 2.0
#: What of the machine a process takes is said in these words.
SHARES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Numbered = tuple[int, Task]


def packed_setup(function: Function, max_memory: int | None) -> str:
    """What a process is told first."""
    return json.dumps(
        {
            "path": sys.path,
            "function": base64.b64encode(pickled(function)).decode("ascii"),
            "max_memory": max_memory,
        }
    )


def pickled(function: Function) -> bytes:
    """A function as other processes are given it."""
    if getattr(function, "__module__", None) == "__main__":
        # Another process has another __main__.
        try:
            import cloudpickle
        except ImportError:
            raise UsageError(
                f"{getattr(function, '__qualname__', function)} is of the script that runs, which "
                "other processes do not import",
                hint="move it to a module of its own, or install cloudpickle",
            ) from None
        return bytes(cloudpickle.dumps(function))
    try:
        return pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"{function!r} cannot be sent to other processes: {error}",
            hint="give a function of a module, or an object of a class of a module",
        ) from None


class Process:
    """One process: what it was given and has not yet answered, and since when."""

    def __init__(self, setup: str, threads: int, events: queue.Queue[Any]) -> None:
        self._setup, self._threads, self._events = setup, threads, events
        self.given: deque[Numbered] = deque()
        self.since = 0.0
        self.is_ready = False
        #: The task over which its time was up, from when it was ended till that is told.
        self.overdue: int | None = None
        self.failures = 0
        self.child = 0
        self.start()

    def start(self) -> None:
        """Begin, or begin anew."""
        share = {word: str(self._threads) for word in SHARES if word not in os.environ}
        group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__.rpartition(".")[0] + ".worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | share | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            **group,
        )
        self.is_ready = False
        assert self.popen.stdout is not None
        self._reader = threading.Thread(
            target=self._listen, args=(self.popen, self.popen.stdout), daemon=True
        )
        self._reader.start()
        self._write(self._setup)

    def _listen(self, popen: subprocess.Popen[bytes], answers: IO[bytes]) -> None:
        with answers:
            for line in answers:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue  # torn: whoever wrote it was ended
                self._events.put((self, popen, message))
        self._events.put((self, popen, {"gone": popen.wait()}))

    def _write(self, line: str) -> None:
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):  # that it is gone is told by its answers
            self.popen.stdin.write(line.encode() + b"\n")
            self.popen.stdin.flush()

    def give(self, tasks: Iterable[Numbered]) -> None:
        """Hand it tasks."""
        self.given.extend(tasks)
        self.since = time.monotonic()
        self._write(json.dumps({"work": [task for _, task in self.given]}))

    def end_task(self) -> None:
        """End what it is at; it tells when that has happened."""
        self.overdue = self.given[0][0]
        if not self.end_child():
            self.popen.kill()

    def end_child(self) -> bool:
        """End its child, if it has one, with all that this has begun."""
        if not self.child or self.child == self.popen.pid:
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, signal.SIGKILL)
        return True

    def dismiss(self) -> None:
        """Give no more orders: what has nothing else to do ends."""
        if self.popen.stdin is not None:
            with suppress(BrokenPipeError):
                self.popen.stdin.close()

    def close(self) -> None:
        """End it, and all that it has begun."""
        self.dismiss()
        ended = None
        with suppress(subprocess.TimeoutExpired):
            ended = self.popen.wait(FAREWELL)
        if ended != 0:  # it could not see to its child
            self.end_child()
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self.popen.pid, signal.SIGKILL)
            else:
                self.popen.kill()
        self.popen.wait()
        self._reader.join(5)


class Crew:
    """A number of processes that do one thing to many tasks."""

    def __init__(
        self,
        setup: str,
        jobs: int = 1,
        *,
        max_seconds: float | None = None,
        threads: int | None = None,
    ) -> None:
        self.max_seconds = max_seconds
        self._events: queue.Queue[Any] = queue.Queue()
        self._deaths: Counter[int] = Counter()
        self._seconds = 0.0
        share = max(1, core_count() // jobs) if threads is None else threads
        self._processes: list[Process] = []
        try:
            for _ in range(jobs):
                self._processes.append(Process(setup, share, self._events))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.dismiss()
        for process in self._processes:
            process.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome]]:
        """Do all tasks; the number of each with what came of it, in the order in which it came."""
        waiting = iter(enumerate(tasks))
        again: deque[Numbered] = deque()
        self._deaths.clear()
        while True:
            for process in self._processes:
                if process.is_ready and not process.given:
                    chunk = self._chunk(again, waiting)
                    if chunk:
                        process.give(chunk)
            if not any(process.given for process in self._processes) and self._all_ready():
                return
            try:
                process, popen, message = self._events.get(timeout=self._patience())
            except queue.Empty:
                self._end_overdue()
                continue
            if popen is not process.popen:
                continue  # said by the one before
            yield from self._heard(process, message, again)

    def _all_ready(self) -> bool:
        # Those that have nothing to do and are not there yet are not waited for.
        return any(process.is_ready for process in self._processes)

    def _chunk(self, again: deque[Numbered], waiting: Iterator[Numbered]) -> list[Numbered]:
        """What to hand out next: a task whose process died before goes alone."""
        if again and self._deaths[again[0][0]]:
            return [again.popleft()]
        size = CHUNK_TASKS if not self._seconds else int(CHUNK_SECONDS / self._seconds)
        chunk: list[Numbered] = []
        for _ in range(min(max(size, 1), CHUNK_TASKS) if self._seconds else 1):
            if again and not self._deaths[again[0][0]]:
                chunk.append(again.popleft())
                continue
            following = next(waiting, None)
            if following is None:
                break
            chunk.append(following)
        return chunk

    def _patience(self) -> float | None:
        """Seconds until a process is to be ended; None where none is."""
        if self.max_seconds is None:
            return None
        times = [p.since for p in self._processes if p.given and p.overdue is None]
        if not times:
            return None
        return max(min(times) + self.max_seconds + GRACE - time.monotonic(), 0.0)

    def _end_overdue(self) -> None:
        if self.max_seconds is None:
            return
        begun = time.monotonic() - self.max_seconds - GRACE
        for process in self._processes:
            if process.given and process.overdue is None and process.since <= begun:
                process.end_task()

    def _heard(
        self, process: Process, message: dict[str, Any], again: deque[Numbered]
    ) -> Iterator[tuple[int, Outcome]]:
        """Take in what a process says."""
        if "ready" in message:
            process.is_ready, process.child, process.failures = True, message["ready"], 0
        elif "refused" in message:
            raise UsageError(f"the processes cannot begin: {message['refused']}")
        elif "done" in message:
            number, _ = process.given.popleft()
            outcome = Outcome(**message["done"])
            process.since = time.monotonic()
            if process.overdue is not None:
                process.is_ready = False  # done in the moment in which it was ended
            self._seconds += 0.1 * (max(outcome.seconds, 1e-6) - self._seconds)
            yield number, outcome
        elif "died" in message or "gone" in message:
            yield from self._mourn(process, message, again)

    def _mourn(
        self, process: Process, message: dict[str, Any], again: deque[Numbered]
    ) -> Iterator[tuple[int, Outcome]]:
        """Find out what a process died of, and hand the rest of its tasks to others."""
        was_ready, process.is_ready = process.is_ready, False
        overdue, process.overdue = process.overdue, None
        if process.given and overdue in (None, process.given[0][0]):
            number, task = process.given.popleft()
            seconds = round(time.monotonic() - process.since, 6)
            if overdue is not None:
                error = f"more than {self.max_seconds:g} seconds are wanted"
                yield number, Outcome(LimitError.exit_code, "overtime", None, error, seconds)
            elif self._deaths[number]:
                yield number, Outcome(70, "crashed", None, _cause(message), seconds)
            else:
                self._deaths[number] += 1
                again.append((number, task))
        again.extendleft(reversed(process.given))
        process.given.clear()
        if "gone" not in message:
            process.child = 0
            return
        process.end_child()  # of which nobody else would take care
        process.child = 0
        process.failures += not was_ready
        if process.failures >= BIRTHS:
            raise IRError(f"a process ended {BIRTHS} times before it had begun: {_cause(message)}")
        process.start()


def _cause(message: dict[str, Any]) -> str:
    """What ended a process, in words."""
    status = message.get("died", message.get("gone"))
    if status is None or status >= 0:
        return f"the process ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
    return f"the process was ended by {name}{hint}"
