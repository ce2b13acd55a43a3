"""Errors of attributes."""

from __future__ import annotations

import random
import re

from .base import (
    Element,
    File,
    Made,
    at,
    attributes,
    is_needed,
    kinds,
    names,
    pick,
    rename_attribute,
    set_attribute,
    text,
    without,
)


@text("error")
def lost_required(file: File, rng: random.Random) -> Made:
    rows = [
        (data, name)
        for data, name, row in attributes(file)
        if is_needed(data, row) and not taken(data, name)
    ]
    if not rows:
        return None
    data, name = rng.choice(rows)
    return set_attribute(file, data, name, None), at(data), names(data)


def taken(data: Element, name: str) -> bool:
    """Whether OpenVINO takes the same, or the same value comes in, where it is not said."""
    kind = data.getparent().get("type")
    if name in ("strides", "dilations", "pads_begin", "pads_end"):
        neutral = "0" if name.startswith("pads") else "1"
        same = set(re.findall(r"-?\d+", data.get(name))) <= {neutral}
        return same or (kind.endswith("BackpropData") and len(data.getparent().find("input")) > 2)
    return kind in ("RandomUniform", "ReadValue") and name != "variable_id"


@text("warning")
def lost_what_openvino_takes(file: File, rng: random.Random) -> Made:
    rows = [
        (data, name) for data, name, row in attributes(file)
        if is_needed(data, row) and taken(data, name)
        and data.get("auto_pad") in (None, "explicit")
    ]  # fmt: skip
    if not rows:
        return None
    data, name = rng.choice(rows)
    return set_attribute(file, data, name, None), at(data), names(data)


@text("error")
def misspelled_attribute(file: File, rng: random.Random) -> Made:
    rows = attributes(file)
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    new = rng.choice([name.capitalize(), name.upper(), name + "s", name[:-1],
                      name.replace("_", "-"),
                      name[0] + name[2:] if len(name) > 4 else name + "x"])  # fmt: skip
    if new == name or not new or new in data.attrib or new in kinds(data.getparent()):
        return None
    return rename_attribute(file, data, name, new), at(data), names(data)


@text("error")
def prefix_number(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind in ("int", "float", "int[]", "float[]"))
    rows = [r for r in rows if r[0].get(r[1]).strip()]
    if not rows:
        return None
    data, name, row = rng.choice(rows)
    old = data.get(name)
    if row.kind == "int":
        value = rng.choice(
            [
                old + "abc",
                old + ".7",
                old + "e2",
                "+" + old,
                "",
                "x",
                "1 2",
                "99999999999999999999",
            ]
        )
    elif row.kind == "float":
        value = rng.choice([old + "xyz", "1,5", "0x1p3", "", "abc", "1e999"])
    else:
        value = rng.choice(
            [
                old.replace(", ", ";") if ", " in old else old + ";1",
                old + "abc",
                ",".join([old, "", "1"]),
                "a, b",
            ]
        )
    return set_attribute(file, data, name, value), at(data), names(data)


@text("error")
def bad_bool(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind == "bool")
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    return (
        set_attribute(file, data, name, rng.choice(["yes", "maybe", "2", " true", "", "on"])),
        at(data),
        names(data),
    )


@text("error")
def bad_choice(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind == "enum")
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    return (
        set_attribute(file, data, name, rng.choice(["bogus", "", data.get(name) + "x"])),
        at(data),
        names(data),
    )


@text("error")
def bad_element_type(file: File, rng: random.Random) -> Made:
    rows = attributes(file, lambda row: row.kind == "element_type")
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    return (
        set_attribute(
            file, data, name, rng.choice(["float", "FP32", "BOOL", "", " f32", "f33", "int32"])
        ),
        at(data),
        names(data),
    )


@text("error")
def bad_shape(file: File, rng: random.Random) -> Made:
    rows = [
        d
        for d in file.all("layer/data")
        if d.getparent().get("type") == "Parameter" and d.get("shape")
    ]
    data = pick(rng, rows)
    if data is None:
        return None
    value = rng.choice(
        [
            "-2,3",
            "5..2",
            "1..-1",
            "1,,2",
            "1,",
            "a",
            "1.5",
            "[1,2",
            "-1..5",
            "99999999999999999999",
            "...,1",
        ]
    )
    return set_attribute(file, data, "shape", value), at(data), names(data)


@text("error")
def lost_data(file: File, rng: random.Random) -> Made:
    rows = [row for row in attributes(file) if is_needed(row[0], row[2])]
    if not rows:
        return None
    data, _, _ = rng.choice(rows)
    return without(file, data), {data.sourceline, data.sourceline - 1}, names(data)


@text("error")
def zero_strides(file: File, rng: random.Random) -> Made:
    rows = attributes(
        file,
        lambda row: (
            row.name in ("strides", "kernel", "dilations", "block_size", "group", "num_splits")
        ),
    )
    rows = [r for r in rows if r[0].get(r[1]).strip()]
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    value = re.sub(r"\d+", rng.choice(["0", "-1"]), data.get(name))
    return set_attribute(file, data, name, value), at(data), names(data)


@text("error")
def list_of_wrong_length(file: File, rng: random.Random) -> Made:
    rows = attributes(
        file,
        lambda row: row.name in ("strides", "kernel", "dilations", "pads_begin", "pads_end"),
    )
    rows = [r for r in rows if r[0].get(r[1]).strip()]
    if not rows:
        return None
    data, name, _ = rng.choice(rows)
    value = rng.choice([data.get(name) + ", 1", data.get(name).split(",")[0]])
    if value == data.get(name) or (
        data.get("auto_pad", "explicit") not in ("explicit", "notset") and name.startswith("pads")
    ):
        return None
    return set_attribute(file, data, name, value), at(data), names(data)


@text("error")
def crash_attribute(file: File, rng: random.Random) -> Made:
    table = {
        ("AvgPool", "opset16"): ["dilations"], ("Assign", "opset6"): ["variable_id"],
        ("ReadValue", "opset6"): ["variable_id"], ("DetectionOutput", "opset8"): ["keep_top_k"],
        ("DetectionOutput", "opset1"): ["keep_top_k"],
        ("Col2Im", "opset15"): ["strides", "dilations", "pads_begin", "pads_end"],
        ("Bucketize", "opset3"): ["output_type"], ("ShapeOf", "opset3"): ["output_type"],
        ("DepthToSpace", "opset1"): ["block_size"], ("SpaceToDepth", "opset1"): ["block_size"],
        ("PSROIPooling", "opset1"): ["group_size", "mode"], ("SoftMax", "opset1"): ["axis"],
        ("CTCLoss", "opset4"): ["ctc_merge_repeated"], ("Broadcast", "opset1"): ["mode"],
        ("RegionYolo", "opset1"): ["do_softmax"],
        ("DeformableConvolution", "opset8"): ["group", "deformable_group"],
    }  # fmt: skip
    for data in file.all("layer/data"):
        layer = data.getparent()
        wanted = table.get((layer.get("type"), layer.get("version")))
        if wanted:
            name = rng.choice(wanted)
            if name in data.attrib:
                return set_attribute(file, data, name, None), at(data), names(data)
    return None
