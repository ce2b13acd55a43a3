"""Which processor this is, where what NumPy tells of it does not say how quick it is.

Zen 4 and Zen 5 have the same instructions, but Zen 5 carries out those on 512 bits at once: BLAS
makes twice as many products a second, and a tangent takes as long as a power of two. Powers of two
of NumPy 2.4, as it comes from PyPI, take three to seven times as long there in a quarter of all
processes, wherever the library begins at the third of four times 2 MB; a tangent never does, nor
does a power of e.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

#: Where Linux tells, of each core; the first of them is among so many characters.
TOLD, ENOUGH = Path("/proc/cpuinfo"), 4096
#: AMD's number for Zen 5 and what follows.
ZEN_5 = 26


@cache
def is_zen_5() -> bool:
    """Whether it is one of AMD's since Zen 5."""
    return family_of_amd(_told()) >= ZEN_5


def family_of_amd(told: str) -> int:
    """AMD's number of what a system tells of its processor; 0 where it is another's."""
    found = re.search(r"\bfamily\s*:?\s*(\d+)", told, re.IGNORECASE)
    return int(found[1]) if found and "AuthenticAMD" in told else 0


def _told() -> str:
    """What the system tells: Linux in a file, Windows in the environment."""
    try:
        with TOLD.open(encoding="ascii", errors="replace") as file:
            return file.read(ENOUGH)
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", "")
