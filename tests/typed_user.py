"""A user's script that goes through the whole face; type checkers read it, and a test runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import vinoir
from vinoir import ir
from vinoir.layers import MaxPoolV8, MaxPoolV14
from vinoir.schemas import ElementType, Shape, Tensor


def look(model: ir.Model) -> list[str]:
    """What is there."""
    first: ir.End = model.inputs[0]
    shape: Shape = first.shape
    kind: ElementType = model.outputs["digit"].type
    said = [vinoir.__version__, first.name, str(shape), str(kind), str(len(model))]
    for layer in model:
        ports = [*layer.inputs, *layer.outputs]
        said += [f"{port.name} {port.tensor}" for port in ports]
        feeders: list[ir.Layer | None] = layer.producers
        said += [user.name for user in layer.consumers]
        said += [feeder.name for feeder in feeders if feeder is not None]
    source = model["pool1"].inputs["data"].source
    assert source is not None
    return [*said, source.name]


def change(model: ir.Model) -> ir.Model:
    """A changed copy."""
    new = model.copy()
    pool = new["pool1"]
    if isinstance(pool.op, MaxPoolV14):
        strides: tuple[int, ...] = pool.op.strides
        pool.op = pool.op.with_(kernel=strides)
    pool.rounding_type = "ceil"
    pool.data["axis"] = "0"
    with new.edit as edit:
        made: ir.Layer = edit.insert("ReLU", after="pool1:0", name="more")
        edit.insert("Add", before=made.inputs[0], inputs=["@", np.float32(0)])
        edit.bridge(made)
        edit.replace("pool2", "MaxPool", version="opset8", kernel=(2, 2), strides=(2, 2),
                     dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0))  # fmt: skip
        edit.rename("image", "picture")
    constant = new.constants[0]
    new.edit.constant(constant, constant.value, np.float32)
    new.edit.constant(constant, constant.value, ElementType.F32)
    new.settle()
    return new


def use(path: Path) -> float:
    """Runs, programs, reports."""
    model = ir.read(path)
    new = change(model)
    report: ir.Report = ir.check(new)
    assert report.ok, str(report)
    inferred: ir.Inferred = ir.infer(path, {"image": "N,1,16,16"})
    tensor: Tensor = inferred["pool1:0"]
    image = np.zeros((1, 1, 16, 16), np.float32)
    outputs: ir.Outputs = ir.run(new, {"picture": image}, outputs=["digit"])
    program: ir.Program = ir.compile(path, outputs=["digit"])
    state: ir.Variables = program.state
    state.reset()
    differences: ir.Differences = ir.diff(path, new)
    smaller, simplified = ir.simplify(path)
    part, surgery = ir.extract(path, outputs=["pool1:0"])
    assert len(look(model)) > len(look(smaller)) - len(part) - len(differences)
    assert tensor.rank == 4
    assert simplified.layers_after <= simplified.layers_before
    assert surgery.layers[0] == len(model)
    older = MaxPoolV8(strides=(2, 2), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0),
                      kernel=(2, 2))  # fmt: skip
    return float(abs(outputs["digit"] - program([image])[0]).max()) + older.strides[0]
