"""Paths as Spark reads them."""

from partwise.object_store import spark_path


def literal(uri: str) -> str:
    """Spark takes `[`, `{`, `*` and `?` in a path for patterns, and calls an object store by another name."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in spark_path(uri))
