"""Transactions that change what exists or what is due: leases, commits, definitions, closing."""
