"""Comparisons, element by element."""
