"""Detection: priors, decoded boxes, regions.

Old priors are [1, 2, n], today's [2, n]. What DetectionOutput, Proposal and the others share with
today's operations of the same names keeps its name; defaults are the old ones, which differ.
"""

from __future__ import annotations

import math

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .table import Made, converts


def _sizes(old: Old, index: int) -> Output:
    """Height and width of an input of 4 axes."""
    old.dims(index, 4, 4)
    shape = old.add("ShapeOf", "opset3", [old[index]], output_type="i64")
    rows = [(2,), (4,), (1,), (0,)]
    return old.add("Slice", "opset8", [shape, *(old.indices(*row) for row in rows)])


def _priors(old: Old, kind: str, image: Output, data: dict[str, object]) -> Output:
    """The layer of today, with the leading axis of the old one."""
    made = old.add(kind, "opset1", [_sizes(old, 0), image], data)
    return old.add("Unsqueeze", "opset1", [made, old.indices(0)])


@converts(
    "PriorBox",
    "min_size= max_size= aspect_ratio= flip=0 clip=0 step=0 offset variance= scale_all_sizes=1 "
    "fixed_ratio= fixed_size= density= img_size=0 img_h=0 img_w=0 step_h=0 step_w=0",
    becomes="PriorBox-1 ShapeOf-3 Slice-8 Unsqueeze-1",
)
def prior_box(old: Old) -> Made:
    """Of the feature map in input 0 on the image in input 1; sizes in attributes were not read."""
    data: dict[str, object] = {
        name: old.numbers(name)
        for name in (
            "min_size", "max_size", "aspect_ratio", "variance", "fixed_ratio", "fixed_size",
            "density",
        )
    }  # fmt: skip
    if len(data["variance"]) not in (0, 1, 4):  # type: ignore[arg-type]
        raise IRError(f"variance has {old.text('variance')}, it is 1 number or 4")
    data |= {name: old.flag(name) for name in ("flip", "clip", "scale_all_sizes")}
    data |= {name: old.real(name) for name in ("step", "offset")}
    if not old.flag("scale_all_sizes"):
        data |= _parts_of_height(old)
    if not old.real("step") and (old.real("step_h") or old.real("step_w")):
        old.remark("step_h and step_w were not read by the CPU plug-in, and are not applied")
    if old.integer("img_size") or old.integer("img_h") or old.integer("img_w"):
        old.remark("img_size, img_h and img_w were not read: input 1 is the image")
    return _priors(old, "PriorBox", _sizes(old, 1), data)


def _parts_of_height(old: Old) -> dict[str, object]:
    """Sizes of MXNet's kind, pixels in an old file, as parts of the image's height."""
    if old.numbers("max_size"):
        raise NoCounterpartError(
            f"max_size is {old.text('max_size')} where scale_all_sizes is 0: today's PriorBox "
            "makes no boxes of it"
        )
    height = old.dims(1, 4, 4)[2]
    old.remark(f"sizes and step are parts of {height}, the height of the image", fixed=1)
    sizes = [size / height for size in old.numbers("min_size")]
    return {"min_size": sizes, "step": old.real("step") / height}


@converts(
    "PriorBoxClustered",
    "width height clip=1 step=0 step_h=0 step_w=0 offset variance= img_h=0 img_w=0 flip=0",
    idle="img_size",
    becomes="PriorBoxClustered-1 ShapeOf-3 Slice-8 Unsqueeze-1",
)
def prior_box_clustered(old: Old) -> Made:
    """As PriorBox, each box with its own width and height; img_h and img_w stand for the image."""
    data: dict[str, object] = {name: old.numbers(name) for name in ("width", "height", "variance")}
    data["clip"] = old.flag("clip")
    step = old.real("step")
    both = old.real("step_h") or step, old.real("step_w") or step
    data |= {"step_h": both[0], "step_w": both[1], "offset": old.real("offset")}
    image = _sizes(old, 1)
    told = old.integer("img_h", 0), old.integer("img_w", 0)
    if any(told):
        dims = old.dims(1)
        sizes = [given or dims[2 + i] for i, given in enumerate(told)]
        if tuple(sizes) != dims[2:]:
            old.remark(f"the image is {sizes}, as img_h and img_w say, and not {list(dims[2:])}")
        image = old.indices(*sizes)
    return _priors(old, "PriorBoxClustered", image, data)


