"""The edit that finds a small graph in a model, and puts another in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...schemas import ElementType, UsageError
from ..document import Layer, array_of
from .orders import Desk, Edit, Numbers
from .workbench import Source, attribute_text, newest

#: Operations whose two inputs may stand in either order.
_EITHER_WAY = frozenset({
    "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "LogicalAnd", "LogicalOr",
    "LogicalXor", "Maximum", "Minimum", "Multiply", "NotEqual", "SquaredDifference",
})  # fmt: skip
#: Nodes of a pattern; each that commutes doubles the ways to try.
_MOST = 64


class Node(BaseModel):
    """A layer of a pattern or of what takes its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1, description="how other nodes name it")
    type: str = Field(description="its type")
    version: str | None = Field(None, description="its opset; in a pattern: any")
    inputs: list[str] = Field(
        default_factory=list, description="nodes, or names for whatever feeds the pattern"
    )
    attributes: dict[str, Any] = Field(
        default_factory=dict,
        description='in a pattern: what it must have; else what it gets: "$id.axis" is the '
        "attribute axis of a node of the pattern",
    )
    value: Numbers | None = Field(None, description="of a Const: its value")


class Replace(Edit):
    """Put a snippet in the place of each occurrence of a pattern; the last node is its output."""

    op: Literal["replace"]
    pattern: list[Node] = Field(min_length=1, max_length=_MOST, description="what is looked for")
    snippet: list[Node] = Field(alias="with", max_length=_MOST, description="what is put there")
    output: str | None = Field(
        None, description="where the snippet is empty: what of the pattern is handed on"
    )
    count: int | None = Field(None, ge=0, description="how many there must be; else at least one")

    @model_validator(mode="after")
    def _is_ordered(self) -> Any:
        known = {name for node in self.pattern for name in node.inputs}
        given = known | {node.id for node in self.pattern}
        for nodes in (self.pattern, self.snippet):
            seen: set[str] = set()
            later = {node.id for node in nodes}
            for node in nodes:
                later.discard(node.id)
                if node.id in seen:
                    raise ValueError(f'two nodes have the id "{node.id}"')
                for name in node.inputs:
                    if name == node.id or name in later:
                        raise ValueError(f'"{node.id}" comes before its input "{name}"')
                    if nodes is self.snippet and name not in seen and name not in given:
                        raise ValueError(f'"{name}" is nothing of the pattern')
                seen.add(node.id)
        if not self.snippet and self.output not in known:
            raise ValueError('an empty snippet needs the "output" of the pattern to hand on')
        return self

    def _carry_out(self, desk: Desk) -> None:
        root = self.pattern[-1]
        found: list[dict[str, Source]] = []
        taken: set[int] = set()
        for layer in list(desk.bench):
            if layer.type != root.type:
                continue
            if not layer.outputs:
                raise UsageError(
                    f"{root.type} gives nothing that another layer could give in its place",
                    layer.where,
                    "the last node of a pattern is the one whose output is replaced",
                )
            match = self._match(desk, layer)
            if match is None:
                continue
            # Occurrences may share a constant: it goes when nothing reads it any more.
            own = {key for key, x in self._inner(match).items() if x.type != "Const"}
            if not taken & own:
                found.append(match)
                taken |= own
        if (not found and self.count is None) or self.count not in (None, len(found)):
            raise UsageError(
                f"the pattern is there {len(found)} times, "
                f"{'once or more' if self.count is None else self.count} is expected",
                hint="layers whose outputs are used outside of the pattern do not match",
            )
        # An occurrence may be fed by one before it, whose output is another by then.
        moved: dict[Source, Source] = {}
        for match in found:
            now = {name: _now(source, moved) for name, source in match.items()}
            moved[match[root.id]] = self._rebuild(desk, match, now)

    def _inner(self, match: dict[str, Source]) -> dict[int, Layer]:
        """The layers of a match, by their identity."""
        return {id(match[n.id].layer): match[n.id].layer for n in self.pattern}

    def _match(self, desk: Desk, root: Layer) -> dict[str, Source] | None:
        """What each name of the pattern is, with this layer as the last node."""
        nodes = {node.id: node for node in self.pattern}
        last = Source(root, 0)
        # The output is replaced for all; further ones of its layer go on where it is kept.
        spared = root if self.pattern[-1].id in self._needed() else None
        for match in _ways(desk, nodes, [(self.pattern[-1].id, last)], {}):
            if len(match.keys() & nodes.keys()) < len(nodes):
                continue  # a node that is no part of what the last one needs
            inner = self._inner(match)
            outputs = [
                Source(match[node.id].layer, index)
                for node in self.pattern
                if match[node.id].layer.type != "Const"
                for index in range(len(match[node.id].layer.outputs))
            ]
            if all(
                id(user) in inner
                for output in outputs
                if output != last and output.layer is not spared
                for user, _ in desk.bench.users(output)
            ):
                return match
        return None

    def _needed(self) -> set[str]:
        """The names of the pattern that the snippet, or what follows, is fed by."""
        made = {node.id for node in self.snippet}
        needed = {name for node in self.snippet for name in node.inputs} - made
        return needed if self.snippet or self.output is None else {self.output}

    def _gone(self, desk: Desk, match: dict[str, Source]) -> list[Layer]:
        """The layers of a match that the snippet does not need, and no layer that it needs."""
        gone = {key: x for key, x in self._inner(match).items() if x.type != "Const"}
        queue = [match[name].layer for name in self._needed()]
        while queue:
            layer = gone.pop(id(queue.pop()), None)
            if layer is not None:
                queue += [row[0] for row in desk.graph.sources(layer) if row is not None]
        return [*gone.values()]

    def _rebuild(self, desk: Desk, match: dict[str, Source], made: dict[str, Source]) -> Source:
        """Put the snippet in the place of a match, whose names are now these; its output."""
        bench = desk.bench
        old = match[self.pattern[-1].id]
        new = made[self.output] if self.output is not None else old
        users = bench.users(old)
        built: set[int] = set()
        for node in self.snippet:
            name = f"{old.layer.name}/{node.id}"
            if node.type == "Const":
                new = self._constant(desk, node, name, match)
            else:
                data = {key: _attribute(text, match) for key, text in node.attributes.items()}
                inputs = [made[name] for name in node.inputs]
                version = node.version or newest(node.type)
                new = bench.put(node.type, version, inputs, data, name=name)
            made[node.id] = new
            built.add(id(new.layer))
        gone = self._gone(desk, match)
        bench.feed(users, new)
        name = old.layer.name
        bench.take_out(gone)
        if id(new.layer) in built and bench.is_gone(old.layer):
            bench.rename_layer(new.layer, name)
        said = ", ".join(node.type for node in self.snippet) or "nothing"
        was = ", ".join(node.type for node in self.pattern)
        desk.report.note("replaced", f"{was} by {said}", name)
        return new

    def _constant(self, desk: Desk, node: Node, name: str, match: dict[str, Source]) -> Source:
        if node.value is None:
            raise UsageError(f'Const "{node.id}" of the snippet has no value')
        kind = node.attributes.get("element_type")
        if kind is None:
            known = desk.bench.known(match[self.pattern[-1].id]).type
            real = array_of(node.value, None, name).dtype.kind == "f"
            kind = known if known.is_real or not real else ElementType.F32
        kind = ElementType.named(kind)
        return desk.bench.constant(array_of(node.value, kind, name), kind, name=name)


