"""Which steps are worth sharing among threads: found by trying both, in the first calls.

Whether several threads do a step sooner than one depends on how long they take to wake. What comes
out is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from math import inf

#: How often each way to share work is tried: by a plan, by several that learn of each other.
TRIALS, FEWER = 6, 3


class Trials:
    """How long each step took, shared and alone; steps are known by names."""

    def __init__(self, times: int = TRIALS) -> None:
        self._left = deque([True, False] * times)
        self._least: dict[bool, dict[Hashable, float]] = {True: {}, False: {}}

    @property
    def are_over(self) -> bool:
        """Whether enough is known."""
        return not self._left

    def begin(self) -> bool:
        """Whether steps are shared in the next trial."""
        return self._left.popleft()

    def note(self, names: Sequence[Hashable], seconds: Sequence[float], *, together: bool) -> None:
        """Note how long steps took."""
        least = self._least[together]
        for name, took in zip(names, seconds, strict=True):
            least[name] = min(took, least.get(name, inf))

    def is_alone(self, name: Hashable) -> bool:
        """Whether one thread does a step sooner than several."""
        return self._least[False].get(name, inf) < self._least[True].get(name, inf)
