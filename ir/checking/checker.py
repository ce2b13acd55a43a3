"""Everything that is wrong with a file, found in one pass.

Example::

    report = ir.check("model.xml")
    for finding in report:
        print(finding)          # model.xml:12:4: error IR305: layer 3 "add" (Add opset1): ...

The document is read by its own tolerant reader, so that one wrong thing does not hide the
next. Whatever is wrong is a finding; nothing is raised for a bad file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from ...layers.budget import budget, within
from ...layers.leftovers import tidy
from ...layers.memory import without_collection
from ...schemas import IRError, LimitError, UnreadableError, UsageError, Where, placed
from ...schemas.packing import Buffer
from ..document import Model
from ..files import content_of, find_pair, read_pair
from ..opening import opened
from ..storage import Weights, beside, open_weights
from ..text import MOST_TOLD, Source
from .findings import Finding, Report
from .rules import (
    attributes,
    document,
    graph,
    metadata,
    older,
    portability,
    shapes,
    state,
    subgraphs,
    types,
    weights,
    xml,
)
from .rules.catalogue import RULES, Rule, codes, explain
from .rules.loose import LooseModel
from .rules.note import Note

if TYPE_CHECKING:
    from lxml import etree

#: What can be checked: a model, a path, or the bytes of a document.
Checkable: TypeAlias = "Model | str | PathLike[str] | bytes | IO[bytes] | IO[str]"

#: The groups, in an order in which later ones build on what earlier ones found out.
GROUPS: tuple[Callable[[LooseModel], Iterator[Note]], ...] = (
    document.rules,
    metadata.rules,
    xml.names,
    types.rules,
    attributes.rules,
    graph.rules,
    weights.rules,
    shapes.rules,
    subgraphs.rules,
    state.rules,
)


@tidy
def check(
    model: Checkable,
    target: str | None = None,
    *,
    weights: Buffer | str | PathLike[str] | None = None,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    max_memory: int | None = None,
    max_seconds: float | None = None,
) -> Report:
    """Find everything that is wrong with a model.

    Args:
        model: A model, the path of an .xml (or of its .bin or folder), or a document: its bytes,
            or an open file of it.
        target: An OpenVINO release such as ``"2025.1"``, whose reader must read the model.
        weights: The .bin, where it is not beside the .xml: a path, or the bytes.
        select: Report only these codes; ``IR5`` stands for all that begin so.
        ignore: Leave these codes out.
        max_memory: Bytes that may be taken; None for what the machine has left.
        max_seconds: Looked at between groups of rules and between layers; None for no limit.

    Raises:
        UsageError: A code or a release is not known.
        LimitError: More memory or time is wanted than is there or allowed.
    """
    wanted, unwanted = codes(select), codes(ignore)
    release = None if target is None else portability.release(target)
    with without_collection(), within(max_memory, max_seconds):
        return _check(model, weights, release, wanted, unwanted)


def _check(
    model: Checkable,
    weights: Buffer | str | PathLike[str] | None,
    release: portability.Release | None,
    wanted: tuple[str, ...],
    unwanted: tuple[str, ...],
) -> Report:
    place, notes, source, held = _open(model, weights)
    if source is not None:
        notes += map(Note.of, source.breaches)
        # An open file has a name, and nothing beside it.
        bin_place = None if place is None or hasattr(model, "read") else beside(place)
        notes += xml.rules(source)
        notes += older.rules(source, held, place, bin_place, release)
        root = source.root
        if root is not None and xml.is_model(root):
            with placed(Where(place)):
                loose = LooseModel(
                    root,
                    held,
                    bin_place,
                    source.text,
                    examine=attributes.examine,
                    infer=shapes.infer,
                )
                for group in GROUPS:
                    budget().check_time()
                    notes += group(loose)
                notes += portability.rules(loose, release)
        if source.odd:
            notes = [
                note for note in notes if note.code[2] == "1" or note.element not in source.odd
            ]
        if source.torn is not None:
            torn = source.torn
            notes = [note for note in notes if _stands(note, torn)]
    if any(note.code == "IR514" for note in notes):
        notes = [note for note in notes if note.code not in ("IR508", "IR517")]
    chosen: list[Note] = []
    count = Counter[str]()

    def is_chosen(code: str) -> bool:
        return (not wanted or code.startswith(wanted)) and not code.startswith(unwanted)

    for note in notes:
        if not is_chosen(note.code):
            continue
        count[note.code] += 1
        if count[note.code] <= MOST_TOLD:
            chosen.append(note)
    if source is not None:
        count.update({k: n for k, n in source.left_out.items() if is_chosen(k)})
    left = {code: number - MOST_TOLD for code, number in count.items() if number > MOST_TOLD}
    return Report(
        _finish(chosen, source, place), place, readable=source is not None, left_out=left
    )


#: What may be about a layer of an old document, which is no node.
OLDER = frozenset({"IR951", "IR952", "IR953", "IR954", "IR955", "IR956"})
#: Groups of which each finding is about one layer alone.
_ALONE = (
    "IR211", "IR212", "IR213", "IR214", "IR219", "IR22", "IR23", "IR31", "IR4", "IR501", "IR502",
    "IR503", "IR504", "IR505", "IR506",
)  # fmt: skip
#: About the document, whatever stands in it.
_WHOLE = ("IR1", "IR201", "IR202", "IR203", "IR204", "IR205")


def _stands(note: Note, torn: set[etree._Element]) -> bool:
    """Whether a finding is more than a consequence of tags that are cut off or do not match."""
    if note.code == "IR116" or not note.code.startswith((*_ALONE, *_WHOLE)):
        return False
    inner = note.element if note.node is None else note.node.element
    return note.code.startswith(_WHOLE) or inner not in torn


def _open(
    model: Checkable, weights: Buffer | str | PathLike[str] | None
) -> tuple[str | None, list[Note], Source | None, Weights | None]:
    """The document and its weights; what cannot be opened is the first finding."""
    notes: list[Note] = []
    if isinstance(model, Model):
        model = opened(model)
        text, held = _of_model(model)
        return model.place, notes, Source(text), held
    place: str | None = None
    path: Path | str | None = None
    data, bin_ = b"", None
    if isinstance(model, (str, PathLike)):
        place = os.fspath(model)
        try:
            path, bin_ = find_pair(model)
            place = str(path)
            data, _ = read_pair(path)
        except UnreadableError as error:
            return place, [Note("IR100", error.message, hint=error.hint)], None, None
    elif isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
    else:
        given: object = model
        if not hasattr(given, "read"):
            kind = type(model).__name__
            raise UsageError(f"a model, its path, bytes or an open file is wanted, not {kind}")
        name = getattr(model, "name", None)
        place = name if isinstance(name, str) else None
        try:
            data = content_of(model)
        except UnreadableError as error:
            return place, [Note("IR100", error.message, hint=error.hint)], None, None
    held = None
    try:
        if weights is not None and not isinstance(weights, (str, PathLike)):
            held = Weights(weights)
        elif path is not None:
            needed = weights is not None or (isinstance(bin_, Path) and bin_.is_symlink())
            data, held = read_pair(path, bin_ if weights is None else weights, needed)
        elif weights is not None:
            held = open_weights(weights)
    except (UnreadableError, UsageError) as error:
        name = "" if isinstance(error, UsageError) else f"{error.where.file or ''} "
        notes.append(Note("IR514", f"the .bin {name}{error.message}", hint=error.hint))
    except OSError as error:
        notes.append(Note("IR514", f"the .bin cannot be opened: {error.strerror}"))
    return place, notes, Source(data), held


def _of_model(model: Model) -> tuple[bytes, Weights | None]:
    """What writing the model would give, or would if it could be written.

    Of an unchanged one they are the bytes that were read.
    """
    from ..files import compose, draft

    try:
        text, layout = compose(model)
    except LimitError:
        raise
    except IRError:
        text, layout = draft(model)
    return text, layout.weights


def _finish(notes: list[Note], source: Source | None, place: str | None) -> Iterator[Finding]:
    """Findings of notes: each with its place and severity, duplicates left out."""
    if source is not None:
        source.find(note.element for note in notes if note.element is not None)
    seen = set()
    for note in notes:
        line, column = (
            (None, None)
            if source is None
            else source.place(note.element, note.attribute, note.offset)
        )
        node = note.node
        layer, name, kind, version, body = None, None, None, None, None
        if node is not None:
            layer, name, kind, version = node.id, node.name, node.type, node.version
            body = xml.body_around(node.element)
        elif note.element is not None and (note.offset is not None or note.code in OLDER):
            layer, name, kind, version = xml.around(note.element)
            body = xml.body_around(note.element)
        key = (note.code, line, column, note.attribute, note.message)
        if key in seen:
            continue
        seen.add(key)
        yield Finding(
            note.code, RULES[note.code].severity, note.message, place, line, column, layer, name,
            kind, version, note.attribute, note.hint, body,
        )  # fmt: skip


__all__ = ["Checkable", "Rule", "check", "explain"]
