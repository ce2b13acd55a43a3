"""Sample calls of sequences: classes and attention."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import Array


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 9999))
    if op.startswith("OneHot"):
        return one_hot(op, rng, numbers)
    if op == "ScaledDotProductAttentionV13":
        return attention(op, rng, numbers)
    batch, steps, classes = rng.randint(1, 3), rng.randint(1, 7), rng.randint(2, 5)
    lengths = numbers.integers(1, steps + 1, batch)
    kind = rng.choice(["i4", "i8"])
    if op == "CTCGreedyDecoderV1":
        data = numbers.normal(size=(steps, batch, classes)).astype("f4")
        mask = (np.arange(steps)[:, None] < lengths).astype("f4")
        return Call(op, [data, mask], {"ctc_merge_repeated": rng.choice(["true", "false"])})
    data = numbers.normal(size=(batch, steps, classes)).astype("f4")
    blank = np.array(rng.randrange(classes), kind)
    if op == "CTCGreedyDecoderSeqLenV6":
        attributes = {
            "merge_repeated": rng.choice(["true", "false"]),
            "classes_index_type": rng.choice(["i32", "i64"]),
            "sequence_length_type": rng.choice(["i32", "i64"]),
        }
        inputs = [data, lengths.astype(kind), *([blank.reshape(1)] if rng.random() < 0.5 else [])]
        return Call(op, inputs, attributes)
    label_lengths = np.array([rng.randint(1, int(n)) for n in lengths])
    labels = (int(blank) + numbers.integers(1, classes, (batch, steps))) % classes
    attributes = {
        "preprocess_collapse_repeated": rng.choice(["true", "false"]),
        "ctc_merge_repeated": rng.choice(["true", "false"]),
        "unique": rng.choice(["true", "false", "false"]),
    }
    whole = [lengths, labels, label_lengths, blank]
    return Call(op, [data, *(part.astype(kind) for part in whole)], attributes, rtol=1e-4)


def one_hot(op: str, rng: random.Random, numbers: np.random.Generator) -> Call:
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    depth = rng.randint(1, 5)
    low = -depth - 1 if rng.random() < 0.5 else 0
    indices = numbers.integers(low, depth + 2, shape).astype(rng.choice(["i4", "i8"]))
    kind = rng.choice(["f4", "f4", "i4", "i8", "u1", "f2", "?"])
    values = [np.array(value).astype(kind) for value in (rng.choice([1, 5]), 0)]
    data = {"axis": str(rng.randint(-len(shape) - 1, len(shape)))}
    if op == "OneHotV16":
        data["negative_indices_mode"] = rng.choice(["normalize", "ignore_negative"])
    return Call(op, [indices, np.array(depth), *values], data, const=rng.choice([(1,), (1,), ()]))


def attention(op: str, rng: random.Random, numbers: np.random.Generator) -> Call:
    batch = [rng.randint(1, 3) for _ in range(rng.choice([1, 2, 2]))]
    rows, columns, width, depth = (rng.randint(1, 5) for _ in range(4))

    def make(*shape: int) -> Array:
        return numbers.normal(size=shape).astype("f4")

    inputs = [make(*batch, rows, width), make(*batch, columns, width)]
    inputs.append(make(*batch, columns, depth))
    if rng.random() < 0.6:
        lead = batch if rng.random() < 0.5 else [1] * len(batch)
        mask = make(*lead, rng.choice([1, rows]), columns)
        if rng.random() < 0.4:
            mask = mask > -1
            mask[..., 0] = True
        inputs.append(mask)
        if rng.random() < 0.5:
            inputs.append(np.array(rng.choice([0.5, 2]), "f4"))
    data = {"causal": rng.choice(["true", "false"])}
    return Call(op, inputs, data, rtol=1e-4, atol=1e-5)


OPS = (
    "OneHotV1", "OneHotV16", "CTCGreedyDecoderV1", "CTCGreedyDecoderSeqLenV6", "CTCLossV4",
    "ScaledDotProductAttentionV13",
)  # fmt: skip
CALLS = [draw(op, random.Random(n)) for op in OPS for n in range(3)]
