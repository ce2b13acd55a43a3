"""Elements gathered and scattered by index."""
