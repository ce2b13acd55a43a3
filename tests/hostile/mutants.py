"""Models with one thing or a few things changed: attributes, values, sizes, bytes of weights."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import calls
from oracle import write

SAMPLES = Path(__file__).parents[2] / "samples"

#: What a size, a count or a number in an attribute becomes.
NUMBERS = (
    "0", "1", "2", "-1", "-2", "3", "7", "64", "65", "1000", "30000", "1000000", "100000000",
    "2000000000", "4294967296", "4611686018427387904", "9223372036854775807",
    "-9223372036854775808", "99999999999999999999999", "0.5", "-0.5", "1e-30", "1e30",
    "nan", "inf", "-inf",
)  # fmt: skip
WORDS = (
    "",
    " ",
    "true",
    "false",
    "dynamic",
    "f32",
    "i64",
    "u1",
    "string",
    "...",
    "?",
    "1..2",
    "x,",
)
#: 64-bit numbers to be put into weights, which describe shapes where they are small.
WHOLE = (0, 1, -1, 2, 65, 4096, 10**6, 2 * 10**9, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))

_VALUE = re.compile(r'="([^"]*)"')
_SIZE = re.compile(r"<dim>([^<]*)</dim>")


@cache
def originals() -> list[tuple[str, bytes]]:
    """Each sample call as a model, once with its inputs as constants and once as inputs."""
    made = []
    for call in calls.samples():
        for known in (False, True):
            tensors = call.tensors(known=known)
            op = call.make()
            data = "".join(f' {name}="{text}"' for name, text in op.attributes().items())
            outputs = len(op.infer_outputs(tensors))
            made.append(write(op.xml_type, op.version(), data, tensors, outputs))
    made += [nested(depth, 3) for depth in (1, 2, 3)]
    digits = SAMPLES / "digits.xml"
    made.append((digits.read_text(), digits.with_suffix(".bin").read_bytes()))
    return made


def nested(depth: int, turns: int) -> tuple[str, bytes]:
    """A number to which one is added in the innermost of so many loops, each within the other."""
    number = '<port id="{}" precision="{}" />'
    f32, i64 = number.format(0, "FP32"), number.format(0, "I64")
    inner = (
        '<layer id="11" name="one" type="Const" version="opset1"><data element_type="f32" '
        f'shape="" offset="9" size="4" /><output>{f32}</output></layer>'
        '<layer id="12" name="sum" type="Add" version="opset1"><data auto_broadcast="numpy" />'
        '<input><port id="0" precision="FP32" /><port id="1" precision="FP32" /></input>'
        '<output><port id="3" precision="FP32" /></output></layer>',
        '<edge from-layer="0" from-port="0" to-layer="12" to-port="0" />'
        '<edge from-layer="11" from-port="0" to-layer="12" to-port="1" />',
    )
    for _ in range(depth):
        layers, edges = inner
        body = (
            '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="" '
            f'element_type="f32" /><output>{f32}</output></layer>{layers}{_constant(1)}'
            '<layer id="13" name="more" type="Result" version="opset1"><input>'
            '<port id="0" precision="BOOL" /></input></layer>'
            '<layer id="14" name="out" type="Result" version="opset1">'
            f"<input>{f32}</input></layer>"
        )
        inner = (
            f'{_constant(2)}{_constant(3)}<layer id="12" name="loop" type="Loop" '
            f'version="opset5"><input>{i64}{number.format(1, "BOOL")}{number.format(2, "FP32")}'
            f"</input><output>{number.format(3, 'FP32')}</output><port_map>"
            '<input external_port_id="2" internal_layer_id="0" />'
            '<output external_port_id="3" internal_layer_id="14" />'
            '<output external_port_id="-1" internal_layer_id="13" purpose="execution_condition" />'
            '</port_map><back_edges><edge from-layer="14" to-layer="0" /></back_edges>'
            f"<body><layers>{body}</layers><edges>{edges}"
            '<edge from-layer="1" from-port="0" to-layer="13" to-port="0" />'
            '<edge from-layer="12" from-port="3" to-layer="14" to-port="0" /></edges>'
            "</body></layer>",
            '<edge from-layer="2" from-port="0" to-layer="12" to-port="0" />'
            '<edge from-layer="3" from-port="0" to-layer="12" to-port="1" />'
            '<edge from-layer="0" from-port="0" to-layer="12" to-port="2" />',
        )
    layers, edges = inner
    xml = (
        '<?xml version="1.0"?><net name="loops" version="11"><layers><layer id="0" name="x" '
        'type="Parameter" version="opset1"><data shape="" element_type="f32" />'
        f'<output>{f32}</output></layer>{layers}<layer id="14" name="y" type="Result" '
        f'version="opset1"><input>{f32}</input></layer></layers><edges>{edges}'
        '<edge from-layer="12" from-port="3" to-layer="14" to-port="0" /></edges></net>'
    )
    return xml, turns.to_bytes(8, "little", signed=True) + b"\1" + b"\0\0\x80\x3f"


def _constant(layer: int) -> str:
    """The number of turns (2), or a condition that holds."""
    kind, port, place, size = ("i64", "I64", 0, 8) if layer == 2 else ("boolean", "BOOL", 8, 1)
    return (
        f'<layer id="{layer}" name="c{layer}" type="Const" version="opset1"><data '
        f'element_type="{kind}" shape="" offset="{place}" size="{size}" /><output>'
        f'<port id="0" precision="{port}" /></output></layer>'
    )


def mutant(seed: int) -> tuple[str, bytes]:
    """A model with one to three things changed."""
    rng = random.Random(seed)
    xml, weights = rng.choice(originals())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        xml, weights = _changed(xml, weights, rng)
    return xml, weights


def _changed(xml: str, weights: bytes, rng: random.Random) -> tuple[str, bytes]:
    way = rng.choice(("value", "value", "value", "size", "size", "weights", "weights", "cut"))
    if way == "value":
        return _replaced(xml, _VALUE, rng), weights
    if way == "size":
        return _replaced(xml, _SIZE, rng), weights
    if way == "weights" and len(weights) >= 8:
        place = rng.randrange(len(weights) // 4) * 4
        size = rng.choice((4, 8))
        number = rng.choice(WHOLE) if size == 8 else rng.choice(WHOLE) & 0xFFFFFFFF
        new = number.to_bytes(size, "little", signed=size == 8)
        return xml, (weights[:place] + new + weights[place + size :])[: len(weights)]
    line = rng.choice(re.findall(r"<(?:port|dim|edge|layer|data)[^>]*>", xml))
    return xml.replace(line, "" if rng.random() < 0.5 else line * 2, 1), weights


def _replaced(xml: str, pattern: re.Pattern[str], rng: random.Random) -> str:
    """The text with one found value, or one number of a list, changed."""
    found = list(pattern.finditer(xml))
    if not found:
        return xml
    match = rng.choice(found)
    parts = match[1].split(",")
    new = rng.choice(NUMBERS if rng.random() < 0.85 else WORDS)
    parts[rng.randrange(len(parts))] = new
    text = ",".join(parts) if rng.random() < 0.9 else ",".join(parts * rng.choice((2, 70)))
    return xml[: match.start(1)] + text + xml[match.end(1) :]
