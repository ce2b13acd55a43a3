"""Interrupts at every instruction of a call, one after the other.

They are raised where a signal's handler would raise them, by the function that traces the call,
not by a clock: the same each time, on any machine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import vinoir.ir

HERE = vinoir.ir.__file__.removesuffix("ir/__init__.py")


def interrupted_at(
    number: int, call: Callable[[], object], *parts: str, error: type[BaseException]
) -> bool:
    """Whether a call was interrupted at an instruction, of those in these files of the package."""
    files = tuple(HERE + part for part in parts)
    seen, done = 0, False

    def step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen, done
        if not frame.f_code.co_filename.startswith(files):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == number:
                done = True
                raise error("interrupted")
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        call()
    except error:
        assert done
    finally:
        sys.settrace(before)
    return done


def interrupts(
    call: Callable[[], object],
    *parts: str,
    error: type[BaseException] = KeyboardInterrupt,
    every: int = 1,
) -> Iterator[int]:
    """Interrupt a call at its first instruction in these files, then at its next, and so on."""
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
