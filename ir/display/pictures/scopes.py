"""The scope of each layer: the modules that its name, or its neighbours' names, put it in."""

from __future__ import annotations

from typing import TypeAlias

from .sheet import Body, Sheet

Scope: TypeAlias = tuple[str, ...]

#: Modules within modules that are shown, and the characters of a name that are looked at.
DEEPEST, LONGEST = 12, 400
#: Where values come into a graph and leave it is in no module.
_ENDS = frozenset({"Parameter", "Result"})


def scope_of(name: str) -> Scope:
    """The modules in a name such as ``/model/layers.0/mlp/MatMul`` or ``m.layer1/aten::add/Add``.

    What is written with two colons is an operation of a framework, no module.
    """
    head, slash, _ = name[:LONGEST].rpartition("/")
    if not slash:
        return ()
    parts = [part for part in head.split("/") if part and "::" not in part]
    return tuple(word for part in parts for word in part.split(".") if word)[:DEEPEST]


def common(one: Scope, two: Scope) -> Scope:
    """The scope that holds both."""
    length = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        length += 1
    return one[:length]


def scopes(sheet: Sheet, body: Body) -> dict[int, Scope]:
    """The scopes of a body's shown layers.

    Converters rename layers that they fuse, and name an activation by the last module that uses
    it: a layer whose neighbours share more of a scope with each other than with it is put there.
    """
    order = [number for number in body.order if sheet.shown(number)]
    own = {number: scope_of(sheet.layers[number].name) for number in order}
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for source, _, target, _ in body.edges:
        if source in own and target in own:
            # The neighbours along the main path: of several, the one nearest in the order.
            if source > before.get(target, -1):
                before[target] = source
            after.setdefault(source, target)
    for number in order:
        scope = own[number]
        if sheet.layers[number].type in _ENDS:
            own[number] = ()
            continue
        given = own[before[number]] if number in before else ()
        taken = own[after[number]] if number in after else ()
        around = common(given, taken) if taken else given
        if not scope:
            # What was fused into a layer before it (a scale, a shift) has left its name after it.
            own[number] = taken or given
        elif len(around) > max(len(common(scope, given)), len(common(scope, taken))):
            own[number] = around
    return own


__all__ = ["Scope", "common", "scope_of", "scopes"]
