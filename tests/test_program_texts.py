"""Texts of ever other lengths: one plan holds for any, and settles at each call what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program import assert_close
from vinoir import ir
from vinoir.ir.engine import attention, patterns
from vinoir.ir.engine.kernels import loose_norms, loose_products
from vinoir.ir.engine.memory import ask_for
from vinoir.ir.engine.patterns import SEVERAL, openness, takes_texts
from vinoir.ir.engine.planned import Planned
from vinoir.ir.engine.workers import Crew, HelpersLostError, crew
from vinoir.layers.budget import within
from vinoir.schemas import Array, LimitError

WIDE, HEADS, WORDS = 64, 4, 50


def numbers(*shape: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def integers(*values: int) -> Array:
    return np.int64(values)


class Net(ir.Builder):
    """Layers of a transformer, each with weights of its own."""

    seed, wide = 0, WIDE

    def weights(self, *shape: int, scale: float = 0.2) -> ir.Output:
        self.seed += 1
        return self.constant(numbers(*shape, seed=self.seed) * np.float32(scale))

    def linear(self, x: ir.Output, wide: int, name: str | None = None) -> ir.Output:
        """A product with a bias."""
        deep = int(x.tensor.shape.sizes[-1])
        y = self.add("MatMul", "opset1", [x, self.weights(wide, deep)], transpose_b=True)
        return self.add("Add", "opset1", [y, self.weights(1, 1, wide)], name=name)

    def norm(self, x: ir.Output, axis: int = -1) -> ir.Output:
        y = self.add("MVN", "opset6", [x, integers(axis)], eps=1e-5, normalize_variance=True,
                     eps_mode="inside_sqrt")  # fmt: skip
        y = self.add("Multiply", "opset1", [y, self.weights(1, 1, self.wide, scale=1)])
        return self.add("Add", "opset1", [y, self.weights(1, 1, self.wide)])

    def root_mean(self, x: ir.Output, how: str = "divide", eps: float = 1e-5) -> ir.Output:
        """A row over its root mean square, as exporters write it."""
        square = self.add("Power", "opset1", [x, np.float32(2)])
        if how == "product":
            square = self.add("Multiply", "opset1", [x, x])
        axis = integers(2 if how == "product" else -1)
        mean = self.add("ReduceMean", "opset1", [square, axis], keep_dims=True)
        some = [np.float32([[[eps]]]), mean] if how == "quotient" else [mean, np.float32(eps)]
        total = self.add("Add", "opset1", some)
        root = self.add("Sqrt", "opset1", [total])
        if how == "quotient":
            return self.add("Divide", "opset1", [x, root])
        inverse = self.add("Divide", "opset1", [np.float32(1), root])
        if how == "power":
            inverse = self.add("Power", "opset1", [total, np.float32(-0.5)])
        return self.add("Multiply", "opset1", [inverse, x] if how == "product" else [x, inverse])

    def heads(self, x: ir.Output, heads: int) -> ir.Output:
        y = self.add("Reshape", "opset1", [x, integers(0, 0, heads, -1)], special_zero=True)
        return self.add("Transpose", "opset1", [y, integers(0, 2, 1, 3)])

    def kept(self, x: ir.Output, name: str, beam: ir.Output) -> ir.Output:
        """What was seen before, and this."""
        _, heads, _, deep = x.tensor.shape
        shape = f"1,{heads},?,{deep}"
        begin = self.constant(np.zeros((1, int(heads), 0, int(deep)), "f4"))
        past = self.add("ReadValue", "opset6", [begin], variable_id=name, variable_type="f32",
                        variable_shape=shape)  # fmt: skip
        past = self.add("Gather", "opset8", [past, beam, self.constant(np.int64(0))])
        found = self.add("Concat", "opset1", [past, x], axis=-2)
        self.add("Assign", "opset6", [found], variable_id=name)
        return found


def text(
    *, kept: bool = False, shared: int = HEADS, layers: int = 2, causal: bool = False
) -> ir.Model:
    """A small transformer; it may keep what it has seen, and heads may share keys and values.

    What each word sees is told by an input, or these are all words up to it.
    """
    net = Net("text")
    words = net.parameter("words", "i64", "1,?" if kept else "?,?")
    seen = net.parameter("seen", "boolean", "1,1,?,?")
    beam = net.parameter("beam", "i32", "1") if kept else None
    x = net.add("Gather", "opset8", [net.weights(WORDS, WIDE, scale=1), words, np.int64(0)])
    for number in range(layers):
        y, each = net.norm(x), WIDE // HEADS
        query = net.heads(net.linear(y, WIDE), HEADS)
        key, value = (net.heads(net.linear(y, shared * each), shared) for _ in range(2))
        if beam is not None:
            key, value = (
                net.kept(one, f"{name}{number}", beam)
                for name, one in (("key", key), ("value", value))
            )
        if shared < HEADS:
            key, value = (repeated(net, one, shared, each) for one in (key, value))
        more = [] if causal else [seen]
        found = net.add("ScaledDotProductAttention", "opset13", [query, key, value, *more],
                        causal=causal)  # fmt: skip
        found = net.add("Transpose", "opset1", [found, integers(0, 2, 1, 3)])
        found = net.add("Reshape", "opset1", [found, integers(0, 0, WIDE)], special_zero=True)
        x = net.add("Add", "opset1", [x, net.linear(found, WIDE)])
        y = net.linear(net.norm(x), 2 * WIDE)
        gate = net.add("Swish", "opset4", [net.linear(net.norm(x), 2 * WIDE)])
        y = net.add("Multiply", "opset1", [gate, net.add("Gelu", "opset7", [y])])
        x = net.add("Add", "opset1", [net.linear(y, WIDE), x], name=f"sum{number}")
    net.result(net.norm(x), name="y")
    return net.model()


def repeated(net: Net, x: ir.Output, shared: int, each: int) -> ir.Output:
    """Keys or values of each head, for as many queries as follow each other."""
    times = HEADS // shared
    y = net.add("Unsqueeze", "opset1", [x, integers(2)])
    target = integers(1, shared, times, 1, each)
    y = net.add("Broadcast", "opset3", [y, target], mode="bidirectional")
    return net.add("Reshape", "opset1", [y, integers(0, HEADS, -1, each)], special_zero=True)


def given_words(count: int, before: int = 0, *, beam: bool = False) -> list[Array]:
    """So many words, of which each sees itself and those before."""
    rng = np.random.default_rng(count)
    words = rng.integers(0, WORDS, (1, count))
    seen = np.tri(count, before + count, before, dtype=bool)[None, None]
    return [words, seen, *([np.int32([0])] if beam else [])]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two texts one plan holds for all."""
    monkeypatch.setattr(patterns, "SIZES", 1)
    monkeypatch.setattr(patterns, "TEXTS", 1)
    # Small ones are shared, too.
    monkeypatch.setattr(loose_products, "SHARES", ((1 << 10, 2),))
    monkeypatch.setattr(loose_products, "STACKED", 1)
    monkeypatch.setattr(loose_norms, "MUCH", 1)
    monkeypatch.setattr(attention, "MANY", 3)
    monkeypatch.setattr(attention, "LARGE", 1)


