"""The operations: one class per version, found by type and opset."""

from . import infrastructure, pooling
from .base import Op

__all__ = ["Op", "infrastructure", "pooling"]
