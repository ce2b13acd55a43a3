"""Damage done to valid IR files: each case with its weight and where the damage is.

A mutation takes a file and a random generator and gives a damaged copy, or None where it finds
nothing to damage. Its label is what a check has to say: error, warning, or ok (nothing).
"""

from . import attributes, document, harmless, subgraphs, warnings, weights, wiring, words, xml
from .base import Case, File, cases

__all__ = [
    "Case", "File", "attributes", "cases", "document", "harmless", "subgraphs",
    "warnings", "weights", "wiring", "words", "xml",
]  # fmt: skip
