"""What changed between models, where two runs part, how small a failing model can be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .differences import Difference as Difference
    from .differences import Differences as Differences
    from .differences import diff as diff
    from .differences import review_lines as review_lines
    from .divergence import Comparison as Comparison
    from .divergence import compare as compare
    from .fingerprints import flattened as flattened
    from .keeping import Reduction as Reduction
    from .reduction import reduce as reduce

face(
    __name__,
    {
        "differences": "Difference Differences diff review_lines",
        "divergence": "Comparison compare",
        "fingerprints": "flattened",
        "keeping": "Reduction",
        "reduction": "reduce",
    },
)
