"""What findings say is to be done, for whoever does it."""

from __future__ import annotations

from collections.abc import Mapping

from ...layers.base import Op
from .rules import attributes, known
from .rules.portability import Release, release


def defaults_to_write(data: Mapping[str, str], kind: type[Op]) -> dict[str, tuple[str, str]]:
    """Attributes that a file should state, each with the finding's code and the text.

    Those that the specification lets a file leave out and OpenVINO does not; and the other way.
    """
    key = kind.xml_type, kind.number
    described = {row.name: row for row in kind.describe()}
    found: dict[str, tuple[str, str]] = {}
    for name in attributes.CRASHES.get(key, ()):
        if not described[name].required:
            found[name] = "IR411" if name in data else "IR407", _neutral(data, name)
    for name in attributes.REFUSED.get(key, ()):
        default = described[name].default
        if default is not None:
            found[name] = "IR408", default
    for name, (specified, _) in attributes.OTHERWISE.get(key, {}).items():
        empty = name == "activations" and not data.get(name, "-").strip()
        found[name] = "IR411" if empty else "IR409", specified
    for name in attributes.without(data, kind):
        text = attributes.taken(data, kind).get(name)
        if text is not None:
            found[name] = "IR412", text
    return found


def _neutral(data: Mapping[str, str], name: str) -> str:
    """The value that changes nothing, once for each spatial axis."""
    axes = len(data["kernel"].split(",")) if data.get("kernel") else 2
    return ", ".join(["0" if name.startswith("pads") else "1"] * axes)


def older_version(kind: str, version: str, oldest: Release) -> str | None:
    """The opset that brought an operation, where a release knows that and not the one named."""
    op = known.find_operation(kind, version)
    since = known.RELEASES.get(known.opset_number(version) or 0)
    if op is None or since is None or release(since) <= oldest:
        return None
    first = op.opset_numbers()[0]
    brought = known.RELEASES.get(first)
    return f"opset{first}" if brought and release(brought) <= oldest else None
