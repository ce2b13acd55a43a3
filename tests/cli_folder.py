"""A folder such as people have before them when they type a verb: models, inputs, references."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from older.network import small
from vinoir import ir
from vinoir.ir.cli import main

#: Types a command, and tells the exit code and what was printed.
Call = Callable[..., tuple[int, str, str]]

WINDOW = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}


def constants() -> dict[str, np.ndarray]:
    """The weights of the network."""
    rng = np.random.default_rng(5)
    sizes = {"w1": (4, 1, 3, 3), "w2": (8, 4, 3, 3), "w3": (512, 10)}
    return {
        name: (rng.standard_normal(size) / np.sqrt(np.prod(size[1:]))).astype("f4")
        for name, size in sizes.items()
    }


def network() -> ir.Model:
    """Two convolutions, a pooling, and a product; of the names that the examples have."""
    held = constants()
    net = ir.Builder("small")
    x = net.parameter("image", "f32", (1, 1, 16, 16))
    x = net.add("Convolution", "opset1", [x, net.constant(held["w1"], name="w1")], name="conv1",
                auto_pad="explicit", **WINDOW)  # fmt: skip
    x = net.add("ReLU", "opset1", [x], name="relu1")
    x = net.add("MaxPool", "opset14", [x], name="pool1", kernel=(2, 2), strides=(2, 2),
                pads_begin=(0, 0), pads_end=(0, 0))[0]  # fmt: skip
    x = net.add("Sigmoid", "opset1", [x], name="drop1")
    x = net.add("Convolution", "opset1", [x, net.constant(held["w2"], name="block2/w")],
                name="block2/conv", auto_pad="explicit", **WINDOW)  # fmt: skip
    x = net.add("ReLU", "opset1", [x], name="relu2")
    flat = net.constant(np.array([0, -1]), name="flat")
    x = net.add("Reshape", "opset1", [x, flat], name="features", special_zero=True)
    x = net.add("MatMul", "opset1", [x, net.constant(held["w3"], name="head/w")], name="scores")
    x = net.add("SoftMax", "opset8", [x], name="chances", axis=1)
    net.result(x, name="prob")
    return net.model()


def exported(path: Path) -> None:
    """The same network as ONNX."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    held = constants() | {"flat": np.array([0, -1])}
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Sigmoid", ["p1"], ["d1"], "drop1"),
        helper.make_node("Conv", ["d1", "w2"], ["c2"], "block2/conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("Reshape", ["r2", "flat"], ["f"], "features"),
        helper.make_node("MatMul", ["f", "w3"], ["s"], "scores"),
        helper.make_node("Softmax", ["s"], ["prob"], "chances", axis=1),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)]
        for name, sizes in (("image", [1, 1, 16, 16]), ("prob", [1, 10]))
    ]
    rows = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "small", *ends, rows)
    imports = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)


def head() -> ir.Model:
    """What goes on where the backbone ends."""
    net = ir.Builder("head")
    x = net.parameter("features_in", "f32", (1, 512))
    x = net.add("MatMul", "opset1", [x, net.constant(constants()["w3"], name="w")], name="product")
    net.result(x, name="logits")
    return net.model()


def failing() -> ir.Model:
    """A model that gives NaN for negative numbers."""
    net = ir.Builder("failing")
    x = net.parameter("x", "f32", (1, 8))
    x = net.add("ReLU", "opset1", [net.add("Log", "opset1", [x], name="log")], name="relu")
    net.result(net.add("Sigmoid", "opset1", [x], name="sigmoid"), name="y")
    return net.model()


