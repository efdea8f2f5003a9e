"""Spark carries out steps: read pinned inputs, compute, check, commit."""
