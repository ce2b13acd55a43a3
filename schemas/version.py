"""The version of the project, in its one place."""

VERSION = "0.1.0"
