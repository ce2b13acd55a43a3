"""What is freed stays with the process, where malloc is asked for arrays at each call.

The malloc of Linux gives free memory at the end of its own back to the system, and has arrays of
128 KB and more from there, one by one. The system fills each page with zeros when it is asked for
it again: that takes ten times as long as to multiply two such arrays. Once an array has been freed
that came from the system, malloc keeps as much, and twice that at its end, from then on: that is
what programs that free larger arrays have anyway.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....layers.budget import budget, require
from ..plan import Node

#: Bytes of an array, the least and the most: that large nothing of it is ever touched. Larger ones
#: malloc does not learn from.
LEAST, MOST = 4 << 20, 31 << 20
#: So many arrays are alive at once.
SEVERAL = 4

_freed = 0


def keep_what_is_freed_for(node: Node) -> None:
    """Let malloc keep, from now on, arrays as large as those that a node takes and gives."""
    values = [value for value in (*node.inputs, *node.outputs) if value.constant is None]
    keep_what_is_freed(4 * max((prod(value.shape) for value in values), default=0))


def ask_for(nbytes: int) -> None:
    """Ask for the memory of an array; of what malloc keeps the system need not be asked."""
    if SEVERAL * nbytes > _freed or budget().max_memory is not None:
        require(nbytes)
        keep_what_is_freed(nbytes)


def keep_what_is_freed(nbytes: int) -> None:
    """Let malloc keep, from now on, several arrays of so many bytes."""
    global _freed
    wanted = min(max(SEVERAL * nbytes, LEAST), MOST)
    if wanted > _freed:
        _freed = wanted
        np.empty(wanted, np.uint8)
