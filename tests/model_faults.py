"""Faults put into networks at random: a weight, an attribute, a kernel; and where they show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from vinoir import ir
from vinoir.layers import Op
from vinoir.schemas import Array, IRError

#: The inputs of a model by name or place.
Feeds = Mapping[Any, Array]
#: What every layer gave, by its id, in the order of computing.
Trace = dict[int, tuple[Array, ...]]
ENDS = ("Const", "Parameter", "Result")


@dataclass
class Fault:
    """One layer made wrong, and the layers at which that shows if their inputs are right.

    ``reached`` are the first of these that take an input of the model, directly or not.
    """

    text: str
    shows: set[int]
    reached: set[int]


def trace(model: ir.Model, feeds: Feeds) -> Trace:
    """What every layer gives that takes an input, directly or not."""
    found: Trace = {}
    known = fixed(model)
    ir.run(model, feeds, trace=lambda step: found.__setitem__(step.layer.id, step.outputs))
    return {number: arrays for number, arrays in found.items() if number not in known}


def fixed(model: ir.Model) -> set[int]:
    """Constants, and what depends on them alone."""
    found: set[int] = set()
    for layer in model.order():
        sources = [source for source in model.sources(layer) if source is not None]
        if layer.type in ("Parameter", "ReadValue", "Assign"):
            continue
        if layer.is_constant or (sources and all(one[0].id in found for one in sources)):
            found.add(layer.id)
    return found


def takers(model: ir.Model, layer: ir.Layer) -> set[int]:
    """The layers that take a constant, however it comes to them."""
    known, found, queue = fixed(model), set(), [layer]
    while queue:
        for user, _ in model.consumers(queue.pop()):
            if user.id in known:
                queue.append(user)
            elif user.type != "Result":
                found.add(user.id)
    return found


def users(model: ir.Model, layer: ir.Layer) -> set[int]:
    """The layers that take a constant as it is, of those from which something comes."""
    known = fixed(model)
    found = [user for user, _ in model.consumers(layer) if user.type != "Result"]
    return {user.id for user in found if user.id not in known or takers(model, user)}


def first_apart(one: Trace, two: Trace) -> int | None:
    """The first layer that gives anything else."""
    for number, arrays in one.items():
        others = two.get(number, ())
        if len(arrays) != len(others):
            return number
        for a, b in zip(arrays, others, strict=True):
            if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return number
    return None


def change_weight(model: ir.Model, rng: random.Random) -> Fault | None:
    """One number of a constant becomes another, as far off as its numbers lie apart."""
    rows = [x for x in model.constants if x.has_value and x.value.dtype.kind in "fiu"]
    rows = [x for x in rows if x.value.size > 16 and takers(model, x)]
    if not rows:
        return None
    layer = rng.choice(rows)
    value = layer.value.copy()
    place = rng.randrange(value.size)
    flat = value.reshape(-1)
    if value.dtype.kind == "f":
        flat[place] += np.asarray(2 * value.astype("f8").std() + 1e-3).astype(value.dtype)
    else:
        flat[place] ^= np.asarray(rng.choice([4, 8]), value.dtype)
    layer.set_value(value, layer.element_type)
    text = f'element {place} of "{layer.name}"'
    return Fault(text, users(model, layer), takers(model, layer))


def change_attribute(model: ir.Model, rng: random.Random) -> Fault | None:
    """One attribute of a layer says something else that it may say."""
    known = fixed(model)
    rows = [
        (layer, told)
        for layer in model.order()
        if layer.type not in ENDS and layer.id not in known and layer.op is not None
        for told in type(layer.op).describe()
        if told.name in layer.data and told.kind in ("int", "float", "bool", "enum", "int[]")
    ]
    rng.shuffle(rows)
    for layer, told in rows[:1]:
        old = layer.data[told.name]
        if told.kind == "int":
            new = str(int(old) + rng.choice([-1, 1]))
        elif told.kind == "float":
            new = repr(float(old) * 1.5 + 0.25)
        elif told.kind == "bool":
            new = "false" if old.lower() in ("true", "1") else "true"
        elif told.kind == "enum":
            others = [word for word in told.choices if word.lower() != old.lower()]
            if not others:
                return None
            new = rng.choice(others)
        else:
            numbers = old.split(",")
            if not old.strip():
                return None
            place = rng.randrange(len(numbers))
            numbers[place] = str(int(numbers[place]) + 1)
            new = ",".join(numbers)
        layer.data = {**layer.data, told.name: new}
        text = f'{told.name} of "{layer.name}" ({layer.type}): {old} → {new}'
        return Fault(text, {layer.id}, {layer.id})
    return None


def _scaled(array: Array) -> Array:
    return (array * 1.02).astype(array.dtype)


def _turned(array: Array) -> Array:
    return np.roll(array, 1, -1) if array.ndim else -array


def _dented(array: Array) -> Array:
    found = array.copy()
    level = np.sqrt(np.mean(np.square(array.astype("f8"))))
    found.reshape(-1)[found.size // 2] += np.asarray(level + 0.01).astype(array.dtype)
    return found


WRONG: list[Callable[[Array], Array]] = [_scaled, _turned, _dented]


@contextmanager
def wrong_kernel(kind: type[Op], wrong: Callable[[Array], Array]) -> Iterator[None]:
    """Let an operation compute something else, as a package with its own kernel may."""
    right = kind.run
    own = "run" in vars(kind)

    def run(self: Op, *inputs: Array) -> tuple[Array, ...]:
        found: tuple[Array, ...] = right(self, *inputs)
        with np.errstate(all="ignore"):  # a program that is prepared tries it on whatever is there
            return (wrong(found[0]) if found[0].size else found[0], *found[1:])

    kind.run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        if own:
            kind.run = right  # type: ignore[method-assign]
        else:
            del kind.run


def kernels(model: ir.Model, seen: Trace) -> dict[type[Op], list[ir.Layer]]:
    """The operations of a model that give numbers of their own, and their layers."""
    known = fixed(model)
    found: dict[type[Op], list[ir.Layer]] = {}
    for layer in model.order():
        if layer.type in (*ENDS, "ReadValue", "Assign") or layer.id in known or layer.bodies:
            continue
        if layer.op is None or layer.op.is_random or not seen[layer.id]:
            continue
        array = seen[layer.id][0]
        if array.dtype.kind == "f" and array.size > 1:
            found.setdefault(type(layer.op), []).append(layer)
    return found


def runs(model: ir.Model, feeds: Feeds) -> Trace | None:
    """What every layer gives; None where a fault is told instead of computed."""
    try:
        with np.errstate(all="ignore"):
            return trace(model, feeds)
    except IRError:
        return None
