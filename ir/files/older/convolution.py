"""Convolutions. Attributes are lists in the order of the axes; in v2 one number for x, one for y.

``pads_end`` is ``pads_begin`` where it is missing, as was ``pad-r``, ``pad-b``. Blob ``weights``
is laid out group by group, ``biases`` is added by channel. A second and third input may stand for
the blobs, as in quantized models of v7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....schemas import ElementType, IRError
from ...document import Output, no_bin
from .layer import Old
from .table import Made, converts

WINDOW = (
    "kernel? kernel-x? kernel-y? strides? stride-x=1 stride-y=1 stride? pads_begin? pad-x=0 "
    "pad-y=0 pads_end? pad-r? pad-b? dilations? dilation-x=1 dilation-y=1 auto_pad="
)
#: What ``cut_off`` makes.
CUT = "Slice-8 ShapeOf-3 Gather-1 Add-1 Divide-1"
#: What the Model Optimizer wrote beside what was read.
IDLE = "input pad mode kernel_size engine"

PADDING = {"": "explicit", "explicit": "explicit", "notset": "explicit", "valid": "valid",
           "same_upper": "same_upper", "same_lower": "same_lower"}  # fmt: skip


@dataclass(frozen=True)
class Window:
    """What slides over the spatial axes, in their order."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    dilations: tuple[int, ...]
    auto_pad: str

    def reach(self, axis: int) -> int:
        """Places from the first to the last of the window."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def attributes(self) -> dict[str, object]:
        """As attributes of today."""
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads_begin": self.begin,
            "pads_end": self.end,
            "auto_pad": self.auto_pad,
        }


def read_window(old: Old, *, dilated: bool = True) -> Window:
    """The window, in either spelling."""
    auto_pad = old.choice("auto_pad", PADDING)
    kernel = old.integers("kernel", 1) if old.has("kernel") else ()
    if not kernel:
        return _in_pairs(old, auto_pad, dilated)
    axes = len(kernel)

    def listed(name: str, default: tuple[int, ...], least: int) -> tuple[int, ...]:
        found = old.integers(name, least) if old.has(name) else default
        if len(found) != axes:
            raise IRError(f"{name} has {len(found)} numbers, kernel has {axes}")
        return found

    strides = listed("strides", (1,) * axes, 1)
    begin = listed("pads_begin", (0,) * axes, 0)
    end = listed("pads_end", begin, 0)
    dilations = listed("dilations", (1,) * axes, 0) if dilated else (1,) * axes
    return Window(kernel, strides, begin, end, tuple(d or 1 for d in dilations), auto_pad)


def _in_pairs(old: Old, auto_pad: str, dilated: bool) -> Window:
    """The spelling of v2: y and x apart; a stride of 0 counts as 1."""
    kernel = old.integer("kernel-y", 1), old.integer("kernel-x", 1)
    strides = old.integer("stride-y", 0) or 1, old.integer("stride-x", 0) or 1
    begin = old.integer("pad-y", 0), old.integer("pad-x", 0)
    end = (
        old.integer("pad-b", 0) if old.has("pad-b") else begin[0],
        old.integer("pad-r", 0) if old.has("pad-r") else begin[1],
    )
    dilations = (1, 1)
    if dilated:
        dilations = old.integer("dilation-y", 0) or 1, old.integer("dilation-x", 0) or 1
    return Window(kernel, strides, begin, end, dilations, auto_pad)


def spatial(old: Old, axes: int) -> tuple[int, ...]:
    """The spatial sizes of the input, which must be as many as the window has axes."""
    dims = old.dims(least=2)
    if len(dims) != axes + 2:
        raise IRError(f"the window has {axes} axes, the input {list(dims)} has {len(dims) - 2}")
    return dims[2:]


def same_pads(window: Window, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding of ``same_*``: what lets the window stop at every stride-th place."""
    begin, end = [], []
    for axis, size in enumerate(sizes):
        stride = window.strides[axis]
        total = max(window.reach(axis) - (size % stride or stride), 0)
        less, more = total // 2, total - total // 2
        upper = window.auto_pad == "same_upper"
        begin.append(less if upper else more)
        end.append(more if upper else less)
    return tuple(begin), tuple(end)


