"""Dimensions whose rows do not count for everything: those that change forward, and those with times of validity."""
