"""IR4xx: the attributes of operations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from ....layers.base import Attribute, Op
from ....layers.sequence_recurrent import ACTIVATIONS, Along, Recurrent
from ....layers.windows import Windowed
from ....schemas.errors import describe
from ....schemas.printing import shown
from . import known
from .loose import Examined, LooseLayer, LooseModel
from .note import Note, listed
from .weights import element_type

#: Read on any layer as further information; and what broadcasting of kind pdpd adds.
_FREE = frozenset({"PrimitivesPriority", "alt_width", "auto_broadcast.auto_broadcast_axis"})

#: Optional in the specification; OpenVINO crashes without.
CRASHES = {
    ("Col2Im", 15): ("strides", "dilations", "pads_begin", "pads_end"),
    ("DetectionOutput", 1): ("keep_top_k",),
    ("DetectionOutput", 8): ("keep_top_k",),
    ("AvgPool", 16): ("dilations",),
    ("MaxPool", 8): ("dilations",),
    ("MaxPool", 14): ("dilations",),
    ("Assign", 6): ("variable_id",),
    ("ReadValue", 6): ("variable_id",),
}
#: Optional in the specification; OpenVINO refuses the model without.
REFUSED = {
    ("Bucketize", 3): ("output_type",),
    ("ShapeOf", 3): ("output_type",),
    ("DeformableConvolution", 1): ("group", "deformable_group"),
    ("DeformableConvolution", 8): ("group", "deformable_group"),
    ("DepthToSpace", 1): ("block_size",),
    ("SpaceToDepth", 1): ("block_size",),
    ("PSROIPooling", 1): ("group_size", "mode"),
}
#: Optional in the specification with one default; OpenVINO takes another.
OTHERWISE = {
    ("Broadcast", 1): {"mode": ("numpy", "none")},
    ("CTCLoss", 4): {"ctc_merge_repeated": ("true", "false")},
    ("ExperimentalDetectronPriorGridGenerator", 6): {"flatten": ("true", "false")},
    ("RegionYolo", 1): {"do_softmax": ("true", "false")},
    ("SoftMax", 1): {"axis": ("1", "0")},
    ("PSROIPooling", 1): {"spatial_bins_x": ("1", "0"), "spatial_bins_y": ("1", "0")},
    ("LSTMSequence", 5): {"activations": ("sigmoid, tanh, tanh", "no functions")},
    ("GRUSequence", 5): {"activations": ("sigmoid, tanh", "no functions")},
    ("RNNSequence", 5): {"activations": ("tanh", "no functions")},
}

#: Words that OpenVINO takes in the specification's letters alone; most it takes in any case.
EXACT = {
    ("DeformablePSROIPooling", 1): "mode",
    ("DetectionOutput", 1): "code_type",
    ("DetectionOutput", 8): "code_type",
    ("Interpolate", 1): "mode",
    ("PSROIPooling", 1): "mode",
    ("ROIPooling", 1): "method",
}

#: Required by the specification, although the classes here have a default.
NEEDED_ALL_THE_SAME = {
    ("Const", 1): ("offset", "size"),
}
#: Required by the specification; OpenVINO reads and runs the model without, and takes this.
_TAKEN = {
    ("RandomUniform", 8): {"global_seed": "0", "op_seed": "0"},
    ("ReadValue", 6): {
        "variable_type": "the type of the initial value",
        "variable_shape": "the shape of the initial value",
    },
}
#: Of operations that Model Optimizer gave them to for all OpenVINO's readers, which never read
#: them there: nothing is lost with them.
_LEFT_OVER = {
    "Convolution": {"output_padding"},
    "GroupConvolution": {"output_padding"},
    "BinaryConvolution": {"output_padding"},
    "DeformableConvolution": {"output_padding"},
    "PriorBox": {"img_h", "img_size", "img_w", "step_h", "step_w"},
    "PriorBoxClustered": {"flip", "img_h", "img_size", "img_w"},
    "DetectionOutput": {
        "eta", "height", "height_scale", "interp_mode", "pad_mode", "pad_value", "prob",
        "resize_mode", "visualize", "visualize_threshold", "width", "width_scale",
    },
}  # fmt: skip

#: The least value of an attribute, by its name; of a list, of each item.
_LEAST = {
    "strides": 1, "dilations": 1, "kernel": 1, "block_size": 1, "group": 1, "groups": 1,
    "num_splits": 1, "hidden_size": 1, "levels": 2, "pooled_h": 1, "pooled_w": 1,
    "num_groups": 1, "deformable_group": 1, "output_dim": 1, "group_size": 1, "num_classes": 1,
    "output_padding": 0, "sampling_ratio": 0, "feat_stride": 1, "base_size": 1,
    "pre_nms_topn": 1, "post_nms_topn": 1, "eps": 0, "epsilon": 0, "spatial_scale": 0, "clip": 0,
}  # fmt: skip
#: Those of which what is less means the least, to OpenVINO and here.
_ANY = frozenset({("ExperimentalDetectronROIFeatureExtractor", "sampling_ratio")})
#: What to write where exporters leave less than that.
_LEAST_MEANS = {
    "sampling_ratio": "write 0: as many samples as a cell has pixels, which torchvision means by "
    "-1; of none at all ROIAlign makes zeros",
}
#: Pads of these are counts: a negative one is read as a huge number.
_UNSIGNED_PADS = frozenset({"MaxPool", "AvgPool"})

#: Lists of numbers: a comma may end them, and a comma and a blank may not.
_NUMBERS = frozenset({"int[]", "float[]"})

_INT64 = range(-(2**63), 2**63)


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    for node in model.nodes:
        yield from node.examined.notes


@cache
def _described(kind: type[Op]) -> dict[str, Attribute]:
    return {row.name: row for row in kind.describe()}


#: Layers with the same attributes, all of them right, share one operation.
_SHARED: dict[tuple[type[Op], tuple[tuple[str, str], ...]], Examined] = {}


def examine(node: LooseLayer) -> Examined:
    """The operation of one layer, and everything that is wrong with its attributes."""
    kind = node.kind
    if kind is None:
        return Examined(None)
    key = (kind, tuple(node.data.items()))
    shared = _SHARED.get(key)
    if shared is not None:
        return shared
    op, values = _values(node, kind)
    notes = [*_names(node, kind), *values, *_practice(node, kind)]
    if op is not None:
        notes += _ranges(node, op)
        notes += _activations(node, op)
    found = Examined(op, tuple(notes))
    if op is not None and not notes and node.data and kind.xml_type != "Const":
        if len(_SHARED) > 10_000:
            _SHARED.clear()
        _SHARED[key] = found
    return found


def _unknown(data: Mapping[str, str], kind: type[Op]) -> list[str]:
    """Names among the attributes that the operation does not have; not all of very many."""
    described = _described(kind)
    free = _FREE | {"value"} if kind.xml_type == "Const" else _FREE
    return [name for name in data if name not in described and name not in free][:100]


def misspelt(data: Mapping[str, str], kind: type[Op]) -> dict[str, str]:
    """Names that the operation does not have, and the name that each was meant to be."""
    spare = [name for name in _described(kind) if name not in data]
    found: dict[str, str] = {}
    for name in _unknown(data, kind) if spare else ():
        near = known.near(name, spare)
        if near is not None and not _left_over(kind, name):
            found[name] = near
    return found


def _left_over(kind: type[Op], name: str) -> bool:
    return name in _LEFT_OVER.get(kind.xml_type, ())


def _names(node: LooseLayer, kind: type[Op]) -> Iterator[Note]:
    """Attributes that the operation does not have."""
    described = _described(kind)
    meant = misspelt(node.data, kind)
    for name in _unknown(node.data, kind):
        near = meant.get(name)
        if near is not None:
            yield Note(
                "IR402", f"{kind.spec()} has no attribute {name}; {near} is probably meant",
                node.data_element, node, name, f"write {near}={shown(node.data[name])}",
            )  # fmt: skip
        elif not _left_over(kind, name):
            names = ", ".join(described) or "none"
            yield Note(
                "IR403", f"{kind.spec()} has no attribute {name}, it is ignored",
                node.data_element, node, name, f"its attributes are: {names}"[:300],
            )  # fmt: skip
    left = [name for name in node.data if _left_over(kind, name) and name not in described]
    if left:
        yield Note(
            "IR413", f"{kind.spec()} never had {listed(left, 3)}: left over from Model Optimizer, "
            "ignored by OpenVINO", node.data_element, node, left[0],
        )  # fmt: skip


def _values(node: LooseLayer, kind: type[Op]) -> tuple[Op | None, list[Note]]:
    """The operation; values that cannot be read, and required attributes that are not there."""
    notes: list[Note] = []
    op: Op | None = None
    described = _described(kind)
    meant = set(misspelt(node.data, kind).values())  # told as such, and not as missing too
    values: dict[str, Any] = {name: text for name, text in node.data.items() if name in described}
    bad: set[str] = set()
    if (
        kind.xml_type == "Const"
        and "shape" not in values
        and values.get("element_type") == "string"
    ):
        values["shape"] = ""
    if kind.xml_type == "Const" and "value" in node.data:
        values.setdefault("offset", "0")
        values.setdefault("size", "0")
    written = values.get("element_type", "")
    if kind.xml_type == "Const" and written != written.lower() and element_type(node) is not None:
        notes.append(
            Note(
                "IR404", f"element_type={shown(written)} of {kind.spec()} is in capitals, which "
                "OpenVINO refuses of constants", node.data_element, node, "element_type",
                f"write {shown(written.lower())}",
            )
        )  # fmt: skip
    notes += _other_letters(node, kind)
    for name, _, _ in kind._choices():
        text = values.get(name)
        if text is not None:
            found = list(_choice(node, kind, name, text))
            if found:
                notes += found
                bad.add(name)
                del values[name]
    for name, text in list(values.items()):
        problem = _number(described[name].kind, text)
        if problem is not None:
            bad.add(name)
            del values[name]
            notes.append(
                _value(node, kind, name, f"{name}={shown(text)} of {kind.spec()}: {problem}")
            )
    try:
        op = kind.read(values)
    except ValidationError as error:
        for row in error.errors(include_url=False):
            name = ".".join(str(part) for part in row["loc"] if isinstance(part, str))
            if row["type"] == "missing":
                if name and name not in bad and name not in meant:
                    notes.append(_missing(node, kind, name))
                continue
            message = row["msg"].removeprefix("Value error, ")
            if name:
                message = f"{name}={shown(node.data.get(name, ''))} of {kind.spec()}: {message}"
            notes.append(_value(node, kind, name or None, message))
    except ValueError as error:
        notes.append(_value(node, kind, None, f"{kind.spec()}: {error}"))
    return (None if bad else op), notes


def _value(node: LooseLayer, kind: type[Op], name: str | None, message: str) -> Note:
    row = _described(kind).get(name or "")
    hints = {
        "int": "write a whole number", "float": "write a number such as 0.5",
        "bool": 'write "true" or "false"', "int[]": "write whole numbers with commas between",
        "float[]": "write numbers with commas between", "element_type": "write one such as f32",
        "partial_shape": "write sizes with commas between, ? or a..b where one is not known",
    }  # fmt: skip
    hint = hints.get(row.kind) if row is not None else None
    return Note("IR404", message, node.place, node, name, hint)


def _other_letters(node: LooseLayer, kind: type[Op]) -> Iterator[Note]:
    """A word in another letter case than the one that OpenVINO takes."""
    name = EXACT.get((kind.xml_type, kind.number))
    if name is None or name not in node.data:
        return
    row, text = _described(kind)[name], node.data[name]
    for word in row.choices or [row.default or ""]:
        if word.lower() == text.lower() and word != text:
            yield Note(
                "IR405", f"{name}={shown(text)} of {kind.spec()} is not {shown(word)}, and "
                "OpenVINO refuses it in other letters", node.data_element, node, name,
                f"write {shown(word)}",
            )  # fmt: skip


def _choice(node: LooseLayer, kind: type[Op], name: str, text: str) -> Iterator[Note]:
    """A value that is one of a few words."""
    row = _described(kind)[name]
    table = {field: (words, later) for field, words, later in kind._choices()}
    words, later = table[name]
    choice = words.get(text.lower())
    if choice is None:
        near = known.near(text, row.choices)
        hint = f"did you mean {near}?" if near else None
        allowed = ", ".join(row.choices)
        yield Note(
            "IR405", f"{name}={shown(text)} of {kind.spec()} is not one of {allowed}",
            node.data_element, node, name, hint,
        )  # fmt: skip
        return
    for rule in later:
        if rule.choice == choice and kind.number < rule.version:
            yield Note(
                "IR406", f'{name}="{choice}" came with {kind.xml_type}-{rule.version}, this is '
                f"{kind.spec()}", node.data_element, node, name,
                f'write version="opset{rule.version}", or another {name}',
            )  # fmt: skip


def _missing(node: LooseLayer, kind: type[Op], name: str) -> Note:
    crash = name in CRASHES.get((kind.xml_type, kind.number), ())
    what = ", OpenVINO crashes without" if crash else ""
    example = _described(kind)[name]
    words = f" (one of {', '.join(example.choices)})" if example.choices else ""
    return Note(
        "IR407" if crash else "IR401",
        f"{kind.spec()} has no attribute {name}, which it needs{what}", node.place, node, name,
        f"add {name}{words}",
    )  # fmt: skip


def _practice(node: LooseLayer, kind: type[Op]) -> Iterator[Note]:
    """Optional attributes without which OpenVINO does something else than specified."""
    key = kind.xml_type, kind.number
    described = _described(kind)
    meant = set(misspelt(node.data, kind).values())

    def lacks(name: str) -> bool:
        row = described.get(name)
        return row is not None and not (row.required or name in node.data or name in meant)

    for name, instead in without(node.data, kind).items():
        if name in meant or node.data.get(name):  # only blanks: told as a value
            continue
        yield Note(
            "IR412", f"{kind.spec()} has no attribute {name}, which the specification asks for; "
            f"OpenVINO takes {instead}", node.place, node, name, f"add {name}",
        )  # fmt: skip
    for name in NEEDED_ALL_THE_SAME.get(key, ()):
        if lacks(name) and not (kind.xml_type == "Const" and "value" in node.data):
            yield _missing(node, kind, name)
    for name in CRASHES.get(key, ()):
        if lacks(name):
            yield Note(
                "IR407", f"{kind.spec()} has no {name}, which the specification does not ask for; "
                "OpenVINO 2026.4.1 crashes without", node.place, node, name,
                f'add {name}, such as {name}="{_default(name)}"',
            )  # fmt: skip
        elif not node.data.get(name, "-") and not described[name].required:
            # OpenVINO writes it so itself, and crashes when it runs what it wrote.
            yield Note(
                "IR411", f"{name} of {kind.spec()} is empty, as OpenVINO writes it for "
                "AvgPool-16; 2026.4.1 crashes at inference", node.data_element, node, name,
                f'write {name}="{_default(name)}"',
            )  # fmt: skip
    for name in REFUSED.get(key, ()):
        if lacks(name):
            yield Note(
                "IR408", f"{kind.spec()} has no {name}, which the specification does not ask for; "
                "OpenVINO refuses the model without", node.place, node, name,
                f"add {name}={shown(described[name].default or '')}",
            )  # fmt: skip
    for name, (specified, instead) in OTHERWISE.get(key, {}).items():
        if lacks(name):
            yield Note(
                "IR409", f"{kind.spec()} has no {name}: the specification says {specified}, "
                f"OpenVINO takes {instead}", node.place, node, name,
                f'add {name}="{specified}"',
            )  # fmt: skip


def without(data: Mapping[str, str], kind: type[Op]) -> dict[str, str]:
    """Required attributes that are not there and that OpenVINO does without; what it takes."""
    if not issubclass(kind, Windowed):
        table = _TAKEN.get((kind.xml_type, kind.number), {})
        return {name: words for name, words in table.items() if name not in data}
    # Without any of these lists nothing tells how many axes there are.
    if not any(data.get(name, "").strip() for name in kind.counted):
        return {}
    settled = data.get("auto_pad", "explicit").lower() != "explicit"
    return {
        name: f"{number} for each axis"
        for name, number in kind.neutral.items()
        if not data.get(name, "").strip() and not (settled and name.startswith("pads"))
    }


def taken(data: Mapping[str, str], kind: type[Op]) -> dict[str, str]:
    """The texts that say what OpenVINO takes for such attributes, where a text can say it."""
    if issubclass(kind, Windowed):
        full = kind.completed(dict(data))
        return {name: ", ".join(map(str, full[name])) for name in kind.neutral if name in full}
    table = _TAKEN.get((kind.xml_type, kind.number), {})
    return {name: text for name, text in table.items() if text.isdigit()}


def _default(name: str) -> str:
    return "0, 0" if name.startswith("pads") else "1, 1"


def _number(kind: str, text: str) -> str | None:
    """What is wrong with numbers that do not fit or end in blanks, told before they are read."""
    if kind in _NUMBERS and text[-1:].isspace() and not text.rpartition(",")[2].strip():
        where = "blanks behind the last comma" if "," in text else "blanks instead of numbers"
        return f"{where}, with which OpenVINO refuses the model"
    if len(text) < 18 and not (kind.startswith("float") and "e" in text.lower()):
        return None
    if kind in ("int", "int[]"):
        for field in text.split(","):
            digits = field.strip().lstrip("-")
            if digits.isdigit() and (len(digits) > 30 or int(field) not in _INT64):
                return f"{shown(field.strip(), 30)} does not fit 64 bits"
    if kind in ("float", "float[]"):
        for field in text.split(","):
            word = field.strip().lower()
            try:
                if math.isinf(float(word)) and not word.lstrip("+-").startswith("inf"):
                    return f"{shown(word, 30)} is too large"
            except ValueError:
                continue
    return None


def _ranges(node: LooseLayer, op: Op) -> Iterator[Note]:
    """Values that no operation can work with."""
    data: Mapping[str, str] = node.data
    for name in data:
        least = _LEAST.get(name)
        if name in ("pads_begin", "pads_end") and op.xml_type in _UNSIGNED_PADS:
            least = 0
        if least is None or name not in _described(type(op)) or (op.xml_type, name) in _ANY:
            continue
        value = getattr(op, name, None)
        items = value if isinstance(value, tuple) else (value,)
        low = [item for item in items if isinstance(item, (int, float)) and item < least]
        if low:
            yield Note(
                "IR410", f"{name}={shown(data[name])} of {op.spec()}: {low[0]} is less than "
                f"{least}", node.data_element, node, name,
                _LEAST_MEANS.get(name, f"the least is {least}"),
            )  # fmt: skip


def _activations(node: LooseLayer, op: Op) -> Iterator[Note]:
    """The functions that a recurrent layer names: known ones, and one for each that it uses."""
    if not isinstance(op, Recurrent) or "activations" not in node.data:
        return
    names, needed = op.activations, len(op.usual)
    if not names and isinstance(op, Along):
        yield Note(
            "IR411", f"activations of {op.spec()} is empty, as OpenVINO writes it where none are "
            "named; 2026.4.1 does not compile that", node.data_element, node, "activations",
            f'write activations="{", ".join(op.usual)}"',
        )  # fmt: skip
        return
    unknown = [name for name in names if name.lower() not in ACTIVATIONS]
    if unknown:
        near = known.near(unknown[0], ACTIVATIONS)
        yield Note(
            "IR414", f"activations={shown(node.data['activations'])} of {op.spec()}: "
            f"{shown(unknown[0])} is not one of {', '.join(ACTIVATIONS)}", node.data_element, node,
            "activations", f"did you mean {near}?" if near else None,
        )  # fmt: skip
    elif len(names) < needed:
        yield Note(
            "IR414", f"activations={shown(node.data['activations'])} of {op.spec()} names "
            f"{len(names)} functions, it uses {needed}", node.data_element, node, "activations",
            f'usual is activations="{", ".join(op.usual)}"',
        )  # fmt: skip


__all__ = ["CRASHES", "OTHERWISE", "REFUSED", "describe", "rules"]