def plans_of(program: ir.Program) -> list[tuple[patterns.Pattern, Planned]]:
    found = []
    for pattern, planned in program._plans.items():
        assert isinstance(planned, Planned)
        found.append((pattern, planned))
    return found


@pytest.mark.parametrize(("shared", "causal"), [(HEADS, False), (2, False), (HEADS, True)])
@pytest.mark.usefixtures("few")
def test_one_plan_holds_for_any_number_of_words(shared: int, causal: bool) -> None:
    model = text(shared=shared, causal=causal)
    program, alone = ir.compile(model, threads=2), ir.compile(model, threads=1)
    for count in (5, 9, 33, 2, 70, 9, 5, 33):
        found = program(given_words(count))
        assert_close(found, ir.run(model, given_words(count)))
        np.testing.assert_array_equal(found[0], alone(given_words(count))[0])
    (_, first), (pattern, texts) = sorted(plans_of(program), key=lambda one: openness(one[0]))
    assert pattern[0] == (1, SEVERAL)
    assert takes_texts(pattern)
    assert first.plan.inputs.keys() == texts.plan.inputs.keys()
    kinds = [node.layer.type for node in texts.plan.nodes]
    # All that follows products and norms is done with them.
    assert {"Gelu", "Swish"}.isdisjoint(kinds)
    assert kinds.count("MatMul") == 14
    assert kinds.count("MVN") == 7


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is planned for has to be a pattern of the shapes that there are."""
    choose = patterns.Patterns.choose

    def chosen(self: patterns.Patterns, shapes: patterns.Pattern) -> patterns.Pattern:
        found = choose(self, shapes)
        assert patterns.holds(found, shapes)
        return found

    monkeypatch.setattr(patterns.Patterns, "choose", chosen)


@pytest.mark.usefixtures("few", "fitting")
def test_each_number_of_texts_has_a_plan_of_its_own() -> None:
    model = text()
    program = ir.compile(model)
    for batch, count in ((1, 5), (1, 9), (2, 7), (2, 12), (3, 4), (2, 3), (1, 30)):
        words, seen = given_words(count)
        given = [np.concatenate([words, (words + 7) % WORDS, words])[:batch], seen]
        assert_close(program(given), ir.run(model, given))
    texts = [pattern[0] for pattern, _ in plans_of(program) if takes_texts(pattern)]
    assert sorted(texts, key=str) == [(1, SEVERAL), (2, SEVERAL), (3, SEVERAL)]


@pytest.mark.usefixtures("few")
def test_one_word_has_a_plan_of_its_own() -> None:
    model = text()
    program = ir.compile(model)
    for count in (5, 9, 1, 6, 1):
        assert_close(program(given_words(count)), ir.run(model, given_words(count)))
    assert [pattern[0] for pattern, _ in plans_of(program)].count((1, 1)) == 1


@pytest.mark.parametrize("shared", [HEADS, 2])
@pytest.mark.usefixtures("few", "fitting")
def test_prompts_of_any_length_are_followed_by_steps_with_a_plan_of_their_own(
    shared: int,
) -> None:
    model = text(kept=True, shared=shared)
    program, wanted = ir.compile(model, threads=2), ir.compile(model, exact=True)
    for count in (4, 7, 5, 11, 1, 6, 1):
        for one in (program, wanted):
            one.reset()
        before = 0
        for many in (count, count + 2, 1, 1, 1, 3, 1):  # further texts go on from there
            arrays = given_words(many, before, beam=True)
            assert_close(program(arrays), wanted(arrays))
            before += many
    texts = [pattern for pattern, _ in plans_of(program) if takes_texts(pattern)]
    assert texts[0][0] == (1, SEVERAL)
    # A step of one word goes by the plan that knows it is one.
    step = tuple(array.shape for array in given_words(1, 40, beam=True))
    past = (1, shared, 40, WIDE // HEADS)
    found = program._plans.find((*step, *[past] * 4))
    assert found is not None
    assert found[0] == (1, 1)


@pytest.mark.usefixtures("few")
def test_what_is_no_text_is_planned_for_each_size() -> None:
    net = Net("rows")
    x = net.parameter("x", "f32", ("?", WIDE))
    net.result(net.add("MatMul", "opset1", [x, net.weights(WIDE, WIDE)]))
    program = ir.compile(net.model())
    for count in (3, 5, 8, 4):
        program([numbers(count, WIDE)])
    assert [openness(pattern) for pattern, _ in plans_of(program)] == [0] * 4


@pytest.mark.usefixtures("few")
def test_without_memory_for_another_copy_of_weights_each_length_has_its_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns.budget, "fits", lambda nbytes: nbytes < 1000)
    program = ir.compile(text())
    for count in (5, 9, 7):
        program(given_words(count))
    assert not any(takes_texts(pattern) for pattern, _ in plans_of(program))


def test_several_lengths_have_plans_of_their_own_first() -> None:
    program, model = ir.compile(text(layers=1), threads=1), text(kept=True, layers=1)
    for count in range(2, patterns.SIZES + 4):
        program(given_words(3 * count))
    opened = [takes_texts(pattern) for pattern, _ in plans_of(program)]
    assert opened.count(True) == 1
    assert opened.count(False) == patterns.SIZES
    program = ir.compile(model, threads=1)
    for count in range(2, patterns.TEXTS + 5):
        program.reset()
        program(given_words(3 * count, beam=True))
    opened = [takes_texts(pattern) for pattern, _ in plans_of(program)]
    assert opened.count(True) == 1
    assert opened.count(False) == patterns.TEXTS


@pytest.mark.parametrize("most", [2**31 - 1, 2**63 - 1])
@pytest.mark.usefixtures("few")
def test_all_that_is_left_is_asked_for_by_the_largest_number(most: int) -> None:
    net = Net("neighbours")
    words = net.parameter("words", "i64", "1,?")
    x = net.add("Gather", "opset8", [net.weights(WORDS, WIDE), words, np.int64(0)])
    rest = net.add("Slice", "opset8", [x, *map(integers, (1, most, 1, 1))])
    moved = net.add("Pad", "opset1", [rest, integers(0, 0, 0), integers(0, 1, 0), np.float32(0)],
                    pad_mode="constant")  # fmt: skip
    net.result(net.linear(net.add("Add", "opset1", [moved, x]), WIDE))
    program = ir.compile(net.model())
    for count in (3, 9, 4, 12):
        given = np.random.default_rng(count).integers(0, WORDS, (1, count))
        assert_close(program([given]), ir.run(program.model, [given]))
    assert any(takes_texts(pattern) for pattern, _ in plans_of(program))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.usefixtures("few")
def test_where_inference_refuses_what_is_open_each_size_is_planned_for(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inferred, tried = patterns.infer_graph, []

    def refusing(model: Any, given: Any, **named: Any) -> Any:
        if any(not tensor.shape.is_static for tensor in given.values()):
            tried.append(given)
            raise ir.IRError("this is too little to go by")
        return inferred(model, given, **named)

    monkeypatch.setattr(patterns, "infer_graph", refusing)
    model = text(kept=kept, layers=1)
    program, wanted = ir.compile(model, threads=1), ir.compile(model, exact=True)
    for count in (4, 7, 5):
        for one in (program, wanted):
            one.reset()
        before = 0
        for many in (count, 1, 1, 1) if kept else (count,):
            arrays = given_words(many, before, beam=kept)
            assert_close(program(arrays), wanted(arrays))
            before += many
    assert not any(openness(pattern) for pattern, _ in plans_of(program))
    # Once is enough to see it.
    often = len(tried)
    assert often
    for many in range(before, before + 3) if kept else ():
        program(given_words(1, many, beam=True))
    assert len(tried) == often


# What follows.

#: What may follow a product: a layer on ``x``, and on what else there is.
STEPS: dict[str, Callable[[Net, ir.Output, ir.Output], ir.Output]] = {
    "line": lambda net, x, r: net.add("Add", "opset1", [x, net.weights(net.wide)]),
    "number": lambda net, x, r: net.add("Multiply", "opset1", [x, net.weights(1)]),
    "from": lambda net, x, r: net.add("Subtract", "opset1", [net.weights(1, 1, net.wide), x]),
    "over": lambda net, x, r: net.add("Divide", "opset1", [x, np.float32(3)]),
    "most": lambda net, x, r: net.add("Maximum", "opset1", [x, r]),
    "beside": lambda net, x, r: net.add("Add", "opset1", [r, x]),
    "less": lambda net, x, r: net.add("Subtract", "opset1", [r, x]),
    "row": lambda net, x, r: net.add(
        "Add", "opset1", [x, net.add("ReduceMax", "opset1", [r, integers(1)], keep_dims=True)]
    ),
    "gelu": lambda net, x, r: net.add("Gelu", "opset7", [x], approximation_mode="TANH"),
    "swish": lambda net, x, r: net.add("Swish", "opset4", [x, np.float32(1.5)]),
    "relu": lambda net, x, r: net.add("ReLU", "opset1", [x]),
    "hard": lambda net, x, r: net.add(
        "HardSigmoid", "opset1", [x, np.float32(0.3), np.float32(0.6)]
    ),
    "clamp": lambda net, x, r: net.add("Clamp", "opset1", [x], min=-1, max=1.5),
    "elu": lambda net, x, r: net.add("Elu", "opset1", [x], alpha=0.7),
    "abs": lambda net, x, r: net.add("Abs", "opset1", [x]),
    "apart": lambda net, x, r: net.add("SquaredDifference", "opset1", [net.weights(net.wide), x]),
    "levels": lambda net, x, r: net.add(
        "FakeQuantize", "opset1", [x, *map(np.float32, (-1, 1, -1, 1))], levels=255
    ),
    "higher": lambda net, x, r: net.add("Add", "opset1", [x, net.weights(2, 1, 1, net.wide)]),
    "slopes": lambda net, x, r: net.add("PReLU", "opset1", [x, np.float32([0.2])]),
}  # fmt: skip


#: What they follow.
HEADED = ["linear", "wide", "turned", "experts", "shared", "norm-1", "norm2", "norm1"]


def chain(head: str, steps: list[str], *, twice: bool = False) -> ir.Model:
    """A product or a norm, and steps that follow; others may read what comes between."""
    net = Net("chain")
    if head == "wide":  # several blocks of columns
        net.wide = 5 * WIDE
    words = net.parameter("words", "i64", "1,?")
    rows = net.add("Gather", "opset8", [net.weights(WORDS, net.wide), words, np.int64(0)])
    all_rows = rows
    if head in ("experts", "shared"):
        all_rows = net.add("Multiply", "opset1", [rows, net.weights(3, 1, 1)])
    beside = net.add("Sigmoid", "opset1", [all_rows])
    if head in ("experts", "shared"):
        weights = net.weights(3, net.wide, net.wide)
        given = all_rows if head == "experts" else rows
        x = net.add("MatMul", "opset1", [given, weights], transpose_b=head == "shared")
    elif head.startswith("norm"):
        x = net.norm(rows, int(head[4:]))
    elif head == "turned":
        x = net.add("MatMul", "opset1", [rows, net.weights(net.wide, net.wide)])
    else:
        x = net.linear(rows, net.wide)
    for number, step in enumerate(steps):
        x = STEPS[step](net, x, beside)
        if twice and number == len(steps) // 2:
            net.result(x, name="between")
    net.result(x, name="y")
    return net.model()


def assert_follows(model: ir.Model, counts: list[int]) -> None:
    """Whether texts of these lengths give what the definitions give, for any threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "SIZES", 1)
        patch.setattr(loose_products, "SHARES", ((1 << 10, 2),))
        patch.setattr(loose_norms, "MUCH", 1)
        # One that rounds takes too long there, but where sizes grow.
        patch.setattr(patterns, "SLOW", patterns.SLOW - {"FakeQuantize"})
        program, alone = ir.compile(model, threads=2), ir.compile(model, threads=1)
        for count in (*counts, counts[2]):
            words = np.random.default_rng(count).integers(0, WORDS, (1, count))
            found = program([words])
            assert_close(found, ir.run(model, [words]))
            for one, other in zip(found.values(), alone([words]).values(), strict=True):
                np.testing.assert_array_equal(one, other)
        assert any(takes_texts(pattern) for pattern, _ in plans_of(program))


