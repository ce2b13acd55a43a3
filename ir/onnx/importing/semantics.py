"""Whose answers are wanted where runtimes differ about what a node means."""

from __future__ import annotations

from typing import Literal, TypeAlias

Semantics: TypeAlias = Literal["onnxruntime", "openvino", "onnx"]
