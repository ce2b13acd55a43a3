"""What changes a model: repairs, new shapes, parts, joined models, edits, types, older forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .batches import LISTS as LISTS
    from .downgrading import convert as convert
    from .editing import EDITS as EDITS
    from .editing import edit as edit
    from .editing import edit_schema as edit_schema
    from .editing import edits_in as edits_in
    from .editing import read_edits as read_edits
    from .extracting import extract as extract
    from .fixing import Fix as Fix
    from .fixing import fix as fix
    from .half_precision import compress as compress
    from .half_precision import decompress as decompress
    from .merging import merge as merge
    from .outcome import Change as Change
    from .outcome import Operated as Operated
    from .outcome import Refusal as Refusal
    from .outcome import Surgery as Surgery
    from .reshaping import inferred_bodies as inferred_bodies
    from .reshaping import reshape as reshape
    from .reshaping import same_declaration as same_declaration
    from .reshaping import settle as settle
    from .session import Session as Session
    from .simplifying import Certificate as Certificate
    from .simplifying import Simplified as Simplified
    from .simplifying import rewrite as rewrite
    from .simplifying import simplify as simplify
    from .transplanting import body_at as body_at
    from .transplanting import layer_at as layer_at

face(
    __name__,
    {
        "batches": "LISTS",
        "downgrading": "convert",
        "editing": "EDITS edit edit_schema edits_in read_edits",
        "extracting": "extract",
        "fixing": "Fix fix",
        "half_precision": "compress decompress",
        "merging": "merge",
        "outcome": "Change Operated Refusal Surgery",
        "reshaping": "inferred_bodies reshape same_declaration settle",
        "session": "Session",
        "simplifying": "Certificate Simplified rewrite simplify",
        "transplanting": "body_at layer_at",
    },
)
