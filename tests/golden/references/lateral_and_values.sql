SELECT m.src, e.item, v.a, l.top
FROM measurements[j-1..j] m
JOIN (VALUES (1, 'x[j]'), (2, 'y')) AS v(a, b) ON v.a = m.n
CROSS JOIN LATERAL (SELECT MAX(loss) AS top FROM measurements[j] w WHERE w.src = m.src) l
JOIN range(10) r ON r.id = m.n
LATERAL VIEW OUTER explode(m.arr[0]) e AS item
