"""Reading a model's protobuf, and the checks that come before anything is made of it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

from ....schemas import IRError, UnreadableError, UsageError, Where
from ...storage import is_url, open_regular

#: Fields that nobody reads: inference finds shapes of its own.
_UNREAD = ("doc_string", "value_info", "metadata_props", "quantization_annotation")
#: Attributes of which no message is read.
_PLAIN = frozenset(
    getattr(onnx.AttributeProto, name)
    for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")
)
#: A protobuf cannot be larger.
_MOST_BYTES = 2**31 - 1

#: Bodies within bodies.
_DEEPEST = 32


def load(source: Any) -> tuple[Any, Path | None]:
    """The protobuf of a path, of bytes, or itself; and the path where there is one."""
    if isinstance(source, onnx.ModelProto):
        return source, None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return parse(bytes(source), None), None
    if not isinstance(source, (str, os.PathLike)):
        raise UsageError(f"{type(source).__name__} is neither a path nor an onnx.ModelProto")
    if is_url(source):
        from ...storage import fetch  # files of this machine do without

        return parse(fetch(os.fspath(source), _MOST_BYTES), os.fspath(source)), None
    path = Path(source)
    descriptor = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MOST_BYTES:
            raise UnreadableError(
                f"has {size} bytes, a protobuf has at most {_MOST_BYTES}", Where(str(path))
            )
        data = file.read()
    return parse(data, str(path)), path


def parse(data: bytes, place: str | None) -> Any:
    """A protobuf from its bytes."""
    where = Where(place)
    if not data:
        raise UnreadableError("is empty: 0 bytes", where)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except UnicodeDecodeError as error:  # protobuf without its library says so at once
        *_, kind, name = ["", *error.reason.rpartition("in field: ")[2].split(".")]
        raise _no_text(name, kind, error.object, where) from None
    except (DecodeError, RecursionError) as error:
        raise UnreadableError(
            f"is not an ONNX model, or one that was cut short: {error}", where
        ) from None
    return model


def check(model: Any) -> None:
    """Refuse what is no whole model."""
    if not model.HasField("graph"):
        raise UnreadableError("is not a whole ONNX model: it has no graph")
    if not model.opset_import:
        raise UnreadableError("is not a whole ONNX model: it names no opset")
    if not model.graph.output:
        raise IRError("the graph has no outputs")
    _check_text(model)


@cache
def _fields(kind: Any) -> tuple[list[str], list[str]]:
    """The fields of a message that are read and are text, and those that are messages."""
    read = [field for field in kind.fields if field.name not in _UNREAD]
    text = [field.name for field in read if field.type == field.TYPE_STRING]
    return text, [field.name for field in read if field.type == field.TYPE_MESSAGE]


def _no_text(name: str, kind: str, said: bytes, where: Where | None = None) -> UnreadableError:
    shown, kind = said.decode("utf-8", "backslashreplace"), kind.removesuffix("Proto").lower()
    return UnreadableError(
        f'{name} "{shown}" of a {kind} is not UTF-8', where, hint="export the model again"
    )


def _check_text(message: Any) -> None:
    """Refuse text that is not UTF-8, which protobuf hands out as bytes."""
    text, messages = _fields(message.DESCRIPTOR)
    if isinstance(message, onnx.AttributeProto) and message.type in _PLAIN:
        messages = []
    for name in text:
        value = getattr(message, name)
        if type(value) is str or (type(value) is not bytes and bytes not in map(type, value)):
            continue
        for one in (value,) if isinstance(value, bytes) else value:
            if isinstance(one, bytes):
                raise _no_text(name, message.DESCRIPTOR.name, one)
    for name in messages:
        value = getattr(message, name)
        if not isinstance(value, Message):  # it is repeated
            for inner in value:
                _check_text(inner)
        elif message.HasField(name):
            _check_text(value)


def opsets(imports: Iterable[Any]) -> dict[str, int]:
    """The opset version of each domain; the default domain is the empty name."""
    return {("" if one.domain == "ai.onnx" else one.domain): one.version for one in imports}


def label(node: Any) -> str:
    """A node's name; one without is called by its first output."""
    return str(node.name or next((name for name in node.output if name), node.op_type))


