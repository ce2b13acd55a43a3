"""Everything that is wrong with a file: rules, findings, reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import face

if TYPE_CHECKING:
    from .checker import check as check
    from .findings import RANK as RANK
    from .findings import Cause as Cause
    from .findings import Finding as Finding
    from .findings import Report as Report
    from .remedies import defaults_to_write as defaults_to_write
    from .remedies import older_version as older_version
    from .reports import to_github as to_github
    from .reports import to_sarif as to_sarif
    from .rules.attributes import misspelt as misspelt
    from .rules.catalogue import RULES as RULES
    from .rules.catalogue import codes as codes
    from .rules.catalogue import explain as explain
    from .rules.known import RELEASES as RELEASES
    from .rules.known import TYPE_RELEASES as TYPE_RELEASES
    from .rules.known import find_operation as find_operation
    from .rules.known import opset_number as opset_number
    from .rules.note import Note as Note
    from .rules.portability import Release as Release
    from .rules.portability import release as release
    from .rules.shapes import contradicts as contradicts

face(
    __name__,
    {
        "checker": "check",
        "findings": "Cause Finding RANK Report",
        "remedies": "defaults_to_write older_version",
        "reports": "to_github to_sarif",
        "rules.attributes": "misspelt",
        "rules.catalogue": "RULES codes explain",
        "rules.known": "RELEASES TYPE_RELEASES find_operation opset_number",
        "rules.note": "Note",
        "rules.portability": "Release release",
        "rules.shapes": "contradicts",
    },
)
