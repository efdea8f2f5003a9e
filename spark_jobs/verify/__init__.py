"""Recomputation from the sources, independent of helpers and strategies."""
