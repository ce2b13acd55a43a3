"""What language models add: rotary embeddings."""

from __future__ import annotations

from ....schemas import IRError, UnsupportedError
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
        x = heads_apart(node, x, heads)
    if node.get(3) is not None:
        cos, sin = (node.add("Gather-8", one, node[3], node.ints64(0)) for one in (cos, sin))
    some, interleaved = node.integer("rotary_embedding_dim", 0), node.flag("interleaved")
    made = turned(node, x, cos, sin, some, interleaved=interleaved)
    return heads_together(node, made) if rank == 3 else made


def heads_apart(node: Node, x: Output, heads: int) -> Output:
    """Numbers of heads that lie side by side, as (batch, heads, places, numbers of a head)."""
    wide = x.tensor.shape[2] if x.tensor.rank == 3 else None
    if isinstance(wide, int) and (heads < 1 or wide % heads):
        raise IRError(f"{heads} heads do not share {wide} numbers")
    # Where there are no places, -1 would stand for any number.
    each = wide // heads if isinstance(wide, int) else -1
    apart = node.add("Reshape-1", x, node.ints64([0, 0, heads, each]), special_zero=True)
    return node.transpose(apart, [0, 2, 1, 3])


def heads_together(node: Node, x: Output) -> Output:
    """What ``heads_apart`` has put apart."""
    heads, each = node.size(x, 1), node.size(x, 3)
    wide = -1 if isinstance(heads, Output) or isinstance(each, Output) else heads * each
    x = node.transpose(x, [0, 2, 1, 3])
    return node.add("Reshape-1", x, node.ints64([0, 0, wide]), special_zero=True)


def turned(
    node: Node, x: Output, cos: Output, sin: Output, some: int, *, interleaved: bool
) -> Output:
    """Pairs of heads' first numbers (batch, heads, places, numbers) turned, all where not some.

    Of each place there is an angle for each pair, the same in every head.
    """
    size = node.size(x, 3)
    width: Number = some or size
    rest = None if width is size else node.cut(x, width, size, 3)
    part = x if rest is None else node.cut(x, 0, width, 3)
    half = node.calculate("Divide-1", width, 2)
    cos, sin = (node.unsqueeze(node.cut(one, 0, half, 2), [1]) for one in (cos, sin))
    if interleaved:
        first = node.cut(part, 0, width, 3, 2)
        second = node.cut(part, 1, width, 3, 2)
    else:
        first, second = node.cut(part, 0, half, 3), node.cut(part, half, width, 3)

    def times(a: Output, b: Output) -> Output:
        return node.add("Multiply-1", a, b)

    real = node.add("Subtract-1", times(cos, first), times(sin, second))
    other = node.add("Add-1", times(sin, first), times(cos, second))
    if interleaved:
        pairs = node.add("Concat-1", node.unsqueeze(real, [4]), node.unsqueeze(other, [4]), axis=4)
        made = node.add("Reshape-1", pairs, node.shape(part), special_zero=False)
    else:
        made = node.add("Concat-1", real, other, axis=3)
    return made if rest is None else node.add("Concat-1", made, rest, axis=3)
