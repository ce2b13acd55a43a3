"""The rules, in the order in which they are tried at a layer.

First what leaves less to look at, then activations and norms, which the rules that move numbers
into weights (the second stage) would take apart.
"""

from __future__ import annotations

from . import (
    attention,
    batch_norm,
    broadcast_into_elementwise,
    convert_pairs,
    depth_to_space,
    fold_constants,
    gelu,
    hsigmoid,
    hswish,
    linear_chains,
    linear_into_batch_norm,
    linear_through_movements,
    mish,
    mvn,
    neutral_elements,
    normalize_l2,
    relu_into_fake_quantize,
    reshape_chains,
    reshape_patterns,
    scale_into_fake_quantize,
    scale_into_weights,
    share_constants,
    share_expressions,
    shuffle_channels,
    slices_into_split,
    softmax_between_reshapes,
    softplus,
    split_concat,
    swish,
    transpose_into_matmul,
    transpose_pairs,
    uniform_values,
    whole_movements,
)
from .rewriter import Rule

RULES: tuple[Rule, ...] = tuple(
    file.RULE
    for file in (
        share_constants,
        whole_movements,
        neutral_elements,
        split_concat,
        slices_into_split,
        convert_pairs,
        shuffle_channels,
        depth_to_space,
        reshape_patterns,
        reshape_chains,
        softmax_between_reshapes,
        transpose_pairs,
        broadcast_into_elementwise,
        uniform_values,
        transpose_into_matmul,
        relu_into_fake_quantize,
        softplus,
        mish,
        hswish,
        hsigmoid,
        swish,
        gelu,
        mvn,
        normalize_l2,
        attention,
        linear_into_batch_norm,
        batch_norm,
        scale_into_weights,
        scale_into_fake_quantize,
        linear_chains,
        linear_through_movements,
        fold_constants,
        share_expressions,
    )
)
