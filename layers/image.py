"""Images resized, sampled and converted."""
