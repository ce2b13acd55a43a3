"""Samples of what moves, resizes and detects."""

from __future__ import annotations

import numpy as np

from .case import X4, Case, draw
from .statements import (
    by_channel,
    convolved,
    ctc,
    interp,
    prior_boxes,
    reorg,
    resample_linear,
    resample_nearest,
)

W = draw(4, 3, 3, 3)
B4 = draw(4)

PLACES = {    "reshape of some axes, as Caffe has it": Case(
        "Reshape", [(2, 3, 4)], {"dim": "-1", "axis": 1, "num_axes": -1}, {}, [(2, 12)],
        lambda x: x.reshape(2, 12), 2,
    ),
    "reshape of some axes to two": Case(
        "Reshape", [(2, 12)], {"dim": "3,4", "axis": 1}, {}, [(2, 3, 4)],
        lambda x: x.reshape(2, 3, 4), 2,
    ),
    "one place of a scalar": Case(
        "OneHot", [np.int32([2])], {"depth": 4}, {}, [(4,)], lambda _: np.eye(4)[2], 7,
    ),
    "reshape by attribute": Case(
        "Reshape", [(2, 3, 4, 5)], {"dim": "0,-1,5"}, {}, [(2, 12, 5)],
        lambda x: x.reshape(2, 12, 5),
    ),
    "reshape by real sizes": Case(
        "Reshape", [(2, 12), np.float32([2, 3, -1])], {}, {}, [(2, 3, 4)],
        lambda x, _: x.reshape(2, 3, 4), 5,
    ),
    "reshape that says nothing": Case(
        "Reshape", [(2, 12)], {"axis": 0, "num_axes": -1}, {}, [(2, 3, 4)],
        lambda x: x.reshape(2, 3, 4), 2,
    ),
    "flatten": Case(
        "Flatten", [X4], {"axis": 1, "end_axis": -1}, {}, [(2, 60)], lambda x: x.reshape(2, 60)
    ),
    "flatten within": Case(
        "Flatten", [X4], {"axis": 1, "end_axis": 2}, {}, [(2, 12, 5)],
        lambda x: x.reshape(2, 12, 5),
    ),
    "permute": Case(
        "Permute", [X4], {"order": "0,2,3,1"}, {}, [(2, 4, 5, 3)],
        lambda x: x.transpose(0, 2, 3, 1),
    ),
    "squeeze by real axes": Case(
        "Squeeze", [(2, 1, 3, 1), np.float32([1])], {}, {}, [(2, 3, 1)], lambda x, _: x[:, 0]
    ),
    "unsqueeze": Case(
        "Unsqueeze", [(2, 3), np.int32([0, 3])], {}, {}, [(1, 2, 3, 1)],
        lambda x, _: x[None, ..., None],
    ),
    "shape": Case(
        "Shape", [X4], {}, {}, [(4,)], lambda x: np.int32(x.shape), precision="I32"
    ),
    "concat": Case(
        "Concat", [X4, (2, 1, 4, 5)], {}, {}, [(2, 4, 4, 5)], lambda *x: np.concatenate(x, 1)
    ),
    "split": Case(
        "Split", [(2, 6, 4)], {"axis": 1, "num_split": 3}, {}, [(2, 2, 4)] * 3,
        lambda x: np.split(x, 3, 1),
    ),
    "slice into unequal parts": Case(
        "Slice", [(2, 6, 4)], {"axis": 1}, {}, [(2, 1, 4), (2, 5, 4)],
        lambda x: (x[:, :1], x[:, 1:]),
    ),
    "crop by sizes": Case(
        "Crop", [X4], {"axis": "2,3", "offset": "1,0", "dim": "2,3"}, {}, [(2, 3, 2, 3)],
        lambda x: x[:, :, 1:3, :3],
    ),
    "crop by another": Case(
        "Crop", [X4, (2, 3, 2, 3)], {"axis": "2,3", "offset": "1,2"}, {}, [(2, 3, 2, 3)],
        lambda x, _: x[:, :, 1:3, 2:5], 4,
    ),
    "crop from both ends": Case(
        "Crop", [X4], {"axis": "1,3", "crop_begin": "1,1", "crop_end": "0,2"}, {},
        [(2, 2, 4, 2)], lambda x: x[:, 1:, :, 1:3],
    ),
    "crop from both ends, as CNNNetwork wrote it": Case(
        "Crop", [X4], {"axis": "1,3", "crop_begin": "1,1", "crop_end": "0,2", "offset": "1,1",
         "dim": ""}, {}, [(2, 2, 4, 2)], lambda x: x[:, 1:, :, 1:3],
    ),
    "crop to the declared sizes": Case(
        "Crop", [X4], {"axis": "2,3", "offset": "1,0", "dim": ""}, {}, [(2, 3, 2, 3)],
        lambda x: x[:, :, 1:3, :3],
    ),
    "patches": Case(
        "ExtractImagePatches", [(1, 1, 4, 6)],
        {"sizes": "2,3", "strides": "2,3", "rates": "1,1", "auto_pad": "valid"}, {},
        [(1, 6, 2, 2)],
        lambda x: x.reshape(2, 2, 2, 3).transpose(1, 3, 0, 2).reshape(1, 6, 2, 2),
    ),
    "crop of v2": Case(
        "Crop", [X4], {}, {}, [(2, 3, 2, 3)], lambda x: x[:, :, 1:3, 2:5], 2,
        more={"tag": "crop-data",
              "children": '<crop axis="2" offset="1"/><crop axis="3" offset="2"/>'},
    ),
    "strided slice, whose masks mean the opposite": Case(
        "StridedSlice", [X4, *(np.int32(v) for v in ([0, 1, 1, 4], [2, 3, 3, 0], [1, 1, 1, -2]))],
        {"begin_mask": "1,1,0,1", "end_mask": "1,0,1,0", "new_axis_mask": "0,0,0,0",
         "shrink_axis_mask": "0", "ellipsis_mask": "0"}, {}, [(2, 2, 3, 3)],
        lambda x, *_: x[0:2, 1:, :3, 4::-2],
    ),
    "gather by real places": Case(
        "Gather", [(4, 3), np.float32([2, 0])], {"axis": 0}, {}, [(2, 3)], lambda x, _: x[[2, 0]]
    ),
    "gather of one place that stands for a scalar": Case(
        "Gather", [(4, 3), np.int32([2])], {"axis": 0}, {}, [(3,)], lambda x, _: x[2]
    ),
    "tile": Case("Tile", [X4], {"axis": 1, "tiles": 2}, {}, [(2, 6, 4, 5)],
                 lambda x: np.concatenate([x, x], 1)),
    "pad": Case(
        "Pad", [X4],
        {"pads_begin": "0,0,1,2", "pads_end": "0,1,0,0", "pad_mode": "constant", "pad_value": 2},
        {}, [(2, 4, 5, 7)],
        lambda x: np.pad(x, [(0, 0), (0, 1), (1, 0), (2, 0)], constant_values=2),
    ),
    "pad by reflection": Case(
        "Pad", [X4], {"pads_begin": "0,0,1,2", "pads_end": "0,0,0,1", "pad_mode": "reflect"}, {},
        [(2, 3, 5, 8)],
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)], mode="reflect"),
    ),
    "broadcast": Case(
        "Broadcast", [(3, 1), np.int32([2, 3, 4])], {}, {}, [(2, 3, 4)],
        lambda x, _: np.broadcast_to(x, (2, 3, 4)),
    ),
    "fill": Case(
        "Fill", [np.int32([2, 3]), (1,)], {}, {}, [(2, 3)], lambda _, x: np.full((2, 3), x[0])
    ),
    "range": Case(
        "Range", [np.float32([1]), np.float32([4]), np.float32([1])], {}, {}, [(3,)],
        lambda *_: np.float32([1, 2, 3]),
    ),
    "reverse sequence": Case(
        "ReverseSequence", [(2, 4), np.int32([3, 1])], {"seq_axis": 1, "batch_axis": 0}, {},
        [(2, 4)], lambda x, _: np.stack([x[0, [2, 1, 0, 3]], x[1]]),
    ),
    "depth to space": Case(
        "DepthToSpace", [(1, 8, 2, 3)], {"block_size": 2}, {}, [(1, 2, 4, 6)],
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
    ),
    "shuffle": Case(
        "ShuffleChannels", [(1, 6, 2)], {"axis": 1, "group": 2}, {}, [(1, 6, 2)],
        lambda x: x[:, [0, 3, 1, 4, 2, 5]],
    ),
    "one hot": Case(
        "OneHot", [np.int32([1, 0, 2])], {"depth": 3, "on_value": "True", "off_value": -1}, {},
        [(3, 3)], lambda i: np.where(np.arange(3) == i[:, None], 1, -1).astype(np.float32),
    ),
    "sparse to dense": Case(
        "SparseToDense", [np.int32([[0, 1], [1, 2]]), np.int32([2, 3]), (2,)], {}, {}, [(2, 3)],
        lambda _, __, v: np.float32([[0, v[0], 0], [0, 0, v[1]]]),
    ),
    "not": Case(
        "Activation", [np.float32([[0, 2, -1]])], {"type": "not"}, {}, [(1, 3)],
        lambda x: (x == 0).astype(np.float32), 5,
    ),
    "log of a sum": Case(
        "ReduceLogSum", [np.abs(draw(2, 3)) + 1, np.int32([1])], {"keep_dims": 0}, {}, [(2,)],
        lambda x, _: np.log(x.sum(1)),
    ),
    "buckets": Case(
        "Bucketize", [(2, 3), np.float32([-1, 0, 1])], {"with_right_bound": 1}, {}, [(2, 3)],
        lambda x, edges: np.digitize(x, edges, right=True).astype(np.float32), 7,
    ),
    "cumulated sum": Case(
        "CumSum", [(2, 3), np.int32([1])], {"exclusive": 0, "reverse": 1}, {}, [(2, 3)],
        lambda x, _: x[:, ::-1].cumsum(1)[:, ::-1], 7,
    ),
    "scatter": Case(
        "ScatterUpdate", [(3, 4), np.int32([2, 0]), (2, 4), np.int32([0])], {}, {}, [(3, 4)],
        lambda x, _, new, __: np.stack([new[1], x[1], new[0]]), 7,
    ),
    "scatter elements": Case(
        "ScatterElementsUpdate", [(2, 3), np.int32([[1, 0, 1]]), (1, 3), np.int32([0])], {}, {},
        [(2, 3)],
        lambda x, _, new, __: np.stack(
            [[x[0, 0], new[0, 1], x[0, 2]], [new[0, 0], x[1, 1], new[0, 2]]]
        ), 7,
    ),
    "space to batch": Case(
        "SpaceToBatch",
        [(1, 2, 4, 4), np.int32([1, 1, 2, 2]), np.int32([0] * 4), np.int32([0] * 4)], {}, {},
        [(4, 2, 2, 2)],
        lambda x, *_: np.concatenate([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]), 7,
    ),
    "batch to space": Case(
        "BatchToSpace",
        [(4, 2, 2, 2), np.int32([1, 1, 2, 2]), np.int32([0] * 4), np.int32([0] * 4)], {}, {},
        [(1, 2, 4, 4)],
        lambda x, *_: x.reshape(2, 2, 2, 2, 2).transpose(2, 3, 0, 4, 1).reshape(1, 2, 4, 4), 7,
    ),
    "space to depth": Case(
        "SpaceToDepth", [(1, 2, 4, 6)], {"block_size": 2}, {}, [(1, 8, 2, 3)],
        lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3),
    ),
    "deformable convolution that moves nothing": Case(
        "DeformableConvolution", [(1, 3, 5, 5), np.zeros((1, 18, 3, 3), np.float32)],
        {"kernel": "3,3", "output": 4, "deformable_group": 1}, {"weights": W, "biases": B4},
        [(1, 4, 3, 3)],
        lambda x, _: convolved(x, W, (1, 1), (0, 0), (0, 0), (1, 1)) + by_channel(B4, 4), 5,
    ),
    "tree of steps": Case(
        "GatherTree",
        [np.float32([[[1, 2]], [[3, 4]]]), np.float32([[[0, 0]], [[1, 0]]]), np.float32([2]),
         np.float32([9])], {}, {}, [(2, 1, 2)], lambda *_: np.float32([[[2, 1]], [[3, 4]]]), 7,
    ),
    "pooling of positions": Case(
        "PSROIPooling", [(1, 2, 4, 4), np.float32([[0, 0, 0, 3, 3]])],
        {"output_dim": 2, "group_size": 1, "spatial_scale": 1}, {}, [(1, 2, 1, 1)],
        lambda x, _: x.mean((2, 3), keepdims=True), 3,
    ),
    "resample by nearest": Case(
        "Resample", [(1, 2, 3, 4)], {"type": "caffe.ResampleParameter.NEAREST", "factor": 2.0,
         "antialias": 0}, {}, [(1, 2, 6, 8)], lambda x: resample_nearest(x, 6, 8),
    ),
    "resample to fewer by nearest": Case(
        "Resample", [(1, 2, 5, 6)], {"type": "caffe.ResampleParameter.NEAREST", "factor": 0.5,
         "antialias": 0}, {}, [(1, 2, 3, 3)], lambda x: resample_nearest(x, 3, 3),
    ),
    "resample by two": Case(
        "Resample", [(1, 2, 3, 4)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 2.0,
         "antialias": 0}, {}, [(1, 2, 6, 8)], lambda x: resample_linear(x, 6, 8),
    ),
    "resample to fewer, widened": Case(
        "Resample", [(1, 2, 8, 6)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 0.5,
         "antialias": 1}, {}, [(1, 2, 4, 3)], lambda x: resample_linear(x, 4, 3, antialias=True),
    ),
    "resample one axis to fewer, widened": Case(
        "Resample", [(1, 2, 8, 6)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 1,
         "antialias": 1}, {}, [(1, 2, 8, 3)], lambda x: resample_linear(x, 8, 3, antialias=True),
    ),
    "resample the other axis to fewer, widened": Case(
        "Resample", [(1, 2, 8, 6)], {"type": "caffe.ResampleParameter.LINEAR", "factor": 1,
         "antialias": 1}, {}, [(1, 2, 4, 6)], lambda x: resample_linear(x, 4, 6, antialias=True),
    ),
    "resample to an input's sizes": Case(
        "Resample", [(1, 2, 3, 4), np.float32([1, 2, 5, 7])],
        {"type": "caffe.ResampleParameter.LINEAR", "factor": 1, "antialias": 0}, {},
        [(1, 2, 5, 7)], lambda x, _: resample_linear(x, 5, 7), 5,
    ),
    "interp": Case(
        "Interp", [(1, 2, 3, 4)], {"height": 5, "width": 7, "pad_beg": 0, "pad_end": 0}, {},
        [(1, 2, 5, 7)], lambda x: interp(x, 5, 7, corners=True),
    ),
    "interp without the corners": Case(
        "Interp", [(1, 2, 3, 4)], {"factor": 2, "align_corners": 0, "pad_beg": 0, "pad_end": 0},
        {}, [(1, 2, 6, 8)], lambda x: interp(x, 6, 8, corners=False),
    ),
    "interp of less": Case(
        "Interp", [(1, 2, 5, 6)], {"height": 5, "width": 7, "pad_beg": -1, "pad_end": -1}, {},
        [(1, 2, 5, 7)], lambda x: interp(x[:, :, 1:-1, 1:-1], 5, 7, corners=True),
    ),
    "upsampling": Case(
        "Upsampling", [(1, 2, 3, 4)], {"scale": 2, "sample_type": "nearest"}, {}, [(1, 2, 6, 8)],
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    "prior boxes": Case(
        "PriorBox", [(1, 8, 2, 3), (1, 3, 20, 30)],
        {"min_size": "4", "max_size": "9", "aspect_ratio": "2", "flip": 1, "clip": 0, "step": 0,
         "offset": 0.5, "variance": "0.1,0.1,0.2,0.2"}, {}, [(1, 2, 96)],
        lambda *_: prior_boxes((20, 30), (2, 3), [
            (4, 4), (6, 6), (4 * 2**0.5, 4 / 2**0.5), (4 / 2**0.5, 4 * 2**0.5)]),
    ),
    "prior boxes of MXNet, in pixels": Case(
        "PriorBox", [(1, 8, 2, 3), (1, 3, 20, 30)],
        {"min_size": "4,6", "max_size": "", "aspect_ratio": "1,2,0.5", "flip": 0, "clip": 0,
         "step": 10, "offset": 0.5, "variance": "0.1,0.1,0.2,0.2", "scale_all_sizes": 0}, {},
        [(1, 2, 96)],
        lambda *_: prior_boxes((20, 30), (2, 3), [
            (4, 4), (6, 6), (4 * 2**0.5, 4 / 2**0.5), (4 / 2**0.5, 4 * 2**0.5)]),
    ),
    "clustered prior boxes": Case(
        "PriorBoxClustered", [(1, 8, 2, 3), (1, 3, 20, 30)],
        {"width": "4,7", "height": "5,2", "clip": 0, "step": 10, "offset": 0.5,
         "variance": "0.1,0.1,0.2,0.2"}, {}, [(1, 2, 48)],
        lambda *_: prior_boxes((20, 30), (2, 3), [(4, 5), (7, 2)]),
    ),
    "region of numbers that need no softmax": Case(
        "RegionYolo", [(1, 14, 2, 2)],
        {"classes": 2, "coords": 4, "num": 2, "do_softmax": 0, "mask": "0,1", "axis": 1,
         "end_axis": 3}, {}, [(1, 14, 2, 2)],
        lambda x: np.where(
            (np.arange(14) % 7 == 2)[:, None, None] | (np.arange(14) % 7 == 3)[:, None, None],
            x, 1 / (1 + np.exp(-x))),
    ),
    "reorg": Case(
        "ReorgYolo", [(1, 4, 4, 4)], {"stride": 2}, {}, [(1, 16, 2, 2)], lambda x: reorg(x)
    ),
    "ctc": Case(
        "CTCGreedyDecoder", [(4, 1, 3), np.float32([[0], [1], [1], [1]])],
        {"ctc_merge_repeated": 1}, {}, [(1, 4, 1, 1)], lambda x, _: ctc(x),
    ),
    "copy": Case("Copy", [X4], {}, {}, [X4], lambda x: x),
    "convert": Case("Convert", [X4], {"precision": "I32"}, {}, [X4], lambda x: np.trunc(x)),
}  # fmt: skip
