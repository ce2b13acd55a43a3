"""How much damage the check finds, where, and how fast: over thousands of damaged files.

Run: python tests/benchmarks/checking.py [rounds] [one mutation]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import openvino_files
from mutations import Case, File, cases
from vinoir import ir


def judge(case: Case) -> tuple[str, ir.Report]:
    """What is to be said of an answer: found, missed, alarm, unplaced."""
    report = ir.check(case.xml, weights=case.weights)
    if case.label == "ok":
        bad = report.errors or report.warnings
        return ("alarm" if bad else "found"), report
    wanted = report.errors if case.label == "error" else report.warnings
    if not wanted:
        return ("heavier" if case.label == "warning" and report.errors else "missed"), report
    if case.lines or case.layers:
        for finding in wanted:
            if finding.line in case.lines or {str(finding.layer), finding.name} & case.layers:
                return "found", report
        return "unplaced", report
    return "found", report


def main(rounds: int = 1, only: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        openvino_files.write(Path(folder))
        files = [File.read(path) for path in sorted(Path(folder).glob("*.xml"))]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    examples = defaultdict(list)
    slowest, count, begin = 0.0, 0, time.perf_counter()
    for seed in range(rounds):
        for file in files:
            for case in cases(file, seed):
                if only and case.kind != only:
                    continue
                start = time.perf_counter()
                verdict, report = judge(case)
                slowest = max(slowest, time.perf_counter() - start)
                count += 1
                table[case.kind][verdict] += 1
                table[f"= {case.label}"][verdict] += 1
                if verdict != "found":
                    examples[case.kind, verdict].append((case, report))
    for kind, row in sorted(table.items(), key=lambda item: (item[0][:1] == "=", item[0])):
        total = sum(row.values())
        rest = ", ".join(f"{v} {n}" for v, n in row.items() if v != "found")
        print(f"{kind:32} {total:6} {100 * row['found'] / total:6.1f} %  {rest}")
    print(f"{count} files in {time.perf_counter() - begin:.1f} s, the slowest {slowest:.3f} s")
    for (kind, verdict), rows in sorted(examples.items()):
        print(f"\n{kind}: {verdict}: {len(rows)}")
        for case, report in rows[: 40 if only else 3]:
            print(f"  {case.source} {sorted(case.lines)} {sorted(case.layers)[:4]}")
            for finding in list(report)[:3]:
                print("     ", str(finding)[:240])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, sys.argv[2] if len(sys.argv) > 2 else "")
