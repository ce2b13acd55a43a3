"""Element types changed."""
