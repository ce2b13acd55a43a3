"""What is freed stays with the process, where malloc is asked for arrays at each call.

The malloc of Linux gives free memory at the end of its own back to the system, and has arrays of
128 KB and more from there, one by one. The system fills each page with zeros when it is asked for
it again: that takes ten times as long as to multiply two such arrays. Once an array has been freed
that came from the system, malloc keeps as much, and twice that at its end, from then on: that is
what programs that free larger arrays have anyway.
"""

from __future__ import annotations

from functools import cache

import numpy as np

#: Bytes: of an array that large nothing is ever touched.
ONCE = 4 << 20


@cache
def keep_what_is_freed() -> None:
    """Let malloc keep what is freed, from now on."""
    np.empty(ONCE, np.uint8)
