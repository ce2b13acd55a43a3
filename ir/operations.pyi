"""What ``ir.ops`` has, for type checkers and editors; made by ``tests/operations_stub.py``."""

import inspect
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..layers.base import Op
from ..schemas.shapes import ShapeLike
from ..schemas.types import TypeLike
from .document import Builder, Output, Value

Input: TypeAlias = Output | Value

NOT_CALLED: frozenset[str]

def signature(op: type[Op]) -> inspect.Signature: ...

class Operations:
    def __dir__(self) -> list[str]: ...
    def Abs(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The distance from zero."""

    def Acos(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the cosine."""

    def Acosh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the hyperbolic cosine."""

    def AdaptiveAvgPool(
        self,
        data: Input,
        output_shape: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The mean of each window."""

    def AdaptiveMaxPool(
        self,
        data: Input,
        output_shape: Input,
        *,
        index_element_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The largest value of each window, and where it was in the flat spatial axes.

        Args:
            index_element_type: Element type of the indices: i32 or i64.
        """

    def Add(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The sum.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Asin(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the sine."""

    def Asinh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the hyperbolic sine."""

    def Assign(
        self,
        new_value: Input,
        *,
        variable_id: str,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Assign-3, to a variable whose type and shape its ReadValue-6 declares.

        Args:
            variable_id: Name of the variable.
        """

    def Atan(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the tangent."""

    def Atanh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of the hyperbolic tangent."""

    def AvgPool(
        self,
        data: Input,
        *,
        strides: Sequence[int],
        kernel: Sequence[int],
        exclude_pad: bool,
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = ...,
        dilations: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """AvgPool-14 with dilations.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            kernel: Size of the window, for each spatial axis.
            rounding_type: Whether a last window that is not whole is left out or kept.
            exclude_pad: Whether padding is left out of the mean.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
        """

    def BGRtoNV12(
        self,
        image: Input,
        *,
        single_plane: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From blue, green and red to NV12.

        Args:
            single_plane: Whether all planes are one output.
        """

    def BatchNormInference(
        self,
        data: Input,
        gamma: Input,
        beta: Input,
        mean: Input,
        variance: Input,
        *,
        epsilon: float,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The data are the first input.

        Args:
            epsilon: Small number that keeps the divisor from zero.
        """

    def BatchToSpace(
        self,
        data: Input,
        block_shape: Input,
        crops_begin: Input,
        crops_end: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The batches become the elements of blocks of space again; space is cropped after."""

    def BinaryConvolution(
        self,
        data: Input,
        filters: Input,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        mode: Literal["xnor-popcount"],
        pad_value: float,
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Convolution of bits that stand for 1 and -1: twice the equal ones, less all of them.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            mode: What stands in for the product of two bits.
            pad_value: What stands in the padding.
        """

    def BitwiseAnd(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bits that both have.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def BitwiseLeftShift(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bits moved up; those that leave are lost.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def BitwiseNot(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each bit turned."""

    def BitwiseOr(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bits that one has.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def BitwiseRightShift(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bits moved down; the sign stays.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def BitwiseXor(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bits that one has and the other has not.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Broadcast(
        self,
        data: Input,
        target_shape: Input,
        axes_mapping: Input | None = None,
        *,
        mode: Literal["numpy", "explicit", "bidirectional", "pdpd"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Broadcast-1 with a mode in which the data may also be repeated to, not only from.

        Args:
            mode: How the data's axes find those of the target.
        """

    def Bucketize(
        self,
        data: Input,
        buckets: Input,
        *,
        output_type: TypeLike = ...,
        with_right_bound: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """In which of the buckets each element lies, of which the ends are given in order.

        Args:
            output_type: Element type of the output.
            with_right_bound: Whether a bucket includes its right bound.
        """

    def CTCGreedyDecoder(
        self,
        data: Input,
        sequence_mask: Input,
        *,
        ctc_merge_repeated: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The likeliest class of each step, without blanks, which are the last class.

        Args:
            ctc_merge_repeated: Whether repeated labels become one.
        """

    def CTCGreedyDecoderSeqLen(
        self,
        data: Input,
        sequence_length: Input,
        blank_index: Input | None = None,
        *,
        merge_repeated: bool = ...,
        classes_index_type: TypeLike = ...,
        sequence_length_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The likeliest class of each step of sequences of given lengths, without blanks.

        Args:
            merge_repeated: Whether repeated classes become one.
            classes_index_type: Element type of the first output.
            sequence_length_type: Element type of the second output.
        """

    def CTCLoss(
        self,
        logits: Input,
        logit_length: Input,
        labels: Input,
        label_length: Input,
        blank_index: Input | None = None,
        *,
        preprocess_collapse_repeated: bool = ...,
        ctc_merge_repeated: bool = ...,
        unique: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """How unlikely the labels are: minus the logarithm of their probability, over all paths.

        Args:
            preprocess_collapse_repeated: Whether repeated labels become one beforehand.
            ctc_merge_repeated: Whether repeated labels become one.
            unique: Whether labels that come again are left out.
        """

    def Ceiling(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The least whole number that is not below."""

    def Clamp(
        self,
        data: Input,
        *,
        min: float,
        max: float,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x`` held between ``min`` and ``max``; for integers, between the whole numbers within.

        Args:
            min: Smallest value that is kept.
            max: Largest value that is kept.
        """

    def Col2Im(
        self,
        data: Input,
        output_size: Input,
        kernel_size: Input,
        *,
        strides: Sequence[int] = ...,
        dilations: Sequence[int] = ...,
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Columns of windows added up to the image they were taken from.

        Args:
            strides: Steps of the window, for each spatial axis.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
        """

    def Concat(
        self,
        *inputs: Input | Sequence[Input],
        axis: int,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inputs, one after the other along an axis.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
        """

    def Convert(
        self,
        data: Input,
        *,
        destination_type: TypeLike,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Values in another element type.

        Args:
            destination_type: Element type that values are converted to.
        """

    def ConvertLike(
        self,
        data: Input,
        like: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Values in the element type of another tensor."""

    def ConvertPromoteTypes(
        self,
        input_0: Input,
        input_1: Input,
        *,
        promote_unsafe: bool = ...,
        pytorch_scalar_promotion: bool = ...,
        u64_integer_promotion_target: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Two tensors in the least element type that serves both.

        Args:
            promote_unsafe: Whether types may be met by one that does not hold all of their values.
            pytorch_scalar_promotion: Whether scalars give way to tensors, as in PyTorch.
            u64_integer_promotion_target: Element type in which u64 meets signed integers.
        """

    def Convolution(
        self,
        data: Input,
        filters: Input,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each output channel: the sum of products of all input channels' windows with its filter.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
        """

    def ConvolutionBackpropData(
        self,
        data: Input,
        filters: Input,
        output_shape: Input | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        output_padding: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Convolution the other way round: each element spreads the filter over the output.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            output_padding: Elements added at the end of the output, for each spatial axis.
        """

    def Cos(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The cosine."""

    def Cosh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The hyperbolic cosine."""

    def CumSum(
        self,
        data: Input,
        axis: Input | None = None,
        *,
        exclusive: bool = ...,
        reverse: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The sum of the elements so far along an axis, with the element itself or without.

        Args:
            exclusive: Whether each sum is without the element at its own place.
            reverse: Whether it goes from the last element to the first.
        """

    def DFT(
        self,
        data: Input,
        axes: Input,
        signal_size: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The discrete Fourier transform."""

    def DeformableConvolution(
        self,
        data: Input,
        offsets: Input,
        filters: Input,
        mask: Input | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        group: int = ...,
        deformable_group: int = ...,
        bilinear_interpolation_pad: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """DeformableConvolution-1 with a mask of weights, and with a choice of what lies outside.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            group: Number of groups into which channels are divided.
            deformable_group: Into how many groups of channels the offsets are divided.
            bilinear_interpolation_pad: Whether samples beyond the border are blended with zeros.
        """

    def DeformablePSROIPooling(
        self,
        data: Input,
        rois: Input,
        offsets: Input | None = None,
        *,
        output_dim: int,
        spatial_scale: float,
        group_size: int = ...,
        mode: str = ...,
        spatial_bins_x: int = ...,
        spatial_bins_y: int = ...,
        trans_std: float = ...,
        part_size: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each cell of a region from channels of its own, moved by learnt offsets.

        Args:
            output_dim: Number of output channels.
            spatial_scale: Factor from coordinates of boxes to those of the feature map.
            group_size: Number of cells along each side of a box.
            mode: How a cell is sampled.
            spatial_bins_x: Samples of a cell from left to right.
            spatial_bins_y: Samples of a cell from top to bottom.
            trans_std: Factor of the offsets.
            part_size: Number of parts along each side for which there are offsets.
        """

    def DepthToSpace(
        self,
        data: Input,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each element of space becomes a block of space with fewer channels.

        Args:
            block_size: Side of a block, the same along each spatial axis.
            mode: Whether the block comes before or after the channels in the depth.
        """

    def DetectionOutput(
        self,
        box_logits: Input,
        class_preds: Input,
        proposals: Input,
        aux_class_preds: Input | None = None,
        aux_box_preds: Input | None = None,
        *,
        keep_top_k: Sequence[int],
        nms_threshold: float,
        background_label_id: int = ...,
        top_k: int = ...,
        variance_encoded_in_target: bool = ...,
        code_type: Literal[
            "caffe.PriorBoxParameter.CORNER",
            "caffe.PriorBoxParameter.CENTER_SIZE",
        ] = ...,
        share_location: bool = ...,
        confidence_threshold: float = ...,
        clip_after_nms: bool = ...,
        clip_before_nms: bool = ...,
        decrease_label_id: bool = ...,
        normalized: bool = ...,
        input_height: int = ...,
        input_width: int = ...,
        objectness_score: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """DetectionOutput-1 with the number of classes told from the inputs.

        Args:
            background_label_id: The class that is background; -1 for none.
            top_k: How many boxes of a class are looked at; -1 for all.
            variance_encoded_in_target: Whether variances are already in the box logits.
            keep_top_k: How many boxes of an image are kept; -1 for all.
            code_type: How boxes are encoded in respect to the prior boxes.
            share_location: Whether all classes share one box.
            nms_threshold: Overlap above which a box is suppressed.
            confidence_threshold: Boxes of a lower confidence are left out.
            clip_after_nms: Whether boxes are held on the image after suppression.
            clip_before_nms: Whether boxes are held on the image before suppression.
            decrease_label_id: Whether boxes are chosen as MXNet does, with labels from 0.
            normalized: Whether coordinates are parts of the image in place of pixels.
            input_height: Height of the image, where boxes are not normalized.
            input_width: Width of the image, where boxes are not normalized.
            objectness_score: Boxes that are objects with a lower confidence are left out.
        """

    def Divide(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        m_pythondiv: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The quotient; of integers the whole quotient below it, or (not python) towards zero.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
            m_pythondiv: Whether integers are divided downwards, as Python does.
        """

    def Einsum(
        self,
        *inputs: Input | Sequence[Input],
        equation: str,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Sums of products over the axes that an equation such as ``ab,bc->ac`` names.

        Args:
            equation: Labels of the axes of each input and of the output, such as ab,bc->ac.
        """

    def Elu(
        self,
        data: Input,
        *,
        alpha: float,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x``, below zero ``alpha * (exp(x) - 1)``.

        Args:
            alpha: Factor of the function's negative part.
        """

    def EmbeddingBagOffsets(
        self,
        emb_table: Input,
        indices: Input,
        offsets: Input,
        default_index: Input | None = None,
        per_sample_weights: Input | None = None,
        *,
        reduction: Literal["mean", "sum"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """EmbeddingBagOffsetsSum-3 with a choice of sum or mean.

        Args:
            reduction: How values that meet at one place are joined.
        """

    def EmbeddingBagOffsetsSum(
        self,
        emb_table: Input,
        indices: Input,
        offsets: Input,
        default_index: Input | None = None,
        per_sample_weights: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bags that begin at offsets into one list; an empty bag holds the default row, or
        zeros."""

    def EmbeddingBagPacked(
        self,
        emb_table: Input,
        indices: Input,
        per_sample_weights: Input | None = None,
        *,
        reduction: Literal["mean", "sum"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """EmbeddingBagPackedSum-3 with a choice of sum or mean.

        Args:
            reduction: How values that meet at one place are joined.
        """

    def EmbeddingBagPackedSum(
        self,
        emb_table: Input,
        indices: Input,
        per_sample_weights: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bags of equal length: the rows of a matrix of indices."""

    def EmbeddingSegmentsSum(
        self,
        emb_table: Input,
        indices: Input,
        segment_ids: Input,
        num_segments: Input,
        default_index: Input | None = None,
        per_sample_weights: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Bags named for each index; an empty bag holds the default row, or zeros."""

    def Equal(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the two are the same.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Erf(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The error function."""

    def ErfInv(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The number whose error function it is; infinite at -1 and 1, NaN beyond."""

    def Exp(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The exponential function."""

    def ExperimentalDetectronDetectionOutput(
        self,
        input_rois: Input,
        input_deltas: Input,
        input_scores: Input,
        input_im_info: Input,
        *,
        score_threshold: float,
        nms_threshold: float,
        max_delta_log_wh: float,
        num_classes: int,
        post_nms_count: int,
        max_detections_per_image: int,
        deltas_weights: Sequence[float],
        class_agnostic_box_regression: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The best boxes of all classes but the first; those left over are zeros.

        Args:
            score_threshold: Boxes of a lower score are left out.
            nms_threshold: Overlap above which a box is suppressed.
            max_delta_log_wh: Largest logarithm of a change of size.
            num_classes: Number of classes.
            post_nms_count: How many boxes are kept after suppression.
            max_detections_per_image: How many boxes an image has at most.
            class_agnostic_box_regression: Whether all classes share one box.
            deltas_weights: By what the four deltas of a box are divided.
        """

    def ExperimentalDetectronGenerateProposalsSingleImage(
        self,
        im_info: Input,
        anchors: Input,
        deltas: Input,
        scores: Input,
        *,
        min_size: float,
        nms_threshold: float,
        post_nms_count: int,
        pre_nms_count: int,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Boxes and scores of one image; those left over are zeros, as are scores of small boxes.

        Args:
            min_size: Boxes with a smaller side are left out.
            nms_threshold: Overlap above which a box is suppressed.
            post_nms_count: How many boxes are kept after suppression.
            pre_nms_count: How many boxes are looked at by suppression.
        """

    def ExperimentalDetectronPriorGridGenerator(
        self,
        priors: Input,
        feature_map: Input,
        im_data: Input,
        *,
        flatten: bool = ...,
        h: int = ...,
        w: int = ...,
        stride_x: float = ...,
        stride_y: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The priors, moved to the middle of every cell of the feature map.

        Args:
            flatten: Whether the boxes are one list in place of a grid.
            h: Number of rows of cells; 0 takes those of the feature map.
            w: Number of columns of cells; 0 takes those of the feature map.
            stride_x: Pixels between two columns of cells; 0 derives it from the sizes.
            stride_y: Pixels between two rows of cells; 0 derives it from the sizes.
        """

    def ExperimentalDetectronROIFeatureExtractor(
        self,
        rois: Input,
        *pyramid: Input | Sequence[Input],
        output_size: int,
        sampling_ratio: int,
        pyramid_scales: Sequence[int],
        aligned: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each region from the one map of a pyramid that suits its size.

        Args:
            output_size: Number of cells along each side.
            sampling_ratio: Samples along each side of a cell; 0 takes as many as it has pixels.
            pyramid_scales: Pixels of the image for each cell, for each level of the pyramid.
            aligned: Whether boxes are moved by half a pixel before they are sampled.
        """

    def ExperimentalDetectronTopKROIs(
        self,
        input_rois: Input,
        rois_probs: Input,
        *,
        max_rois: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The boxes of the greatest probabilities, in descending order.

        Args:
            max_rois: How many regions are kept.
        """

    def ExtractImagePatches(
        self,
        data: Input,
        *,
        sizes: Sequence[int],
        strides: Sequence[int],
        rates: Sequence[int],
        auto_pad: Literal["same_lower", "same_upper", "valid"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Windows of an image, each laid out along the channels of one element.

        Args:
            sizes: Size of a patch, for each spatial axis.
            strides: Steps of the window, for each spatial axis.
            rates: Distance between neighbouring elements of a patch, for each spatial axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
        """

    def Eye(
        self,
        num_rows: Input,
        num_columns: Input,
        diagonal_index: Input,
        batch_shape: Input | None = None,
        *,
        output_type: TypeLike,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Matrices with ones on one diagonal and zeros elsewhere.

        Args:
            output_type: Element type of the output.
        """

    def FakeConvert(
        self,
        data: Input,
        scale: Input,
        shift: Input | None = None,
        *,
        destination_type: TypeLike,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Scaled and shifted, rounded to an 8-bit float by way of float16, and brought back.

        Args:
            destination_type: Element type that values are converted to.
        """

    def FakeQuantize(
        self,
        data: Input,
        input_low: Input,
        input_high: Input,
        output_low: Input,
        output_high: Input,
        *,
        levels: int,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Rounded to one of ``levels`` between two limits, then laid between two others.

        Args:
            levels: Number of values that quantization leaves.
            auto_broadcast: How shapes that differ are brought together.
        """

    def Floor(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The greatest whole number that is not above."""

    def FloorMod(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The remainder, with the sign of the second operand.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def GRN(
        self,
        data: Input,
        *,
        bias: float,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Divided by the root of the sum of squares over the channels, ``bias`` added to it.

        Args:
            bias: Added below the root.
        """

    def GRUCell(
        self,
        x: Input,
        initial_hidden_state: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        linear_before_reset: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """One step of gated recurrence.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
            linear_before_reset: Whether the reset gate is applied after the product with R.
        """

    def GRUSequence(
        self,
        x: Input,
        h_t: Input,
        sequence_lengths: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        linear_before_reset: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Steps of gated recurrence.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
            linear_before_reset: Whether the reset gate is applied after the product with R.
            direction: In which order the steps are taken.
        """

    def Gather(
        self,
        data: Input,
        indices: Input,
        axis: Input,
        *,
        batch_dims: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Gather-7 where indices may count from the end.

        Args:
            batch_dims: How many leading axes data and indices share.
        """

    def GatherElements(
        self,
        data: Input,
        indices: Input,
        *,
        axis: int,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Elements of the data: the place of each index, but for the axis along which it counts.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
        """

    def GatherND(
        self,
        data: Input,
        indices: Input,
        *,
        batch_dims: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Slices of the data, each chosen by a row of indices for its leading axes.

        Args:
            batch_dims: How many leading axes data and indices share.
        """

    def GatherTree(
        self,
        step_ids: Input,
        parent_idx: Input,
        max_seq_len: Input,
        end_token: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The beams of a search, followed from their ends back to the first step."""

    def Gelu(
        self,
        data: Input,
        *,
        approximation_mode: Literal["ERF", "TANH"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Gelu-2, or the same by way of tanh.

        Args:
            approximation_mode: How the error function is computed: exactly, or by tanh.
        """

    def GenerateProposals(
        self,
        im_info: Input,
        anchors: Input,
        deltas: Input,
        scores: Input,
        *,
        min_size: float,
        nms_threshold: float,
        post_nms_count: int,
        pre_nms_count: int,
        normalized: bool = ...,
        nms_eta: float = ...,
        roi_num_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Boxes and scores of all images in one row, and how many there are of each.

        Args:
            min_size: Boxes with a smaller side are left out.
            nms_threshold: Overlap above which a box is suppressed.
            post_nms_count: How many boxes are kept after suppression.
            pre_nms_count: How many boxes are looked at by suppression.
            normalized: Whether coordinates are parts of the image in place of pixels.
            nms_eta: Factor by which the threshold falls after each box that is kept.
            roi_num_type: Element type of the numbers of boxes: i32 or i64.
        """

    def Greater(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the first is above the second.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def GreaterEqual(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the first is not below the second.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def GridSample(
        self,
        data: Input,
        grid: Input,
        *,
        align_corners: bool = ...,
        mode: Literal["bilinear", "bicubic", "nearest"] = ...,
        padding_mode: Literal["zeros", "border", "reflection"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The data at places given from -1 (one edge) to 1 (the other), as ``x, y`` pairs.

        Args:
            align_corners: Whether the outermost pixels of input and output lie upon each other.
            mode: How pixels around a place are blended.
            padding_mode: What is read beyond the border.
        """

    def GroupConvolution(
        self,
        data: Input,
        filters: Input,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """A convolution for each group of channels; the filters' first axis is the group.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
        """

    def GroupConvolutionBackpropData(
        self,
        data: Input,
        filters: Input,
        output_shape: Input | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        output_padding: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ConvolutionBackpropData for each group; the filters' first axis is the group.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            output_padding: Elements added at the end of the output, for each spatial axis.
        """

    def GroupNormalization(
        self,
        data: Input,
        scale: Input,
        bias: Input,
        *,
        num_groups: int,
        epsilon: float,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Mean and variance of groups of channels; then a scale and a bias for each channel.

        Args:
            num_groups: Number of groups into which channels are divided.
            epsilon: Small number that keeps the divisor from zero.
        """

    def GroupedMatMul(
        self,
        mat_a: Input,
        mat_b: Input,
        offsets: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Groups of rows, each times a matrix of its own; ``offsets`` are the groups' ends."""

    def HSigmoid(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Sigmoid in three straight lines: ``min(max(x + 3, 0), 6) / 6``."""

    def HSwish(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x * min(max(x + 3, 0), 6) / 6``."""

    def HardSigmoid(
        self,
        data: Input,
        alpha: Input,
        beta: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``min(max(alpha * x + beta, 0), 1)``."""

    def I420toBGR(
        self,
        y: Input,
        u: Input | None = None,
        v: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From I420 to blue, green and red."""

    def I420toRGB(
        self,
        y: Input,
        u: Input | None = None,
        v: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From I420 to red, green and blue."""

    def IDFT(
        self,
        data: Input,
        axes: Input,
        signal_size: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of DFT, divided by the number of elements."""

    def IRDFT(
        self,
        data: Input,
        axes: Input,
        signal_size: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The inverse of RDFT: real numbers from the kept half."""

    def ISTFT(
        self,
        data: Input,
        window: Input,
        frame_size: Input,
        frame_step: Input,
        length: Input | None = None,
        *,
        center: bool,
        normalized: bool,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The signal of an STFT: frames added up in their places, over the windows' squares.

        Args:
            center: Whether frames are centred at multiples of the step.
            normalized: Whether frames were divided by the root of their length.
        """

    def Identity(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """What comes in."""

    def Interpolate(
        self,
        data: Input,
        sizes_or_scales: Input,
        axes: Input | None = None,
        *,
        mode: Literal[
            "nearest",
            "linear",
            "linear_onnx",
            "cubic",
            "bilinear_pillow",
            "bicubic_pillow",
        ],
        shape_calculation_mode: Literal["sizes", "scales"],
        coordinate_transformation_mode: Literal[
            "half_pixel",
            "pytorch_half_pixel",
            "asymmetric",
            "tf_half_pixel_for_nn",
            "align_corners",
        ] = ...,
        nearest_mode: Literal[
            "round_prefer_floor",
            "round_prefer_ceil",
            "floor",
            "ceil",
            "simple",
        ] = ...,
        antialias: bool = ...,
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        cube_coeff: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Interpolate-4 with sizes or scales in one input, and Pillow's modes.

        Args:
            mode: How pixels around a place are blended.
            shape_calculation_mode: Whether the second input holds sizes or scales.
            coordinate_transformation_mode: Which place of the input an output pixel stands for.
            nearest_mode: Which pixel is nearest to a place between two.
            antialias: Whether shrinking averages over all pixels that an output covers.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            cube_coeff: Coefficient of the cubic interpolation.
        """

    def Inverse(
        self,
        data: Input,
        *,
        adjoint: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Inverses of square matrices, or (``adjoint``) their adjugates: inverse times
        determinant.

        Args:
            adjoint: Whether the adjugate is computed in place of the inverse.
        """

    def IsFinite(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether it is neither infinite nor NaN."""

    def IsInf(
        self,
        data: Input,
        *,
        detect_negative: bool = ...,
        detect_positive: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether it is infinite, on the sides that count.

        Args:
            detect_negative: Whether negative infinity counts.
            detect_positive: Whether positive infinity counts.
        """

    def IsNaN(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether it is NaN."""

    def LRN(
        self,
        data: Input,
        axes: Input,
        *,
        alpha: float,
        beta: float,
        bias: float,
        size: int,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Divided by ``(bias + alpha * mean of the squares around) ** beta``.

        Args:
            alpha: Factor of the sum of squares.
            beta: Exponent.
            bias: Added to the sum of squares.
            size: Number of neighbours whose squares are summed.
        """

    def LSTMCell(
        self,
        x: Input,
        initial_hidden_state: Input,
        initial_cell_state: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """One step of long short-term memory.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
        """

    def LSTMSequence(
        self,
        x: Input,
        initial_hidden_state: Input,
        initial_cell_state: Input,
        sequence_lengths: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Steps of long short-term memory.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
            direction: In which order the steps are taken.
        """

    def Less(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the first is below the second.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def LessEqual(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the first is not above the second.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Log(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The natural logarithm."""

    def LogSoftmax(
        self,
        data: Input,
        *,
        axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The logarithm of SoftMax-8.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
        """

    def LogicalAnd(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether both are true.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def LogicalNot(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether it is false; numbers give 1 for zero and 0 for the rest, in their own type."""

    def LogicalOr(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether one is true.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def LogicalXor(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether one is true and the other is not.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def MVN(
        self,
        data: Input,
        axes: Input,
        *,
        eps: float,
        normalize_variance: bool,
        eps_mode: Literal["INSIDE_SQRT", "OUTSIDE_SQRT"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The axes are an input.

        Args:
            eps: Small number that keeps the divisor from zero.
            normalize_variance: Whether values are divided by the standard deviation.
            eps_mode: How the small number is brought in.
        """

    def MatMul(
        self,
        a: Input,
        b: Input,
        *,
        transpose_a: bool = ...,
        transpose_b: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Products of the last two axes, either of them transposed; the axes before are broadcast.

        Args:
            transpose_a: Whether the first matrix is transposed.
            transpose_b: Whether the second matrix is transposed.
        """

    def MatrixNms(
        self,
        boxes: Input,
        scores: Input,
        *,
        sort_result_type: Literal["none", "score", "classid"] = ...,
        output_type: TypeLike = ...,
        nms_top_k: int = ...,
        keep_top_k: int = ...,
        sort_result_across_batch: bool = ...,
        score_threshold: float = ...,
        background_class: int = ...,
        normalized: bool = ...,
        decay_function: Literal["linear", "gaussian"] = ...,
        gaussian_sigma: float = ...,
        post_threshold: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Scores fall with the overlap, all at once; none of a box that itself overlaps a better
        one.

        Args:
            sort_result_type: By what boxes are ordered.
            output_type: Element type of the output.
            nms_top_k: How many boxes of a class are looked at; -1 for all.
            keep_top_k: How many boxes of an image are kept; -1 for all.
            sort_result_across_batch: Whether boxes of all images are ordered together.
            score_threshold: Boxes of a lower score are left out.
            background_class: The class that is left out; -1 for none.
            normalized: Whether coordinates are parts of the image in place of pixels.
            decay_function: How scores fall with the overlap.
            gaussian_sigma: Width of the Gaussian by which scores fall.
            post_threshold: Boxes whose score has fallen to this or below are left out.
        """

    def MaxPool(
        self,
        data: Input,
        *,
        strides: Sequence[int],
        kernel: Sequence[int],
        pads_begin: Sequence[int] = ...,
        pads_end: Sequence[int] = ...,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = ...,
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = ...,
        dilations: Sequence[int] = ...,
        index_element_type: TypeLike = ...,
        axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """MaxPool-8 with ``rounding_type="ceil_torch"``.

        Args:
            strides: Steps of the window, for each spatial axis.
            pads_begin: Elements added before the first, for each axis.
            pads_end: Elements added after the last, for each axis.
            auto_pad: Whether the paddings are as given, none, or such that the size is kept.
            kernel: Size of the window, for each spatial axis.
            rounding_type: Whether a last window that is not whole is left out or kept.
            dilations: Distance between neighbouring elements of a window, for each spatial axis.
            index_element_type: Element type of the indices: i32 or i64.
            axis: The axis from which on the indices count elements.
        """

    def Maximum(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The greater of the two; NaN if one is.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Minimum(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The less of the two; NaN if one is.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Mish(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x * tanh(softplus(x))``."""

    def Mod(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The remainder, with the sign of the first operand.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def MulticlassNms(
        self,
        boxes: Input,
        scores: Input,
        roisnum: Input | None = None,
        *,
        sort_result_type: Literal["none", "score", "classid"] = ...,
        output_type: TypeLike = ...,
        nms_top_k: int = ...,
        keep_top_k: int = ...,
        sort_result_across_batch: bool = ...,
        score_threshold: float = ...,
        background_class: int = ...,
        normalized: bool = ...,
        iou_threshold: float = ...,
        nms_eta: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """With a third input, every class has boxes of its own, those of all images in one row.

        Args:
            sort_result_type: By what boxes are ordered.
            output_type: Element type of the output.
            nms_top_k: How many boxes of a class are looked at; -1 for all.
            keep_top_k: How many boxes of an image are kept; -1 for all.
            sort_result_across_batch: Whether boxes of all images are ordered together.
            score_threshold: Boxes of a lower score are left out.
            background_class: The class that is left out; -1 for none.
            normalized: Whether coordinates are parts of the image in place of pixels.
            iou_threshold: From which overlap on a box is suppressed.
            nms_eta: Factor by which the threshold falls after each box that is kept.
        """

    def Multinomial(
        self,
        probs: Input,
        num_samples: Input,
        *,
        convert_type: TypeLike,
        with_replacement: bool,
        log_probs: bool,
        global_seed: int = ...,
        op_seed: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Classes drawn by their probabilities, as OpenVINO's CPU draws them.

        Args:
            convert_type: Element type of the output.
            with_replacement: Whether a class may be drawn again.
            log_probs: Whether the input holds logarithms of probabilities.
            global_seed: Seed of the whole model; with op_seed 0 as well, numbers differ in each
                run.
            op_seed: Seed of this layer; with global_seed 0 as well, numbers differ in each run.
        """

    def Multiply(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The product.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def NMSRotated(
        self,
        boxes: Input,
        scores: Input,
        max_output_boxes_per_class: Input,
        iou_threshold: Input,
        score_threshold: Input,
        *,
        sort_result_descending: bool = ...,
        output_type: TypeLike = ...,
        clockwise: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Suppression of boxes given as centre, width, height and angle in radians.

        Args:
            sort_result_descending: Whether boxes of all classes and images are ordered by their
                score.
            output_type: Element type of the output.
            clockwise: Whether positive angles turn clockwise.
        """

    def NV12toBGR(
        self,
        y: Input,
        uv: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From NV12 to blue, green and red."""

    def NV12toRGB(
        self,
        y: Input,
        uv: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From NV12 to red, green and blue."""

    def Negative(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The number on the other side of zero."""

    def NonMaxSuppression(
        self,
        boxes: Input,
        scores: Input,
        max_output_boxes_per_class: Input | None = None,
        iou_threshold: Input | None = None,
        score_threshold: Input | None = None,
        soft_nms_sigma: Input | None = None,
        *,
        box_encoding: Literal["corner", "center"] = ...,
        sort_result_descending: bool = ...,
        output_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """NonMaxSuppression-5 where scores that fade are the only way to go.

        Args:
            box_encoding: Whether a box is given by two corners, or by centre and size.
            sort_result_descending: Whether boxes of all classes and images are ordered by their
                score.
            output_type: Element type of the output.
        """

    def NonZero(
        self,
        data: Input,
        *,
        output_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Where the elements are that are not zero: a row of indices per axis.

        Args:
            output_type: Element type of the output.
        """

    def NormalizeL2(
        self,
        data: Input,
        axes: Input,
        *,
        eps: float,
        eps_mode: Literal["add", "max"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The square root of the sum of squares made 1; without axes, every element but 0.

        Args:
            eps: Small number that keeps the divisor from zero.
            eps_mode: How the small number is brought in.
        """

    def NotEqual(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether the two differ.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def OneHot(
        self,
        indices: Input,
        depth: Input,
        on_value: Input,
        off_value: Input,
        *,
        axis: int,
        negative_indices_mode: Literal["ignore_negative", "normalize"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """OneHot-1 whose negative indices may count from the end.

        Args:
            axis: Where the new axis stands.
            negative_indices_mode: Whether negative indices are left out, or counted from the end.
        """

    def PReLU(
        self,
        data: Input,
        slope: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x``, below zero times a slope, which is one for each channel or broadcast."""

    def PSROIPooling(
        self,
        data: Input,
        boxes: Input,
        *,
        spatial_scale: float,
        output_dim: int,
        group_size: int = ...,
        mode: Literal["average", "bilinear"] = ...,
        spatial_bins_x: int = ...,
        spatial_bins_y: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The mean of each cell of a box, or samples of it, from channels of its own.

        Args:
            spatial_scale: Factor from coordinates of boxes to those of the feature map.
            output_dim: Number of output channels.
            group_size: Number of cells along each side of a box.
            mode: Whether a cell takes its mean, or samples.
            spatial_bins_x: Samples of a cell from left to right.
            spatial_bins_y: Samples of a cell from top to bottom.
        """

    def Pad(
        self,
        data: Input,
        pads_begin: Input,
        pads_end: Input,
        pad_value: Input | None = None,
        *,
        pad_mode: Literal["constant", "edge", "reflect", "symmetric"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Pad-1 where a margin may be negative: what it is wide is cut off.

        Args:
            pad_mode: What stands in the margins.
        """

    def Power(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The first operand to the power of the second.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def PriorBox(
        self,
        output_size: Input,
        image_size: Input,
        *,
        offset: float,
        min_size: Sequence[float] = ...,
        max_size: Sequence[float] = ...,
        aspect_ratio: Sequence[float] = ...,
        density: Sequence[float] = ...,
        fixed_ratio: Sequence[float] = ...,
        fixed_size: Sequence[float] = ...,
        clip: bool = ...,
        flip: bool = ...,
        step: float = ...,
        variance: Sequence[float] = ...,
        scale_all_sizes: bool = ...,
        min_max_aspect_ratios_order: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """PriorBox-1 with a choice of the boxes' order.

        Args:
            min_size: Smaller sides of boxes, in pixels.
            max_size: Largest sides of boxes, one for each min_size.
            aspect_ratio: Ratios of width to height, besides 1.
            density: How densely boxes of a fixed size stand in a cell.
            fixed_ratio: Ratios of width to height for boxes of a fixed size.
            fixed_size: Sides of boxes that are independent of min_size.
            clip: Whether coordinates are held between 0 and 1.
            flip: Whether each ratio is taken the other way round, too.
            step: Pixels between two cells; 0 derives it from the sizes.
            offset: Place of a box in its cell, as a part of the cell.
            variance: One variance, or one for each side of a box.
            scale_all_sizes: Whether all sizes are combined with all ratios.
            min_max_aspect_ratios_order: Whether boxes of max_size come before those of ratios.
        """

    def PriorBoxClustered(
        self,
        output_size: Input,
        image_size: Input,
        *,
        offset: float,
        step: float = ...,
        step_w: float = ...,
        step_h: float = ...,
        width: Sequence[float] = ...,
        height: Sequence[float] = ...,
        clip: bool = ...,
        variance: Sequence[float] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Boxes of given sides around each cell.

        Args:
            step: Pixels between two cells; 0 derives it from the sizes.
            step_w: Pixels between two columns of cells; 0 takes step.
            step_h: Pixels between two rows of cells; 0 takes step.
            width: Widths of the boxes, in pixels.
            height: Heights of the boxes, in pixels.
            clip: Whether coordinates are held between 0 and 1.
            offset: Place of a box in its cell, as a part of the cell.
            variance: One variance, or one for each side of a box.
        """

    def Proposal(
        self,
        class_probs: Input,
        bbox_deltas: Input,
        image_shape: Input,
        *,
        base_size: int,
        pre_nms_topn: int,
        post_nms_topn: int,
        nms_thresh: float,
        feat_stride: int,
        min_size: int,
        ratio: Sequence[float],
        scale: Sequence[float],
        clip_before_nms: bool = ...,
        clip_after_nms: bool = ...,
        normalize: bool = ...,
        box_size_scale: float = ...,
        box_coordinate_scale: float = ...,
        framework: str = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Proposal-1 with the scores of the boxes.

        Args:
            base_size: Side of the square from which anchors are made.
            pre_nms_topn: How many boxes are looked at by suppression.
            post_nms_topn: How many boxes are kept after suppression.
            nms_thresh: Overlap above which a box is suppressed.
            feat_stride: Pixels of the image between two cells of the feature map.
            min_size: Boxes with a smaller side are left out.
            ratio: Ratios of height to width of the anchors.
            scale: Factors of the base size.
            clip_before_nms: Whether boxes are held on the image before suppression.
            clip_after_nms: Whether boxes are held on the image after suppression.
            normalize: Whether coordinates are divided by the size of the image.
            box_size_scale: By what the deltas of a box's size are divided.
            box_coordinate_scale: By what the deltas of a box's centre are divided.
            framework: The framework whose way of computing boxes is followed.
        """

    def RDFT(
        self,
        data: Input,
        axes: Input,
        signal_size: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The transform of real numbers; of the last of the axes only half is kept, as it
        mirrors."""

    def RGBtoNV12(
        self,
        image: Input,
        *,
        single_plane: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """From red, green and blue to NV12.

        Args:
            single_plane: Whether all planes are one output.
        """

    def RNNCell(
        self,
        x: Input,
        initial_hidden_state: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """One step of a plain recurrence.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
        """

    def RNNSequence(
        self,
        x: Input,
        h_t: Input,
        sequence_lengths: Input,
        w: Input,
        r: Input,
        b: Input,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ...,
        activations_alpha: Sequence[float] = ...,
        activations_beta: Sequence[float] = ...,
        clip: float = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Steps of a plain recurrence.

        Args:
            hidden_size: Number of elements of the hidden state.
            activations: The function of each gate, in order.
            activations_alpha: First parameter of those functions that have one.
            activations_beta: Second parameter of those functions that have one.
            clip: Largest magnitude of what goes into an activation; 0 for no limit.
            direction: In which order the steps are taken.
        """

    def ROIAlign(
        self,
        data: Input,
        rois: Input,
        batch_indices: Input,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        mode: Literal["avg", "max"],
        aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ROIAlign-3 with a choice of how pixels are aligned.

        Args:
            pooled_h: Number of rows of cells.
            pooled_w: Number of columns of cells.
            sampling_ratio: Samples along each side of a cell; 0 takes as many as it has pixels.
            spatial_scale: Factor from coordinates of boxes to those of the feature map.
            mode: Whether a cell takes the mean of its samples, or the largest.
            aligned_mode: Where pixels lie in respect to the corners of a box.
        """

    def ROIAlignRotated(
        self,
        data: Input,
        rois: Input,
        batch_indices: Input,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        clockwise_mode: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Means of samples of regions given as centre, width, height and angle in radians.

        Args:
            pooled_h: Number of rows of cells.
            pooled_w: Number of columns of cells.
            sampling_ratio: Samples along each side of a cell; 0 takes as many as it has pixels.
            spatial_scale: Factor from coordinates of boxes to those of the feature map.
            clockwise_mode: Whether positive angles turn clockwise.
        """

    def ROIPooling(
        self,
        data: Input,
        boxes: Input,
        *,
        spatial_scale: float,
        pooled_h: int,
        pooled_w: int,
        output_size: Sequence[int] = ...,
        output_roi: Sequence[int] = ...,
        method: Literal["max", "bilinear"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The largest value in each cell of a box, or one sample of it.

        Args:
            spatial_scale: Factor from coordinates of boxes to those of the feature map.
            output_size: Rows and columns of cells, as pooled_h and pooled_w.
            output_roi: Rows and columns of cells, as pooled_h and pooled_w.
            pooled_h: Number of rows of cells.
            pooled_w: Number of columns of cells.
            method: Whether a cell takes its largest value, or one sample.
        """

    def RandomUniform(
        self,
        shape: Input,
        minval: Input,
        maxval: Input,
        *,
        output_type: TypeLike,
        op_seed: int = ...,
        global_seed: int = ...,
        alignment: Literal["tensorflow", "pytorch"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Random values between two; the same ones for the same seeds, as of TensorFlow or
        PyTorch.

        Args:
            output_type: Element type of the output.
            op_seed: Seed of this layer; with global_seed 0 as well, numbers differ in each run.
            global_seed: Seed of the whole model; with op_seed 0 as well, numbers differ in each
                run.
            alignment: The framework whose way of drawing numbers is followed.
        """

    def Range(
        self,
        start: Input,
        stop: Input,
        step: Input,
        *,
        output_type: TypeLike,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Range-1 with a type of its own, to which the inputs are converted first.

        Args:
            output_type: Element type of the output.
        """

    def ReLU(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x``, but nothing below zero."""

    def ReadValue(
        self,
        init_value: Input | None = None,
        *,
        variable_id: str,
        variable_type: TypeLike = ...,
        variable_shape: ShapeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ReadValue-3 with the variable's type and shape; without an initial value it begins at 0.

        Args:
            variable_id: Name of the variable.
            variable_type: Element type of the variable.
            variable_shape: Sizes of the variable.
        """

    def ReduceL1(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The sum of the absolute values.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceL2(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The root of the sum of the squares.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceLogicalAnd(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether all are true.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceLogicalOr(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Whether any is true.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceMax(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The largest value; that of nothing is the type's lowest finite value.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceMean(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The mean; that of nothing is zero, as in OpenVINO.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceMin(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The smallest value; that of nothing is the type's largest finite value.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceProd(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The product.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def ReduceSum(
        self,
        data: Input,
        axes: Input,
        *,
        keep_dims: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The sum.

        Args:
            keep_dims: Whether reduced axes stay with a size of 1.
        """

    def RegionYolo(
        self,
        data: Input,
        *,
        axis: int,
        coords: int,
        classes: int,
        end_axis: int,
        num: int,
        anchors: Sequence[float] = ...,
        do_softmax: bool = ...,
        mask: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The head of YOLO: boxes' centres and confidences squashed, classes made probabilities.

        Args:
            anchors: Widths and heights of the anchor boxes; the arithmetic does not use them.
            axis: First of the axes that become one.
            coords: Numbers that tell a box.
            classes: Number of classes.
            end_axis: Last of the axes that become one.
            num: Number of boxes of each cell.
            do_softmax: Whether classes are made probabilities, and all regions are taken.
            mask: Which anchors are used.
        """

    def ReorgYolo(
        self,
        data: Input,
        *,
        stride: Sequence[int],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Blocks of space moved to the channels, in the order of YOLO.

        Args:
            stride: Side of a block.
        """

    def Reshape(
        self,
        data: Input,
        shape: Input,
        *,
        special_zero: bool,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The same elements in the same order under another shape.

        Args:
            special_zero: Whether a 0 in the pattern copies the input's size.
        """

    def Reverse(
        self,
        data: Input,
        reversed_axes: Input,
        *,
        mode: Literal["index", "mask"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input with the order along axes reversed.

        Args:
            mode: Whether axes are given by index, or by a mask.
        """

    def ReverseSequence(
        self,
        data: Input,
        seq_lengths: Input,
        *,
        batch_axis: int = ...,
        seq_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input, whose first elements along ``seq_axis`` are reversed, per batch so many.

        Args:
            batch_axis: The axis along which each entry has a length of its own.
            seq_axis: The axis that is reversed.
        """

    def Roll(
        self,
        data: Input,
        shift: Input,
        axes: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input, shifted along axes; what falls off one end comes in at the other."""

    def Round(
        self,
        data: Input,
        *,
        mode: Literal["half_to_even", "half_away_from_zero"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The nearest whole number.

        Args:
            mode: Where halves go: to the even number, or away from zero.
        """

    def STFT(
        self,
        signal: Input,
        window: Input,
        frame_size: Input,
        frame_step: Input,
        *,
        transpose_frames: bool,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The transforms of the frames of a signal, each times the window in its middle.

        Args:
            transpose_frames: Whether the output has the frequencies before the frames.
        """

    def ScaledDotProductAttention(
        self,
        query: Input,
        key: Input,
        value: Input,
        attention_mask: Input | None = None,
        scale: Input | None = None,
        sink: Input | None = None,
        *,
        causal: bool,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Values weighted by how well the keys match the query.

        Args:
            causal: Whether a query sees no later keys than its own place.
        """

    def ScatterElementsUpdate(
        self,
        data: Input,
        indices: Input,
        updates: Input,
        axis: Input,
        *,
        reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = ...,
        use_init_val: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ScatterElementsUpdate-3 where updates may be reduced with what is there.

        Args:
            reduction: How values that meet at one place are joined.
            use_init_val: Whether the data's own values take part in the reduction.
        """

    def ScatterNDUpdate(
        self,
        data: Input,
        indices: Input,
        updates: Input,
        *,
        reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ScatterNDUpdate-3 where updates may be reduced with what is there.

        Args:
            reduction: How values that meet at one place are joined.
        """

    def ScatterUpdate(
        self,
        data: Input,
        indices: Input,
        updates: Input,
        axis: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The data with slices along an axis replaced."""

    def SearchSorted(
        self,
        sorted_sequence: Input,
        values: Input,
        *,
        right_mode: bool = ...,
        output_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Where values would be inserted in sorted rows: before their equals or after them.

        Args:
            right_mode: Whether a value equal to an element stands behind it.
            output_type: Element type of the output.
        """

    def SegmentMax(
        self,
        data: Input,
        segment_ids: Input,
        num_segments: Input | None = None,
        *,
        fill_mode: Literal["zero", "lowest"],
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The greatest of the slices that bear the same number, which do not fall.

        Args:
            fill_mode: What segments without elements become.
        """

    def Select(
        self,
        cond: Input,
        then: Input,
        else_: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``then`` where the condition holds, ``else`` where it does not.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Selu(
        self,
        data: Input,
        alpha: Input,
        lambda_: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``lambda`` times ``x``, below zero times ``alpha * (exp(x) - 1)``."""

    def ShapeOf(
        self,
        data: Input,
        *,
        output_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """ShapeOf-1 with a choice of the output's type.

        Args:
            output_type: Element type of the output.
        """

    def ShuffleChannels(
        self,
        data: Input,
        *,
        axis: int = ...,
        group: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The channels dealt out in turn: the first of each group, then the second of each.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
            group: Number of groups into which channels are divided.
        """

    def Sigmoid(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``1 / (1 + exp(-x))``."""

    def Sign(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """-1, 0 or 1; NaN stays."""

    def Sin(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The sine."""

    def Sinh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The hyperbolic sine."""

    def Slice(
        self,
        data: Input,
        start: Input,
        stop: Input,
        step: Input,
        axes: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Slices of axes by start, stop and step."""

    def SliceScatter(
        self,
        data: Input,
        updates: Input,
        start: Input,
        stop: Input,
        step: Input,
        axes: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The data with a slice of it replaced by the updates."""

    def SoftMax(
        self,
        data: Input,
        *,
        axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """SoftMax-1 whose axis may be counted from the end.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
        """

    def SoftPlus(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``log(1 + exp(x))``."""

    def SoftSign(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x / (1 + abs(x))``."""

    def SpaceToBatch(
        self,
        data: Input,
        block_shape: Input,
        pads_begin: Input,
        pads_end: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each element of a block of space goes to a batch of its own; space is padded before."""

    def SpaceToDepth(
        self,
        data: Input,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Each block of space becomes one element of space with more channels.

        Args:
            block_size: Side of a block, the same along each spatial axis.
            mode: Whether the block comes before or after the channels in the depth.
        """

    def SparseFillEmptyRows(
        self,
        values: Input,
        dense_shape: Input,
        indices: Input,
        default_value: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """A sparse matrix with the default value at the start of each row that had none, in
        order."""

    def Split(
        self,
        data: Input,
        axis: Input,
        *,
        num_splits: int,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input, cut into equal pieces along an axis.

        Args:
            num_splits: Number of equal pieces.
        """

    def Sqrt(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The square root; NaN below zero."""

    def SquaredDifference(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The square of the difference.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Squeeze(
        self,
        data: Input,
        axes: Input | None = None,
        *,
        allow_axis_skip: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Squeeze-1 that may leave the rank open where an axis may have another size than 1.

        Args:
            allow_axis_skip: Whether axes of another size than 1 are kept in place of refused.
        """

    def StridedSlice(
        self,
        data: Input,
        begin: Input,
        end: Input,
        stride: Input | None = None,
        *,
        begin_mask: Sequence[int],
        end_mask: Sequence[int],
        new_axis_mask: Sequence[int] = ...,
        shrink_axis_mask: Sequence[int] = ...,
        ellipsis_mask: Sequence[int] = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Slices of axes by begin, end and step; masks leave out ends, add, drop and skip axes.

        Args:
            begin_mask: For each entry of begin: 1 takes it, 0 begins at the axis's first element.
            end_mask: For each entry of end: 1 takes it, 0 goes to the axis's last element.
            new_axis_mask: For each entry: 1 puts a new axis of size 1 there.
            shrink_axis_mask: For each entry: 1 takes one element and drops the axis.
            ellipsis_mask: For each entry: 1 stands for all axes that are not named.
        """

    def StringTensorPack(
        self,
        begins: Input,
        ends: Input,
        symbols: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Strings from their UTF-8 bytes and the places where each begins and ends."""

    def StringTensorUnpack(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The UTF-8 bytes of strings, and the places where each begins and ends."""

    def Subtract(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The difference.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

    def Swish(
        self,
        data: Input,
        beta: Input | None = None,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """``x * sigmoid(beta * x)``; beta is 1 where it is not given."""

    def Tan(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The tangent."""

    def Tanh(
        self,
        data: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The hyperbolic tangent."""

    def Tile(
        self,
        data: Input,
        repeats: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input, repeated a number of times along each axis."""

    def TopK(
        self,
        data: Input,
        k: Input,
        *,
        axis: int,
        mode: Literal["max", "min"],
        sort: Literal["value", "index", "none"],
        index_element_type: TypeLike = ...,
        stable: bool = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """TopK-3 that may be asked to keep the order of equal elements.

        Args:
            axis: The axis it works along; below zero it is counted from the end.
            mode: Whether the largest or the smallest elements are chosen.
            sort: By what the chosen elements are ordered.
            index_element_type: Element type of the indices: i32 or i64.
            stable: Whether equal elements keep their order.
        """

    def Transpose(
        self,
        arg: Input,
        input_order: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The axes in another order; an empty order reverses them."""

    def Unique(
        self,
        data: Input,
        axis: Input | None = None,
        *,
        sorted: bool = ...,
        index_element_type: TypeLike = ...,
        count_element_type: TypeLike = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Elements, or slices along an axis, each once; where they stood, and how often.

        Args:
            sorted: Whether the elements found are in ascending order.
            index_element_type: Element type of the indices: i32 or i64.
            count_element_type: Element type of the counts.
        """

    def Unsqueeze(
        self,
        data: Input,
        axes: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """Axes of size 1 put in at the places they have in the output."""

    def VariadicSplit(
        self,
        data: Input,
        axis: Input,
        split_lengths: Input,
        *,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """The input, cut into pieces of given lengths; one of them may be -1, the rest."""

    def Xor(
        self,
        a: Input,
        b: Input,
        *,
        auto_broadcast: Literal["none", "numpy", "pdpd"] = ...,
        broadcast_axis: int = ...,
        name: str | None = None,
        net: Builder | None = None,
    ) -> Output:
        """LogicalXor-1 under its first name.

        Args:
            auto_broadcast: How shapes that differ are brought together.
            broadcast_axis: With pdpd: the axis of the first input where the second begins.
        """

ops: Operations
