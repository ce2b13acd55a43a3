"""Products of matrices, sums of products by equation, inverses.

Specification pages: MatMul-1, Einsum-7, Inverse-14, GroupedMatMul-17.

Real types below 32 bits are summed in float32, integers exactly; an integer result stops at
the ends of its type. The inverse of a singular matrix is all NaN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Text
from ..schemas.shapes import merge
from .axes import broadcast_size
from .base import Op, element_type
from .budget import require
from .casting import narrowed, quiet, widened


class MatMulV1(Op):
    """Products of the last two axes, either of them transposed; the axes before are broadcast."""

    transpose_a: Bool = False
    transpose_b: Bool = False

    def infer(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(a.type.merge(b.type), self.product(a.shape, b.shape)),)

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """The axis that is summed, for each element of the output."""
        shape = inputs[0]
        summed = shape[-2 if self.transpose_a and len(shape) > 1 else -1] if shape else 1
        return prod(output) * summed

    def product(self, a: Shape, b: Shape) -> Shape:
        """Shape of the output."""
        if a.rank is None or b.rank is None:
            return Shape.UNKNOWN
        if not a.rank or not b.rank:
            raise IRError(f"shapes {a} and {b}: a matrix has one axis at least")
        rows, inner = turned(a, self.transpose_a)
        # A vector on the right is a column.
        inner_b, columns = turned(b, self.transpose_b) if b.rank > 1 else (b[0], 1)
        if not isinstance(inner, Dim) and not isinstance(inner_b, Dim) and inner != inner_b:
            raise IRError(f"shapes {a} and {b}: the inner sizes {inner} and {inner_b} differ")
        stacks = [shape[:-2] for shape in (a, b)]
        longest = max(map(len, stacks))
        padded = [(*[1] * (longest - len(stack)), *stack) for stack in stacks]
        batch = [stacked(*pair) for pair in zip(*padded, strict=True)]
        kept = ([rows] if a.rank > 1 else []) + ([columns] if b.rank > 1 else [])
        return Shape([*batch, *kept])

    @quiet
    def run(self, a: Array, b: Array) -> tuple[Array, ...]:
        left, right = widened(a), widened(b)
        if self.transpose_a and a.ndim > 1:
            left = left.swapaxes(-1, -2)
        if self.transpose_b and b.ndim > 1:
            right = right.swapaxes(-1, -2)
        return (narrowed(np.asarray(np.matmul(left, right)), a.dtype),)


def turned(shape: Shape, transposed: bool) -> tuple[Size, Size]:
    """The last two sizes, in the order in which they are used; a vector is one row."""
    if len(shape) == 1:
        return 1, shape[0]
    rows, columns = shape[-2], shape[-1]
    return (columns, rows) if transposed else (rows, columns)


def stacked(one: Size, other: Size) -> Size:
    """A size of the axes before the matrices; unknown sizes are never refused."""
    try:
        return broadcast_size(one, other)
    except IRError:
        if isinstance(one, Dim) or isinstance(other, Dim):
            return ANY
        raise IRError(f"{one} and {other} matrices cannot be paired") from None


class EinsumV7(Op):
    """Sums of products over the axes that an equation such as ``ab,bc->ac`` names."""

    equation: Text

    def infer(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        terms, output = self.terms(len(inputs))
        kind = inputs[0].type
        for tensor in inputs[1:]:
            kind = kind.merge(tensor.type)
        if not kind.is_dynamic and not kind.is_numeric:
            raise IRError(f"element type {kind} is not numeric")
        sizes: dict[str, list[Size] | None] = {ELLIPSIS: []}
        for term, tensor in zip(terms, inputs, strict=True):
            for label, found in named(term, tensor.shape).items():
                known = sizes.get(label, found)
                if found == [ANY] and tensor.rank is None:
                    # Of such an input OpenVINO takes nothing for what it knows already.
                    sizes[label] = known
                    continue
                sizes[label] = None if known is None or found is None else together(known, found)
        result: list[Size] = []
        for label in output:
            found = sizes[label]
            if found is None:
                return (Tensor(kind, Shape.UNKNOWN),)
            result += found
        return (Tensor(kind, Shape(result)),)

    def unknown_inputs(self) -> list[Tensor]:
        return super().unknown_inputs() * (self.equation.partition("->")[0].count(",") + 1)

    def terms(self, count: int) -> tuple[list[list[str]], list[str]]:
        """The labels of each input, and those of the output."""
        left, arrow, right = self.equation.partition("->")
        terms = [labels(term) for term in left.split(",")]
        if len(terms) != count:
            raise IRError(f'equation "{self.equation}" has {len(terms)} terms, {count} inputs')
        if arrow:
            output = labels(right)
            missing = set(output) - {ELLIPSIS}.union(*terms)
            if missing:
                raise IRError(f'label "{min(missing)}" of the output is in no term of the inputs')
            return terms, output
        every = [label for term in terms for label in set(term)]
        alone = [n for term in terms for n in term if n != ELLIPSIS and every.count(n) == 1]
        return terms, [ELLIPSIS] * any(ELLIPSIS in term for term in terms) + sorted(alone)

    @quiet
    def run(self, *inputs: Array) -> tuple[Array, ...]:
        terms, output = self.terms(len(inputs))
        if len(set(output)) < len(output):
            raise IRError(f'equation "{self.equation}" names an axis of the output twice')
        spreads = [array.ndim - len(term) + 1 for term, array in zip(terms, inputs, strict=True)]
        longest = max((n for n, t in zip(spreads, terms, strict=True) if ELLIPSIS in t), default=0)
        letters = sorted({name for term in terms for name in term} - {ELLIPSIS})
        numbers = {name: number for number, name in enumerate(letters)}

        def axes(term: Sequence[str], spread: int) -> list[int]:
            """Axes by number; those of an ellipsis are counted from the last."""
            extra = range(len(numbers) + longest - spread, len(numbers) + longest)
            return [n for name in term for n in (extra if name == ELLIPSIS else [numbers[name]])]

        wide = [widened(array) for array in inputs]
        names = [axes(term, spread) for term, spread in zip(terms, spreads, strict=True)]
        result = axes(output, longest)
        total = product_of(wide, names, result) if len(wide) == 2 else None
        if total is None:
            operands = [x for pair in zip(wide, names, strict=True) for x in pair]
            total = np.array(np.einsum(*operands, result, optimize=len(inputs) > 1))
        return (narrowed(total, inputs[0].dtype),)


class Roles(NamedTuple):
    """What the labels of two operands are for, in the order of the output."""

    #: They number the matrices.
    stacked: list[Any]
    rows: list[Any]
    columns: list[Any]
    summed: list[Any]


def roles(a: Sequence[Any], b: Sequence[Any], output: Sequence[Any]) -> Roles | None:
    """What each label is for; None where this is no product of stacks of matrices."""
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    shared = [label for label in a if label in b]
    found = Roles(
        [label for label in output if label in shared],
        [label for label in output if label in a and label not in b],
        [label for label in output if label in b and label not in a],
        [label for label in shared if label not in output],
    )
    whole = len(found.stacked) + len(found.summed)
    if not found.summed or len(found.rows) + whole < len(a) or len(found.columns) + whole < len(b):
        return None  # nothing is summed, or an operand by itself
    return found


def product_of(
    operands: Sequence[Array], names: Sequence[Sequence[int]], output: Sequence[int]
) -> Array | None:
    """Sums of products over axes as products of matrices; None where they are none."""
    (left, right), (a, b) = operands, names
    found = roles(a, b, output)
    sizes = dict(zip(a, left.shape, strict=True))
    others = dict(zip(b, right.shape, strict=True))
    if found is None or any(sizes[label] != others[label] for label in sizes.keys() & others):
        return None  # an ellipsis broadcasts
    sizes |= others

    def matrices(array: Array, have: Sequence[int], first: list[int], then: list[int]) -> Array:
        order = [have.index(label) for label in (*found.stacked, *first, *then)]
        shape = [sizes[label] for label in found.stacked]
        shape += [prod(sizes[label] for label in some) for some in (first, then)]
        return array.transpose(order).reshape(shape)

    one = matrices(left, a, found.rows, found.summed)
    other = matrices(right, b, found.summed, found.columns)
    labels = [*found.stacked, *found.rows, *found.columns]
    product = np.matmul(one, other).reshape([sizes[label] for label in labels])
    return product.transpose([labels.index(label) for label in output])


#: The label of the axes that have no name.
ELLIPSIS = "..."

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def labels(term: str) -> list[str]:
    """The labels of one term of an equation."""
    if not _TERM.fullmatch(term):
        raise IRError(f'term "{term}" is more than letters and one ellipsis')
    return re.findall(r"\.\.\.|[A-Za-z]", term)


def named(term: Sequence[str], shape: Shape) -> dict[str, list[Size] | None]:
    """The sizes that stand under each label; None under an ellipsis of unknown length."""
    if shape.rank is None:
        return {label: None if label == ELLIPSIS else [ANY] for label in term}
    spread = shape.rank - len(term) + 1
    if spread < 0 or (ELLIPSIS not in term and spread != 1):
        raise IRError(f'term "{"".join(term)}" does not name the {shape.rank} axes of {shape}')
    sizes: dict[str, list[Size] | None] = {}
    rest = list(shape)
    for label in term:
        width = spread if label == ELLIPSIS else 1
        found, rest = rest[:width], rest[width:]
        before = sizes.get(label)
        sizes[label] = found if before is None else [merge(before[0], found[0])]
    return sizes


def together(one: list[Size], other: list[Size]) -> list[Size]:
    """Sizes under the same label of two inputs."""
    longest = max(len(one), len(other))
    padded = [(*[1] * (longest - len(sizes)), *sizes) for sizes in (one, other)]
    return [broadcast_size(*pair) for pair in zip(*padded, strict=True)]


class InverseV14(Op):
    """Inverses of square matrices, or (``adjoint``) their adjugates: inverse times determinant."""

    adjoint: Bool = False

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if not data.type.is_dynamic and not data.type.is_real:
            raise IRError(f"element type {data.type} is not a real one")
        if data.rank is not None:
            if data.rank < 2:
                raise IRError(f"shape {data.shape}: a matrix has two axes at least")
            rows, columns = data.shape[-2:]
            if not isinstance(rows, Dim) and not isinstance(columns, Dim) and rows != columns:
                raise IRError(f"a matrix of {rows} by {columns} is not square")
        return (Tensor(data.type, data.shape),)

    @quiet
    def run(self, data: Array) -> tuple[Array, ...]:
        # Copies of their own for the determinants, for LAPACK, and for its answer.
        require(5 * data.size * max(data.itemsize, 4))
        matrices = widened(data)
        # Not by the determinant, which may be too small for a number though there is an inverse.
        singular = np.linalg.slogdet(matrices).sign == 0
        # LAPACK refuses all matrices where one is singular.
        ones = np.eye(data.shape[-1], dtype=matrices.dtype)
        inverses = np.linalg.inv(np.where(singular[..., None, None], ones, matrices))
        inverses[singular] = np.nan
        if self.adjoint:
            inverses = inverses * np.linalg.det(matrices)[..., None, None]
        return (narrowed(inverses, data.dtype),)


class GroupedMatMulV17(Op):
    """Groups of rows, each times a matrix of its own; ``offsets`` are the groups' ends.

    OpenVINO takes ``mat_b`` as (group, columns, inner), not as the specification has it.
    """

    def infer(
        self, mat_a: Tensor, mat_b: Tensor, offsets: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        kind = mat_a.type.merge(mat_b.type)
        if offsets is not None:
            element_type(offsets, ElementType.I32, ElementType.I64)
        return (Tensor(kind, self.product(mat_a.shape, mat_b.shape, offsets)),)

    def product(self, a: Shape, b: Shape, offsets: Tensor | None) -> Shape:
        """Shape of the output."""
        if a.rank is None or b.rank is None:
            return Shape.UNKNOWN
        if a.rank not in (2, 3) or b.rank != 3:
            raise IRError(f"shapes {a} and {b}: the first has 2 or 3 axes, the second 3")
        groups, columns, inner = b
        try:
            merge(a[-1], inner)
        except IRError:
            raise IRError(f"shapes {a} and {b}: inner sizes {a[-1]} and {inner} differ") from None
        if a.rank == 3:
            return Shape((merge(a[0], groups), a[1], columns))
        if offsets is None:
            raise IRError("rows that belong to groups need the groups' ends as third input")
        if offsets.rank not in (None, 1):
            raise IRError(f"the groups' ends have {offsets.rank} axes, they are a list")
        return Shape((a[0], columns))

    @quiet
    def run(self, mat_a: Array, mat_b: Array, offsets: Array | None = None) -> tuple[Array, ...]:
        left, right = widened(mat_a), widened(mat_b).swapaxes(-1, -2)
        if offsets is None or mat_a.ndim == 3:
            return (narrowed(np.matmul(left, right), mat_a.dtype),)
        result = np.zeros((len(left), right.shape[-1]), left.dtype)
        ends = [int(end) for end in offsets]
        for start, end, matrix in zip([0, *ends], ends, right, strict=False):
            result[start:end] = left[start:end] @ matrix
        return (narrowed(result, mat_a.dtype),)


def usual_scale(depth: int) -> float:
    """What scores of heads with so many numbers are multiplied by, unless one says otherwise."""
    return 1 / sqrt(depth) if depth else 1.0  # scores of no numbers are zero by any scale
