"""An old file that is reshaped computes what the old file of that size would.

The sizes of the old files are those of the shape rules of OpenVINO 2018 to 2020.4; what one of the
new size computes is told by test_older_values, and by OpenVINO.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from older.case import draw
from older.files import OldFile
from older.statements import old_size, pooled
from oracle import ask
from vinoir import ir
from vinoir.schemas import Array, IRError

Maps: TypeAlias = tuple[int, int]
#: Of each size of a map the size of the output's.
Rule: TypeAlias = Callable[[int], int]

W = draw(2, 3, 3, 3)
SAME_UPPER: Rule = lambda n: -(-n // 2)  # noqa: E731
SAME_LOWER: Rule = lambda n: n // 2  # noqa: E731


def layer(type: str, data: dict[str, Any], rule: Rule, **blobs: Any) -> Callable[[Maps], OldFile]:
    """Old files of one layer by the size of the maps that it is fed."""

    def build(maps: Maps) -> OldFile:
        file = OldFile(6)
        x = file.input((1, 3, *maps), "x")
        channels = data.get("output", 3)
        file.add(type, [x], [(1, channels, *map(rule, maps))], data, blobs, name="y")
        return file

    return build


def pooling(method: str, exclude: bool, auto_pad: str, rule: Rule) -> Callable[[Maps], OldFile]:
    data = {"pool-method": method, "kernel": "3,3", "strides": "2,2", "auto_pad": auto_pad}
    return layer("Pooling", {**data, "exclude-pad": str(exclude).lower()}, rule)


def convolution(auto_pad: str, rule: Rule, **more: Any) -> Callable[[Maps], OldFile]:
    data = {"kernel": "3,3", "strides": "2,2", "auto_pad": auto_pad, "output": 2, "group": 1}
    return layer("Convolution", {**data, **more}, rule, weights=W)


def resample(kind: str, factor: float) -> Callable[[Maps], OldFile]:
    data = {"type": f"caffe.ResampleParameter.{kind}", "factor": factor, "antialias": 0}
    return layer("Resample", data, lambda n: math.ceil(np.float32(n) * np.float32(factor)))


def interp(zoom: int, shrink: int, **more: Any) -> Callable[[Maps], OldFile]:
    data = {"zoom_factor": zoom, "shrink_factor": shrink, "align_corners": 0, **more}
    return layer("Interp", data, lambda n: int(n * zoom / shrink))


def averaged(kernel: int, stride: int, begin: int, end: int) -> Callable[[Maps], OldFile]:
    """The mean with padding that counts, rounded up."""
    data = {
        "pool-method": "avg", "exclude-pad": "false", "kernel": f"{kernel},{kernel}",
        "strides": f"{stride},{stride}", "pads_begin": f"{begin},{begin}",
        "pads_end": f"{end},{end}", "rounding_type": "ceil",
    }  # fmt: skip
    return layer("Pooling", data, lambda n: old_size(n, kernel, stride, begin, end, floor=False))


def flattened(maps: Maps) -> OldFile:
    file = OldFile(6)
    data = {"axis": 1, "end_axis": 2}
    file.add("Flatten", [file.input((1, 3, *maps), "x")], [(1, 3 * maps[0], maps[1])], data)
    return file


def cropped(maps: Maps) -> OldFile:
    file = OldFile(6)
    data = {"axis": "2,3", "crop_begin": "1,2", "crop_end": "2,0"}
    file.add("Crop", [file.input((1, 3, *maps), "x")], [(1, 3, maps[0] - 3, maps[1] - 2)], data)
    return file


def largest(maps: Maps) -> OldFile:
    file = OldFile(6)
    x = file.input((1, 3, *maps), "x")
    file.add("ArgMax", [x], [(1, 1, 2, 1)], {"top_k": 2, "out_max_val": 0}, name="y")
    return file


LAYERS: dict[str, Callable[[Maps], OldFile]] = {
    **{
        f"{method} of {auto_pad}{', which counts' * (not exclude)}":
        pooling(method, exclude, auto_pad, rule)
        for method in ("max", "avg") for exclude in (True, False)
        for auto_pad, rule in (
            ("same_upper", SAME_UPPER), ("same_lower", SAME_LOWER),
            ("valid", lambda n: (n - 3) // 2 + 1),
        )
    },
    "convolution of same_upper": convolution("same_upper", SAME_UPPER),
    "convolution of same_lower": convolution("same_lower", SAME_LOWER),
    "convolution of same_lower as it is today": convolution("same_lower", SAME_UPPER),
    "convolution of same_lower, one by one":
        convolution("same_lower", lambda n: n, strides="1,1"),
    "mean whose last window begins in the padding": averaged(3, 3, 1, 1),
    "mean whose last window overhangs": averaged(3, 2, 1, 1),
    "mean of windows apart": averaged(2, 3, 0, 1),
    "nearest, to half": resample("NEAREST", 0.5),
    "nearest, by three": resample("NEAREST", 3),
    "linear, by one and a half": resample("LINEAR", 1.5),
    "linear, by three quarters": resample("LINEAR", 0.75),
    "interp to half": interp(1, 2),
    "interp by two": interp(2, 1),
    "interp by two thirds, the corners in place": interp(2, 3, align_corners=1),
    "interp of a part, to sizes":
        layer("Interp", {"height": 6, "width": 6, "pad_beg": -1, "pad_end": -2}, lambda _: 6),
    "flatten within": flattened,
    "crop": cropped,
    "arg max": largest,
}  # fmt: skip
#: The second is today's size too, the third is not: 7 is odd.
SIZES: list[tuple[Maps, Maps]] = [
    ((9, 9), (8, 8)), ((8, 8), (12, 16)), ((8, 8), (11, 13)), ((7, 7), (10, 12)),
]  # fmt: skip


@pytest.mark.parametrize(("here", "there"), SIZES)
@pytest.mark.parametrize("name", LAYERS)
def test_maps_of_another_size(name: str, here: Maps, there: Maps) -> None:
    if name.endswith("as it is today"):  # which of the rules it is an even size does not say
        here = (7, 9)
    reshaped, fresh = agree(LAYERS[name], here, there, {"x": (1, 3, *there)})
    xml, weights = ir.dumps(reshaped)
    theirs = ask("values", xml.decode(), weights, list(fresh.values()))
    mine = ir.run(reshaped, fresh)
    for found, want in zip(mine.values(), theirs, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def agree(
    build: Callable[[Any], OldFile], here: Any, there: Any, shapes: dict[str, tuple[int, ...]]
) -> tuple[ir.Model, dict[str, Array]]:
    """An old file reshaped against that of the other size: the bits of both."""
    one, other = build(here), build(there)
    reshaped, written = ir.loads(one.xml, one.bin), ir.loads(other.xml, other.bin)
    assert written.origin is not None
    assert not [remark for remark in written.origin.remarks if remark.kind == "unlike"]
    ir.reshape(reshaped, shapes)
    fresh = {name: draw(*dims) for name, dims in shapes.items()}
    for found, want in zip(
        ir.run(reshaped, fresh).values(), ir.run(written, fresh).values(), strict=True
    ):
        np.testing.assert_array_equal(found, want)
    return reshaped, fresh


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_poolings_at_random(data: st.DataObject) -> None:
    kernel, stride = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    begin, end = (data.draw(st.integers(0, kernel - 1)) for _ in range(2))
    floor, exclude = data.draw(st.booleans()), data.draw(st.booleans())
    method = data.draw(st.sampled_from(["max", "avg"]))
    here, there = (data.draw(st.integers(kernel, 12)) for _ in range(2))

    def built(size: int) -> OldFile:
        file = OldFile(6)
        words = {
            "kernel": kernel, "strides": stride, "pads_begin": begin, "pads_end": end,
            "pool-method": method, "exclude-pad": str(exclude).lower(),
            "rounding_type": "floor" if floor else "ceil",
        }  # fmt: skip
        out = old_size(size, kernel, stride, begin, end, floor=floor)
        file.add("Pooling", [file.input((1, 2, size), "x")], [(1, 2, out)], words, name="y")
        return file

    reshaped, fresh = agree(built, here, there, {"x": (1, 2, there)})
    out = old_size(there, kernel, stride, begin, end, floor=floor)
    assume(out > 0)
    want = pooled(fresh["x"], [kernel], [stride], [begin], [end], [out], method, exclude)
    np.testing.assert_allclose(ir.run(reshaped, fresh)["y"], want, rtol=1e-4, atol=1e-5)


# The batch, and the steps of sequences.


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("kind", "gates", "states"), [("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)]
)
def test_sequences(kind: str, gates: int, states: int, fed: bool, axis: int) -> None:
    blobs = {"weights": draw(gates * 2, 5), "biases": draw(gates * 2)}

    def dims(batch: int, steps: int, width: int) -> tuple[int, ...]:
        return (batch, steps, width) if axis else (steps, batch, width)

    def built(sizes: tuple[int, int]) -> OldFile:
        file, batch = OldFile(6), sizes[0]
        spots = [file.input(dims(*sizes, 3), "x")]
        spots += [file.input((batch, 2), f"s{i}") for i in range(states if fed else 0)]
        outputs = [dims(*sizes, 2), *[(batch, 2)] * states]
        data = {"hidden_size": 2, "axis": axis}
        file.many(f"{kind}Sequence", spots, outputs, data, blobs, name="y")
        return file

    for there in ((2, 4), (1, 7), (3, 2)):
        shapes = {"x": dims(*there, 3)}
        shapes |= {f"s{i}": (there[0], 2) for i in range(states if fed else 0)}
        agree(built, (1, 4), there, shapes)


def test_a_product_whose_output_has_more_axes_takes_another_batch() -> None:
    weights = draw(5, 12)

    def built(batch: int) -> OldFile:
        file = OldFile(6)
        x = file.input((batch, 3, 2, 2), "x")
        blobs = {"weights": weights}
        file.add("FullyConnected", [x], [(batch, 5, 1, 1)], {"out-size": 5}, blobs)
        return file

    agree(built, 1, 3, {"x": (3, 3, 2, 2)})


# What is of one size alone.


def test_a_product_refuses_larger_maps() -> None:
    file = OldFile(6)
    x = file.input((1, 3, 2, 2), "x")
    file.add("FullyConnected", [x], [(1, 5)], {"out-size": 5}, {"weights": draw(5, 12)})
    with pytest.raises(IRError, match="48 and 12 differ"):
        ir.reshape(ir.loads(file.xml, file.bin), {"x": "1,3,4,4"})


def caffe() -> OldFile:
    """The sizes that Caffe's Interp has by a zoom, which the old runtime's rule gives not."""
    file = OldFile(6)
    r = file.add("ReLU", [file.input((1, 2, 4, 4), "x")], [(1, 2, 4, 4)], name="r")
    file.add("Interp", [r], [(1, 2, 7, 7)], {"zoom_factor": 2, "shrink_factor": 1}, name="y")
    return file


def mxnet() -> OldFile:
    file = OldFile(6)
    x, image = file.input((1, 2, 2, 2), "map"), file.input((1, 3, 8, 8), "x")
    data = {"min_size": "2", "offset": 0.5, "scale_all_sizes": 0, "variance": "0.1"}
    file.add("PriorBox", [x, image], [(1, 2, 16)], data, name="y")
    return file


@pytest.mark.parametrize("way", ["read", "pickled"])
@pytest.mark.parametrize(("build", "words"), [(caffe, "by no factor"), (mxnet, "the height of")])
def test_other_sizes_are_refused_where_the_file_says_one_alone(
    build: Callable[[], OldFile], words: str, way: str
) -> None:
    file = build()
    model = ir.loads(file.xml, file.bin)
    if way == "pickled":
        model = pickle.loads(pickle.dumps(model))
    before, dims = ir.dumps(model), model.inputs["x"].shape.static
    with pytest.raises(IRError, match=words) as caught:
        ir.reshape(model, {"x": (*dims[:2], 16, 16)})
    assert str(list(dims)) in caught.value.message
    assert ir.dumps(model) == before
    if build is caffe:
        ir.reshape(model, {"x": (5, *dims[1:])})


def test_what_was_written_follows_too(tmp_path: Path) -> None:
    file = resample("LINEAR", 1.5)((8, 8))
    ir.write(ir.loads(file.xml, file.bin), tmp_path / "new.xml")
    model = ir.read(tmp_path / "new.xml")
    ir.reshape(model, {"x": "1,3,5,6"})
    assert ir.infer(model)["y"].shape.static == (1, 3, 8, 9)


@pytest.mark.parametrize(
    "entry",
    [
        {"op": "rename", "any": "x", "to": "picture"},
        {"op": "rename", "any": "r", "to": "q"},
        {"op": "bypass", "layer": "r"},
    ],
    ids=["the input", "what feeds it", "without what fed it"],
)
def test_an_edit_does_not_make_other_sizes_right(entry: dict[str, Any]) -> None:
    file = caffe()
    model = ir.edit(ir.loads(file.xml, file.bin), [entry]).model
    name = model.parameters[0].name
    assert ir.reshape(model, {name: "3,2,4,4"})["y"].shape.static == (3, 2, 7, 7)
    with pytest.raises(IRError, match="it is fed"):
        ir.reshape(model, {name: "1,2,5,5"})
