"""Convolution and its transpose."""
