"""Choosing by condition."""
