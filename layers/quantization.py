"""Values rounded to a few levels."""
