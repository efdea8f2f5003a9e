"""Paths as Spark reads them."""


def literal(uri: str) -> str:
    """Spark takes `[`, `{`, `*` and `?` in a path for patterns."""
    return "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in uri)
