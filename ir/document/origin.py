"""What a model was before it was upgraded, and what was decided on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...schemas import Where

if TYPE_CHECKING:
    from lxml import etree

#: ``changed``: decided, not copied; ``ignored``: not read by the old readers either;
#: ``unlike``: computed otherwise than declared; ``missing``: no counterpart; ``wrong``: a fault.
Kind: TypeAlias = Literal["changed", "ignored", "unlike", "missing", "wrong"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that is not one to one, with the old layer that it is about."""

    kind: Kind
    message: str
    where: Where = field(default_factory=Where)
    hint: str | None = None
    #: The tensor, by its layer's id and its index, whose sizes but for the batch must stay.
    fixed: tuple[int, int] | None = None
    #: For who checks a document; it is of no tree once the remark is copied or pickled.
    element: etree._Element | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[Remark], tuple[object, ...]]:
        return Remark, (self.kind, self.message, self.where, self.hint, self.fixed)

    def to_json(self) -> dict[str, Any]:
        """Its known parts."""
        rows = {
            "kind": self.kind,
            "layer": self.where.layer,
            "name": self.where.name,
            "type": self.where.type,
            "line": self.where.line,
            "message": self.message,
            "hint": self.hint,
        }
        return {key: value for key, value in rows.items() if value is not None}

    def __str__(self) -> str:
        place = str(self.where)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.hint})" if self.hint else text


@dataclass
class Origin:
    """Where an upgraded model comes from."""

    version: int
    remarks: list[Remark] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Version and remarks."""
        return {
            "ir_version": self.version,
            "remarks": [remark.to_json() for remark in self.remarks],
        }
