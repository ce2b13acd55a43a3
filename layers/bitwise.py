"""Bit operations, element by element."""
