"""Tensors out of a few numbers: ranges, unit matrices, random values.

Specification pages: Range-1, -4; Eye-9; RandomUniform-8; Multinomial-13.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite, prod
from typing import Any, ClassVar, Literal

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Int, Type
from ..schemas.shapes import limits
from .axes import as_size
from .base import Op, element_type, index_type
from .budget import require, steps
from .shape import integral
from .value_bounds import ends

#: The types of random values.
RANDOM = (
    ElementType.I32, ElementType.I64, ElementType.F16, ElementType.BF16, ElementType.F32,
    ElementType.F64,
)  # fmt: skip


class Range(Op):
    """Numbers from ``start`` on, ``step`` apart, that do not reach ``stop``."""

    def ranged(self, kind: ElementType, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
        """The output, of this element type."""
        given = {"start": start, "stop": stop, "step": step}
        for name, tensor in given.items():
            if tensor.rank not in (None, 0):
                raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it is one number")
            if tensor.value is not None and not isfinite(float(tensor.value)):
                raise IRError(f"{name} is {tensor.value}, it has to be finite")
        if step.value is not None and self.needs_step() and float(step.value) == 0:
            raise IRError("step is 0, the range has no end")
        known = [float(t.value) for t in given.values() if t.value is not None]
        if len(known) < len(given):
            return Tensor(kind, Shape([_named_count(start, stop, step)]))
        return Tensor(kind, Shape([count(*known, whole=kind.is_integral)]))

    def needs_step(self) -> bool:
        """Whether a step of 0 is refused even where nothing lies between the ends."""
        return True

    def made(self, start: Array, stop: Array, step: Array, kind: ElementType) -> Array:
        """The numbers."""
        size = count(float(start), float(stop), float(step), whole=kind.is_integral)
        if kind.is_integral:
            return _whole_numbers(int(start), int(step), size, kind)
        steps = np.arange(size, dtype=np.int64)
        wide = np.float64 if kind is ElementType.F64 else np.float32
        first, apart = (value.astype(kind.dtype).astype(wide) for value in (start, step))
        return np.add(first, np.multiply(steps.astype(wide), apart)).astype(kind.dtype)


class RangeV1(Range):
    """Numbers from ``start`` on, ``step`` apart, in the type of the inputs."""

    until = 3

    def infer(self, start: Tensor, stop: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        kind = start.type.merge(stop.type).merge(step.type)
        if not kind.is_dynamic and not kind.is_numeric:
            raise IRError(f"element type {kind} is not that of numbers")
        return (self.ranged(kind, start, stop, step),)

    def run(self, start: Array, stop: Array, step: Array) -> tuple[Array, ...]:
        return (self.made(start, stop, step, ElementType.of(start.dtype)),)


class RangeV4(Range):
    """Range-1 with a type of its own, to which the inputs are converted first."""

    output_type: Type

    def infer(self, start: Tensor, stop: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        if not self.output_type.is_numeric:
            raise IRError(f"output_type {self.output_type} is not that of numbers")
        for tensor in (start, stop, step):
            if not tensor.type.is_dynamic and not tensor.type.is_numeric:
                raise IRError(f"element type {tensor.type} is not that of numbers")
        return (self.ranged(self.output_type, start, stop, step),)

    def needs_step(self) -> bool:
        return False

    def run(self, start: Array, stop: Array, step: Array) -> tuple[Array, ...]:
        return (self.made(start, stop, step, self.output_type),)


def count(start: float, stop: float, step: float, *, whole: bool) -> int:
    """How many numbers a range has; ``whole``: its ends are cut to whole numbers first.

    With a step of which nothing is left then it has none, as OpenVINO infers.
    """
    if whole:
        if 0 < abs(step) < 1:
            return 0
        start, stop, step = int(start), int(stop), int(step)
    if (step > 0 and start >= stop) or (step < 0 and start <= stop):
        return 0
    if step == 0:
        raise IRError(f"a range from {start} to {stop} with step 0 has no end")
    return ceil(abs(stop - start) / abs(step))


def _whole_numbers(start: int, step: int, size: int, kind: ElementType) -> Array:
    """So many whole numbers; those that the type does not hold go round."""
    stop, (least, most) = start + size * step, ends(kind.dtype)
    wide = kind.bits >= 8  # of fewer NumPy counts none
    if wide and least <= min(start, stop, step) and max(start, stop, step) <= most:
        return np.arange(start, stop, step or 1, dtype=kind.dtype)
    return (start + np.arange(size, dtype=np.int64) * step).astype(kind.dtype)


def _named_count(start: Tensor, stop: Tensor, step: Tensor) -> Size:
    """How many whole numbers lie between named sizes: one less the other.

    From one size to what is so much more it is a number, whatever they are.
    """
    named = start.has_symbols or stop.has_symbols
    if not named or step.value is None or step.value.dtype.kind not in "iu" or not step.value:
        return ANY
    begin, end = start.sizes(), stop.sizes()
    if begin is None or end is None or len(begin) != 1 or len(end) != 1:
        return ANY
    size = end[0] - begin[0]
    if not isinstance(size, Dim):
        return count(0, size, int(step.value), whole=True)
    if int(step.value) != 1 or size.low is None or size.low < 0:
        return ANY
    return Dim(ANY.low, ANY.high, size.symbol)


class EyeV9(Op):
    """Matrices with ones on one diagonal and zeros elsewhere."""

    output_type: Type

    def infer(
        self,
        num_rows: Tensor,
        num_columns: Tensor,
        diagonal_index: Tensor,
        batch_shape: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        for tensor in (num_rows, num_columns, diagonal_index):
            element_type(tensor, ElementType.I32, ElementType.I64)
            if tensor.shape.is_static and tensor.shape not in ((), (1,)):
                raise IRError(f"an input has shape {tensor.shape}, it is one number")
        matrix = [one_size(num_rows), one_size(num_columns)]
        if batch_shape is None:
            return (Tensor(self.output_type, Shape(matrix)),)
        element_type(batch_shape, ElementType.I32, ElementType.I64)
        if batch_shape.rank not in (None, 1):
            raise IRError(f"batch_shape has {batch_shape.rank} axes, it is a list")
        sizes = batch_shape.sizes()
        if sizes is None:
            return (Tensor(self.output_type),)
        return (Tensor(self.output_type, Shape([*map(as_size, sizes), *matrix])),)

    def run(
        self,
        num_rows: Array,
        num_columns: Array,
        diagonal_index: Array,
        batch_shape: Array | None = None,
    ) -> tuple[Array, ...]:
        rows, columns, diagonal = (
            int(given.reshape(())) for given in (num_rows, num_columns, diagonal_index)
        )
        matrix = np.eye(rows, columns, diagonal).astype(self.output_type.dtype)
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        return (np.broadcast_to(matrix, (*batch, rows, columns)).copy(),)


#: Blocks of random numbers that are made at once.
PART = 1 << 13


class RandomUniformV8(Op):
    """Random values between two; the same ones for the same seeds, as of TensorFlow or PyTorch."""

    is_random: ClassVar[bool] = True

    output_type: Type
    op_seed: Int = 0
    global_seed: Int = 0
    alignment: Literal["tensorflow", "pytorch"] = "tensorflow"

    def infer(self, shape: Tensor, minval: Tensor, maxval: Tensor) -> tuple[Tensor, ...]:
        element_type(Tensor(self.output_type), *RANDOM)
        element_type(shape, ElementType.I32, ElementType.I64)
        if shape.rank not in (None, 1):
            raise IRError(f"the shape has {shape.rank} axes, it is a list")
        for tensor, name in ((minval, "minval"), (maxval, "maxval")):
            element_type(tensor, self.output_type)
            if tensor.shape.is_static and tensor.shape not in ((), (1,)):
                raise IRError(f"{name} has shape {tensor.shape}, it is one number")
        if minval.value is not None and maxval.value is not None:
            low, high = minval.value.item(), maxval.value.item()
            if not low < high:
                raise IRError(f"minval {low} is not below maxval {high}")
        sizes = shape.sizes()
        if sizes is not None:
            return (Tensor(self.output_type, Shape(map(as_size, sizes))),)
        # OpenVINO takes the greatest number of sizes for their number.
        rank = None if shape.rank is None else limits(shape.shape[0])[1]
        return (Tensor(self.output_type, Shape.of_rank(rank)),)

    def run(self, shape: Array, minval: Array, maxval: Array) -> tuple[Array, ...]:
        kind, sizes = self.output_type, shape.tolist()
        low, high = (given.reshape(()).astype(kind.dtype) for given in (minval, maxval))
        size = prod(sizes)
        if self.alignment == "pytorch":
            values = as_pytorch(size, self.global_seed, low, high)
        else:
            values = as_tensorflow(size, self.seed(), self.op_seed, low, high)
        return (values.reshape(sizes).astype(kind.dtype, copy=False),)

    def seed(self) -> int:
        """The first seed; without any seed, another one each time."""
        if self.global_seed or self.op_seed:
            return self.global_seed
        return int(np.random.default_rng().integers(1, 2**31))


class MultinomialV13(Op):
    """Classes drawn by their probabilities, as OpenVINO's CPU draws them."""

    is_random: ClassVar[bool] = True

    convert_type: Type
    with_replacement: Bool
    log_probs: Bool
    global_seed: Int = 0
    op_seed: Int = 0

    def infer(self, probs: Tensor, num_samples: Tensor) -> tuple[Tensor, ...]:
        index_type("convert_type", self.convert_type)
        element_type(probs, ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64)
        integral(num_samples, "num_samples")
        if probs.rank not in (None, 2):
            raise IRError(f"the probabilities have {probs.rank} axes ({probs.shape}), not 2")
        if num_samples.shape.is_static and num_samples.shape not in ((), (1,)):
            raise IRError(f"num_samples has shape {num_samples.shape}, it is one number")
        if probs.rank is None:
            return (Tensor(self.convert_type),)
        return (Tensor(self.convert_type, Shape([probs.shape[0], one_size(num_samples)])),)

    def run(self, probs: Array, num_samples: Array) -> tuple[Array, ...]:
        if not probs.shape[1]:
            raise IRError("the probabilities are of no classes")
        rows, samples = len(probs), max(int(num_samples.reshape(())), 0)
        # Of each class what is reached, before and after, and of each sample its chance.
        require((12 if self.with_replacement else 17) * probs.size + 24 * rows * samples)
        weights = probs.astype(np.float32) if probs.dtype == np.float64 else probs
        if self.log_probs:
            weights = np.exp(weights)
        kind = weights.dtype
        reach = np.add.accumulate(weights, 1, kind)
        whole = reach[:, -1:]
        reach = reach / np.where(whole > 0, whole, 1).astype(kind)
        bits = twister([self.global_seed, self.op_seed], rows * samples)
        chances = (bits.astype(np.float32) / np.float32(2**32 - 1)).astype(kind)
        drawn = np.zeros((rows, samples), self.convert_type.dtype)
        classes = np.arange(weights.shape[1])
        for sample, chance in enumerate(steps(chances.reshape(rows, samples).T)):
            reached = chance[:, None] <= reach
            chosen = reached.argmax(1)[:, None]
            drawn[:, sample] = chosen[:, 0]
            if not self.with_replacement:
                before = np.take_along_axis(reach, np.maximum(chosen - 1, 0), 1)
                part = np.take_along_axis(reach, chosen, 1) - np.where(chosen > 0, before, 0)
                part = np.where(reached.any(1, keepdims=True), part, 0).astype(kind)
                with np.errstate(divide="ignore", invalid="ignore"):
                    reach = np.where(classes >= chosen, reach - part, reach) / (1 - part)
        return (drawn,)


