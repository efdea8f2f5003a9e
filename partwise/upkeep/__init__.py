"""Upkeep: what keeps the cost of a table the same however long it lives. No JVM is needed for any of it.

`compact` merges small files, `retain` removes old parts, `clean` removes what no promised read needs any more.
Each is a writer like any other: lease, adoption, compare-and-swap.
"""
