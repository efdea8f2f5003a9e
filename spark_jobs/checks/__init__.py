"""Carries out checks: one pass over the staged files, and Great Expectations for what one pass cannot answer."""
