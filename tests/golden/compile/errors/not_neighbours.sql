SELECT src, COUNT(*) AS n FROM measurements PATTERN [a, b, c]
WHERE c.loss > a.loss AND b.loss > PREV(b.loss) AND a.loss > loss
GROUP BY src
