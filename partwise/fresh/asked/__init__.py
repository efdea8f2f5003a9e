"""What a query asks of a sample.

question   groups, conditions, results, or rows; what cannot be asked
results    formulas over totals, quantiles, extremes
refused    why there is no answer
"""
