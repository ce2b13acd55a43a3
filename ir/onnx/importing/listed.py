"""A sequence of ONNX: a list of tensors, which IR has no means to say and no need to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....schemas import IRError, Tensor, UnsupportedError
from ...document import Layer, Output


class Cut(NamedTuple):
    """A tensor that is cut along an axis into parts of some lengths, however many these are."""

    whole: Output
    axis: int
    lengths: Output


class Listed(Output):
    """The tensors of a sequence: each by itself, all along a new first axis, or parts of one.

    It stands among the tensors of a graph under its name; whoever takes it for one is refused.
    """

    __slots__ = ("_items", "cut", "stacked")

    def __init__(
        self,
        items: Sequence[Output] = (),
        *,
        stacked: Output | None = None,
        cut: Cut | None = None,
    ) -> None:
        self._items, self.stacked, self.cut = list(items), stacked, cut
        self.index = 0

    @property
    def is_counted(self) -> bool:
        """Whether it is known how many there are."""
        return self.stacked is None and self.cut is None

    @property
    def items(self) -> list[Output]:
        """The tensors, where it is known how many they are."""
        if not self.is_counted:
            raise UnsupportedError("it is not known how many tensors the sequence has")
        return self._items

    @property
    def is_constant(self) -> bool:
        """It never is one."""
        return False

    @property
    def tensor(self) -> Tensor:
        """None: it is many."""
        raise IRError(f"{self._what} stands where a tensor is needed")

    @property
    def layer(self) -> Layer:  # type: ignore[override]  # what feeds others has one, this is none
        """None: what feeds others are its tensors."""
        raise IRError(f"{self._what} stands where a tensor is needed")

    @property
    def _what(self) -> str:
        if not self.is_counted:
            return "a sequence of tensors"
        return f"a sequence of {len(self._items)} tensor" + "s" * (len(self._items) != 1)

    def named(self, *names: str) -> Output:
        """Names are those of its tensors, which have some."""
        return self

    def __repr__(self) -> str:
        return f"Listed({self._items!r}, stacked={self.stacked!r}, cut={self.cut!r})"


class Growing(Listed):
    """A sequence as the body of a Loop sees it: a turn puts one tensor more behind the others."""

    __slots__ = ("added", "place")

    def __init__(self, place: int, added: Output | None = None) -> None:
        super().__init__()
        #: Which input of the body it is.
        self.place, self.added = place, added

    @property
    def is_counted(self) -> bool:
        """It is not."""
        return False

    @property
    def items(self) -> list[Output]:
        """Not known: there are more from turn to turn."""
        raise UnsupportedError("the body reads a sequence that the Loop makes longer")

    def grown(self, added: Output) -> Growing:
        """The same with a tensor more."""
        if self.added is not None:
            raise UnsupportedError("a turn of the Loop adds more than one tensor to a sequence")
        return Growing(self.place, added)


__all__ = ["Cut", "Growing", "Listed"]
