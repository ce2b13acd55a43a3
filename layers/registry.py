"""Which file holds which operations.

A process meets few of some 250 operations: a file is imported when one of its types is first
asked for, and all are when somebody looks at the whole registry.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

#: What stands for an operation: a class.
T = TypeVar("T")

_TYPES = {
    "activation": (
        "Clamp Elu Exp Gelu HSigmoid HSwish HardSigmoid Identity LogSoftmax Mish PReLU ReLU Selu "
        "Sigmoid SoftMax SoftPlus SoftSign Swish"
    ),
    "arithmetic": (
        "Add CumSum Divide FloorMod Maximum Minimum Mod Multiply Power SegmentMax "
        "SquaredDifference Subtract"
    ),
    "arithmetic_functions": (
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceiling Cos Cosh Erf ErfInv Floor Log Negative "
        "Round Sign Sin Sinh Sqrt Tan Tanh"
    ),
    "bitwise": "BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor",
    "comparison": "Equal Greater GreaterEqual IsFinite IsInf IsNaN Less LessEqual NotEqual",
    "condition": "Bucketize If NonZero Select",
    "convolution": (
        "BinaryConvolution Convolution ConvolutionBackpropData DeformableConvolution "
        "GroupConvolution GroupConvolutionBackpropData"
    ),
    "detection": "PSROIPooling ROIAlign ROIPooling RegionYolo ReorgYolo",
    "detection_experimental": (
        "ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage "
        "ExperimentalDetectronPriorGridGenerator GenerateProposals Proposal"
    ),
    "detection_output": "DetectionOutput",
    "detection_prior": "PriorBox PriorBoxClustered",
    "detection_sampling": (
        "DeformablePSROIPooling ExperimentalDetectronROIFeatureExtractor ROIAlignRotated"
    ),
    "generation": "Eye Multinomial RandomUniform Range",
    "image": "GridSample Interpolate",
    "image_color": "BGRtoNV12 I420toBGR I420toRGB NV12toBGR NV12toRGB RGBtoNV12",
    "infrastructure": "Assign Const Loop Parameter ReadValue Result TensorIterator",
    "logical": "LogicalAnd LogicalNot LogicalOr LogicalXor Xor",
    "matrix": "Einsum GroupedMatMul Inverse MatMul",
    "movement": "Broadcast Concat Reverse ReverseSequence Roll Split Tile Transpose VariadicSplit",
    "movement_blocks": (
        "BatchToSpace Col2Im DepthToSpace ExtractImagePatches ShuffleChannels SpaceToBatch "
        "SpaceToDepth"
    ),
    "movement_gather": (
        "Gather GatherElements GatherND GatherTree ScatterElementsUpdate ScatterNDUpdate "
        "ScatterUpdate Unique"
    ),
    "movement_slice": "Pad Slice SliceScatter StridedSlice",
    "normalization": "BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2",
    "pooling": "AdaptiveAvgPool AdaptiveMaxPool AvgPool MaxPool",
    "quantization": "FakeConvert FakeQuantize",
    "reduction": (
        "ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum"
    ),
    "sequence": "CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss OneHot ScaledDotProductAttention",
    "sequence_recurrent": "GRUCell GRUSequence LSTMCell LSTMSequence RNNCell RNNSequence",
    "shape": "Reshape ShapeOf Squeeze Unsqueeze",
    "signals": "DFT IDFT IRDFT ISTFT RDFT STFT",
    "sort": "ExperimentalDetectronTopKROIs SearchSorted TopK",
    "sort_classes": "MatrixNms MulticlassNms",
    "sort_nms": "NMSRotated NonMaxSuppression",
    "sparse": (
        "EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum "
        "EmbeddingSegmentsSum SparseFillEmptyRows"
    ),
    "type": "Convert ConvertLike ConvertPromoteTypes StringTensorPack StringTensorUnpack",
}

#: The types of each file of operations.
FILES: dict[str, tuple[str, ...]] = {file: tuple(text.split()) for file, text in _TYPES.items()}
_FILE_OF = {kind: file for file, kinds in FILES.items() for kind in kinds}


class Registry(MutableMapping[tuple[str, int], T], Generic[T]):
    """Operations by type and number; what is asked for is imported first."""

    def __init__(self) -> None:
        #: Those that were imported so far.
        self.met: dict[tuple[str, int], T] = {}

    def __getitem__(self, key: tuple[str, int]) -> T:
        if key not in self.met:
            self.meet(key[0])
        return self.met[key]

    def __setitem__(self, key: tuple[str, int], op: T) -> None:
        self.met[key] = op

    def __delitem__(self, key: tuple[str, int]) -> None:
        del self.met[key]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for file in FILES:
            _import(file)
        return iter(self.met)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def meet(self, kind: str) -> None:
        """Import the file that holds a type, where there is one."""
        if kind in _FILE_OF:
            _import(_FILE_OF[kind])

    def types(self) -> set[str]:
        """Every type, without importing any."""
        return {*_FILE_OF, *(kind for kind, _ in self.met)}


def _import(file: str) -> None:
    import_module(f".{file}", __package__)
