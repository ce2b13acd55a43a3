"""How fast a model runs, here and in other runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .bench import AT_F32 as AT_F32
    from .bench import LAYER_RUNS as LAYER_RUNS
    from .bench import LayerRow as LayerRow
    from .bench import Report as Report
    from .bench import Row as Row
    from .bench import layer_rows as layer_rows
    from .bench import measure as measure

face(
    __name__,
    {
        "bench": "AT_F32 LAYER_RUNS LayerRow Report Row layer_rows measure",
    },
)
