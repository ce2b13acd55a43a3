"""The plan of a program: nodes and values, how they are made of layers, what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import face

if TYPE_CHECKING:
    from .building import build as build
    from .channels import FEW as FEW
    from .channels import add_through as add_through
    from .channels import elementwise_steps as elementwise_steps
    from .channels import has_many_groups as has_many_groups
    from .channels import has_single_place_windows as has_single_place_windows
    from .channels import is_depthwise as is_depthwise
    from .channels import is_incoming_image as is_incoming_image
    from .channels import is_pointwise as is_pointwise
    from .channels import multiplies_channels as multiplies_channels
    from .channels import pads_nothing as pads_nothing
    from .channels import per_channel as per_channel
    from .channels import scale_and_shift as scale_and_shift
    from .channels import sees_the_image as sees_the_image
    from .compressed import Beside as Beside
    from .compressed import Compressed as Compressed
    from .compressed import as_quick as as_quick
    from .compressed import by_digits as by_digits
    from .constants import Constants as Constants
    from .constants import Origin as Origin
    from .formulas import Factors as Factors
    from .formulas import along as along
    from .formulas import factors as factors
    from .formulas import is_numpy as is_numpy
    from .formulas import maker as maker
    from .formulas import single as single
    from .grid import MIDDLE as MIDDLE
    from .grid import WHOLE as WHOLE
    from .grid import Grid as Grid
    from .grid import Integers as Integers
    from .grid import Joined as Joined
    from .moving import in_order as in_order
    from .moving import only_moves as only_moves
    from .moving import reshaping as reshaping
    from .moving import transposing as transposing
    from .nodes import Means as Means
    from .nodes import Node as Node
    from .nodes import Plan as Plan
    from .nodes import Region as Region
    from .nodes import Scales as Scales
    from .nodes import Steps as Steps
    from .nodes import Value as Value
    from .nodes import constant as constant
    from .nodes import kept_as_levels as kept_as_levels
    from .nodes import only_user as only_user
    from .nodes import part_of as part_of
    from .operations import BINARY as BINARY
    from .operations import CONVOLUTIONS as CONVOLUTIONS
    from .operations import CUTS as CUTS
    from .operations import EITHER_WAY as EITHER_WAY
    from .operations import HEADS as HEADS
    from .operations import POOLINGS as POOLINGS
    from .operations import SHUFFLE as SHUFFLE
    from .operations import SPATIAL as SPATIAL
    from .operations import TRANSPOSED as TRANSPOSED
    from .operations import UNARY as UNARY
    from .operations import claimed_type as claimed_type
    from .operations import products as products
    from .operations import stands_beside as stands_beside
    from .operations import work as work
    from .quantized import MOVING as MOVING
    from .quantized import grid_of as grid_of
    from .quantized import grids as grids
    from .quantized import groups_together as groups_together
    from .quantized import integers as integers
    from .quantized import is_function_of as is_function_of
    from .quantized import moved as moved
    from .regions import cut_regions as cut_regions
    from .regions import plan_region as plan_region
    from .tables import BYTES as BYTES
    from .tables import CURVES as CURVES
    from .tables import Table as Table
    from .tables import table as table

face(
    __name__,
    {
        "building": "build",
        "channels": (
            "FEW add_through elementwise_steps has_many_groups has_single_place_windows "
            "is_depthwise is_incoming_image is_pointwise multiplies_channels pads_nothing "
            "per_channel scale_and_shift sees_the_image"
        ),
        "compressed": "Beside Compressed as_quick by_digits",
        "constants": "Constants Origin",
        "formulas": "Factors along factors is_numpy maker single",
        "moving": "in_order only_moves reshaping transposing",
        "nodes": (
            "Means Node Plan Region Scales Steps Value constant kept_as_levels only_user part_of"
        ),
        "operations": (
            "BINARY CONVOLUTIONS CUTS EITHER_WAY HEADS POOLINGS SHUFFLE SPATIAL TRANSPOSED UNARY "
            "claimed_type products stands_beside work"
        ),
        "grid": "Grid Integers Joined MIDDLE WHOLE",
        "quantized": "MOVING grid_of grids groups_together integers is_function_of moved",
        "regions": "cut_regions plan_region",
        "tables": "BYTES CURVES Table table",
    },
)
