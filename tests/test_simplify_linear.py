"""Numbers moved before what moves elements: of random shapes, along random axes."""

from __future__ import annotations

import numpy as np
import pytest
from simplify_patterns import Net, network
from test_simplify import alike, kinds, size
from vinoir import ir

RULE = "linear-through-movements"


def moved(n: Net, x: ir.Output, random: np.random.Generator) -> ir.Output:
    """Elements of a tensor moved in some way."""
    shape = x.tensor.shape.static
    rank = len(shape)
    axis = int(random.integers(rank))
    match random.choice(
        ["Transpose", "Gather", "select", "Slice", "Reshape", "split", "Unsqueeze"]
    ):
        case "Transpose":
            return n("Transpose", x, [int(one) for one in random.permutation(rank)])
        case "Gather":
            rows = random.integers(shape[axis], size=int(random.integers(1, 4)))
            return n("Gather", x, [int(one) for one in rows], axis - rank, opset=8)
        case "select" if rank > 2:
            return n("Gather", x, 0, axis, opset=8)
        case "Slice":
            return n("Slice", x, [0], [int(random.integers(1, 9))], [1], [axis], opset=8)
        case "Reshape" if rank > 2:
            at = int(random.integers(rank - 1))
            joined = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
            return n("Reshape", x, joined, special_zero=False)
        case "split" if shape[axis] % 2 == 0:
            cut = [*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :]]
            return n("Reshape", x, cut, special_zero=False)
    return n("Unsqueeze", x, [axis])


def fixed(n: Net, x: ir.Output, random: np.random.Generator) -> ir.Output:
    """Numbers that vary along one or two axes of a tensor, or none."""
    shape = x.tensor.shape.static
    axes = random.choice(len(shape), size=min(int(random.integers(3)), len(shape)), replace=False)
    sizes = [one if axis in axes else 1 for axis, one in enumerate(shape)]
    while sizes and sizes[0] == 1 and random.random() < 0.5:
        del sizes[0]
    return n.numbers(*sizes)


def built(seed: int) -> ir.Model:
    random = np.random.default_rng(seed)
    shape = [int(one) for one in random.integers(1, 7, size=int(random.integers(2, 5)))]
    words = ("Add", "Subtract", "Multiply", "Divide")

    def build(n: Net, x: ir.Output) -> ir.Output:
        y = n("Sin", x)
        for _ in range(int(random.integers(1, 3))):
            y = n(str(random.choice(words)), y, fixed(n, y, random))
        for _ in range(int(random.integers(1, 4))):
            y = moved(n, y, random)
        return n("Exp", n(str(random.choice(words)), y, fixed(n, y, random)))

    return network(",".join(map(str, shape)), build)


@pytest.mark.parametrize("part", range(5))
def test_random_movements(part: int) -> None:
    applied = 0
    for seed in range(40 * part, 40 * part + 40):
        model = built(seed)
        without, _ = ir.simplify(model, skip=[RULE])
        new, done = ir.simplify(model)
        times = done.rules.get(RULE, 0)
        applied += times
        assert len(kinds(new)) == len(kinds(without)) - times
        assert size(new) <= size(model)
        alike(model, new, asked=bool(times) and seed % 4 == 0)
    assert applied >= 3


@pytest.mark.parametrize("seed", range(30))
def test_what_is_quantized_later_keeps_every_bit(seed: int) -> None:
    """Values that stand between two levels would fall to the other, and be off by a whole step."""
    random = np.random.default_rng(seed)
    shape = [int(one) for one in random.integers(2, 9, size=3)]
    words = ("Add", "Subtract", "Multiply", "Divide")

    def build(n: Net, x: ir.Output) -> ir.Output:
        y = n("Sin", x)
        for _ in range(3):
            y = n(str(random.choice(words)), y, fixed(n, y, random))
        if random.random() < 0.5:
            y = n(str(random.choice(words)), moved(n, y, random), 0.7)
        y = n("Tanh", y) if random.random() < 0.5 else y
        return n("Exp", n("FakeQuantize", y, -9.0, 9.0, -9.0, 9.0, levels=1 << 22))

    model = network(",".join(map(str, shape)), build)
    new, done = ir.simplify(model)
    assert not {"linear-chains", RULE} & set(done.rules)
    alike(model, new, exact=True, asked=False)


def test_what_comes_after_the_last_quantization_is_joined() -> None:
    def build(n: Net, x: ir.Output) -> ir.Output:
        y = n("Exp", n("FakeQuantize", n("Multiply", n("Multiply", x, 0.3), 0.7),
                       -9.0, 9.0, -9.0, 9.0, levels=256))  # fmt: skip
        return n("Multiply", n("Multiply", y, 0.3), 0.7)

    new, done = ir.simplify(network("2,3", build))
    assert done.rules["linear-chains"] == 1
    assert kinds(new) == ["Exp", "FakeQuantize", "Multiply", "Multiply", "Multiply"]


@pytest.mark.parametrize("seed", range(24))
def test_random_softmax_between_reshapes(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = [int(one) for one in random.integers(1, 5, size=4)]

    def reshaped(n: Net, x: ir.Output) -> ir.Output:
        sizes = list(x.tensor.shape.static)
        at = int(random.integers(len(sizes) - 1))
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        return n("Reshape", x, sizes, special_zero=False)

    def build(n: Net, x: ir.Output) -> ir.Output:
        y = reshaped(n, n("Sin", x))
        kind, opset = ("SoftMax", 8) if random.random() < 0.5 else ("LogSoftmax", 5)
        y = n(kind, y, opset=opset, axis=int(random.integers(-3, 3)))
        y = reshaped(n, y) if random.random() < 0.5 else n(
            "Reshape", y, shape, special_zero=False)  # fmt: skip
        return n("Exp", y)

    model = network(",".join(map(str, shape)), build)
    without, _ = ir.simplify(model, skip=["softmax-between-reshapes"])
    new, done = ir.simplify(model)
    applied = done.rules.get("softmax-between-reshapes", 0)
    assert len(kinds(new)) <= len(kinds(without)) - applied
    alike(model, new, asked=bool(applied) and seed % 2 == 0)
