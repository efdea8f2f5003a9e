"""What the ledger keeps beside parts: files, checks, backfills, announcements, strategies, writers."""
