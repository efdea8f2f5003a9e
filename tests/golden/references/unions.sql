SELECT src FROM measurements[j]
UNION ALL SELECT src FROM measurements[j-1] WHERE loss > 1
EXCEPT (SELECT node FROM nodes INTERSECT SELECT src FROM total_loss[j])
ORDER BY src