def one_size(tensor: Tensor) -> Size:
    """The size that a tensor of one number holds."""
    sizes = tensor.sizes()
    return ANY if sizes is None else as_size(sizes[0])


def philox(blocks: int, key: int, counter: int) -> Array:
    """Random numbers of 32 bits, four to a block: Philox 4x32 in ten rounds (Salmon et al.)."""
    found = np.empty((blocks, 4), np.uint32)
    # A part at a time stays in the cache.
    for first in steps(range(0, blocks, PART)):
        part = found[first : first + PART]
        part[:] = rounds(np.arange(first, first + len(part), dtype=np.uint64), key, counter)
    return found.ravel()


def rounds(n: Array, key: int, counter: int) -> Array:
    """The blocks of these numbers."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)

    def split(value: int) -> tuple[Any, Any]:
        return np.uint64(value & 0xFFFFFFFF), np.uint64(value >> 32 & 0xFFFFFFFF)

    n_low, n_high = n & low, n >> half
    c_low, c_high = (np.full(len(n), part) for part in split(counter))
    k_low, k_high = split(key)
    for _ in range(10):
        one, other = n_low * np.uint64(0xD2511F53), c_low * np.uint64(0xCD9E8D57)
        n_low, n_high = (other >> half) ^ n_high ^ k_low, other & low
        c_low, c_high = (one >> half) ^ c_high ^ k_high, one & low
        k_low = (k_low + np.uint64(0x9E3779B9)) & low
        k_high = (k_high + np.uint64(0xBB67AE85)) & low
    return np.stack([n_low, n_high, c_low, c_high], -1)


def as_tensorflow(size: int, key: int, counter: int, low: Array, high: Array) -> Array:
    """Random values as of TensorFlow; ``low`` to ``high``, in their type."""
    kind, each = low.dtype, 2 if low.dtype.itemsize == 8 else 1
    bits = philox(-(-size * each // 4), key, counter)[: size * each]
    if each == 2:
        first, second = bits.reshape(-1, 2).astype(np.uint64).T
        if kind.kind == "i":
            return within((second << np.uint64(32)) + first, low, high)
        fraction = ((first & np.uint64(0xFFFFF)) << np.uint64(32)) | second
        unit = (fraction | np.uint64(1023 << 52)).view(np.float64) - 1
        return unit * (high - low) + low
    if kind.kind == "i":
        return within(bits, low, high)
    # The bits become the fraction of a number from 1 to 2.
    width = {"float32": 23, "float16": 10, "bfloat16": 7}[kind.name]
    one = int(np.ones((), kind).view(f"u{kind.itemsize}"))
    patterns = (bits & np.uint32((1 << width) - 1)) | np.uint32(one)
    unit = patterns.astype(f"u{kind.itemsize}").view(kind) - kind.type(1)
    return unit * (high - low) + low


def as_pytorch(size: int, seed: int, low: Array, high: Array) -> Array:
    """Random values as of PyTorch: from the Mersenne Twister MT19937."""
    kind = low.dtype
    far = max(low.item(), high.item()) > 0xFFFFFFFF
    each = 2 if kind == np.float64 or (kind == np.int64 and far) else 1
    twister = np.random.RandomState(seed & 0xFFFFFFFF)
    bits = twister.randint(0, 2**32, size * each, np.uint32)
    if each == 2:
        first, second = bits.reshape(-1, 2).astype(np.uint64).T
        bits = (first << np.uint64(32)) + second
    if kind.kind == "i":
        return within(bits, low, high)
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[kind.name]
    wide = np.dtype(np.float64 if kind == np.float64 else np.float32)
    unit: Array = np.ldexp((bits & bits.dtype.type((1 << digits) - 1)).astype(wide), -digits)
    return (unit * (high - low).astype(wide) + low.astype(wide)).astype(kind)


def twister(seeds: Sequence[int], count: int) -> Array:
    """Numbers of 32 bits from MT19937, seeded as C++ does from several seeds (``seed_seq``).

    Without any seed they are others each time.
    """
    if not any(seeds):
        return np.random.default_rng().integers(0, 2**32, count, np.uint32)
    made = np.random.RandomState()
    state = {"key": np.array(spread(seeds, 624), np.uint32), "pos": 624}
    made.set_state({"bit_generator": "MT19937", "state": state, "has_gauss": 0, "gauss": 0.0})
    return made.randint(0, 2**32, count, np.uint32)


def spread(seeds: Sequence[int], count: int) -> list[int]:
    """Seeds mixed into 623 words or more: ``seed_seq::generate`` of the C++ standard."""
    full, given = 0xFFFFFFFF, len(seeds)
    words = [0x8B8B8B8B] * count
    one = (count - 11) // 2
    other, first = one + 11, max(given + 1, count)
    for step in range(first + count):
        k, near, far = step % count, (step + one) % count, (step + other) % count
        if step < first:
            mixed = words[k] ^ words[near] ^ words[k - 1]
            mixed = 1664525 * (mixed ^ mixed >> 27) & full
            own = given if step == 0 else k + (seeds[step - 1] if step <= given else 0)
            words[near] = words[near] + mixed & full
            words[k] = mixed + own & full
            words[far] = words[far] + words[k] & full
        else:
            mixed = words[k] + words[near] + words[k - 1] & full
            mixed = 1566083941 * (mixed ^ mixed >> 27) & full
            words[near] ^= mixed
            words[k] = mixed - k & full
            words[far] ^= words[k]
    return words


def within(bits: Array, low: Array, high: Array) -> Array:
    """Whole numbers from ``low`` on and below ``high``, by the remainder."""
    span = int(high) - int(low)
    if span <= 0:
        raise IRError(f"minval {low} is not below maxval {high}")
    if span > np.iinfo(bits.dtype).max:
        bits = bits.astype(np.uint64)
    # Added in the type of the ends, which may be wider than the bits; it wraps to what is within.
    return (bits % bits.dtype.type(span)).astype(low.dtype) + low
