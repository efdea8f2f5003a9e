"""Decisions about what arrives: which files to take, when parts close, which rows are too old. Nothing here acts."""
