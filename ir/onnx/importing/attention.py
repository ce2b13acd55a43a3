"""What language models add: rotary embeddings."""

from __future__ import annotations

from ....schemas import UnsupportedError
from ...document import Output
from .node import Made, Node, Number, converts


@converts("RotaryEmbedding")
def rotary_embedding(node: Node) -> Made:
    """Pairs of elements turned by the angles of their places."""
    x, cos, sin = node[0], node[1], node[2]
    rank, heads = node.rank(), node.integer("num_heads", 0)
    if rank == 3:
        if not heads:
            raise UnsupportedError("num_heads is needed where the input has 3 axes")
        # batch, sequence, heads x size: as batch, heads, sequence, size
        x = node.add("Reshape-1", x, node.ints64([0, 0, heads, -1]), special_zero=True)
        x = node.transpose(x, [0, 2, 1, 3])
    if node.get(3) is not None:
        cos, sin = (node.add("Gather-8", one, node[3], node.ints64(0)) for one in (cos, sin))
    size = node.size(x, 3)
    turned: Number = node.integer("rotary_embedding_dim", 0) or size
    rest = None if turned is size else node.cut(x, turned, size, 3)
    part = x if rest is None else node.cut(x, 0, turned, 3)
    half = node.calculate("Divide-1", turned, 2)
    # One angle for each pair, the same in every head.
    cos, sin = (node.unsqueeze(node.cut(one, 0, half, 2), [1]) for one in (cos, sin))
    interleaved = node.flag("interleaved")
    if interleaved:
        first = node.cut(part, 0, turned, 3, 2)
        second = node.cut(part, 1, turned, 3, 2)
    else:
        first, second = node.cut(part, 0, half, 3), node.cut(part, half, turned, 3)

    def times(a: Output, b: Output) -> Output:
        return node.add("Multiply-1", a, b)

    real = node.add("Subtract-1", times(cos, first), times(sin, second))
    other = node.add("Add-1", times(sin, first), times(cos, second))
    if interleaved:
        pairs = node.add("Concat-1", node.unsqueeze(real, [4]), node.unsqueeze(other, [4]), axis=4)
        made = node.add("Reshape-1", pairs, node.shape(part), special_zero=False)
    else:
        made = node.add("Concat-1", real, other, axis=3)
    if rest is not None:
        made = node.add("Concat-1", made, rest, axis=3)
    if rank == 3:
        made = node.transpose(made, [0, 2, 1, 3])
        made = node.add("Reshape-1", made, node.ints64([0, 0, -1]), special_zero=True)
    return made
