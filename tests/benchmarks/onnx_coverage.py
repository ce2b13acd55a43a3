"""How many of the ONNX package's node cases import and give the outputs that come with them.

python tests/benchmarks/onnx_coverage.py              the count, by operator
python tests/benchmarks/onnx_coverage.py --failures   also every case that does not pass, why
python tests/benchmarks/onnx_coverage.py MaxPool      the cases of one operator
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
from vinoir import ir


class Outcome(NamedTuple):
    """What came of one case."""

    name: str
    operator: str
    verdict: str  # passed, unsupported, refused, wrong
    why: str = ""


def cases() -> Iterator[Any]:
    """All node cases of the onnx package."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from collect_testcases(None)


def operator_of(case: Any) -> str:
    """The operator a case is about; an expanded case is about the same as the whole one."""
    name = case.name.removesuffix("_expanded")
    nodes = case.model.graph.node
    if len(nodes) == 1:
        return str(nodes[0].op_type)
    return _whole.get(name, str(nodes[-1].op_type) if nodes else "?")


_whole: dict[str, str] = {}


def attempt(case: Any) -> Outcome:
    """Import one case and run it on its data."""
    operator = operator_of(case)
    try:
        model = ir.from_onnx(case.model)
    except ir.UnsupportedError as error:
        return Outcome(case.name, operator, "unsupported", error.message)
    except ir.IRError as error:
        return Outcome(case.name, operator, "refused", str(error))
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.input]
        given = dict(zip(names, (as_array(value) for value in inputs), strict=False))
        try:
            with np.errstate(all="ignore"):
                found = list(ir.run(model, given).values())
        except (ir.IRError, ValueError, TypeError) as error:
            return Outcome(case.name, operator, "wrong", f"{type(error).__name__}: {error}")
        for one, other in zip(found, outputs, strict=True):
            problem = difference(one, as_array(other), case)
            if problem:
                return Outcome(case.name, operator, "wrong", problem)
    return Outcome(case.name, operator, "passed")


def as_array(value: Any) -> Any:
    """A case's value as an array."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def difference(found: Any, wanted: Any, case: Any) -> str:
    """Why two arrays are not the same; empty where they are."""
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "OUST":
        same = [str(a) for a in found.ravel()] == [
            a.decode() if isinstance(a, bytes) else str(a) for a in wanted.ravel()
        ]
        return "" if same else "strings differ"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype}, not {wanted.dtype}"
    if "random" in case.name or "bernoulli" in case.name:
        return ""
    wide = np.float64 if found.dtype.kind not in "iub" else None
    a, b = (found, wanted) if wide is None else (found.astype(wide), wanted.astype(wide))
    rtol = max(case.rtol, {"float16": 2e-3, "bfloat16": 1e-2}.get(found.dtype.name, 0))
    if np.allclose(a, b, rtol=rtol, atol=max(case.atol or 0, 1e-6), equal_nan=True):
        return ""
    return f"values differ, e.g. {a.ravel()[:4]} and {b.ravel()[:4]}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operator", nargs="?")
    parser.add_argument("--failures", action="store_true")
    options = parser.parse_args()
    every = list(cases())
    _whole.update(
        (case.name, case.model.graph.node[0].op_type)
        for case in every
        if len(case.model.graph.node) == 1
    )
    if options.operator:
        every = [case for case in every if operator_of(case) == options.operator]
    outcomes = [attempt(case) for case in every]
    total, passed = Counter(o.operator for o in outcomes), Counter(
        o.operator for o in outcomes if o.verdict == "passed"
    )  # fmt: skip
    for operator in sorted(total):
        print(f"{operator:30} {passed[operator]:4} of {total[operator]:4}")
    if options.failures or options.operator:
        for outcome in outcomes:
            if outcome.verdict != "passed":
                print(f"{outcome.verdict:12} {outcome.name}: {outcome.why[:300]}")
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    print(f"{sum(passed.values())} of {len(outcomes)} node cases pass", dict(verdicts))


if __name__ == "__main__":
    main()
