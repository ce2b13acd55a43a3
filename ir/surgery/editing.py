"""Edits of a model, one after another, from Python or from a patch file in JSON.

Example::

    edited, report = ir.edit(model, [
        {"op": "rename", "input": "x", "to": "image"},
        {"op": "preprocess", "input": "image", "type": "u8", "layout": "NHWC", "scale": 255},
        {"op": "softmax", "output": "logits"},
    ])
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic.json_schema import models_json_schema

from ...schemas import IRError, UsageError
from ...schemas.printing import meant
from ..document import SINKS, Graph, Layer
from ..opening import ModelLike, opened
from .orders import Desk, Edit, bench_of
from .orders_batch import BATCH_EDITS
from .orders_ends import END_EDITS
from .orders_images import IMAGE_EDITS
from .orders_layers import LAYER_EDITS
from .orders_patterns import PATTERN_EDITS, Node
from .outcome import Operated, Surgery, size_of
from .reshaping import lost_variables, refuse_lost, settle
from .workbench import Workbench

#: Every edit by the word that names it.
EDITS: dict[str, type[Edit]] = {
    kind.model_fields["op"].annotation.__args__[0]: kind  # type: ignore[union-attr]  # a Literal
    for kind in (*LAYER_EDITS, *END_EDITS, *BATCH_EDITS, *IMAGE_EDITS, *PATTERN_EDITS)
}

_ALL = f"there are {', '.join(EDITS)}"

#: Edits as a caller may give them: a patch file, or its entries.
Edits: TypeAlias = "str | PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]]"

#: A patch file is text that somebody reviews.
_LARGEST_PATCH = 64 << 20


def edit(model: ModelLike, edits: Edits, *, folder: str | PathLike[str] | None = None) -> Operated:
    """Change a model, and infer types and shapes anew.

    Args:
        model: The model, or its path; it is not changed.
        edits: What to do, in order: entries with an ``op`` each, or the path of a JSON file that
            lists them (``edit_schema`` describes it).
        folder: Where .npy files are that the entries name; that of the patch file.

    Raises:
        UsageError: An entry is wrong, or names what is not there; the error tells which entry.
        IRError: The first layer that does not accept its inputs any more.
    """
    if isinstance(edits, (str, PathLike)):
        entries, place = read_edits(edits), Path(edits).parent
    else:
        entries, place = [edits] if isinstance(edits, Mapping) else listed_entries(edits), Path()
    orders = [_read(entry, number, len(entries)) for number, entry in enumerate(entries, 1)]
    work, report = deepcopy(opened(model)), Surgery("edit")
    before, count, lost = size_of(work), len(work), lost_variables(work).keys()
    benches: dict[str | Graph | None, Workbench] = {}
    given: list[Layer] = []
    has_bodies = any(layer.bodies for layer in work.layers)
    for number, order in enumerate(orders, 1):
        try:
            body: str | Graph | None = order.body
            if has_bodies and body is None:
                body, order = order.placed(work)
            bench = bench_of(work, benches, body)
            order.apply(Desk(work, bench, report, Path(folder) if folder else place, given=given))
        except IRError as error:
            error.message = f"{_named(entries[number - 1], number, len(entries))}: {error.message}"
            raise
    for bench in benches.values():
        bench.finish()
    if count and not any(x.type in SINKS for x in work.layers):
        raise UsageError(
            "no output would be left", hint="hand something else out (add-output) as well"
        )
    refuse_lost(work, lost)
    settle(work, report)
    for layer in given:
        if layer.graph is not None and layer.op is not None:
            with layer.at("data"):
                layer.op.check_attributes()
    report.layers = before, size_of(work)
    return Operated(work, report)


def listed_entries(edits: Any) -> list[Mapping[str, Any]]:
    """The entries that a caller gave; what is no list of them is refused."""
    try:
        return list(edits)
    except TypeError:
        what = f"a list of edits, or the path of one, is wanted, not {type(edits).__name__}"
        raise UsageError(what, hint='give [{"op": "rename", ...}]') from None


def _named(entry: Mapping[str, Any], number: int, count: int) -> str:
    return f"edit {number} of {count} ({entry.get('op')})"


def read_edits(file: str | PathLike[str]) -> list[Mapping[str, Any]]:
    """The edits that a patch file lists, not yet looked at."""
    path = Path(file)
    try:
        if path.stat().st_size > _LARGEST_PATCH:
            raise UsageError(f"{path} is larger than {_LARGEST_PATCH >> 20} MB, no list of edits")
        return edits_in(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def edits_in(text: bytes, name: str) -> list[Mapping[str, Any]]:
    """The edits that the bytes of a patch file list, not yet looked at."""
    try:
        # Editors of Windows begin a file with a mark that JSON has not.
        found = json.loads(text.decode("utf-8-sig"), object_pairs_hook=_said_once)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}:{error.lineno}:{error.colno}: is no JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no JSON: byte {error.start} is not UTF-8") from None
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}") from None
    except ValueError as error:  # a number of thousands of digits
        raise UsageError(f"{name} cannot be read: {error}") from None
    except RecursionError:
        raise UsageError(f"{name} cannot be read: it is nested too deeply") from None
    if isinstance(found, dict):
        found = found.get("edits")
    if not isinstance(found, list):
        raise UsageError(f'{name} holds no list of edits, nor {{"edits": [...]}}')
    return found


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, none of whose fields is given twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UsageError(f'"{key}" is given twice in one object: {found[key]!r} and {value!r}')
        found[key] = value
    return found


def _read(entry: Any, number: int, count: int) -> Edit:
    """One entry as the edit that it is."""
    if not isinstance(entry, Mapping):
        raise UsageError(f"edit {number} of {count} is {type(entry).__name__}, not an object")
    try:
        return edit_of(entry)
    except UsageError as error:
        place = f"edit {number} of {count}"
        named = _named(entry, number, count) if str(entry.get("op")) in EDITS else place
        raise UsageError(f"{named}: {error.message}", hint=error.hint) from None


def edit_of(entry: Mapping[str, Any]) -> Edit:
    """The edit that an entry describes."""
    op = entry.get("op")
    if op is None:
        raise UsageError('"op" is missing, which says what is to be done', hint=_ALL)
    kind = EDITS.get(str(op))
    if kind is None:
        hint = meant(str(op), EDITS) or _ALL
        raise UsageError(f'"op" is {op!r:.60}, no edit has that name', hint=hint)
    try:
        return kind.model_validate(dict(entry))
    except ValidationError as error:
        raise _refusal(kind, error) from None


def _refusal(kind: type[Edit], error: ValidationError) -> UsageError:
    """What is wrong with the fields of an entry; a misspelt one before the one that it was."""
    rows = sorted(error.errors(), key=lambda row: row["type"] != "extra_forbidden")
    first = rows[0]
    field = _field(first["loc"])
    fields = {about.alias or name: about for name, about in kind.model_fields.items()}
    match first["type"]:
        case "extra_forbidden":
            known, needed = [*fields], ""
            if len(first["loc"]) > 1:  # of a node in a list of them
                known = [*Node.model_fields]
                beside = (x["loc"] for x in rows if x["type"] == "missing")
                lacking = [str(x[-1]) for x in beside if x[:-1] == first["loc"][:-1]]
                needed = f'it needs "{lacking[0]}"; ' if lacking else ""
            near = meant(str(first["loc"][-1]), known)
            hint = near or f"{needed}it has {', '.join(known)}"
            return UsageError(f'it has no field "{field}"', hint=hint)
        case "missing":
            about = fields.get(field)
            what = about.description if about is not None else None
            return UsageError(f'"{field}" is missing', hint=f"it is {what}" if what else None)
        case "string_too_short":
            return UsageError(f'"{field}" is empty')
        case "value_error":
            message = first["msg"].removeprefix("Value error, ")
            return UsageError(f"{field}: {message}" if field else message)
    # Of a field that may be this or that there is a row for each.
    alike = [row["msg"].partition(", unable")[0] for row in rows if _field(row["loc"]) == field]
    wanted = ", or ".join(dict.fromkeys(text.removeprefix("Input should be ") for text in alike))
    be = "" if wanted[:1].isupper() else "it should be "
    return UsageError(f'"{field}" is {first["input"]!r:.60}: {be}{wanted[:1].lower()}{wanted[1:]}')


#: How pydantic names the kinds that a field may have.
_KINDS = ("str", "int", "float", "bool", "list[any]")


def _field(place: Sequence[int | str]) -> str:
    """A field of an entry, or a part of one."""
    return ".".join(str(one) for one in place if one not in _KINDS)


def edit_schema() -> dict[str, Any]:
    """The JSON Schema of a patch file: a list of edits."""
    keyed, shared = models_json_schema([(kind, "validation") for kind in EDITS.values()])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Edits of an OpenVINO IR model",
        "type": "array",
        "items": {"oneOf": [keyed[kind, "validation"] for kind in EDITS.values()]},
        "$defs": shared["$defs"],
    }


__all__ = ["EDITS", "edit", "edit_of", "edit_schema", "edits_in", "read_edits"]
