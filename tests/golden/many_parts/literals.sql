SELECT r'\d' AS a, 'it\'s' AS b, "two" AS c, x & 4294967295L AS d, a <=> b AS e, nvl(a, len(b)) AS f, DATE'2026-01-01' AS g FROM m[j] /* gone */
