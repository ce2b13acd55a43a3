"""Interrupts at every place of a call, one after the other.

They are raised where a signal's handler may raise them: Python looks for signals when a function
begins, when a call of another has come back, and when a loop goes round. It is the function that
traces the call that does so, not a clock: the same each time, on any machine.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from dis import opname
from types import FrameType
from typing import Any

import pytest
import vinoir.ir

#: The instructions after which Python looks for signals.
LOOKS = ("RESUME", "CALL", "JUMP_BACKWARD")
HERE = vinoir.ir.__file__.removesuffix("ir/__init__.py")


def interrupted_at(
    number: int, call: Callable[[], object], *parts: str, error: type[BaseException]
) -> bool:
    """Whether a call was interrupted at a place, of those in these files of the package."""
    files = tuple(HERE + part for part in parts)
    seen, done = 0, False
    last: dict[FrameType, str] = {}

    def step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen, done
        if not frame.f_code.co_filename.startswith(files):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            after = last.get(frame, "")
            last[frame] = opname[frame.f_code.co_code[frame.f_lasti]]
            seen += after.startswith(LOOKS)
            if seen == number and not done:
                done = True
                raise error("interrupted")
        return step

    before, collected = sys.gettrace(), gc.get_threshold()
    gc.set_threshold(0)  # it would call finalisers of others in the midst of it
    sys.settrace(step)
    try:
        call()
    except error:
        assert done
    finally:
        sys.settrace(before)
        gc.set_threshold(*collected)
        last.clear()
    return done


def interrupts(
    call: Callable[[], object],
    *parts: str,
    error: type[BaseException] = KeyboardInterrupt,
    every: int = 1,
) -> Iterator[int]:
    """Interrupt a call at its first place in these files, then at its next, and so on."""
    number = 1
    while interrupted_at(number, call, *parts, error=error):
        yield number
        number += every


def in_time(work: Callable[[], None], seconds: float = 120) -> None:
    """Work that might hang, in a thread of which nobody waits for longer."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        pytest.fail("it hangs")
    if errors:
        raise errors[0]
