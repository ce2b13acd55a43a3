"""Operations of installed packages: found by their entry point when a type is not known."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.layers import Op, base

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
