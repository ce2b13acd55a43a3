"""Reductions by hand: edges that random calls do not reach."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import Dim, IRError, Shape, Tensor
from vinoir.schemas.types import ElementType


def reduction(name: str, **attributes: str) -> Op:
    op: Op = Op.registry[f"Reduce{name}", 4 if name.startswith("L") and len(name) == 2 else 1]
    made: Op = op.read(attributes)
    return made


@pytest.mark.parametrize(
    ("name", "kind", "values", "expected"),
    [
        # Eight bits stop at the ends, more wrap.
        ("Sum", "u8", [200, 100], 255),
        ("Sum", "i8", [-100, -100], -128),
        ("Sum", "i32", [2**31 - 1, 1], -(2**31)),
        ("L1", "i8", [-128, 0], 127),
        ("Prod", "u8", [16, 16], 255),
        ("Prod", "i16", [300, 300], 24464),
        # The exact mean, though the sum does not fit.
        ("Mean", "u8", [200, 100, 3], 101),
        ("Mean", "i32", [-7, -1, 0], -2),
        ("L2", "i32", [-7, -1, 2], 7),
        ("Max", "i64", [2**62 + 1, 2**62], 2**62 + 1),
        ("Max", "f32", [1, np.nan, 2], np.nan),
        ("Min", "f32", [np.inf, np.inf], np.inf),
        ("Mean", "f16", [60000, 60000], 60000),
        ("Mean", "f32", [], 0),
        ("Max", "f32", [], np.finfo("f4").min),
        ("Min", "u8", [], 255),
        ("Prod", "i32", [], 1),
        ("LogicalAnd", "boolean", [], True),
        ("LogicalOr", "boolean", [], False),
    ],
)
def test_values(name: str, kind: str, values: list[float], expected: float) -> None:
    data = np.array(values, ElementType(kind).dtype)
    (found,) = reduction(name).run(data, np.array([0]))
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, np.array(expected, data.dtype))


@pytest.mark.parametrize(
    ("name", "expected", "least", "most"),
    [
        ("Max", Dim(3, 5), 3, None),
        ("Min", Dim(2, 4), 1, 4),
        ("Prod", Dim(6, 20), 6, None),
        ("Sum", Dim(None, None), None, None),
    ],
)
def test_partly_known_values_are_carried_where_openvino_carries_them(
    name: str, expected: Dim, least: int | None, most: int | None
) -> None:
    parts = np.array([Dim(2, 4), Dim(3, 5), Dim(1, None)], object)
    known, open_ended = (Tensor("i64", (n,), parts=parts[:n]) for n in (2, 3))
    op = reduction(name, keep_dims="true")
    (found,) = op.infer_outputs([known, Tensor.of(np.array([0]))])
    assert found.sizes() == [expected]
    (found,) = op.infer_outputs([open_ended, Tensor.of(np.array([0]))])
    assert found.sizes() == [Dim(least, most)]


def test_a_product_keeps_the_names_of_its_sizes() -> None:
    parts = np.array([Dim(0, None, "B"), 4, Dim(0, None, "C")], object)
    data = Tensor("i64", (3,), parts=parts)
    (found,) = reduction("Prod").infer_outputs([data, Tensor.of(np.array(0))])
    assert str(found.sizes()) == "[Dim(4*B*C)]"


@pytest.mark.parametrize(
    ("data", "axes", "message"),
    [
        ("f32", Tensor.of(np.array([3])), "axis 3 is beyond the 3 axes"),
        ("f32", Tensor("f32", (1,)), "axes are integers"),
        ("f32", Tensor("i64", (1, 1)), "axes have the shape 1,1"),
        ("boolean", Tensor.of(np.array([0])), "takes numbers"),
    ],
)
def test_refusals(data: str, axes: Tensor, message: str) -> None:
    with pytest.raises(IRError, match=message):
        reduction("Sum").infer(Tensor(data, Shape((2, 3, 4))), axes)
