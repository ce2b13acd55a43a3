"""Groups within groups: modules by their names, blocks that repeat, bodies of layers.

Every group is an interval of one order in which each layer comes after those that feed it, so
that the picture of groups has no cycle whatever is closed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .scopes import Scope, common, scopes
from .sheet import Body, Ints, Sheet

#: Layers that make a module worth a box.
LEAST = 3
#: Of the layers around it, the share up to which a module gets a box.
_MOST = 0.85
#: Periods that are tried for a repetition.
_PERIODS = 32
#: A row of children is gone through as often as this at most, for one repetition after another.
_RESCANS = 50


@dataclass
class Group:
    """A box that can be opened: a module, a repeated block, all its repetitions, a body."""

    label: str
    kind: Literal["module", "block", "run", "body", "all"]
    #: Layers by their numbers, groups by theirs plus the number of layers.
    children: list[int]
    token: int = 0


@dataclass
class Tree:
    """The groups of a model; the last is the whole."""

    count: int
    groups: list[Group] = field(default_factory=list)
    #: Of every layer and group, the group that it is in, as numbers of children; -1: none.
    parent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    #: Layers that are groups since they have bodies, by their numbers.
    owners: dict[int, int] = field(default_factory=dict)

    @property
    def root(self) -> int:
        """The whole, as a child's number."""
        return self.count + len(self.groups) - 1


