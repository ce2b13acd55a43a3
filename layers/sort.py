"""The largest elements, in order."""
