"""Arrays of nodes whose sizes depend on values do not come from the system at each call."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CALLS = """
import resource
import numpy as np
from vinoir import ir

net = ir.Builder()
x = net.parameter("x", "f32", (1000, 64))
places = net.add("NonZero", "opset3", [x], output_type="i64")
ends = [net.constant(np.int64(0)), net.constant(np.int64(0))]
rows = net.add("Gather", "opset8", [places, *ends])
y = net.add("Gather", "opset8", [x, rows, ends[0]])
for _ in range(6):
    y = net.add("Multiply", "opset1", [y, y])
net.result(net.add("ReduceSum", "opset1", [y, ends[0]]))
program = ir.compile(net.model(), threads=1)
given = np.zeros((1000, 64), np.float32)
given[:, :2] = 0.5
for count in (10, 20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        program([given])
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another")
def test_calls_do_not_ask_the_system_for_memory() -> None:
    """Seven arrays of 512 KB a call: more than two hundred pages would come from the system."""
    # Other libraries have told malloc what to do, by the environment of whom they start.
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    told = subprocess.run(
        [sys.executable, "-c", CALLS],
        capture_output=True, text=True, timeout=120, check=True, env=plain,
    )  # fmt: skip
    assert float(told.stdout) < 100
