"""Many models, or one model over much data: supervised processes, journals, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .archiving import array_of_names as array_of_names
    from .archiving import read_arrays as read_arrays
    from .archiving import savable as savable
    from .archiving import saved_names as saved_names
    from .batches import run_over as run_over
    from .journal import Journal as Journal
    from .outcomes import Outcome as Outcome
    from .outcomes import State as State
    from .predictor import Predictor as Predictor
    from .samples import as_input as as_input
    from .samples import files_of as files_of
    from .samples import is_image as is_image
    from .samples import load_image as load_image
    from .selection import folder_files as folder_files
    from .selection import is_many as is_many
    from .selection import read_shard as read_shard
    from .selection import select as select
    from .sweeping import Sweep as Sweep
    from .sweeping import sweep as sweep
    from .targets import Targets as Targets
    from .targets import targets_of as targets_of

face(
    __name__,
    {
        "archiving": "array_of_names read_arrays savable saved_names",
        "batches": "run_over",
        "journal": "Journal",
        "outcomes": "Outcome State",
        "predictor": "Predictor",
        "samples": "as_input files_of is_image load_image",
        "selection": "folder_files is_many read_shard select",
        "sweeping": "Sweep sweep",
        "targets": "Targets targets_of",
    },
)
