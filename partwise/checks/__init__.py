"""Checks of parts before they are published: what can be expected, how it is asked in SQL, what came of it."""
