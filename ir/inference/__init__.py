"""Types, shapes and partly known values of every port, bodies too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .bodies import body_parameters as body_parameters
    from .bodies import either as either
    from .bodies import infer_bodies as infer_bodies
    from .interface import input_types as input_types
    from .interface import output_array as output_array
    from .interface import output_type as output_type
    from .shapes import OWN as OWN
    from .shapes import Inferred as Inferred
    from .shapes import Shapes as Shapes
    from .shapes import are_named as are_named
    from .shapes import constant as constant
    from .shapes import infer as infer
    from .shapes import infer_graph as infer_graph
    from .shapes import infer_layer as infer_layer
    from .shapes import inputs_of as inputs_of
    from .shapes import parameter_type as parameter_type
    from .wiring import PURPOSES as PURPOSES
    from .wiring import body_of as body_of
    from .wiring import branch as branch
    from .wiring import ordered_outputs as ordered_outputs
    from .wiring import outer_input as outer_input
    from .wiring import slices as slices
    from .wiring import turns_of_iterator as turns_of_iterator

face(
    __name__,
    {
        "bodies": "body_parameters either infer_bodies",
        "interface": "input_types output_array output_type",
        "shapes": (
            "Inferred OWN Shapes are_named constant infer infer_graph infer_layer inputs_of "
            "parameter_type"
        ),
        "wiring": "PURPOSES body_of branch ordered_outputs outer_input slices turns_of_iterator",
    },
)
