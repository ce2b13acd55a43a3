"""The walls of the house: who may import whom, rooms behind their faces, files short."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from vinoir import ir

ROOT = Path(__file__).parents[1]
#: What each folder may import from.
FOLDERS: dict[str, set[str]] = {
    "schemas": set(),
    "layers": {"schemas"},
    "ir": {"layers", "schemas"},
}
#: The rooms of ir/ in the order in which a model passes them, and what each may import.
ROOMS: dict[str, set[str]] = {
    "storage": set(),
    "text": {"storage"},
    "document": {"storage", "text"},
    "inference": {"document"},
    "files": {"storage", "text", "document", "inference"},
    "execution": {"document", "inference"},
    "engine": {"document", "inference", "execution"},
    "checking": {"storage", "text", "document", "files", "inference"},
    # A changed model is run beside the one it was made from, large ones by the engine.
    "surgery": {"storage", "document", "files", "inference", "execution", "engine", "checking"},
    "comparing": {"storage", "document", "files", "inference", "execution", "engine", "surgery"},
    "display": {"storage", "document", "inference"},
    # What is imported is simplified as it comes.
    "onnx": {"storage", "document", "inference", "surgery"},
    "measuring": {"document", "execution", "engine"},
    "fleet": {"storage", "document", "files", "inference", "engine"},
    "cli": {
        "storage", "document", "files", "inference", "execution", "engine", "checking",
        "surgery", "comparing", "display", "onnx", "measuring", "fleet",
    },
}  # fmt: skip
#: The same within engine/.
ENGINE: dict[str, set[str]] = {
    "plan": set(),
    "passes": {"plan"},
    "memory": {"plan"},
    "workers": set(),
    "kernels": {"plan", "memory", "workers"},
}
#: Pairs of files that know each other's types, and nothing else of each other.
TYPE_PAIR = {
    ("ir.document.layer", "ir.document.graph"),
    ("ir.document.parts", "ir.document.layer"),
    ("ir.document.layer", "ir.document.model"),
    ("ir.document.graph", "ir.document.model"),
}

#: What the package ``vinoir`` itself holds; it lies under ir/ that no fourth folder is needed.
PACKAGE = ROOT / "ir/package"

#: What rooms offer of rooms above them, imported when it is called: the room, and what it has.
DOORS = {
    ("display", "html"),
    ("files", "read"),
    ("surgery", "Session"),
    ("surgery", "body_at"),
    ("surgery", "settle"),
}

SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


class Import(NamedTuple):
    """One name that a file takes from another: at its head, later, or for types alone."""

    line: int
    module: str
    name: str
    typed: bool


def parts_of(path: Path) -> tuple[str, ...]:
    """A file's place in the package that is installed."""
    return path.relative_to(PACKAGE if PACKAGE in path.parents else ROOT).with_suffix("").parts


