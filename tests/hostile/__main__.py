"""``python -m hostile 20000 [FIRST]`` in the folder of the tests: that many mutants."""

from __future__ import annotations

import sys

from hostile.harness import broken

if __name__ == "__main__":
    count = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = 0
    for complaint in broken(first, first + count):
        found += 1
        print(complaint, flush=True)
    print(f"{count} mutants from {first} on, {found} complaints")
    sys.exit(1 if found else 0)
