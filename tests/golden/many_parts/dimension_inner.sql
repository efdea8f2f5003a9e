SELECT n.region, AVG(m.loss) AS loss FROM m[j] m JOIN nodes n ON n.node = m.src GROUP BY n.region
