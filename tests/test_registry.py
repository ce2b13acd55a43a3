"""Operations are imported when they are met."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir, layers
from vinoir.layers import Op
from vinoir.layers.registry import FILES


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert not done.stderr, done.stderr.decode()
    return done.stdout.decode()


def test_every_type_is_in_the_file_that_is_said() -> None:
    found: dict[str, set[str]] = {}
    for (kind, _), op in Op.registry.items():
        package, _, file = op.__module__.rpartition(".")
        if package == "vinoir.layers":
            found.setdefault(file, set()).add(kind)
    assert found == {file: set(kinds) for file, kinds in FILES.items()}
    assert set(layers.__all__) == {"Op", *FILES}


#: Operations whose definition takes fewer inputs than OpenVINO reads: what is wrong with none is
#: said by the rule of their shapes; the axis of CumSum may be left out by the specification.
FEWER = {
    "Concat-1": 0,
    "Einsum-7": 0,
    "ExperimentalDetectronROIFeatureExtractor-6": 1,
    "CumSum-3": 1,
}


def test_opsets_and_ports_are_those_of_openvino() -> None:
    """The table: each version of each type as OpenVINO 2026.4.1 reads it."""
    table = json.loads((Path(__file__).parent / "opsets.json").read_text("utf-8"))
    standard = {op.spec(): op for op in Op.registry.values() if op.is_standard}
    assert standard.keys() == table.keys()
    for name, row in table.items():
        op = standard[name]
        first, last = row["opsets"]
        numbers = [n for n in range(first, last + 1) if n not in row.get("absent", ())]
        assert op.opset_numbers() == tuple(numbers), name
        named = {f"opset{n}" for n in numbers}.union(row.get("also", ()))
        assert set(op.opsets()) == named, name
        assert {Op.find(op.xml_type, version) for version in named} == {op}, name
        assert op.opsets()[0] == op.version() == row["version"], name
        least, most = row["inputs"]
        assert op.arity()[1:] == (FEWER.get(name, least), most), name
        assert list(op.output_count) == row["outputs"], name


def test_only_what_is_met_is_imported() -> None:
    code = (
        "import sys; from vinoir.layers import Op; name = 'vinoir.layers.{}'.format;"
        "print(Op.find('MaxPool', 'opset8').spec(), Op.find('maxpool', 'opset1').spec(),"
        "Op.registry['MaxPool', 14].spec(), name('pooling') in sys.modules,"
        "name('sort_nms') in sys.modules, Op.find('NoSuch', 'opset1'), len(Op.registry) > 240,"
        "name('sort_nms') in sys.modules)"
    )
    assert run(code).split() == (
        ["MaxPool-8", "MaxPool-1", "MaxPool-14", "True", "False", "None", "True", "True"]
    )


def test_files_are_attributes_of_the_package() -> None:
    code = "import vinoir.layers as x; print(x.pooling.MaxPoolV8.opsets()[0])"
    assert run(code).strip() == "opset8"
    with pytest.raises(AttributeError, match="no attribute 'pools'"):
        _ = layers.pools


def test_nobody_takes_a_name_of_ours_whether_it_was_met_or_not() -> None:
    code = (
        "from vinoir.layers import Op\n"
        "try:\n    class MaxPoolV8(Op): pass\n"
        "except TypeError as error:\n    print(error)"
    )
    assert run(code).strip() == "MaxPool-8 is already vinoir.layers.pooling.MaxPoolV8"


def test_a_first_run_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,16,9,9")
    weights = net.constant(np.ones((16, 16, 3, 3), np.float32))
    words = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    y = net.add("Convolution", "opset1", [x, weights], data=words)
    net.result(net.add("ReLU", "opset1", [y]))
    ir.write(net.model(), tmp_path / "m.xml")
    code = (
        "import sys, numpy as np; before = set(sys.modules); from vinoir import ir\n"
        f"ir.compile(ir.read({str(tmp_path / 'm.xml')!r}))([np.ones((1, 16, 9, 9), 'f4')])\n"
        "late = {'importlib.metadata', 'ml_dtypes', 'difflib', 'concurrent.futures', 'click',"
        "'vinoir.ir.files.writer', 'vinoir.ir.text.repairs', 'vinoir.layers.sort_nms'}\n"
        "print(late & (set(sys.modules) - before))"
    )
    assert run(code).strip() == "set()"
