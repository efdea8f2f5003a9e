"""What readers of the ledger ask: pins, as-of reads, reports, the history of a part, the audit."""
