"""The operation versions that kernels and passes of the engine compute.

A version that is not here, such as one of a plug-in, is computed by its own definition, whatever
its type is called.
"""

from __future__ import annotations

from functools import cache

from .... import layers
from ....layers.base import Op

#: The versions of each type.
CLAIMED = {
    "Abs": {1},
    "Add": {1},
    "AvgPool": {1, 14, 16},
    "BatchNormInference": {1, 5},
    "Broadcast": {1, 3},
    "Clamp": {1},
    "Concat": {1},
    "Convolution": {1},
    "ConvolutionBackpropData": {1},
    "Divide": {1},
    "Elu": {1},
    "Erf": {1},
    "Exp": {1},
    "Floor": {1},
    "Gather": {1, 7, 8},
    "Gelu": {2, 7},
    "GroupConvolution": {1},
    "GroupConvolutionBackpropData": {1},
    "HSigmoid": {5},
    "HSwish": {4},
    "HardSigmoid": {1},
    "Identity": {16},
    "Interpolate": {1, 4, 11},
    "LRN": {1},
    "Log": {1},
    "MVN": {1, 6},
    "MatMul": {1},
    "MaxPool": {1, 8, 14},
    "Maximum": {1},
    "Minimum": {1},
    "Mish": {4},
    "Multiply": {1},
    "Negative": {1},
    "PReLU": {1},
    "Pad": {1, 12},
    "ReLU": {1},
    "ReduceMax": {1},
    "ReduceMean": {1},
    "ReduceMin": {1},
    "ReduceProd": {1},
    "ReduceSum": {1},
    "Reshape": {1},
    "ShuffleChannels": {1},
    "Sigmoid": {1},
    "Slice": {8},
    "SoftMax": {1, 8},
    "SoftPlus": {4},
    "Split": {1},
    "Sqrt": {1},
    "SquaredDifference": {1},
    "Squeeze": {1, 15},
    "StridedSlice": {1},
    "Subtract": {1},
    "Swish": {4},
    "Tanh": {1},
    "Transpose": {1},
    "Unsqueeze": {1},
    "VariadicSplit": {1},
}


@cache
def claimed_type(operation: type[Op]) -> str:
    """The type by which kernels are chosen; empty for a version, or a class, that none claims."""
    ours = operation.__module__.rpartition(".")[0] == layers.__name__
    claimed = ours and operation.number in CLAIMED.get(operation.xml_type, ())
    return operation.xml_type if claimed else ""
