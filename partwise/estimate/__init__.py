"""Estimates from a hash sample, with intervals: pure arithmetic on totals, whoever adds them up.

formula    a result written over totals, with its gradient
interval   totals of a sample -> value and interval, or why there is none
"""
