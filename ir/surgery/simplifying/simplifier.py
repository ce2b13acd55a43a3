"""Simplification of a model: its graph, then the bodies of its layers."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

from ....layers.budget import within
from ....layers.leftovers import tidy
from ....layers.memory import without_collection
from ....schemas import IRError, Tensor, UnreadableError, UsageError
from ....schemas.numbers import at_least
from ....schemas.printing import Table, counted
from ...document import SINKS, Graph, Layer, Model, listed
from ...faces import door
from ...files import compose
from ...inference import Shapes, are_named, infer_bodies, infer_graph
from ...opening import ModelLike, opened
from ..reshaping import reshape
from ..scratch import Scratch
from . import fold_constants
from .certificate import Certificate, Judge, compare_models
from .rewriter import Rewrite, Rewriter, Rule
from .rules import RULES

#: The rule that takes out what feeds no output.
DEAD = "dead-layers"
#: The rule by which constants may grow.
FOLD = fold_constants.RULE.name


class Simplified(NamedTuple):
    """What simplification did."""

    #: How often each rule was applied, in the order of the rules.
    rules: dict[str, int]
    layers_before: int
    layers_after: int
    #: Every application in order: the rule, and the layer at which its pattern ended.
    rewrites: list[Rewrite]
    #: What was found where a certificate was asked for.
    certificate: Certificate | None = None

    def as_table(self) -> Table:
        """How often each rule was applied."""
        return Table(
            repr(self).strip("<>"), ("rule", "applied"), self.rules.items(), len(self.rules)
        )

    def __repr__(self) -> str:
        certified = "" if self.certificate is None else ", certified"
        return (
            f"<simplified: {counted(len(self.rewrites), 'rewrite')} by "
            f"{counted(len(self.rules), 'rule')}, "
            f"{counted(self.layers_before, 'layer')}, now {self.layers_after}{certified}>"
        )

    def _repr_html_(self) -> str:
        text: str = door("display", "html")(self)
        return text


@tidy
def simplify(
    model: ModelLike,
    shapes: Shapes | None = None,
    *,
    only: str | Iterable[str] = (),
    skip: str | Iterable[str] = (),
    certify: int = 0,
    seed: int = 0,
    max_memory: int | None = None,
    max_seconds: float | None = None,
) -> tuple[Model, Simplified]:
    """Rewrite a model so that fewer layers give the same outputs; the model given is not changed.

    Names of inputs and outputs stay, those of other tensors where the tensor does. The file never
    grows: what is computed beforehand takes no more bytes than all that went.

    Args:
        model: The model, or its path.
        shapes: New shapes for some of the inputs, as in ``reshape``: what then follows is folded.
        only: Names of the only rules to apply.
        skip: Names of rules not to apply.
        certify: Random inputs on which the model is run before and after; each rewrite is run
            alone, too, before and after, where its shapes are known.
        seed: Of the random inputs.
        max_memory: As of ``infer``.
        max_seconds: As of ``infer``.

    Raises:
        MismatchError: The certificate was asked for, and outputs differ.
        UsageError: A rule is not known.
    """
    at_least(0, certify, "certify")
    rules = chosen(only, skip)
    given = opened(model)
    new = deepcopy(given)
    judge = Judge(seed) if certify else None
    with within(max_memory, max_seconds):
        if shapes:
            reshape(new, shapes)
        before = deepcopy(new) if certify else new
        count = _size(new)
        rewrites = rewrite(new, rules, judge)
        if any(rule.name == FOLD for rule in rules) and _has_constant_parts(new):
            new, more = _folded(new, rules, judge, written_size(given))
            rewrites += more
        certificate = None
        if judge is not None:
            certificate = compare_models(before, new, certify, judge)
    counts = Counter(rewrite.rule for rewrite in rewrites)
    ordered = {rule.name: counts[rule.name] for rule in rules if counts[rule.name]}
    return new, Simplified(ordered, count, _size(new), rewrites, certificate)


def rewrite(
    model: Model,
    rules: Sequence[Rule] | None = None,
    judge: Judge | None = None,
    spare: int = 0,
    known: Mapping[int, tuple[Tensor, ...]] | None = None,
    tight: bool = False,
) -> list[Rewrite]:
    """Rewrite a model itself by rules, all of them where none are given; what was done.

    ``spare`` are bytes by which constants may grow together, each by a part of them; ``tight``,
    each by all of them, if it is left in the end. ``known`` is what ``infer_graph`` would find,
    where somebody knows that already.
    """
    bare = next((x for x in model.everywhere() if x.is_constant and not x.has_value), None)
    if bare is not None:
        raise UnreadableError(
            "its bytes are needed, but there is no .bin", bare.where, "read it with its weights"
        )
    rewrites: list[Rewrite] = []
    rules = chosen() if rules is None else rules
    with without_collection():
        # Where each size has a name already, as in most models, nothing is inferred again.
        if known is None or not all(map(are_named, known.values())):
            known = infer_graph(model, {}, naming=True)
        places = Counter(x.data.get("offset") for x in model.everywhere() if x.is_constant)
        with Scratch(_HELD) as scratch:
            _simplify(model, known, rules, judge, rewrites, places, scratch, spare, tight)
    return rewrites


def chosen(only: str | Iterable[str] = (), skip: str | Iterable[str] = ()) -> list[Rule]:
    """The rules of these names, or all but those, in their order."""
    rules = [Rule(DEAD, (), lambda net, layer: False), *RULES]
    known = [rule.name for rule in rules]
    only, skip = listed(only), listed(skip)
    for name in (*only, *skip):
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f'no rule is named "{name}"', hint=hint)
    return [rule for rule in rules if (not only or rule.name in only) and rule.name not in skip]


def _size(graph: Graph) -> int:
    return sum(1 for _ in graph.everywhere())


def _simplify(
    graph: Graph,
    tensors: Mapping[int, tuple[Tensor, ...]],
    rules: Sequence[Rule],
    judge: Judge | None,
    rewrites: list[Rewrite],
    places: Counter[str | None],
    scratch: Scratch,
    spare: int = 0,
    tight: bool = False,
) -> None:
    seen: dict[int, Layer] = {}
    for layer in graph.layers:
        if seen.setdefault(layer.id, layer) is not layer:
            raise IRError(
                f'the id {layer.id} is also that of "{seen[layer.id].name}", edges are not clear',
                layer.where,
                "vinoir check lists all that is wrong with the file",
            )
    order = graph.order()
    work = [rule for rule in rules if rule.name != DEAD]
    if len(work) < len(rules) and any(layer.type in SINKS for layer in graph.layers):
        reached = set(order)
        dead = [layer for layer in graph.layers if layer not in reached]
        if dead:
            graph.remove(*dead)
        rewrites += [Rewrite(DEAD, layer.name) for layer in dead]
    net = Rewriter(graph, tensors, order, places, scratch, spare, tight)
    if judge is not None:
        net.watch = judge
    tried: list[Rule] = []
    for stage in sorted({rule.stage for rule in work}):
        now = [rule for rule in work if rule.stage <= stage]
        net.run(now, tried)
        tried = now
    rewrites += net.done
    net.finish()
    for layer in net.layers():
        if not layer.bodies:
            continue
        known: dict[Graph, Mapping[int, tuple[Tensor, ...]]] = {}

        def keeping(
            body: Graph,
            given: Mapping[int, Tensor],
            known: dict[Graph, Mapping[int, tuple[Tensor, ...]]] = known,
        ) -> dict[int, tuple[Tensor, ...]]:
            found = infer_graph(body, given)
            known[body] = found
            return found

        infer_bodies(layer, [net.tensor(one) for one in net.inputs(layer)], keeping)
        for body in layer.bodies.values():
            if body in known:
                more = known[body]
                _simplify(body, more, rules, judge, rewrites, places, scratch, net.spare, tight)
            elif layer.type != "If":  # of an If, a side that is not taken need not fit
                raise AssertionError(f"nothing was inferred of a body of {layer!r}")


def _folded(
    model: Model, rules: Sequence[Rule], judge: Judge | None, most: int
) -> tuple[Model, list[Rewrite]]:
    """The model with constants that are larger than what made them, where there is room for them.

    What grows by one step often becomes small by the next: it is tried, the largest steps first.
    Then what room is left is taken by what comes first.
    """
    rewrites: list[Rewrite] = []
    for step in _STEPS:
        grown = _grown(model, rules, judge, most, step)
        if grown is not None:
            model, rewrites = grown
            break
    if _has_constant_parts(model):
        room = most - written_size(model)
        model, more = _grown(model, rules, judge, most, room, tight=True) or (model, [])
        rewrites += more
    return model, rewrites


def _grown(
    model: Model,
    rules: Sequence[Rule],
    judge: Judge | None,
    most: int,
    spare: int,
    *,
    tight: bool = False,
) -> tuple[Model, list[Rewrite]] | None:
    """The model rewritten with bytes to spare, and what was done; None if it is too large then."""
    if spare <= 0:
        return None
    trial = deepcopy(model)
    done = rewrite(trial, rules, spare=spare, tight=tight)
    if not done:
        return model, []
    if written_size(trial) > most:
        return None
    if judge is not None:
        trial = deepcopy(model)
        done = rewrite(trial, rules, judge, spare, tight=tight)
    return trial, done


def _has_constant_parts(model: Model) -> bool:
    """Whether layers are left that compute from constants alone."""
    for layer in model.layers:
        if layer.type in _LEFT:
            continue
        sources = model.sources(layer)
        if sources and all(one is not None and _is_constant(model, one[0]) for one in sources):
            return True
    return False


def _is_constant(model: Model, layer: Layer) -> bool:
    """Whether a layer is a constant, or one that is kept in another type."""
    if layer.type == "Convert":
        sources = model.sources(layer)
        return bool(sources) and sources[0] is not None and sources[0][0].is_constant
    return layer.is_constant


def written_size(model: Model) -> int:
    """The bytes of a model's files."""
    document, layout = compose(model)
    return len(document) + layout.size


#: Layers on constants that are left: most say how numbers are kept.
_LEFT = fold_constants.KEPT | {"Convert", "ConvertLike"}
#: Bytes by which constants may grow together that are tried in turn.
_STEPS = (1 << 26, 1 << 24, 1 << 22, 1 << 20, 1 << 18, 1 << 16)
#: Bytes of new constants that memory holds; those of usual networks never see a file.
_HELD = 1 << 25

__all__ = ["Simplified", "rewrite", "simplify"]
