"""Layers made wrong at random are named, whatever comes after them; healthy ones are not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import SHARED
from model_faults import (
    WRONG,
    Fault,
    Feeds,
    change_attribute,
    change_weight,
    first_apart,
    fixed,
    kernels,
    runs,
    trace,
    wrong_kernel,
)
from networks import Drawer
from vinoir import ir

#: Faults of each kind in each network of the shared data; 5 make some 200.
CASES = int(os.environ.get("VINOIR_CASES", "2"))
#: Networks that take little memory, of every family.
NETWORKS = ("pointnet", "patchtst", "lstm_tagger", "dcgan", "crnn", "mobilenetv3_large",
            "regnety_008", "vit_tiny_int8", "resnet18_int8", "yolov8n", "whisper_encoder",
            "mobilevit_s", "t5_encoder")  # fmt: skip
EDITS = (change_weight, change_attribute)
Make = Callable[[], ir.Model]


def drawn(seed: int) -> Make:
    return lambda: Drawer(seed).model(layers=10)


def feeds_of(model: ir.Model, seed: int) -> Feeds:
    rng = np.random.default_rng(seed)
    return {
        place: rng.standard_normal(x.outputs[0].dims).astype("f4")
        for place, x in enumerate(model.parameters)
    }


def edited(make: Make, feeds: Feeds, seed: int) -> Iterator[tuple[Fault, ir.Comparison]]:
    """Faults of both kinds that can be seen at all, and what a comparison says."""
    rng = random.Random(seed)
    healthy = make()
    right = trace(healthy, feeds)
    for change in EDITS:
        for _ in range(8):
            broken = make()
            fault = change(broken, rng)
            if fault is None:
                continue
            found = runs(broken, feeds)
            if found is None or first_apart(right, found) not in fault.reached:
                continue  # refused, or no number is other: there is nothing to be told
            yield fault, ir.compare(broken, healthy, feeds)
            break


def named(fault: Fault, found: ir.Comparison) -> str | None:
    """Why it is not the right layer that was named."""
    if found.first is None:
        return f"{fault.text}: nothing was named"
    others = {step.place.id for step in found.wrong} - fault.shows
    if others:
        return f"{fault.text}: also {others}, first {found.first}"
    return None


@pytest.mark.parametrize("seed", range(10))
def test_an_edit_is_named_at_the_layer_that_it_makes_wrong(seed: int) -> None:
    make = drawn(seed)
    wrong = [
        missed
        for fault, found in edited(make, feeds_of(make(), seed), seed)
        if (missed := named(fault, found))
    ]
    assert not wrong, "\n".join(wrong)


def recorded(model: ir.Model, feeds: Feeds, path: Path) -> dict[int, tuple[np.ndarray, ...]]:
    """The tensors of a healthy run, in a file under the names that they have."""
    seen = trace(model, feeds)
    held = {f"in{place}": np.asarray(array) for place, array in enumerate(feeds.values())}
    for layer in model.order():
        if layer.type in ("Parameter", "Result") or len(seen.get(layer.id, ())) != 1:
            continue
        for array in seen[layer.id]:
            if array.dtype.kind in "fiub":
                held[layer.name] = array
    np.savez(path, **held)  # type: ignore[arg-type]
    return seen


def kernel_faults(make: Make, feeds: Feeds, seed: int, path: Path, times: int) -> list[str]:
    """What is not named of kernels made wrong, against a healthy run that was recorded."""
    rng = random.Random(seed)
    model = make()
    seen = recorded(model, feeds, path)
    rows = sorted(kernels(model, seen).items(), key=lambda row: row[0].__name__)
    missed = []
    for kind, _ in rng.sample(rows, min(times, len(rows))):
        change = rng.choice(WRONG)
        # What derives from an operation takes its kernel.
        layers = [x for one, found in rows if issubclass(one, kind) for x in found]
        clear = {x.id for x in layers if apart(seen[x.id][0], change(seen[x.id][0])) > 1e-3}
        # Its layers of whole numbers are wrong as well, and may be the first; bodies hold some.
        some = {x.id for x in model.order() if any(isinstance(y.op, kind) for y in with_inner(x))}
        if some & fixed(model):
            continue  # constants are made by it: then those that take them are wrong as well
        if not clear or any(len(seen[each]) > 1 for each in clear):
            continue
        try:
            with wrong_kernel(kind, change):
                found = ir.compare(make(), str(path), feeds)
        except ir.IRError:
            continue  # shapes are made of its values, and do not go together any more
        told = {step.place.id for step in found.wrong}
        if not clear & told or told - some or (found.first and found.first.place.id not in some):
            missed.append(f"{kind.__name__} {change.__name__}: {found.first}, {told - some}")
    return missed


def with_inner(layer: ir.Layer) -> list[ir.Layer]:
    """A layer, and those of its bodies."""
    return [layer, *(one for body in layer.bodies.values() for one in body.everywhere())]


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """How far two arrays are apart, relative to their size."""
    if one.shape != two.shape:
        return 1.0
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return 0.0  # nothing is said of those
    x, y = one.astype("f8"), two.astype("f8")
    level = np.sqrt(np.mean(np.square(x)))
    return float((np.abs(x - y) / (np.abs(x) + level + 1e-30)).max(initial=0.0))


@pytest.mark.parametrize("seed", range(10))
def test_a_wrong_kernel_is_named(seed: int, tmp_path: Path) -> None:
    make = drawn(seed)
    missed = kernel_faults(make, feeds_of(make(), seed), seed, tmp_path / "told.npz", 2)
    assert not missed, "\n".join(missed)


@pytest.fixture(scope="module", params=NETWORKS)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of the shared data with its weights."""
    folder = tmp_path_factory.mktemp("networks")
    program = SHARED / "networks" / "fill.py"
    subprocess.run([sys.executable, program, folder, request.param], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return folder / f"{request.param}.xml"


def first_feeds(path: Path) -> Feeds:
    with np.load(path.with_suffix(".npz")) as held:
        words = {key[2:]: held[key] for key in held.files if key.startswith("0/")}
    return {int(word) if word.isdigit() else word: array for word, array in words.items()}


@pytest.mark.shared
def test_faults_in_real_networks_are_named(network: Path, tmp_path: Path) -> None:
    feeds = first_feeds(network)
    missed, count = [], 0

    def make() -> ir.Model:
        return ir.read(network)

    for seed in range(CASES):
        for fault, found in edited(make, feeds, seed):
            count += 1
            if text := named(fault, found):
                missed.append(text)
    missed += kernel_faults(make, feeds, 1, tmp_path / "told.npz", CASES)
    print(f"{network.stem}: {count} edits, up to {CASES} kernels, {len(missed)} missed")
    assert not missed, "\n".join(missed)
