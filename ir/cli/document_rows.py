"""The rows of which the JSON documents of the verbs are made.

Shapes are texts as everywhere, such as ``[1,3,H,W]``; times are seconds unless the name says
otherwise; a number that JSON has no spelling for is one of three words.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from ..checking import Finding

Number: TypeAlias = float | Literal["NaN", "Infinity", "-Infinity"]
Severity: TypeAlias = Literal["error", "warning", "info"]


class Part(BaseModel):
    """A piece of a document; it has the fields that it says, and no others."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Place(Part):
    """Where in a document something is; what is not known is None."""

    file: str | None
    line: int | None
    column: int | None
    layer: int | None
    name: str | None
    type: str | None
    version: str | None
    attribute: str | None


class ErrorRow(Part):
    """Why a call was refused; ``code`` is the exit code."""

    code: int
    message: str
    where: Place | None
    hint: str | None


class End(Part):
    """An input or output of a model."""

    name: str
    names: list[str]
    type: str
    shape: str
    layout: str | None


class VariableRow(Part):
    """A variable, as what reads or assigns it declares it."""

    name: str
    type: str
    shape: str


class Held(Part):
    """Constants of one element type."""

    constants: int
    elements: int
    bytes: int


class Stored(Held):
    """Constants that are stored otherwise than they are used."""

    type: str
    becomes: str
    how: str


class Precisions(Part):
    """How weights are stored and sums are computed."""

    stored: list[Stored]
    fake_quantize: dict[str, int]
    sums: dict[str, int]
    eight_bit_sums: int


class Remark(Part):
    """What was decided about an older layer."""

    kind: str
    message: str
    layer: int | None = None
    name: str | None = None
    type: str | None = None
    line: int | None = None
    hint: str | None = None


class OlderForm(Part):
    """What a model was upgraded from."""

    ir_version: int
    remarks: list[Remark]


class PrimitiveRow(Part):
    """A step of an execution graph; the layers are those of the model that it stands for."""

    order: int | None
    name: str
    type: str
    primitive: str
    precision: str
    layouts: str
    microseconds: int | None
    layers: list[str]


class ShownLayer(Part):
    """One line of all layers."""

    id: int
    name: str
    operation: str
    inputs: list[str]
    outputs: list[str]
    macs: int | None
    bytes: int | None


class Fed(Part):
    """What feeds an input."""

    layer: str
    output: int
    operation: str


class Given(Part):
    """One output of a layer."""

    port: int
    type: str
    shape: str
    names: list[str]
    used_by: list[str]


class Value(Part):
    """Numbers that describe an array."""

    elements: int
    min: Number | None = None
    mean: Number | None = None
    max: Number | None = None
    nan: int | None = None
    inf: int | None = None
    first: list[Number | bool | str]


class WholeLayer(Part):
    """Everything about one layer."""

    id: int
    name: str
    type: str
    version: str
    operation: str
    line: int | None
    attributes: dict[str, str]
    inputs: list[Fed | None]
    outputs: list[Given]
    value: Value | None = None
    rt_info: dict[str, dict[str, str]] | None = None
    bodies: dict[str, int] | None = None


class Module(Part):
    """A module, and those within it."""

    name: str
    layers: int
    parameters: int
    bytes: int
    macs: int
    macs_unknown: int
    modules: list[Module]


class CauseRow(Part):
    """Findings that have one cause."""

    code: str
    severity: Severity
    count: int
    first: str


class Counts(Part):
    """Findings by severity."""

    error: int
    warning: int
    info: int


class FileReport(Part):
    """What was found of one model."""

    file: str | None
    ok: bool
    readable: bool
    counts: Counts
    left_out: dict[str, int]
    causes: list[CauseRow]
    findings: list[Finding]


class Repaired(Part):
    """What ``--fix`` did."""

    code: str
    message: str
    layer: int | None
    name: str | None


class RuleRow(Part):
    """What a code means."""

    code: str
    title: str
    severity: Severity
    why: str
    bad: str
    good: str
    group: str


class InferredPort(Part):
    """An output port."""

    layer: int
    name: str
    #: The path of the body that it is in: ``outer/body``.
    body: str
    operation: str
    port: int | None
    names: list[str]
    type: str
    shape: str
    inferred: str
    declared: str
    same: bool
    #: Whether both exclude each other; what is not the same need not.
    contradicts: bool


class Top(Part):
    """One of the largest values."""

    index: list[int]
    value: Number | bool


