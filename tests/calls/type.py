"""Sample calls of the conversions of element types."""

from __future__ import annotations

import random

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__
from oracle import Call
from vinoir.schemas import Array, ElementType
from vinoir.schemas.packing import NF4

REAL = ("f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2")
WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "i4", "u4", "u1", "u2", "u3", "u6")
KINDS = ("f32", *REAL, *WHOLE, "boolean", "nf4", "f4e2m1", "f8e8m0")
#: What OpenVINO converts to only from reals, and only from 8 bits on.
FEW = ("nf4", "f4e2m1", "f8e8m0")
PROMOTED = [kind for kind in (*REAL, *WHOLE, "boolean") if kind not in ("u2", "u3", "u6")]

#: Why nobody is asked for bf16.
CUTS = "" if __cpu_features__.get("AVX512F") else "without AVX-512 what is left over is cut off"

DATA = np.array([[-3.7, 2.5, 0.0], [100.4, -0.5, 7.0]], np.float32)
TEXT = np.array([["ab", ""], ["grüße", "\u20ac"]], np.dtypes.StringDType())
BEGINS, ENDS = np.array([[0], [2]], "i4"), np.array([[2], [6]], "i4")

CALLS = [
    *(Call("ConvertV1", [DATA], {"destination_type": kind}) for kind in ("u8", "i64")),
    Call("ConvertV1", [DATA], {"destination_type": "bf16"}, differs=CUTS),
    *(Call("ConvertV1", [DATA], {"destination_type": kind}) for kind in ("f8e4m3", *FEW)),
    Call("ConvertV1", [(np.arange(8, dtype="u1") % 2, "u1")], {"destination_type": "f32"}),
    Call("ConvertLikeV1", [DATA, np.array([3], "i2")]),
    Call("ConvertPromoteTypesV14", [DATA, np.array([3], "i1")]),
    Call(
        "ConvertPromoteTypesV14",
        [np.array([3], "u8"), np.array([[-3]], "i1")],
        {"promote_unsafe": "true", "u64_integer_promotion_target": "f64"},
    ),
    Call("StringTensorPackV15", [BEGINS, ENDS, np.frombuffer(b"abcdef", "u1")]),
    Call("StringTensorUnpackV15", [TEXT]),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.choice([0, 1, 2, 3, 4]))]
    if op == "StringTensorUnpackV15":
        texts = [rng.choice(["", "a", "é", "€uro", "two words", "\n"]) for _ in range(size(shape))]
        data = np.array(texts, TEXT.dtype).reshape(shape)
        # OpenVINO's Python makes one string of none.
        differs = "" if texts else "empty strings do not arrive"
        return Call(op, [data], const=rng.choice([(), (0,)]), differs=differs)
    if op == "StringTensorPackV15":
        kind = rng.choice(["i4", "i8"])
        pairs = [sorted((rng.randint(0, 9), rng.randint(0, 9))) for _ in range(size(shape))]
        begins, ends = np.array(pairs, kind).reshape(*shape, 2).transpose(-1, *range(len(shape)))
        symbols = np.array([rng.randint(32, 126) for _ in range(9)], "u1")
        return Call(op, [begins.copy(), ends.copy(), symbols])
    if op == "ConvertPromoteTypesV14":
        other = shape if rng.random() < 0.5 else []
        data = {
            "promote_unsafe": rng.choice(["true", "true", "false"]),
            "pytorch_scalar_promotion": rng.choice(["true", "false"]),
            "u64_integer_promotion_target": rng.choice(["f32", "f64", "i64"]),
        }
        pair = [given(rng.choice(PROMOTED), rng, s) for s in (shape, other)]
        # Neither the CPU nor the reference has this operation.
        return Call(op, rng.sample(pair, 2), data, differs="not implemented")
    source, target = rng.choice(KINDS), rng.choice(KINDS)
    value = given(source, rng, shape)
    differs = ""
    if (source in FEW and target not in ("f32", "f16")) or size(shape) == 0:
        differs = "the source is not implemented"
    elif target in FEW and source not in ("f32", "f16", "bf16"):
        differs = "the target is not implemented"
    elif target in WHOLE and ElementType(target).bits < 8:
        differs = "the CPU crashes, sometimes later"
    elif target == "bf16" and source in WHOLE:
        differs = "odd halves are rounded down"
    elif source == "f64" and target in (*WHOLE, *REAL, "boolean"):
        differs = "the CPU stops at the ends, the reference wraps; narrow reals are rounded twice"
    elif target == "bf16":
        differs = CUTS
    if op == "ConvertLikeV1":
        return Call(op, [value, given(target, rng, [1])], differs="not implemented")
    return Call(op, [value], {"destination_type": target}, differs=differs)


def size(shape: list[int]) -> int:
    return int(np.prod(shape))


def given(kind: str, rng: random.Random, shape: list[int]) -> tuple[Array, str]:
    """Values of a type, with its ends; what is undefined in another is left out."""
    numbers = np.random.default_rng(rng.randint(0, 999))
    dtype = ElementType(kind).dtype
    if kind == "nf4":
        return NF4[numbers.integers(0, 16, shape)], kind
    if kind == "boolean":
        return numbers.random(shape) < 0.5, kind
    if ElementType(kind).is_real:
        return (numbers.normal(size=shape) * rng.choice([1, 30, 300])).astype(dtype), kind
    bits = min(ElementType(kind).bits, 20)
    low = -(1 << bits - 1) if ElementType(kind).is_signed else 0
    return numbers.integers(low, low + (1 << bits), shape).astype(dtype), kind
