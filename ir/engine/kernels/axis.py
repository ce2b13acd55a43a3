"""How windows stop along an axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """How windows stop along an axis."""

    size: int
    window: int
    stride: int
    #: Padding before the first element.
    before: int
    #: How often windows stop.
    stops: int

    @property
    def reached(self) -> int:
        """The place behind the last window, from the first element on."""
        return (self.stops - 1) * self.stride + self.window - self.before

    @property
    def used(self) -> int:
        """The elements that windows reach; some at the end may be left over."""
        return max(0, min(self.size, self.reached))

    @property
    def after(self) -> int:
        """How far the last window reaches beyond the last element."""
        return max(0, self.reached - self.size)

    @property
    def pitch(self) -> int:
        """The distance of what follows: the padding between the two serves both."""
        return self.used + max(self.before, self.after)
