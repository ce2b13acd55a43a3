"""The plan of a program: nodes and values, how they are made of layers, what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .building import Constants as Constants
    from .building import build as build
    from .channels import FEW as FEW
    from .channels import add_through as add_through
    from .channels import elementwise_steps as elementwise_steps
    from .channels import has_many_groups as has_many_groups
    from .channels import has_single_place_windows as has_single_place_windows
    from .channels import is_depthwise as is_depthwise
    from .channels import is_incoming_image as is_incoming_image
    from .channels import is_pointwise as is_pointwise
    from .channels import pads_nothing as pads_nothing
    from .channels import scale_and_shift as scale_and_shift
    from .claims import claimed_type as claimed_type
    from .nodes import BINARY as BINARY
    from .nodes import CONVOLUTIONS as CONVOLUTIONS
    from .nodes import POOLINGS as POOLINGS
    from .nodes import SHUFFLE as SHUFFLE
    from .nodes import TRANSPOSED as TRANSPOSED
    from .nodes import UNARY as UNARY
    from .nodes import LaidOut as LaidOut
    from .nodes import Node as Node
    from .nodes import Plan as Plan
    from .nodes import Steps as Steps
    from .nodes import Value as Value
    from .nodes import constant as constant
    from .nodes import only_user as only_user

__getattr__, __dir__ = face(
    __name__,
    {
        "building": "Constants build",
        "channels": (
            "FEW add_through elementwise_steps has_many_groups has_single_place_windows "
            "is_depthwise is_incoming_image is_pointwise pads_nothing scale_and_shift"
        ),
        "claims": "claimed_type",
        "nodes": (
            "BINARY CONVOLUTIONS LaidOut Node POOLINGS Plan SHUFFLE Steps TRANSPOSED UNARY "
            "Value constant only_user"
        ),
    },
)
