"""What holds for every operation version: a sample call, attributes both ways, rule and kernel."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from itertools import product

import calls
import numpy as np
import pytest
from conftest import Written
from lxml import etree
from oracle import Call, ask, disagreements, expected_shapes
from vinoir.layers import Op
from vinoir.layers.budget import within
from vinoir.schemas import ElementType, IRError, Tensor

#: Random calls of each operation; more of them by hand.
CASES = int(os.environ.get("VINOIR_CASES", "3"))

OPS = sorted(f"{kind}V{number}" for kind, number in Op.registry)
#: They have no inputs to be called with; the document's tests have them.
ENDS = {
    "ParameterV1",
    "ConstV1",
    "ResultV1",
    "ReadValueV3",
    "ReadValueV6",
    "AssignV3",
    "AssignV6",
    "IfV8",
    "LoopV5",
    "TensorIteratorV1",
}


def test_every_operation_has_a_sample_call() -> None:
    assert not set(OPS) - {call.op for call in calls.samples()} - ENDS


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_kernel_gives_what_the_rule_says(call: Call) -> None:
    op = call.make()
    given = call.arrays()
    before = [array.copy() for array in given]
    outputs, inferred = op.run(*given), op.infer_outputs(call.tensors())
    assert len(outputs) == len(inferred)
    for array, tensor in zip(outputs, inferred, strict=True):
        if not op.rows_vary:
            tensor.shape.merge(type(tensor.shape)(array.shape))
        assert array.dtype == tensor.type.dtype
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, old, "a kernel wrote to its input")


#: Types in place of those of a sample.
KINDS = [
    ElementType(kind)
    for kind in (
        "boolean", "bf16", "f16", "f32", "f64", "f8e4m3", "f8e5m2",
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
    )
]  # fmt: skip


def in_other_types(tensors: Sequence[Tensor]) -> Iterator[tuple[str, list[Tensor]]]:
    """Some inputs, or one, in another type: all that are of one type, then each of them."""
    groups = {
        tuple(place for place, tensor in enumerate(tensors) if tensor.type == kind)
        for kind in {tensor.type for tensor in tensors} - {ElementType.STRING}
    }
    alone = {(place,) for group in groups for place in group}
    for places, kind in product(sorted(groups | alone), KINDS):
        if kind == tensors[places[0]].type:
            continue
        given = list(tensors)
        for place in places:
            tensor = tensors[place]
            value = None if tensor.value is None else np.asarray(tensor.value).astype(kind.dtype)
            given[place] = Tensor(kind, tensor.shape, value)
        yield f"inputs {places} as {kind}", given


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_arrays_of_any_type_are_calculated_with_or_refused(call: Call) -> None:
    op = call.make()
    for what, tensors in in_other_types(call.tensors(known=True)):
        with within(max_memory=1 << 28, max_seconds=5), np.errstate(all="ignore"):
            try:
                told = op.infer_outputs(tensors)
                found = op.run(*(tensor.value for tensor in tensors))  # type: ignore[arg-type]  # all are known
            except IRError:
                continue
        kinds = [array.dtype for array in found]
        assert kinds == [tensor.type.dtype for tensor in told], what


#: OpenVINO is asked about these.
FEW = {"boolean", "f16", "f32", "i16", "i32", "u8"}
#: Truth values that OpenVINO cannot read as numbers, and the rule does not have to know.
UNREAD = ("AdaptiveAvgPool", "AdaptiveMaxPool", "OneHot", "NonMaxSuppression")


@pytest.mark.parametrize("name", [op for op in OPS if op not in ENDS])
def test_types_that_openvino_refuses_are_refused(name: str) -> None:
    pytest.importorskip("openvino")
    asked = set()
    for call in (call for call in calls.samples() if call.op == name):
        op, outputs = call.make(), len(call.make().infer_outputs(call.tensors()))
        for what, tensors in in_other_types(call.tensors()):
            kind = what.rpartition(" ")[2]
            unread = kind == "boolean" and name.startswith(UNREAD)
            if what in asked or unread or kind not in FEW:
                continue
            try:
                ours = op.infer_outputs(tensors)
            except IRError:
                continue
            asked.add(what)
            theirs = expected_shapes(op, tensors, outputs)
            kinds = sorted(text.partition("[")[0] for text in theirs)
            assert kinds == sorted(str(tensor.type) for tensor in ours), what


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_attributes_come_back_as_they_went(call: Call) -> None:
    op = call.make()
    assert type(op).read(op.attributes()) == op


@pytest.mark.parametrize("name", [op for op in OPS if op not in ENDS])
def test_openvino_agrees_on_samples_and_random_calls(name: str) -> None:
    pytest.importorskip("openvino")
    drawn = (calls.drawn(name, seed) for seed in range(CASES))
    table = [call for call in calls.samples() if call.op == name]
    found = [
        line
        for index, call in enumerate([*table, *filter(None, drawn)])
        for line in disagreements(call, random.Random(index))
    ]
    assert not found, "\n".join(found)


def test_attributes_of_written_files_print_back_identically(written: Written) -> None:
    found = []
    for path in written.all():
        for layer in etree.parse(path).iter("layer"):
            op = Op.find(layer.get("type"), layer.get("version"))
            if op is not None:
                data = layer.find("data")
                wanted = {} if data is None else dict(data.attrib)
                printed = op.read(wanted).attributes()
                if list(printed.items()) != list(wanted.items()):
                    found.append(f"{path.stem}: {printed}, OpenVINO {wanted}")
    assert not found, "\n".join(found)


#: What OpenVINO reads as a version besides its opsets.
VERSIONS = [*(f"opset{number}" for number in range(1, 18)), "experimental", "extension"]


@pytest.mark.parametrize("name", OPS)
def test_opsets_list_what_openvino_lists(name: str, made: Written) -> None:
    """Under each version that lists an operation OpenVINO makes just it; under others, none."""
    kind, _, number = name.rpartition("V")
    op = Op.registry[kind, int(number)]
    path = made.first(f"{kind}.{number}.*")
    text, weights = path.read_text("utf-8"), path.with_suffix(".bin").read_bytes()
    (layer,) = (
        x for x in etree.fromstring(text.encode()).iterfind("layers/layer")
        if (x.get("type"), x.get("version")) == (op.xml_type, op.version())
    )  # fmt: skip
    for version in VERSIONS:
        old, new = (f'type="{op.xml_type}" version="{v}"' for v in (op.version(), version))
        try:
            theirs = ask("version", text.replace(old, new), weights, layer.get("name"))
        except RuntimeError as error:
            theirs = str(error)
        found = Op.find(op.xml_type, version)
        if found is op:
            assert theirs == op.version(), version
        elif found is None:
            refused = f"{version} doesn't contain the operation", f"unsupported opset: {version}"
            assert any(words in theirs for words in refused), theirs


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Relu", "opset1", "ReLU-1"),
        ("SOFTMAX", "opset5", "SoftMax-1"),
        ("PRelu", "opset1", "PReLU-1"),
        ("maxpool", "opset8", "MaxPool-8"),
        ("maxpool", "Opset8", None),
        ("const", "opset1", None),
        ("parameter", "opset1", None),
        ("Constant", "opset1", None),
    ],
)
def test_types_are_found_in_any_letter_case_but_roles_are_not(
    kind: str, version: str, spec: str | None
) -> None:
    found = Op.find(kind, version)
    assert (found and found.spec()) == spec
