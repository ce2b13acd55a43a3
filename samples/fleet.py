"""Check a zoo of models, by several processes, into a table.

python fleet.py MODELS... [--jobs N] [--journal results.jsonl]

MODELS are files, folders, or patterns such as 'models/**/*.xml'. With a journal the check can be
stopped at any moment, and goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from vinoir import ir


def main(models: list[str], jobs: int | None = None, journal: str | None = None) -> None:
    sweep = ir.sweep(
        ir.check, models, jobs=jobs, journal=journal, max_seconds=60, max_memory=4_000_000_000
    )
    lines = list(sweep)
    if journal is not None:
        # What was done before counts, too.
        lines = [json.loads(line) for line in Path(journal).read_text().splitlines()]
    print(f"{'model':40} {'errors':>8} {'warnings':>8}   most often")
    for line in sorted(lines, key=lambda line: (-line["code"], line["model"])):
        name = line["model"][-40:]
        if line["state"] != "done":
            print(f"{name:40} {line['state']:>17}   {line['error']}")
            continue
        counts = line["result"]["counts"]
        codes = Counter(finding["code"] for finding in line["result"]["findings"])
        often = ", ".join(f"{code} x{count}" for code, count in codes.most_common(3))
        print(f"{name:40} {counts['error']:8} {counts['warning']:8}   {often}")
    wrong = sum(line["code"] != 0 for line in lines)
    print(f"{len(lines)} models, {wrong} of them wrong")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("models", nargs="+")
    words.add_argument("--jobs", type=int)
    words.add_argument("--journal")
    given = words.parse_args()
    main(given.models, given.jobs, given.journal)