@pytest.mark.parametrize("step", sorted(STEPS))
@pytest.mark.parametrize("head", HEADED)
def test_each_step_follows_products_and_norms(head: str, step: str) -> None:
    assert_follows(chain(head, [step, "line"]), [3, 20, 9])


@settings(max_examples=40, deadline=None)
@given(
    head=st.sampled_from(HEADED),
    steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=5),
    twice=st.booleans(),
    counts=st.lists(st.integers(2, 150), min_size=4, max_size=4, unique=True),
)
def test_whatever_follows_is_what_the_definitions_give(
    head: str, steps: list[str], twice: bool, counts: list[int]
) -> None:
    assert_follows(chain(head, steps, twice=twice), counts)


@pytest.mark.usefixtures("few")
def test_shapes_that_do_not_go_together_are_told_of_the_layer_that_joins_them() -> None:
    net = Net("two")
    rows = []
    for name in ("words", "others"):
        words = net.parameter(name, "i64", "1,?")
        rows.append(net.add("Gather", "opset8", [net.weights(WORDS, WIDE), words, np.int64(0)]))
    x = net.linear(rows[0], WIDE)
    net.result(net.add("Add", "opset1", [x, rows[1]], name="joins"))
    program = ir.compile(net.model())
    for count in (3, 5, 7):
        program([np.zeros((1, count), np.int64)] * 2)
    assert any(takes_texts(pattern) for pattern, _ in plans_of(program))
    with pytest.raises(ir.IRError, match=r'"joins".*4.*9'):
        program([np.zeros((1, 4), np.int64), np.zeros((1, 9), np.int64)])
    # One row goes with any.
    found = program([np.zeros((1, 4), np.int64), np.zeros((1, 1), np.int64)])
    assert found[0].shape == (1, 4, WIDE)


