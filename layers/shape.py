"""Shapes asked for and changed."""