class _Grouping:
    """Groups the layers of one sheet."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.tree = Tree(len(sheet.layers))
        self.readers: list[list[int]] = [[] for _ in sheet.layers]
        feeders: list[list[int]] = [[] for _ in sheet.layers]
        #: Of each layer, what it reads: input index, layer, output index.
        self.reads: list[list[tuple[int, int, int]]] = [[] for _ in sheet.layers]
        for source, output, target, index in sheet.edges:
            if sheet.shown(source) and sheet.shown(target):
                self.readers[source].append(target)
                feeders[target].append(source)
                self.reads[target].append((index, source, output))
        self.feeders = feeders
        kinds: dict[object, int] = {}
        looks = [
            kinds.setdefault((look(sheet, number), sheet.marks.get(number)), len(kinds))
            for number in range(len(feeders))
        ]
        # Equal layers read as many values, and constants of the same kind.
        self.tokens = [
            hash((looks[n], len(feeders[n]), *(looks[chip] for chip in sheet.chips.get(n, ()))))
            for n in range(len(feeders))
        ]

    def make(self) -> Tree:
        """All groups, inner bodies first."""
        body_groups: dict[int, list[int]] = {}
        for body in reversed(self.sheet.bodies):
            names = scopes(self.sheet, body)
            order = [number for number in body.order if self.sheet.shown(number)]
            for number in order:
                if number in body_groups:
                    inner = list(reversed(body_groups[number]))
                    layer = self.sheet.layers[number]
                    self.tree.owners[number] = self.add(Group(layer.type, "body", inner))
                    # Equal layers have equal bodies.
                    self.tokens[number] = hash((self.tokens[number], self.hash(inner)))
            children = self.fold(self.arrange(order, names, 0))
            if body.owner < 0:
                self.add(Group("", "all", [self.entity(each) for each in children]))
            else:
                token = self.hash(children)
                children = [self.entity(each) for each in children]
                group = self.add(Group(body.tag, "body", children, token))
                body_groups.setdefault(body.owner, []).append(group)
        tree = self.tree
        tree.parent = np.full(tree.count + len(tree.groups), -1, np.int64)
        for index, made in enumerate(tree.groups):
            made.children = [self.entity(each) for each in made.children]
            tree.parent[made.children] = tree.count + index
        return tree

    def add(self, group: Group) -> int:
        self.tree.groups.append(group)
        return self.tree.count + len(self.tree.groups) - 1

    def entity(self, number: int) -> int:
        """What stands in the picture for a layer: the group that it is, where it has bodies."""
        return self.tree.owners.get(number, number)

    def arrange(self, order: list[int], names: dict[int, Scope], level: int) -> list[int]:
        """The children of a group: layers, and modules of further layers."""
        shared = names[order[0]] if order else ()
        for number in order:
            shared = common(shared, names[number])
            if len(shared) <= level:
                break
        level = max(level, len(shared))
        runs = self.runs(order, [names[number][level : level + 1] for number in order])
        if len(runs) == len(order):
            return [number for _, run in runs for number in run]
        children: list[int] = []
        for key, run in runs:
            inner = self.arrange(run, names, level + 1) if key else run
            # A box around nearly all that is in the one around it says nothing.
            if key and LEAST <= len(run) <= _MOST * len(order):
                words = names[run[0]]
                # A number alone says nothing: it goes with the word before it.
                begin = level - (level > 0 and words[level].isdigit())
                label = ".".join(words[begin : len(self.shared(run, names))])
                inner = self.fold(inner)
                if len(inner) == 1 and inner[0] >= self.tree.count:
                    # The module holds nothing but one box: that one takes its name.
                    self.rename(inner[0], label)
                elif len(inner) > 1:
                    inner = [self.add(Group(label, "module", inner, self.hash(inner)))]
            children += inner
        return children

    def rename(self, child: int, label: str) -> None:
        group = self.tree.groups[child - self.tree.count]
        joined = group.kind == "module" and group.label
        group.label = f"{label}.{group.label}" if joined else label

    def shared(self, run: list[int], names: dict[int, Scope]) -> Scope:
        found = names[run[0]]
        for number in run:
            found = common(found, names[number])
        return found

    def runs(self, order: list[int], keys: list[Scope]) -> list[tuple[Scope, list[int]]]:
        """Layers of one key together, in an order in which each comes after its feeders.

        Where two modules feed each other both ways, they are cut where the order changes.
        """
        runs: list[tuple[Scope, list[int]]] = []
        for number, key in zip(order, keys, strict=True):
            if runs and key and runs[-1][0] == key:
                runs[-1][1].append(number)
            else:
                runs.append((key, [number]))
        named = Counter(key for key, _ in runs if key)
        if not named or max(named.values()) == 1:
            return runs
        return self.gathered(runs)

    def gathered(self, runs: list[tuple[Scope, list[int]]]) -> list[tuple[Scope, list[int]]]:
        """The same with the runs of a key joined, as far as that makes no cycle."""
        first: dict[Scope, int] = {}
        bundle = [first.setdefault(key, i) if key else i for i, (key, _) in enumerate(runs)]
        run_of = {number: i for i, (_, run) in enumerate(runs) for number in run}
        members: dict[int, list[int]] = {}
        for index, home in enumerate(bundle):
            members.setdefault(home, []).append(index)
        needs: list[set[int]] = [
            {run_of[each] for number in run for each in self.feeders[number] if each in run_of}
            for _, run in runs
        ]
        users: list[list[int]] = [[] for _ in runs]
        for index, found in enumerate(needs):
            found.discard(index)
            for each in found:
                users[each].append(index)
        # How many runs outside of its bundle each bundle waits for.
        waits = Counter(bundle[i] for i, found in enumerate(needs) for each in found
                        if bundle[each] != bundle[i])  # fmt: skip
        ready = [home for home in members if not waits[home]]
        heapq.heapify(ready)
        done = [False] * len(runs)
        result: list[tuple[Scope, list[int]]] = []
        place = 0
        while True:
            if ready:
                home = heapq.heappop(ready)
                taken = [i for i in members[home] if not done[i]]
            else:
                while place < len(runs) and done[place]:
                    place += 1
                if place == len(runs):
                    return result
                # A cycle of modules: the first that is left has all that it needs.
                home, taken = bundle[place], [place]
            if not taken:
                continue
            result.append((runs[taken[0]][0], [n for i in taken for n in runs[i][1]]))
            whole = len(taken) > 1 or len(members[home]) == 1
            for index in taken:
                done[index] = True
                if not whole:
                    left = sum(bundle[e] != home and not done[e] for e in needs[index])
                    waits[home] -= left
                for user in users[index]:
                    other = bundle[user]
                    if other != home and not done[user]:
                        waits[other] -= 1
                        if not waits[other]:
                            heapq.heappush(ready, other)
            if not whole and not waits[home]:
                heapq.heappush(ready, home)

    # Repetition.

    def token(self, child: int) -> int:
        """What two children have in common if they do the same."""
        count = self.tree.count
        return self.tokens[child] if child < count else self.tree.groups[child - count].token

    def hash(self, children: list[int]) -> int:
        return hash(tuple(map(self.token, children)))

    def fold(self, children: list[int]) -> list[int]:
        """The children with blocks that repeat in one box, those inside blocks too."""
        result: list[int] = []
        pending = [children]
        budget = _RESCANS * len(children)
        while pending:
            part = pending.pop()
            budget -= len(part)
            found = self.repeated(part) if budget > 0 else None
            if found is None:
                result += part
                continue
            start, period, times = self.alike(part, *found)
            if times < 2:
                result += part
                continue
            end = start + period * times
            blocks = [
                self.block(part[place : place + period], index)
                for index, place in enumerate(range(start, end, period))
            ]
            if end < len(part):
                pending.append(part[end:])
            run = self.add(Group(self.label(blocks), "run", blocks, self.hash(blocks)))
            if start:
                pending += [[run], part[:start]]
            else:
                result.append(run)
        return result

    def alike(
        self, children: list[int], start: int, period: int, times: int
    ) -> tuple[int, int, int]:
        """Of a repetition, the longest stretch whose turns are wired in the same way inside."""
        wiring = []
        for place in range(start, start + period * times, period):
            members = self.layers_in(children[place : place + period])
            local = {layer: i for i, layer in enumerate(members)}
            # Of what comes from outside, only at which input.
            wiring.append([
                (i, index, *((local[feeder], output) if feeder in local else ()))
                for layer, i in local.items()
                for index, feeder, output in sorted(self.reads[layer])
            ])  # fmt: skip
        best, first = (0, 0), 0
        for turn in range(1, times + 1):
            if turn == times or wiring[turn] != wiring[first]:
                best = max(best, (turn - first, -first))
                first = turn
        return start - best[1] * period, period, best[0]

    def layers_in(self, children: list[int]) -> list[int]:
        """Layers, and those in groups, in their order."""
        found, stack = [], children[::-1]
        while stack:
            each = stack.pop()
            if each < self.tree.count:
                found.append(each)
            else:
                stack += reversed(self.tree.groups[each - self.tree.count].children)
        return found

    def block(self, children: list[int], index: int) -> int:
        """One turn of a repetition."""
        if len(children) == 1:
            return children[0]
        inner = self.fold(children) if len(children) > 7 else children
        return self.add(Group(f"block {index}", "block", inner, self.hash(children)))

    def label(self, blocks: list[int]) -> str:
        """What repetitions are called: their modules' names where only a number differs."""
        count = self.tree.count
        names = [self.tree.groups[each - count].label for each in blocks if each >= count]
        if len(names) == len(blocks) and not names[0].startswith("block "):
            stem = names[0].rstrip("0123456789")
            if stem and all(name.startswith(stem) for name in names):
                return stem.rstrip("._-") or "blocks"
            return f"{names[0]}…{names[-1]}"
        return "blocks"

    def repeated(self, children: list[int]) -> tuple[int, int, int] | None:
        """Where a stretch of children begins that is repeated at once, its length and times."""
        count = len(children)
        if count < 4:
            return None
        tokens = np.fromiter(map(self.token, children), np.int64, count)
        best, chosen = 0, None
        for period in _periods(tokens):
            same = np.concatenate([[False], tokens[:-period] == tokens[period:], [False]])
            turns = np.flatnonzero(same[1:] != same[:-1])
            starts, ends = turns[::2], turns[1::2]
            long = ends - starts >= max(period, best - 2 * period)
            for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True):
                times = (end - start + period) // period
                if not self.worth(children, start, period, times):
                    continue
                if times * period > best:
                    best, chosen = times * period, (start, period, end + period)
        return None if chosen is None else self.aligned(children, *chosen)

    def worth(self, children: list[int], start: int, period: int, times: int) -> bool:
        """Whether a repetition is more than a row of equal layers."""
        if any(child >= self.tree.count for child in children[start : start + period]):
            return True
        return period >= 3 and period * times >= 8

    def aligned(
        self, children: list[int], start: int, period: int, end: int
    ) -> tuple[int, int, int]:
        """The same repetition, begun where the fewest values go from one turn to the next."""
        cuts = self.cuts(children[start:end])
        best = (float("inf"), 0)
        for shift in range(period):
            times = (end - start - shift) // period
            if times < 2:
                break
            lost = (end - start) // period - times
            places = shift + period * np.arange(1, times)  # between turns
            best = min(best, (float(cuts[places].mean()) + 2.5 * lost, shift))
        begin = start + best[1]
        return begin, period, (end - begin) // period

    def cuts(self, children: list[int]) -> Ints:
        """Before each child, and after the last: the values that pass that place."""
        place: dict[int, int] = {}
        for index, child in enumerate(children):
            place.update(dict.fromkeys(self.layers_in([child]), index))
        change = np.zeros(len(children) + 2, np.int64)
        for number, index in place.items():
            last = max((place.get(each, index) for each in self.readers[number]), default=index)
            if last > index:
                change[index + 1] += 1
                change[last + 1] -= 1
        return np.cumsum(change)[: len(children) + 1]


def look(sheet: Sheet, number: int) -> object:
    """Operation, attributes and shapes of a layer: what equal blocks have in common."""
    layer = sheet.layers[number]
    if layer.is_constant:
        return "Const", layer.data.get("element_type"), layer.data.get("shape")
    outputs = tuple((port.precision, port.dims) for port in layer.outputs)
    given = {k: v for k, v in layer.data.items() if k != "variable_id"}
    return layer.type, layer.version, tuple(given.items()), outputs


def _periods(tokens: Ints) -> list[int]:
    """Lengths after which many tokens come again, the shortest first."""
    order = np.argsort(tokens, kind="stable")
    same = tokens[order][1:] == tokens[order][:-1]
    gaps = np.diff(order)[same]
    gaps = gaps[gaps <= len(tokens) // 2]
    if not len(gaps):
        return []
    counts = np.bincount(gaps) * np.arange(gaps.max() + 1)
    return sorted(each for each in np.argsort(-counts)[:_PERIODS].tolist() if counts[each])


def group_layers(sheet: Sheet) -> Tree:
    """The groups of a model."""
    return _Grouping(sheet).make()


__all__ = ["Body", "Group", "Tree", "group_layers", "look"]
