"""Findings over whole files: none on what OpenVINO wrote, the right ones on damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import witness
from vinoir import ir


@pytest.mark.parametrize("path", witness(), ids=lambda path: path.stem)
def test_files_that_openvino_wrote_have_no_errors_and_no_warnings(path: Path) -> None:
    assert [str(finding) for finding in ir.check(path) if finding.severity != "info"] == []