class OutputRow(Value):
    """An output of one sample."""

    sample: str
    name: str
    type: str
    shape: str
    top: list[Top] | None = None


class TimedLayer(Part):
    """A layer, or a step of a program (whose ``layer`` is null)."""

    layer: int | None
    name: str
    operation: str
    milliseconds: float
    bytes: int
    shapes: list[str]


class ComparedOutput(Part):
    """How far an output is from what is expected."""

    name: str
    ok: bool
    difference: Number | None = None
    place: list[int] | None = None
    message: str | None = None
    wrong: int | None = None
    of: int | None = None


class Expected(Part):
    """The comparison of ``--expect``."""

    tolerance: float
    ok: bool
    outputs: list[ComparedOutput]


class Runtime(Part):
    """What was measured of one runtime."""

    name: str
    version: str
    prepared: float
    seconds: list[float]
    memory: int
    difference: Number
    ratio: float
    least: float
    median: float


class BenchLayer(Part):
    """What one step takes."""

    name: str
    operation: str
    shape: str
    seconds: float
    operations: float
    bytes: int
    held: int
    by_definition: bool
    gigaflops: float
    gigabytes: float


class BeforeAfter(Part):
    """Numbers of layers."""

    before: int
    after: int


class RewriteRow(Part):
    """One application of a rule."""

    rule: str
    layer: str


class CertificateRow(Part):
    """What was compared, before and after."""

    runs: int
    difference: Number
    alone: int
    not_alone: int
    difference_alone: Number
    ties: Number


class ChangeRow(Part):
    """One thing that was done."""

    kind: str
    message: str
    layer: str | None
    times: int


class RefusalRow(Part):
    """A layer that cannot be brought into the wanted form."""

    layer: str
    operation: str
    reason: str


class Choice(Part):
    """A meaning that was chosen where several exist."""

    topic: str
    text: str


class NodeRow(Part):
    """What became of an ONNX node."""

    name: str
    operation: str
    state: Literal["ok", "waits", "unsupported", "wrong"]
    becomes: list[str]
    problem: str | None
    choices: list[Choice]


class PlaceRow(Part):
    """A layer, and the bodies that it is in."""

    id: int
    name: str
    type: str
    version: str
    body: list[str]


class DistanceRow(Part):
    """How far two constants are apart; ``bits`` is null where their types differ."""

    elements: int
    differing: int
    absolute: Number
    relative: Number
    nmse: Number
    bits: int | None


class DifferenceRow(Part):
    """What changed."""

    kind: str
    one: PlaceRow | None
    two: PlaceRow | None
    what: str
    before: str | None
    after: str | None
    follows: bool
    distance: DistanceRow | None
    fed_by: list[str]
    feeds: list[str]


class StepRow(Part):
    """One output of a layer: its own error, and the one that came down to it."""

    place: PlaceRow
    output: int
    own: Number
    accumulated: Number
    tolerance: Number
    verdict: str
    sample: int
    reason: str
    constants: list[str]
    #: The id of the variable that is assigned, of how many outputs of the layer, read by any.
    variable: str
    outputs: int
    is_read: bool
    #: Of a layer in a body: which body, and the turn of a loop.
    tag: str
    turn: int | None
    #: The first layer in a body of this one that is wrong by itself.
    inner: StepRow | None


class ConstantRow(Part):
    """A constant and its place in the .bin."""

    #: The path of the body that it is in: ``outer/body``.
    body: str
    id: int
    name: str
    type: str
    shape: str
    elements: int
    offset: int | None
    bytes: int


class AttributeRow(Part):
    """An attribute of an operation."""

    name: str
    kind: str
    required: bool
    default: str | None
    choices: list[str]
    description: str | None


class OperationRow(Part):
    """One version of an operation."""

    operation: str
    type: str
    version: str
    versions: list[str]
    family: str
    package: str | None
    summary: str
    inputs: list[str]
    least_inputs: int
    most_inputs: int | None
    attributes: list[AttributeRow]


class EditField(Part):
    """A field of an edit."""

    name: str
    needed: bool
    what: str | None


class EditRow(Part):
    """What an edit does, and what it is given."""

    op: str
    what: str
    fields: list[EditField]


class OperatorRow(Part):
    """An ONNX operator, in some of its versions."""

    family: str
    operator: str
    versions: list[int]
    becomes: str


class OlderRow(Part):
    """A layer type of IR v2 to v7."""

    type: str
    attributes: list[str]
    becomes: list[str]
    summary: str
