"""`sample:` of a view to generated helpers, from which fresh answers are estimated.

hashing    which keys are in a sample; the same by Spark and by Python
sizes      a query for the largest keys of a part's inputs, and for a bound of all others
generate   definition -> helpers, or what stands in the way
"""
