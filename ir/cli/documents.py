"""What the verbs print as JSON: a model of each document and line, of which schemas are made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import TypeAdapter

from ...schemas import UsageError
from ..checking import Finding
from ..fleet import State
from .document_rows import (
    BeforeAfter,
    BenchLayer,
    CauseRow,
    CertificateRow,
    ChangeRow,
    ConstantRow,
    Counts,
    DifferenceRow,
    EditRow,
    End,
    ErrorRow,
    Expected,
    FileReport,
    Held,
    InferredPort,
    Module,
    NodeRow,
    OlderForm,
    OlderRow,
    OperationRow,
    OperatorRow,
    OutputRow,
    Part,
    Precisions,
    PrimitiveRow,
    RefusalRow,
    Repaired,
    RewriteRow,
    RuleRow,
    Runtime,
    ShownLayer,
    StepRow,
    TimedLayer,
    VariableRow,
    WholeLayer,
)


class Document(Part):
    """What each document begins with."""

    schema_version: Literal[1]
    verb: str


class Line(Document):
    """What came of one model, where a verb is carried out for many."""

    model: str
    #: The verb with those options that change its answers.
    what: str
    #: Sizes and times of the files, or what their server says of them.
    file: list[Any]
    #: What the verb alone would exit with.
    code: int
    state: State
    #: The document of this model, where the verb came as far as to print one.
    result: Document | None
    error: str | None
    seconds: float
    #: The seconds or bytes that were too few.
    limit: float | None = None


class Refused(Document):
    """Any call that was refused before it printed its document."""

    error: ErrorRow


class ShowSummary(Document):
    """``show MODEL``."""

    name: str
    ir_version: int
    origin: OlderForm | None = None
    path: str | None
    inputs: list[End]
    outputs: list[End]
    variables: list[VariableRow]
    layer_count: int
    depth: int | None
    parameters: int
    bytes: int
    macs: int | None
    macs_unknown: int
    macs_by_operation: dict[str, int]
    layers: dict[str, int]
    weights: dict[str, Held]
    precisions: Precisions
    rt_info: dict[str, str]


class ShowLayers(Document):
    """``show MODEL --layers``."""

    layers: list[ShownLayer]


class ShowLayer(Document):
    """``show MODEL --layer NAME``."""

    layer: WholeLayer


class ShowTree(Document):
    """``show MODEL --tree``."""

    tree: Module


class ShowExecution(Document):
    """``show EXECUTION-GRAPH``."""

    name: str
    path: str | None
    primitives: list[PrimitiveRow]
    microseconds: int
    rt_info: dict[str, str]


class Check(Document):
    """``check MODEL...``."""

    ok: bool
    counts: Counts
    causes: list[CauseRow]
    findings: list[Finding]
    reports: list[FileReport]
    repairs: list[Repaired]
    written: bool
    output: str | None


class Explain(Document):
    """``explain [CODE]``."""

    rules: list[RuleRow]


class Infer(Document):
    """``infer MODEL``."""

    model: str
    ports: list[InferredPort]
    outputs: dict[str, str]


class Run(Document):
    """``run MODEL``."""

    model: str
    samples: int
    outputs: list[OutputRow]
    timed: Literal["definitions", "program"] | None
    trace: list[TimedLayer]
    comparison: Expected | None


class Bench(Document):
    """``bench MODEL``."""

    model: str
    threads: int
    blas: str
    runtimes: list[Runtime]
    ratios: dict[str, float]
    correct: bool
    peak_memory: int
    layers: list[BenchLayer]
    #: Seconds of the quickest run that no layer took.
    between_layers: float


class Simplify(Document):
    """``simplify MODEL``."""

    model: str
    layers: BeforeAfter
    rules: dict[str, int]
    rewrites: list[RewriteRow]
    certificate: CertificateRow | None
    written: str | None


class Operation(Document):
    """``extract``, ``merge``, ``edit``, ``compress`` and ``convert``."""

    layers: BeforeAfter
    counts: dict[str, int]
    changes: list[ChangeRow]
    refusals: list[RefusalRow]
    written: str | None
    origin: OlderForm | None = None


class EditList(Document):
    """``edit [NAME] --list``."""

    edits: list[EditRow]


class Import(Document):
    """``import MODEL.onnx``."""

    model: str | None
    semantics: str
    counts: dict[str, int]
    nodes: list[NodeRow]
    written: str | None


class Diff(Document):
    """``diff A B``."""

    one: str
    two: str
    paired: int
    differences: list[DifferenceRow]
    notes: list[DifferenceRow]


class Compare(Document):
    """``compare MODEL``."""

    against: str
    samples: int
    #: The ids of the model's variables; whether they keep what they hold from sample to sample.
    variables: list[str]
    sequence: bool
    first: StepRow | None
    parts: StepRow | None
    keep_in_f32: list[str]
    steps: list[StepRow]
    #: The outputs of the model and what it assigns, of which another model or a recording tells.
    outputs: list[StepRow]
    #: Layers and outputs that have no counterpart there.
    uncompared: list[str]
    #: Layers that are others there, and right together: the last make up for the first.
    right_together: list[str]
    #: How inputs and outputs were paired where no name says which is which: a guess.
    pairing: list[str]
    refused: dict[str, str]


class Reduce(Document):
    """``reduce MODEL``."""

    failure: str
    failing_samples: list[int]
    layers_before: int
    layers: int
    checks: int
    finished: bool
    seeds: dict[str, str]
    #: The bodies that became the model, each of the one before it.
    opened: list[str]
    #: Why the check may fail whatever it is given.
    doubt: str | None
    output: str


class Weights(Document):
    """``weights list MODEL``."""

    constants: list[ConstantRow]


class Ops(Document):
    """``ops [NAME]``."""

    operations: list[OperationRow]


class OpsOnnx(Document):
    """``ops --onnx``."""

    operators: list[OperatorRow]


class OpsOlder(Document):
    """``ops --older``."""

    layers: list[OlderRow]


class ShowLine(Line):
    """``show MODEL...``."""

    result: ShowSummary | ShowLayers | ShowLayer | ShowTree | ShowExecution | None


class CheckLine(Line):
    """``check MODEL... --jobs N``."""

    result: Check | None


class InferLine(Line):
    """``infer MODEL...``."""

    result: Infer | None


class RunLine(Line):
    """``run MODEL...``."""

    result: Run | None


class BenchLine(Line):
    """``bench MODEL...``."""

    result: Bench | None


class SimplifyLine(Line):
    """``simplify MODEL...``."""

    result: Simplify | None


class ImportLine(Line):
    """``import MODEL.onnx...``."""

    result: Import | None


#: Each verb, to its documents and lines.
DOCUMENTS: dict[str, Any] = {
    "show": ShowSummary | ShowLayers | ShowLayer | ShowTree | ShowExecution | ShowLine,
    "check": Check | CheckLine,
    "explain": Explain,
    "infer": Infer | InferLine,
    "run": Run | RunLine,
    "bench": Bench | BenchLine,
    "simplify": Simplify | SimplifyLine,
    "diff": Diff,
    "compare": Compare,
    "reduce": Reduce,
    "edit": Operation | EditList,
    "extract": Operation,
    "merge": Operation,
    "compress": Operation,
    "convert": Operation,
    "weights": Weights,
    "import": Import | ImportLine,
    "ops": Ops | OpsOnnx | OpsOlder,
}


def output_schema(verb: str | None = None) -> dict[str, Any]:
    """The JSON Schema of a verb's documents; of all verbs, by their names."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if verb is None:
        inputs: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
            (name, "serialization", TypeAdapter(kind | Refused))
            for name, kind in DOCUMENTS.items()
        ]
        rows, rest = TypeAdapter.json_schemas(inputs, ref_template="#/$defs/{model}")
        return dialect | rest | {"verbs": {name: rows[name, mode] for name, mode, _ in inputs}}
    if verb not in DOCUMENTS:
        raise UsageError(
            f'"{verb}" prints no JSON of its own', hint=f"there are {', '.join(DOCUMENTS)}"
        )
    return dialect | TypeAdapter(DOCUMENTS[verb] | Refused).json_schema(mode="serialization")
