"""Products and inverses of matrices."""
