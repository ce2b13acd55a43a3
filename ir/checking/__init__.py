"""Everything that is wrong with a file: rules, findings, reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .checker import breaches as breaches
    from .checker import check as check
    from .findings import RANK as RANK
    from .findings import Cause as Cause
    from .findings import Finding as Finding
    from .findings import Report as Report
    from .reports import to_github as to_github
    from .reports import to_sarif as to_sarif
    from .rules.catalogue import RULES as RULES
    from .rules.catalogue import codes as codes
    from .rules.catalogue import explain as explain
    from .rules.known import find as find
    from .rules.known import opset_number as opset_number
    from .rules.known import releases as releases
    from .rules.known import type_releases as type_releases
    from .rules.note import Note as Note
    from .rules.note import shown as shown
    from .rules.portability import Release as Release
    from .rules.portability import release as release

__getattr__, __dir__ = face(
    __name__,
    {
        "checker": "breaches check",
        "findings": "Cause Finding RANK Report",
        "reports": "to_github to_sarif",
        "rules.catalogue": "RULES codes explain",
        "rules.note": "Note shown",
        "rules.known": "find opset_number releases type_releases",
        "rules.portability": "Release release",
    },
)
