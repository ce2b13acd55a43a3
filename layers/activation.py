"""Functions that networks put between their layers."""