@pytest.mark.usefixtures("few")
def test_a_constant_for_each_word_is_none_for_each_column() -> None:
    net = Net("columns")
    words = net.parameter("words", "i64", "1,?")
    rows = net.add("Gather", "opset8", [net.weights(WORDS, WIDE), words, np.int64(0)])
    net.result(net.add("Add", "opset1", [net.linear(rows, WIDE), net.weights(WIDE, 1)]))
    program = ir.compile(net.model())
    for count in (5, WIDE, 9, WIDE):
        given = np.random.default_rng(count).integers(0, WORDS, (1, count))
        if count == WIDE:
            assert_close(program([given]), ir.run(program.model, [given]))
        else:
            with pytest.raises(ir.IRError, match="do not broadcast"):
                program([given])


@pytest.mark.parametrize("head", ["wide", "experts", "norm-1"])
@pytest.mark.usefixtures("few")
def test_steps_that_are_kept_are_of_memory_that_is_kept(head: str) -> None:
    program = ir.compile(chain(head, ["gelu", "line", "swish"]), threads=2)
    for count in (3, 9, 40, 2, 17):
        program([np.zeros((1, count), np.int64)])
    (texts,) = (planned for pattern, planned in plans_of(program) if takes_texts(pattern))
    seen = 0
    for rooms in texts.outside._crew._rooms:
        places = [(room.ctypes.data, room.nbytes) for room in rooms.rooms.values()]
        for _, _, address in rooms.parts:
            assert any(begin <= address < begin + size for begin, size in places)
            seen += 1
    assert seen


