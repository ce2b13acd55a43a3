"""f(x, Reshape(y)) → f(x, y), where the Reshape puts ones before y, as f does itself."""

from __future__ import annotations

from ...document import Layer
from .axis_groups import without_ones
from .patterns import BINARY, broadcasts, same_shape
from .reshape_chains import RESHAPES, keeps_order
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    ranks = [net.tensor(one).rank or 0 for one in inputs]
    if not broadcasts(layer) or len(inputs) < _LEAST:
        return False
    for place, one in enumerate(inputs):
        source = _source(net, one)
        rest = max(ranks[:place] + ranks[place + 1 :])
        if source is None or (ranks[place] > rest):
            continue
        inputs[place] = source
        return net.replace((layer, 0), net.copy(layer, inputs))
    return False


def _source(net: Rewriter, value: Value) -> Value | None:
    """What has the sizes of a value from the first on that is not one."""
    if value[0].type not in RESHAPES or not net.is_private(value):
        return None
    if not keeps_order(net, value[0]):
        return None
    source = net.inputs(value[0])[0]
    given, made = net.tensor(source).shape, net.tensor(value).shape
    if given.rank is None or made.rank is None or given.rank > made.rank:
        return None
    return source if same_shape(without_ones(given.sizes), without_ones(made.sizes)) else None


#: Inputs of which one is broadcast beside another.
_LEAST = 2

RULE = Rule("leading-ones", (*sorted(BINARY), "Select"), _apply, stage=1)
