"""Old documents that are damaged, or mean harm: read, or refused with a message."""

from __future__ import annotations

import random
import re
import sys
import tracemalloc
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest
from lxml import etree
from older.files import OldFile
from older.network import small
from test_older_values import CASES, built
from vinoir import ir
from vinoir.ir.files.older import loops
from vinoir.ir.files.older.image import triangles
from vinoir.ir.files.older.table import entries
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


#: What attributes of any layer may be, and words that some of them mean something by.
SAID = ["0", "1", "2", "3", "0.5", "1,2", "1,1,1", "", "-1", "true"]
MEANT = {
    "kernel": ["3,3"], "direction": ["Forward"], "cell_type": ["LSTM", "RNN"], "type": ["linear"],
    "operation": ["sum", "mean"], "precision": ["I32"], "region": ["across"], "sort": ["value"],
    "mode": ["max", "average", "bilinear_deformable", "constant", "xnor-popcount"],
    "order": ["0,1", "1,0,2", "0,2,1,3"], "pool-method": ["max"], "code_type": ["CORNER"],
    "output": ["1", "2"], "group": ["1"], "factor": ["2"], "offset": ["0.5"],
}  # fmt: skip


def at_random(kind: str, rank: int, rng: random.Random) -> OldFile:
    """A layer with ports of about that many axes, some fed by what gives other sizes."""
    entry, file = entries()[kind], OldFile(7, rng.choice(["FP32", "FP32", "I32"]))
    usual = tuple(rng.choices([1, 2, 3, 4, 8], k=rank))

    def sizes() -> tuple[int, ...]:
        return usual if rng.random() < 0.8 else usual[:1] + usual[2:] * rng.randrange(3)

    spots = []
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4, 5])):
        spot = file.input(sizes())
        if rank > 1 and rng.random() < 0.2:
            spot = file.add("Flatten", [spot], [spot.dims], {"axis": rng.randrange(2)})
        spots.append(spot)
    data = {
        name: default if default and rng.random() < 0.5 else rng.choice(MEANT.get(name, SAID))
        for name, default in entry.attributes.items()
        if name in entry.required or rng.random() < 0.3
    }
    blobs = "".join(
        f'<{name} offset="0" size="{rng.choice([4, 8, 16, 64, 1024])}"/>'
        for name in ("weights", "biases", "custom")
        if rng.random() < 0.5
    )
    outputs = [sizes() for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
    file.many(entry.type, spots, outputs, data, inside=f"<blobs>{blobs}</blobs>")
    return file


@pytest.mark.parametrize("rank", range(6))
def test_layers_at_random_are_read_or_refused_in_words_of_ours(rank: int) -> None:
    for kind in entries():
        rng = random.Random(f"{kind} {rank}")
        for _ in range(10):
            file = at_random(kind, rank, rng)
            try:
                ir.loads(file.xml, bytes(1024))
            except IRError as error:
                if type(error.__cause__) is ValueError:  # raised by Python or NumPy
                    raise


#: Layers that read the sizes of axes which some of their ports do not have.
FEW_AXES = [
    ("RNN", [(2, 3, 4)], [()], {"cell_type": "LSTM"}, r"output 0 is \[\].* 0 axes: RNN"),
    ("CTCGreedyDecoder", [(2, 3, 4), ()], [(3, 2, 1, 1)], {}, r"input 1 is \[\].* 0 axes"),
    ("ScaleShift", [()], [()], {}, r"input 0 is \[\].* 0 axes"),
    ("Normalize", [()], [()], {"eps": 1, "across_spatial": 1}, r"input 0 is \[\].* 0 axes"),
    ("PriorBox", [(1, 3, 4, 4), (3,)], [(1, 2, 4)],
     {"offset": 0, "scale_all_sizes": 0, "min_size": 1}, r"input 1 is \[3\].* PriorBox has 4"),
    ("PriorBoxClustered", [(1, 3, 4, 4), (3,)], [(1, 2, 4)],
     {"width": 1, "height": 1, "offset": 0, "img_h": 1}, r"input 1 is \[3\].* 1 axes"),
    ("DeformableConvolution", [(4,), (4,)], [(4,)], {"output": 1, "kernel": "3,3"},
     r"input 0 is \[4\].* 1 axes"),
]  # fmt: skip


@pytest.mark.parametrize("few", FEW_AXES, ids=lambda few: few[0])
def test_axes_that_are_not_there_are_told_with_both_numbers(few: tuple[Any, ...]) -> None:
    kind, inputs, outputs, data, words = few
    file = OldFile(7)
    spots = [file.input(dims) for dims in inputs]
    weights = {"weights": np.zeros(1, np.float32)}
    file.many(kind, spots, outputs, data, weights, name="op")
    with pytest.raises(IRError, match=words) as caught:
        ir.loads(file.xml, file.bin)
    assert caught.value.where.name == "op"


@pytest.mark.parametrize(
    ("kind", "data"),
    [("Resample", {"type": "nearest", "factor": 2}), ("Interp", {"factor": 2}),
     ("Upsampling", {"scale": 2})],
)  # fmt: skip
def test_sizes_of_an_input_are_those_that_it_comes_to_have(kind: str, data: Any) -> None:
    file = OldFile(7)
    flat = file.add("Flatten", [file.input((1, 3, 8, 8))], [(1, 3, 8, 8)], {"axis": 1})
    file.add(kind, [flat], [(1, 3, 16, 16)], data)
    with pytest.raises(IRError, match=rf"input 0 is \[1, 192\].* 2 axes: {kind} has 4"):
        ir.loads(file.xml, b"")


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


def many_matrices(*sizes: tuple[int, int]) -> OldFile:
    """Layers that resize an image of these sizes to three quarters by matrices, twice each."""
    file = OldFile(6)
    for height, width in sizes:
        spot = file.input((1, 1, height, width))
        for _ in range(2):
            file.add("Resample", [spot], [(1, 1, height * 3 // 4, width * 3 // 4)],
                     {"type": "linear", "antialias": 1, "factor": 0.75})  # fmt: skip
    return file


def test_layers_that_resize_alike_share_their_matrices() -> None:
    model = ir.loads(many_matrices((16, 16), (16, 32)).xml, b"")
    sizes = [layer.value.shape for layer in model.layers if layer.type == "Const"]
    assert sizes == [(12, 16), (24, 32)]


@pytest.mark.parametrize("sizes", [(4096, 2048), (2048, 4096)])
def test_an_axis_that_stays_as_long_takes_no_matrix(sizes: tuple[int, int]) -> None:
    file = OldFile(6)
    file.add("Resample", [file.input((1, 1, 4096, 4096))], [(1, 1, *sizes)],
             {"type": "linear", "antialias": 1, "factor": 1})  # fmt: skip
    model = ir.loads(file.xml, b"")
    assert [x.value.shape for x in model.layers if x.type == "Const"] == [(2048, 4096)]
    assert [x.outputs[0].dims for x in model.layers if x.type == "MatMul"] == [(1, 1, *sizes)]


def test_matrices_of_all_layers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    file = many_matrices((16, 16), (16, 20), (24, 16))
    monkeypatch.setattr("vinoir.ir.files.older.image.MOST_PLACES", 12 * 16 + 15 * 20 + 18 * 24)
    ir.loads(file.xml, b"")
    monkeypatch.setattr("vinoir.ir.files.older.image.MOST_PLACES", 12 * 16 + 15 * 20 + 18 * 24 - 1)
    words = "24 to 18 .* 432 numbers, those of layers before have 492, and 923 are the most"
    with pytest.raises(IRError, match=words):
        ir.loads(file.xml, b"")
    assert len([row for row in ir.check(file.xml) if "432 numbers" in row.message]) == 2


@pytest.mark.parametrize(("size", "count"), [(7, 3), (3, 7), (1000, 333), (300, 301), (2, 9000)])
def test_a_matrix_made_in_blocks_is_that_of_its_formula(
    size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vinoir.ir.files.older.image.BLOCK", 1000)
    step = size / count
    centres = (np.arange(count) + 0.5) * step - 0.5
    near = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(size)) / step)
    total = near.sum(1, keepdims=True)
    want = np.divide(near, total, out=np.zeros_like(near), where=total > 0)
    np.testing.assert_allclose(triangles(size, count), want, rtol=1e-6)


def test_a_matrix_takes_little_more_memory_than_it_has() -> None:
    tracemalloc.start()
    try:
        held = triangles(2048, 1024).nbytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * held


def looped(lines: Sequence[tuple[str, int, int, int]], back: Sequence[tuple[int, ...]]) -> OldFile:
    """A loop over a - b and ReLU, with these lines of its port map and these back edges."""
    inner = OldFile(6)
    inner.add("Eltwise", [(1, 2), (1, 2)], [(1, 2)], {"operation": "sub"}, name="less")
    inner.add("ReLU", [(1, 2)], [(1, 2)], name="above")
    rows = "".join(
        f'<{kind} external_port_id="{outer}" internal_layer_id="{layer}" '
        f'internal_port_id="{port}"/>'
        for kind, outer, layer, port in lines
    )
    edges = "".join(
        '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'.format(*edge)
        for edge in back
    )
    file = OldFile(6)
    file.many(
        "TensorIterator", [file.input((1, 2), "a"), file.input((1, 2), "b")], [(1, 2)],
        inside=f"<port_map>{rows}</port_map><back_edges>{edges}</back_edges>"
        f"<body><layers>{''.join(inner.layers)}</layers><edges/></body>",
    )  # fmt: skip
    return file


WIRED = [("input", 0, 0, 0), ("input", 1, 0, 1), ("input", 1, 1, 0), ("output", 2, 0, 2)]


def test_one_output_may_come_back_to_ports_that_the_map_fills() -> None:
    model = ir.loads(looped(WIRED, [(0, 2, 0, 0), (1, 1, 0, 1)]).xml, b"")
    given = np.float32([[10, 3]]), np.float32([[1, 4]])
    np.testing.assert_array_equal(ir.run(model, list(given))[0], given[0] - given[1])


@pytest.mark.parametrize(
    ("lines", "back", "words"),
    [([*WIRED, ("input", 1, 0, 0)], [], "two <input> of the port map fill port 0 of layer 0"),
     ([*WIRED, ("output", 2, 1, 1)], [], "two <output> of the port map give the outer port 2"),
     (WIRED, [(0, 2, 0, 0), (1, 1, 0, 0)], "two back edges enter port 0 of layer 0 inside"),
     (WIRED[:2] + WIRED[3:], [(0, 2, 1, 0)], "enters port 0 of layer 1 .* no <input> of the port"),
     ([*WIRED, ("input", 9, 0, 0)], [], r"the outer port 9, the input ports are \[0, 1\]"),
     ([*WIRED, ("input", 1, 0, 9)], [], r"input port 9 of layer 0 .* ports are \[0, 1\]"),
     ([*WIRED, ("input", 1, 9, 0)], [], "names layer 9 of the body, which is not there")],
)  # fmt: skip
def test_a_port_of_a_loop_is_filled_once(
    lines: list[tuple[str, int, int, int]], back: list[tuple[int, ...]], words: str
) -> None:
    xml = looped(lines, back).xml
    with pytest.raises(IRError, match=words):
        ir.loads(xml, b"")
    assert len([row for row in ir.check(xml) if re.search(words, row.message)]) == 1


def steps_to_read_a_loop(ports: int) -> int:
    """How many lines of the file of loops are gone through for a loop of so many ports."""
    inner, file = OldFile(6), OldFile(6)
    inner.add("Eltwise", [(1, 2)] * ports, [(1, 2)])
    rows = "".join(
        f'<{kind} external_port_id="{port}" internal_layer_id="0" internal_port_id="{port}"/>'
        for port, kind in enumerate(["input"] * ports + ["output"])
    )
    spots = [file.input((1, 2)) for _ in range(ports)]
    file.many(
        "TensorIterator", spots, [(1, 2)],
        inside=f"<port_map>{rows}</port_map><body><layers>{inner.layers[0]}</layers></body>",
    )  # fmt: skip
    count = 0

    def step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return step if frame.f_code.co_filename == loops.__file__ else None

    before = sys.gettrace()
    sys.settrace(step)
    try:
        ir.loads(file.xml, b"")
    finally:
        sys.settrace(before)
    return count


def test_the_ports_of_a_loop_are_gone_through_once() -> None:
    assert steps_to_read_a_loop(200) < 2.2 * steps_to_read_a_loop(100)


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
