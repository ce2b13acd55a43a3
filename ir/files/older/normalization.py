"""Normalisations, and scales and shifts by channel."""

from __future__ import annotations

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import Old
from .table import Made, converts


def by_channel(old: Old, count: int) -> tuple[int, ...]:
    """The shape of one number a channel, or of one for all, that broadcasts onto the input."""
    dims = old.dims(least=1)
    if len(dims) == 1:
        return (count,)
    if len(dims) == 3 and count == dims[2] != dims[1]:
        old.remark(f"{count} numbers for the last axis of {list(dims)}, as there are so many")
        return (1, 1, count)
    if count not in (1, dims[1]):
        raise IRError(f"{count} numbers, the input {list(dims)} has {dims[1]} channels")
    return (1, count, *[1] * (len(dims) - 2))


def _by_channel(old: Old, name: str) -> Output | None:
    count = old.count(name)
    return None if count is None else old.weights(name, by_channel(old, count))


@converts("BatchNormalization", "epsilon", becomes="BatchNormInference-5 Broadcast-1")
def batch_normalization(old: Old) -> Made:
    """Blob ``weights`` is the variance, ``biases`` the mean; there is neither gamma nor beta."""
    channels = (old.dims(least=2)[1],)
    variance, mean = old.weights("weights", channels), old.weights("biases", channels)
    gamma = old.filled(1, ElementType.F32, *channels)
    beta = old.filled(0, ElementType.F32, *channels)
    inputs = [old.reals(0), gamma, beta, mean, variance]
    return old.add("BatchNormInference", "opset5", inputs, epsilon=old.real("epsilon"))


@converts("ScaleShift", "broadcast?", becomes="Multiply-1 Add-1", idle="axis bias_term num_axes")
def scale_shift(old: Old) -> Made:
    """X * weights + biases by channel; either may be missing, a second input may scale."""
    made = old.reals(0)
    scale, shift = _by_channel(old, "weights"), _by_channel(old, "biases")
    if scale is None and len(old) > 1:
        scale = old.reals(1)
        if scale.tensor.rank == 1:
            scale = old.reshape(scale, by_channel(old, old.dims(1)[0]))
    if scale is None and shift is None:
        raise IRError("ScaleShift has neither weights nor biases")
    if scale is not None:
        made = old.add("Multiply", "opset1", [made, scale])
    if shift is not None:
        made = old.add("Add", "opset1", [made, shift])
    return made


@converts(
    "Norm LRN", "alpha beta local-size=0 local_size=0 k=1 region", becomes="LRN-1",
    idle="engine",
)  # fmt: skip
def local_response(old: Old) -> Made:
    """Across channels or, ``region="same"``, within a map; alpha is divided by the window."""
    size = old.integer("local-size", 0) + old.integer("local_size", 0)
    if size < 1:
        raise IRError("local-size is 0, a window has at least 1 place")
    region = old.text("region").lower()
    if region not in ("across", "same"):
        raise IRError(f'region is "{region[:40]}"; known are across, same')
    across = region == "across"
    axes = (1,) if across else tuple(range(2, len(old.dims())))
    return old.add(
        "LRN", "opset1", [old.reals(0), old.indices(*axes)],
        alpha=old.real("alpha"), beta=old.real("beta"), bias=old.real("k"), size=size,
    )  # fmt: skip


@converts("Normalize", "across_spatial=0 channel_shared=0 eps", becomes="NormalizeL2-1 Multiply-1")
def normalize(old: Old) -> Made:
    """X / sqrt(sum of squares + eps), along the channels or all but the batch; then weights."""
    rank = len(old.dims())
    axes = tuple(range(1, rank)) if old.flag("across_spatial") else (1,)
    made = old.add(
        "NormalizeL2", "opset1", [old.reals(0), old.indices(*axes)],
        eps=old.real("eps"), eps_mode="add",
    )  # fmt: skip
    count = old.count("weights")
    if count is None:
        return made
    if old.flag("channel_shared"):
        count = 1
    scale = old.weights("weights", by_channel(old, count))
    return old.add("Multiply", "opset1", [made, scale])


@converts("MVN", "across_channels=0 normalize_variance=1 eps=1e-9", becomes="MVN-1")
def mean_variance(old: Old) -> Made:
    """The same, eps under the root."""
    return old.add(
        "MVN", "opset2", [old.reals(0)],
        across_channels=old.flag("across_channels"),
        normalize_variance=old.flag("normalize_variance"), eps=old.real("eps"),
    )  # fmt: skip


@converts("GRN", "bias=0", becomes="GRN-1")
def grn(old: Old) -> Made:
    """X / sqrt(sum of squares over channels + bias)."""
    return old.add("GRN", "opset1", [old.reals(0)], bias=old.real("bias"))
