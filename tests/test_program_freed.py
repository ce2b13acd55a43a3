"""Arrays that nodes make anew do not come from the system at each call."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

DEPENDING = """
x = net.parameter("x", "f32", (1000, 64))
places = net.add("NonZero", "opset3", [x], output_type="i64")
ends = [net.constant(np.int64(0)), net.constant(np.int64(0))]
rows = net.add("Gather", "opset8", [places, *ends])
y = net.add("Gather", "opset8", [x, rows, ends[0]])
for _ in range(6):
    y = net.add("Multiply", "opset1", [y, y])
net.result(net.add("ReduceSum", "opset1", [y, ends[0]]))
given = np.zeros((1000, 64), np.float32)
given[:, :2] = 0.5
"""
DEFINED = """
x = net.parameter("x", "u8", (1, 480, 640, 3))
net.result(net.add("RGBtoNV12", "opset17", [x], single_plane=True))
given = np.zeros((1, 480, 640, 3), np.uint8)
"""
CALLS = """
import resource
import numpy as np
from vinoir import ir

net = ir.Builder()
{net}
program = ir.compile(net.model(), threads=1)
for count in (10, 20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        program([given])
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another")
@pytest.mark.parametrize("net", [DEPENDING, DEFINED])
def test_calls_do_not_ask_the_system_for_memory(net: str) -> None:
    """Seven arrays of 512 KB a call, of sizes that depend on values; a definition's own of 4 MB.

    More than two hundred pages a call would come from the system.
    """
    # Other libraries have told malloc what to do, by the environment of whom they start.
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    told = subprocess.run(
        [sys.executable, "-c", CALLS.format(net=net)],
        capture_output=True, text=True, timeout=120, check=True, env=plain,
    )  # fmt: skip
    assert float(told.stdout) < 100