#: Codes of boxes; only the whole word was that of centre and size.
CODES = {
    "caffe.PriorBoxParameter.CORNER": "caffe.PriorBoxParameter.CORNER",
    "caffe.PriorBoxParameter.CENTER_SIZE": "caffe.PriorBoxParameter.CENTER_SIZE",
    "CORNER": "caffe.PriorBoxParameter.CORNER",
    "CENTER_SIZE": "caffe.PriorBoxParameter.CORNER",
}


@converts(
    "DetectionOutput",
    "num_classes background_label_id=0 top_k=-1 variance_encoded_in_target=0 keep_top_k=-1 "
    "code_type=caffe.PriorBoxParameter.CORNER share_location=1 nms_threshold "
    "confidence_threshold? clip=0 clip_after_nms=0 clip_before_nms=0 decrease_label_id=0 "
    "normalized=1 input_height=1 input_width=1 objectness_score=0",
    becomes="DetectionOutput-1",
    idle="eta visualize visualize_threshold interpolate_orientation num_orient_classes "
    "name_size_file label_map_file output_directory output_format output_name_prefix save_file "
    "resize_mode height width height_scale width_scale prob pad_mode pad_value interp_mode "
    "type name_size_prefix num_test_image",
)
def detection_output(old: Old) -> Made:
    """Boxes are normalized where the file does not say; ``clip`` meant clip_before_nms.

    Without confidence_threshold every box passed.
    """
    flags = (
        "variance_encoded_in_target", "share_location", "clip_after_nms", "decrease_label_id",
        "normalized",
    )  # fmt: skip
    whole = ("num_classes", "background_label_id", "top_k", "input_height", "input_width")
    data: dict[str, object] = {name: old.flag(name) for name in flags}
    data |= {name: old.integer(name) for name in whole}
    data["clip_before_nms"] = old.flag("clip_before_nms") or old.flag("clip")
    data["keep_top_k"] = old.integers("keep_top_k")
    data["code_type"] = old.choice("code_type", CODES)
    if old.text("code_type") == "CENTER_SIZE":
        old.remark('boxes are corners: code_type "CENTER_SIZE" was not known without its prefix')
    data["nms_threshold"] = old.real("nms_threshold")
    data["objectness_score"] = old.real("objectness_score")
    least = old.real("confidence_threshold") if old.has("confidence_threshold") else -3.4e38
    data["confidence_threshold"] = least
    if not old.has("normalized"):
        old.remark("boxes are normalized: the file does not say, and that was the default")
    inputs = [old.reals(index) for index in range(min(len(old), 5))]
    return old.add("DetectionOutput", "opset1", inputs, data)


@converts(
    "Proposal",
    "feat_stride base_size min_size ratio scale pre_nms_topn post_nms_topn nms_thresh framework= "
    "box_coordinate_scale=1 box_size_scale=1 normalize=0 clip_after_nms=0 clip_before_nms=1 "
    "for_deformable=0 num_outputs?",
    becomes="Proposal-1 Proposal-4 Slice-8 Reshape-1",
    idle="cls_threshold iou_threshold",
)
def proposal(old: Old) -> Made:
    """The image's sizes [1, 3] or [1, 4] as a list; of [1, 6] the first four, as the CPU read."""
    whole = ("feat_stride", "base_size", "min_size", "pre_nms_topn", "post_nms_topn")
    flags = ("normalize", "clip_after_nms", "clip_before_nms")
    reals = ("nms_thresh", "box_coordinate_scale", "box_size_scale")
    data: dict[str, object] = {name: old.integer(name) for name in whole}
    data |= {name: old.flag(name) for name in flags}
    data |= {name: old.real(name) for name in reals}
    data |= {name: old.numbers(name) for name in ("ratio", "scale")}
    # Any other word meant what Caffe does; OpenVINO of today refuses it.
    data["framework"] = "tensorflow" if old.text("framework") == "tensorflow" else ""
    if old.flag("for_deformable"):
        old.remark("for_deformable was not read by the CPU plug-in, and is not applied")
    image = old.reals(2)
    count = math.prod(old.dims(2))
    if count > 4:
        old.remark(f"of the {count} numbers about the image the first 4 are taken")
        image = old.reshape(image, (count,))
        rows = [(0,), (4,), (1,), (0,)]
        image = old.add("Slice", "opset8", [image, *(old.indices(*row) for row in rows)])
    elif len(old.dims(2)) != 1:
        image = old.reshape(image, (count,))
    inputs = [old.reals(0), old.reals(1), image]
    if len(old.layer.outputs) < 2:
        return old.add("Proposal", "opset1", inputs, data)
    return list(old.add("Proposal", "opset4", inputs, data))


