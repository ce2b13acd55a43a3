"""Passes: each rewrites the plan so that it computes the same with less work.

One file each, whose first line is its formula. ``PASSES`` has them in order:

1. Weights stay levels where their reader multiplies by such, else they are made numbers; whole
   numbers that bytes are widened to become floating ones, whose sums stay exact, what is rounded
   is not rounded again, what is put in place row by row joined once. Sums of products become
   products of matrices, gathers of evenly spaced slices views, elements put down one by one
   slices; images cut into batches stay whole, windows pad for themselves and lose what meets
   padding alone; parts that meet again were never apart; batch normalisations become scales and
   shifts, powers products, means along axes apart several, poolings to a size plain ones; norms
   and activations that are written out, branches of convolutions, shuffles and attention, that of
   samples, too, one node, with what multiplies its queries: what the others look for.
   Before these, 1x1 convolutions go before what enlarges images, and into products before them.
2. Elementwise nodes go before what only moves numbers, and become epilogues, without clips that
   rounding makes up for, and scales and shifts at their head weights, as do steps of levels at
   the convolutions after them.
3. What an epilogue adds goes on to the convolution after it; averages and maxima go first, where
   they leave fewer elements; activations before a 1x1 convolution become clips, then its prologue,
   as do computed factors of channels. Patches are multiplied as rows. What moves axes
   in a row copies once.
4. Levels that integers are multiplied by stay bytes, those that are added are scaled once, those
   of activations are looked up; or their makers leave the rounding to who multiplies. Shuffles go
   where they copy least; convolutions give what Swish takes as this wants it multiplied; products
   leave out rows that are made zero later.
5. Layouts are chosen last, when it is settled which nodes there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..plan import Plan
from .absorb_followers import absorb_followers
from .average_first import average_first
from .change_first import change_first
from .clip_before import clip_before
from .convolve_first import convolve_first
from .cut_pads import cut_pads
from .cut_stops import cut_stops
from .dilate_convolutions import dilate_convolutions
from .drop_clips import drop_clips
from .fold_affine import fold_affine
from .hand_on_levels import hand_on_levels
from .join_attention import join_attention
from .join_branches import join_branches
from .join_gelus import join_gelus
from .join_levels import join_levels
from .join_moves import join_moves
from .join_norms import join_norms
from .join_products import join_products
from .join_rounding import join_rounding
from .join_shuffles import join_shuffles
from .join_soft_max import join_soft_max
from .join_splits import join_splits
from .keep_levels import keep_levels
from .layouts import choose_layouts
from .lengthen_cells import lengthen_cells
from .look_up_levels import look_up_levels
from .multiply_einsums import multiply_einsums
from .multiply_for_swish import multiply_for_swish
from .multiply_patches import multiply_patches
from .multiply_powers import multiply_powers
from .multiply_tall import multiply_tall
from .multiply_whole import multiply_whole
from .part_reductions import part_reductions
from .pass_biases import pass_biases
from .pass_offsets import pass_offsets
from .pool_evenly import pool_evenly
from .pool_first import pool_first
from .round_late import round_late
from .round_once import round_once
from .scale_attention import scale_attention
from .scale_levels import scale_levels
from .scatter_slices import scatter_slices
from .settle_weights import settle_weights
from .shuffle_late import shuffle_late
from .skip_idle_rows import skip_idle_rows
from .slice_gathers import slice_gathers
from .split_batch_norm import split_batch_norm
from .sum_exactly import sum_exactly
from .sum_samples import sum_samples
from .take_pads import take_pads
from .take_prologues import take_prologues
from .trim_windows import trim_windows
from .write_once import write_once

#: The passes in order.
PASSES: tuple[Callable[[Plan], None], ...] = (
    cut_pads,
    take_pads,
    cut_stops,
    join_rounding,
    settle_weights,
    multiply_whole,
    sum_exactly,
    round_once,
    write_once,
    slice_gathers,
    scatter_slices,
    multiply_einsums,
    dilate_convolutions,
    pool_evenly,
    lengthen_cells,
    trim_windows,
    multiply_tall,
    join_splits,
    split_batch_norm,
    multiply_powers,
    join_norms,
    join_gelus,
    join_soft_max,
    part_reductions,
    join_branches,
    convolve_first,
    join_products,
    join_shuffles,
    join_attention,
    scale_attention,
    sum_samples,
    change_first,
    absorb_followers,
    drop_clips,
    fold_affine,
    scale_levels,
    hand_on_levels,
    pass_offsets,
    pass_biases,
    average_first,
    pool_first,
    clip_before,
    take_prologues,
    multiply_patches,
    join_moves,
    keep_levels,
    join_levels,
    look_up_levels,
    round_late,
    shuffle_late,
    multiply_for_swish,
    skip_idle_rows,
    choose_layouts,
)


def optimize(plan: Plan, after_each: Callable[[Plan], None] | None = None) -> None:
    """Rewrite a plan by all passes; ``after_each`` is called with it after each."""
    with np.errstate(all="ignore"):  # constants may be infinite, or become so
        for one in PASSES:
            one(plan)
            if after_each is not None:
                after_each(plan)