def trimmed(old: Old, window: Window, made: Output) -> Output:
    """Of ``same_lower`` the old rule took floor(size / stride), today's takes the ceiling."""
    declared, shape = old.declared(), made.tensor.shape
    if window.auto_pad != "same_lower" or not shape.is_static or shape.rank != len(declared):
        return made
    wanted, found = declared[2:], shape.static[2:]
    follows = wanted == tuple(n // s for n, s in zip(old.dims()[2:], window.strides, strict=True))
    if found != wanted and all(size >= told for size, told in zip(found, wanted, strict=True)):
        old.remark(
            f"same_lower gives {list(wanted)} by its old rule, {list(found)} by today's: what is "
            "more is cut off"
        )
    elif not follows or all(stride == 1 for stride in window.strides):
        return made
    ends = places(old, window, (0,) * len(wanted)) if follows else old.indices(*wanted)
    return cut_off(old, made, ends)


def places(old: Old, window: Window, more: tuple[int, ...]) -> Output:
    """Of each spatial axis of the input floor((size + more) / stride)."""
    found = old.sizes(old[0], *range(2, 2 + len(more)))
    if any(more):
        found = old.add("Add", "opset1", [found, old.indices(*more)])
    return old.add("Divide", "opset1", [found, old.indices(*window.strides)])


def cut_off(old: Old, made: Output, ends: Output) -> Output:
    """What of an output lies before these places of its spatial axes."""
    axes = range(2, len(made.tensor.shape.static))
    first, steps = old.indices(*(0 for _ in axes)), old.indices(*(1 for _ in axes))
    return old.add("Slice", "opset8", [made, first, ends, steps, old.indices(*axes)])


def with_bias(old: Old, made: Output, index: int = 2) -> Output:
    """The biases of the channels added: of the blob, or of an input."""
    channels = old.declared()[1] if len(old.declared()) > 1 else 0
    rank = len(old.declared())
    shape = (1, channels, *[1] * (rank - 2))
    bias = old.blob("biases", shape)
    if bias is None and len(old) > index:
        bias = old.reshape(old.reals(index), shape)
    return made if bias is None else old.add("Add", "opset1", [made, bias])


def filters(old: Old, shape: tuple[int, ...], index: int = 1) -> Output:
    """The weights in the layout of today's operation: of the blob, or of an input."""
    if "weights" not in old.layer.blobs and len(old) > index:
        return old.reshape(old.reals(index), shape)
    return old.weights("weights", shape)


def _channels(old: Old, group: int) -> tuple[int, int]:
    """Channels of the input, and of the output, both of which the groups divide."""
    count, made = old.dims()[1], old.integer("output", 1)
    if count % group or made % group:
        raise IRError(
            f"group {group} does not divide the {count} input and {made} output channels"
        )
    return count, made


@converts(
    "Convolution", f"output group=1 {WINDOW}",
    becomes=f"Convolution-1 GroupConvolution-1 {CUT}",
    idle=IDLE,
)  # fmt: skip
def convolution(old: Old) -> Made:
    """Weights [O, I/g, kernel]; of several groups [g, O/g, I/g, kernel], the same bytes."""
    window, group = read_window(old), old.integer("group", 1)
    spatial(old, len(window.kernel))
    count, made = _channels(old, group)
    if group == 1:
        weights = filters(old, (made, count, *window.kernel))
        inputs = [old.reals(0), weights]
        result = old.add("Convolution", "opset1", inputs, window.attributes())
    else:
        weights = filters(old, (group, made // group, count // group, *window.kernel))
        inputs = [old.reals(0), weights]
        result = old.add("GroupConvolution", "opset1", inputs, window.attributes())
    return with_bias(old, trimmed(old, window, result))


@converts(
    "Deconvolution", f"output group=1 {WINDOW}",
    becomes="ConvolutionBackpropData-1 GroupConvolutionBackpropData-1 Add-1", idle=IDLE,
)  # fmt: skip
def deconvolution(old: Old) -> Made:
    """Weights [I, O/g, kernel]: of several groups [g, I/g, O/g, kernel], the same bytes.

    Padding is explicit, worked out from the declared sizes: what they have more is
    ``output_padding``. An input with the shape of the output is not needed.
    """
    window, group = read_window(old), old.integer("group", 1)
    sizes = spatial(old, len(window.kernel))
    count, made = _channels(old, group)
    lead = (count, made) if group == 1 else (group, count // group, made // group)
    kind = "ConvolutionBackpropData" if group == 1 else "GroupConvolutionBackpropData"
    weights = filters(old, (*lead, *window.kernel))
    attributes = window.attributes() | _transposed_pads(old, window, sizes)
    result = old.add(kind, "opset1", [old.reals(0), weights], attributes)
    if "weights" in old.layer.blobs or len(old) < 3 or not old[2].tensor.type.is_real:
        return with_bias(old, result, index=len(old))  # what else comes in is the output's shape
    return with_bias(old, result)


def _transposed_pads(old: Old, window: Window, sizes: tuple[int, ...]) -> dict[str, object]:
    """Padding of a transposed convolution, so that the sizes are the declared ones."""
    rank = 2 + len(sizes)
    declared = old.declared(0, rank, rank)[2:]
    full = [(size - 1) * window.strides[i] + window.reach(i) for i, size in enumerate(sizes)]
    begin, end = list(window.begin), list(window.end)
    if window.auto_pad == "valid":
        begin, end = [0] * len(sizes), [0] * len(sizes)
    elif window.auto_pad.startswith("same"):
        total = [max(window.reach(i) - window.strides[i], 0) for i in range(len(sizes))]
        less, more = [n // 2 for n in total], [n - n // 2 for n in total]
        begin, end = (less, more) if window.auto_pad == "same_upper" else (more, less)
    extra = [d - (f - b - e) for d, f, b, e in zip(declared, full, begin, end, strict=True)]
    if any(extra):
        fits = all(0 <= n < window.strides[i] for i, n in enumerate(extra))
        if not fits:
            raise IRError(
                f"the output is declared as {list(declared)}, strides, kernel and padding give "
                f"{[f - b - e for f, b, e in zip(full, begin, end, strict=True)]}"
            )
        old.remark(f"output_padding {extra} follows from the declared sizes")
    return {
        "pads_begin": begin, "pads_end": end, "auto_pad": "explicit", "output_padding": extra,
    }  # fmt: skip


@converts(
    "DeformableConvolution",
    f"output group=1 deformable_group=1 num_deformable_group? {WINDOW}",
    becomes=f"DeformableConvolution-1 {CUT}", idle=IDLE,
)  # fmt: skip
def deformable_convolution(old: Old) -> Made:
    """Input 1 are the offsets; the catalogue of layers misprints num_deformable_group."""
    window, group = read_window(old), old.integer("group", 1)
    spatial(old, len(window.kernel))
    count, made = _channels(old, group)
    weights = filters(old, (made, count // group, *window.kernel), index=2)
    fields = old.integer("deformable_group", 1)
    if not old.has("deformable_group") and old.has("num_deformable_group"):
        fields = old.integer("num_deformable_group", 1)
    inputs = [old.reals(0), old.reals(1), weights]
    attributes = window.attributes() | {"group": group, "deformable_group": fields}
    result = old.add("DeformableConvolution", "opset1", inputs, attributes)
    return with_bias(old, trimmed(old, window, result), index=3)


@converts(
    "BinaryConvolution",
    f"input output group=1 mode=xnor-popcount pad_value=0 {WINDOW}",
    becomes=f"Convolution-1 Greater-1 Multiply-1 Subtract-1 Pad-1 {CUT}",
)
def binary_convolution(old: Old) -> Made:
    """A bit a weight, low bit first: 1 and -1; of the input what is above 0 is 1, the rest -1.

    As a Convolution: today's BinaryConvolution has the bits in another order by its
    specification than on its CPU.
    """
    window, pad = read_window(old), old.real("pad_value")
    sizes = spatial(old, len(window.kernel))
    if old.integer("group", 1) != 1:
        raise IRError("group of BinaryConvolution must be 1")
    if old.text("mode") != "xnor-popcount":
        raise IRError(f'mode is "{old.text("mode")[:40]}", only xnor-popcount is known')
    count, made = old.dims()[1], old.integer("output", 1)
    if old.integer("input", 1) != count:
        raise IRError(f"input is {old.integer('input')}, the input has {count} channels")
    weights = _signs(old, (made, count, *window.kernel))
    above = old.add("Greater", "opset1", [old.reals(0), old.constant(0.0)])
    bits = old.cast(above, ElementType.F32)
    double = old.add("Multiply", "opset1", [bits, old.constant(2.0)])
    signs = old.add("Subtract", "opset1", [double, old.constant(1.0)])
    old.remark("is a convolution of 1 and -1, in real numbers")
    flat = window
    if pad:
        begin, end = window.begin, window.end
        if window.auto_pad.startswith("same"):
            begin, end = same_pads(window, sizes)
            if any(stride > 1 for stride in window.strides):
                old.remark(f"its padding by {pad} is that of the sizes {list(sizes)}", fixed=0)
        if window.auto_pad != "valid":
            pads = old.indices(0, 0, *begin), old.indices(0, 0, *end)
            signs = old.add(
                "Pad", "opset1", [signs, *pads, old.constant(pad)], pad_mode="constant"
            )
        nothing = (0,) * len(sizes)
        flat = Window(
            window.kernel, window.strides, nothing, nothing, window.dilations, "explicit"
        )
    result = old.add("Convolution", "opset1", [signs, weights], flat.attributes())
    return with_bias(old, trimmed(old, window, result))


def _signs(old: Old, shape: tuple[int, ...]) -> Output:
    """The bits of the weights as 1 and -1."""
    held = old.layer.blobs.get("weights")
    if held is None:
        raise IRError("BinaryConvolution has no weights", hint="<blobs> needs <weights>")
    count = math.prod(shape)
    needed = -(-count // 8)
    if held.size < needed:
        raise IRError(f"weights has {held.size} bytes, {list(shape)} of a bit each takes {needed}")
    if old.scene.weights is None:
        raise no_bin(held.offset, needed, old.scene.bin_place)
    data = old.scene.weights.view(held.offset, needed)
    bits = np.unpackbits(data, bitorder="little", count=count).reshape(shape)
    return old.constant(bits.astype(np.float32) * 2 - 1)