def _now(source: Source, moved: Mapping[Source, Source]) -> Source:
    """What a tensor is, now that others stand in the places of some."""
    while source in moved:
        source = moved[source]
    return source


def _attribute(value: Any, match: dict[str, Source]) -> Any:
    """The value of an attribute; that of a node of the pattern where it names one."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name, sign, key = value[1:].partition(".")
    if not sign or name not in match:
        raise UsageError(f'"{value}" names no node of the pattern', hint='write "$node.attribute"')
    layer = match[name].layer
    op = layer.op
    texts = layer.data | (op.attributes() if op is not None else {})
    if key not in texts:
        raise UsageError(f'"{value}": {layer.type} has no attribute {key}', layer.where)
    return texts[key]


def _ways(
    desk: Desk,
    nodes: dict[str, Node],
    open_: list[tuple[str, Source]],
    match: dict[str, Source],
) -> Iterator[dict[str, Source]]:
    """Every way to give names to sources so that the nodes fit."""
    if not open_:
        yield match
        return
    (name, source), rest = open_[0], open_[1:]
    held = match.get(name)
    if held is not None:
        if held == source:
            yield from _ways(desk, nodes, rest, match)
        return
    match = {**match, name: source}
    node = nodes.get(name)
    if node is None:
        yield from _ways(desk, nodes, rest, match)
        return
    if source.index or not _fits(node, source.layer):
        return
    if not node.inputs:
        yield from _ways(desk, nodes, rest, match)
        return
    rows = desk.graph.sources(source.layer)
    if len(rows) != len(node.inputs) or any(row is None for row in rows):
        return
    sources = [Source(*row) for row in rows if row is not None]
    orders = [sources]
    if len(sources) == 2 and node.type in _EITHER_WAY:
        orders.append(sources[::-1])
    for order in orders:
        pairs = list(zip(node.inputs, order, strict=True))
        yield from _ways(desk, nodes, [*pairs, *rest], match)


def _fits(node: Node, layer: Layer) -> bool:
    """Whether a layer is what a node says, its inputs aside."""
    if layer.type != node.type or node.version not in (None, layer.version):
        return False
    op = layer.op if node.attributes else None
    texts = layer.data | (op.attributes() if op is not None else {})
    for key, value in node.attributes.items():
        if "".join(texts.get(key, "").split()) != "".join(attribute_text(key, value).split()):
            return False
    if node.value is None:
        return True
    if not layer.is_constant:
        return False
    wanted, held = array_of(node.value, None, f'the value of "{node.id}"'), layer.value
    if wanted.shape != held.shape and (wanted.shape or held.size != 1):
        return False
    if held.dtype.kind not in "biuf" or wanted.dtype.kind not in "biuf":
        return bool(np.array_equal(held, wanted))
    return bool(np.allclose(held.astype("f8"), wanted.astype("f8"), rtol=1e-6, atol=0))


PATTERN_EDITS = (Replace,)