@converts(
    "SimplerNMS",
    "cls_threshold? max_num_proposals? iou_threshold? min_bbox_size? feat_stride? pre_nms_topn? "
    "post_nms_topn? scale?",
)  # fmt: skip
def simpler_nms(_: Old) -> Made:
    """Proposals by anchors of its own, which no operation makes."""
    raise NoCounterpartError("SimplerNMS has anchors of its own (16 pixels, ratios 0.5, 1, 2)")


@converts("ROIPooling", "pooled_h pooled_w spatial_scale method=max", becomes="ROIPooling-1")
def roi_pooling(old: Old) -> Made:
    """The same; boxes may come as [n, 5, 1, 1]."""
    return old.add(
        "ROIPooling", "opset2", [old.reals(0), _boxes(old)],
        pooled_h=old.integer("pooled_h", 1), pooled_w=old.integer("pooled_w", 1),
        spatial_scale=old.real("spatial_scale"), method=old.text("method"),
    )  # fmt: skip


def _boxes(old: Old) -> Output:
    """Boxes of five numbers each."""
    dims = old.dims(1)
    return old.reals(1) if len(dims) == 2 else old.reshape(old.reals(1), (-1, 5))


@converts(
    "PSROIPooling",
    "output_dim group_size=1 spatial_scale mode=average spatial_bins_x=1 spatial_bins_y=1 "
    "no_trans=1 trans_std=1 part_size=1 pooled_height? pooled_width?",
    becomes="PSROIPooling-1 DeformablePSROIPooling-1",
)
def position_sensitive_roi_pooling(old: Old) -> Made:
    """By mean, bilinear, or with moved parts, in which case input 2 are the moves."""
    mode = old.text("mode")
    data: dict[str, object] = {
        "output_dim": old.integer("output_dim", 1), "group_size": old.integer("group_size", 1),
        "spatial_scale": old.real("spatial_scale"),
        "spatial_bins_x": old.integer("spatial_bins_x", 1),
        "spatial_bins_y": old.integer("spatial_bins_y", 1), "mode": mode,
    }  # fmt: skip
    if mode != "bilinear_deformable":
        return old.add("PSROIPooling", "opset1", [old.reals(0), _boxes(old)], data)
    size = old.integer("group_size", 1)
    for name in ("pooled_height", "pooled_width"):
        if old.has(name) and old.integer(name) != size:
            raise NoCounterpartError(
                f"{name} {old.integer(name)} is another size than group_size {size}"
            )
    data |= {"trans_std": old.real("trans_std"), "part_size": old.integer("part_size", 1)}
    inputs = [old.reals(0), _boxes(old)]
    if not old.flag("no_trans"):
        inputs.append(old.reals(2))
    return old.add("DeformablePSROIPooling", "opset1", inputs, data)


