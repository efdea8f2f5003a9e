"""Commands that tell the ledger what nothing else knows; none of them needs Spark."""
