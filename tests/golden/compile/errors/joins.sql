SELECT n.region, COUNT(*) AS n FROM measurements PATTERN [a, b] JOIN nodes n ON n.node = src GROUP BY n.region
