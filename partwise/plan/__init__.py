"""Planning: definitions and ledger in, ordered steps with reasons out. Pure code."""