#: Three primitives and a constant as OpenVINO writes them, not in the order of execution.
EXECUTION_GRAPH = """<?xml version="1.0"?>
<net name="small" version="11">
  <layers>
    <layer id="0" name="x" type="Input">
      <data execOrder="0" execTimeMcs="not_executed" originalLayersNames="x" outputLayouts="a"
        primitiveType="unknown_f32" runtimePrecision="f32" />
      <output><port id="0" precision="FP32"><dim>8</dim></port></output>
    </layer>
    <layer id="1" name="y" type="Eltwise">
      <data execOrder="3" execTimeMcs="30" originalLayersNames="add,relu" outputLayouts="a"
        primitiveType="jit_avx512_f32" runtimePrecision="f32" />
      <input><port id="0" /><port id="1" /></input>
      <output><port id="2" precision="FP32"><dim>8</dim></port></output>
    </layer>
    <layer id="2" name="w" type="Const">
      <data execOrder="1" execTimeMcs="not_executed" originalLayersNames="w" outputLayouts="a"
        primitiveType="unknown_f32" runtimePrecision="f32" />
      <output><port id="0" precision="FP32"><dim>8</dim></port></output>
    </layer>
    <layer id="3" name="moved" type="Reorder">
      <data execOrder="2" execTimeMcs="10" originalLayersNames="" outputLayouts="a"
        primitiveType="jit_uni_f32" runtimePrecision="bf16" />
      <input><port id="0" /></input>
      <output><port id="1" precision="BF16"><dim>8</dim></port></output>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="3" to-port="0" />
    <edge from-layer="3" from-port="1" to-layer="1" to-port="0" />
    <edge from-layer="2" from-port="0" to-layer="1" to-port="1" />
  </edges>
  <rt_info><info name="OpenVINO Runtime" value="2026.4.1" /></rt_info>
</net>
"""

LOOP = """<?xml version="1.0"?>
<net name="loop" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="3,2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="1" name="loop" type="TensorIterator" version="opset1">
<input><port id="0"><dim>3</dim><dim>2</dim></port></input>
<output><port id="1" precision="FP32"><dim>3</dim><dim>2</dim></port></output>
<port_map><input external_port_id="0" internal_layer_id="0" axis="0" stride="1" part_size="1"/>
<output external_port_id="1" internal_layer_id="2" axis="0" stride="1" part_size="1"/></port_map>
<body><layers>
<layer id="0" name="row" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="turn" type="ReLU" version="opset1">
<input><port id="0"><dim>1</dim><dim>2</dim></port></input>
<output><port id="1" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="row_out" type="Result" version="opset1">
<input><port id="0"><dim>1</dim><dim>2</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></body></layer>
<layer id="2" name="y" type="Result" version="opset1">
<input><port id="0"><dim>3</dim><dim>2</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>
"""

TRY = """import sys
sys.exit("MaxPool" in open(sys.argv[1]).read())
"""


def fill_folder(folder: Path) -> None:
    """Write everything that the examples name."""
    model = network()
    ir.write(model, folder / "model.xml")
    ir.write(ir.convert(model, target="2022.1").model, folder / "small.xml")
    ir.write(ir.extract(model, None, ["features"]).model, folder / "backbone.xml")
    ir.write(head(), folder / "head.xml")
    ir.write(failing(), folder / "failing.xml")
    (folder / "loop.xml").write_text(LOOP, "utf-8")
    (folder / "loop.bin").write_bytes(b"")
    (folder / "runtime_model.xml").write_text(EXECUTION_GRAPH, "utf-8")
    (folder / "models").mkdir()
    ir.write(model, folder / "models" / "one.xml")
    ir.write(head(), folder / "models" / "two.xml")
    shutil.copy(folder / "model.bin", folder / "other.bin")
    exported(folder / "model.onnx")
    old = small(6)
    (folder / "old.xml").write_bytes(old.xml)
    (folder / "old.bin").write_bytes(old.bin)
    edits = [{"op": "rename", "any": "image", "to": "picture"}]
    (folder / "edits.json").write_text(json.dumps(edits), "utf-8")
    (folder / "try.py").write_text(TRY, "utf-8")
    image = np.random.default_rng(1).random((1, 1, 16, 16), np.float32)
    np.save(folder / "image.npy", image)
    np.save(folder / "w.npy", 2 * constants()["w1"])
    (folder / "inputs").mkdir()
    for number in range(3):
        np.save(folder / "inputs" / f"{number}.npy", np.roll(image, number, -1))
    np.savez(folder / "ref.npz", prob=ir.run(model, [image])["prob"])


def caller(capsys: pytest.CaptureFixture[str]) -> Call:
    """What types commands in this process."""

    def said(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return said
