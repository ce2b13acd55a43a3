"""Other sizes for the same elements, and sizes as values."""

from __future__ import annotations

import math

from ....schemas import IRError
from .layer import Old
from .table import Made, converts


@converts("Reshape", "dim?", becomes="Reshape-1", idle="axis num_axes special_zero")
def reshape(old: Old) -> Made:
    """Sizes in input 1 or in ``dim`` (0: the input's, -1: the rest), else the declared ones.

    The old CPU only copied: where ``dim`` is of some axes alone, as Caffe's axis and num_axes
    have it, the declared sizes count.
    """
    if len(old) > 1:
        if old.value(1) is None and old[1].layer.is_constant:
            old.remark(f"the .bin is missing: the declared sizes {list(old.declared())} are taken")
            return old.reshape(old[0], old.declared())
        return old.add("Reshape", "opset1", [old[0], old.flat(1)], special_zero=True)
    if old.has("dim") and old.text("dim"):
        sizes = old.integers("dim", -1)
        if any(size == 0 for size in sizes[len(old.dims()) :]):
            raise IRError(
                f"dim {list(sizes)} copies sizes that the input {list(old.dims())} lacks"
            )
        dims, declared = old.dims(), old.declared()
        if _filled(sizes, dims) != declared and math.prod(declared) == math.prod(dims):
            old.remark(f"the declared sizes {list(declared)} are taken, and not dim {list(sizes)}")
            return old.reshape(old[0], declared)
        pattern = old.indices(*sizes)
        return old.add("Reshape", "opset1", [old[0], pattern], special_zero=True)
    old.remark(f"says no sizes: the declared ones {list(old.declared())} are taken")
    return old.reshape(old[0], old.declared())


def _filled(sizes: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of ``dim`` with those of the input and the rest written out."""
    known = [size or dims[axis] for axis, size in enumerate(sizes)]
    rest = math.prod(dims) // math.prod(size for size in known if size > 0)
    return tuple(rest if size < 0 else size for size in known)


@converts("Flatten", "axis=0 end_axis=-1", becomes="Reshape-1 ShapeOf-3 Gather-1 Concat-1")
def flatten(old: Old) -> Made:
    """The axes from ``axis`` to ``end_axis`` as one."""
    dims = old.dims()
    first, last = old.integer("axis"), old.integer("end_axis")
    first, last = (n + len(dims) if n < 0 else n for n in (first, last))
    if not 0 <= first <= last < len(dims):
        raise IRError(f"axes {first} to {last} of the {len(dims)} of the input {list(dims)}")
    pattern = old.indices(*[0] * first, -1)
    if last + 1 < len(dims):
        behind = old.sizes(old[0], *range(last + 1, len(dims)))
        pattern = old.add("Concat", "opset1", [pattern, behind], axis=0)
    return old.add("Reshape", "opset1", [old[0], pattern], special_zero=True)


@converts("Permute", "order", becomes="Transpose-1")
def permute(old: Old) -> Made:
    """The axes in another order."""
    return old.add("Transpose", "opset1", [old[0], old.indices(*old.integers("order"))])


@converts("Squeeze", becomes="Squeeze-1")
def squeeze(old: Old) -> Made:
    """Without the axes of input 1, whose numbers may be floats."""
    if len(old) > 1 and old.value(1) is None:
        return old.reshape(old[0], old.declared())
    inputs = [old[0]] if len(old) < 2 else [old[0], old.flat(1)]
    return old.add("Squeeze", "opset1", inputs)


@converts("Unsqueeze", becomes="Unsqueeze-1")
def unsqueeze(old: Old) -> Made:
    """With axes of one place where input 1 says, whose numbers may be floats."""
    if old.value(1) is None:
        return old.reshape(old[0], old.declared())
    return old.add("Unsqueeze", "opset1", [old[0], old.flat(1)])


@converts("Shape ShapeOf", becomes="ShapeOf-3")
def shape_of(old: Old) -> Made:
    """The sizes of the input."""
    return old.add("ShapeOf", "opset3", [old[0]], output_type="i32")
