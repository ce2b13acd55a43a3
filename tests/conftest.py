"""Where the tests find things: the package from a bare checkout, and files that OpenVINO wrote.

Everything that matters is tested on files that the tests make or the project ships. Where the
folder ``shared`` lies beside the checkout, its files are gone through as well (``-m shared``).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import types
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, browser, chromium
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"

#: Which part of each table of cases is run: 1/3 is the first of three.
PART = os.environ.get("VINOIR_PART", "1/1")

# A machine with other work is no reason to fail.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")

if importlib.util.find_spec("vinoir") is None:
    namespace = types.ModuleType("vinoir")
    namespace.__path__ = [str(ROOT)]
    sys.modules["vinoir"] = namespace


@pytest.fixture(scope="module")
def integers_are_quick() -> Iterator[None]:
    """Products of integers are taken on any processor, also where numbers are as quick."""
    from vinoir.ir.engine.plan import quantized
    from vinoir.ir.engine.workers import integer_products

    library = integer_products()
    with pytest.MonkeyPatch.context() as patch:
        if library is not None:
            patch.setattr(library, "rate", max(library.rate, 2.0))
        # Small networks have small sums.
        patch.setattr(quantized, "SUMMED", -1e9)
        yield


@pytest.fixture
def vinoir(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[Any], str]]:
    """Runs a verb over many models: its exit code, the lines of JSON, what it says beside."""
    from vinoir.ir.cli import main

    def call(*words: object) -> tuple[int, list[Any], str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        return int(left.value.code or 0), [json.loads(line) for line in out.splitlines()], err

    return call


class Written:
    """IR files that OpenVINO wrote, by operation and version: ``Gather.8.0.xml``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self, name: str = "*") -> list[Path]:
        """The files of a name, which may hold wildcards; there is at least one."""
        found = sorted(self.folder.glob(f"{name}.xml"))
        assert found, f"no file of OpenVINO is called {name}"
        return found

    def first(self, name: str) -> Path:
        return self.all(name)[0]


#: Where files of OpenVINO come from.
SOURCES = ["made", pytest.param("shared", marks=pytest.mark.shared)]


@pytest.fixture(scope="session", params=SOURCES if SHARED.is_dir() else SOURCES[:1])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Files that OpenVINO wrote: those made here and those of the shared data."""
    if request.param == "shared":
        return Written(SHARED / "witness")
    found: Written = request.getfixturevalue("made")
    return found


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Files that OpenVINO writes here and now: every operation version, bodies, networks."""
    pytest.importorskip("openvino")
    folder = tmp_path_factory.mktemp("written")
    program = Path(__file__).with_name("openvino_files.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, program, folder], env=environment, check=True)
    return Written(folder)


def in_part(names: Iterable[str], part: str) -> Iterator[bool]:
    """Whether each of these tests is in a part: some cases of each table, at least its last one.

    Their names decide, not their places: every so many would be one column of a table of columns.
    """
    number, count = map(int, part.split("/"))
    names = list(names)
    left = Counter(name.partition("[")[0] for name in names)
    met: set[str] = set()
    for name in names:
        table = name.partition("[")[0]
        left[table] -= 1
        chosen = zlib.crc32(name.encode()) % count == number % count
        chosen |= not left[table] and table not in met
        if chosen:
            met.add(table)
        yield chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What goes through shared data or a browser is left out where there is none, and other parts.

    ``test_shared`` and ``test_pictures`` say what there is none of, once for all.
    """
    lacking = {
        name
        for name, is_there in (("shared", SHARED.is_dir()), ("browser", chromium() is not None))
        if not is_there
    }
    chosen = in_part((item.nodeid for item in items), PART)
    gone = [
        item
        for item, is_in in zip(items, chosen, strict=True)
        if not is_in or lacking & {mark.name for mark in item.iter_markers()}
    ]
    if gone:
        config.hook.pytest_deselected(items=gone)
        left_out = set(gone)
        items[:] = [item for item in items if item not in left_out]


#: The generators of numbers that test files share among their tests, as they are at first.
_generators: list[tuple[np.random.Generator, Any]] = []


def pytest_collection_finish() -> None:
    """Remember where the generators of all test files stand."""
    folder = str(ROOT / "tests")
    found = {
        id(value): value
        for module in list(sys.modules.values())
        if str(getattr(module, "__file__", None)).startswith(folder)
        for value in vars(module).values()
        if isinstance(value, np.random.Generator)
    }
    _generators[:] = [(value, value.bit_generator.state) for value in found.values()]


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser of a profile of its own."""
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def tab(chrome: Browser, page: str) -> Iterator[Browser]:
    """A page that is looked at, which has nothing to complain of at the end."""
    chrome.session = None
    chrome.said.clear()
    chrome.open(page)
    yield chrome
    assert chrome.troubles() == []


@pytest.fixture(autouse=True)
def the_same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it in its process."""
    for generator, state in _generators:
        generator.bit_generator.state = state


@pytest.fixture(autouse=True)
def programs_in_earnest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the tests of programs work is shared, however little, and each pass is verified."""
    if request.path.name.startswith("test_program"):
        from vinoir.ir.engine.passes import optimize
        from vinoir.ir.engine.plan.nodes import Plan

        monkeypatch.setattr("vinoir.ir.engine.planned.SMALL", 0)
        verified = partial(optimize, after_each=Plan.verify)
        monkeypatch.setattr("vinoir.ir.engine.planned.optimize", verified)
