"""Partwise keeps materialised views over time-partitioned data exact and fresh."""

__version__ = "0.2.0"
