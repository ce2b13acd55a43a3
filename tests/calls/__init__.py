"""Sample calls of every operation version, a file per family."""

from __future__ import annotations

import importlib
import pkgutil
import random
from functools import cache

from oracle import Call


@cache
def families() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def samples() -> list[Call]:
    """Every family's table: at least one call of each operation version."""
    return [
        call for family in families() for call in importlib.import_module(f"calls.{family}").CALLS
    ]


def drawn(op: str, seed: int) -> Call | None:
    """A call of an operation (by class name) with random attributes and shapes."""
    for family in families():
        module = importlib.import_module(f"calls.{family}")
        if any(call.op == op for call in module.CALLS):
            draw = getattr(module, "draw", None)
            return draw(op, random.Random(f"{op} {seed}")) if draw else None
    return None
