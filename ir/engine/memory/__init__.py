"""Where values lie: one arena, views of others' memory, the caller's own arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .arena import lay_out as lay_out
    from .direct import Direct as Direct
    from .direct import direct_values as direct_values
    from .direct import new_array as new_array
    from .direct import unshared_copy as unshared_copy
    from .freed import ask_for as ask_for
    from .freed import keep_what_is_freed_for as keep_what_is_freed_for
    from .growing import Growing as Growing
    from .in_turn import InTurn as InTurn
    from .shelf import is_wished as is_wished
    from .shelf import shared_weights as shared_weights
    from .shelf import shelved as shelved
    from .slabs import private as private
    from .slabs import side_by_side as side_by_side
    from .slabs import together as together
    from .turning import copy_into as copy_into
    from .turning import in_blocks as in_blocks
    from .turning import in_runs as in_runs
    from .turning import lies_in as lies_in
    from .turning import straight_copy as straight_copy
    from .views import CUTTING as CUTTING
    from .views import root_of as root_of

face(
    __name__,
    {
        "arena": "lay_out",
        "direct": "Direct direct_values new_array unshared_copy",
        "freed": "ask_for keep_what_is_freed_for",
        "growing": "Growing",
        "in_turn": "InTurn",
        "shelf": "is_wished shared_weights shelved",
        "slabs": "private side_by_side together",
        "turning": "in_blocks in_runs lies_in copy_into straight_copy",
        "views": "CUTTING root_of",
    },
)
