"""What a reduction has reached, and the folder in which it is kept and gone on with."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from ...schemas import Array, UsageError
from ...schemas.packing import UNLIKE_ARRAYS, array_in
from ...schemas.printing import counted
from ...schemas.version import VERSION
from ..document import Layer, Model
from ..files import dumps, read, write
from .extraction import count_of, operations_of
from .failures import Samples, save_samples


@dataclass
class Reduction:
    """A small model that fails, and how it came about."""

    model: Model
    samples: list[list[Array]]
    #: How it fails, and which samples do.
    failure: str
    failing: list[int]
    #: Layers other than constants, inputs and outputs, those in bodies too, before and after.
    before: int
    after: int
    checks: int = 0
    seconds: float = 0.0
    #: Whether it went on to the end, or the time was over.
    finished: bool = False
    #: Constants and inputs that are random numbers of a seed; of several samples each input's
    #: are named apart, as ``x of sample 1``.
    seeds: dict[str, str] = field(default_factory=dict)
    #: The bodies that became the model, each of the one before it.
    opened: list[str] = field(default_factory=list)
    origin: str = ""
    asked: str = ""
    #: What may be wrong with what was asked.
    doubt: str | None = None

    @property
    def note(self) -> str:
        """How it was made, for whoever gets it."""
        end = "to the end" if self.finished else "until the time was over, it may get smaller"
        lines = [
            f"# {self.failure}",
            "",
            f"Reduced from `{self.origin}` by vinoir {VERSION}, {end}: {self.before} layers",
            f"became {self.after} in {self.checks} checks of `{self.asked}`.",
        ]
        for origin in self.opened:
            lines += [f"Left is the {origin}, given what it was given there."]
        for layer in operations_of(self.model):
            if layer.bodies:
                why = ": none of its turns that were tried fails alone" if self.finished else ""
                lines += [f"The body inside is not reduced{why}: {_named(layer)}."]
        if self.samples:
            lines += [
                f"It fails with {len(self.failing)} of {len(self.samples)} samples "
                f"({', '.join(map(str, self.failing))}), which are in inputs.npz as SAMPLE.INPUT."
            ]
        if self.doubt:
            lines += ["", f"But {self.doubt}."]
        if self.seeds:
            lines += ["", "Random numbers stand in place of:", ""]
            lines += [f"- {name}: {text}" for name, text in self.seeds.items()]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        layers = ", ".join(map(_named, operations_of(self.model)))
        end = "" if self.finished else " (the time was over)"
        return (
            f"{self.before} layers became {self.after} in {self.checks} checks{end}: {layers}; "
            f"fails: {self.failure}"
        )


def _named(layer: Layer) -> str:
    inside = f" around {counted(_inside(layer), 'layer')}" if layer.bodies else ""
    return f'{layer.type} "{layer.name}"{inside}'


def _inside(layer: Layer) -> int:
    """How many layers compute in the bodies of a layer."""
    return sum(map(count_of, layer.bodies.values()))


class _State(BaseModel):
    """What a reduction writes down of itself, to be gone on with."""

    model_config = ConfigDict(extra="forbid", strict=True)

    digest: str
    phase: Literal["layers", "shapes", "constants", "done"]
    failure: str
    before: int
    checks: int
    seeds: dict[str, str]
    #: How many there are: of a body that was opened there is one.
    samples: int
    opened: list[str]


class Folder:
    """Where the result is written as it grows smaller, and gone on with."""

    def __init__(self, path: Path, model: Model, word: str, samples: Samples) -> None:
        self.path = path
        digest = blake2b(digest_size=16)
        for part in (
            *dumps(model),
            word.encode(),
            *(np.asarray(a).tobytes() for s in samples for a in s),
        ):
            digest.update(part)
        self.digest = digest.hexdigest()
        self.state = path / "reduce.json"
        #: What is written next: all of it, once it has this name.
        self.next, self.unfinished = path / ".reducing.next", path / ".reducing.part"
        self.held: dict[str, Any] = {}
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file, no folder", hint="give another name")
        self._take_over()
        if path.exists() and any(path.iterdir()):
            if not self.state.is_file():
                raise UsageError(
                    f"{path} is not empty, and no reduction to go on with is in it",
                    hint="give another folder",
                )
            try:
                held = json.loads(self.state.read_text("utf-8"))
                self.held = _State.model_validate(held).model_dump()
            except ValueError:
                raise UsageError(
                    f"{self.state} is no state of a reduction", hint="give another folder"
                ) from None
            if self.held["digest"] != self.digest:
                raise UsageError(
                    f"{path} holds the reduction of another model, failure or inputs",
                    hint="give another folder, or empty it",
                )

    def load(self) -> tuple[Model, list[list[Array]], str, dict[str, Any]] | None:
        """The smallest model so far, its samples and the phase it is in."""
        if not self.held:
            return None
        model = read(self.path / "reduced.xml")
        inputs = self.path / "inputs.npz"
        try:
            # Of a file that it opened itself NumPy leaves one open that is cut.
            with inputs.open("rb") as file, np.load(file, allow_pickle=False) as content:
                rows = [
                    [
                        array_in(content, f"{number}.{place}").astype(
                            x.outputs[0].type.dtype, copy=False
                        )
                        for place, x in enumerate(model.parameters)
                    ]
                    for number in range(self.held["samples"])
                ]
        except (TypeError, *UNLIKE_ARRAYS):  # the first of an array alone
            raise UsageError(
                f"{inputs} does not hold the inputs of reduced.xml beside it",
                hint="give another folder, to begin anew",
            ) from None
        return model, rows, str(self.held["phase"]), self.held

    def save(self, found: Reduction, phase: str, test: Sequence[str]) -> None:
        """Write the model, its inputs, the note and the test: killed at any time, all or none."""
        folder = self.unfinished
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fresh = deepcopy(found.model)
        for layer in fresh.constants:
            layer.keep_value()
        write(fresh, folder / "reduced.xml", repack=True)
        save_samples(folder / "inputs.npz", found.samples)
        (folder / "NOTE.md").write_text(found.note, "utf-8")
        (folder / "test_reduced.py").write_text(_test(found, test), "utf-8")
        state = {
            "digest": self.digest,
            "phase": phase,
            "failure": found.failure,
            "before": found.before,
            "checks": found.checks,
            "seeds": found.seeds,
            "samples": len(found.samples),
            "opened": found.opened,
        }
        (folder / self.state.name).write_text(json.dumps(state, indent=2), "utf-8")
        os.replace(folder, self.next)
        self._take_over()

    def _take_over(self) -> None:
        """Put what is written in place; where that was broken off, the rest of it."""
        shutil.rmtree(self.unfinished, ignore_errors=True)
        if (self.next / self.state.name).is_file():
            # The state comes last: as long as it is here, there may be more.
            for file in sorted(self.next.iterdir(), key=lambda file: file.name == self.state.name):
                os.replace(file, self.path / file.name)
        if self.next.is_dir():
            self.next.rmdir()


def _test(found: Reduction, lines: Sequence[str]) -> str:
    """A test that fails as long as the model does."""
    body = "\n".join(f"    {line}" for line in lines)
    samples = (
        '    held = np.load(FOLDER / "inputs.npz")\n'
        "    types = [x.outputs[0].type.dtype for x in model.parameters]\n"
        "    samples = [\n"
        "        [held[f'{n}.{i}'].astype(kind) for i, kind in enumerate(types)]\n"
        f"        for n in range({len(found.samples)})\n"
        "    ]\n"
    )
    return (
        '"""Fails as long as reduced.xml does."""\n\n'
        "from pathlib import Path\n\n"
        "import numpy as np\n"
        "from vinoir import ir\n\n"
        "FOLDER = Path(__file__).parent\n\n\n"
        "def test_reduced() -> None:\n"
        '    model = ir.read(FOLDER / "reduced.xml")\n'
        f"{samples if found.samples else ''}{body}\n"
    )
