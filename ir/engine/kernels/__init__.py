"""Kernels: what carries out the nodes of a plan, prepared for known shapes and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .activations import SWISH_FACTOR as SWISH_FACTOR
    from .attention import attend as attend
    from .blocks import Scratch as Scratch
    from .following import Following as Following
    from .laying_out import lay_out_weights as lay_out_weights
    from .loose import fits as fits
    from .loose import quick as quick
    from .loose_levels import LooseLevels as LooseLevels
    from .loose_levels import loose_rows as loose_rows
    from .loose_norms import NORMS as NORMS
    from .loose_norms import LooseNorm as LooseNorm
    from .loose_products import LooseProduct as LooseProduct
    from .loose_products import loose_stacks as loose_stacks
    from .products import quickness as quickness
    from .rooms import Rooms as Rooms
    from .sharing import shared as shared
    from .table import KERNELS as KERNELS
    from .table import steps_of as steps_of

face(
    __name__,
    {
        "activations": "SWISH_FACTOR",
        "attention": "attend",
        "blocks": "Scratch",
        "following": "Following",
        "laying_out": "lay_out_weights",
        "loose": "fits quick",
        "loose_levels": "LooseLevels loose_rows",
        "loose_norms": "LooseNorm NORMS",
        "loose_products": "LooseProduct loose_stacks",
        "products": "quickness",
        "rooms": "Rooms",
        "sharing": "shared",
        "table": "KERNELS steps_of",
    },
)
