"""Old documents that are damaged, or mean harm: read, or refused with a message."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from lxml import etree
from older.files import OldFile
from older.network import small
from test_older_values import CASES, built
from vinoir import ir
from vinoir.schemas import IRError


def mutated(text: str, rng: random.Random) -> str:
    """The text with a few of its words changed, lost or doubled."""
    words = re.findall(r"<[^>]*>|[^<]+", text)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(1, len(words))
        kind = rng.randrange(6)
        if kind == 0:
            del words[place]
        elif kind == 1:
            words.insert(place, rng.choice(words))
        elif kind == 2:
            words[place] = re.sub(
                r"\d+", lambda _: str(rng.choice(NUMBERS)), words[place], count=1
            )
        elif kind == 3:
            words[place] = re.sub(r'"[^"]*"', f'"{rng.choice(TEXTS)}"', words[place], count=1)
        elif kind == 4:
            words[place] = re.sub(r' [\w-]+="[^"]*"', "", words[place], count=1)
        else:
            words[place] = words[place].replace(*rng.choice(SWAPS))
    return "".join(words)


NUMBERS = [0, 1, 2, 3, 7, 64, 255, 4096, 2**31, 2**32 - 1, 2**63, 10**30]
TEXTS = [
    "",
    "-1",
    "1e9",
    "nan",
    "inf",
    "0,0",
    "3,3,3",
    "max",
    "true",
    "FP16",
    "I64",
    "Ünï",
    "x" * 99,
]
SWAPS = [("Convolution", "Deconvolution"), ("Pooling", "Crop"), ("SoftMax", "TopK"),
         ("ReLU", "Proposal"), ("FullyConnected", "LSTMSequence"), ("Eltwise", "Concat"),
         ("input", "output"), ("dim", "port"),
         ("edge", "layer"), ("Convolution", "TensorIterator"), ("Pooling", "PriorBox"),
         ("Pooling", "Resample"), ("FullyConnected", "Memory")]  # fmt: skip


@pytest.mark.parametrize("seed", range(120))
def test_damaged_files_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    file = small(rng.randrange(2, 8))
    survives(mutated(file.xml.decode(), rng), file.bin)


def test_the_time_of_a_check_grows_as_the_faults_do(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for = []
    monkeypatch.setattr("vinoir.ir.text.positions.position", lambda *_: looked_for.append(1))
    file = OldFile(6)
    spot = file.input((1, 2), "x")
    for _ in range(300):
        spot = file.add("ReLU", [spot], [(1, 2)])
    xml = file.xml.replace(b'to-port="0"', b'to-port="9"')
    found = [row for row in ir.check(xml) if "an edge enters input port 9" in row.message]
    assert len(found) == 300
    assert all(row.column is not None for row in found)
    lines = xml.split(b"\n")
    for row in found:
        assert row.line is not None
        assert b'to-port="9"' in lines[row.line - 1]
    assert not looked_for  # one by one each place takes a parser that begins with the text


def test_of_many_ports_the_first_are_named() -> None:
    file = OldFile(6)
    spot = file.input((1, 2), "x")
    file.add("Concat", [spot] * 300, [(1, 600)], {"axis": 1}, name="long")
    xml = file.xml.replace(b'to-port="7"', b'to-port="3000"')
    with pytest.raises(IRError, match=r"port 3000 of layer 1 .* \[0, 1, .*, 11, \.\.\.\]"):
        ir.loads(xml)


def survives(text: str, weights: bytes | None) -> None:
    """It is read, or refused with a message; the check tells of whatever reading refuses."""
    source = text.encode("utf-8", "replace")
    report = ir.check(source, weights=weights)
    refused = None
    try:
        model = ir.loads(source, weights)
    except IRError as error:
        refused = error
    if refused is not None:
        assert not report.ok, refused
    elif model.origin is not None:
        assert [finding for finding in report if finding.code == "IR954"] == []


@pytest.mark.parametrize("name", CASES)
def test_a_layer_that_lacks_a_part_is_read_or_refused(name: str) -> None:
    """Every element below the layers is taken out in turn, with all that is in it."""
    file, _, _ = built(CASES[name])
    for place, one in enumerate(etree.fromstring(file.xml).iterfind("layers//*")):
        if one.tag == "dim":
            continue
        root = etree.fromstring(file.xml)
        gone = list(root.iterfind("layers//*"))[place]
        gone.getparent().remove(gone)
        survives(etree.tostring(root, encoding="unicode"), file.bin)


HUGE = 2**32 - 1
#: Sizes and numbers that no memory holds, where making them would be easy.
BOMBS = [
    ("LSTMSequence", [(HUGE, 2, 3)], [(HUGE, 2, 4)], {"hidden_size": 4, "direction": "Forward"}),
    ("GRUSequence", [(2, 2, 3)], [(2, 2, 4)], {"hidden_size": 2**31 - 1, "direction": "Forward"}),
    ("NonMaxSuppression", [(1, 9, 4), (1, 1, 9)], [(HUGE, 3)], {}),
    ("CTCGreedyDecoder", [(3, HUGE, 4), (3, HUGE)], [(HUGE, 3, 1, 1)], {}),
    ("StridedSlice", [(3, 4), (HUGE,), (HUGE,), (HUGE,)], [(3, 4)], {"begin_mask": "1"}),
    ("BatchNormalization", [(1, HUGE, 1, 1)], [(1, HUGE, 1, 1)], {"epsilon": 1}),
    ("Resample", [(1, 1, HUGE, HUGE)], [(1, 1, HUGE // 2, HUGE // 2)],
     {"type": "caffe.ResampleParameter.LINEAR", "antialias": 1, "factor": 0.5}),
    ("Memory", [], [(HUGE, HUGE)], {"id": "r", "index": 1, "size": 2}),
    ("Tile", [(3, 4)], [(3, HUGE)], {"axis": 1, "tiles": 2**31 - 1}),
    ("OneHot", [(HUGE,)], [(HUGE, 2**31 - 1)], {"depth": 2**31 - 1}),
    ("PriorBox", [(1, 1, HUGE, HUGE), (1, 3, HUGE, HUGE)], [(1, 2, 4)],
     {"min_size": "1", "offset": 0.5}),
    ("Pooling", [(1, 1, HUGE, HUGE)], [(1, 1, 1, 1)], {"kernel": f"{2**31 - 1},{2**31 - 1}"}),
    ("Convolution", [(1, 3, 4, 4)], [(1, 4, 4, 4)],
     {"kernel": "3,3", "output": 4, "pads_begin": f"{2**31 - 1},0"}),
    ("Split", [(HUGE, 2)], [(1, 2)] * 3, {"axis": 0}),
    ("Power", [(HUGE,) * 70], [(HUGE,) * 70], {"power": 1, "scale": 2, "shift": 0}),
    ("BinaryConvolution", [(1, HUGE, 9, 9)], [(1, 9, 1, 1)],
     {"kernel": "9,9", "input": HUGE, "output": 9}),
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[0])
def test_sizes_beyond_all_memory_are_numbers_only(bomb: tuple[Any, ...]) -> None:
    kind, inputs, outputs, data = bomb
    file = OldFile(6)
    blobs = "".join(f'<{name} offset="0" size="99999999999"/>' for name in ("weights", "biases"))
    spots = [file.input(dims) for dims in inputs]
    file.many(kind, spots, outputs, data, name="op", inside=f"<blobs>{blobs}</blobs>")
    survives(file.xml.decode(), None)


def test_bodies_within_bodies_end() -> None:
    text = ""
    for _ in range(200):
        text = (
            '<layer id="0" name="loop" type="TensorIterator"><port_map/><body><layers>'
            f"{text}</layers></body></layer>"
        )
    source = f'<net name="m" version="6"><layers>{text}</layers></net>'
    with pytest.raises(IRError, match="nested more than 64 deep"):
        ir.loads(source, b"")
    assert not ir.check(source.encode()).ok
