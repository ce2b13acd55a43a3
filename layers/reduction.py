"""Axes reduced to one value."""
