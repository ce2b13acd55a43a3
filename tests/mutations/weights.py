"""Errors of weights."""

from __future__ import annotations

import random
import re

from .base import Damaged, File, Made, at, constants, names, pick, raw, set_attribute, text


@text("error")
def constant_beyond_the_end(file: File, rng: random.Random) -> Made:
    data = pick(rng, constants(file))
    if data is None:
        return None
    value = rng.choice([len(file.weights), len(file.weights) + 1000, 2**62, 2**63 - 1, 2**64, -4])
    return set_attribute(file, data, "offset", str(value)), at(data), names(data)


@text("error")
def constant_too_small(file: File, rng: random.Random) -> Made:
    data = pick(
        rng,
        [
            d
            for d in constants(file)
            if int(d.get("size")) > 1 and d.get("element_type") != "string"
        ],
    )
    if data is None:
        return None
    return (
        set_attribute(
            file,
            data,
            "size",
            str(int(data.get("size")) - rng.choice([1, int(data.get("size")) // 2])),
        ),
        at(data),
        names(data),
    )


@text("error")
def constant_of_larger_shape(file: File, rng: random.Random) -> Made:
    data = pick(
        rng,
        [
            d
            for d in constants(file)
            if d.get("shape")
            and d.get("element_type") != "string"
            and "0" not in re.split(r"\D+", d.get("shape"))
        ],
    )
    if data is None:
        return None
    value = rng.choice(
        [
            data.get("shape") + ", 9",
            "4294967296, 4294967296",
            "4611686018427387904",
            "-1, 0",
            "-2, -2",
            "1000000000000",
        ]
    )
    return set_attribute(file, data, "shape", value), at(data), names(data)


@text("error")
def constant_without(file: File, rng: random.Random) -> Made:
    data = pick(rng, constants(file))
    if data is None:
        return None
    name = rng.choice(["element_type", "shape", "offset", "size"])
    if data.get("element_type") == "string" and name == "shape":
        return None
    return set_attribute(file, data, name, None), at(data), names(data)


@text("error")
def constant_of_no_type(file: File, rng: random.Random) -> Made:
    data = pick(rng, constants(file))
    if data is None:
        return None
    return (
        set_attribute(file, data, "element_type", rng.choice(["dynamic", "undefined"])),
        at(data),
        names(data),
    )


@text("error")
def constant_of_wider_type(file: File, rng: random.Random) -> Made:
    narrow = ("f32", "i32", "f16", "u8", "i8")
    rows = [d for d in constants(file) if d.get("element_type") in narrow]
    data = pick(rng, [d for d in rows if int(d.get("size")) > 1])
    if data is None:
        return None
    changed = set_attribute(file, data, "element_type", rng.choice(["f64", "i64"]))
    return changed, at(data), names(data)


@raw("error")
def no_weights(file: File, rng: random.Random) -> Damaged:
    if not constants(file):
        return None
    return file.text.encode(), None, set(), set()


@raw("error")
def cut_weights(file: File, rng: random.Random) -> Damaged:
    rows = [d for d in constants(file) if int(d.get("size")) >= 1]
    if not rows or len(file.weights) < 2:
        return None
    last = max(rows, key=lambda d: int(d.get("offset")) + int(d.get("size")))
    end = int(last.get("offset")) + int(last.get("size"))
    keep = rng.randrange(int(last.get("offset")), end) if end > 1 else 0
    hurt = [d for d in rows if int(d.get("offset")) + int(d.get("size")) > keep]
    return (
        file.text.encode(),
        file.weights[:keep],
        {d.sourceline for d in hurt},
        set().union(*map(names, hurt)),
    )


@raw("error")
def empty_weights(file: File, rng: random.Random) -> Damaged:
    if not constants(file):
        return None
    return file.text.encode(), b"", set(), set()
