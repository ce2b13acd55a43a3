"""Elements moved, unchanged."""
