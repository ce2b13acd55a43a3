"""Calls that add a layer: ``y = ir.ops.MaxPool(x, kernel=(2, 2), strides=(2, 2))``.

Inputs are outputs of layers, or values, which become constants; the layer goes where its inputs
are, or into the builder that ``net`` names. Of an operation's versions the newest is taken, or
the newest that the builder's ``opset`` has. Beside this file a stub tells type checkers and
editors the same; ``tests/operations_stub.py`` makes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..schemas import UsageError, Where, placed
from .document import Builder, Output

if TYPE_CHECKING:
    from ..layers.base import Op

#: Made otherwise: ends by the builder's own verbs, and what has bodies.
NOT_CALLED = frozenset({"Const", "If", "Loop", "Parameter", "Result", "TensorIterator"})


class Operations:
    """Every operation as a function; each is made when it is first asked for."""

    def __getattr__(self, name: str) -> Callable[..., Output]:
        if not _is_known(name):
            import difflib

            near = difflib.get_close_matches(name, self.__dir__(), 1)
            meant = f", did you mean {near[0]}?" if near else ""
            raise AttributeError(f"there is no operation {name}{meant}")
        made = _function(name)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted(_base().Op.registry.types() - NOT_CALLED)

    def __repr__(self) -> str:
        return f"ir.ops: {len(self.__dir__())} operations, such as ir.ops.MaxPool"


ops = Operations()


def _base() -> Any:
    """The operations, which are imported when one is used."""
    from ..layers import base

    return base


def _is_known(kind: str) -> bool:
    """Whether there is an operation of a type, in an installed package if not here."""
    if kind not in dir(ops) and not kind.startswith("_"):
        _base().Op.find(kind, "extension")  # imports what packages offer
    return kind in dir(ops)


def _function(kind: str) -> Callable[..., Output]:
    """The function that adds a layer of a type."""

    def call(
        *inputs: Any, name: str | None = None, net: Builder | None = None, **given: Any
    ) -> Output:
        with placed(Where(name=name or kind, type=kind)):
            builder = _builder([*inputs, *given.values()]) if net is None else net
            op = _base().Op.newest(kind, builder.opset)
            if op is None:
                raise UsageError(f"{kind} is not in opset{builder.opset} or before")
            feeds = _feeds(op, inputs, given)
            others = not op.is_standard and sorted(op.also)
            version = others[0] if others else op.version()
            return builder.add(kind, version, feeds, name=name, data=given)

    newest = _base().Op.newest(kind)
    call.__name__, call.__qualname__, call.__doc__ = kind, f"ops.{kind}", newest.__doc__
    call.__signature__ = signature(newest)  # type: ignore[attr-defined]
    return call


def signature(op: type[Op]) -> inspect.Signature:
    """The inputs of an operation, then its attributes, by name."""
    inputs = list(inspect.signature(op.infer).parameters.values())[1:]
    of_inputs = [
        one.replace(annotation="Output | Value", default=one.default)
        for one in inputs
        if one.kind is not one.VAR_KEYWORD
    ]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("name", "str | None"), ("net", "Builder | None"))
    ]
    attributes = inspect.signature(op).parameters.values()
    return inspect.Signature([*of_inputs, *attributes, *own], return_annotation="Output")


def _builder(values: list[Any]) -> Builder:
    """The builder of the first output among the inputs."""
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, Output):
                return one.builder
    raise UsageError("no input is an output of a layer", hint="say net=, the builder")


def _feeds(op: type[Op], inputs: tuple[Any, ...], given: dict[str, Any]) -> list[Any]:
    """The inputs in order; those given by name are taken out of the attributes."""
    names, _, most = op.arity()
    if most is None:
        lead, rest = names[:-1], names[-1]
        named = [given.pop(name) for name in lead[len(inputs) :] if name in given]
        feeds = [*inputs, *named]
        many = given.pop(rest, None)
        if many is None and len(feeds) == len(lead) + 1 and isinstance(feeds[-1], (list, tuple)):
            many = feeds.pop()
        return [*feeds, *(many or ())]
    if len(inputs) > most:
        raise UsageError(f"{len(inputs)} inputs, {op.spec()} takes {', '.join(names) or 'none'}")
    feeds = list(inputs)
    left = None
    for index, name in enumerate(names):
        value = given.pop(name, None)
        if index < len(inputs):
            if value is not None:
                raise UsageError(f"input {name} is given twice, by place and by name")
            if inputs[index] is None:
                raise UsageError(f"input {name} is None")
        elif value is None:
            left = left or name
        elif left is not None:
            raise UsageError(f"input {name} is given, {left} before it is not")
        else:
            feeds.append(value)
    return feeds
