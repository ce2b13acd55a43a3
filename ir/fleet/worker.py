"""A process that does tasks: ``python -m vinoir.ir.fleet.worker``, told what by its input.

On Linux it imports what is needed, and forks a child that does the tasks. When a task ends the
child, the next one is there in milliseconds. It watches both ends: when whoever gives the orders
is gone, however suddenly, the child is ended, whatever it does at that moment.

One line of JSON each way: ``{"work": [task, ...]}`` is answered by ``{"done": outcome}`` for each
task in its order; ``{"ready": pid}`` tells of a new child, ``{"died": status}`` of its end.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .outcomes import Function, Outcome, outcome_of, words_of


def main() -> None:
    """Take orders from standard input, and answer on standard output."""
    # What the tasks print must not come between the answers.
    orders, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    with open(orders, "rb", closefd=False, buffering=0) as file:
        setup = json.loads(file.readline())
    try:
        sys.path[:] = setup["path"]
        function = pickle.loads(base64.b64decode(setup["function"]))
        getattr(function, "prepare", lambda: None)()
    except BaseException as error:  # what is imported may even call sys.exit()
        _say(answers, {"refused": words_of(error, named=True)})
        return

    def serve() -> None:
        _serve(orders, answers, function, setup["max_memory"])

    if sys.platform == "linux":
        _keep_a_child(serve, orders, answers)
    else:
        serve()


def _say(answers: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(answers, data) :]


def _serve(orders: int, answers: int, function: Function, max_memory: int | None) -> None:
    """Do tasks until there are no more orders."""
    own = os.getpid()
    _say(answers, {"ready": own})
    with open(orders, "rb", closefd=False) as file:
        for line in file:
            for task in json.loads(line)["work"]:
                began = time.perf_counter()
                with limited(max_memory):
                    outcome = outcome_of(function, task)
                if os.getpid() != own:
                    os._exit(outcome.code)  # the task has forked: one answer is enough
                outcome.seconds = round(time.perf_counter() - began, 6)
                _say(answers, {"done": _plain(outcome)})


def _plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON has it."""
    try:
        found = outcome.to_json()
        json.dumps(found)
    except Exception as error:
        wrong = Outcome(70, "refused", error=f"the answer is no JSON: {words_of(error)}")
        return wrong.to_json() | {"seconds": outcome.seconds}
    return found


@contextmanager
def limited(max_memory: int | None) -> Iterator[None]:
    """Let the system refuse what would be more memory of our own than is allowed.

    Files that are mapped are not counted. Where the system cannot do that, what is computed
    still asks its own budget.
    """
    held = None if max_memory is None else _own_memory()
    if max_memory is None or held is None:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = held + max_memory
    if before[1] != resource.RLIM_INFINITY:
        allowed = min(allowed, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _own_memory() -> int | None:
    """Bytes that this process has for itself, as the system counts them for its limit."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _keep_a_child(serve: Callable[[], None], orders: int, answers: int) -> None:
    """Have a child at work until there is nobody who gives orders."""
    gc.collect()
    gc.freeze()  # what is shared with the children stays shared
    while True:
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            status = 1
            try:
                serve()
                status = 0
            finally:  # nobody may be there who waits for the answer, or reads what is printed
                with suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        with suppress(OSError):  # whichever of the two is sooner
            os.setpgid(pid, pid)
        alive, waiting, statuses = _watched(pid)
        watched = select.poll()
        watched.register(orders, 0)  # of its end it tells unasked
        watched.register(alive, select.POLLIN)
        ended = {file for file, _ in watched.poll()}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # also what it has begun and left behind
        waiting.join()
        os.close(alive)
        status = os.waitstatus_to_exitcode(statuses[0] if statuses else os.waitpid(pid, 0)[1])
        if orders in ended:
            return
        # The child may have been ended in the middle of a line.
        os.write(answers, b"\n")
        _say(answers, {"died": status})


def _watched(pid: int) -> tuple[int, threading.Thread, list[int]]:
    """A file that ends with a process, the thread that waits for it, and its status in the end.

    A pipe whose other end the process holds would end with the last that it has forked.
    """
    alive, held = os.pipe()
    statuses: list[int] = []

    def wait() -> None:
        if hasattr(os, "waitid"):  # its number stays its own for as long as nobody has its status
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13
            statuses.append(os.waitpid(pid, 0)[1])
        os.close(held)

    waiting = threading.Thread(target=wait)
    waiting.start()
    return alive, waiting, statuses


if __name__ == "__main__":
    main()
