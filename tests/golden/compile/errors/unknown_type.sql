-- part: 3600
SELECT src, SUM(total) AS s FROM hourly PATTERN [a, b+] GROUP BY src
