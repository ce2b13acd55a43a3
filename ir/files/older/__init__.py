"""IR v2 to v7, upgraded: a document of 2018 to 2020 to a model of today's operations.

The old document is read as records (``document``); each layer type has one entry in a table
(``table``), which stands in the file of its family: its attributes with their defaults, what it
becomes, and the function that does it. What no entry says anything about is in ``upgrade``:
types, names, edges, inputs and outputs. The sizes that the file declares are compared with those
that follow from the new operations; whatever was decided and not copied is a remark of the
model's ``origin``.

Facts of the format are from the readers and plug-ins of OpenVINO 2018 to 2020.4.
"""

from ...document import Origin, Remark
from .upgrade import NEWER, VERSIONS, Settings, examine, names_opsets, newer, upgrade

__all__ = [
    "NEWER",
    "VERSIONS",
    "Origin",
    "Remark",
    "Settings",
    "examine",
    "names_opsets",
    "newer",
    "upgrade",
]
