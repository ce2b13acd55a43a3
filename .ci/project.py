"""What .ci/run asks about the project.

Usage: python .ci/project.py commands | oldest | tools | files ARCHIVE | skips LOG | versions
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: What a run of the tests needs beside the dependencies; the importer's oracles want newer ones
#: than the oldest that are allowed.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "jsonschema", "openvino")
#: So many tests may be skipped where there is nothing but a clone.
MAY_SKIP = 5
#: What setuptools writes anew into a source archive.
REWRITTEN = {"setup.cfg"}


def name_of(requirement: str) -> str:
    """The name in a requirement such as ``numpy>=2.0``."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def commands() -> None:
    """The README's two commands, a line each."""
    text = (ROOT / "README.md").read_text("utf-8")
    part = text.split("## Two commands")[1].split("\n## ")[0]
    found = [line.strip() for line in part.splitlines() if line.startswith("    ")]
    if len(found) != 2:
        sys.exit(f"the README's two commands are {len(found)}")
    print("\n".join(found))


def oldest() -> None:
    """The oldest of each dependency that pyproject.toml allows, as constraints for pip."""
    for requirement in PROJECT["dependencies"]:
        bound = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement)
        if bound is None:
            sys.exit(f"{requirement} has no lower bound, or more than that")
        print(f"{bound[1]}=={bound[2]}")


def tools() -> None:
    """What the tests need to run, as the extra "dev" asks for it."""
    wanted = PROJECT["optional-dependencies"]["dev"]
    print("\n".join(row for row in wanted if name_of(row) in TOOLS))


def files(archive: str) -> None:
    """Fail where a source archive lacks a file of the repository, or holds another one."""
    with tarfile.open(archive) as opened:
        held = {
            member.name.partition("/")[2]: file.read()
            for member in opened
            if (file := opened.extractfile(member)) is not None
        }
    shown = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    listed = shown.stdout.splitlines()
    missing = [name for name in listed if name not in held]
    if missing:
        sys.exit(f"{Path(archive).name} lacks {', '.join(missing)}")
    others = [
        name
        for name in listed
        if name not in REWRITTEN and held[name] != (ROOT / name).read_bytes()
    ]
    if others:
        sys.exit(f"{Path(archive).name} has others than {', '.join(others)}")


def skips(log: str) -> None:
    """Fail where a run of pytest skipped more than a handful."""
    closing = [line for line in Path(log).read_text("utf-8").splitlines() if " passed" in line]
    if not closing:
        sys.exit("the tests did not come to an end")
    found = re.search(r"(\d+) skipped", closing[-1])
    count = int(found[1]) if found else 0
    if count > MAY_SKIP:
        sys.exit(f"{count} tests were skipped, more than {MAY_SKIP}: {closing[-1]}")


def versions() -> None:
    """A column of the table of dependencies: what is installed here."""
    print(f"Python {platform.python_version()}")
    for name in map(name_of, PROJECT["dependencies"]):
        print(f"{name} {version(name)}")


if __name__ == "__main__":
    _, question, *words = sys.argv
    answers = (commands, oldest, tools, files, skips, versions)
    {function.__name__: function for function in answers}[question](*words)
