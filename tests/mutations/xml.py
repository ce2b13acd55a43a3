"""Errors of XML."""

from __future__ import annotations

import random
import re

from .base import Damaged, File, at, block, layers, line_of, names, put, raw


@raw("error")
def truncated(file: File, rng: random.Random) -> Damaged:
    data = file.text.encode().rstrip()
    cut = rng.randrange(1, len(data) - 6)
    return data[:cut], file.weights, {data[:cut].count(b"\n") + 1}, _names_before(file, data[:cut])


def _names_before(file: File, data: bytes) -> set[str]:
    line = data.count(b"\n") + 1
    before = [x for x in layers(file) if x.sourceline <= line]
    return names(before[-1]) if before else set()


@raw("error")
def lost_closing_tag(file: File, rng: random.Random) -> Damaged:
    rows = [
        n
        for n, line in enumerate(file.lines)
        if re.fullmatch(r"\s*</\w+>", line) and "</net>" not in line
    ]
    n = rng.choice(rows)
    changed = "\n".join(file.lines[:n] + file.lines[n + 1 :])
    around = [x for x in layers(file) if x.sourceline <= n + 1]
    found = {n + 1, n, n + 2}
    for tag in file.root.iter():
        if block(tag, file)[1] == n + 1:
            found |= {
                tag.sourceline,
                *(
                    [block(tag.getparent(), file)[1] - 1, tag.getparent().sourceline]
                    if tag.getparent() is not None
                    else []
                ),
            }
    return changed.encode(), file.weights, found, names(around[-1]) if around else set()


@raw("error")
def broken_tag(file: File, rng: random.Random) -> Damaged:
    rows = [
        n
        for n, line in enumerate(file.lines)
        if re.search(r'="[^"]*"', line) and "<?xml" not in line
    ]
    n = rng.choice(rows)
    line = file.lines[n]
    kind = rng.randrange(6)
    if kind == 0:
        changed = line.replace('="', "=", 1)
    elif kind == 1:
        changed = re.sub(r'="([^"]*)"', r'="\1', line, count=1)
    elif kind == 2:
        changed = line.replace('="', ' "', 1)
    elif kind == 3:
        changed = re.sub(r'="([^"]*)"', r"=\1", line, count=1)
    elif kind == 4:
        changed = re.sub(r'="', '="<', line, count=1)
    else:
        changed = re.sub(r'="', '="&', line, count=1)
    lines = [*file.lines[:n], changed, *file.lines[n + 1 :]]
    around = [x for x in layers(file) if x.sourceline <= n + 1]
    return "\n".join(lines).encode(), file.weights, {n + 1}, names(around[-1]) if around else set()


@raw("error")
def attribute_twice(file: File, rng: random.Random) -> Damaged:
    layer = rng.choice(layers(file))
    changed = put(file, layer, line_of(file, layer).replace(' type="', ' type="Foo" type="', 1))
    return changed.encode(), file.weights, at(layer), names(layer)


@raw("error")
def entity(file: File, rng: random.Random) -> Damaged:
    layer = rng.choice(layers(file))
    text_ = rng.choice(["&foo;", "&nbsp;", "a &amp b", "&#1;", "&#xFFFE;"])
    changed = put(file, layer, line_of(file, layer).replace(' name="', f' name="{text_}', 1))
    return changed.encode(), file.weights, at(layer), names(layer)


@raw("error")
def declared_entity(file: File, rng: random.Random) -> Damaged:
    layer = rng.choice(layers(file))
    changed = put(file, layer, line_of(file, layer).replace(' name="', ' name="&e;', 1))
    changed = changed.replace(
        '<?xml version="1.0"?>', '<?xml version="1.0"?><!DOCTYPE net [<!ENTITY e "x">]>', 1
    )
    return changed.encode(), file.weights, at(layer), names(layer)


@raw("error")
def after_the_end(file: File, rng: random.Random) -> Damaged:
    tail = rng.choice(["garbage", "<net/>", "\0", "</net>", "<!-- -- -->", "&"])
    changed = file.text.rstrip("\n") + "\n" + tail
    return changed.encode(), file.weights, {changed.count("\n") + 1}, set()


@raw("error")
def forbidden_byte(file: File, rng: random.Random) -> Damaged:
    layer = rng.choice(layers(file))
    data = line_of(file, layer).replace(' name="', ' name="@@', 1)
    changed = (
        put(file, layer, data)
        .encode()
        .replace(b"@@", rng.choice([b"\x01", b"\xff", b"\0", b"\xc3("]), 1)
    )
    return changed, file.weights, at(layer), names(layer)


@raw("error")
def not_xml(file: File, rng: random.Random) -> Damaged:
    junk = rng.choice(
        [b"", b"\0" * 100, b"hello", bytes(rng.randrange(256) for _ in range(200)), b"<", b"   \n"]
    )
    return junk, file.weights, set(), set()
