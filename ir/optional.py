"""Packages that are wanted for one thing alone, and need not be there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..schemas import UsageError, Where


def optional(name: str, missing: str, hint: str, where: Where | None = None) -> Any:
    """Import a module of such a package.

    Args:
        name: The module.
        missing: What is said where the package is not there.
        hint: How to install it.
        where: What it is wanted for.

    Raises:
        UsageError: It is not there; or it is, and cannot be imported: its own words say why.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        if find_spec(package) is None:
            raise UsageError(missing, where, hint) from None
        raise UsageError(
            f"{package} is installed, but cannot be imported: {error}",
            where,
            f"install it anew ({hint})",
        ) from error


__all__ = ["optional"]
