"""Commands that need the engine; `partwise` finds them here."""
