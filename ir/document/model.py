"""A whole model: its graph, what it takes and gives, its weights, and where it came from."""

from __future__ import annotations

from copy import deepcopy
from os import PathLike
from typing import TYPE_CHECKING, ClassVar

from ...schemas.printing import counted
from ..faces import door
from .editing import Editor
from .ends import Ends, input_ends, output_ends
from .graph import Graph
from .parts import Info

_settle = door("surgery", "settle")

if TYPE_CHECKING:
    from ..storage import Weights
    from ..text import Repair
    from .origin import Origin


class Model(Graph):
    """A whole model: its graph, its name and version, its weights, and where it came from."""

    is_model: ClassVar[bool] = True

    def __init__(self, name: str = "", version: int = 11) -> None:
        super().__init__()
        self.name = name
        self.version = version
        self.meta_data: Info | None = None
        self.quantization_parameters: Info | None = None
        self.pre_process: Info | None = None
        self.weights: Weights | None = None
        #: Where it was read from, and the bytes that were read there.
        self.path: str | PathLike[str] | None = None
        #: Where its .bin was looked for; None where none was, as beside an open file.
        self.bin_place: str | None = None
        self.source: bytes | None = None
        #: What was parsed: ``source``, unless it had to be repaired.
        self.text: bytes | None = None
        self.repairs: list[Repair] = []
        #: What an IR of v2 to v7 was, and what was decided when it was upgraded.
        self.origin: Origin | None = None

    @property
    def inputs(self) -> Ends:
        """What it takes: name, type and shape of each input, by index or name."""
        return input_ends(self)

    @property
    def outputs(self) -> Ends:
        """What it gives: name, type and shape of each output, by index or name."""
        return output_ends(self)

    @property
    def edit(self) -> Editor:
        """Short verbs that change it: ``model.edit.rename("x", "image")``."""
        return Editor(self)

    def copy(self) -> Model:
        """An independent copy, over the same .bin."""
        return deepcopy(self)

    def settle(self) -> None:
        """Infer types and shapes anew, and make every port say them; after changes of layers."""
        _settle(self)

    @property
    def document(self) -> bytes | None:
        """The text it was read from."""
        return self.text

    @property
    def place(self) -> str | None:
        """The file's name for messages."""
        return None if self.path is None else str(self.path)

    def __repr__(self) -> str:
        return (
            f"<model {self.name!r}, version {self.version}, {counted(len(self._layers), 'layer')}>"
        )