def module_of(path: Path) -> str:
    parts = parts_of(path)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCES}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports_of(path: Path) -> list[Import]:
    """Every relative import of a file, also those in functions and for type checkers."""
    tree, imports = tree_of(path), []
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    here = parts_of(path)[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = [*here[: len(here) - node.level + 1], *(node.module or "").split(".")]
            module = ".".join(part for part in place if part)
            for alias in node.names:
                inner = f"{module}.{alias.name}".lstrip(".")
                found, name = (inner, "") if inner in MODULES else (module, alias.name)
                imports.append(Import(node.lineno, found, name, id(node) in typed))
    return imports


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


#: What is done again in each turn.
TURNS = ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
#: What makes a collection, however large, to look one thing up.
MAKERS = ast.BinOp, ast.ListComp, ast.SetComp, ast.DictComp
CALLED = {"dict", "frozenset", "list", "set", "sorted", "tuple"}
UNITED = "a | b", "a - b", "{x for x in a}", "[*a]", "set(a)"


def looked_up_anew(tree: ast.AST) -> Iterator[ast.Compare]:
    """Where a loop makes a collection at each turn, not of constants alone, to look one up."""
    met: list[tuple[ast.AST, bool]] = [(tree, False)]
    while met:
        node, in_loop = met.pop()
        inner = in_loop or isinstance(node, TURNS)
        met += [(child, inner) for child in ast.iter_child_nodes(node)]
        if not (in_loop and isinstance(node, ast.Compare)):
            continue
        if not isinstance(node.ops[0], ast.In | ast.NotIn):
            continue
        wanted = node.comparators[0]
        united = isinstance(wanted, ast.List | ast.Set) and any(
            isinstance(one, ast.Starred) for one in wanted.elts
        )
        united |= isinstance(wanted, ast.Call) and getattr(wanted.func, "id", "") in CALLED
        names = {name.id for name in ast.walk(wanted) if isinstance(name, ast.Name)} - CALLED
        if (united or isinstance(wanted, MAKERS)) and not all(map(str.isupper, names)):
            yield node


@pytest.mark.parametrize("united", UNITED)
def test_what_is_looked_up_anew_is_found(united: str) -> None:
    for text in (f"for x in y:\n  if x in {united}: pass", f"[x for x in y if x not in {united}]"):
        assert len(list(looked_up_anew(ast.parse(text)))) == 1
    assert not list(looked_up_anew(ast.parse(f"if x in {united}: pass")))
    assert not list(looked_up_anew(ast.parse("while y:\n  if x in A | B: pass")))


def test_no_loop_makes_a_collection_to_look_one_thing_up() -> None:
    """Each turn would take as long as all: ninety thousand layers took half a minute more."""
    assert not [
        f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in SOURCES
        for node in looked_up_anew(tree_of(path))
    ]


def ways_up(path: Path) -> Iterator[str]:
    """What a file imports by the package's name, or from a folder that its own may not know."""
    own = parts_of(path)[0]
    for node in ast.walk(tree_of(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0] in {"vinoir", *FOLDERS}:
                yield f"{named(path)}: {name}"
    for found in imports_of(path):
        head = found.module.split(".")[0]
        allowed = FOLDERS[own] if own in FOLDERS else FOLDERS.keys()
        if head != own and head not in allowed:
            yield f"{named(path)}:{found.line}: {found.module}"


def test_imports_go_one_way() -> None:
    assert not [way for path in SOURCES for way in ways_up(path)]


def holes(path: Path, rooms: dict[str, set[str]], depth: int) -> Iterator[str]:
    """What a file of a room takes from another room that it may not, or past its face."""
    parts = module_of(path).split(".")
    own = parts[depth] if len(parts) > depth and parts[depth] in rooms else None
    for found in imports_of(path):
        place = found.module.split(".")
        if place[:depth] != parts[:depth] or len(place) <= depth:
            continue
        room = place[depth]
        if room not in rooms or room == own:
            continue
        where = f"{named(path)}:{found.line}: {found.module}"
        if own is not None and room not in rooms[own]:
            yield f"{where}: {own} may not import {room}"
        if len(place) != depth + 1:
            yield f"{where}: past the face of {room}"


def test_rooms_import_downwards_and_through_faces() -> None:
    inner = [path for path in SOURCES if named(path).startswith("ir/")]
    engine = [path for path in inner if module_of(path).startswith("ir.engine")]
    found = [hole for path in inner for hole in holes(path, ROOMS, 1)]
    assert not found + [hole for path in engine for hole in holes(path, ENGINE, 2)]


def test_every_folder_of_ir_is_a_room() -> None:
    for rooms, folder in ((ROOMS, ROOT / "ir"), (ENGINE, ROOT / "ir/engine")):
        found = {path.parent for path in folder.glob("*/__init__.py")} - {PACKAGE}
        assert {path.name for path in found} == set(rooms)


@pytest.mark.parametrize("rooms", [ROOMS, ENGINE], ids=["ir", "engine"])
def test_rooms_stand_in_order(rooms: dict[str, set[str]]) -> None:
    above: set[str] = set()
    for room, below in rooms.items():
        assert below <= above, f"{room} comes before what it imports"
        above.add(room)


def test_doors_upwards_are_listed() -> None:
    met = set()
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "door":
                room, name = map(ast.literal_eval, node.args)
                met.add((room, name))
                assert callable(getattr(import_module(f"vinoir.ir.{room}"), name))
    assert met == DOORS


def test_no_file_imports_itself_by_others() -> None:
    arrows = {
        module: {
            found.module
            for found in imports_of(path)
            if found.module != module and (module, found.module) not in TYPE_PAIR
        }
        for module, path in MODULES.items()
    }
    done: set[str] = set()
    for start in arrows:
        path = [start]
        trail = [iter(sorted(arrows[start]))]
        while trail:
            following = next(trail[-1], None)
            if following is None:
                trail.pop()
                done.add(path.pop())
            elif following in path:
                pytest.fail("a circle: " + " → ".join([*path[path.index(following) :], following]))
            elif following not in done and following in arrows:
                path.append(following)
                trail.append(iter(sorted(arrows[following])))


def test_type_pairs_are_of_types_alone() -> None:
    for module, other in TYPE_PAIR:
        assert all(found.typed for found in imports_of(MODULES[module]) if found.module == other)


def test_no_file_is_long() -> None:
    lengths = {
        named(path): len(path.read_text("utf-8").splitlines())
        for path in (*SOURCES, *(ROOT / "tests").rglob("*.py"))
    }
    assert not {name: length for name, length in lengths.items() if length > 600}


def test_the_wheel_has_every_room() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    rooms = {
        f"vinoir.{module_of(path)}".rstrip(".") for path in SOURCES if path.name == "__init__.py"
    }
    assert tool["packages"] == sorted(rooms)
    # Each is the folder of its name, but for the first.
    folders = {f"vinoir.{folder}": folder for folder in FOLDERS}
    assert tool["package-dir"] == {"vinoir": "ir/package"} | folders


def test_no_room_bears_a_verbs_name() -> None:
    assert not set(ROOMS) & set(ir.__all__)


FACES = [
    path
    for path in SOURCES
    if path.name == "__init__.py" and "ir" in path.parts and path.parent != PACKAGE
]


def shown_to_type_checkers(path: Path) -> set[str]:
    return {found.name for found in imports_of(path) if found.typed}


@pytest.mark.parametrize("path", FACES, ids=named)
def test_a_face_shows_type_checkers_what_it_offers(path: Path) -> None:
    module = module_of(path)
    face = __import__(f"vinoir.{module}", fromlist=["_"])
    if not shown_to_type_checkers(path):
        return
    offered = set(dir(face))
    for name in shown_to_type_checkers(path):
        assert name in offered, f"{module} does not offer {name}"
        assert getattr(face, name) is not None
    table = [node for node in ast.walk(tree_of(path))
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "face"]  # fmt: skip
    for call in table:
        rows = ast.literal_eval(call.args[1])
        names = {name for text in rows.values() for name in text.split()}
        assert names == shown_to_type_checkers(path)


@pytest.mark.parametrize("path", FACES, ids=named)
def test_no_file_of_a_face_bears_a_name_that_it_offers(path: Path) -> None:
    # Once the file is imported, the name would be the module.
    assert not {inner.stem for inner in path.parent.iterdir()} & shown_to_type_checkers(path)


def test_the_public_face_is_one_list() -> None:
    assert sorted(ir.__all__) == sorted(dir(ir))
    assert all(getattr(ir, name) is not None for name in ir.__all__)


def test_top_level_is_the_cards() -> None:
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        folders = {line.split("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    else:
        # What an archive holds, and what building leaves there.
        folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build", "dist"}
        folders = {name for name in folders if not name.endswith(("__pycache__", ".egg-info"))}
    assert {f for f in folders if not f.startswith(".")} == {*FOLDERS, "tests", "samples"}


def test_reading_imports_nothing_heavy() -> None:
    program = (
        "import sys, vinoir.ir; late = {'onnx', 'rich', 'click'}; "
        "sys.exit(str(sorted(late & set(sys.modules))) if late & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
