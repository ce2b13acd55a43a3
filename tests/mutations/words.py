"""Errors of values that look right at first: digits, layouts, functions, sizes said twice."""

from __future__ import annotations

import random
import re

from .base import File, Made, after, at, block, names, pick, put, set_attribute, text

#: Digits of ASCII to those of full width, and to Arabic ones.
WIDE, ARABIC = ({48 + n: first + n for n in range(10)} for first in (0xFF10, 0x0660))


@text("error")
def foreign_digits(file: File, rng: random.Random) -> Made:
    rows = [
        (data, name) for data in file.all("layer/data") for name, value in data.attrib.items()
        if re.fullmatch(r"[-+\d., e]*\d[-+\d., e]*", value)
    ]  # fmt: skip
    if not rows:
        return None
    data, name = rng.choice(rows)
    value = data.get(name).translate(rng.choice([WIDE, ARABIC]))
    return set_attribute(file, data, name, value), at(data), names(data)


@text("error")
def malformed_layout(file: File, rng: random.Random) -> Made:
    port = pick(rng, [p for p in file.all("layer/output/port") if p.find("rt_info") is None])
    if port is None or file.root.get("version") != "11":
        return None
    word = rng.choice(["[N,,C]", "NN", "N,C", "[N,C", "N...C...", "[N,C,n]", "N C", "[ÜB]"])
    info = f'<rt_info><attribute name="layout" version="0" layout="{word}" /></rt_info>'
    first, last = block(port, file)
    line = file.lines[first - 1].rstrip()
    if line.endswith("/>"):
        return put(file, port, f"{line[:-2].rstrip()}>{info}</port>"), at(port), names(port)
    return after(file, last - 1, info), {first, last}, names(port)


@text("error")
def activations(file: File, rng: random.Random) -> Made:
    data = pick(rng, [d for d in file.all("layer/data") if d.get("hidden_size")])
    if data is None or "RNN" in (data.getparent().get("type") or ""):
        return None
    value = rng.choice(["sigmoid", "tahn, tanh, tanh", "softmax, tanh, tanh", "tanh"])
    return set_attribute(file, data, "activations", value), at(data), names(data)


@text("error")
def hidden_size(file: File, rng: random.Random) -> Made:
    data = pick(rng, [d for d in file.all("layer/data") if d.get("hidden_size")])
    if data is None:
        return None
    value = str(int(data.get("hidden_size")) + rng.choice([-1, 1, 64]))
    return set_attribute(file, data, "hidden_size", value), at(data), names(data)
