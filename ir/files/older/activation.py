"""Functions of one element: activations and mathematics."""

from __future__ import annotations

from ....schemas import IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .table import Made, converts, find

#: Old types that an operation computes element by element, with its name and opset.
SAME = {
    "Sigmoid": ("Sigmoid", "opset1"),
    "Logistic": ("Sigmoid", "opset1"),
    "TanH": ("Tanh", "opset1"),
    "Abs": ("Abs", "opset1"),
    "Acos": ("Acos", "opset1"),
    "Acosh": ("Acosh", "opset3"),
    "Asin": ("Asin", "opset1"),
    "Asinh": ("Asinh", "opset3"),
    "Atan": ("Atan", "opset1"),
    "Atanh": ("Atanh", "opset3"),
    "Ceil": ("Ceiling", "opset1"),
    "Ceiling": ("Ceiling", "opset1"),
    "Cos": ("Cos", "opset1"),
    "Cosh": ("Cosh", "opset1"),
    "Erf": ("Erf", "opset1"),
    "Exp": ("Exp", "opset1"),
    "Floor": ("Floor", "opset1"),
    "Log": ("Log", "opset1"),
    "Neg": ("Negative", "opset1"),
    "Sign": ("Sign", "opset1"),
    "Sin": ("Sin", "opset1"),
    "Sinh": ("Sinh", "opset1"),
    "Sqrt": ("Sqrt", "opset1"),
    "Tan": ("Tan", "opset1"),
    "Softplus": ("SoftPlus", "opset4"),
    "Softsign": ("SoftSign", "opset9"),
    "Mish": ("Mish", "opset4"),
    "HSwish": ("HSwish", "opset4"),
}  # fmt: skip

#: What Activation calls the functions that have a layer type of another name.
ACTIVATIONS = {"not": "LogicalNot", "ceiling": "Ceil", "negative": "Neg"}


def apply(old: Old, kind: str, one: Output) -> Output:
    """One of the plain functions."""
    name, opset = SAME[kind]
    return old.add(name, opset, [one])


def _enter(kind: str, name: str, opset: str) -> None:
    """An entry of the table of plain functions."""

    @converts(kind, becomes=f"{name}-{opset.removeprefix('opset')}", idle="alpha beta gamma")
    def plain(old: Old) -> Made:
        """The same function of each element."""
        return old.add(name, opset, [old.reals(0)])


for _kind, (_name, _opset) in SAME.items():
    _enter(_kind, _name, _opset)


@converts("Activation", "type", becomes="what_type_names")
def activation(old: Old) -> Made:
    """The layer type that ``type`` names, letter case free, with its attributes beside it."""
    name = old.text("type").lower()
    if name == "identity":
        return old[0]
    if name == "not":
        return _logical_not(old)
    entry = find(ACTIVATIONS.get(name, name))
    if entry is None or entry.convert.__module__ != __name__ or entry.type == "Activation":
        raise NoCounterpartError(f'no operation stands for the activation "{name[:60]}"')
    inner = Old(old.layer, entry, old.scene, old.inputs)
    made = entry.convert(inner)
    old.made += inner.made
    old.entry = entry
    return made


@converts("LogicalNot Not", becomes="LogicalNot-1")
def _logical_not(old: Old) -> Made:
    """1 where the input is 0."""
    from ....schemas import ElementType

    truth = old.cast(old[0], ElementType.BOOLEAN)
    return old.add("LogicalNot", "opset1", [truth])


@converts("Swish", "alpha=1", becomes="Swish-4")
def swish(old: Old) -> Made:
    """X sigmoid(alpha x)."""
    alpha = old.constant(old.real("alpha"))
    return old.add("Swish", "opset4", [old.reals(0), alpha])


@converts("GELU", becomes="Gelu-7")
def gelu(old: Old) -> Made:
    """By the error function, as the operation was defined."""
    return old.add("Gelu", "opset7", [old.reals(0)], approximation_mode="ERF")


@converts("ReLU", "negative_slope=0", becomes="ReLU-1 PReLU-1", idle="engine")
def relu(old: Old) -> Made:
    """PReLU with one slope, where there is one."""
    slope = old.real("negative_slope")
    if slope == 0:
        return old.add("ReLU", "opset1", [old.reals(0)])
    return old.add("PReLU", "opset1", [old.reals(0), old.constant([slope])])


@converts("ReLU6", "n=6", becomes="Clamp-1")
def relu6(old: Old) -> Made:
    """Between 0 and n."""
    return old.add("Clamp", "opset1", [old.reals(0)], min=0.0, max=old.real("n"))


@converts("PReLU", "channel_shared=0", becomes="PReLU-1", idle="filler_type filler_value min max")
def prelu(old: Old) -> Made:
    """Blob ``weights``: a slope for each channel, or one; or a second input."""
    if len(old) > 1:
        return old.add("PReLU", "opset1", [old.reals(0), old.reals(1)])
    count = old.count("weights")
    if count is None:
        raise IRError("PReLU has neither weights nor a second input")
    channels = old.dims(least=2)[1]
    if old.flag("channel_shared"):
        count = 1
    if count not in (1, channels):
        raise IRError(f"weights has {count} slopes, the input has {channels} channels")
    return old.add("PReLU", "opset1", [old.reals(0), old.weights("weights", (count,))])


@converts("Clamp", "min max", becomes="Clamp-1")
def clamp(old: Old) -> Made:
    """Between the two."""
    low, high = old.real("min"), old.real("max")
    return old.add("Clamp", "opset1", [old.reals(0)], min=low, max=high)


@converts("ELU", "alpha=1", becomes="Elu-1")
def elu(old: Old) -> Made:
    """The same function."""
    return old.add("Elu", "opset1", [old.reals(0)], alpha=old.real("alpha"))


@converts("HardSigmoid", "alpha=0 beta=0", becomes="HardSigmoid-1", idle="gamma")
def hard_sigmoid(old: Old) -> Made:
    """The old CPU took 0 for "not given": alpha 0.2, beta 0.5."""
    alpha, beta = old.real("alpha") or 0.2, old.real("beta") or 0.5
    parameters = [old.constant(alpha), old.constant(beta)]
    return old.add("HardSigmoid", "opset1", [old.reals(0), *parameters])


@converts("Selu", "alpha=0 gamma=0", becomes="Selu-1", idle="beta")
def selu(old: Old) -> Made:
    """The old CPU took 0 for "not given": alpha 1.67326, gamma 1.0507."""
    alpha, gamma = old.real("alpha") or 1.67326, old.real("gamma") or 1.0507
    parameters = [old.constant(alpha), old.constant(gamma)]
    return old.add("Selu", "opset1", [old.reals(0), *parameters])


@converts("Reciprocal", becomes="Power-1", idle="alpha beta gamma")
def reciprocal(old: Old) -> Made:
    """To the power of -1."""
    return old.add("Power", "opset1", [old.reals(0), old.constant(-1.0)])


@converts("SoftMax", "axis=1", becomes="SoftMax-8")
def softmax(old: Old) -> Made:
    """Along an axis; version 8 counts negative ones from the end."""
    return old.add("SoftMax", "opset8", [old.reals(0)], axis=old.integer("axis"))


@converts("LogSoftmax", "axis=-1", becomes="LogSoftmax-5")
def log_softmax(old: Old) -> Made:
    """Along an axis; the last where the file does not say."""
    return old.add("LogSoftmax", "opset5", [old.reals(0)], axis=old.integer("axis"))
