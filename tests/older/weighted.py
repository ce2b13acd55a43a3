"""Samples with weights: convolutions, poolings, products, normalisations."""

from __future__ import annotations

import numpy as np

from .case import X4, Case, draw
from .statements import (
    by_channel,
    convolved,
    local_response,
    mean_free,
    normalized,
    pooled,
    transposed,
)

W = draw(4, 3, 3, 3)
WG = draw(4, 2, 3, 3)
D = draw(3, 2, 3, 3)
B4 = draw(4)
SCALE, SHIFT = draw(3), draw(3)
VAR = np.abs(draw(3)) + 0.1
FC = draw(5, 12)

WEIGHTED = {
    "convolution": Case(
        "Convolution", [(2, 3, 7, 6)],
        {"kernel": "3,3", "strides": "2,1", "pads_begin": "1,0", "pads_end": "0,2",
         "dilations": "1,2", "output": 4},
        {"weights": W, "biases": B4}, [(2, 4, 3, 4)],
        lambda x: convolved(x, W, (2, 1), (1, 0), (0, 2), (1, 2)) + by_channel(B4, 4),
    ),
    "convolution of v2, pads_end is pads_begin": Case(
        "Convolution", [(2, 3, 7, 6)],
        {"kernel-x": 3, "kernel-y": 3, "stride-x": 0, "stride-y": 2, "pad-x": 1, "pad-y": 0,
         "pad-b": 1, "output": 4, "group": 1, "stride": "1,1,2,1"},
        {"weights": W}, [(2, 4, 3, 6)],
        lambda x: convolved(x, W, (2, 1), (0, 1), (1, 1), (1, 1)), 2,
    ),
    "convolution in groups": Case(
        "Convolution", [(1, 4, 5, 5)], {"kernel": "3,3", "output": 4, "group": 2},
        {"weights": WG, "biases": B4}, [(1, 4, 3, 3)],
        lambda x: convolved(x, WG, (1, 1), (0, 0), (0, 0), (1, 1), 2) + by_channel(B4, 4), 3,
    ),
    "convolution of half weights": Case(
        "Convolution", [(2, 3, 4, 4)], {"kernel": "3,3", "output": 4},
        {"weights": W.astype("f2")}, [(2, 4, 2, 2)],
        lambda x: convolved(x, W.astype("f2").astype("f4"), (1, 1), (0, 0), (0, 0), (1, 1)),
        precision="FP16",
    ),
    "convolution of a calibrated layer": Case(
        "Convolution", [(2, 3, 4, 4)], {"kernel": "3,3", "output": 4}, {"weights": W.tobytes()},
        [(2, 4, 2, 2)], lambda x: convolved(x, W, (1, 1), (0, 0), (0, 0), (1, 1)), 4, "I8",
    ),
    "convolution of same_upper": Case(
        "Convolution", [(2, 3, 5, 5)],
        {"kernel": "3,3", "strides": "2,2", "output": 4, "auto_pad": "same_upper"},
        {"weights": W}, [(2, 4, 3, 3)],
        lambda x: convolved(x, W, (2, 2), (1, 1), (1, 1), (1, 1)),
    ),
    "convolution of same_lower, whose old size is smaller": Case(
        "Convolution", [(2, 3, 5, 5)],
        {"kernel": "3,3", "strides": "2,2", "output": 4, "auto_pad": "same_lower"},
        {"weights": W}, [(2, 4, 2, 2)],
        lambda x: convolved(x, W, (2, 2), (1, 1), (1, 1), (1, 1))[:, :, :2, :2],
    ),
    "convolution over three axes": Case(
        "Convolution", [(1, 1, 3, 4, 5)], {"kernel": "2,2,2", "output": 2},
        {"weights": W.ravel()[:16].reshape(2, 1, 2, 2, 2)}, [(1, 2, 2, 3, 4)],
        lambda x: convolved(
            x, W.ravel()[:16].reshape(2, 1, 2, 2, 2), (1,) * 3, (0,) * 3, (0,) * 3, (1,) * 3
        ),
    ),
    "deconvolution": Case(
        "Deconvolution", [(2, 3, 4, 3)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,0", "pads_end": "1,1", "output": 2},
        {"weights": D, "biases": B4[:2]}, [(2, 2, 7, 6)],
        lambda x: transposed(x, D, (2, 2), (1, 0), (7, 6)) + by_channel(B4[:2], 4),
    ),
    "deconvolution by inputs": Case(
        "Deconvolution", [(2, 3, 4, 3), D, B4[:2]],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,0", "pads_end": "1,1", "output": 2},
        {}, [(2, 2, 7, 6)],
        lambda x, *_: transposed(x, D, (2, 2), (1, 0), (7, 6)) + by_channel(B4[:2], 4), 7,
    ),
    "deconvolution in groups, of which more is declared": Case(
        "Deconvolution", [(1, 4, 3, 3)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "output": 4, "group": 2},
        {"weights": WG}, [(1, 4, 6, 6)],
        lambda x: transposed(x, WG, (2, 2), (1, 1), (6, 6), 2), 3,
    ),
    "deconvolution of same_upper": Case(
        "Deconvolution", [(1, 3, 3, 3)],
        {"kernel": "3,3", "strides": "2,2", "output": 2, "auto_pad": "same_upper"},
        {"weights": D}, [(1, 2, 6, 6)], lambda x: transposed(x, D, (2, 2), (0, 0), (6, 6)),
    ),
    "pooling without a rounding": Case(
        "Pooling", [(2, 3, 8, 7)], {"kernel": "3,3", "strides": "2,2", "pool-method": "max"}, {},
        [(2, 3, 4, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (4, 3)),
    ),
    "pooling rounded down": Case(
        "Pooling", [(2, 3, 8, 7)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "rounding_type": "floor"}, {},
        [(2, 3, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (3, 3)),
    ),
    "pooling whose last window would begin in the padding": Case(
        "Pooling", [(1, 1, 4, 4)],
        {"kernel": "2,2", "strides": "3,3", "pads_begin": "1,1", "pool-method": "avg",
         "exclude-pad": "false", "rounding_type": "ceil"}, {},
        [(1, 1, 2, 2)],
        lambda x: pooled(x, (2, 2), (3, 3), (1, 1), (1, 1), (2, 2), "avg"),
    ),
    "pooling by mean, the last window overhanging": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "avg", "rounding-type": "ceil"}, {},
        [(1, 2, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (0, 0), (0, 0), (3, 3), "avg"), 4,
    ),
    "pooling by mean with padding, overhanging": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "3,3", "pads_begin": "1,1", "pads_end": "0,0",
         "pool-method": "avg"}, {}, [(1, 2, 3, 3)],
        lambda x: pooled(x, (3, 3), (3, 3), (1, 1), (0, 0), (3, 3), "avg"),
    ),
    "pooling by mean of what is there": Case(
        "Pooling", [(1, 2, 6, 6)],
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pool-method": "avg",
         "exclude-pad": "true", "rounding_type": "floor"}, {}, [(1, 2, 3, 3)],
        lambda x: pooled(x, (3, 3), (2, 2), (1, 1), (1, 1), (3, 3), "avg", True),
    ),
    "pooling of v2": Case(
        "Pooling", [(1, 2, 7, 8)],
        {"kernel-x": 3, "kernel-y": 2, "stride-x": 2, "stride-y": 2, "pad-x": 1, "pad-y": 0,
         "exclude-pad": "true", "pool-method": "max", "rounding-type": "ceil",
         "stride": "1,1,2,2"},
        {}, [(1, 2, 4, 5)], lambda x: pooled(x, (2, 3), (2, 2), (0, 1), (0, 1), (4, 5)), 2,
    ),
    "pooling straight from Caffe": Case(
        "Pooling", [(1, 2, 7, 7)],
        {"kernel_size": 3, "stride": 2, "pad_h": 1, "pool": "caffe.PoolingParameter.AVE"}, {},
        [(1, 2, 4, 3)], lambda x: pooled(x, (3, 3), (2, 2), (1, 0), (0, 0), (4, 3), "avg"), 2,
    ),
    "pooling over three axes": Case(
        "Pooling", [(1, 2, 4, 5, 6)],
        {"kernel": "2,2,3", "strides": "2,1,2", "pool-method": "max"}, {}, [(1, 2, 2, 4, 3)],
        lambda x: pooled(x, (2, 2, 3), (2, 1, 2), (0,) * 3, (0,) * 3, (2, 4, 3)),
    ),
    "pooling of everything": Case(
        "Pooling", [(1, 2, 5, 6)],
        {"kernel": "5,6", "global_pool": "True", "pool-method": "avg"}, {}, [(1, 2, 1, 1)],
        lambda x: x.mean((2, 3), keepdims=True),
    ),
    "pooling of same_upper": Case(
        "Pooling", [(1, 2, 5, 6)],
        {"kernel": "3,3", "strides": "2,2", "pool-method": "max", "auto_pad": "same_upper"}, {},
        [(1, 2, 3, 3)], lambda x: pooled(x, (3, 3), (2, 2), (1, 0), (1, 1), (3, 3)),
    ),
    "fully connected": Case(
        "FullyConnected", [(2, 3, 2, 2)], {"out-size": 5}, {"weights": FC, "biases": SCALE[:1]
         .repeat(5)}, [(2, 5)], lambda x: x.reshape(2, 12) @ FC.T + SCALE[0],
    ),
    "fully connected of v2": Case(
        "InnerProduct", [(2, 12)], {"out-size": 5}, {"weights": FC}, [(2, 5)],
        lambda x: x @ FC.T, 2, more={"tag": "fc_data"},
    ),
    "product": Case(
        "Gemm", [(2, 4, 3), (2, 4, 5), (2, 3, 5)],
        {"alpha": 2, "beta": 0.5, "transpose_a": "true", "transpose_b": 0}, {}, [(2, 3, 5)],
        lambda a, b, c: 2 * a.swapaxes(1, 2) @ b + 0.5 * c,
    ),
    "batch normalization": Case(
        "BatchNormalization", [X4], {"epsilon": 1e-3}, {"weights": VAR, "biases": SHIFT}, [X4],
        lambda x: (x - by_channel(SHIFT, 4)) / np.sqrt(by_channel(VAR, 4) + 1e-3), 2,
        more={"tag": "batch_norm_data"},
    ),
    "scale and shift": Case(
        "ScaleShift", [X4], {"broadcast": 2}, {"weights": SCALE, "biases": SHIFT}, [X4],
        lambda x: x * by_channel(SCALE, 4) + by_channel(SHIFT, 4), 2,
    ),
    "shift alone": Case(
        "ScaleShift", [(2, 3)], {}, {"biases": SHIFT}, [(2, 3)], lambda x: x + SHIFT,
    ),
    "norm across": Case(
        "Norm", [(2, 6, 3, 3)],
        {"alpha": 0.7, "beta": 0.75, "local-size": 3, "k": 2, "region": "across"}, {},
        [(2, 6, 3, 3)], lambda x: local_response(x, 3, 0.7, 0.75, 2, across=True), 2,
        more={"tag": "norm_data"},
    ),
    "norm within": Case(
        "LRN", [(1, 2, 5, 5)],
        {"alpha": 0.7, "beta": 0.75, "local_size": 3, "region": "same"}, {}, [(1, 2, 5, 5)],
        lambda x: local_response(x, 3, 0.7, 0.75, 1, across=False),
    ),
    "normalize": Case(
        "Normalize", [X4], {"across_spatial": 0, "channel_shared": 0, "eps": 1e-10},
        {"weights": SCALE}, [X4], lambda x: normalized(x, (1,), 1e-10) * by_channel(SCALE, 4),
    ),
    "normalize all but the batch": Case(
        "Normalize", [X4], {"across_spatial": 1, "channel_shared": 1, "eps": 1e-10},
        {"weights": SCALE[:1]}, [X4], lambda x: normalized(x, (1, 2, 3), 1e-10) * SCALE[0],
    ),
    "mean and variance": Case(
        "MVN", [X4], {"across_channels": 0, "normalize_variance": 1, "eps": 1e-9}, {}, [X4],
        lambda x: mean_free(x, (2, 3), variance=True),
    ),
    "mean across channels": Case(
        "MVN", [X4], {"across_channels": 1, "normalize_variance": 0, "eps": 1e-9}, {}, [X4],
        lambda x: mean_free(x, (1, 2, 3), variance=False),
    ),
    "grn": Case(
        "GRN", [X4], {"bias": 1}, {}, [X4],
        lambda x: x / np.sqrt((x**2).sum(1, keepdims=True) + 1),
    ),
}  # fmt: skip
