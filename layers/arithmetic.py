"""Arithmetic, element by element."""
