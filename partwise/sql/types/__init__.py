"""Spark's types: what is known of an expression's type, and what authors may declare."""
