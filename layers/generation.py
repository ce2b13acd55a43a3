"""Tensors made from nothing but sizes and limits."""
