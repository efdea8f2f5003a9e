"""Every decision by cost: weights, counts from the ledger, what was chosen and why."""
