"""What OpenVINO has: types and versions, as the operations say; opsets and releases."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import islice

from ....layers.base import Op
from ....layers.registry import FILES

#: Names of the classes where the XML says otherwise; both are read.
CLASS_NAMES = {"Constant": "Const", "Relu": "ReLU", "Softmax": "SoftMax", "PRelu": "PReLU"}

#: The release that brought each opset: 1 to 15 by the documentation's "Available Operation Sets",
#: 16 and 17 by the changes that added them.
RELEASES = {
    1: "2020.1", 2: "2020.2", 3: "2020.4", 4: "2021.1", 5: "2021.2", 6: "2021.3", 7: "2021.4",
    8: "2022.1", 9: "2022.2", 10: "2022.3", 11: "2023.0", 12: "2023.1", 13: "2023.2",
    14: "2024.0", 15: "2024.5", 16: "2026.0", 17: "2026.2",
}  # fmt: skip
#: The release that brought each of the younger element types: the first after its change.
TYPE_RELEASES = {
    "nf4": "2023.2", "f8e4m3": "2024.0", "f8e5m2": "2024.0", "string": "2024.0", "u2": "2024.2",
    "u3": "2024.2", "u6": "2024.2", "f4e2m1": "2024.3", "f8e8m0": "2024.3",
}  # fmt: skip

#: Of more words that may be meant, only the first are looked at.
_MOST_WORDS = 1000

_OPSET = re.compile(r"opset([1-9][0-9]*)")


def find_operation(kind: str, version: str) -> type[Op] | None:
    """The operation of OpenVINO's opsets that has exactly this type and version."""
    name = CLASS_NAMES.get(kind, kind)
    op = Op.find(name, version)
    return op if op is not None and op.is_standard and op.xml_type == name else None


@cache
def versions_of(kind: str) -> tuple[type[Op], ...]:
    """The versions of a type in OpenVINO's opsets, oldest first; none of an unknown type."""
    Op.registry.meet(kind)
    found = [op for op in Op.registry.met.values() if op.xml_type == kind and op.is_standard]
    return tuple(sorted(found, key=lambda op: op.opset_numbers()))


def span(op: type[Op]) -> str:
    """The opsets that list an operation, for messages."""
    numbers = op.opset_numbers()
    first, last = numbers[0], numbers[-1]
    return f"opset{first}" if first == last else f"opset{first} to opset{last}"


@cache
def by_lower_case() -> dict[str, str]:
    """Type by its name in lower case."""
    table = {
        name.lower(): name for name in sorted(name for file in FILES.values() for name in file)
    }
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
