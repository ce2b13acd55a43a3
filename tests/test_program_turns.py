"""Turns at the interpreter's lock are short while a program works, and then as they were."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.layers import turns
from vinoir.layers.turns import quick_turns

LONG = 0.25


@pytest.fixture(autouse=True)
def long_turns() -> Iterator[None]:
    """Turns of a length that nobody else chooses."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG)
    yield
    sys.setswitchinterval(before)


def now() -> float:
    """How long turns are, to a microsecond."""
    return round(sys.getswitchinterval(), 6)


def test_turns_are_short_for_as_long_as_anybody_works() -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with quick_turns:
            entered.set()
            assert leave.wait(60)

    other = threading.Thread(target=work)
    with quick_turns:
        assert now() == turns.SHORT
        other.start()
        assert entered.wait(60)
    assert now() == turns.SHORT
    leave.set()
    other.join()
    assert now() == LONG


def test_who_works_goes_on_after_a_program_inside_his_own() -> None:
    for _ in range(2):
        with quick_turns:
            with quick_turns:
                assert now() == turns.SHORT
            assert now() == turns.SHORT
        assert now() == LONG


@pytest.mark.parametrize("goes_wrong", [False, True])
def test_turns_stay_short_after_a_model_that_is_run_within_another(goes_wrong: bool) -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", (3,))]))
    model, array, found = net.model(), np.ones(3, "f4"), []

    def stop(_: ir.Traced) -> None:
        raise KeyboardInterrupt

    def run_another(_: ir.Traced) -> None:
        with suppress(KeyboardInterrupt):
            ir.run(model, [array], trace=stop if goes_wrong else None)
        found.append(now())

    ir.run(model, [array], trace=run_another)
    assert found == [turns.SHORT] * 3
    assert now() == LONG


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_turns_are_as_before_when_something_goes_wrong(error: type[BaseException]) -> None:
    with pytest.raises(error), quick_turns:
        raise error
    assert now() == LONG


@pytest.mark.parametrize("chosen", [turns.SHORT / 10, 2 * turns.SHORT, 1.0])
def test_what_somebody_chooses_meanwhile_stays(chosen: float) -> None:
    with quick_turns:
        sys.setswitchinterval(chosen)
    assert now() == round(chosen, 6)


@pytest.mark.parametrize("short", [turns.SHORT, turns.SHORT / 5])
def test_turns_that_are_short_are_left_alone(short: float) -> None:
    sys.setswitchinterval(short)
    with quick_turns:
        assert now() == round(short, 6)
    assert now() == round(short, 6)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths that are chosen from now on."""
    found: list[float] = []

    def choose(seconds: float) -> None:
        found.append(round(seconds, 6))
        sys.setswitchinterval(seconds)

    replaced = SimpleNamespace(getswitchinterval=sys.getswitchinterval, setswitchinterval=choose)
    monkeypatch.setattr(turns, "sys", replaced)
    return found


@pytest.mark.parametrize("kind", ["MaxPool", "Convolution"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_is_compiled_and_called_and_run_in_short_turns(
    kind: str, threads: int, chosen: list[float]
) -> None:
    net, array = ir.Builder(), np.ones((1, 8, 20, 20), "f4")
    inputs = [net.parameter("x", "f32", array.shape)]
    words: dict[str, Any] = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    if kind == "MaxPool":
        words |= {"kernel": (2, 2), "rounding_type": "floor"}
    else:
        words["dilations"] = (1, 1)
        inputs.append(net.constant(np.ones((4, 8, 3, 3), "f4")))
    net.result(net.add(kind, "opset1", inputs, **words))
    model = net.model()
    program = ir.compile(model, threads=threads, fork=False)
    assert chosen == [turns.SHORT, LONG]
    for _ in range(20):  # the first are tried in both ways, the last go the shortest
        chosen.clear()
        program([array])
        assert chosen == [turns.SHORT, LONG]
    for measured in (lambda: ir.run(model, [array]), lambda: program.times([array], 2)):
        chosen.clear()
        measured()
        assert chosen == [turns.SHORT, LONG]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_in_a_copy_of_the_process_nobody_works() -> None:
    code = (
        "import os, sys, threading\n"
        "from vinoir.layers import turns\n"
        "from vinoir.layers.turns import quick_turns\n"
        "sys.setswitchinterval(0.25)\n"
        "entered, leave = threading.Event(), threading.Event()\n"
        "def work():\n"
        "    with quick_turns:\n"
        "        entered.set(); leave.wait(60)\n"
        "other = threading.Thread(target=work); other.start(); entered.wait(60)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    before = sys.getswitchinterval()\n"
        "    with quick_turns: inside = round(sys.getswitchinterval(), 6)\n"
        "    right = before == sys.getswitchinterval() == 0.25 and inside == turns.SHORT\n"
        "    os._exit(0 if right else 1)\n"
        "_, told = os.waitpid(child, 0)\n"
        "leave.set(); other.join()\n"
        "print(told, sys.getswitchinterval())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert ran.stdout.split() == ["0", "0.25"]