def where_of(node: Any, place: str | None, version: int | None = None) -> Where:
    """A node's place for messages."""
    return Where(
        place, name=label(node), type=node.op_type, version=f"opset{version}" if version else None
    )


def ordered(graph: Any, known: Iterable[str], place: str | None = None) -> list[Any]:
    """The nodes so that each comes after what it reads; the file's order where that is one.

    Args:
        graph: A graph or function.
        known: The tensors that are there before any node runs.
        place: The file's name for messages.

    Raises:
        IRError: Two nodes make one tensor, nothing makes one that is read, or there is a cycle.
    """
    makers: dict[str, int] = {}
    there = set(known)
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in makers or name in there):
                raise IRError(f'tensor "{name}" is made twice', where_of(node, place))
            if name:
                makers[name] = index
    needs = []
    for node in graph.node:
        names = [name for name in dict.fromkeys(read_names(node)) if name not in there]
        for name in names:
            if name not in makers:
                raise _dangling(name, [*there, *makers], where_of(node, place))
        needs.append([makers[name] for name in names])
    return [graph.node[index] for index in _sorted(needs, graph.node, place)]


def _sorted(needs: Sequence[Sequence[int]], nodes: Any, place: str | None) -> list[int]:
    """Indices in an order that respects the needs, without recursion."""
    order: list[int] = []
    state = [0] * len(needs)  # 1 being visited, 2 done
    for root in range(len(needs)):
        stack = [root] if state[root] == 0 else []
        trail: list[Iterator[int]] = [iter(needs[root])] if stack else []
        while stack:
            state[stack[-1]] = 1
            following = next(trail[-1], None)
            if following is None:
                done = stack.pop()
                trail.pop()
                state[done] = 2
                order.append(done)
            elif state[following] == 1:
                loop = [label(nodes[i]) for i in stack[stack.index(following) :]]
                shown = loop if len(loop) <= 12 else [*loop[:6], "…", *loop[-5:]]
                raise IRError(
                    f"nodes feed each other in a cycle: {' <- '.join(shown)}",
                    where_of(nodes[following], place),
                )
            elif state[following] == 0:
                stack.append(following)
                trail.append(iter(needs[following]))
    return order


def read_names(node: Any, depth: int = 0) -> Iterator[str]:
    """The tensors a node reads, also those its bodies take from outside."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            if body.node or body.output:  # an attribute that is no body has neither
                yield from free_names(body, depth)


def free_names(body: Any, depth: int = 0) -> Iterator[str]:
    """The tensors a body takes from outside."""
    if depth > _DEEPEST:
        raise IRError(f"bodies are nested more than {_DEEPEST} deep")
    inside = {value.name for value in body.input}
    inside.update(tensor.name for tensor in body.initializer)
    inside.update(tensor.values.name for tensor in body.sparse_initializer)
    inside.update(name for node in body.node for name in node.output)
    for node in body.node:
        yield from (name for name in read_names(node, depth + 1) if name not in inside)
    yield from (value.name for value in body.output if value.name not in inside)


def _dangling(name: str, known: Iterable[str], where: Where) -> IRError:
    near = difflib.get_close_matches(name, list(known)[:5000], 1)
    hint = f'did you mean "{near[0]}"?' if near else None
    return IRError(f'it reads tensor "{name}", which nothing makes', where, hint)


def dangling_output(name: str, known: Iterable[str], place: str | None) -> IRError:
    """The error for an output of the graph that nothing makes."""
    error = _dangling(name, known, Where(place))
    error.message = f'output "{name}" of the graph is a tensor that nothing makes'
    return error


def calls_of(function: Any) -> Iterator[tuple[str, str, str]]:
    """What the nodes of a function or graph call, those in bodies among them."""
    for node in function.node:
        yield (
            "" if node.domain == "ai.onnx" else node.domain,
            node.op_type,
            getattr(node, "overload", ""),
        )
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from calls_of(graph)


def functions_of(model: Any) -> Mapping[tuple[str, str, str], Any]:
    """The functions that the model brings along, by domain, name and overload."""
    found: dict[tuple[str, str, str], Any] = {}
    for function in model.functions:
        key = (
            "" if function.domain == "ai.onnx" else function.domain,
            function.name,
            getattr(function, "overload", ""),
        )
        if key in found:
            raise IRError(f"function {function.domain}.{function.name} is there twice")
        found[key] = function
    return found
