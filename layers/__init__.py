"""The operations: one class per version, found by type and opset.

Their files are imported when one of their operations is first asked for (see ``registry``)::

    from vinoir.layers import MaxPoolV14
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..schemas.printing import meant
from .base import Op
from .registry import FILES

if TYPE_CHECKING:
    from . import (
        activation,
        arithmetic,
        arithmetic_functions,
        bitwise,
        comparison,
        condition,
        convolution,
        detection,
        detection_experimental,
        detection_output,
        detection_prior,
        detection_sampling,
        generation,
        image,
        image_color,
        infrastructure,
        logical,
        matrix,
        movement,
        movement_blocks,
        movement_gather,
        movement_slice,
        normalization,
        pooling,
        quantization,
        reduction,
        sequence,
        sequence_recurrent,
        shape,
        signals,
        sort,
        sort_classes,
        sort_nms,
        sparse,
        type,
    )
    from .activation import ClampV1 as ClampV1
    from .activation import EluV1 as EluV1
    from .activation import ExpV1 as ExpV1
    from .activation import GeluV2 as GeluV2
    from .activation import GeluV7 as GeluV7
    from .activation import HardSigmoidV1 as HardSigmoidV1
    from .activation import HSigmoidV5 as HSigmoidV5
    from .activation import HSwishV4 as HSwishV4
    from .activation import IdentityV16 as IdentityV16
    from .activation import LogSoftmaxV5 as LogSoftmaxV5
    from .activation import MishV4 as MishV4
    from .activation import PReLUV1 as PReLUV1
    from .activation import ReLUV1 as ReLUV1
    from .activation import SeluV1 as SeluV1
    from .activation import SigmoidV1 as SigmoidV1
    from .activation import SoftMaxV1 as SoftMaxV1
    from .activation import SoftMaxV8 as SoftMaxV8
    from .activation import SoftPlusV4 as SoftPlusV4
    from .activation import SoftSignV9 as SoftSignV9
    from .activation import SwishV4 as SwishV4
    from .arithmetic import AddV1 as AddV1
    from .arithmetic import CumSumV3 as CumSumV3
    from .arithmetic import DivideV1 as DivideV1
    from .arithmetic import FloorModV1 as FloorModV1
    from .arithmetic import MaximumV1 as MaximumV1
    from .arithmetic import MinimumV1 as MinimumV1
    from .arithmetic import ModV1 as ModV1
    from .arithmetic import MultiplyV1 as MultiplyV1
    from .arithmetic import PowerV1 as PowerV1
    from .arithmetic import SegmentMaxV16 as SegmentMaxV16
    from .arithmetic import SquaredDifferenceV1 as SquaredDifferenceV1
    from .arithmetic import SubtractV1 as SubtractV1
    from .arithmetic_functions import AbsV1 as AbsV1
    from .arithmetic_functions import AcoshV3 as AcoshV3
    from .arithmetic_functions import AcosV1 as AcosV1
    from .arithmetic_functions import AsinhV3 as AsinhV3
    from .arithmetic_functions import AsinV1 as AsinV1
    from .arithmetic_functions import AtanhV3 as AtanhV3
    from .arithmetic_functions import AtanV1 as AtanV1
    from .arithmetic_functions import CeilingV1 as CeilingV1
    from .arithmetic_functions import CoshV1 as CoshV1
    from .arithmetic_functions import CosV1 as CosV1
    from .arithmetic_functions import ErfInvV17 as ErfInvV17
    from .arithmetic_functions import ErfV1 as ErfV1
    from .arithmetic_functions import FloorV1 as FloorV1
    from .arithmetic_functions import LogV1 as LogV1
    from .arithmetic_functions import NegativeV1 as NegativeV1
    from .arithmetic_functions import RoundV5 as RoundV5
    from .arithmetic_functions import SignV1 as SignV1
    from .arithmetic_functions import SinhV1 as SinhV1
    from .arithmetic_functions import SinV1 as SinV1
    from .arithmetic_functions import SqrtV1 as SqrtV1
    from .arithmetic_functions import TanhV1 as TanhV1
    from .arithmetic_functions import TanV1 as TanV1
    from .bitwise import BitwiseAndV13 as BitwiseAndV13
    from .bitwise import BitwiseLeftShiftV15 as BitwiseLeftShiftV15
    from .bitwise import BitwiseNotV13 as BitwiseNotV13
    from .bitwise import BitwiseOrV13 as BitwiseOrV13
    from .bitwise import BitwiseRightShiftV15 as BitwiseRightShiftV15
    from .bitwise import BitwiseXorV13 as BitwiseXorV13
    from .comparison import EqualV1 as EqualV1
    from .comparison import GreaterEqualV1 as GreaterEqualV1
    from .comparison import GreaterV1 as GreaterV1
    from .comparison import IsFiniteV10 as IsFiniteV10
    from .comparison import IsInfV10 as IsInfV10
    from .comparison import IsNaNV10 as IsNaNV10
    from .comparison import LessEqualV1 as LessEqualV1
    from .comparison import LessV1 as LessV1
    from .comparison import NotEqualV1 as NotEqualV1
    from .condition import BucketizeV3 as BucketizeV3
    from .condition import IfV8 as IfV8
    from .condition import NonZeroV3 as NonZeroV3
    from .condition import SelectV1 as SelectV1
    from .convolution import BinaryConvolutionV1 as BinaryConvolutionV1
    from .convolution import ConvolutionBackpropDataV1 as ConvolutionBackpropDataV1
    from .convolution import ConvolutionV1 as ConvolutionV1
    from .convolution import DeformableConvolutionV1 as DeformableConvolutionV1
    from .convolution import DeformableConvolutionV8 as DeformableConvolutionV8
    from .convolution import GroupConvolutionBackpropDataV1 as GroupConvolutionBackpropDataV1
    from .convolution import GroupConvolutionV1 as GroupConvolutionV1
    from .detection import PSROIPoolingV1 as PSROIPoolingV1
    from .detection import RegionYoloV1 as RegionYoloV1
    from .detection import ReorgYoloV1 as ReorgYoloV1
    from .detection import ROIAlignV3 as ROIAlignV3
    from .detection import ROIAlignV9 as ROIAlignV9
    from .detection import ROIPoolingV1 as ROIPoolingV1
    from .detection_experimental import (
        ExperimentalDetectronDetectionOutputV6 as ExperimentalDetectronDetectionOutputV6,
    )
    from .detection_experimental import (
        ExperimentalDetectronGenerateProposalsSingleImageV6 as ExperimentalDetectronGenerateProposalsSingleImageV6,  # noqa: E501  # its name
    )
    from .detection_experimental import (
        ExperimentalDetectronPriorGridGeneratorV6 as ExperimentalDetectronPriorGridGeneratorV6,
    )
    from .detection_experimental import GenerateProposalsV9 as GenerateProposalsV9
    from .detection_experimental import ProposalV1 as ProposalV1
    from .detection_experimental import ProposalV4 as ProposalV4
    from .detection_output import DetectionOutputV1 as DetectionOutputV1
    from .detection_output import DetectionOutputV8 as DetectionOutputV8
    from .detection_prior import PriorBoxClusteredV1 as PriorBoxClusteredV1
    from .detection_prior import PriorBoxV1 as PriorBoxV1
    from .detection_prior import PriorBoxV8 as PriorBoxV8
    from .detection_sampling import DeformablePSROIPoolingV1 as DeformablePSROIPoolingV1
    from .detection_sampling import (
        ExperimentalDetectronROIFeatureExtractorV6 as ExperimentalDetectronROIFeatureExtractorV6,
    )
    from .detection_sampling import ROIAlignRotatedV15 as ROIAlignRotatedV15
    from .generation import EyeV9 as EyeV9
    from .generation import MultinomialV13 as MultinomialV13
    from .generation import RandomUniformV8 as RandomUniformV8
    from .generation import RangeV1 as RangeV1
    from .generation import RangeV4 as RangeV4
    from .image import GridSampleV9 as GridSampleV9
    from .image import InterpolateV1 as InterpolateV1
    from .image import InterpolateV4 as InterpolateV4
    from .image import InterpolateV11 as InterpolateV11
    from .image_color import BGRtoNV12V17 as BGRtoNV12V17
    from .image_color import I420toBGRV8 as I420toBGRV8
    from .image_color import I420toRGBV8 as I420toRGBV8
    from .image_color import NV12toBGRV8 as NV12toBGRV8
    from .image_color import NV12toRGBV8 as NV12toRGBV8
    from .image_color import RGBtoNV12V17 as RGBtoNV12V17
    from .infrastructure import AssignV3 as AssignV3
    from .infrastructure import AssignV6 as AssignV6
    from .infrastructure import ConstV1 as ConstV1
    from .infrastructure import LoopV5 as LoopV5
    from .infrastructure import ParameterV1 as ParameterV1
    from .infrastructure import ReadValueV3 as ReadValueV3
    from .infrastructure import ReadValueV6 as ReadValueV6
    from .infrastructure import ResultV1 as ResultV1
    from .infrastructure import TensorIteratorV1 as TensorIteratorV1
    from .logical import LogicalAndV1 as LogicalAndV1
    from .logical import LogicalNotV1 as LogicalNotV1
    from .logical import LogicalOrV1 as LogicalOrV1
    from .logical import LogicalXorV1 as LogicalXorV1
    from .logical import XorV1 as XorV1
    from .matrix import EinsumV7 as EinsumV7
    from .matrix import GroupedMatMulV17 as GroupedMatMulV17
    from .matrix import InverseV14 as InverseV14
    from .matrix import MatMulV1 as MatMulV1
    from .movement import BroadcastV1 as BroadcastV1
    from .movement import BroadcastV3 as BroadcastV3
    from .movement import ConcatV1 as ConcatV1
    from .movement import ReverseSequenceV1 as ReverseSequenceV1
    from .movement import ReverseV1 as ReverseV1
    from .movement import RollV7 as RollV7
    from .movement import SplitV1 as SplitV1
    from .movement import TileV1 as TileV1
    from .movement import TransposeV1 as TransposeV1
    from .movement import VariadicSplitV1 as VariadicSplitV1
    from .movement_blocks import BatchToSpaceV2 as BatchToSpaceV2
    from .movement_blocks import Col2ImV15 as Col2ImV15
    from .movement_blocks import DepthToSpaceV1 as DepthToSpaceV1
    from .movement_blocks import ExtractImagePatchesV3 as ExtractImagePatchesV3
    from .movement_blocks import ShuffleChannelsV1 as ShuffleChannelsV1
    from .movement_blocks import SpaceToBatchV2 as SpaceToBatchV2
    from .movement_blocks import SpaceToDepthV1 as SpaceToDepthV1
    from .movement_gather import GatherElementsV6 as GatherElementsV6
    from .movement_gather import GatherNDV5 as GatherNDV5
    from .movement_gather import GatherNDV8 as GatherNDV8
    from .movement_gather import GatherTreeV1 as GatherTreeV1
    from .movement_gather import GatherV1 as GatherV1
    from .movement_gather import GatherV7 as GatherV7
    from .movement_gather import GatherV8 as GatherV8
    from .movement_gather import ScatterElementsUpdateV3 as ScatterElementsUpdateV3
    from .movement_gather import ScatterElementsUpdateV12 as ScatterElementsUpdateV12
    from .movement_gather import ScatterNDUpdateV3 as ScatterNDUpdateV3
    from .movement_gather import ScatterNDUpdateV15 as ScatterNDUpdateV15
    from .movement_gather import ScatterUpdateV3 as ScatterUpdateV3
    from .movement_gather import UniqueV10 as UniqueV10
    from .movement_slice import PadV1 as PadV1
    from .movement_slice import PadV12 as PadV12
    from .movement_slice import SliceScatterV15 as SliceScatterV15
    from .movement_slice import SliceV8 as SliceV8
    from .movement_slice import StridedSliceV1 as StridedSliceV1
    from .normalization import GRNV1 as GRNV1
    from .normalization import LRNV1 as LRNV1
    from .normalization import MVNV1 as MVNV1
    from .normalization import MVNV6 as MVNV6
    from .normalization import BatchNormInferenceV1 as BatchNormInferenceV1
    from .normalization import BatchNormInferenceV5 as BatchNormInferenceV5
    from .normalization import GroupNormalizationV12 as GroupNormalizationV12
    from .normalization import NormalizeL2V1 as NormalizeL2V1
    from .pooling import AdaptiveAvgPoolV8 as AdaptiveAvgPoolV8
    from .pooling import AdaptiveMaxPoolV8 as AdaptiveMaxPoolV8
    from .pooling import AvgPoolV1 as AvgPoolV1
    from .pooling import AvgPoolV14 as AvgPoolV14
    from .pooling import AvgPoolV16 as AvgPoolV16
    from .pooling import MaxPoolV1 as MaxPoolV1
    from .pooling import MaxPoolV8 as MaxPoolV8
    from .pooling import MaxPoolV14 as MaxPoolV14
    from .quantization import FakeConvertV13 as FakeConvertV13
    from .quantization import FakeQuantizeV1 as FakeQuantizeV1
    from .reduction import ReduceL1V4 as ReduceL1V4
    from .reduction import ReduceL2V4 as ReduceL2V4
    from .reduction import ReduceLogicalAndV1 as ReduceLogicalAndV1
    from .reduction import ReduceLogicalOrV1 as ReduceLogicalOrV1
    from .reduction import ReduceMaxV1 as ReduceMaxV1
    from .reduction import ReduceMeanV1 as ReduceMeanV1
    from .reduction import ReduceMinV1 as ReduceMinV1
    from .reduction import ReduceProdV1 as ReduceProdV1
    from .reduction import ReduceSumV1 as ReduceSumV1
    from .sequence import CTCGreedyDecoderSeqLenV6 as CTCGreedyDecoderSeqLenV6
    from .sequence import CTCGreedyDecoderV1 as CTCGreedyDecoderV1
    from .sequence import CTCLossV4 as CTCLossV4
    from .sequence import OneHotV1 as OneHotV1
    from .sequence import OneHotV16 as OneHotV16
    from .sequence import ScaledDotProductAttentionV13 as ScaledDotProductAttentionV13
    from .sequence_recurrent import GRUCellV3 as GRUCellV3
    from .sequence_recurrent import GRUSequenceV5 as GRUSequenceV5
    from .sequence_recurrent import LSTMCellV1 as LSTMCellV1
    from .sequence_recurrent import LSTMCellV4 as LSTMCellV4
    from .sequence_recurrent import LSTMSequenceV5 as LSTMSequenceV5
    from .sequence_recurrent import RNNCellV3 as RNNCellV3
    from .sequence_recurrent import RNNSequenceV5 as RNNSequenceV5
    from .shape import ReshapeV1 as ReshapeV1
    from .shape import ShapeOfV1 as ShapeOfV1
    from .shape import ShapeOfV3 as ShapeOfV3
    from .shape import SqueezeV1 as SqueezeV1
    from .shape import SqueezeV15 as SqueezeV15
    from .shape import UnsqueezeV1 as UnsqueezeV1
    from .signals import DFTV7 as DFTV7
    from .signals import IDFTV7 as IDFTV7
    from .signals import IRDFTV9 as IRDFTV9
    from .signals import ISTFTV16 as ISTFTV16
    from .signals import RDFTV9 as RDFTV9
    from .signals import STFTV15 as STFTV15
    from .sort import ExperimentalDetectronTopKROIsV6 as ExperimentalDetectronTopKROIsV6
    from .sort import SearchSortedV15 as SearchSortedV15
    from .sort import TopKV1 as TopKV1
    from .sort import TopKV3 as TopKV3
    from .sort import TopKV11 as TopKV11
    from .sort_classes import MatrixNmsV8 as MatrixNmsV8
    from .sort_classes import MulticlassNmsV8 as MulticlassNmsV8
    from .sort_classes import MulticlassNmsV9 as MulticlassNmsV9
    from .sort_nms import NMSRotatedV13 as NMSRotatedV13
    from .sort_nms import NonMaxSuppressionV1 as NonMaxSuppressionV1
    from .sort_nms import NonMaxSuppressionV3 as NonMaxSuppressionV3
    from .sort_nms import NonMaxSuppressionV4 as NonMaxSuppressionV4
    from .sort_nms import NonMaxSuppressionV5 as NonMaxSuppressionV5
    from .sort_nms import NonMaxSuppressionV9 as NonMaxSuppressionV9
    from .sparse import EmbeddingBagOffsetsSumV3 as EmbeddingBagOffsetsSumV3
    from .sparse import EmbeddingBagOffsetsV15 as EmbeddingBagOffsetsV15
    from .sparse import EmbeddingBagPackedSumV3 as EmbeddingBagPackedSumV3
    from .sparse import EmbeddingBagPackedV15 as EmbeddingBagPackedV15
    from .sparse import EmbeddingSegmentsSumV3 as EmbeddingSegmentsSumV3
    from .sparse import SparseFillEmptyRowsV16 as SparseFillEmptyRowsV16
    from .type import ConvertLikeV1 as ConvertLikeV1
    from .type import ConvertPromoteTypesV14 as ConvertPromoteTypesV14
    from .type import ConvertV1 as ConvertV1
    from .type import StringTensorPackV15 as StringTensorPackV15
    from .type import StringTensorUnpackV15 as StringTensorUnpackV15

__all__ = [
    "Op",
    "activation",
    "arithmetic",
    "arithmetic_functions",
    "bitwise",
    "comparison",
    "condition",
    "convolution",
    "detection",
    "detection_experimental",
    "detection_output",
    "detection_prior",
    "detection_sampling",
    "generation",
    "image",
    "image_color",
    "infrastructure",
    "logical",
    "matrix",
    "movement",
    "movement_blocks",
    "movement_gather",
    "movement_slice",
    "normalization",
    "pooling",
    "quantization",
    "reduction",
    "sequence",
    "sequence_recurrent",
    "shape",
    "signals",
    "sort",
    "sort_classes",
    "sort_nms",
    "sparse",
    "type",
]

if not TYPE_CHECKING:  # to whom every name would be there

    def __getattr__(name: str) -> Any:
        if name in FILES:
            return import_module(f".{name}", __name__)
        kind, _, number = name.rpartition("V")
        op = Op.registry.get((kind, int(number))) if number.isdecimal() else None
        if op is not None and op.__name__ == name:
            return op
        message = f"module {__name__!r} has no attribute {name!r}"
        if not name.startswith("_"):
            newest = Op.newest(kind or name)
            hint = meant(name, __dir__()) if newest is None else f"did you mean {newest.__name__}?"
            message = f"{message}, {hint}" if hint else message
        raise AttributeError(message, name=name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(op.__name__ for op in Op.registry.values())})
