"""Sequences: which tensors they hold is followed while converting, so that none is left in IR."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ....layers.movement import check_pieces
from ....schemas import IRError, Shape, UnsupportedError
from ....schemas.shapes import compatible, same
from ...document import Output
from .listed import Cut, Growing, Listed
from .node import Made, Node, converts
from .pooling import scalar


def sequence(node: Node, index: int = 0) -> Listed:
    """An input that must be a sequence."""
    found = node[index]
    if not isinstance(found, Listed):
        raise IRError(f"input {index} is a tensor, {node.kind} takes a sequence")
    return found


def stacked(node: Node, given: Listed) -> Output:
    """All tensors of a sequence along a new first axis; they have to be of one shape."""
    if given.stacked is not None:
        return given.stacked
    if not given.items:
        raise UnsupportedError("the sequence is empty")
    return piled(node, [node.unsqueeze(one, [0]) for one in given.items])


def piled(node: Node, parts: list[Output]) -> Output:
    """Tensors one behind the other along the first axis; on others their sizes have to agree."""
    shapes = [Shape(part.tensor.shape.sizes[1:]) for part in parts if part.tensor.rank is not None]
    for one, shape in combinations(dict.fromkeys(shapes), 2):
        if shape.rank != one.rank or not all(map(compatible, shape, one)):
            raise UnsupportedError(
                f"a sequence has tensors of the shapes [{one}] and [{shape}], and it is not "
                "known which of them is read: IR needs them as one",
            )
    return joined(node, parts, 0)


def _parts(node: Node, items: list[Output]) -> Cut | None:
    """Tensors as parts of one along an axis, where it is the only one on which they may differ."""
    shapes = [item.tensor.shape for item in items]
    if not shapes or any(not shape.rank or shape.rank != shapes[0].rank for shape in shapes):
        return None
    columns = list(enumerate(zip(*shapes, strict=True)))
    axes = [axis for axis, sizes in columns if not all(same(sizes[0], one) for one in sizes)]
    surely = [
        axis for axis, sizes in columns
        if not all(compatible(*pair) for pair in combinations(set(sizes), 2))
    ]  # fmt: skip
    if len(surely or axes) != 1:
        return None
    (axis,) = surely or axes
    return Cut(joined(node, items, axis), axis, node.vector([node.size(x, axis) for x in items]))


def joined(node: Node, parts: list[Output], axis: int) -> Output:
    """Tensors one behind the other along an axis."""
    return parts[0] if len(parts) == 1 else node.add("Concat-1", *parts, axis=axis)


@converts("SequenceEmpty", since=11)
def sequence_empty(node: Node) -> Made:
    """No layer: a sequence without tensors."""
    return Listed()


@converts("SequenceConstruct", since=11)
def sequence_construct(node: Node) -> Made:
    """No layer: a sequence of the inputs."""
    return Listed([node[index] for index in range(len(node.inputs))])


@converts("SequenceInsert", since=11)
def sequence_insert(node: Node) -> Made:
    """No layer: the sequence with a tensor more."""
    given, more = sequence(node), node[1]
    if isinstance(given, Growing):
        if node.get(2) is not None:
            raise UnsupportedError("the body puts a tensor elsewhere than at the sequence's end")
        return given.grown(more)
    if given.stacked is not None and node.get(2) is None:
        return Listed(stacked=piled(node, [given.stacked, node.unsqueeze(more, [0])]))
    items = list(given.items)
    items.insert(_place(node, 2, len(items), len(items)), more)
    return Listed(items)


@converts("SequenceErase", since=11)
def sequence_erase(node: Node) -> Made:
    """No layer: the sequence with a tensor less."""
    items = list(sequence(node).items)
    del items[_place(node, 1, len(items), len(items) - 1)]
    return Listed(items)


@converts("SequenceLength", since=11)
def sequence_length(node: Node) -> Made:
    """A constant, or a size of what all tensors are in."""
    given = sequence(node)
    counted = given.stacked if given.cut is None else given.cut.lengths
    if counted is None:
        return node.ints64(len(given.items))
    return node.add("Gather-8", node.shape(counted), node.ints64(0), node.ints64(0))


@converts("SequenceAt", since=11)
def sequence_at(node: Node) -> Made:
    """No layer where the place is known, else Gather-8 of all tensors, or Slice-8."""
    given = sequence(node)
    if given.is_counted and node.value(1) is not None:
        return given.items[_place(node, 1, len(given.items), -1)]
    cut = _parts(node, given.items) if given.is_counted else given.cut
    if cut is not None:
        whole, axis, lengths = cut
        place, zero = node.reshape(node[1], [1]), node.ints64(0)
        ends = node.add("CumSum-3", lengths, zero)
        stop, length = (node.add("Gather-8", x, place, zero) for x in (ends, lengths))
        return node.cut(whole, node.add("Subtract-1", stop, length), stop, axis)
    return node.add("Gather-8", stacked(node, given), scalar(node, node[1]), node.ints64(0))


def _place(node: Node, index: int, count: int, default: int) -> int:
    """A place in a sequence of so many; negative ones are counted from the end."""
    if node.get(index) is not None:
        node.known(index, "the position")
    found = node.single(index, "the position")
    place = default if found is None else int(found)
    last = count if node.kind == "SequenceInsert" else count - 1
    if not -count <= place <= last:
        raise IRError(f"position {place} of a sequence of {count} tensors")
    return place


@converts("SplitToSequence", since=11)
def split_to_sequence(node: Node) -> Made:
    """VariadicSplit-1; where it is not known how many there are, one tensor of all, or none."""
    x, axis = node[0], node.axis(0)
    size, lengths = x.tensor.shape[axis], node.get(1)
    if lengths is not None and lengths.tensor.rank != 0:
        lengths = node.convert(lengths, "i64")
        if lengths.tensor.rank != 1 or not isinstance(lengths.tensor.shape[0], int):
            return Listed(cut=Cut(x, axis, lengths))
        return Listed(list(node.add("VariadicSplit-1", x, node.ints64(axis), lengths)))
    each = 1 if lengths is None else node.single(1, "the length of a part")
    if each is None or each < 1:
        raise UnsupportedError(f"the length of a part (input 1) is {each or 'not constant'}")
    keeps = each > 1 or _keeps(node)
    if isinstance(size, int):
        count = -(-size // each)
        check_pieces(count)
        if not count:
            return Listed()
        sizes = node.ints64([each] * (count - 1) + [size - each * (count - 1)])
        parts = (
            [x] if count == 1 else list(node.add("VariadicSplit-1", x, node.ints64(axis), sizes))
        )
        return Listed(parts if keeps else [node.squeeze(one, [axis]) for one in parts])
    if each > 1:
        zero, end = node.ints64(0), node.reshape(node.vector([node.size(x, axis)]), [])
        starts = node.add("Range-4", zero, end, node.ints64(each), output_type="i64")
        left = node.add("Subtract-1", end, starts)
        return Listed(cut=Cut(x, axis, node.add("Minimum-1", left, node.ints64(each))))
    order = [axis, *(other for other in range(node.rank()) if other != axis)]
    rows = node.transpose(x, order)
    return Listed(stacked=node.unsqueeze(rows, [axis + 1]) if keeps else rows)


def _keeps(node: Node) -> bool:
    """Whether parts of one keep the axis; by the letter they do wherever a length is given."""
    asked = node.flag("keepdims", True)
    if asked or node.get(1) is None:
        return asked
    letter = node.semantics == "onnx"
    text = "stays, as their length is given" if letter else "goes, as keepdims is 0"
    node.note("keepdims", f"the axis of parts of one {text}")
    return letter


@converts("ConcatFromSequence", since=11)
def concat_from_sequence(node: Node) -> Made:
    """Concat-1 of the tensors, on a new axis where one is asked for."""
    given, apart = sequence(node), node.flag("new_axis")
    if (
        given.cut is not None
        and not apart
        and node.axis(0, given.cut.whole.tensor.rank) == given.cut.axis
    ):
        return given.cut.whole
    if given.stacked is None:
        if not given.items:
            raise UnsupportedError("the sequence is empty")
        rank = given.items[0].tensor.rank
        axis = node.axis(0, None if rank is None else rank + apart)
        parts = [node.unsqueeze(one, [axis]) if apart else one for one in given.items]
        return joined(node, parts, axis)
    whole = given.stacked
    if whole.tensor.rank is None:
        raise UnsupportedError("the rank of the sequence's tensors is not known")
    rank = whole.tensor.rank - 1
    axis = node.axis(0, rank + apart)
    if not rank + apart:
        raise IRError("numbers have no axis to be joined along, new_axis=1 gives them one")
    behind = node.transpose(whole, [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
    if apart:
        return behind
    sizes = [node.size(whole, other + 1) for other in range(rank)]
    sizes[axis] = node.calculate("Multiply-1", node.size(whole, 0), sizes[axis])
    return node.reshape(behind, node.vector(sizes))


@converts("SequenceMap", since=17)
def sequence_map(node: Node) -> Made:
    """The body once for each tensor; a tensor beside the sequences is the same for all."""
    body, count = node.attribute("body"), len(sequence(node).items)
    check_pieces(count)
    if len(body.input) != len(node.inputs):
        raise IRError(f"the body has {len(body.input)} inputs, {len(node.inputs)} are given")
    made = []
    for turn in range(count):
        given = []
        for index in range(len(node.inputs)):
            one = node[index]
            if isinstance(one, Listed):
                if len(one.items) != count:
                    raise IRError(f"sequences of {count} and {len(one.items)} tensors")
                one = one.items[turn]
            given.append(one)
        made.append(node.importer.inline(body, f"{node.name}/{turn}", given))
    found = []
    for index, value in enumerate(body.output):
        some = [outputs[index] for outputs in made]
        if any(one is None for one in some):
            raise IRError(f'output "{value.name}" of the body is a tensor that nothing makes')
        found.append(Listed([one for one in some if one is not None]))
    return found


@converts("Optional", since=15)
def optional(node: Node) -> Made:
    """No layer: it is there, or it is not."""
    if node.get(0) is None:
        raise UnsupportedError("an optional value that is not there")
    return node[0]


@converts("OptionalGetElement", since=15)
def optional_get_element(node: Node) -> Made:
    """No layer: what is there."""
    return node[0]


@converts("OptionalHasElement", since=15)
def optional_has_element(node: Node) -> Made:
    """A constant: whether there is anything."""
    return node.constant(np.array(node.get(0) is not None))
