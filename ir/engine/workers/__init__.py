"""Who does the work: threads or forked processes, their cores, signals between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .blas_threads import WIDE_KERNELS as WIDE_KERNELS
    from .blas_threads import blas as blas
    from .blas_threads import describe as describe
    from .blas_threads import single_blas as single_blas
    from .crew import Crew as Crew
    from .denormals import flushing as flushing
    from .halves import HalfProducts as HalfProducts
    from .halves import all_as_floats as all_as_floats
    from .halves import floats_of as floats_of
    from .halves import half_products as half_products
    from .halves import halves_of as halves_of
    from .integers import IntegerProducts as IntegerProducts
    from .integers import integer_products as integer_products
    from .preparing import side_by_side as side_by_side
    from .processes import can_fork as can_fork
    from .processes import hire as hire
    from .processes import shared as shared
    from .team import MANY as MANY
    from .team import Helpers as Helpers
    from .team import HelpersLostError as HelpersLostError
    from .team import Part as Part
    from .team import Step as Step
    from .team import Team as Team
    from .team import Threads as Threads
    from .team import core_count as core_count
    from .team import cuts as cuts
    from .team import hands as hands
    from .team import lanes as lanes
    from .team import sequence as sequence
    from .team import shares as shares
    from .team import spans as spans
    from .team import thread_share as thread_share

face(
    __name__,
    {
        "blas_threads": "WIDE_KERNELS blas describe single_blas",
        "crew": "Crew",
        "denormals": "flushing",
        "halves": "HalfProducts all_as_floats floats_of half_products halves_of",
        "integers": "IntegerProducts integer_products",
        "processes": "can_fork hire shared",
        "preparing": "side_by_side",
        "team": (
            "Helpers HelpersLostError MANY Part Step Team Threads core_count cuts hands lanes "
            "sequence shares spans thread_share"
        ),
    },
)
