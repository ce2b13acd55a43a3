"""A graph run by the definitions of its operations, bodies and variables too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .bodies import begin_of as begin_of
    from .bodies import run_bodies as run_bodies
    from .decompression import Halves as Halves
    from .decompression import halves as halves
    from .decompression import is_decompression as is_decompression
    from .decompression import is_fixed as is_fixed
    from .decompression import made_of_constants as made_of_constants
    from .filling import fill as fill
    from .filling import is_filling as is_filling
    from .filling import sized as sized
    from .filling import tell_made_up as tell_made_up
    from .interpreter import Inputs as Inputs
    from .interpreter import Interpreter as Interpreter
    from .interpreter import InterpreterStep as InterpreterStep
    from .interpreter import Outputs as Outputs
    from .interpreter import Traced as Traced
    from .interpreter import Wanted as Wanted
    from .interpreter import aliases as aliases
    from .interpreter import answered as answered
    from .interpreter import by_definition as by_definition
    from .interpreter import check_inputs as check_inputs
    from .interpreter import infer_for as infer_for
    from .interpreter import read_variable as read_variable
    from .interpreter import refuse_unknown as refuse_unknown
    from .interpreter import run as run
    from .interpreter import wanted_names as wanted_names
    from .sizes import Sizes as Sizes
    from .variables import State as State
    from .variables import Variables as Variables
    from .variables import keep as keep
    from .variables import own_copies as own_copies

face(
    __name__,
    {
        "bodies": "begin_of run_bodies",
        "decompression": "Halves halves is_decompression is_fixed made_of_constants",
        "filling": "fill is_filling sized tell_made_up",
        "interpreter": (
            "Inputs Interpreter InterpreterStep Outputs Traced Wanted aliases answered "
            "by_definition check_inputs infer_for read_variable refuse_unknown run wanted_names"
        ),
        "sizes": "Sizes",
        "variables": "State Variables keep own_copies",
    },
)
