"""Operations of installed packages: found by their entry point when a type is not known."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from vinoir import ir
from vinoir.layers import Op, base
from vinoir.schemas import Array, Shape, Tensor

PLUGIN = '''
from typing import ClassVar
from vinoir.layers import Op


class TwiceV1(Op):
    """Twice its input."""

    also: ClassVar[frozenset[str]] = frozenset({"extension"})

    def infer(self, x):
        return (x,)

    def run(self, x):
        return (2 * x,)
'''


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "doubling.py").write_text(PLUGIN, "utf-8")
    information = tmp_path / "doubling-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: doubling\nVersion: 1.0\n", "utf-8")
    (information / "entry_points.txt").write_text("[vinoir.operations]\nx = doubling\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.metadata.MetadataPathFinder().invalidate_caches()
    base._plugins.cache_clear()
    yield
    Op.registry.pop(("Twice", 1), None)
    sys.modules.pop("doubling", None)
    for cached in (base._plugins, base._versions, base._spellings):
        cached.cache_clear()


@pytest.mark.usefixtures("_installed")
def test_an_installed_package_brings_its_operations() -> None:
    assert ("Twice", 1) not in Op.registry
    net = ir.Builder()
    x = net.parameter("x", "f32", "3")
    net.result(net.add("Twice", "extension", [x]), name="y")
    given = np.array([1, 2, 3], "f4")
    np.testing.assert_array_equal(ir.run(net.model(), [given])["y"], 2 * given)


@pytest.mark.usefixtures("_installed")
def test_an_installed_operation_is_called_as_any_other() -> None:
    assert not hasattr(ir.ops, "Twise")
    net = ir.Builder()
    made = ir.ops.Twice(net.parameter("x", "f32", "3"), name="two")  # type: ignore[attr-defined]
    net.result(made, name="y")
    assert (made.layer.version, made.layer.name) == ("extension", "two")
    assert "Twice" in dir(ir.ops)
    del ir.ops.Twice  # type: ignore[attr-defined]  # which it keeps
    given = np.array([1, 2, 3], "f4")
    np.testing.assert_array_equal(ir.run(net.model(), [given])["y"], 2 * given)


@pytest.fixture
def _imported(
    text: str, key: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A module of one operation, imported as somebody's script would."""
    (tmp_path / "their_operations.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("their_operations")
    yield
    Op.registry.pop(key, None)
    sys.modules.pop("their_operations", None)
    for cached in (base._versions, base._spellings):
        cached.cache_clear()


CENTERED = '''
from typing import ClassVar
from vinoir.layers.elementwise import Unary


class CenteredV1(Unary):
    """Numbers less their mean: no function of each by itself, whatever it derives from."""

    also: ClassVar[frozenset[str]] = frozenset({"extension"})

    def run(self, data):
        return (data - data.mean(dtype="f8").astype("f4"),)
'''


@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize(("text", "key"), [(CENTERED, ("Centered", 1))])
def test_an_operation_is_not_taken_for_what_it_derives_from() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (40, 3000))
    y = net.add("Centered", "extension", [net.add("ReLU", "opset1", [x])])
    net.result(y, name="y")
    model = net.model()
    given = np.random.default_rng(0).standard_normal((40, 3000)).astype("f4")
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)([given])["y"]
        np.testing.assert_array_equal(found, ir.run(model, [given])["y"])


POOLING = '''
from typing import ClassVar
from vinoir.layers import Op
from vinoir.layers.pooling import MaxPoolV14


class MaxPoolV18(MaxPoolV14):
    """A version to come, whose windows give another number."""

    since: ClassVar[int] = 18

    def run(self, data):
        largest, places = super().run(data)
        return largest + 1, places
'''


@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize(("text", "key"), [(POOLING, ("MaxPool", 18))])
@pytest.mark.parametrize("sizes", [(1, 3, 8, 8), (2, 3, 9)], ids=str)
def test_a_version_of_a_plugin_is_computed_by_its_own_definition(sizes: tuple[int, ...]) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", sizes)
    axes = len(sizes) - 2
    words = dict.fromkeys(("kernel", "strides"), (2,) * axes)
    words |= dict.fromkeys(("pads_begin", "pads_end"), (0,) * axes)
    # Between operations that the engine joins with those it computes itself.
    before = net.add("ReLU", "opset1", [x])
    ours = net.add("MaxPool", "opset14", [before], **words)[0]
    theirs = net.add("MaxPool", "opset18", [before], **words)[0]
    net.result(
        net.add("ReLU", "opset1", [net.add("Subtract", "opset1", [theirs, ours])]), name="y"
    )
    model = net.model()
    given = [np.random.default_rng(0).standard_normal(sizes).astype("f4")]
    for outputs in (ir.run(model, given), ir.compile(model)(given)):
        np.testing.assert_allclose(outputs["y"], 1, rtol=1e-6)


@pytest.fixture
def _bridges() -> Iterator[None]:
    """Operations that hand on what they take, by ways which NumPy's views do not tell of."""

    class Handed(Op):
        def infer(self, x: Tensor) -> tuple[Tensor, ...]:
            return (Tensor(x.type, Shape.parse("?,64")),)

    class ThroughDlpackV1(Handed):
        also = frozenset({"extension"})

        def run(self, x: Array) -> tuple[Array, ...]:
            return (np.from_dlpack(x),)

    class ThroughInterfaceV1(Handed):
        also = frozenset({"extension"})

        def run(self, x: Array) -> tuple[Array, ...]:
            held = SimpleNamespace(kept=x, __array_interface__=x.__array_interface__)
            return (np.asarray(held),)

    yield
    for name in ("ThroughDlpack", "ThroughInterface"):
        Op.registry.pop((name, 1), None)
    for cached in (base._plugins, base._versions, base._spellings):
        cached.cache_clear()


@pytest.mark.usefixtures("_bridges")
@pytest.mark.parametrize("kind", ["ThroughDlpack", "ThroughInterface"])
def test_what_is_handed_on_by_a_bridge_is_copied_out_of_the_arena(kind: str) -> None:
    net = ir.Builder()
    x = y = net.parameter("x", "f32", "64,64")
    handed = net.add(kind, "extension", [net.add("MatMul", "opset1", [x, x])])
    for _ in range(6):  # these come to lie where the first product did
        y = net.add("MatMul", "opset1", [y, x])
    net.result(net.add("Add", "opset1", [net.add("Tanh", "opset1", [y]), handed]), name="sum")
    net.result(handed, name="handed")
    given = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype("f4")
    wanted = ir.run(net.model(), {"x": given})
    program = ir.compile(net.model())
    found = program({"x": given})
    program({"x": -3 * given})
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-5)
