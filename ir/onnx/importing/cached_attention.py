"""Attention as ONNX Runtime's tools write it, with keys and values that former calls left.

Queries, keys and values are (batch, heads, places, numbers of a head) in between. What is known of
former calls is answered as ONNX Runtime answers it: keys lie where their calls put them, and a
query sees those up to its own place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from ....schemas import IRError, UnsupportedError
from ....schemas.shapes import same
from ...document import Output
from .attention import heads_apart, heads_together, turned
from .contributed import contributed, plus
from .movement import put_along
from .node import Made, Node, Number
from .normalization import by_mean_square
from .optimized import moved, product

#: What scores are that are not to count.
NEVER = -np.inf


def attended(
    node: Node, parts: Sequence[Output], mask: Output | None, scale: float = 0.0,
    *, cap: float = 0.0, sink: Output | None = None, causal: bool = False,
) -> Output:  # fmt: skip
    """ScaledDotProductAttention-13; where scores have a cap, what it stands for, with that."""
    if cap and sink is not None:
        raise UnsupportedError("scores that have both a cap and a sink are not known here")
    if cap:
        return _capped(node, parts, mask, scale, cap)
    given = list(parts)
    if mask is not None or scale or sink is not None:
        given.append(node.like(0, parts[0]) if mask is None else mask)
    if scale or sink is not None:
        usual = scale or 1 / sqrt(_last(parts[0], "queries"))
        given.append(node.like(usual, parts[0]))
    given += [] if sink is None else [sink]
    return node.add("ScaledDotProductAttention-13", *given, causal=causal)


def _capped(
    node: Node, parts: Sequence[Output], mask: Output | None, scale: float, cap: float
) -> Output:
    query, key, value = parts
    factor = (scale or 1 / sqrt(_last(query, "queries"))) / cap
    scores = node.add("MatMul-1", query, key, transpose_b=True)
    scores = node.add("Tanh-1", node.add("Multiply-1", scores, node.like(factor, scores)))
    scores = node.add("Multiply-1", scores, node.like(cap, scores))
    if mask is not None and mask.tensor.type == "boolean":
        scores = node.add("Select-1", mask, scores, node.like(NEVER, scores))
    elif mask is not None:
        scores = plus(node, scores, mask)
    return node.add("MatMul-1", node.add("SoftMax-8", scores, axis=-1), value)


def _last(x: Output, what: str) -> int:
    """The size of the last axis, which must be known."""
    size = None if x.tensor.rank is None else x.tensor.shape[-1]
    if not isinstance(size, int) or size < 1:
        raise UnsupportedError(f"the size of the last axis of the {what} is not known")
    return size


def seen(
    node: Node, places: Output, keys: Number, window: int = -1, last: Output | None = None
) -> Output:
    """Which keys each query sees, by the queries' places (..., queries, 1).

    Those behind the ``last`` place see what that one does: they are there for others' sake.
    """
    each, until = node.counted(keys), places
    if last is not None:
        until = node.add("Minimum-1", places, last)
    found = node.add("LessEqual-1", each, until)
    if window > 0:
        least = node.add("Subtract-1", places, node.ints64(window))
        if last is not None:
            least = node.add("Minimum-1", least, node.add("Subtract-1", last, node.ints64(1)))
        found = node.add("LogicalAnd-1", found, node.add("Greater-1", each, least))
    return found


def _masked(
    node: Node, mask: Output | None, added: Output | None, query: Output, key: Output
) -> Output | None:
    """What is added to scores, far below zero of keys that a mask hides."""
    if mask is None:
        return added
    rank = mask.tensor.rank
    if rank == 1:
        left_out = _beyond(node, node.convert(mask, "i64"), query, key)
    elif rank in (2, 3):
        left_out = node.add("LessEqual-1", mask, node.like(0, mask))
    else:
        raise UnsupportedError(f"a mask has {rank} axes, 1, 2 or 3 are known here")
    axes = {1: [1, 2], 2: [1, 2], 3: [1]}[rank]
    far, nothing = (node.like(one, query) for one in (node.real("mask_filter_value"), 0))
    # No product: what is far below zero may be without end.
    numbers = node.add("Select-1", node.unsqueeze(left_out, axes), far, nothing)
    return plus(node, numbers, added)


def _beyond(node: Node, ends: Output, query: Output, key: Output) -> Output:
    """Which keys lie behind the end of their image's, (batch, keys), or before a beginning.

    The beginnings may follow the ends. So may what tells how images are packed, three numbers of
    each and two: ONNX Runtime does not look at that here.
    """
    images, lengths = query.tensor.shape[0], ends.tensor.shape[0]
    if isinstance(images, int) and isinstance(lengths, int):
        known = [images, 3 * images + 2]
        if node.kind != "MultiHeadAttention":
            known.insert(1, 2 * images)
        if lengths not in known:
            raise UnsupportedError(
                f"a mask of one axis has {lengths} numbers, of {images} images it has "
                f"{' or '.join(map(str, known))}"
            )
    each = node.unsqueeze(node.counted(node.size(key, 2)), [0])
    if same(images, lengths):
        return node.add("GreaterEqual-1", each, node.unsqueeze(ends, [1]))
    count = node.size(query, 0)
    first = node.unsqueeze(node.cut(ends, 0, count, 0), [1])
    found = node.add("GreaterEqual-1", each, first)
    if node.kind == "MultiHeadAttention":
        return found
    twice = node.calculate("Add-1", count, count)
    zero = node.ints64(0)
    begins = node.add(
        "Concat-1", ends, node.add("Broadcast-1", zero, node.vector([count])), axis=0
    )
    are_there = node.add("Equal-1", node.shape(ends), node.vector([twice]))
    begins = node.add("Select-1", are_there, node.cut(begins, count, twice, 0), zero)
    return node.add("LogicalOr-1", found, node.add("Less-1", each, node.unsqueeze(begins, [1])))


def _answered(
    node: Node,
    parts: Sequence[Output],
    past: Sequence[Output] | None,
    hidden: Output | None,
    added: Output | None,
) -> tuple[Output, Output, Output]:
    """What queries find among keys and values, former ones before the new; and all of these.

    Queries may see no later keys than themselves, if the node says so; the last one sees all, as
    in ONNX Runtime, which counts where there are more keys than queries.
    """
    (query, *new), causal = parts, node.flag("unidirectional")
    alike = same(*(one.tensor.shape[2] for one in (query, new[0])))
    kept = new
    if past is not None:
        pairs = zip(past, new, strict=True)
        kept = [node.add("Concat-1", former, later, axis=2) for former, later in pairs]
    mask = _masked(node, hidden, added, query, kept[0])
    if causal and (past is not None or mask is not None or not alike):
        count, keys = node.size(query, 2), node.size(kept[0], 2)
        before = 0 if past is None else node.size(past[0], 2)
        places = node.unsqueeze(node.counted(count), [1])
        if past is not None:
            places = node.add("Add-1", places, node.vector([before]))
        found = seen(node, places, keys)
        if not alike:
            behind = node.vector([node.calculate("Add-1", before, count)])
            next_one = node.add("Add-1", places, node.ints64(1))
            found = node.add("LogicalOr-1", found, node.add("Equal-1", next_one, behind))
        if mask is not None:
            found = node.add("Select-1", found, mask, node.like(NEVER, query))
        mask, causal = found, False
    made = attended(node, [query, *kept], mask, node.real("scale"), causal=causal)
    return heads_together(node, made), kept[0], kept[1]


@contributed(
    "Attention", (2, 7), 2, num_heads=int, unidirectional=0, qkv_hidden_sizes=list,
    past_present_share_buffer=0, do_rotary=0, rotary_embedding_dim=0, scale=0.0,
    mask_filter_value=-10000.0,
)  # fmt: skip
def attention(node: Node) -> Made:
    """Queries, keys and values by one product, then ScaledDotProductAttention-13."""
    if node.get(6) is not None:
        raise UnsupportedError("memory that former keys share with later ones is not known here")
    joined = plus(node, node.add("MatMul-1", node[0], node[1]), node.get(2))
    return _of_joined(node, joined, node.integers("qkv_hidden_sizes"), (4, 3, 5))


@contributed(
    "QAttention", (5, 9), 2, num_heads=int, unidirectional=0, past_present_share_buffer=0,
    do_rotary=0, scale=0.0, mask_filter_value=-10000.0,
)  # fmt: skip
def q_attention(node: Node) -> Made:
    """As Attention, of what integers stand for."""
    rows, columns = moved(node, node[0], node.get(6)), moved(node, node[1], node.get(7))
    scale = node.add("Multiply-1", node[3], node[4])
    joined = node.add("Multiply-1", product(node, rows, columns), scale)
    return _of_joined(node, plus(node, joined, node[2]), [], (8, 5, -1))


def _of_joined(
    node: Node, joined: Output, sizes: Sequence[int], places: tuple[int, int, int]
) -> Made:
    """Attention of queries, keys and values that lie side by side, and what it keeps of them.

    Which inputs former keys, masks, and what is added to scores are: ``places`` tell.
    """
    former, hidden, added = (node.get(place) if place > 0 else None for place in places)
    if node.flag("past_present_share_buffer"):
        raise UnsupportedError("memory that former keys share with later ones is not known here")
    if node.flag("do_rotary"):
        raise UnsupportedError("do_rotary is not known to this importer")
    columns = node[1].tensor.shape[1] if node[1].tensor.rank == 2 else None
    if not sizes and isinstance(columns, int):
        sizes = [columns // 3] * 3
    heads = node.integer("num_heads")
    if len(sizes) != 3 or heads < 1 or any(size % heads for size in sizes):
        raise IRError(f"{heads} heads do not share the sizes {sizes} of queries, keys and values")
    parts, start = [], 0
    for size in sizes:
        parts.append(heads_apart(node, node.cut(joined, start, start + size, 2), heads))
        start += size
    past = None
    if former is not None:
        past = [node.squeeze(node.cut(former, i, i + 1, 0), [0]) for i in range(2)]
    made, *kept = _answered(node, parts, past, hidden, added)
    if not node.wants(1):
        return made
    return [made, node.add("Concat-1", *(node.unsqueeze(one, [0]) for one in kept), axis=0)]


@contributed(
    "MultiHeadAttention", (1, 10), 4, num_heads=int, scale=0.0, mask_filter_value=-10000.0,
    unidirectional=0,
)  # fmt: skip
def multi_head_attention(node: Node) -> Made:
    """ScaledDotProductAttention-13 of queries, keys and values whose heads lie side by side."""
    if node.get(8) is not None or node.get(9) is not None:
        raise UnsupportedError("memory that former keys share with later ones is not known here")
    if node.wants(3):
        raise UnsupportedError("scores are not handed out")
    parts = _given(node, node.integer("num_heads"))
    if (node.get(6) is None) != (node.get(7) is None):
        raise IRError("of keys and values of former calls (inputs 6 and 7) one is missing")
    past = None if node.get(6) is None else [node[6], node[7]]
    return _answered(node, parts, past, node.get(4), node.get(5))


def _given(node: Node, heads: int) -> list[Output]:
    """Queries, keys and values, however they are packed, and with their bias."""
    ranks = [node.rank(index) for index in range(3) if node.get(index) is not None]
    bias = node.get(3)
    if ranks in ([5], [3, 5]):
        if bias is not None:
            raise UnsupportedError("a bias of what is packed (input 3) is not known here")
        packed = node[len(ranks) - 1]
        found = [] if len(ranks) == 1 else [heads_apart(node, node[0], heads)]
        for number in range(3 - len(found)):
            one = node.squeeze(node.cut(packed, number, number + 1, 3), [3])
            found.append(node.transpose(one, [0, 2, 1, 3]))
        return found
    if ranks == [3, 4, 4]:  # keys and values that were made before, such as an encoder's
        query = node[0] if bias is None else plus(
            node, node[0], node.cut(bias, 0, node.size(node[0], 2), 0)
        )  # fmt: skip
        return [heads_apart(node, query, heads), node[1], node[2]]
    if ranks != [3, 3, 3]:
        raise UnsupportedError(f"queries, keys and values of {ranks} axes are not known here")
    parts, start = [node[index] for index in range(3)], 0
    if bias is not None:
        for index, part in enumerate(parts):
            size = _last(part, f"input {index}")
            parts[index] = plus(node, part, node.cut(bias, start, start + size, 0))
            start += size
    return [heads_apart(node, part, heads) for part in parts]


@contributed(
    "RotaryEmbedding", (4, 4), interleaved=0, is_packed_batching=0, num_heads=0,
    rotary_embedding_dim=0, scale=1.0,
)  # fmt: skip
def rotary_embedding(node: Node) -> Made:
    """Pairs of elements turned by the angles of their places: of each, or of the first one."""
    x, heads, some = node[0], node.integer("num_heads"), node.integer("rotary_embedding_dim")
    rank = node.rank()
    if node.flag("is_packed_batching"):
        raise UnsupportedError("is_packed_batching is not known to this importer")
    if rank == 3:
        heads = heads or _last(x, "input") // (2 * _last(node[2], "angles"))
        x = heads_apart(node, x, heads)
    places = node.convert(node[1], "i64")
    if places.tensor.rank == 1:  # that of the first one
        places = node.add("Add-1", places, node.counted(node.size(x, 2)))
        places = node.unsqueeze(places, [0])
    elif places.tensor.rank != 2:
        raise UnsupportedError("whether there is a place for each or for the first is not known")
    made = _turned(node, x, places, (2, 3), some, interleaved=node.flag("interleaved"))
    return heads_together(node, made) if rank == 3 else made


def _turned(
    node: Node, x: Output, places: Output, tables: tuple[int, int], some: int, *, interleaved: bool
) -> Output:
    """Pairs turned by angles that are found in tables, two inputs, by places."""
    zero = node.ints64(0)
    cos, sin = (node.add("Gather-8", node[table], places, zero) for table in tables)
    return turned(node, x, cos, sin, some, interleaved=interleaved)


@contributed(
    "GroupQueryAttention", (7, 16), 4, num_heads=int, kv_num_heads=int, scale=0.0, softcap=0.0,
    do_rotary=0, rotary_interleaved=0, local_window_size=-1, smooth_softmax=0, causal=1,
    qk_output=0, sliding_window_cache=0, kv_cache_bit_width=0, k_quant_type="NONE",
    v_quant_type="NONE", qk_norm_epsilon=1e-6,
)  # fmt: skip
def group_query_attention(node: Node) -> Made:
    """ScaledDotProductAttention-13, behind ScatterElementsUpdate-12 of the keys and values."""
    _check_known(node)
    heads, groups = node.integer("num_heads"), node.integer("kv_num_heads")
    if groups < 1 or heads < 1 or heads % groups:
        raise IRError(f"{heads} heads of queries do not share {groups} of keys")
    query, key, value = _grouped(node, heads, groups)
    if node.get(14) is not None:
        eps = node.real("qk_norm_epsilon")
        query = by_mean_square(node, query, node[14], eps)
        key = by_mean_square(node, key, node[15], eps)
    count = node.size(query, 2)
    total = node.reshape(node.convert(node[6], "i64"), [1])
    is_first = node.add("Equal-1", total, node.vector([count]))
    last = node.reshape(node.convert(node[5], "i64"), [-1, 1])
    former = node.add("Subtract-1", node.add("Add-1", last, node.ints64(1)), node.vector([count]))
    begins = node.add("Select-1", is_first, node.ints64(0), former)
    places = node.add("Add-1", begins, node.counted(count))  # (batch, queries)
    if node.flag("do_rotary"):
        angles = places
        if node.get(9) is not None:
            # Of a first call, the place of the first one tells those of all.
            given = node.convert(node[9], "i64")
            start = node.cut(node.cut(given, 0, 1, 0), 0, 1, 1)
            usual = node.add("Add-1", start, node.counted(count))
            angles = node.add("Select-1", is_first, usual, given)
        some = 2 * _last(node[7], "angles")
        words = {"interleaved": node.flag("rotary_interleaved")}
        query, key = (_turned(node, x, angles, (7, 8), some, **words) for x in (query, key))
    keys, values = (
        _kept(node, node.get(index), new, places, total) for index, new in ((3, key), (4, value))
    )
    end, window = node.unsqueeze(last, [1, 2]), node.integer("local_window_size", -1)
    if node.flag("causal", True):
        mask = seen(node, node.unsqueeze(places, [1, 3]), total, window, end)
    else:
        mask = seen(node, end, total)
    if node.get(10) is not None:
        mask = node.add("Select-1", mask, node[10], node.like(NEVER, query))
    parts = [query, *(_repeated(node, node.cut(x, 0, total, 2), heads // groups)
                      for x in (keys, values))]  # fmt: skip
    made = attended(
        node, parts, mask, node.real("scale"), cap=node.real("softcap"), sink=_sink(node, query)
    )
    return [heads_together(node, made), keys, values]


def _check_known(node: Node) -> None:
    """Refuse what changes answers, and has no counterpart here."""
    bits, window = node.integer("kv_cache_bit_width"), node.flag("sliding_window_cache")
    kinds = {node.text("k_quant_type", "NONE"), node.text("v_quant_type", "NONE")}
    if bits or kinds != {"NONE"} or node.get(12) is not None or node.get(13) is not None:
        raise UnsupportedError("keys and values that are kept as integers are not known here")
    if window:
        raise UnsupportedError("sliding_window_cache is not known to this importer")
    if node.wants(3):
        raise UnsupportedError("scores are not handed out")
    for pair, what in (((3, 4), "keys and values of former calls"), ((14, 15), "the norms")):
        if len([index for index in pair if node.get(index) is not None]) == 1:
            raise IRError(f"of {what} (inputs {pair[0]} and {pair[1]}) one is missing")


def _grouped(node: Node, heads: int, groups: int) -> list[Output]:
    """Queries, keys and values: three inputs, or side by side in one."""
    query, sizes = node[0], [heads, groups, groups]
    if node.get(1) is not None:
        return [heads_apart(node, node[index], many) for index, many in enumerate(sizes)]
    whole = _last(query, "input")
    if whole % sum(sizes):
        raise IRError(f"{sum(sizes)} heads of queries, keys and values do not share {whole}")
    found, start, each = [], 0, whole // sum(sizes)
    for many in sizes:
        part = node.cut(query, start, start + many * each, 2)
        found.append(heads_apart(node, part, many))
        start += many * each
    return found


def _kept(node: Node, past: Output | None, new: Output, places: Output, total: Output) -> Output:
    """What former calls left, longer if need be, with what is new in its places."""
    if past is None:
        return new
    held = node.vector([node.size(past, 2)])
    more = node.add("Subtract-1", node.add("Maximum-1", held, total), held)
    sizes = [node.size(past, axis) for axis in range(4)]
    sizes[2] = more
    nothing = node.add("Broadcast-3", node.like(0, past), node.vector(sizes))
    longer = node.add("Concat-1", past, nothing, axis=2)
    return put_along(node, longer, new, node.unsqueeze(places, [1, 3]), 2)


def _repeated(node: Node, x: Output, times: int) -> Output:
    """Each head of keys or values as often as queries share it."""
    if times == 1:
        return x
    sizes = [node.size(x, axis) for axis in range(4)]
    groups, *rest = sizes[1:]
    wide = node.add(
        "Broadcast-3", node.unsqueeze(x, [2]), node.vector([sizes[0], groups, times, *rest])
    )
    heads = node.calculate("Multiply-1", groups, times)
    return node.reshape(wide, node.vector([sizes[0], heads, *rest]))


def _sink(node: Node, query: Output) -> Output | None:
    """A score of each head, for nothing: its weight is taken from those of the keys."""
    if node.get(11) is not None:
        return node.reshape(node[11], [1, -1, 1, 1])
    if not node.flag("smooth_softmax"):
        return None
    heads = node.size(query, 1)
    return node.add("Broadcast-3", node.like(0, query), node.vector([1, heads, 1, 1]))