@pytest.mark.usefixtures("few")
def test_memory_is_asked_for_where_it_is_limited() -> None:
    program = ir.compile(text(layers=1))
    for count in (3, 5, 7):
        program(given_words(count))
    program.max_memory = 1 << 16
    with pytest.raises(LimitError):
        program(given_words(300))
    program.max_memory = None
    assert_close(program(given_words(300)), ir.run(program.model, given_words(300)))


def test_what_malloc_keeps_is_counted_where_memory_is_limited() -> None:
    ask_for(1 << 12)
    with within(1 << 11, None):
        ask_for(1 << 11)
        with pytest.raises(LimitError):
            ask_for(1 << 12)


@pytest.mark.parametrize("how", ["divide", "product", "quotient", "power"])
@pytest.mark.usefixtures("few")
def test_root_mean_squares_that_are_written_out_are_one_step(how: str) -> None:
    net = Net("rows")
    words = net.parameter("words", "i64", "1,?")
    rows = net.add("Gather", "opset8", [net.weights(WORDS, WIDE), words, np.int64(0)])
    x = net.add("Multiply", "opset1", [net.root_mean(rows, how), net.weights(WIDE)])
    net.result(net.linear(x, WIDE))
    # Nothing of the kind: a mean of other numbers, along another axis, with nothing added.
    other = net.add("Abs", "opset1", [rows])
    mean = net.add("ReduceMean", "opset1",
                   [net.add("Multiply", "opset1", [other, other]), integers(1)],
                   keep_dims=True)  # fmt: skip
    root = net.add("Sqrt", "opset1", [net.add("Add", "opset1", [mean, np.float32(1)])])
    net.result(net.add("Divide", "opset1", [other, root]))
    net.result(net.add("Divide", "opset1", [net.root_mean(other, how, 1.5), root]))
    program = ir.compile(net.model(), threads=2)
    for count in (3, 9, 40, 2):
        given = np.random.default_rng(count).integers(0, WORDS, (1, count))
        assert_close(program([given]), ir.run(program.model, [given]))
    kinds = [
        node.layer.type
        for pattern, planned in plans_of(program) if takes_texts(pattern)
        for node in planned.plan.nodes
    ]  # fmt: skip
    assert kinds.count("ReduceMean") == 1
    assert kinds.count("Power") == 0


# Who works.


def test_what_goes_wrong_in_a_thread_is_raised() -> None:
    done: list[int] = []

    def wrong() -> None:
        raise ValueError("this one")

    some = Crew(3, list)
    calls: list[Any] = [lambda: done.append(0), wrong, lambda: done.append(2)]
    with pytest.raises(ValueError, match="this one"):
        some.work(calls)
    some.work([lambda: done.append(5), lambda: done.append(6)])
    assert {5, 6} <= set(done)
    some.rest()


def test_where_no_threads_are_to_be_had_the_caller_does_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any) -> None:
        raise HelpersLostError

    monkeypatch.setattr(crew, "Threads", refused)
    done: list[int] = []
    Crew(4, list).work([lambda: done.append(1), lambda: done.append(2)])
    assert done == [1, 2]


def test_memory_of_a_call_is_the_same_each_time() -> None:
    some: Crew[list[int]] = Crew(2, list)
    some.rooms(1).append(7)
    assert some.rooms(1) == [7]
    assert some.rooms(0) == []
