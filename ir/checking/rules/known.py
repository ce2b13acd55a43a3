"""Which operations OpenVINO has, in which opsets, since which release."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

#: Names of the classes where the XML says otherwise; both are read.
CLASS_NAMES = {"Constant": "Const", "Relu": "ReLU", "Softmax": "SoftMax", "PRelu": "PReLU"}

#: Of more words that may be meant, only the first are looked at.
_MOST_WORDS = 1000

_OPSET = re.compile(r"opset([1-9][0-9]*)")


class Row(NamedTuple):
    """One version of one operation."""

    type: str
    spec: str
    version: str
    opsets: tuple[int, ...]
    also: tuple[str, ...]
    inputs: tuple[int, int | None]
    outputs: tuple[int, int | None]

    def listed(self, version: str) -> bool:
        """Whether a layer may name it by this version."""
        found = _OPSET.fullmatch(version)
        return version in self.also or (found is not None and int(found[1]) in self.opsets)

    @property
    def span(self) -> str:
        """The opsets that list it, for messages."""
        first, last = self.opsets[0], self.opsets[-1]
        return f"opset{first}" if first == last else f"opset{first} to opset{last}"


@cache
def _data() -> dict[str, Any]:
    text = files(__package__).joinpath("opsets.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def operations() -> dict[str, tuple[Row, ...]]:
    """Every operation's versions, oldest first."""
    table = {}
    for name, rows in _data()["operations"].items():
        versions = []
        for row in rows:
            first, last = row["opsets"]
            opsets = tuple(n for n in range(first, last + 1) if n not in row.get("absent", ()))
            also = tuple(row.get("also", ()))
            inputs, outputs = (tuple(row[key]) for key in ("inputs", "outputs"))
            versions.append(Row(name, row["spec"], row["version"], opsets, also, inputs, outputs))
        table[name] = tuple(sorted(versions, key=lambda row: row.opsets[0]))
    return table


@cache
def row_of(kind: str, version: str) -> Row | None:
    """The operation that a layer of this type and version means."""
    rows = operations().get(CLASS_NAMES.get(kind, kind), ())
    return next((row for row in rows if row.listed(version)), None)


@cache
def releases() -> dict[int, str]:
    """The release that brought each opset."""
    return {int(number): text for number, text in _data()["releases"].items()}


@cache
def type_releases() -> dict[str, str]:
    """The release that brought each of the younger element types."""
    return dict(_data()["types"])


@cache
def by_lower_case() -> dict[str, str]:
    """Type by its name in lower case."""
    table = {name.lower(): name for name in operations()}
    return {wrong.lower(): right for wrong, right in CLASS_NAMES.items()} | table


@cache
def near_type(kind: str) -> str | None:
    """The type that was probably meant."""
    same = by_lower_case().get(kind.lower())
    if same is not None:
        return same
    near = _closest(kind[:80].lower(), tuple(by_lower_case()), 0.75)
    return None if near is None else by_lower_case()[near]


def opset_number(version: str) -> int | None:
    """The number of an opset's name, None where the name is none."""
    found = _OPSET.fullmatch(version[:20])
    return int(found[1]) if found else None


def near(word: str, words: Iterable[str]) -> str | None:
    """The word among these that a misspelled one probably means."""
    return _near(word[:80], tuple(sorted(islice(words, _MOST_WORDS))))


@lru_cache(10_000)
def _near(word: str, words: tuple[str, ...]) -> str | None:
    plain = _plain(word)
    for candidate in words:
        if _plain(candidate) == plain:
            return candidate
    best = _closest(plain, tuple(map(_plain, words)), 0.7)
    if best is None:
        return None
    found = next(w for w in words if _plain(w) == best)
    return found if len(found) > 3 or abs(len(found) - len(word)) <= 1 else None


def _closest(word: str, words: tuple[str, ...], least: float) -> str | None:
    """The word that is most alike; only those are compared that share most pairs of letters."""
    pairs = _by_pair(words)
    shared = Counter(other for pair in _pairs(word) for other in pairs.get(pair, ()))
    best = difflib.get_close_matches(word, [other for other, _ in shared.most_common(8)], 1, least)
    return best[0] if best else None


@lru_cache(1000)
def _by_pair(words: tuple[str, ...]) -> dict[str, list[str]]:
    """The words that have each pair of letters."""
    found: dict[str, list[str]] = {}
    for word in words:
        for pair in _pairs(word):
            found.setdefault(pair, []).append(word)
    return found


def _pairs(word: str) -> Iterable[str]:
    """The pairs of neighbouring letters, each once; the ends are letters of their own."""
    whole = f"^{word}$"
    return dict.fromkeys(whole[i : i + 2] for i in range(len(whole) - 1))


def _plain(word: str) -> str:
    return re.sub(r"[-_ .]", "", word).lower()
