"""What somebody guesses who has not read the manual: it works, or is refused with what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir

POOL = {"kernel": (2, 2), "strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}


def network() -> ir.Model:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "?,3,8,8")
    y = net.add("ReLU", "opset1", [x], name="relu")
    y = net.add("MaxPool", "opset14", [y], name="pool", **POOL)
    net.result(y, name="out")
    return ir.loads(*ir.dumps(net.model()))


@pytest.mark.parametrize(
    ("layer", "name", "value", "text"),
    [
        ("relu", "slope", 1, "ReLU has no attribute slope (it has none)"),
        ("pool", "kernal", "2,2", "MaxPool has no attribute kernal (did you mean kernel?)"),
        ("pool", "index_element_type", "f32", "index_element_type is f32, it is i32 or i64"),
    ],
)
def test_an_edit_refuses_what_its_operation_does_not_take(
    layer: str, name: str, value: Any, text: str
) -> None:
    entry = {"op": "set-attribute", "layer": layer, "name": name, "value": value}
    with pytest.raises(ir.IRError) as error:
        ir.edit(network(), [entry])
    assert text in str(error.value)
    assert f'"{layer}"' in str(error.value)


def test_an_operation_that_nobody_knows_takes_any_attribute() -> None:
    model = network()
    model["relu"].type = "Mine"
    entry = {"op": "set-attribute", "layer": "relu", "name": "slope", "value": 1}
    assert ir.edit(model, [entry]).model["relu"].data["slope"] == "1"


def test_attributes_that_fit_only_together_are_set_one_by_one() -> None:
    model = network()
    edits = [
        {"op": "set-attribute", "layer": "pool", "name": name, "value": value}
        for name, value in (("auto_pad", "valid"), ("strides", "1,1"), ("kernel", "3,3"))
    ]
    assert ir.edit(model, edits).model["pool"].kernel == (3, 3)
