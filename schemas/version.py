"""The version of the project, and where its faults are reported: each in its one place."""

VERSION = "0.1.0"

#: Where a bug is reported; the project has no address of its own yet.
REPORTS = "the issue tracker of the repository from which you have vinoir"
