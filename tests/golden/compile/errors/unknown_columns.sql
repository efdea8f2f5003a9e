SELECT src, SUM(los) AS s FROM measurements PATTERN [a, b+] WHERE a.lost > 1 GROUP BY source