@converts(
    "RegionYolo",
    "coords classes num do_softmax=1 mask= anchors= axis=1 end_axis=1",
    becomes="RegionYolo-1 Reshape-1",
    idle="bias_match jitter rescore object_scale noobject_scale class_scale coord_scale absolute "
    "thresh random ignore_thresh truth_thresh",
)  # fmt: skip
def region_yolo(old: Old) -> Made:
    """The same; the sizes of the output are the declared ones where they only are grouped."""
    made = old.add(
        "RegionYolo", "opset1", [old.reals(0)],
        coords=old.integer("coords"), classes=old.integer("classes"), num=old.integer("num"),
        do_softmax=old.flag("do_softmax"), mask=old.integers("mask"),
        anchors=old.numbers("anchors"), axis=old.integer("axis"),
        end_axis=old.integer("end_axis"),
    )  # fmt: skip
    shape, declared = made.tensor.shape, old.declared()
    if (
        shape.is_static
        and shape.static != declared
        and math.prod(shape.static) == math.prod(declared)
    ):
        old.remark(f"grouped as declared: {list(declared)}, and not {list(shape.static)}")
        return old.reshape(made, declared)
    return made


@converts("ReorgYolo", "stride", becomes="ReorgYolo-1")
def reorg_yolo(old: Old) -> Made:
    """Blocks of a map into channels."""
    stride = old.integer("stride", 1)
    return old.add("ReorgYolo", "opset2", [old.reals(0)], data={"stride": [stride]})


@converts(
    "CTCGreedyDecoder",
    "ctc_merge_repeated=1",
    becomes="CTCGreedyDecoder-1 Slice-8 Concat-1 Broadcast-1",
)
def ctc_greedy_decoder(old: Old) -> Made:
    """Labels that repeat are merged where the file does not say; the old CPU always did.

    The first row of the mask was not looked at: it says where a sequence begins, and is 0 in
    the files that came from Caffe.
    """
    merge = old.flag("ctc_merge_repeated")
    if not merge:
        old.remark(
            "ctc_merge_repeated is 0, and followed; the old CPU plug-in merged all the same"
        )
    dims = old.dims(1, least=1)
    steps, batch = dims[0], math.prod(dims[1:])
    mask = old.reals(1)
    if len(dims) != 2:
        mask = old.reshape(mask, (steps, batch))
    begun = old.value(1)
    if begun is None or not begun.ravel()[:batch].all():
        old.remark("the first row of the mask is taken for ones: the old runtime did not read it")
        rows = [(1,), (steps,), (1,), (0,)]
        rest = old.add("Slice", "opset8", [mask, *(old.indices(*row) for row in rows)])
        first = old.filled(1, ElementType.F32, 1, batch)
        mask = old.add("Concat", "opset1", [first, rest], axis=0) if steps > 1 else first
    return old.add("CTCGreedyDecoder", "opset1", [old.reals(0), mask], ctc_merge_repeated=merge)


def _experimental(kind: str, attributes: str, becomes: str) -> None:
    """A layer that kept its name and its attributes."""

    @converts(kind, attributes, becomes=becomes)
    def same(old: Old) -> Made:
        """The same operation under its name."""
        data = {name: old.text(name) for name in old.entry.attributes if old.has(name)}
        inputs = [
            one if one.tensor.type is ElementType.I32 else old.cast(one, ElementType.F32)
            for one in old.inputs
        ]
        return list(old.add(kind, "opset6", inputs, data))


for _kind, _attributes in {
    "ExperimentalDetectronDetectionOutput": "score_threshold nms_threshold num_classes "
    "post_nms_count max_detections_per_image class_agnostic_box_regression? "
    "max_delta_log_wh deltas_weights",
    "ExperimentalDetectronGenerateProposalsSingleImage": "min_size nms_threshold "
    "post_nms_count pre_nms_count",
    "ExperimentalDetectronPriorGridGenerator": "flatten? h? w? stride_x? stride_y?",
    "ExperimentalDetectronROIFeatureExtractor": "output_size sampling_ratio? pyramid_scales "
    "aligned? distribute_rois_between_levels? image_id? preserve_rois_order?",
    "ExperimentalDetectronTopKROIs": "max_rois?",
}.items():
    _experimental(_kind, _attributes, f"{_kind}-6")
